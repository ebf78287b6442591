"""Draws the limits of bones: outlines on spheres, arcs of hinges and twists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from math import cos, pi, sin, tau
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from bpy.types import Context, PoseBone
from mathutils import Matrix
from mathutils.geometry import tessellate_polygon

from ....core import Ball, Fixed, Hinge, Polygon
from ....core.arrays import FloatArray, IntArray
from ....core.backend.array import Quaternion, Scalar
from ....core.backend.scalar import one
from ....core.kernel.joint_limits import at_limit
from ....core.limits import Limit, excess, swing_of, twist_of
from ...settings.limit_properties import LimitPropertyError, has_limit, read_limit
from ...settings.selection import active_bone, selected_bones
from .drawing import COLORS, Drawing, Part, draw, joined

# Radians. A joint this close to a limit is shown as at the limit, because poses have single precision.
_AT_LIMIT: Final = 2e-3
# The number of points along the rim of a cone (a multiple of four), of rings from rest to rim, and of points on a full
# circle.
_RIM_POINTS: Final = 48
_RINGS: Final = 10
_ARC_POINTS: Final = 72
# The number of times that the edges of a polygon's triangles are halved.
_HALVINGS: Final = 3
# The position and radius of the twist fan, and the length of its pointer, relative to the bone's length.
_TWIST_PLACE, _TWIST_RADIUS, _TWIST_POINTER = 0.5, 0.22, 0.27
_MARKER_SIZE: Final = 0.045
_LOCK_SIZE: Final = 0.12
_NO_TRIANGLES: Final = np.zeros((0, 3), dtype=np.int64)


class ShapeKind(Enum):
    """The kind of a shape: the opacity of its surface and of its lines, and the width of its lines in pixels."""

    RANGE = 0.14, 1.0, 2.0
    GUIDE = 0.0, 0.45, 1.0
    MARKER = 1.0, 1.0, 1.5


@dataclass(frozen=True, eq=False)
class Shape:
    """A shape to draw.

    Attributes:
        kind: the range of the bone, guide lines that show its depth, or the bone itself.
        binds: whether the bone is at this limit or beyond it. Then its marker is a cross, else a diamond.
        vertices: (N, 3) points in the limit's frame, in armature units.
        triangles: (T, 3) vertex indices of a surface.
        lines: (L, 2) vertex indices of its outline, or of a marker.
    """

    kind: ShapeKind
    binds: bool
    vertices: FloatArray
    triangles: IntArray
    lines: IntArray


def shapes_of(limit: Limit, rotation: npt.ArrayLike, length: float) -> list[Shape]:
    """The shapes for a bone with a limit, a length and a current rotation (4,), w x y z."""
    turn = one.quaternion_of(np.asarray(rotation, dtype=np.float64).tolist())
    shapes = _SHAPES[type(limit)](limit, turn)
    return [replace(shape, vertices=shape.vertices * length) for shape in shapes]


def directions(x: FloatArray, z: FloatArray) -> FloatArray:
    """(..., 3) directions of local Y for swings `x` and `z`, (...,) radians."""
    angle = np.hypot(x, z)
    scale = np.sinc(angle / pi)
    return np.stack([x * scale, np.cos(angle), z * scale], axis=-1)


def _ball_shapes(limit: Ball, turn: Quaternion) -> list[Shape]:
    """The range of a ball on the sphere of the tail, its rim, the tail, and the range of twist."""
    twist = _twist_shapes(limit.twist, turn)
    if min(limit.angles) >= pi:
        return twist
    binds = _is_at_limit(Ball(limit.cone), turn)
    rings = np.arange(1, _RINGS + 1)[:, None, None] / _RINGS * limit.outline(_RIM_POINTS)
    points = directions(*np.concatenate([np.zeros((1, 2)), rings.reshape(-1, 2)]).T)
    # The innermost ring is vertex 0, at rest.
    index = np.concatenate(
        [np.zeros((1, _RIM_POINTS), dtype=np.int64), 1 + np.arange(rings.size // 2).reshape(_RINGS, -1)]
    )
    rolled = np.roll(index, -1, axis=1)
    outer = np.stack([index[:-1], index[1:], rolled[1:]], axis=-1).reshape(-1, 3)
    inner = np.stack([index[1:-1], rolled[2:], rolled[1:-1]], axis=-1).reshape(-1, 3)
    spokes = index[:, :: _RIM_POINTS // 4]
    rim_lines = np.stack([index[-1], rolled[-1]], axis=1)
    spoke_lines = np.stack([spokes[:-1], spokes[1:]], axis=-1).reshape(-1, 2)
    surface = Shape(ShapeKind.RANGE, binds, points, np.concatenate([outer, inner]), rim_lines)
    return [surface, Shape(ShapeKind.GUIDE, binds, points, _NO_TRIANGLES, spoke_lines), _marker(turn, binds), *twist]


def _polygon_shapes(limit: Polygon, turn: Quaternion) -> list[Shape]:
    """The range of a polygon on the sphere of the tail, its outline, the tail, and the range of twist."""
    binds = _is_at_limit(Polygon(limit.window), turn)
    corners = np.array(limit.points)
    cut = tessellate_polygon([[one.vector_of((x, z, 0.0)) for x, z in corners]])
    triangles = corners[np.array(cut, dtype=np.int64)]
    edges = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)
    for _ in range(_HALVINGS):
        a, b, c = np.moveaxis(triangles, 1, 0)
        ab, bc, ca = (a + b) / 2.0, (b + c) / 2.0, (c + a) / 2.0
        quarters = (a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)
        triangles = np.concatenate([np.stack(quarter, axis=1) for quarter in quarters])
        middle = edges.mean(axis=1)
        edges = np.concatenate([np.stack([edges[:, 0], middle], axis=1), np.stack([middle, edges[:, 1]], axis=1)])
    points = directions(*np.concatenate([triangles.reshape(-1, 2), edges.reshape(-1, 2)]).T)
    inside, outline = np.split(np.arange(len(points)), [3 * len(triangles)])
    surface = Shape(ShapeKind.RANGE, binds, points, inside.reshape(-1, 3), outline.reshape(-1, 2))
    return [surface, _marker(turn, binds), *_twist_shapes(limit.twist, turn)]


def _twist_shapes(twist: tuple[float, float], turn: Quaternion) -> list[Shape]:
    """A fan around the middle of the bone that shows its range of twist, and a pointer; empty if twist is free."""
    low, high = twist
    if high - low >= tau:
        return []
    angles = swing_of(one, turn)
    swing = one.exp_map(one.vector_of((angles.z, 0.0, -angles.x)))
    # If no twist is allowed, the bone is always at its limit. Show this only if the bone is twisted.
    binds = _is_at_limit(Ball(pi, twist), turn) if high > low else _is_beyond_limit(Ball(pi, twist), turn)
    return _round_shapes(low, high, twist_of(one, turn, 0.5 * (low + high)), swing, binds=binds)


def _round_shapes(low: float, high: float, now: Scalar, swing: Quaternion, *, binds: bool) -> list[Shape]:
    """A fan perpendicular to the bone between two twists, measured from local Z, and a pointer to the current twist."""
    center = np.array([0.0, _TWIST_PLACE, 0.0])
    tip = center + _TWIST_POINTER * np.array([sin(now), 0.0, cos(now)])
    pointer = Shape(ShapeKind.MARKER, binds, np.array([center, tip]), _NO_TRIANGLES, np.array([[0, 1]]))
    fan = _fan(low, high, binds, _TWIST_RADIUS * np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]), center)
    return [_turned(shape, swing) for shape in (fan, pointer)]


def _hinge_shapes(limit: Hinge, turn: Quaternion) -> list[Shape]:
    """A fan in the plane of the hinge, and the tail; for a hinge about Y, a range of twist."""
    low, high = (limit.low, limit.high) if limit.bounded else (-pi, pi)
    binds = _is_at_limit(limit, turn)
    if limit.axis == "Y":
        still = one.quaternion_of((1.0, 0.0, 0.0, 0.0))
        return _round_shapes(low, high, limit.angle(one, turn), still, binds=binds)
    ahead, aside = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0) if limit.axis == "X" else (-1.0, 0.0, 0.0)
    return [_fan(low, high, binds, np.array([ahead, aside])), _marker(turn, binds)]


def _fixed_shapes(limit: Fixed, turn: Quaternion) -> list[Shape]:
    """A square around the head. A fixed bone is always at its limit, which is shown only if the bone is rotated."""
    binds = _is_beyond_limit(limit, turn)
    corners = _LOCK_SIZE * np.array([[1.0, 0.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]])
    lines = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2], [1, 3]])
    shapes = [Shape(ShapeKind.RANGE, binds, corners, np.array([[0, 1, 2], [0, 2, 3]]), lines)]
    return [*shapes, _marker(turn, binds)] if binds else shapes


def _fan(low: float, high: float, binds: bool, axes: FloatArray, center: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Shape:
    """Triangles from a center (3,) to an arc, and their outline; axes: (2, 3) toward the angles 0° and 90°."""
    arc = np.linspace(low, high, 2 + int(_ARC_POINTS * (high - low) / tau))
    rim = center + np.stack([np.cos(arc), np.sin(arc)], axis=1) @ axes
    count, closed = len(rim), high - low >= tau
    start = np.arange(1, count + 1 if closed else count)
    end = start % count + 1
    lines = np.stack([start, end], axis=1)
    if not closed:
        lines = np.concatenate([[[0, 1]], lines, [[count, 0]]])
    triangles = np.stack([np.zeros_like(start), start, end], axis=1)
    return Shape(ShapeKind.RANGE, binds, np.concatenate([[center], rim]), triangles, lines)


def _marker(turn: Quaternion, binds: bool) -> Shape:
    """A line from the head to the tail, with a diamond at the tail, or a cross if the bone is at its limit."""
    s = _MARKER_SIZE
    ends = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    if binds:
        corners = 1.6 * s * np.array([[1.0, 0.0, 1.0], [-1.0, 0.0, -1.0], [1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]])
        triangles, lines = _NO_TRIANGLES, np.array([[0, 1], [2, 3], [4, 5]])
    else:
        corners = s * np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
        triangles = np.array([[2, 3, 4], [2, 4, 5]])
        lines = np.array([[0, 1], [2, 3], [3, 4], [4, 5], [5, 2]])
    return _turned(Shape(ShapeKind.MARKER, binds, np.concatenate([ends, corners + ends[1]]), triangles, lines), turn)


def _turned(shape: Shape, turn: Any) -> Shape:
    return replace(shape, vertices=shape.vertices @ np.array(turn.to_matrix()).T)


def _is_at_limit(limit: Limit, turn: Quaternion) -> bool:
    return _is_beyond_limit(limit, turn) or bool(at_limit(limit, np.array([turn]), _AT_LIMIT)[0])


def _is_beyond_limit(limit: Limit, turn: Quaternion) -> bool:
    return bool(excess(limit, np.array([turn]))[0] > _AT_LIMIT)


# The function that draws each kind of limit.
_SHAPES: Final[dict[type[Limit], Callable[[Any, Quaternion], list[Shape]]]] = {
    Ball: _ball_shapes,
    Polygon: _polygon_shapes,
    Hinge: _hinge_shapes,
    Fixed: _fixed_shapes,
}

# Drawing in the viewport, called by `handlers.py`. `gpu` does not work without a window.

_Numbers = tuple[float, ...]

# The colors of the lines that show a bone. A bone at its limit also has a cross.
_WHITE: Final = (1.0, 1.0, 1.0)
# Opacity factors for bones that are not active, and for parts behind a mesh.
_BESIDE: Final = 0.5
_THROUGH: Final = 0.3
# The number of pixels by which lines of a limit are wider if the bone is at it.
_BINDING_WIDTH: Final = 2.0
# The number of bones whose shapes are cached between redraws.
_KEPT: Final = 512


def shown_bones(context: Context) -> list[PoseBone]:
    """The bones of the active armature whose limits are drawn in Pose mode: the active one, then the selected ones."""
    rig: Any = context.active_object
    active = active_bone(rig)
    bones = [] if active is None else [active]
    bones += [bone for bone in selected_bones(context, rig) if bone != active]
    return [bone for bone in bones if has_limit(bone)]


def shapes_of_bone(bone: PoseBone) -> list[Shape]:
    """The shapes of a bone's limit in world space; empty for a free bone or an invalid limit."""
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
    """The shapes of a limit, transformed to world space by its frame; cached, because most redraws show the same."""
    matrix = np.array(frame)
    turn, place = matrix[:3, :3].T, matrix[:3, 3]
    return [replace(shape, vertices=shape.vertices @ turn + place) for shape in shapes_of(limit, rotation, length)]


def carried_frame(bone: PoseBone) -> Matrix:
    """The frame of a bone's limit: its rest frame, moved by its parent, at the bone's head."""
    turn, parent = bone.bone.matrix_local.to_quaternion(), bone.parent
    if parent is not None and bone.bone.use_inherit_rotation:
        turn = parent.matrix.to_quaternion() @ parent.bone.matrix_local.to_quaternion().inverted() @ turn
    return Matrix.LocRotScale(bone.head, turn, None)


def gather(bones: Sequence[PoseBone], active: PoseBone | None) -> tuple[Drawing, Drawing]:
    """The drawings of ranges and of bones; the active bone and bones at their limits are highlighted."""
    shares = [
        (shape, 1.0 if bone == active or shape.binds else _BESIDE) for bone in bones for shape in shapes_of_bone(bone)
    ]
    ranges = [pair for pair in shares if pair[0].kind is not ShapeKind.MARKER]
    return _drawing(ranges), _drawing([pair for pair in shares if pair[0].kind is ShapeKind.MARKER])


def _drawing(shares: Sequence[tuple[Shape, float]]) -> Drawing:
    parts = list[Part]()
    for shape, share in shares:
        color = COLORS["binds"] if shape.binds else _WHITE if shape.kind is ShapeKind.MARKER else COLORS["free"]
        of_surface, of_lines, width = shape.kind.value
        if len(shape.triangles):
            parts.append(Part(0.0, shape.vertices, shape.triangles, (*color[:3], share * of_surface)))
        width += _BINDING_WIDTH if shape.binds else 0.0
        parts.append(Part(width, shape.vertices, shape.lines, (*color[:3], share * of_lines)))
    return joined(parts)


def draw_limits(context: Context) -> None:
    """Draw limits into the current viewport. Bones are in front of meshes, and ranges behind a mesh are faint."""
    if bones := shown_bones(context):
        ranges, markers = gather(bones, context.active_pose_bone)
        draw((ranges, "NONE", _THROUGH), (ranges, "LESS_EQUAL", 1.0 - _THROUGH), (markers, "NONE", 1.0))
