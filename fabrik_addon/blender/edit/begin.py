"""Which drag a drag is: of this frame only, or of those about it as well."""

from typing import TypeAlias

import bpy

from ..posing.drag.session import Drag, begin_drag
from ..posing.drag.setup import DragSettings
from ..rig.keying import is_auto_keying
from .span import Spread
from .spread_drag import SpreadDrag, begin_spread
from .take import is_animated

AnyDrag: TypeAlias = "Drag | SpreadDrag"


def begin_any_drag(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    bone: str,
    point: str,
    settings: DragSettings,
    spread: tuple[int, str],
) -> AnyDrag:
    """Take hold of a bone's "TAIL" or "HEAD"; nothing moves yet.

    spread: over how many frames to each side the drag fades out, and by which falloff. Where keys may not be changed,
    or there are none, it is a drag of this frame, which says so in `left_alone`.

    Raises:
        FabrikError: naming what keeps the bone from being dragged; the scene is untouched.
    """
    frames, curve = spread
    trouble = why_no_spread(context, armature)
    if frames and not trouble:
        return begin_spread(context, armature, bone, Spread(frames, frames, curve), point=point, settings=settings)
    drag = begin_drag(context, armature, bone, point=point, settings=settings)
    if frames:
        drag.left_alone.append(f"Only this frame has changed: {trouble}")
    return drag


def why_no_spread(context: bpy.types.Context, armature: bpy.types.Object) -> str:
    """What keeps drags from changing keys on other frames; "" where nothing does."""
    if not is_animated(armature):
        return f"{armature.name!r} has no keys to spread the change over"
    return "" if is_auto_keying(context) else "Auto Keying is off, so no key may be changed"
