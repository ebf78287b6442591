"""What became of the frames: their solution, and why what is not met is not."""

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, lengths
from ..model.residuals import holders_of
from ..model.targets import Targets
from ..problem import Problem
from ..rotations import angle_between
from ..solution import Solution, Status
from ..state import Start, State

# A joint that could still gain a larger share of what is missing, all by itself, is not at rest.
_LEFT_TO_DO = 0.05


def write_solution(problem: Problem, start: Start, targets: Targets, state: State, result: Solution) -> None:
    """Put F solved frames into a result that has room for them."""
    backend, residuals, bones = problem.backend, problem.residuals, problem.bones
    frames, count = len(targets), residuals.count
    points = state.points(problem.bodies)
    if len(bones) < len(problem.skeleton):
        result.rotations[:] = start.rotations
    backend.write(state.local, result.rotations, bones)
    result.root_location[:] = start.origins + backend.stack([state.root], frames)[:, 0]
    seen = residuals.seen(targets)[:, :count]
    result.errors[:] = np.where(seen, lengths(points - state.targets)[:, :count], np.nan)
    result.rotation_errors[:] = _rotation_errors(problem, targets, state)
    result.iterations[:] = state.iterations
    result.lengths[:] = problem.shape.lengths
    for body, factor in state.factors.items():
        result.lengths[:, bones[body]] *= factor
    if problem.least_squares.limited:
        result.binding[:, bones] = problem.least_squares.binding(state)
    result.status[:] = _status(problem, start, state, points, result.binding)


def _rotation_errors(problem: Problem, targets: Targets, state: State) -> FloatArray:
    """(F, E) radians, NaN where no rotation is wanted."""
    if np.isnan(targets.rotations).all():
        return np.full(targets.rotations.shape[:2], np.nan)
    orientations = problem.backend.stack(state.pose(problem.bodies).orientations, len(targets))
    holders = holders_of(problem.bodies, problem.residuals.ends)[: problem.residuals.count]
    return angle_between(orientations[:, holders], targets.rotations)


def _status(problem: Problem, start: Start, state: State, points: FloatArray, binding: BoolArray) -> IntArray:
    """(F,) how each frame ended; binding: (F, J) bones whose limits bind."""
    status = np.where((state.weights > 0).any(axis=1), Status.SOLVED, Status.UNSEEN)
    unmet = np.flatnonzero(state.unmet(state.misses(points)))
    if len(unmet):
        part = state.part(unmet)
        status[unmet] = _why_unmet(problem, start.roots[unmet], part, binding[unmet])
    return status


def _why_unmet(problem: Problem, roots: FloatArray, state: State, binding: BoolArray) -> IntArray:
    """(F,) the status of frames on which a target is missed; binding: (F, J) bones whose limits bind."""
    beyond = problem.beyond_lengths(state.targets, state.weights, roots)
    several = (state.weights > 0).sum(axis=1) > 1
    # Targets that disagree do so with a fixed joint on the way, too; a single target may be missed because of it.
    turning = [bone for bone, limit in zip(*problem.limits_by_bone, strict=True) if limit.freedom]
    binds = np.where(several, binding[:, turning].any(axis=1), binding.any(axis=1))
    status = np.where(state.stationary & several, Status.FITTED, Status.STALLED)
    limited = np.flatnonzero(state.stationary & binds & ~beyond & problem.within_freedom(state.weights))
    if len(limited):
        left = problem.least_squares.optimality(state.part(limited))
        status[limited] = np.where(left < _LEFT_TO_DO, Status.LIMITED, Status.STALLED)
    return np.where(beyond, Status.UNREACHABLE, status)
