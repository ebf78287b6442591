"""Restarts: other start poses for frames that joint limits seem to keep from their targets."""

import numpy as np

from ..arrays import IntArray, squares
from ..attempt import attempt
from ..problem import Problem
from ..state import State

# Number of poses that are tried first. In the benchmarks, they help nearly all frames that can be helped.
_FEW = 4
# After this many steps an attempt shows whether it is successful; the best one is then completed.
STEPS = 25
# With more than this many target coordinates per degree of freedom, no other pose fits: for a walk with 31 skin markers
# on 19 degrees of freedom, restarts took six times as long without any gain. The ratio is 1.2 for a person with 22
# exact points.
_MAX_TRIED = 2.0
# The pose from another start may jump, so it is only used if it is clearly better: by 5 % in Σ weight · distance².
_CLEAR_GAIN = 0.95


def take_better(state: State, frames: IntArray, found: State, share: float = 1.0) -> None:
    """Replace the poses of frames (N,) by new ones if these meet the targets or are closer to them.

    share: the largest Σ weight · distance² of a new pose, relative to the current one.
    """
    nearer, newly_met = found.cost() <= share * state.cost()[frames], state.unmet()[frames] & ~found.unmet()
    taken, iterations = np.flatnonzero(nearer | newly_met), state.iterations[frames]
    state.put(frames[taken], found if len(taken) == len(frames) else found.part(taken))
    state.iterations[frames] = iterations


def restart(problem: Problem, state: State) -> None:
    """Try other start poses, several at once, for the frames that may be stuck."""
    frames = _stuck(problem, state)
    few = min(_FEW, problem.options.restarts)
    for batch in (range(few), range(few, problem.options.restarts)):
        if not (len(frames) and len(batch)):
            return
        several = max(1, problem.frames_at_once // len(batch))
        for first in range(0, len(frames), several):
            _try_batch(problem, state, frames[first : first + several], batch)
        frames = _stuck(problem, state)


def _try_batch(problem: Problem, state: State, frames: IntArray, batch: range) -> None:
    """Solve some frames from each start pose of a batch, and take the best pose if it is better."""
    count = len(frames)
    part = state.part(np.tile(frames, len(batch)))
    spread, nearest = problem.spread_poses[0], _nearest_poses(problem, state, frames)
    rows = nearest[:, np.minimum(batch, len(spread) - 1)].T.ravel()
    local = spread[rows][:, problem.bones]
    part.pose = problem.bodies.pose(local, part.pose.root, part.pose.factors)
    part.residual = problem.goals.residual(part.pose, part.wanted)
    part.iterations[:] = 0
    attempt(problem, part, bending=False, most_steps=STEPS)
    # If several meet the targets, take the first one, since otherwise rounding would choose.
    costs = np.where(part.unmet(), part.cost(), 0.0).reshape(len(batch), count)
    state.iterations[frames] += part.iterations.reshape(costs.shape).sum(axis=0)
    best = part.part(costs.argmin(axis=0) * count + np.arange(count))
    problem.least_squares.run(best, problem.options.most_steps)
    take_better(state, frames, best, _CLEAR_GAIN)


def _stuck(problem: Problem, state: State) -> IntArray:
    """The frames that another start pose may bring closer to their targets."""
    frames = np.flatnonzero(state.unmet())
    if not (problem.may_restart and len(frames)):
        return frames[:0]
    weights = state.weights[frames]
    beyond = problem.is_beyond_lengths(state.wanted.points[frames], weights, state.pose.root[frames])
    return frames[~beyond & problem.fits_freedom(weights, _MAX_TRIED)]


def _nearest_poses(problem: Problem, state: State, frames: IntArray) -> IntArray:
    """(F, P) for each frame, the indices of the P spread poses, sorted by the errors of positions and rotations."""
    goals, (_, points, orientations) = problem.goals, problem.spread_poses
    aims = state.wanted.points[frames] - state.pose.root[frames, None]
    shares, turning = np.split(state.weights[frames], [goals.count], axis=1)
    shares = shares * ~np.isin(np.arange(goals.count), goals.loops)
    # Σ w |p - a|² without the constant Σ w |a|². A squared angle is approximated by 4 sin² of its half, which is 3
    # minus the trace of the rotation from one to the other.
    pulled = (aims * shares[..., None]).reshape(len(frames), -1)
    costs = shares @ squares(points).T - 2.0 * pulled @ points.reshape(len(points), -1).T
    wanted = state.wanted.frames[frames] * (turning * goals.arms**2)[..., None, None]
    costs -= wanted.reshape(len(frames), -1) @ orientations.reshape(len(points), -1).T
    return np.asarray(np.argsort(costs, axis=1, kind="stable"))
