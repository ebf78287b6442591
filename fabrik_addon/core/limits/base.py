"""The interface of all joint limits, on either backend.

A limit restricts a bone's local rotation, relative to its rest frame, whose Y points along the bone.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple, Self

import numpy as np

from ..arrays import FloatArray
from ..backend.protocol import Backend, Quaternion, Scalar, Vector
from ..errors import LimitError
from ..readers import numbers, shown

Range = tuple[float, float]
# Radians: the sine of a larger angle has an error of more than 1e-10.
_WIDEST: Final = 1e6


class LimitConstraint(NamedTuple):
    """One side of a limit.

    Attributes:
        normal: in the frame that carries the bone; a small rotation ω reduces the gap by normal · ω radians.
        gap: radians to the side; zero on it.
    """

    normal: Vector
    gap: Scalar


class FeasibleSet(ABC):
    """A set of allowed rotations, for one joint or for several evaluated together."""

    @abstractmethod
    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """The rotation if it is inside, else the nearest one inside."""

    @abstractmethod
    def constraints(self, backend: Backend, rotation: Quaternion, within: float = inf) -> list[LimitConstraint]:
        """The sides of the limit that are within `within` radians of a valid rotation on at least one frame."""


@dataclass(frozen=True)
class Bounds(FeasibleSet):
    """The numbers of a limit as attributes: floats for one joint, or arrays over joints and frames for several."""

    @classmethod
    def stacked(cls, several: Sequence[Self]) -> Self:
        """The bounds of N joints, for rotations whose components are (N,)."""
        return cls(*np.array([list(vars(one).values()) for one in several]).T)

    def repeated(self, frames: int) -> Self:
        """The bounds for rotations whose components are (N · F,), joint by joint."""
        return self if frames == 1 else type(self)(*np.repeat(list(vars(self).values()), frames, axis=1))


class Limit(FeasibleSet):
    """The allowed local rotations of a bone.

    Attributes:
        turn_axis: the only axis of rotation; None if all three are free.
        freedom: the number of degrees of freedom.
        bounds: numbers that can be stacked for several joints; None: joints are evaluated one by one.
    """

    turn_axis: tuple[float, float, float] | None = None
    freedom: int = 3
    bounds: Bounds | None = None

    def at_share(self, backend: Backend, share: Scalar) -> Quaternion:
        """The rotation at a share of the range of a limit with one axis; if the range is free, from -π to π."""
        raise NotImplementedError

    def bent(self, backend: Backend, rotation: Quaternion, most: Scalar) -> Quaternion:
        """A rotation bent by at most `most` radians toward the middle of the range."""
        raise NotImplementedError

    @abstractmethod
    def sample(self, places: FloatArray) -> FloatArray:
        """(..., 4) valid rotations spread over the limit, from points (..., 3) of the unit cube."""


def check_range(what: str, ends: Range) -> None:
    """Raise LimitError, naming the range, if it is invalid."""
    angles = numbers(ends)
    if angles is None or angles.shape != (2,):
        raise LimitError(f"{what} is {shown(ends)}: give two angles, the lower one first")
    low, high = angles
    if not -_WIDEST <= low <= high <= _WIDEST:
        raise LimitError(f"{what} is from {low} to {high}: give two finite angles up to a million, the lower one first")


def spread(ends: Range, share: FloatArray) -> FloatArray:
    """Values at shares of a range."""
    return np.asarray(ends[0] + (ends[1] - ends[0]) * share)
