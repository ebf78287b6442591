"""A hinge: rotates about one local axis, within a range."""

from dataclasses import dataclass
from functools import cached_property
from math import inf, pi
from typing import Literal

import numpy as np

from ..arrays import FloatArray
from ..backend.protocol import Backend, Quaternion, Scalar
from ..errors import LimitError
from ..readers import shown
from .base import Bounds, Limit, LimitConstraint, check_range, spread
from .swing_twist import FULL_TURN, nearest_angle


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
    def turn_axis(self) -> tuple[float, float, float]:  # type: ignore[override]
        """The angle about the axis that is nearest to a rotation.

        Plus full turns, so that it is near the range's middle.
        """
        return float(self.axis == "X"), float(self.axis == "Y"), float(self.axis == "Z")

    @property
    def bounded(self) -> bool:
        """Whether the range has ends."""
        return self.high - self.low < FULL_TURN

    @cached_property
    def bounds(self) -> "_HingeBounds":  # type: ignore[override]
        """Axis, range, and the middle of the range."""
        low, high = (self.low, self.high) if self.bounded else (-inf, inf)
        return _HingeBounds(*self.turn_axis, low, high, 0.5 * (self.low + self.high))

    def angle(self, backend: Backend, rotation: Quaternion) -> Scalar:
        """The angle of the rotation about the axis that is nearest to a rotation, nearest to the range's middle."""
        return self.bounds.angle(backend, rotation)

    def turned(self, backend: Backend, angle: Scalar) -> Quaternion:
        """The rotation by an angle about the axis."""
        return self.bounds.turned(backend, angle)

    def at_share(self, backend: Backend, share: Scalar) -> Quaternion:
        """The rotation at a share of the range."""
        low, high = (self.low, self.high) if self.bounded else (-pi, pi)
        return self.turned(backend, low + (high - low) * share)

    def bent(self, backend: Backend, rotation: Quaternion, most: Scalar) -> Quaternion:
        """The rotation, moved toward the middle of the range."""
        angle = self.angle(backend, rotation)
        return self.turned(backend, angle + backend.clamp(self.bounds.middle - angle, -most, most))

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """The component about the axis, clamped to the range."""
        return self.bounds.clamp(backend, rotation)

    def constraints(self, backend: Backend, rotation: Quaternion, within: float = inf) -> list[LimitConstraint]:
        """The two ends of the range."""
        return self.bounds.constraints(backend, rotation, within) if self.bounded else []

    def sample(self, places: FloatArray) -> FloatArray:
        """Angles spread over the range."""
        half = 0.5 * spread((self.low, self.high), places[..., 0])
        return np.stack([np.cos(half), *(np.sin(half) * part for part in self.turn_axis)], axis=-1)


@dataclass(frozen=True)
class _HingeBounds(Bounds):
    """Unit axis, ends of the range (infinite if free) and its middle, of one hinge or several."""

    x: Scalar
    y: Scalar
    z: Scalar
    low: Scalar
    high: Scalar
    middle: Scalar

    def angle(self, backend: Backend, rotation: Quaternion) -> Scalar:
        about = rotation.x * self.x + rotation.y * self.y + rotation.z * self.z
        return nearest_angle(backend, 2.0 * backend.atan2(about, rotation.w), self.middle)

    def turned(self, backend: Backend, angle: Scalar) -> Quaternion:
        return backend.exp_map(backend.Vector((angle * self.x, angle * self.y, angle * self.z)))

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        return self.turned(backend, backend.clamp(self.angle(backend, rotation), self.low, self.high))

    def constraints(self, backend: Backend, rotation: Quaternion, within: float = inf) -> list[LimitConstraint]:
        angle = self.angle(backend, rotation)
        ends = (1.0, self.high - angle), (-1.0, angle - self.low)
        return [
            LimitConstraint(backend.Vector((side * self.x, side * self.y, side * self.z)), gap)
            for side, gap in ends
            if backend.any_of(gap <= within)
        ]
