"""Begins a drag of the current frame, or one that spreads over frames."""

from dataclasses import replace
from typing import Final, TypeAlias

import bpy

from ..posing.drag.session import Drag, begin_drag
from ..posing.drag.setup import DragSettings
from ..rig.armature import RigError
from ..rig.keying import is_auto_keying
from .span import Spread
from .spread_drag import SpreadDrag, begin_spread
from .take import is_animated

# A drag of another frame fades out over this many frames to each side if no spread is set.
_SPREAD: Final = 10
AnyDrag: TypeAlias = "Drag | SpreadDrag"


def begin_any_drag(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    bone: str,
    point: str,
    settings: DragSettings,
    spread: Spread,
) -> AnyDrag:
    """Begin a drag of a bone's "TAIL" or "HEAD"; nothing moves yet.

    If there are no keys, or they may not be changed, the drag changes only this frame, and `left_alone` says why.

    Raises:
        FabrikError: names why the bone or another frame can't be dragged; the scene is unchanged.
    """
    trouble = why_no_spread(context, armature)
    if spread.frame is not None and trouble:
        raise RigError(f"Frame {spread.frame:g} can't be edited: {trouble}")
    if spread.frame is not None and not spread.before:
        spread = replace(spread, before=_SPREAD, after=_SPREAD)
    if spread.before and not trouble:
        return begin_spread(context, armature, bone, spread, point=point, settings=settings)
    drag = begin_drag(context, armature, bone, point=point, settings=settings)
    if spread.before:
        drag.left_alone.append(f"Only this frame was changed: {trouble}")
    return drag


def why_no_spread(context: bpy.types.Context, armature: bpy.types.Object) -> str:
    """Why drags can't change keys on other frames; "" if they can."""
    if not is_animated(armature):
        return f"{armature.name!r} has no keys to edit: bake or key some motion first"
    return "" if is_auto_keying(context) else "Auto Keying is off, so keys can't be changed: enable it"
