"""What all poses of a recording share, found together with the poses: rounds of Gauss-Newton steps."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from ...core import Solution
from ...core.arrays import times
from ..clip import FloatArray
from ..robust import usual_distances
from .bundle import shared_step
from .fit import Fit
from .shared import Limbs, Offsets, Scale, Shared

# Scales about the first one that are tried before the best of them is improved.
_TRIED_SCALES: Final = np.geomspace(0.75, 1.35, 9)
_ROUNDS: Final = 6
# A round that makes it better by less than this share is the last one.
_WORTH_WHILE: Final = 2e-3

# A search in small steps: yields the share done, at the most, and returns a fit with its poses.
Search: TypeAlias = "Generator[float, None, tuple[Fit, Solution]]"


def at_best_scale(fit: Fit, positions: FloatArray, first: float) -> Search:
    """The fit at the scale at which it meets positions (F, M, 3) best, its offsets those guessed on the rig."""
    scales = first * _TRIED_SCALES
    # All of them in one solve: for the few frames of a reference that takes hardly longer than one of them.
    tried = (scales[:, None, None, None] * positions).reshape(-1, *positions.shape[1:])
    unscaled = replace(fit, scale=1.0)
    found = unscaled.solve(tried)
    squares = np.nan_to_num(unscaled.distances(found, tried)) ** 2 * fit.weights
    costs = squares.reshape(len(scales), -1).sum(axis=1) / scales**2
    yield 0.0
    best = int(np.argmin(costs))
    poses = found.part(slice(best * len(positions), (best + 1) * len(positions)))
    return (yield from _search(replace(fit, scale=float(scales[best])), positions, [Scale(grows=True)], poses))


def over_reference(fit: Fit, positions: FloatArray, poses: Solution, *, resize: bool, limbs: bool) -> Search:
    """The fit with offsets, and where asked the scale or limbs, that a pose (F, M, 3) that is held makes likely.

    poses: about those.
    """
    shared: list[Shared] = [Offsets(fit.offsets, fit.factors, frames_worth=1.0)]
    if limbs:
        shared.append(Limbs(grows=True, frames_worth=1.0))
    elif resize:
        shared.append(Scale(first=fit.scale))
    return (yield from _search(fit, positions, shared, poses))


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
    def begin(cls, fit: Fit, positions: FloatArray, poses: Solution | None) -> _Round:
        """With every marker that is seen; from about these poses, or from rest."""
        weights = np.where(np.isnan(positions).any(axis=2), 0.0, fit.weights)
        return cls.solved(fit, positions, weights, poses)

    @classmethod
    def solved(cls, fit: Fit, positions: FloatArray, weights: FloatArray, start: Solution | None = None) -> _Round:
        """With given weights."""
        return cls.of(fit, fit.solve(positions, weights, start), positions, weights)

    @classmethod
    def of(cls, fit: Fit, solution: Solution, positions: FloatArray, weights: FloatArray) -> _Round:
        """With given poses."""
        squares = np.nan_to_num(fit.distances(solution, positions)) ** 2
        return cls(fit, solution, weights, float((weights * squares).sum()) / fit.scale**2)

    def reweighted(self, positions: FloatArray) -> _Round:
        """With outliers weighing next to nothing, and noise as it shows."""
        distances = self.fit.distances(self.solution, positions)
        usual = usual_distances(distances)
        weights = self.fit.inlier_weights(distances, usual)
        return self.of(self.fit.as_far_off(usual), self.solution, positions, weights)

    def objective(self, shared: Sequence[Shared]) -> float:
        """The cost together with what poses and shared parameters cost that are not as expected."""
        fit, sample_weight = self.fit, float(self.weights.sum()) / max(len(self.fit.mapping), 1)
        priors = sum(
            float((one.prior_weights(fit, sample_weight) * one.to_prior_mean(fit) ** 2).sum()) for one in shared
        )
        return self.cost + (fit.pose_cost(self.solution) + priors) / fit.scale**2


def _search(
    fit: Fit, positions: FloatArray, shared: Sequence[Shared], poses: Solution | None = None, *, robust: bool = False
) -> Search:
    """The fit after as many rounds as make it better; yields the share of the most rounds done.

    poses: to begin from; rest when None.
    """
    now = _Round.begin(fit, positions, poses)
    for done in range(_ROUNDS):
        yield done / _ROUNDS
        now = now.reweighted(positions) if robust else now
        yield (done + 0.5) / _ROUNDS
        before = now.objective(shared)
        after = _tried(now, before, positions, shared, *_step(now, positions, shared))
        if after is None:
            break
        left = after.objective(shared)
        now = after
        if before - left <= _WORTH_WHILE * before:
            break
    return now.fit, now.solution


def _step(now: _Round, positions: FloatArray, shared: Sequence[Shared]) -> tuple[FloatArray, FloatArray]:
    """(P,) the change of the shared parameters, and (F, D) of the joints' columns."""
    fit, solution = now.fit, now.solution
    columns = np.concatenate([one.columns(fit, solution) for one in shared], axis=-1)
    sample_weight = float(now.weights.sum()) / max(len(fit.mapping), 1)
    prior_weights = np.concatenate([one.prior_weights(fit, sample_weight) for one in shared])
    to_prior = np.concatenate([one.to_prior_mean(fit) for one in shared])
    residuals = np.nan_to_num(positions * fit.scale - fit.points(solution))
    joints, (held, to_expected) = fit.joint_columns(solution), fit.expected_columns(solution)
    push = np.einsum("fmxd,fmx->fd", joints, now.weights[..., None] * residuals) + held * to_expected
    frames = len(push)
    tangents = fit.kept_inside(solution, push[:, :-3].reshape(frames, -1, 3))
    turning, away = joints[..., :-3].reshape(*joints.shape[:3], -1, 3), to_expected[:, :-3].reshape(frames, -1, 3)
    joints[..., :-3] = np.einsum("fmxbi,fbij->fmxbj", turning, tangents).reshape(*joints.shape[:3], -1)
    to_expected[:, :-3] = times(tangents, away).reshape(frames, -1)
    return shared_step(joints, columns, residuals, now.weights, prior_weights, to_prior, held, to_expected)


def _tried(
    now: _Round, cost: float, positions: FloatArray, shared: Sequence[Shared], step: FloatArray, joints: FloatArray
) -> _Round | None:
    """The round after the step of what is shared (P,) and of the joints (F, D), or half of it; None: neither helps.

    cost: the objective now.
    """
    for share in (1.0, 0.4):
        fit, first = now.fit, 0
        for one in shared:
            count = one.count(fit)
            fit, first = one.changed(fit, share * step[first : first + count]), first + count
        poses = now.fit.turned(now.solution, share * joints)
        poses = replace(poses, root_location=poses.root_location * (fit.scale / now.fit.scale))
        after = _Round.solved(fit, positions, now.weights, poses)
        if after.objective(shared) < cost:
            return after
    return None
