"""Finds parameters that all poses of a recording share, together with the poses: rounds of Gauss-Newton steps.

The points of a pose depend on its joints, which differ on every frame, and on shared parameters. A step on Σ weight ·
|target − point|² is solved for the shared parameters alone, with the joints eliminated frame by frame (the Schur
complement, as in bundle adjustment: Triggs et al. 2000, §6). The solver then finds the joints again. Alternating
between joints and parameters instead takes hundreds of rounds.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from ...core import Solution
from ...core.arrays import times
from ..clip import FloatArray
from ..robust import MEDIAN_DISTANCE, outlier_weights, usual_distances
from .fit import Fit
from .shared import Limbs, Offsets, Scale, Shared

# Scales relative to the first that are tried; the best is then improved.
_TRIED_SCALES: Final = np.geomspace(0.75, 1.35, 9)
_ROUNDS: Final = 6
# Rounds end when one gains less than this share.
_WORTH_WHILE: Final = 2e-3
# Damping of undetermined joints, as a share of the mean diagonal.
_DAMPING: Final = 1e-6
# The largest distance of a sample: this many times the usual distance of its marker, but at least this share of the
# skeleton's size.
_USUAL_TIMES: Final = 4.0
_ALWAYS_SHARE: Final = 0.01

# A search in small steps: yields an upper bound of the share done, and returns a fit with its poses.
Search: TypeAlias = Generator[float, None, tuple[Fit, Solution]]


def at_best_scale(fit: Fit, positions: FloatArray, first: float) -> Search:
    """The fit at the scale that matches positions (F, M, 3) best, with the offsets guessed on the rig."""
    scales = first * _TRIED_SCALES
    # All scales in one solve: for the few frames of a reference this takes hardly longer than one.
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
    """The fit with offsets, and optionally scale or limbs, from a pose that is held: positions (F, M, 3).

    poses: a first approximation.
    """
    shared: list[Shared] = [Offsets(fit.offsets, fit.factors, frames_worth=1.0)]
    if limbs:
        shared.append(Limbs(grows=True, frames_worth=1.0))
    elif resize:
        shared.append(Scale(first=fit.scale))
    return (yield from _search(fit, positions, shared, poses))


def over_take(fit: Fit, positions: FloatArray, *, resize: bool) -> Search:
    """The fit with offsets, and optionally sizes, that match positions (F, M, 3) of a take best, ignoring outliers."""
    shared: list[Shared] = [Offsets(fit.offsets)]
    if resize:
        shared.append(Scale(first=fit.scale) if (fit.factors == 1.0).all() else Limbs())
    return (yield from _search(fit, positions, shared, robust=True))


def _search(
    fit: Fit, positions: FloatArray, shared: Sequence[Shared], poses: Solution | None = None, *, robust: bool = False
) -> Search:
    """The fit after as many rounds as improve it; yields the share of the rounds done.

    poses: to start from; None: rest. robust: give outliers almost no weight and estimate the noise from the data.
    """
    weights = np.where(np.isnan(positions).any(axis=2), 0.0, fit.weights)
    solution = fit.solve(positions, weights, poses)
    for done in range(_ROUNDS):
        yield done / _ROUNDS
        if robust:
            distances = fit.distances(solution, positions)
            usual = usual_distances(distances)
            allowed = np.maximum(_USUAL_TIMES * np.nan_to_num(usual), _ALWAYS_SHARE * fit.skeleton.size)
            weights = outlier_weights(distances, allowed) * fit.weights
            fit = replace(fit, off=float(np.sqrt(np.nanmean(usual**2))) / MEDIAN_DISTANCE)
        yield (done + 0.5) / _ROUNDS
        before = _objective(fit, solution, positions, weights, shared)
        step, joints = _step(fit, solution, positions, weights, shared)
        for share in (1.0, 0.4):
            trial = _changed(fit, shared, share * step)
            start = replace(
                solution,
                rotations=fit.turned(solution, share * joints[:, :-1]),
                root_location=(solution.root_location + share * joints[:, -1]) * (trial.scale / fit.scale),
            )
            found = trial.solve(positions, weights, start)
            after = _objective(trial, found, positions, weights, shared)
            if after < before:
                break
        else:
            break
        fit, solution = trial, found
        if before - after <= _WORTH_WHILE * before:
            break
    return fit, solution


def _objective(
    fit: Fit, solution: Solution, positions: FloatArray, weights: FloatArray, shared: Sequence[Shared]
) -> float:
    """Σ weight · distance² plus the priors on pose and parameters, in the recording's units."""
    cost = float((weights * np.nan_to_num(fit.distances(solution, positions)) ** 2).sum())
    cost += float((fit.prior.weights * (fit.from_expected(solution) ** 2).sum(axis=-1)).sum())
    prior_weights, to_mean = _prior(fit, weights, shared)
    return (cost + float((prior_weights * to_mean**2).sum())) / fit.scale**2


def _prior(fit: Fit, weights: FloatArray, shared: Sequence[Shared]) -> tuple[FloatArray, FloatArray]:
    """(P,) weights of the priors on all shared parameters, and (P,) differences from their means."""
    sample_weight = float(weights.sum()) / max(len(fit.mapping), 1)
    priors = [one.prior(fit, sample_weight) for one in shared]
    return np.concatenate([weight for weight, _ in priors]), np.concatenate([mean for _, mean in priors])


def _changed(fit: Fit, shared: Sequence[Shared], step: FloatArray) -> Fit:
    """The fit after a step (P,) of all shared parameters."""
    first = 0
    for one in shared:
        count = len(one.prior(fit, 0.0)[0])
        fit, first = one.changed(fit, step[first : first + count]), first + count
    return fit


def _step(
    fit: Fit, solution: Solution, positions: FloatArray, weights: FloatArray, shared: Sequence[Shared]
) -> tuple[FloatArray, FloatArray]:
    """(P,) step of the shared parameters; (F, B + 1, 3) rotation vectors of the bodies and the root's translation."""
    frames, markers = weights.shape
    residuals = np.nan_to_num(positions * fit.scale - fit.points(solution))
    joints = fit.joint_columns(solution).reshape(frames, 3 * markers, -1, 3)
    # The prior on the pose, for the joints' columns; none for the root's location.
    held = np.zeros((frames, joints.shape[2], 3))
    held[:, :-1] = np.broadcast_to(fit.prior.weights, (frames, len(fit.skeleton)))[:, fit.bodies, None]
    to_expected = np.zeros(held.shape)
    to_expected[:, :-1] = times(fit.carried(solution), fit.from_expected(solution)[:, fit.bodies])
    pulls = (weights[..., None] * residuals).reshape(frames, 1, -1)
    push = (pulls @ joints.reshape(frames, 3 * markers, -1)).reshape(held.shape) + held * to_expected
    tangents = fit.open_directions(solution, push[:, :-1])
    joints[:, :, :-1] = np.swapaxes(np.swapaxes(joints[:, :, :-1], 1, 2) @ tangents, 1, 2)
    to_expected[:, :-1] = times(tangents, to_expected[:, :-1])
    held, to_expected = held.reshape(frames, -1), to_expected.reshape(frames, -1)
    prior_weights, to_mean = _prior(fit, weights, shared)
    columns = np.concatenate([one.columns(fit, solution) for one in shared], axis=-1)
    root = np.sqrt(weights)[..., None]
    own = joints.reshape(frames, 3 * markers, -1) * np.repeat(root, 3, axis=1)
    common = (columns * root[..., None]).reshape(frames, 3 * markers, -1)
    both = np.concatenate([common, (residuals * root).reshape(frames, -1, 1)], axis=2)
    across = np.swapaxes(own, 1, 2)
    square, pulled = across @ own, across @ both
    diagonal = np.einsum("fii->fi", square)
    diagonal += _DAMPING * diagonal.mean(axis=1, keepdims=True) + 1e-12 + held
    pulled[..., -1] += held * to_expected
    alone = np.linalg.solve(square, pulled)
    summed = (np.swapaxes(common, 1, 2) @ (both - own @ alone)).sum(axis=0)
    matrix = summed[:, :-1] + np.diag(prior_weights + 1e-12)
    step: FloatArray = np.linalg.solve(matrix, summed[:, -1] + prior_weights * to_mean)
    return step, (alone[..., -1] - alone[..., :-1] @ step).reshape(frames, -1, 3)
