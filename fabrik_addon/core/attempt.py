"""One attempt to solve from a start pose, and restarts from other poses if limits seem to block the path."""

import numpy as np

from .arrays import SINGLE, TINY, BoolArray, FloatArray, IntArray, lengths, squares, times
from .backend.array import many
from .fabrik.chain import OPENING_SWEEPS
from .kernel.bodies import Pose, cross
from .kernel.goals import Goals, State
from .optimize.least_squares import CLEAR
from .problem import Problem
from .rotations import (
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
)

# Radians by which a straight limb is bent. With 0.3, one more of 60 elbows ended on the wrong side of its pole.
_BEND = 0.5
# A target is far if its distance exceeds this fraction of the effector's path.
_FAR = 0.1


def attempt(problem: Problem, state: State, most_steps: int, *, bent: Pose | None = None, bending: bool = True) -> None:
    """Bring F frames from their current pose to their targets, in place, with at most `most_steps` of least squares.

    bent: the poses with all straight limbs bent, if known. bending: whether limbs bend toward their poles.
    """
    options = problem.options
    bending = bending and bool(problem.bend_limbs) and not np.isnan(state.bend[:, problem.poles.effectors]).all()
    goals, begun = problem.goals, state.pose
    by_passes = options.plain or not options.finish
    far = _is_far(goals, state)
    apart = np.flatnonzero(far & (problem.free_root and not problem.follows_end))
    if len(apart):
        part = state.part(apart)
        _align(problem, part)
        state.put(apart, part)
        far = _is_far(goals, state)
    # Limbs stay straight if a target is beyond the chain's length, or pulls the whole chain along.
    within = ~(problem.is_beyond_lengths(state.wanted.points, state.weights, state.pose.root) | problem.follows_end)
    counts = state.weights * within[:, None]
    if bent is not None and not len(apart) and not bending and (counts > 0.0).all():
        state.pose = bent
    else:
        local = bend_straight_limbs(problem, state.pose, state.bend if bending else None, counts)
        if local is not state.pose.local:
            state.pose = problem.bodies.pose(local, state.pose.root, state.pose.factors)
    if state.pose is not begun:
        state.residual = goals.residual(state.pose, state.wanted)
    where = np.flatnonzero(far | by_passes | problem.follows_end)
    sweeps = options.max_sweeps if by_passes else min(OPENING_SWEEPS, options.max_sweeps)
    if len(where) and sweeps:
        part = state if len(where) == len(far) else state.part(where)
        passes = problem.passes_of_one if len(where) == 1 else problem.passes
        passes.sweep_frames(part, sweeps, 1 if by_passes else sweeps)
        if part is not state:
            state.put(where, part)
    if not by_passes:
        state.stationary[:] = False
        problem.least_squares.run(state, most_steps, bending=bending)


def _is_far(goals: Goals, state: State) -> BoolArray:
    """(F,) whether any target is far from its effector, relative to the length of the effector's path."""
    return np.asarray((lengths(state.residual[:, : goals.count]) > _FAR * goals.lengths).any(axis=1))


def _align(problem: Problem, state: State) -> None:
    """Rotate and move the whole pose of a free root so that it fits its targets best, in place.

    The best rigid fit of points is the largest eigenvector of a 4×4 matrix (Horn 1987). If one or two points do not
    determine the rotation, it is the smallest one. Without visible targets nothing moves.
    """
    goals, bodies, pose = problem.goals, problem.bodies, state.pose
    count, on = goals.count, goals.on[goals.oriented]
    points, targets = goals.points(pose)[:, :count], state.wanted.points
    weights = state.weights[:, :count] * ~np.isin(np.arange(count), goals.loops)
    total = np.maximum(weights.sum(axis=1), TINY)[:, None, None]
    share = weights[..., None] / total
    center, goes_to = (points * share).sum(axis=1), (targets * share).sum(axis=1)
    spread = np.einsum("fei,fej->fij", (points - center[:, None]) * share, targets - goes_to[:, None])
    # A target rotation that is missed by θ costs weight · θ², as in least squares.
    turning = 0.5 * state.weights[:, count:] * goals.arms**2
    spread += np.einsum("fo,foij,fokj->fik", turning, pose.orientations[:, on], state.wanted.frames) / total
    matrix = np.zeros((len(points), 4, 4))
    trace = np.trace(spread, axis1=1, axis2=2)
    skew = np.stack([spread[:, i, j] - spread[:, j, i] for i, j in ((1, 2), (2, 0), (0, 1))], axis=1)
    size = np.abs(spread).sum(axis=(1, 2)) + TINY
    matrix[:, 0, 0] = trace + SINGLE * size
    matrix[:, 0, 1:] = matrix[:, 1:, 0] = skew
    matrix[:, 1:, 1:] = spread + np.swapaxes(spread, 1, 2) - trace[:, None, None] * np.eye(3)
    rotation = np.linalg.eigh(matrix)[1][..., -1]
    own = quaternion_from_matrix(bodies.rest_turns[0])
    local = pose.local.copy()
    local[:, 0] = product(product(conjugate(own), product(rotation, own)), local[:, 0])
    turned = times(matrix_from_quaternion(rotation), pose.root - center)
    state.pose = bodies.pose(problem.joint_limits.clamped(local), goes_to + turned, pose.factors)
    state.residual = goals.residual(state.pose, state.wanted)


def bend_straight_limbs(
    problem: Problem,
    pose: Pose,
    poles: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """(F, B, 4) local rotations with straight limbs bent inside their limits, toward poles (F, E, 3).

    A straight limb cannot reach a target on its axis, and jumps if a target is near it. Hinges bend toward the middle
    of their ranges. Other limbs bend toward their pole, or about their first bone's local X.
    weights: (F, E + O) of the goals; a limb without a goal is not bent.
    """
    local = pose.local
    limbs = {limb.bodies: index for index, limb in enumerate(problem.bend_limbs)} if poles is not None else {}
    for run in [*problem.straight_runs, *([limb.ball, *limb.hinges] for limb in problem.hinge_limbs)]:
        offsets = [problem.links[body].attachments[0].offset for body in run]
        arms = times(pose.orientations[:, run], np.array([(each.x, each.y, each.z) for each in offsets], dtype=float))
        sizes = lengths(arms)
        alike = lengths(cross(arms[:, :1], arms)) < CLEAR * sizes[:, :1] * sizes
        is_straight = (alike & ((arms[:, :1] * arms).sum(axis=-1) > 0.0))[:, 1:].all(axis=1)
        if weights is not None:
            is_straight &= problem.goals.moves_goal(run[-1], weights)
        straight = np.flatnonzero(is_straight)
        if not len(straight):
            continue
        local = local.copy() if local is pose.local else local
        hinges = [(body, hinge) for body in run if (hinge := problem.links[body].hinge)]
        for body, hinge in hinges:
            current = many.quaternion(pose.local[straight, body])
            local[straight, body] = many.stack([hinge.bent_inward(many, current, _BEND)], len(straight))[:, 0]
        if hinges:
            continue
        axis = pose.orientations[straight, run[0], :, 0]
        index = limbs.get(tuple(run))
        if index is not None and poles is not None:
            line = problem.poles.axis(index, pose)[0][straight]
            to_pole = poles[straight, problem.bend_limbs[index].effector] - pose.heads[straight, run[0]]
            about = cross(line, to_pole)
            clear = lengths(about) > CLEAR * lengths(to_pole)
            axis = np.where(clear[:, None], about / np.maximum(lengths(about), TINY)[:, None], axis)
        for number, body in enumerate(run):
            angle = _BEND * (1.0 if number == 0 else -2.0 / (len(run) - 1))
            own = times(np.swapaxes(pose.carried[straight, body], -1, -2), axis * angle)
            local[straight, body] = product(quaternion_from_rotation_vector(own), local[straight, body])
    return local if local is pose.local else problem.joint_limits.clamped(local)


# Number of poses that are tried first. In the benchmarks, they help nearly all frames that can be helped.
_FEW = 4
# After this many steps an attempt shows whether it is successful; the best one is then completed.
STEPS = 25
# With more than this many target coordinates per degree of freedom, no other pose fits: for a walk with 31 skin markers
# on 19 degrees of freedom, restarts took six times as long without any gain.
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
    attempt(problem, part, STEPS, bending=False)
    # If several meet the targets, take the first one, since otherwise rounding would choose.
    costs = np.where(part.unmet(), part.cost(), 0.0).reshape(len(batch), count)
    state.iterations[frames] += part.iterations.reshape(costs.shape).sum(axis=0)
    best = part.part(costs.argmin(axis=0) * count + np.arange(count))
    problem.least_squares.run(best, problem.options.most_steps)
    take_better(state, frames, best, _CLEAR_GAIN)


def _stuck(problem: Problem, state: State) -> IntArray:
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
