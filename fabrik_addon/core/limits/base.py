"""What a joint limit offers, whatever its kind, on either backend.

A limit speaks of a bone's local rotation, relative to its rest frame whose Y runs along the bone.
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
# Radians. The sine of a larger angle is off by more than 1e-10.
_WIDEST: Final = 1e6


class LimitConstraint(NamedTuple):
    """One side of a limit.

    Attributes:
        normal: in the frame that carries the bone; turning by a small ω comes normal · ω radians nearer to the side.
        gap: radians to the side; zero on it.
    """

    normal: Vector
    gap: Scalar


class FeasibleSet(ABC):
    """What keeps rotations inside: of one joint, or of several that are asked together."""

    @abstractmethod
    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """The rotation where it is inside, else the nearest one inside."""

    @abstractmethod
    def constraints(self, backend: Backend, rotation: Quaternion, within: float = inf) -> list[LimitConstraint]:
        """The sides of the limit, as seen from a rotation inside: those that are no farther on some frame."""


@dataclass(frozen=True)
class Bounds(FeasibleSet):
    """The numbers of a limit as attributes: floats of one joint, or arrays over joints and frames of several."""

    @classmethod
    def stacked(cls, several: Sequence[Self]) -> Self:
        """Those of N joints, for rotations whose components are (N,)."""
        return cls(*np.array([list(vars(one).values()) for one in several]).T)

    def repeated(self, frames: int) -> Self:
        """The same for rotations whose components are (N · F,), joint by joint."""
        return self if frames == 1 else type(self)(*np.repeat(list(vars(self).values()), frames, axis=1))


class Limit(FeasibleSet):
    """What a bone's local rotation may be.

    Attributes:
        turn_axis: the one axis that turns are about; None where all three are open.
        freedom: in how many ways the joint can turn.
        bounds: its numbers, where those of several joints can be stacked; None: each is asked by itself.
    """

    turn_axis: tuple[float, float, float] | None = None
    freedom: int = 3
    bounds: Bounds | None = None

    def at_share(self, backend: Backend, share: Scalar) -> Quaternion:
        """The rotation at a share of the range, of a limit with a turn axis; a free one has half a turn either way."""
        raise NotImplementedError

    def bent(self, backend: Backend, rotation: Quaternion, most: Scalar) -> Quaternion:
        """A rotation bent toward the middle of the range, by so many radians at most: the way that the joint folds."""
        raise NotImplementedError

    @abstractmethod
    def sample(self, places: FloatArray) -> FloatArray:
        """(..., 4) rotations inside, spread over the limit, for places (..., 3) in the unit cube."""


def check_range(what: str, ends: Range) -> None:
    """Raise LimitError for what is no range, naming it."""
    angles = numbers(ends)
    if angles is None or angles.shape != (2,):
        raise LimitError(f"{what} is {shown(ends)}: two angles are needed, the lower one first")
    low, high = angles
    if not -_WIDEST <= low <= high <= _WIDEST:
        raise LimitError(
            f"{what} is from {low} to {high}: two finite angles up to a million are needed, the lower one first"
        )


def spread(ends: Range, share: FloatArray) -> FloatArray:
    """Values at shares of a range."""
    return np.asarray(ends[0] + (ends[1] - ends[0]) * share)
