"""Whether the root bone moves: what the rig's one setting says for dragging, solving, live posing and baking."""

import bpy

from ..settings.rig import rig_settings
from .goals import Goals


def root_mode(
    armature: bpy.types.Object, *, pinned: bool, dragged: str = "", top: str = "", setting: str | None = None
) -> str:
    """How the root of a tree of bones goes along: "FIXED", "FREE", or "FOLLOW" as by a rope.

    Args:
        armature: the rig.
        pinned: whether anything of the tree is held where it is.
        dragged: the bone that is dragged, "" where none is.
        top: the uppermost bone that follows it.
        setting: in place of the rig's own.
    """
    chosen: str = setting or rig_settings(armature).root
    if chosen == "AUTO":
        return "FREE" if pinned or (dragged and dragged == top) else "FIXED"
    # What follows like a rope would leave its pins.
    return "FREE" if chosen == "FOLLOW" and (pinned or dragged in {"", top}) else chosen


def moves_root(armature: bpy.types.Object, goals: Goals) -> bool:
    """Whether solving may move the root of a tree."""
    return goals.root_moves and root_mode(armature, pinned=bool(goals.pinned)) != "FIXED"
