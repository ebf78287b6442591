"""Finds the point of a trail under the mouse."""

from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ..posing.drag.view import DragView
from ..settings.in_use import seen

# The maximum distance of the mouse from a point, in pixels.
_NEAR: Final = 10.0


def nearest_on_trails(
    context: bpy.types.Context, rig: bpy.types.Object, view: DragView, mouse: FloatArray
) -> tuple[str, int] | None:
    """The bone and the frame of the trail's point under the mouse (2,); None if there is none.

    The point on the current frame is excluded, because it is on the bone itself.
    """
    if not seen(rig).show_trails or context.mode != "POSE":
        return None
    from .overlays.motion import trail_points  # noqa: PLC0415  Blender's start needs none of it

    best, found = _NEAR * context.preferences.system.ui_scale, None
    for bone, frames, points in trail_points(context, rig):
        for frame, point in zip(frames.tolist(), points, strict=True):
            at = view.on_screen(point)
            away = np.inf if at is None else float(np.linalg.norm(at - mouse))
            if away < best:
                best, found = away, (bone, round(frame))
    return None if found is None or found[1] == context.scene.frame_current else found
