"""A joint that does not turn."""

from dataclasses import dataclass
from math import inf

import numpy as np

from ..arrays import FloatArray
from ..backend.numbers import Numbers, Quaternion
from .base import Limit, Wall


@dataclass(frozen=True)
class Fixed(Limit):
    """Does not turn."""

    freedom = 0

    def clamp(self, numbers: Numbers, rotation: Quaternion) -> Quaternion:
        """No rotation."""
        return numbers.select(rotation.w > inf, rotation, numbers.Quaternion((1.0, 0.0, 0.0, 0.0)))

    def walls(self, numbers: Numbers, rotation: Quaternion, within: float = inf) -> list[Wall]:  # noqa: ARG002
        """None: there is no way to turn in the first place."""
        return []

    def sample(self, places: FloatArray) -> FloatArray:
        """No rotation."""
        return np.broadcast_to(np.array([1.0, 0.0, 0.0, 0.0]), (*places.shape[:-1], 4))
