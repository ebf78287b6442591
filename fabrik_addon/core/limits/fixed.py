"""A joint that does not rotate."""

from dataclasses import dataclass
from math import inf

import numpy as np

from ..arrays import FloatArray
from ..backend.protocol import Backend, Quaternion
from ..rotations import IDENTITY
from .base import Limit, LimitConstraint


@dataclass(frozen=True)
class Fixed(Limit):
    """No rotation is allowed."""

    freedom = 0

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """The identity."""
        return backend.select(rotation.w > inf, rotation, backend.Quaternion((1.0, 0.0, 0.0, 0.0)))

    def constraints(self, backend: Backend, rotation: Quaternion, within: float = inf) -> list[LimitConstraint]:  # noqa: ARG002
        """None, since there is no degree of freedom."""
        return []

    def sample(self, places: FloatArray) -> FloatArray:
        """No constraints, since there is no degree of freedom."""
        return np.broadcast_to(IDENTITY, (*places.shape[:-1], 4))
