"""Joint limits: one small class for each kind, behind one interface, on either number system.

A limit speaks of a bone's local rotation, relative to its rest frame whose Y runs along the bone.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, pi, sin
from types import ModuleType
from typing import Literal, NamedTuple

import numpy as np

from ..arrays import FloatArray, Quaternion, Scalar, Vector
from ..errors import LimitError
from . import ellipse
from .outline import Window
from .swing_twist import Lean, compose, compose_arrays, lean_of, nearest_angle, turn_twisting, twist_of

_FULL_TURN = 2.0 * pi
_ROUNDING = 1e-9
# What of a bound is sure with quaternions in single precision.
_SURE = 1.0 - 1e-6

Range = tuple[float, float]


class Wall(NamedTuple):
    """One side of a limit.

    Attributes:
        normal: in the frame that carries the bone; turning by a small ω comes normal · ω radians nearer to the wall.
        slack: radians to the wall; zero on it.
    """

    normal: Vector
    slack: Scalar


class Limit(ABC):
    """What a bone's local rotation may be.

    Attributes:
        turn_axis: the one axis that turns are about; None where all three are open.
        freedom: in how many ways the joint can turn.
    """

    turn_axis: tuple[float, float, float] | None = None
    freedom: int = 3

    @abstractmethod
    def clamp(self, numbers: ModuleType, rotation: Quaternion) -> Quaternion:
        """The rotation where it is inside, else the nearest one inside."""

    @abstractmethod
    def walls(self, numbers: ModuleType, rotation: Quaternion, within: float = inf) -> list[Wall]:
        """The sides of the limit, as seen from a rotation inside: those that are no farther on some frame."""

    @abstractmethod
    def sample(self, places: FloatArray) -> FloatArray:
        """(..., 4) rotations inside, spread over the limit, for places (..., 3) in the unit cube."""


@dataclass(frozen=True)
class Ball(Limit):
    """A cone of leans and a range of twist.

    Args:
        cone: how far local Y may lean, 0…π: one angle, or four toward (+X, +Z, -X, -Z), between them the ellipse.
        twist: (low, high) about Y; a range of 2π or more is free.

    Raises:
        LimitError: naming the value that makes no sense.
    """

    cone: float | Sequence[float] = pi
    twist: Range = (-pi, pi)

    def __post_init__(self) -> None:
        usable = self.cone is not None and np.shape(self.cone) in {(), (1,), (4,)}
        if not usable or not all(0.0 <= angle <= pi + _ROUNDING for angle in self.angles):
            cone = " ".join(str(self.cone).split())
            raise LimitError(f"A ball's cone is {cone}: one angle or four are needed, each from 0 to pi.")
        _check_range("A ball's twist", self.twist)

    @cached_property
    def angles(self) -> tuple[float, ...]:
        """The four leans toward (+X, +Z, -X, -Z)."""
        cone = np.atleast_1d(np.asarray(self.cone, dtype=float))
        return tuple(np.repeat(cone, 4).tolist() if len(cone) == 1 else cone.tolist())

    def clamp(self, numbers: ModuleType, rotation: Quaternion) -> Quaternion:
        """Lean to the nearest point of the ellipse, twist to the nearer end of its range."""
        return _clamped(numbers, rotation, self._nearest, self.twist, self._surely_inside)

    @cached_property
    def _surely_inside(self) -> float:
        """Whatever leans less is inside the ellipse: x² + z² of its rotation."""
        return sin(0.5 * min(self.angles)) ** 2 * _SURE

    def _nearest(self, numbers: ModuleType, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
        return ellipse.nearest_on_ellipse(numbers, x, z, *self._half_axes(numbers, x, z))

    def _half_axes(self, numbers: ModuleType, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
        right, front, left, back = self.angles
        return numbers.select(x >= 0, right, left), numbers.select(z >= 0, front, back)

    def walls(self, numbers: ModuleType, rotation: Quaternion, within: float = inf) -> list[Wall]:
        """The ellipse, the axes on which nothing is open, the ends of the twist."""
        lean = lean_of(numbers, rotation)
        walls = _twist_walls(numbers, rotation, lean, self.twist, within)
        if min(self.angles) >= pi:
            return walls
        (nx, nz), slack = ellipse.wall(numbers, lean.x, lean.z, *self._half_axes(numbers, lean.x, lean.z))
        if numbers.any_of(slack <= within):
            walls.append(Wall(lean.turn_toward(numbers, nx, nz), slack))
        for angle, (sx, sz) in zip(self.angles, ((1, 0), (0, 1), (-1, 0), (0, -1)), strict=True):
            if angle == 0.0:
                walls.append(Wall(lean.turn_toward(numbers, sx, sz), -(sx * lean.x + sz * lean.z)))
        return walls

    def sample(self, places: FloatArray) -> FloatArray:
        """Leans spread evenly over the ellipse, twists over the range."""
        leans = ellipse.outline(self.angles, _FULL_TURN * places[..., 0]) * np.sqrt(places[..., 1, None])
        return compose_arrays(leans[..., 0], leans[..., 1], _spread(self.twist, places[..., 2]))

    def outline(self, count: int) -> FloatArray:
        """(count, 2) leans along the edge of the cone, from +X toward +Z."""
        return ellipse.outline(self.angles, np.arange(count) * (_FULL_TURN / count))


@dataclass(frozen=True)
class Polygon(Limit):
    """A window of leans and a range of twist.

    Args:
        window: a simple closed outline of three or more (X, Z) leans in radians, either winding, rest inside or not.
        twist: (low, high) about Y; a range of 2π or more is free.

    Raises:
        LimitError: naming what is wrong with the window or the twist.
    """

    window: Sequence[tuple[float, float]]
    twist: Range = (-pi, pi)

    def __post_init__(self) -> None:
        _check_range("A polygon's twist", self.twist)
        _ = self.shape

    @cached_property
    def shape(self) -> Window:
        """The window, checked and ready to be asked."""
        return Window(self.window)

    def clamp(self, numbers: ModuleType, rotation: Quaternion) -> Quaternion:
        """Lean to the nearest point of the window, twist to the nearer end of its range."""
        return _clamped(numbers, rotation, self.shape.nearest, self.twist)

    def walls(self, numbers: ModuleType, rotation: Quaternion, within: float = inf) -> list[Wall]:
        """The two nearest edges, the ends of the twist."""
        lean = lean_of(numbers, rotation)
        walls = _twist_walls(numbers, rotation, lean, self.twist, within)
        for (nx, nz), slack in self.shape.walls(numbers, lean.x, lean.z):
            if not numbers.any_of(slack <= within):
                continue
            walls.append(Wall(lean.turn_toward(numbers, nx, nz), slack))
        return walls

    def sample(self, places: FloatArray) -> FloatArray:
        """Leans spread over the window, twists over the range."""
        x, z = self.shape.sample(places[..., 0], places[..., 1])
        return compose_arrays(x, z, _spread(self.twist, places[..., 2]))

    def outline(self, count: int) -> FloatArray:
        """(N, 2) leans along the window's edges, as many on each, at least `count` in all."""
        corners = np.array(self.shape.points)
        share = np.linspace(0.0, 1.0, -(-count // len(corners)), endpoint=False)[:, None]
        edges = corners[:, None] + share * (np.roll(corners, -1, axis=0) - corners)[:, None]
        return np.asarray(edges.reshape(-1, 2))


@dataclass(frozen=True)
class Hinge(Limit):
    """Turns about one local axis only.

    Args:
        axis: "X", "Y" (a pivot) or "Z", right-handed.
        low, high: the range in radians, rest inside or not; a range of 2π or more is free.

    Raises:
        LimitError: naming the axis or the range that makes no sense.
    """

    axis: Literal["X", "Y", "Z"] = "X"
    low: float = -pi
    high: float = pi

    def __post_init__(self) -> None:
        if self.axis not in {"X", "Y", "Z"}:
            raise LimitError(f"A hinge's axis is {self.axis!r}: it must be 'X', 'Y' or 'Z'.")
        _check_range("A hinge's range", (self.low, self.high))

    freedom = 1

    @cached_property
    def turn_axis(self) -> tuple[float, float, float]:  # type: ignore[override]
        """The unit axis."""
        return float(self.axis == "X"), float(self.axis == "Y"), float(self.axis == "Z")

    @property
    def bounded(self) -> bool:
        """Whether the range has ends."""
        return self.high - self.low < _FULL_TURN

    def angle(self, numbers: ModuleType, rotation: Quaternion) -> Scalar:
        """The turn about the axis that comes nearest to a rotation, on the side of the range's middle."""
        about = getattr(rotation, self.axis.lower())
        return nearest_angle(numbers, 2.0 * numbers.atan2(about, rotation.w), 0.5 * (self.low + self.high))

    def turned(self, numbers: ModuleType, angle: Scalar) -> Quaternion:
        """The rotation by an angle about the axis."""
        x, y, z = self.turn_axis
        return numbers.exp_map(numbers.Vector((angle * x, angle * y, angle * z)))

    def clamp(self, numbers: ModuleType, rotation: Quaternion) -> Quaternion:
        """The turn about the axis alone, to the nearer end of the range."""
        angle = self.angle(numbers, rotation)
        return self.turned(numbers, numbers.clamp(angle, self.low, self.high) if self.bounded else angle)

    def walls(self, numbers: ModuleType, rotation: Quaternion, within: float = inf) -> list[Wall]:
        """The two ends of the range."""
        if not self.bounded:
            return []
        angle = self.angle(numbers, rotation)
        ends = (1.0, self.high - angle), (-1.0, angle - self.low)
        x, y, z = self.turn_axis
        return [
            Wall(numbers.Vector((side * x, side * y, side * z)), slack)
            for side, slack in ends
            if numbers.any_of(slack <= within)
        ]

    def sample(self, places: FloatArray) -> FloatArray:
        """Angles spread over the range."""
        half = 0.5 * _spread((self.low, self.high), places[..., 0])
        return np.stack([np.cos(half), *(np.sin(half) * part for part in self.turn_axis)], axis=-1)


@dataclass(frozen=True)
class Fixed(Limit):
    """Does not turn."""

    freedom = 0

    def clamp(self, numbers: ModuleType, rotation: Quaternion) -> Quaternion:
        """No rotation."""
        return numbers.select(rotation.w > inf, rotation, numbers.Quaternion((1.0, 0.0, 0.0, 0.0)))

    def walls(self, numbers: ModuleType, rotation: Quaternion, within: float = inf) -> list[Wall]:  # noqa: ARG002
        """None: there is no way to turn in the first place."""
        return []

    def sample(self, places: FloatArray) -> FloatArray:
        """No rotation."""
        return np.broadcast_to(np.array([1.0, 0.0, 0.0, 0.0]), (*places.shape[:-1], 4))


def _check_range(what: str, ends: Range) -> None:
    if np.shape(ends) != (2,):
        raise LimitError(f"{what} is {ends!r}: two angles are needed, the lower one first.")
    low, high = ends
    if not (isfinite(low) and isfinite(high) and low <= high):
        raise LimitError(f"{what} is from {low} to {high}: two finite angles are needed, the lower one first.")


def _spread(ends: Range, share: FloatArray) -> FloatArray:
    return np.asarray(ends[0] + (ends[1] - ends[0]) * share)


def _clamped(
    numbers: ModuleType,
    rotation: Quaternion,
    nearest: Callable[[ModuleType, Scalar, Scalar], tuple[Scalar, Scalar]],
    twist: Range,
    surely_inside: float = -1.0,
) -> Quaternion:
    """The rotation where lean and twist are inside, else the one with the nearest lean and the nearest twist.

    A lean need not be worked out where x² + z² of all rotations is less than `surely_inside`.
    """
    turn = twist_of(numbers, rotation, 0.5 * (twist[0] + twist[1]))
    bounded = turn if twist[1] - twist[0] >= _FULL_TURN else numbers.clamp(turn, *twist)
    leaning = numbers.square(rotation.x) + numbers.square(rotation.z)
    if not numbers.any_of(numbers.logical_or(leaning > surely_inside, turn != bounded)):
        return rotation
    lean = lean_of(numbers, rotation)
    x, z = nearest(numbers, lean.x, lean.z)
    kept = numbers.logical_and(numbers.logical_and(x == lean.x, z == lean.z), turn == bounded)
    moved = numbers.frames_where(numbers.logical_not(kept))
    if not len(moved):
        return rotation
    inside = compose(numbers, *(numbers.take(value, moved) for value in (x, z, bounded)))
    return numbers.replaced(rotation, moved, inside, numbers.count(kept))


def _twist_walls(numbers: ModuleType, rotation: Quaternion, lean: Lean, twist: Range, within: float) -> list[Wall]:
    if twist[1] - twist[0] >= _FULL_TURN:
        return []
    turn = twist_of(numbers, rotation, 0.5 * (twist[0] + twist[1]))
    ends = (1.0, twist[1] - turn), (-1.0, turn - twist[0])
    near = [end for end in ends if numbers.any_of(end[1] <= within)]
    if not near:
        return []
    along = turn_twisting(numbers, lean)
    return [Wall(along * side, slack) for side, slack in near]
