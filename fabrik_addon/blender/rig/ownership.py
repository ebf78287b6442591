"""Which bones of a rig an animator could key, and who has the others.

Generated control rigs are full of bones that constraints and drivers move. Those are left alone: a bone with a
constraint that moves it is the end of what can be solved from below, as nobody knows how it follows what is above it;
one that is driven, locked or out of sight rides along as it stands.
"""

from collections.abc import Iterator
from typing import Any, Final

import bpy

from ..settings.control import moves
from .keyframes import ROTATION_CHANNELS, bone_path
from .locks import is_locked

_CHAINS: Final = ("IK", "SPLINE_IK")
# What to do about a bone that is not an animator's to move.
OTHERWISE: Final = "drag another, or press Use as Control Rig"


def constrained_bones(rig: bpy.types.Object) -> dict[str, str]:
    """The bones that constraints move, with what to call the reason."""
    owned: dict[str, str] = {}
    for bone in rig.pose.bones:
        for constraint in bone.constraints:
            if moves(constraint):
                reason = f"constraint {constraint.name!r} moves it"
                owned.update((each.name, reason) for each in moved_by(bone, constraint))
    return owned


def unkeyable_bones(rig: bpy.types.Object) -> dict[str, str]:
    """The bones that an animator could not turn, constraints apart, with what to call the reason."""
    driven = _driven_paths(rig)
    reasons = ((bone.name, _why_unkeyable(bone, driven)) for bone in rig.pose.bones)
    return {name: reason for name, reason in reasons if reason}


def _why_unkeyable(bone: bpy.types.PoseBone, driven: set[str]) -> str:
    """Why nobody can turn a bone; "" where somebody can."""
    if driven and any(bone_path(bone.name, channel) in driven for channel in ROTATION_CHANNELS):
        return "a driver turns it"
    if is_locked(bone):
        return "its rotation is locked"
    if _is_hidden(bone):
        return "it is hidden"
    if bone.bone.hide_select:
        return "it can't be selected"
    return ""


def _driven_paths(rig: bpy.types.Object) -> set[str]:
    """The data paths that have drivers."""
    animation = rig.animation_data
    return set() if animation is None else {curve.data_path for curve in animation.drivers if not curve.mute}


def moved_by(bone: bpy.types.PoseBone, constraint: Any) -> Iterator[bpy.types.PoseBone]:
    """The bones that a constraint of a bone moves: that one, and the chain where there is one."""
    if constraint.type not in _CHAINS:
        yield bone
        return
    # Without its tail an IK chain begins at the parent; a length of zero goes up to the root.
    own = getattr(constraint, "use_tail", True)
    chain = [bone, *bone.parent_recursive] if own else list(bone.parent_recursive)
    yield from chain[: constraint.chain_count or len(chain)]


def _is_hidden(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone can't be seen in Pose mode: hidden itself, or in hidden collections only."""
    collections = bone.bone.collections
    # Blender 5.0 has pose bones hidden, older ones the armature's.
    hidden = getattr(bone, "hide", bone.bone.hide)
    shown = not collections or any(each.is_visible_effectively for each in collections)
    return bool(hidden or not shown)
