"""The interface of all joint limits, on either backend, and the simplest: no rotation at all.

A limit restricts a bone's local rotation, relative to its rest frame, whose Y points along the bone. Its sides as
inequalities are in `kernel.joint_limits`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from ..arrays import FloatArray
from ..backend.array import Quaternion
from ..backend.protocol import Backend
from ..errors import LimitError
from ..readers import numbers, shown
from ..rotations import IDENTITY

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
        return backend.select(rotation.w > inf, rotation, backend.Quaternion((1.0, 0.0, 0.0, 0.0)))

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
