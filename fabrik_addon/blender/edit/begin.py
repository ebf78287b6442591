"""Which drag a drag is: of this frame only, or of those about it as well."""

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

# Frames to each side that another frame's drag fades out over where no spread is set.
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
    """Take hold of a bone's "TAIL" or "HEAD"; nothing moves yet.

    Where keys may not be changed, or there are none, a spread is a drag of this frame, which says so in `left_alone`.

    Raises:
        FabrikError: naming what keeps the bone, or another frame, from being dragged; the scene is untouched.
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
    """What keeps drags from changing keys on other frames; "" where nothing does."""
    if not is_animated(armature):
        return f"{armature.name!r} has no keys to edit: bake or key some motion first"
    return "" if is_auto_keying(context) else "Auto Keying is off, so keys can't be changed: enable it"
