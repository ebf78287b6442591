"""Draws the limits of the active and the selected bones in the viewport while they are posed.

`handlers.py` calls it; `gpu` is only imported then, since it does not work without a window.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import bpy
import numpy as np
from mathutils import Matrix

from ....core.arrays import FloatArray
from ....core.limits.base import Limit
from ...settings.limit_properties import LimitPropertyError, has_limit, read_limit
from ...settings.selection import active_bone, selected_bones
from ..chosen import color
from .drawing import Color, Drawing, colored, draw_lines, draw_triangles
from .limit_shapes import Kind, Shape, shapes_of

_Numbers = tuple[float, ...]

# The color of lines that show the bone; one at a limit has a cross besides its color.
_WHITE: Final = (1.0, 1.0, 1.0)
# Opacity of surfaces and lines by kind; factors on it for bones that are not active, and through a mesh.
_SURFACE_ALPHA: Final = {Kind.RANGE: 0.14, Kind.GUIDE: 0.0, Kind.MARKER: 1.0}
_LINE_ALPHA: Final = {Kind.RANGE: 1.0, Kind.GUIDE: 0.45, Kind.MARKER: 1.0}
_BESIDE: Final = 0.5
_THROUGH: Final = 0.3
# Pixels.
_LINE_WIDTH: Final = {Kind.RANGE: 2.0, Kind.GUIDE: 1.0, Kind.MARKER: 1.5}
_BINDING_WIDTH: Final = 2.0
# Number of bones whose shapes are cached between redraws.
_KEPT: Final = 512


def shown_bones(context: bpy.types.Context) -> list[bpy.types.PoseBone]:
    """The bones of the active armature whose limits are drawn in Pose mode: the active one, then the selected ones."""
    rig: Any = context.active_object
    active = active_bone(rig)
    bones = [] if active is None else [active]
    bones += [bone for bone in selected_bones(context, rig) if bone != active]
    return [bone for bone in bones if has_limit(bone)]


def shapes_of_bone(bone: bpy.types.PoseBone) -> list[Shape]:
    """The shapes of a bone's limit in world space; none for a free bone, or for an invalid limit."""
    try:
        limit = read_limit(bone)
    except LimitPropertyError:
        return []
    if limit is None:
        return []
    carried = carried_frame(bone)
    rotation = (carried.to_3x3().inverted() @ bone.matrix.to_3x3()).to_quaternion()
    rig: Any = bone.id_data
    return _shapes_at(limit, rotation[:], bone.length, tuple(map(tuple, rig.matrix_world @ carried)))


@lru_cache(maxsize=_KEPT)
def _shapes_at(limit: Limit, rotation: _Numbers, length: float, frame: tuple[_Numbers, ...]) -> list[Shape]:
    """The shapes of a limit with a world matrix; cached, since most redraws repeat the one before."""
    matrix = np.array(frame)
    return [
        Shape(shape.kind, shape.binds, _moved(shape.vertices, matrix), shape.triangles, shape.lines)
        for shape in shapes_of(limit, rotation, length)
    ]


def carried_frame(bone: bpy.types.PoseBone) -> Matrix:
    """A bone's rest frame on its posed parent, at the bone's head: the frame from which limits are measured."""
    rest = bone.bone.matrix_local
    turn = rest.to_3x3()
    if bone.parent is not None and bone.bone.use_inherit_rotation:
        carrier = bone.parent.matrix.to_quaternion() @ bone.parent.bone.matrix_local.to_quaternion().inverted()
        turn = carrier.to_matrix() @ turn
    frame = turn.to_4x4()
    frame.translation = bone.head
    return frame


def gather(bones: Sequence[bpy.types.PoseBone], active: bpy.types.PoseBone | None) -> tuple[Drawing, Drawing]:
    """The drawings of some bones' ranges, and of the bones; the active bone and active limits are emphasized."""
    shares = [
        (shape, 1.0 if bone == active or shape.binds else _BESIDE) for bone in bones for shape in shapes_of_bone(bone)
    ]
    ranges = [pair for pair in shares if pair[0].kind is not Kind.MARKER]
    return _drawing(ranges), _drawing([pair for pair in shares if pair[0].kind is Kind.MARKER])


def _drawing(shares: Sequence[tuple[Shape, float]]) -> Drawing:
    """One drawing of shapes, each with an opacity."""
    surfaces = (
        (shape.vertices, shape.triangles, (*_color(shape), share * _SURFACE_ALPHA[shape.kind]))
        for shape, share in shares
    )
    lines = {
        width: colored(
            (shape.vertices, shape.lines, (*_color(shape), share * _LINE_ALPHA[shape.kind]))
            for shape, share in shares
            if _width(shape) == width
        )
        for width in sorted({_width(shape) for shape, _ in shares})
    }
    return Drawing(lines, *colored(surfaces))


def draw_limits(context: bpy.types.Context) -> None:
    """Draw the limits of the shown bones into the current viewport."""
    bones = shown_bones(context)
    if bones:
        _draw_now(*gather(bones, context.active_pose_bone), context.region)


def _draw_now(ranges: Drawing, markers: Drawing, region: bpy.types.Region) -> None:
    """Draw both. A mesh hides no marker, and the hidden part of a range is faint."""
    import gpu  # noqa: PLC0415  not to be had without a window

    gpu.state.blend_set("ALPHA")
    gpu.state.depth_mask_set(False)
    try:
        for drawing, depth_test, share in (
            (ranges, "NONE", _THROUGH),
            (ranges, "LESS_EQUAL", 1.0 - _THROUGH),
            (markers, "NONE", 1.0),
        ):
            gpu.state.depth_test_set(depth_test)
            draw_triangles(drawing, share)
            draw_lines(drawing, share, region)
    finally:
        gpu.state.depth_test_set("NONE")
        gpu.state.blend_set("NONE")


def _color(shape: Shape) -> Color:
    if shape.binds:
        return color("binds")[:3]
    return _WHITE if shape.kind is Kind.MARKER else color("free")[:3]


def _width(shape: Shape) -> float:
    return _LINE_WIDTH[shape.kind] + (_BINDING_WIDTH if shape.binds else 0.0)


def _moved(points: FloatArray, matrix: FloatArray) -> FloatArray:
    """(N, 3) points transformed by a matrix (4, 4)."""
    return np.asarray(points @ matrix[:3, :3].T + matrix[:3, 3])
