"""Parameters that all poses of a recording share: the scale, limb lengths and marker offsets."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Protocol

import numpy as np

from ...core import Solution
from ..clip import FloatArray
from .fit import Fit
from .proportions import with_factors

# How far guesses are usually off (standard deviation): offsets as a share of the skeleton's size (15 mm on a person),
# limbs as a share of their length.
_OFFSET_SHARE: Final = 0.0065
# A marker that is mapped to a joint is closer: 3 mm.
_JOINT_SHARE: Final = 0.0013
_LENGTH_SHARE: Final = 0.2
# All frames of a take count as this many independent ones, since skin moves with the pose.
FRAMES_WORTH: Final = 2.0
# Relative error of the scale that the reference gives.
_SCALE_SHARE: Final = 0.01
_LARGEST_CHANGE: Final = 0.15
_SHORTEST: Final = 0.4
_LONGEST: Final = 2.5


class Shared(Protocol):
    """One kind of shared parameters; P of them."""

    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """(F, M, 3, P) Jacobian of the markers with respect to the parameters."""
        ...

    def prior(self, fit: Fit, sample_weight: float) -> tuple[FloatArray, FloatArray]:
        """(P,) weights of the prior, and (P,) differences from the current values to its mean.

        sample_weight: mean over the markers of the summed weight of their samples.
        """
        ...

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """The fit after a step (P,) of the parameters."""
        ...


@dataclass(frozen=True)
class Scale:
    """The size of the rig in the recording's units.

    grows: offsets belong to the rig, so they are scaled too. first: the scale found from the reference.
    """

    grows: bool = False
    first: float | None = None

    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """(F, M, 3, 1): one factor for all lengths."""
        return np.asarray(_length_columns(fit, solution, grows=self.grows).sum(axis=-1, keepdims=True))

    def prior(self, fit: Fit, sample_weight: float) -> tuple[FloatArray, FloatArray]:
        """Keeps the scale near that of the reference."""
        if self.first is None:
            return np.zeros(1), np.zeros(1)
        weight = sample_weight * len(fit.mapping) / FRAMES_WORTH * (fit.noise / _SCALE_SHARE) ** 2
        return np.full(1, weight), np.full(1, fit.scale / self.first - 1.0)

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """Scale the recording down where the rig should be larger."""
        factor = 1.0 + float(np.clip(step[0], -_LARGEST_CHANGE, _LARGEST_CHANGE))
        offsets = fit.offsets if self.grows else fit.offsets / factor
        return replace(fit, scale=fit.scale / factor, offsets=offsets)


@dataclass(frozen=True)
class Limbs:
    """One length factor for each bone. grows: offsets are guesses that are scaled with their bones."""

    grows: bool = False
    frames_worth: float = FRAMES_WORTH

    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """(F, M, 3, J): one column for each bone length."""
        return _length_columns(fit, solution, grows=self.grows)

    def prior(self, fit: Fit, sample_weight: float) -> tuple[FloatArray, FloatArray]:
        """Keeps bone lengths near the rig's; a difference of a fifth is rare."""
        weight = sample_weight / self.frames_worth * (fit.noise / _LENGTH_SHARE) ** 2
        return np.full(len(fit.skeleton), weight), 1.0 / fit.factors - 1.0

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """Scale each bone by its own step."""
        wanted = fit.factors * (1.0 + np.clip(step, -_LARGEST_CHANGE, _LARGEST_CHANGE))
        factors = np.clip(wanted, _SHORTEST, _LONGEST)
        growth = factors / fit.factors
        offsets = fit.offsets * growth[fit.bones, None] if self.grows else fit.offsets
        return replace(fit, skeleton=with_factors(fit.skeleton, growth), offsets=offsets, factors=factors)


@dataclass(frozen=True, eq=False)
class Offsets:
    """The offset of each marker on its bone.

    first: (M, 3) the expected offsets. factors: (J,) the bone lengths for which they hold, if offsets are scaled with
    bones; else None.
    """

    first: FloatArray
    factors: FloatArray | None = None
    frames_worth: float = FRAMES_WORTH

    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """(F, M, 3, 3 M): each marker moves with its own offset."""
        count, frames = len(fit.bones), len(solution.matrices)
        columns = np.zeros((frames, count, 3, count, 3))
        every = np.arange(count)
        columns[:, every, :, every] = np.swapaxes(solution.matrices[:, fit.bones, :3, :3], 0, 1)
        return columns.reshape(frames, count, 3, 3 * count)

    def prior(self, fit: Fit, sample_weight: float) -> tuple[FloatArray, FloatArray]:
        """Keeps markers within a few centimeters of their first offsets."""
        shares = [_OFFSET_SHARE if entry.point == "OFFSET" else _JOINT_SHARE for entry in fit.mapping]
        spread = np.array(shares) * fit.skeleton.size
        growth = 1.0 if self.factors is None else (fit.factors / self.factors)[fit.bones, None]
        weights = np.repeat(sample_weight / self.frames_worth * (fit.noise / spread) ** 2, 3)
        return weights, np.asarray(self.first * growth - fit.offsets).ravel()

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """Move each offset by its own step."""
        return replace(fit, offsets=fit.offsets + step.reshape(fit.offsets.shape))


def _length_columns(fit: Fit, solution: Solution, *, grows: bool) -> FloatArray:
    """(F, M, 3, J) how markers move as a bone and everything fixed to it grows, with the root's head fixed.

    grows: offsets are scaled with their bones.
    """
    orientations = solution.matrices[..., :3, :3]
    columns = np.zeros((len(orientations), len(fit.bones), 3, len(fit.skeleton)))
    for marker, bone in enumerate(fit.bones):
        for above, below in pairwise(fit.skeleton.path(bone)):
            columns[:, marker, :, above] = orientations[:, above] @ fit.skeleton.head_offset(below)
        if grows:
            columns[:, marker, :, bone] = orientations[:, bone] @ fit.offsets[marker]
    return columns
