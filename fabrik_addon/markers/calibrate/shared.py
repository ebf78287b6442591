"""What all poses of a recording share and a fit may change: the scale, the lengths of limbs, markers' offsets."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ...core import Solution
from ..clip import FloatArray
from .bundle import length_columns, offset_columns
from .fit import Fit
from .proportions import with_factors

# How far guesses may well be off (one standard deviation): offsets as a share of the skeleton's size, 15 mm of a
# person; limbs as a share of their length.
_OFFSET_SHARE: Final = 0.0065
# A marker that is said to be at a joint is nearer: 3 mm.
_JOINT_SHARE: Final = 0.0013
_LENGTH_SHARE: Final = 0.2
# All frames together say as much as so many that have nothing to do with each other: skin moves with the pose.
_FRAMES_WORTH: Final = 2.0
# The reference says how large everything is to this share.
_SCALE_SHARE: Final = 0.01
_LARGEST_CHANGE: Final = 0.15
_SHORTEST: Final = 0.4
_LONGEST: Final = 2.5


class Shared(ABC):
    """One kind of shared parameters."""

    @abstractmethod
    def count(self, fit: Fit) -> int:
        """How many there are."""

    @abstractmethod
    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """(F, M, 3, P) how the markers move with them."""

    @abstractmethod
    def prior_weights(self, fit: Fit, sample_weight: float) -> FloatArray:
        """(P,) how strongly the prior holds each of them.

        sample_weight: the weight of all of a marker's samples.
        """

    @abstractmethod
    def to_prior_mean(self, fit: Fit) -> FloatArray:
        """(P,) from here to what the prior expects."""

    @abstractmethod
    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """The fit after a step (P,)."""


@dataclass(frozen=True)
class Scale(Shared):
    """The size of the rig in the recording.

    grows: the markers' offsets are the rig's, so they grow with it. first: the scale that the reference has found.
    """

    grows: bool = False
    first: float | None = None

    def count(self, fit: Fit) -> int:  # noqa: ARG002
        """One."""
        return 1

    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """All lengths together."""
        offsets = fit.offsets if self.grows else None
        together: FloatArray = length_columns(fit.skeleton, solution.matrices, fit.bones, offsets).sum(axis=-1)
        return together[..., None]

    def prior_weights(self, fit: Fit, sample_weight: float) -> FloatArray:
        """Near what the reference has found."""
        weight = (
            0.0
            if self.first is None
            else sample_weight * len(fit.mapping) / _FRAMES_WORTH * (fit.noise / _SCALE_SHARE) ** 2
        )
        return np.full(1, weight)

    def to_prior_mean(self, fit: Fit) -> FloatArray:
        """Where the reference has it."""
        return np.full(1, 0.0 if self.first is None else fit.scale / self.first - 1.0)

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """A larger rig is a recording that is scaled less."""
        factor = 1.0 + float(np.clip(step[0], -_LARGEST_CHANGE, _LARGEST_CHANGE))
        offsets = fit.offsets if self.grows else fit.offsets / factor
        return replace(fit, scale=fit.scale / factor, offsets=offsets)


@dataclass(frozen=True)
class Limbs(Shared):
    """A factor for each bone. grows: the markers' offsets are guesses that grow with their bones."""

    grows: bool = False
    frames_worth: float = _FRAMES_WORTH

    def count(self, fit: Fit) -> int:
        """One a bone."""
        return len(fit.skeleton)

    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """Each length by itself."""
        return length_columns(fit.skeleton, solution.matrices, fit.bones, fit.offsets if self.grows else None)

    def prior_weights(self, fit: Fit, sample_weight: float) -> FloatArray:
        """As a bone is seldom a fifth longer than the rig's."""
        weight = sample_weight / self.frames_worth * (fit.noise / _LENGTH_SHARE) ** 2
        return np.full(len(fit.skeleton), weight)

    def to_prior_mean(self, fit: Fit) -> FloatArray:
        """As long as the rig's."""
        away: FloatArray = 1.0 / fit.factors - 1.0
        return away

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """Every bone grows by its share."""
        wanted = fit.factors * (1.0 + np.clip(step, -_LARGEST_CHANGE, _LARGEST_CHANGE))
        factors = np.clip(wanted, _SHORTEST, _LONGEST)
        growth = factors / fit.factors
        offsets = fit.offsets * growth[fit.bones, None] if self.grows else fit.offsets
        return replace(fit, skeleton=with_factors(fit.skeleton, growth), offsets=offsets, factors=factors)


@dataclass(frozen=True, eq=False)
class Offsets(Shared):
    """Where each marker sits on its bone.

    first: (M, 3) where they are expected. factors: (J,) the lengths of the bones for which that is so; they grow with
    these; None where they stay.
    """

    first: FloatArray
    factors: FloatArray | None = None
    frames_worth: float = _FRAMES_WORTH

    def count(self, fit: Fit) -> int:
        """Three a marker."""
        return int(fit.offsets.size)

    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """Each marker with its own."""
        return offset_columns(solution.matrices, fit.bones)

    def prior_weights(self, fit: Fit, sample_weight: float) -> FloatArray:
        """As markers are seldom more than some centimetres from where the reference has them."""
        shares = [_OFFSET_SHARE if entry.point == "OFFSET" else _JOINT_SHARE for entry in fit.mapping]
        spread = np.array(shares) * fit.skeleton.size
        return np.repeat(sample_weight / self.frames_worth * (fit.noise / spread) ** 2, 3)

    def to_prior_mean(self, fit: Fit) -> FloatArray:
        """Where they are expected."""
        growth = 1.0 if self.factors is None else (fit.factors / self.factors)[fit.bones, None]
        return np.asarray(self.first * growth - fit.offsets).ravel()

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """Every marker by its own."""
        return replace(fit, offsets=fit.offsets + step.reshape(fit.offsets.shape))
