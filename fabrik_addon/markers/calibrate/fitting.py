"""What all poses of a recording share, found together with the poses: rounds of Gauss-Newton steps."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from ...core import Solution
from ..clip import FloatArray
from .bundle import shared_step
from .fit import Fit
from .shared import Limbs, Offsets, Scale, Shared

# Scales about the first one that are tried before the best of them is improved.
_TRIED_SCALES: Final = np.geomspace(0.75, 1.35, 13)
_ROUNDS: Final = 8
# A round that makes it better by less than this share is the last one.
_WORTH_WHILE: Final = 2e-3

# A search in small steps: yields the share done, at the most.
Search: TypeAlias = "Generator[float, None, Fit]"


def at_best_scale(fit: Fit, positions: FloatArray, first: float) -> Search:
    """The fit at the scale at which it meets positions (F, M, 3) best, its offsets those guessed on the rig."""
    scales = first * _TRIED_SCALES
    # All of them in one solve: for the few frames of a reference that takes hardly longer than one of them.
    tried = (scales[:, None, None, None] * positions).reshape(-1, *positions.shape[1:])
    unscaled = replace(fit, scale=1.0)
    squares = np.nan_to_num(unscaled.distances(unscaled.solve(tried), tried)) ** 2 * fit.weights
    costs = squares.reshape(len(scales), -1).sum(axis=1) / scales**2
    yield 0.0
    best = replace(fit, scale=float(scales[np.argmin(costs)]))
    return (yield from _search(best, positions, [Scale(grows=True)]))


def with_best_limbs(fit: Fit, positions: FloatArray) -> Search:
    """The fit with limbs as long as positions (F, M, 3) want them, the markers' guesses growing with them."""
    return (yield from _search(fit, positions, [Limbs(grows=True)]))


def over_take(fit: Fit, positions: FloatArray, *, resize: bool) -> Search:
    """The fit with offsets, and where asked sizes, that meet positions (F, M, 3) of a take best, outliers left out."""
    shared: list[Shared] = [Offsets(fit.offsets)]
    if resize:
        shared.append(Scale(first=fit.scale) if (fit.factors == 1.0).all() else Limbs())
    return (yield from _search(fit, positions, shared, robust=True))


@dataclass(frozen=True, eq=False)
class _Round:
    """A fit, its poses, (F, M) weights of the samples, and Σ weight · distance² at the recording's size."""

    fit: Fit
    solution: Solution
    weights: FloatArray
    cost: float

    @classmethod
    def begin(cls, fit: Fit, positions: FloatArray) -> _Round:
        """With every marker that is seen."""
        weights = np.where(np.isnan(positions).any(axis=2), 0.0, fit.weights)
        return cls.solved(fit, positions, weights)

    @classmethod
    def solved(cls, fit: Fit, positions: FloatArray, weights: FloatArray, start: Solution | None = None) -> _Round:
        """With given weights."""
        solution = fit.solve(positions, weights, start)
        squares = np.nan_to_num(fit.distances(solution, positions)) ** 2
        return cls(fit, solution, weights, float((weights * squares).sum()) / fit.scale**2)

    def reweighted(self, positions: FloatArray) -> _Round:
        """With outliers weighing next to nothing."""
        weights = self.fit.inlier_weights(self.fit.distances(self.solution, positions))
        return self.solved(self.fit, positions, weights, self.solution)

    def noise(self) -> float:
        """RMS distance at the skeleton's size."""
        return float(np.sqrt(self.cost / max(self.weights.sum(), 1e-12))) * self.fit.scale


def _search(fit: Fit, positions: FloatArray, shared: Sequence[Shared], *, robust: bool = False) -> Search:
    """The fit after as many rounds as make it better; yields the share of the most rounds done."""
    now = _Round.begin(fit, positions)
    noise = now.noise()
    for done in range(_ROUNDS):
        yield done / _ROUNDS
        now = now.reweighted(positions) if robust else now
        yield (done + 0.5) / _ROUNDS
        step = _step(now, positions, shared, noise)
        after = _tried(now, positions, shared, step)
        if after is None:
            break
        gain = now.cost - after.cost
        now, enough = after, gain <= _WORTH_WHILE * now.cost
        if enough:
            break
    return now.fit


def _step(now: _Round, positions: FloatArray, shared: Sequence[Shared], noise: float) -> FloatArray:
    """(P,) the change of the shared parameters; noise: how far markers were from their targets at first."""
    fit, solution = now.fit, now.solution
    columns = np.concatenate([one.columns(fit, solution) for one in shared], axis=-1)
    sample_weight = float(now.weights.sum()) / max(len(fit.mapping), 1)
    prior_weights = np.concatenate([one.prior_weights(fit, noise, sample_weight) for one in shared])
    to_prior = np.concatenate([one.to_prior_mean(fit) for one in shared])
    residuals = np.nan_to_num(positions * fit.scale - fit.points(solution))
    return shared_step(fit.joint_columns(solution), columns, residuals, now.weights, prior_weights, to_prior)


def _tried(now: _Round, positions: FloatArray, shared: Sequence[Shared], step: FloatArray) -> _Round | None:
    """The round after the step, or half of it; None where neither is better."""
    for share in (1.0, 0.4):
        fit, first = now.fit, 0
        for one in shared:
            count = one.count(fit)
            fit, first = one.changed(fit, share * step[first : first + count]), first + count
        after = _Round.solved(fit, positions, now.weights, now.solution)
        if after.cost < now.cost:
            return after
    return None
