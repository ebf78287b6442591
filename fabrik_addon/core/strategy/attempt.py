"""One attempt: from a start pose to its targets by a few sweeps and least squares."""

import numpy as np

from ..arrays import FloatArray
from ..backend.protocol import Condition, Quaternion, Scalar
from ..fabrik.chain import pull_chain, solve_chain
from ..fabrik.start import align_root, bend_limbs
from ..fabrik.sweeps import sweep_frames
from ..model.residuals import turning_spread
from ..model.targets import Targets
from ..problem import Problem
from ..rotations import NO_TURN
from ..state import Prior, Start, State
from .bend_targets import aim_limbs, bow_limbs

# With the two rules five sweeps bring nearly all frames close enough for least squares (docs: solver, table).
_OPENING_SWEEPS = 5


def start_state(problem: Problem, start: Start, targets: Targets) -> State:
    """F frames as they stand before anything is done."""
    backend, residuals, frames = problem.backend, problem.residuals, len(targets)
    seen, wanted = residuals.seen(targets), targets.rotations
    local = local_rotations(problem, start.rotations)
    return State(
        local=local,
        root=backend.vector(start.roots),
        rest=local,
        bound=_none_bound(problem, frames),
        targets=residuals.wanted(targets, seen),
        weights=residuals.weigh(targets, seen),
        tolerances=np.broadcast_to(residuals.tolerances, seen.shape),
        iterations=np.zeros(frames, dtype=np.int64),
        stationary=np.zeros(frames, dtype=bool),
        target_rotations=np.where(np.isnan(wanted), NO_TURN, wanted) if residuals.oriented else wanted,
        bend_targets=targets.bend,
        residuals=residuals,
        factors=slides_at_rest(problem, frames),
        prior=_prior(problem, targets),
        backend=backend,
    )


def _prior(problem: Problem, targets: Targets) -> Prior | None:
    """What the bodies' rotations are expected to be."""
    if targets.prior is None:
        return None
    return Prior(targets.prior.rotations[:, problem.bones], targets.prior.weights[:, problem.bones])


def local_rotations(problem: Problem, rotations: FloatArray) -> list[Quaternion]:
    """The bodies' of those of all bones (F, J, 4)."""
    return problem.backend.quaternions(rotations, problem.bones)


def _none_bound(problem: Problem, frames: int) -> list[Condition]:
    """The B flags of bodies that no pass has clamped yet."""
    return [problem.backend.scalar(np.zeros(frames)) > 0 for _ in problem.bodies]


def slides_at_rest(problem: Problem, frames: int) -> dict[int, Scalar]:
    """By body that slides, a factor of 1."""
    return {body: problem.backend.scalar(np.ones(frames)) for body in problem.sliding_bodies}


def attempt(problem: Problem, state: State, *, bending: bool = True, most_steps: int | None = None) -> FloatArray:
    """Bring frames from the pose in which they stand to their targets, in place.

    Args:
        problem: what is solved.
        state: F frames.
        bending: whether limbs are turned to their bend targets first.
        most_steps: how many least-squares steps there may be; as the options say when None.

    Returns:
        (F, M, 3) what is measured of the pose then.
    """
    backend, bodies, options = problem.backend, problem.bodies, problem.options
    state.bound = _none_bound(problem, len(state.targets))
    bending = bending and bool(problem.bend_limbs) and not np.isnan(state.bend_targets).all()
    if problem.follows_its_end and problem.is_chain and state.prior is None:
        state.rest = state.local
        return pull_chain(backend, bodies, state)
    if problem.free_root and not problem.follows_its_end:
        align(problem, state)
    if bending:
        bow_limbs(problem, state)
    state.local = bend_limbs(backend, bodies, problem.straight_runs, state.local, state.pose(bodies))
    if bending:
        aim_limbs(problem, state)
    state.rest = state.local
    if problem.is_chain and state.prior is None:
        return solve_chain(backend, bodies, state, options)
    only_sweeps = options.plain or not options.finish
    sweeps = options.max_sweeps if only_sweeps else min(options.max_sweeps, _OPENING_SWEEPS)
    if sweeps:
        sweep_frames(problem.passes, state, sweeps)
    if not only_sweeps:
        state.stationary[:] = False
        problem.least_squares.run(state, options.most_steps if most_steps is None else most_steps)
    return state.points(bodies)


def align(problem: Problem, state: State) -> None:
    """Turn and move the whole pose of a free root to where it fits its targets best, in place."""
    backend, residuals, body = problem.backend, problem.residuals, problem.bodies[0]
    pose, count = state.pose(problem.bodies), residuals.count
    points = state.points_of(problem.bodies, pose)[:, :count]
    weights = state.weights[:, :count] * residuals.in_space
    turning = None
    if residuals.oriented:
        orientations = backend.stack(pose.orientations, len(points))
        turning = turning_spread(residuals, orientations, state.target_rotations, state.weights)
    rotation, centre, goes_to = align_root(points, state.targets[:, :count], weights, turning)
    turn, own = backend.quaternion(rotation), body.rest_turn
    state.root = backend.vector(goes_to) + turn @ (state.root - backend.vector(centre))
    turned = (own.conjugated() @ turn @ own @ state.local[0]).normalized()
    state.local = [turned if body.limit is None else body.limit.clamp(backend, turned), *state.local[1:]]
