"""Joint limits: the allowed local rotations of a bone, one class for each kind; for one pose or for arrays.

A rotation q is relative to the bone's rest frame, whose Y points along the bone. q = swing · twist. The swing is the
shortest arc from Y to q·Y, the twist the remaining rotation about Y. A swing's chart point is (x, z) = θ · (dx, dz) /
√(dx² + dz²), the azimuthal equidistant projection, with θ the angle from Y and d = q·Y. The sides of limits as
inequalities are in `kernel.joint_limits`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import hypot, inf, pi, sin, tau
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .arrays import CLOSE, MAX_ROUNDS, ROUNDING, ROUNDS, SINGLE, FloatArray, lengths, squares
from .backend.array import Backend, Quaternion, Scalar, many
from .errors import LimitError, numbers, shown
from .rotations import IDENTITY, angle_between

Range = tuple[float, float]
# Radians: the sine of a larger angle has an error of more than 1e-10.
_WIDEST: Final = 1e6


class Limit(ABC):
    """The allowed local rotations of a bone.

    Attributes:
        rotation_axis: the only axis of rotation; None if all three are free.
        freedom: the number of degrees of freedom.
    """

    rotation_axis: tuple[float, float, float] | None = None
    freedom: int = 3

    @abstractmethod
    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """The rotation if it is inside, else the nearest one inside."""

    @abstractmethod
    def sample(self, unit_points: FloatArray) -> FloatArray:
        """(..., 4) valid rotations spread over the limit, from `unit_points` (..., 3) of the unit cube."""


@dataclass(frozen=True)
class Fixed(Limit):
    """No rotation is allowed."""

    freedom = 0

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """The identity."""
        return backend.select(rotation.w > inf, rotation, backend.quaternion_of((1.0, 0.0, 0.0, 0.0)))

    def sample(self, unit_points: FloatArray) -> FloatArray:
        """(..., 4) the identity for each point of `unit_points` (..., 3)."""
        return np.broadcast_to(IDENTITY, (*unit_points.shape[:-1], 4))


def check_range(what: str, ends: Range) -> None:
    """Raise LimitError, naming the range, if it is invalid."""
    angles = numbers(ends)
    if angles is None or angles.shape != (2,):
        raise LimitError(f"{what} is {shown(ends)}: give two angles, the lower one first")
    low, high = angles
    if not -_WIDEST <= low <= high <= _WIDEST:
        raise LimitError(f"{what} is from {low} to {high}: give two finite angles up to a million, the lower one first")


def spread(ends: Range, share: FloatArray) -> FloatArray:
    """(...) the values at each `share` (...) of a range, radians."""
    return np.asarray(ends[0] + (ends[1] - ends[0]) * share)


FULL_TURN = tau
# At 180°, the computed twist of a bone is only rounding errors. Clamped swings are slightly smaller, so that the twist
# is right to 1e-9.
MAX_SWING = pi - SINGLE
# The ends of a range of angles, infinite for a full turn or more, and the middle between them.
Between: TypeAlias = tuple[float, float, float]


class Swing(NamedTuple):
    """A swing: the angle from Y, the unit azimuth (ex, ez), and their product, the chart point (x, z)."""

    angle: Scalar
    ex: Scalar
    ez: Scalar
    x: Scalar
    z: Scalar


def swing_of(backend: Backend, rotation: Quaternion) -> Swing:
    """The swing of a unit quaternion, exact up to 180°. There, its azimuth is that of the rotation without twist."""
    w, x, y, z = rotation.w, rotation.x, rotation.y, rotation.z
    upright, leaning = backend.sqrt(w * w + y * y), backend.sqrt(x * x + z * z)
    if backend.any_of(backend.minimum(upright, leaning) <= ROUNDING):
        scale = 1.0 / backend.maximum(upright, ROUNDING)
        clear = upright > ROUNDING
        cosine, sine = backend.select(clear, w * scale, 1.0), backend.select(clear, y * scale, 0.0)
        size = 1.0 / backend.maximum(leaning, ROUNDING)
        ex = backend.select(leaning > ROUNDING, (x * sine - z * cosine) * size, 1.0)
        ez = backend.select(leaning > ROUNDING, (x * cosine + z * sine) * size, 0.0)
    else:
        size = 1.0 / (upright * leaning)
        ex, ez = (x * y - z * w) * size, (x * w + z * y) * size
    angle = 2.0 * backend.atan2(leaning, upright)
    return Swing(angle, ex, ez, angle * ex, angle * ez)


def below_half_turn(backend: Backend, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
    """A point of the chart, moved into the circle of swings below 180°, in which the twist is defined."""
    angle = backend.sqrt(x * x + z * z)
    share = backend.select(angle > MAX_SWING, MAX_SWING / backend.maximum(angle, 1.0), 1.0)
    return x * share, z * share


def twist_of(backend: Backend, rotation: Quaternion, middle: Scalar) -> Scalar:
    """The twist in radians, as the angle nearest to `middle`."""
    return nearest_angle(backend, 2.0 * backend.atan2(rotation.y, rotation.w), middle)


def nearest_angle(backend: Backend, angle: Scalar, middle: Scalar) -> Scalar:
    """The same angle plus full turns, nearest to `middle`; so 181° does not become -179°."""
    return angle - FULL_TURN * backend.floor((angle - middle) / FULL_TURN + 0.5)


def compose(backend: Backend, x: Scalar, z: Scalar, twist: Scalar) -> Quaternion:
    """The rotation with a given swing and twist."""
    zero = x * 0.0
    swing = backend.exp_map(backend.vector_of((z, zero, -x)))
    return swing @ backend.exp_map(backend.vector_of((zero, twist, zero)))


def compose_arrays(x: FloatArray, z: FloatArray, twist: FloatArray) -> FloatArray:
    """(..., 4) rotations with swings x, z and twists (...), radians."""
    half = np.hypot(x, z) / 2.0
    scale = np.sinc(half / pi) / 2.0
    c, s = np.cos(twist / 2.0), np.sin(twist / 2.0)
    w, sx, sz = np.cos(half), z * scale, -x * scale
    return np.stack([w * c, sx * c - sz * s, w * s, sz * c + sx * s], axis=-1)


def between(ends: Range) -> Between:
    """The ends of a range of angles, and its middle."""
    low, high = ends if ends[1] - ends[0] < FULL_TURN else (-inf, inf)
    return low, high, 0.5 * (ends[0] + ends[1])


class SwingTwist(Limit):
    """A limit of the swing, and a range of twist.

    Attributes:
        twist: (min, max) about Y, radians; a range of 2π or more is free.
        surely_inside: if x² + z² of a rotation's quaternion is below this, its swing is inside.
    """

    twist: Range
    surely_inside: float = -1.0

    @abstractmethod
    def nearest(self, backend: Backend, x: Scalar, z: Scalar, /) -> tuple[Scalar, Scalar]:
        """The swing itself if it is inside, else the nearest one inside."""

    @abstractmethod
    def swings(self, unit_points: FloatArray) -> FloatArray:
        """(..., 2) swings spread over the limit, from `unit_points` (..., 2) of the unit square."""

    @cached_property
    def between(self) -> Between:
        """The ends of the range of twist, and the middle between them, in radians."""
        return between(self.twist)

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """Move the swing to the nearest one inside, and the twist to the nearer end of its range.

        The swing is not computed if all rotations are surely inside.
        """
        low, high, middle = self.between
        turn = twist_of(backend, rotation, middle)
        bounded = backend.clamp(turn, low, high)
        leaning = rotation.x**2 + rotation.z**2
        if not backend.any_of((leaning > self.surely_inside) | (turn != bounded)):
            return rotation
        lean = swing_of(backend, rotation)
        x, z = below_half_turn(backend, *self.nearest(backend, lean.x, lean.z))
        outside = (x != lean.x) | (z != lean.z) | (turn != bounded)
        moved = backend.frames_where(outside)
        if not len(moved):
            return rotation
        inside = compose(backend, *(backend.take(value, moved) for value in (x, z, bounded)))
        return backend.put(rotation, moved, inside, np.size(outside))

    def sample(self, unit_points: FloatArray) -> FloatArray:
        """(..., 4) swings spread over the limit, and twists over the range, from `unit_points` (..., 3)."""
        x, z = np.moveaxis(self.swings(unit_points[..., :2]), -1, 0)
        return compose_arrays(x, z, spread(self.twist, unit_points[..., 2]))


@dataclass(frozen=True)
class Ball(SwingTwist):
    """A swing limit and a range of twist.

    Args:
        cone: the largest swing of local Y, 0…π radians: one angle, or four toward (+X, +Z, -X, -Z) with ellipses
            between them.
        twist: (min, max) about Y, radians; a range of 2π or more is free.

    Raises:
        LimitError: naming the invalid value.
    """

    cone: float | Sequence[float] = pi
    twist: Range = (-pi, pi)

    def __post_init__(self) -> None:
        cone = numbers(self.cone)
        usable = cone is not None and cone.shape in {(), (1,), (4,)}
        if not (usable and all(0.0 <= angle <= pi + ROUNDING for angle in self.angles)):
            raise LimitError(f"A ball's cone is {shown(self.cone)}: give one angle or four, each from 0 to 180° (pi)")
        check_range("A ball's twist", self.twist)

    @cached_property
    def angles(self) -> tuple[float, ...]:
        """The four largest swings toward (+X, +Z, -X, -Z), radians."""
        cone = np.atleast_1d(np.asarray(self.cone, dtype=float))
        return tuple(np.repeat(cone, 4).tolist() if len(cone) == 1 else cone.tolist())

    @cached_property
    def surely_inside(self) -> float:  # type: ignore[override]
        """If x² + z² of a rotation's quaternion is below this, its swing is inside, despite single precision."""
        least = min(self.angles)
        return inf if least >= pi else sin(0.5 * least) ** 2 * (1.0 - SINGLE)

    def nearest(self, backend: Backend, x: Scalar, z: Scalar, /) -> tuple[Scalar, Scalar]:
        """The swing itself if it is inside the ellipse, else the nearest point on it."""
        right, front, left, back = self.angles
        half_axes = backend.select(x >= 0, right, left), backend.select(z >= 0, front, back)
        return nearest_on_ellipse(backend, x, z, *half_axes)

    def swings(self, unit_points: FloatArray) -> FloatArray:
        """(..., 2) swings spread evenly over the ellipse, from `unit_points` (..., 2)."""
        edge = outline(self.angles, FULL_TURN * unit_points[..., 0])
        return np.asarray(edge * np.sqrt(unit_points[..., 1, None]))

    def outline(self, count: int) -> FloatArray:
        """(count, 2) swings in radians along the edge of the cone, from +X toward +Z."""
        return outline(self.angles, np.arange(count) * (FULL_TURN / count))


def outline(angles: npt.ArrayLike, azimuth: FloatArray) -> FloatArray:
    """(..., 2) swings (x, z) on the edge of a cone at azimuths (...) from +X toward +Z, radians.

    angles: (4,) half-axes toward +X, +Z, -X, -Z, radians.
    """
    right, front, left, back = np.asarray(angles)
    x, z = np.cos(azimuth), np.sin(azimuth)
    return np.stack([x * np.where(x >= 0.0, right, left), z * np.where(z >= 0.0, front, back)], axis=-1)


def nearest_on_ellipse(backend: Backend, x: Scalar, z: Scalar, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The point itself if it is inside the ellipse with half-axes a and b, else the nearest point on it.

    A half-axis of zero allows only the other axis.
    """
    outside = (x / backend.maximum(a, ROUNDING)) ** 2 + (z / backend.maximum(b, ROUNDING)) ** 2 > 1.0 + ROUNDING
    if not backend.any_of(outside):
        return x, z
    frames, count = backend.frames_where(outside), np.size(outside)
    far_x, far_z, a, b = (backend.take(value, frames) for value in (x, z, a, b))
    t = ellipse_root(backend, far_x, far_z, a, b)
    near_x, near_z = (
        axis * axis * far / backend.maximum(t + axis * axis, ROUNDING) for far, axis in ((far_x, a), (far_z, b))
    )
    return backend.put(x, frames, near_x, count), backend.put(z, frames, near_z, count)


def ellipse_root(backend: Backend, x: Scalar, z: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """The t for which (a² x / (t + a²), b² z / (t + b²)) is the point of an ellipse nearest to (x, z).

    The paper's Newton iteration (section 4.3) for the root t of (a x / (t + a²))² + (b z / (t + b²))² = 1, which is
    below zero inside. It is applied to one over the square root of the left side, which increases nearly linearly and
    is concave (Conn, Gould and Toint, *Trust-Region Methods*, 2000, lemma 7.3.1). So few steps are needed, and steps
    that start below the root stay below it, even on the axes and if a half-axis is zero.
    """
    aa, bb, ax, bz = a * a, b * b, a * backend.absolute(x), b * backend.absolute(z)
    t = backend.maximum(ax - aa, bz - bb)
    for _ in range(ROUNDS):
        across, along = backend.maximum(t + aa, ROUNDING), backend.maximum(t + bb, ROUNDING)
        pp, qq = (ax / across) ** 2, (bz / along) ** 2
        excess = backend.sqrt(pp + qq) - 1.0
        t = t + backend.maximum(excess, 0.0) * (pp + qq) / backend.maximum(pp / across + qq / along, ROUNDING)
        # Newton's method converges quadratically: the last step has left about the square of this error.
        if not backend.any_of(excess > SINGLE):
            break
    return t


@dataclass(frozen=True)
class Hinge(Limit):
    """Rotates about one local axis only.

    Args:
        axis: "X", "Y" (a pivot) or "Z", right-handed.
        low, high: the range in radians; it need not contain rest. A range of 2π or more is free.

    Raises:
        LimitError: naming the invalid axis or range.
    """

    axis: Literal["X", "Y", "Z"] = "X"
    low: float = -pi
    high: float = pi

    def __post_init__(self) -> None:
        if not isinstance(self.axis, str) or self.axis not in {"X", "Y", "Z"}:
            raise LimitError(f"A hinge's axis is {shown(self.axis)}: it must be 'X', 'Y' or 'Z'")
        check_range("A hinge's range", (self.low, self.high))

    freedom = 1

    @cached_property
    def rotation_axis(self) -> tuple[float, float, float]:  # type: ignore[override]
        """The unit vector of the axis."""
        return float(self.axis == "X"), float(self.axis == "Y"), float(self.axis == "Z")

    @property
    def bounded(self) -> bool:
        """Whether the range has ends."""
        return self.high - self.low < FULL_TURN

    @cached_property
    def between(self) -> Between:
        """The ends of the range, and the middle between them, in radians."""
        return between((self.low, self.high))

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return self.between[2]

    def angle(self, backend: Backend, rotation: Quaternion) -> Scalar:
        """The angle of a rotation about the axis, in radians, plus full turns to bring it nearest to the middle."""
        x, y, z = self.rotation_axis
        about = rotation.x * x + rotation.y * y + rotation.z * z
        return nearest_angle(backend, 2.0 * backend.atan2(about, rotation.w), self.middle)

    def turned(self, backend: Backend, angle: Scalar) -> Quaternion:
        """The rotation by an angle about the axis."""
        x, y, z = self.rotation_axis
        return backend.exp_map(backend.vector_of((angle * x, angle * y, angle * z)))

    def at_range_share(self, backend: Backend, share: Scalar) -> Quaternion:
        """The rotation at a fraction of the range; if the range is free, from -π to π."""
        low, high = (self.low, self.high) if self.bounded else (-pi, pi)
        return self.turned(backend, low + (high - low) * share)

    def bent_inward(self, backend: Backend, rotation: Quaternion, max_angle: Scalar) -> Quaternion:
        """The rotation, bent toward the middle of the range by at most `max_angle` radians."""
        angle = self.angle(backend, rotation)
        return self.turned(backend, angle + backend.clamp(self.middle - angle, -max_angle, max_angle))

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """The component about the axis, clamped to the range."""
        return self.turned(backend, backend.clamp(self.angle(backend, rotation), *self.between[:2]))

    def sample(self, unit_points: FloatArray) -> FloatArray:
        """(..., 4) rotations spread over the range, from the first of the coordinates of `unit_points` (..., 3)."""
        half = 0.5 * spread((self.low, self.high), unit_points[..., 0])
        return np.stack([np.cos(half), *(np.sin(half) * part for part in self.rotation_axis)], axis=-1)


Point = tuple[float, float]


class _Edges(NamedTuple):
    """The N edges of an outline.

    Attributes:
        starts: (N, 2) first corners.
        along: (N, 2) vectors to the other corners.
        normals: (N, 2) outward unit normals.
        low, high: (N,) the fractions of an edge's length between which points face it: a little beyond a convex corner,
            not quite up to a concave one.
    """

    starts: FloatArray
    along: FloatArray
    normals: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Polygon(SwingTwist):
    """An outline of swings and a range of twist.

    Args:
        window: a simple closed outline of three or more (X, Z) swings in radians, in either winding; it need not
            contain rest.
        twist: (min, max) about Y, radians; a range of 2π or more is free.

    Raises:
        LimitError: naming the problem with outline or twist.
    """

    window: Sequence[tuple[float, float]]
    twist: Range = (-pi, pi)

    def __post_init__(self) -> None:
        check_range("A polygon's twist", self.twist)
        _ = self._edges

    @cached_property
    def points(self) -> list[Point]:
        """The checked corners of the outline: swings (x, z) in radians."""
        corners = numbers(self.window)
        if corners is None or (corners.shape != (0,) and corners.shape[1:] != (2,)):
            raise LimitError(f"A polygon limit's outline is {shown(self.window)}: give points of two angles")
        points = [(x, z) for x, z in corners.tolist()]
        if len(points) < 3:
            raise LimitError(f"A polygon limit has {len(points)} points: give at least three")
        if not all(hypot(*point) <= pi + ROUNDING for point in points):
            raise LimitError("A polygon limit has a point that is not a swing: each must be within 180° (pi) of rest")
        return points

    @cached_property
    def _edges(self) -> _Edges:
        starts = np.array(self.points)
        count, ends = len(starts), np.roll(starts, -1, axis=0)
        along = ends - starts
        size = np.hypot(*along.T)
        # (N, N) the side of an edge on which a corner is: positive on its left.
        away = starts - starts[:, None]
        left = along[:, None, 0] * away[..., 1] - along[:, None, 1] * away[..., 0]
        spans = left * np.roll(left, -1, axis=1) <= 0.0
        number = np.arange(count)
        are_neighbors = np.isin((number[:, None] - number) % count, (0, 1, count - 1))
        if (size <= ROUNDING).any() or (spans & spans.T & ~are_neighbors).any():
            raise LimitError("A polygon limit has edges that touch or cross: its outline must be simple")
        area = 0.5 * (starts[:, 0] * ends[:, 1] - ends[:, 0] * starts[:, 1]).sum()
        if abs(area) < ROUNDING:
            raise LimitError("A polygon limit has no area: its points must not be on one line")
        outward = np.sign(area)
        # The corner at the end of an edge is convex if the outline turns there in the same direction as in total.
        beyond = np.where(outward * left[number, (number + 2) % count] > 0.0, CLOSE, -CLOSE)
        normals = outward * np.stack([along[:, 1], -along[:, 0]], axis=1) / size[:, None]
        return _Edges(starts, along, normals, -np.roll(beyond, 1) / size, 1.0 + beyond / size)

    def swings(self, unit_points: FloatArray) -> FloatArray:
        """(..., 2) swings from `unit_points` (..., 2), mapped to the bounding box; those outside are moved onto it."""
        low, high = np.min(self.points, axis=0), np.max(self.points, axis=0)
        return np.stack(self.nearest(many, *np.moveaxis(low + unit_points * (high - low), -1, 0)), axis=-1)

    def outline(self, count: int) -> FloatArray:
        """(N, 2) swings in radians along the outline's edges, the same number on each, at least `count` in all."""
        corners = np.array(self.points)
        share = np.linspace(0.0, 1.0, -(-count // len(corners)), endpoint=False)[:, None]
        edges = corners[:, None] + share * (np.roll(corners, -1, axis=0) - corners)[:, None]
        return np.asarray(edges.reshape(-1, 2))

    def nearest(self, _backend: Backend, x: Scalar, z: Scalar, /) -> tuple[Scalar, Scalar]:
        """The swing itself if it is inside, else the nearest point on the outline."""
        starts, along, *_ = self._edges
        swing = np.stack([x, z], axis=-1)
        away = swing[..., None, :] - starts
        # It is inside if a ray to the right crosses the outline an odd number of times.
        above = swing[..., 1:] < starts[:, 1]
        rise = np.where(along[:, 1] == 0.0, 1.0, along[:, 1])
        crosses = (above != np.roll(above, -1, axis=-1)) & (away[..., 0] < away[..., 1] / rise * along[:, 0])
        share = np.clip((away * along).sum(axis=-1) / squares(along), 0.0, 1.0)[..., None]
        best = squares(away - share * along).argmin(axis=-1)[..., None, None]
        point = np.take_along_axis(starts + share * along, best, axis=-2)[..., 0, :]
        inside = np.where(crosses.sum(axis=-1, keepdims=True) % 2 == 1, swing, point)
        return inside[..., 0], inside[..., 1]

    def nearest_sides(self, swings: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F, 2, 2) outward unit normals of the two edges nearest to swings (F, 2) inside, and (F, 2) distances.

        The second edge matters at a convex corner. At a concave corner a step crosses only one of the edges, so the
        second does not count there; its distance is infinite.
        """
        starts, along, normals, low, high = self._edges
        away = swings[:, None] - starts
        share = (away * along).sum(axis=-1) / squares(along)
        # A point slightly beyond a convex corner still faces the edge. Use its distance from the edge's line, which
        # changes along the normal; the distance from the corner does not.
        held = np.clip(share, np.minimum(low, 0.0), np.maximum(high, 1.0))
        distances = lengths(away - held[..., None] * along)
        frames, first = np.arange(len(swings)), distances.argmin(axis=1)
        others = np.where((share >= low) & (share <= high), distances, np.inf)
        others[frames, first] = np.inf
        second = others.argmin(axis=1)
        gaps = np.stack([distances[frames, first], others[frames, second]], axis=1)
        return normals[np.stack([first, second], axis=1)], gaps


_ALL_ROUND: Final = (-pi, pi)
_AXES: Final = ("X", "Y", "Z")


def legal_rotations(limit: Limit, rotations: npt.ArrayLike) -> FloatArray:
    """(F, 4) rotations within a limit nearest to `rotations` (F, 4), w x y z; rotations inside don't change."""
    given = np.asarray(rotations, dtype=np.float64)
    if not len(given):
        return given
    clamped = many.stack([limit.clamp(many, many.quaternion(given))], len(given))[:, 0]
    return np.where((angle_between(given, clamped) > SINGLE)[:, None], clamped, given)


def excess(limit: Limit, rotations: FloatArray) -> FloatArray:
    """(F,) radians by which rotations (F, 4) are outside a limit."""
    return angle_between(rotations, legal_rotations(limit, rotations))


# The number of an outline's corners; few, because they are edited by hand.
_CORNERS: Final = 12
# Radians. The margin is at least this, so that swings on a line, or all at one point, get an outline with an area.
_LEAST_MARGIN: Final = 1e-3


def window_around(swings: FloatArray, margin: float) -> FloatArray:
    """(C, 2) corners of an outline that contains (F, 2) swings and a margin around them, counterclockwise.

    Each edge touches the swings with their margin. The edges are parallel to those of a regular polygon that is
    stretched as the swings are. If a corner would be more than 180° from rest, the outline is the widest one possible.
    """
    margin = max(margin, _LEAST_MARGIN)
    azimuths = FULL_TURN * np.arange(_CORNERS) / _CORNERS
    circle = np.stack([np.cos(azimuths), np.sin(azimuths)], axis=1)
    # The directions in which the swings vary most and least.
    axes = np.linalg.eigh(np.cov(swings.T, bias=True))[1].T
    axes[1] *= np.linalg.det(axes)
    normals = circle / (np.ptp(swings @ axes.T, axis=0) + 2.0 * margin) @ axes
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    reach = (normals @ swings.T).max(axis=1) + margin
    lines, ends = (np.stack([each, np.roll(each, -1, axis=0)], axis=1) for each in (normals, reach))
    corners = np.linalg.solve(lines, ends[..., None])[..., 0]
    return corners if np.linalg.norm(corners, axis=1).max() <= pi else pi * circle


def fitted_limit(
    rotations: FloatArray, margin: float = 0.0, hinge_tolerance: float = 0.0, shape: str = "FITTED"
) -> Limit:
    """The limit that contains successive rotations (F, 4), widened by a margin."""
    if angle_between(rotations, IDENTITY).max() < CLOSE:
        return Fixed()
    quaternions = many.quaternion(rotations)
    off_axis = {axis: float(excess(Hinge(axis), rotations).max()) for axis in _AXES}
    axis: Any = min(_AXES, key=off_axis.__getitem__)
    if shape == "FITTED" and off_axis[axis] <= hinge_tolerance + CLOSE:
        return Hinge(axis, *_range(np.asarray(Hinge(axis).angle(many, quaternions)), margin))
    swing = swing_of(many, quaternions)
    swings = np.stack([swing.x, swing.z], axis=-1).reshape(-1, 2)
    twist = _range(np.asarray(twist_of(many, quaternions, 0.0)), margin)
    if shape == "FITTED":
        half_axes = _half_axes(np.concatenate([swings, -swings], axis=1).T)
        return Ball(tuple(np.minimum(half_axes + margin, pi).tolist()), twist)
    corners = window_around(swings, margin)
    return Polygon(tuple((x, z) for x, z in corners.tolist()), twist)


def _range(angles: FloatArray, margin: float) -> Range:
    """The range of successive angles (F,), in radians, widened by a margin. Angles may continue beyond 180°."""
    counted = np.unwrap(angles)
    low, high = float(counted.min()) - margin, float(counted.max()) + margin
    if high - low >= FULL_TURN:
        return _ALL_ROUND
    whole_turns = FULL_TURN * round((low + high) / (2.0 * FULL_TURN))
    return low - whole_turns, high - whole_turns


def _half_axes(swings: FloatArray) -> FloatArray:
    """(4,) half-axes of the four quarter ellipses that contain swings (4, F), with a small sum.

    With u = 1 / half-axis², squares · u <= 1 must hold for each swing. Each swing has a weight that grows while it is
    outside; the sum is smallest at u = (2 · weights · squares) to the power of -2/3.
    """
    every = np.square(np.maximum(swings.T, 0.0))
    farthest = every.max(axis=0)
    used = farthest > CLOSE**2
    squares = every[:, used]
    inverse = 1.0 / farthest[used]
    weights = np.full(len(squares), 1.0 / len(squares))
    for _ in range(MAX_ROUNDS if (squares @ inverse).max(initial=0.0) > 1.0 + CLOSE else 0):
        inverse = (2.0 * weights @ squares) ** (-2.0 / 3.0)
        weights *= squares @ inverse
    half_axes = np.zeros(4)
    half_axes[used] = np.sqrt((squares @ inverse).max(initial=1.0) / inverse)
    # Limit the half-axes to 180°, while all swings stay inside.
    while (half_axes > pi).any():
        cut = half_axes >= pi
        half_axes = np.minimum(half_axes, pi)
        room = np.maximum(1.0 - every[:, cut].sum(axis=1) / pi**2, ROUNDING)
        load = every[:, ~cut] @ np.maximum(half_axes[~cut], ROUNDING) ** -2.0
        half_axes[~cut] *= np.sqrt((load / room).max(initial=1.0))
    return half_axes
