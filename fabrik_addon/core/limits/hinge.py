"""A hinge: turns about one local axis, within a range."""

from dataclasses import dataclass
from functools import cached_property
from math import inf, pi
from typing import Literal

import numpy as np

from ..arrays import FloatArray
from ..backend.numbers import Numbers, Quaternion, Scalar
from ..errors import LimitError
from .base import Bounds, Limit, Wall, check_range, spread
from .swing_twist import FULL_TURN, nearest_angle


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
            raise LimitError(f"A hinge's axis is {self.axis!r}: it must be 'X', 'Y' or 'Z'")
        check_range("A hinge's range", (self.low, self.high))

    freedom = 1

    @cached_property
    def turn_axis(self) -> tuple[float, float, float]:  # type: ignore[override]
        """The unit axis."""
        return float(self.axis == "X"), float(self.axis == "Y"), float(self.axis == "Z")

    @property
    def bounded(self) -> bool:
        """Whether the range has ends."""
        return self.high - self.low < FULL_TURN

    @cached_property
    def bounds(self) -> "_Turns":  # type: ignore[override]
        """Axis, range, and its middle."""
        low, high = (self.low, self.high) if self.bounded else (-inf, inf)
        return _Turns(*self.turn_axis, low, high, 0.5 * (self.low + self.high))

    def angle(self, numbers: Numbers, rotation: Quaternion) -> Scalar:
        """The turn about the axis that comes nearest to a rotation, on the side of the range's middle."""
        return self.bounds.angle(numbers, rotation)

    def turned(self, numbers: Numbers, angle: Scalar) -> Quaternion:
        """The rotation by an angle about the axis."""
        return self.bounds.turned(numbers, angle)

    def at_share(self, numbers: Numbers, share: Scalar) -> Quaternion:
        """The turn at a share of the range."""
        low, high = (self.low, self.high) if self.bounded else (-pi, pi)
        return self.turned(numbers, low + (high - low) * share)

    def bent(self, numbers: Numbers, rotation: Quaternion, most: float) -> Quaternion:
        """The turn, nearer to the middle of the range."""
        angle = self.angle(numbers, rotation)
        return self.turned(numbers, angle + numbers.clamp(self.bounds.middle - angle, -most, most))

    def clamp(self, numbers: Numbers, rotation: Quaternion) -> Quaternion:
        """The turn about the axis alone, to the nearer end of the range."""
        return self.bounds.clamp(numbers, rotation)

    def walls(self, numbers: Numbers, rotation: Quaternion, within: float = inf) -> list[Wall]:
        """The two ends of the range."""
        return self.bounds.walls(numbers, rotation, within) if self.bounded else []

    def sample(self, places: FloatArray) -> FloatArray:
        """Angles spread over the range."""
        half = 0.5 * spread((self.low, self.high), places[..., 0])
        return np.stack([np.cos(half), *(np.sin(half) * part for part in self.turn_axis)], axis=-1)


@dataclass(frozen=True)
class _Turns(Bounds):
    """Unit axis, ends of the range (infinite where it is free) and its middle, of one hinge or several."""

    x: Scalar
    y: Scalar
    z: Scalar
    low: Scalar
    high: Scalar
    middle: Scalar

    def angle(self, numbers: Numbers, rotation: Quaternion) -> Scalar:
        about = rotation.x * self.x + rotation.y * self.y + rotation.z * self.z
        return nearest_angle(numbers, 2.0 * numbers.atan2(about, rotation.w), self.middle)

    def turned(self, numbers: Numbers, angle: Scalar) -> Quaternion:
        return numbers.exp_map(numbers.Vector((angle * self.x, angle * self.y, angle * self.z)))

    def clamp(self, numbers: Numbers, rotation: Quaternion) -> Quaternion:
        return self.turned(numbers, numbers.clamp(self.angle(numbers, rotation), self.low, self.high))

    def walls(self, numbers: Numbers, rotation: Quaternion, within: float = inf) -> list[Wall]:
        angle = self.angle(numbers, rotation)
        ends = (1.0, self.high - angle), (-1.0, angle - self.low)
        return [
            Wall(numbers.Vector((side * self.x, side * self.y, side * self.z)), slack)
            for side, slack in ends
            if numbers.any_of(slack <= within)
        ]
