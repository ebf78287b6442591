"""A hinge: rotates about one local axis, within a range."""

from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import Literal

import numpy as np

from ..arrays import FloatArray
from ..backend.array import Quaternion, Scalar
from ..backend.protocol import Backend
from ..errors import LimitError
from ..readers import shown
from .base import Limit, check_range, spread
from .swing_twist import FULL_TURN, Between, between, nearest_angle


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
        return backend.exp_map(backend.Vector((angle * x, angle * y, angle * z)))

    def at_range_share(self, backend: Backend, share: Scalar) -> Quaternion:
        """The rotation at a share of the range; if the range is free, from -π to π."""
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
