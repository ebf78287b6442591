"""Draws a line from each marker to its point on the bone.

`handlers.py` calls this module.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import bpy
import numpy as np
from mathutils import Vector

from ....core.arrays import FloatArray
from ...goals.places import is_seen
from ...rig.armature import armature_point
from ...settings.markers import BAD, FAIR
from ...settings.why_not import mapped_markers
from .drawing import Drawing, colored, draw_over

# Color-blind people can distinguish blue, yellow and vermilion. Larger errors also have thicker lines.
_LEVELS: Final = (((0.30, 0.66, 1.0, 1.0), 1.5), ((1.0, 0.85, 0.2, 1.0), 2.5), ((1.0, 0.25, 0.10, 1.0), 4.0))


@dataclass(frozen=True, eq=False)
class ErrorLines:
    """Lines of one color: (2 L, 3) ends in world space, RGBA, and a width in pixels."""

    ends: FloatArray
    color: tuple[float, float, float, float]
    width: float


def error_lines(rig: bpy.types.Object, frame: float) -> list[ErrorLines]:
    """The lines of a rig's visible markers on a frame, one entry per color."""
    pairs = list(_pairs(rig, frame))
    if not pairs:
        return []
    ends = np.array(pairs, dtype=np.float64)
    level = np.digitize(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1), (FAIR, BAD))
    return [
        ErrorLines(ends[level == place].reshape(-1, 3), color, width)
        for place, (color, width) in enumerate(_LEVELS)
        if (level == place).any()
    ]


def _pairs(rig: bpy.types.Object, frame: float) -> Iterator[tuple[Vector, Vector]]:
    """The position of each marker, and of its point on the bone."""
    for marker in mapped_markers(rig):
        holder: Any = marker.target
        bone: Any = rig.pose.bones.get(marker.bone)
        if holder is None or bone is None or not is_seen((holder, marker.target_bone), frame):
            continue
        place = holder.matrix_world.translation
        if marker.target_bone:
            if marker.target_bone not in holder.pose.bones:
                continue
            place = holder.matrix_world @ holder.pose.bones[marker.target_bone].head
        yield place, rig.matrix_world @ armature_point(bone, marker.point, marker.offset)


def draw_errors(rig: bpy.types.Object, context: bpy.types.Context) -> None:
    """Draw the lines of a rig's markers into the current viewport, in front of everything."""
    lines = error_lines(rig, context.scene.frame_current_final)
    draw_over(
        Drawing({each.width: colored([(each.ends, np.arange(len(each.ends)), each.color)]) for each in lines}), context
    )
