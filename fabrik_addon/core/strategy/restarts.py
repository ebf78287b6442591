"""Other start poses, for frames that joint limits seem to keep from their targets."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from ..arrays import FloatArray, IntArray, squares
from ..problem import Problem
from ..rotations import NO_TURN
from ..state import Start, State
from .attempt import attempt, local_rotations

# Rest alone helps most of those that can be helped, a few poses more nearly all others (in the benchmarks' families).
_BATCH_ENDS = (1, 5)
# A restart shows in so many steps whether it leads anywhere; the best of them goes on to its end.
_STEPS = 25
# With more than so many times the numbers that joints are free to give, there is no other fold: for a walk with 31 skin
# markers on 19 freedoms restarts took six times as long, for nothing. A person met by 22 exact points asks for 1.2
# times the freedoms, a robot's hand of 4 hinges for 1.5.
_MOST_ASKED = 2.0
# Another pose than the start's own is worth a jump only where it is nearer by so much: 5 % in Σ weight · distance².
_CLEAR_GAIN = 0.95


def take_better(
    problem: Problem, state: State, frames: IntArray, found: State, points: FloatArray, share: float = 1.0
) -> None:
    """Take over, for some frames, the poses found that meet the targets or come nearer.

    Args:
        problem: what is solved.
        state: all frames.
        frames: (N,) some of them.
        found: N frames.
        points: (N, M, 3) what is measured of the poses found.
        share: of the present Σ weight · distance², what a pose found may have left.
    """
    before = state.part(frames)
    present = before.points(problem.bodies)
    own, other = found.misses(present), found.misses(points)
    nearer = found.cost(points) <= share * replace(found, local=before.local).cost(present)
    better = nearer | (found.unmet(own) & ~found.unmet(other))
    taken, iterations = np.flatnonzero(better), state.iterations[frames]
    state.replace(frames[taken], found if better.all() else found.part(taken))
    state.iterations[frames] = iterations


def restart(problem: Problem, start: Start, state: State) -> None:
    """Try other start poses, several at once, for the frames that may be stuck."""
    frames = _stuck(problem, start, state, np.arange(len(state.targets)))
    if len(frames) and problem.on_arrays is not None:
        # There all start poses of the one frame are solved at once.
        _restart_on_arrays(problem, problem.on_arrays, start, state)
        return
    for batch in _batches(problem.options.restarts):
        if not len(frames):
            return
        several = max(1, problem.frames_at_once // len(batch))
        for first in range(0, len(frames), several):
            _try_batch(problem, start, state, frames[first : first + several], batch)
        frames = _stuck(problem, start, state, frames)


def _restart_on_arrays(problem: Problem, on_arrays: Problem, start: Start, state: State) -> None:
    """The same for one frame by way of the other backend."""
    there, back = on_arrays.backend, problem.backend
    other = state.part(np.arange(1))
    other.backend = there
    other.local = there.quaternions(back.stack(state.local, 1), range(len(state.local)))
    other.rest = other.local
    other.root = there.vector(back.stack([state.root], 1)[:, 0])
    other.bound = [there.scalar(np.zeros(1)) > 0 for _ in state.bound]
    other.factors = {body: there.scalar(np.ones(1)) for body in state.factors}
    restart(on_arrays, start, other)
    state.local = back.quaternions(there.stack(other.local, 1), range(len(state.local)))
    state.root = back.vector(there.stack([other.root], 1)[:, 0])
    state.iterations, state.stationary = other.iterations, other.stationary


def _try_batch(problem: Problem, start: Start, state: State, frames: IntArray, batch: range) -> None:
    """Solve some frames from each start pose of a batch, and take the best of them where it is better."""
    count = len(frames)
    part = state.part(np.tile(frames, len(batch)))
    part.local = local_rotations(problem, _start_poses(problem, start, state, frames, batch))
    part.iterations[:] = 0
    points = attempt(problem, part, bending=False, most_steps=_STEPS)
    # Of those that meet the targets the first one: between them rounding alone would choose.
    costs = np.where(part.unmet(part.misses(points)), part.cost(points), 0.0).reshape(len(batch), count)
    state.iterations[frames] += part.iterations.reshape(costs.shape).sum(axis=0)
    best = part.part(costs.argmin(axis=0) * count + np.arange(count))
    if not best.stationary.all():
        problem.least_squares.run(best)
    take_better(problem, state, frames, best, best.points(problem.bodies), _CLEAR_GAIN)


def _stuck(problem: Problem, start: Start, state: State, frames: IntArray) -> IntArray:
    """Those of some frames that another start pose may bring nearer to their targets."""
    options = problem.options
    if not (options.finish and options.restarts and problem.least_squares.limited) or options.plain or not len(frames):
        return frames[:0]
    part = state.part(frames)
    stuck = part.unmet(part.errors(problem.bodies))
    stuck &= ~problem.beyond_lengths(part.targets, part.weights, start.roots[frames])
    return frames[stuck & problem.within_freedom(part.weights, _MOST_ASKED)]


def _batches(restarts: int) -> list[range]:
    """The restarts in the order in which they are tried: rest, a few, all others."""
    ends = [0, *(end for end in _BATCH_ENDS if end < restarts), restarts]
    return [range(*pair) for pair in pairwise(ends)]


def _start_poses(problem: Problem, start: Start, state: State, frames: IntArray, batch: range) -> FloatArray:
    """(R * F, J, 4) for R restarts of F frames, restart by restart.

    First the legal pose nearest to rest, then those of a fixed set that bring the effectors nearest.
    """
    poses = []
    if 0 in batch:
        rest = np.broadcast_to(NO_TURN, (len(frames), len(problem.skeleton), 4))
        poses.append(problem.legal(rest))
    others = [number - 1 for number in batch if number > 0]
    if others:
        spread, nearest = problem.spread_poses[0], _nearest_poses(problem, start, state, frames)
        poses += [spread[nearest[:, min(place, len(spread) - 1)]] for place in others]
    return np.concatenate(poses)


def _nearest_poses(problem: Problem, start: Start, state: State, frames: IntArray) -> IntArray:
    """(F, P) the spread poses in the order of how near they bring the effectors, in place and rotation."""
    residuals, (_, points, orientations) = problem.residuals, problem.spread_poses
    aims = state.targets[frames, : residuals.count] - start.roots[frames, None]
    shares, turning = np.split(state.weights[frames, : residuals.asked], [residuals.count], axis=1)
    shares = shares * residuals.in_space
    # Σ w |p − a|² without Σ w |a|², and with 4 sin² of half the angle between rotations for its square.
    pulled = (aims * shares[..., None]).reshape(len(frames), -1)
    costs = shares @ squares(points).T - 2.0 * pulled @ points.reshape(len(points), -1).T
    for place, effector in enumerate(residuals.oriented):
        cosines = state.target_rotations[frames, effector] @ orientations[:, place].T
        costs -= 4.0 * turning[:, place, None] * cosines**2
    return np.asarray(np.argsort(costs, axis=1, kind="stable"))
