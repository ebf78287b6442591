"""The public entry point: solve() checks its input, prepares the problem, and solves frames in chunks."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .arrays import CLOSE, BoolArray, FloatArray, IntArray, lengths
from .attempt import STEPS, attempt, bend_straight_limbs, restart, take_better
from .backend.array import many
from .chains import ChainSolver
from .kernel.bodies import Pose
from .kernel.goals import PRIORITY, State
from .limits import Limit
from .model.effector import (
    Effector,
    Options,
    PosePrior,
    Targets,
    checked_parts,
    checked_targets,
)
from .model.skeleton import Skeleton
from .optimize.least_squares import NEARLY_OPTIMAL
from .problem import Problem, one_pose_backend
from .rotations import angle_between, quaternion_from_matrix, slerp
from .solution import Solution, Status

# Weight of a priority relative to the previous one. It applies to squared distances, and `PRIORITY` to distances.
_GRADE = PRIORITY**-2.0


def solve(  # noqa: PLR0913  the one public door: what it takes is the contract
    skeleton: Skeleton,
    effectors: Iterable[Effector],
    targets: npt.ArrayLike,
    *,
    limits: Mapping[str, Limit] | None = None,
    slides: Mapping[str, tuple[float, float]] | None = None,
    start: npt.ArrayLike | None = None,
    start_location: npt.ArrayLike | None = None,
    root: str = "FIXED",
    target_rotations: npt.ArrayLike | None = None,
    bend_targets: npt.ArrayLike | None = None,
    options: Options | None = None,
) -> Solution:
    """Find the pose in which the effectors meet their targets, for one pose or for F frames separately.

    Args:
        skeleton: J bones in their rest pose.
        effectors: E points on bones.
        targets: (E, 3) or (F, E, 3) in armature space; a NaN row is not seen on that frame.
        limits: bone name to limit.
        slides: bone name to (min, max) factors of its length, which only changes if targets cannot be met otherwise.
        start: (J, 4) or (F, J, 4) local rotations to start from; rest when None.
        start_location: (3,) or (F, 3) the root's head at the start, armature space; at rest when None.
        root: "FIXED" keeps the root's head, "FREE" lets it move (a single effector pulls the whole rig along).
        target_rotations: (E, 4) or (F, E, 4) quaternions w x y z in armature space for the effectors' bones, weighted
            by their rotation_weight; NaN: none.
        bend_targets: (E, 3) or (F, E, 3) poles in armature space, toward which the limbs that end at the effectors
            bend; NaN: none.
        options: tolerance and method.

    Raises:
        TargetError, LimitError, OptionsError: naming the invalid argument.
    """
    return Solver(skeleton, effectors, limits=limits, slides=slides, root=root, options=options).solve(
        targets,
        start=start,
        start_location=start_location,
        target_rotations=target_rotations,
        bend_targets=bend_targets,
    )


class Solver:
    """A problem prepared once, to be solved many times (see `solve` for the arguments)."""

    def __init__(
        self,
        skeleton: Skeleton,
        effectors: Iterable[Effector],
        *,
        limits: Mapping[str, Limit] | None = None,
        slides: Mapping[str, tuple[float, float]] | None = None,
        root: str = "FIXED",
        options: Options | None = None,
    ) -> None:
        self.problem = problem = Problem(*checked_parts(skeleton, effectors, limits, slides, root, options))
        self.skeleton, self.effectors, self.limits = problem.skeleton, problem.effectors, problem.limits
        self.free_root, self.options, self.reaches = problem.free_root, problem.options, problem.reaches
        self.frames_at_once = problem.frames_at_once

    @cached_property
    def _one_chain(self) -> ChainSolver | None:
        """The fast path for one pose, if the problem is a chain without limits; else None."""
        backend = one_pose_backend() if self.problem.is_chain else many
        return None if backend is many else ChainSolver(self.problem, backend)

    @cached_property
    def _chains(self) -> ChainSolver:
        return ChainSolver(self.problem, many)

    def solve(
        self,
        targets: npt.ArrayLike,
        *,
        start: npt.ArrayLike | None = None,
        start_location: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        target_rotations: npt.ArrayLike | None = None,
        bend_targets: npt.ArrayLike | None = None,
        prior: PosePrior | None = None,
    ) -> Solution:
        """Find one pose for targets (E, 3), or F poses for (F, E, 3), armature space; see `solve`.

        weights: ([F,] E) instead of the effectors' own. prior: local rotations that are expected.
        """
        special = [weights, target_rotations, bend_targets, prior]
        if self._one_chain is not None and all(each is None for each in special):
            alone = self._one_chain.solve_one(targets, start, start_location)
            if alone is not None:
                return alone
        given = targets, weights, target_rotations, bend_targets, prior, start, start_location
        wanted, is_one = checked_targets(self.skeleton, self.effectors, *given)
        wanted = replace(wanted, start=self.problem.legal(wanted.start))
        solution = Solution.empty(self.skeleton, len(wanted), len(self.effectors))
        for first in range(0, len(wanted), self.frames_at_once):
            part = slice(first, first + self.frames_at_once)
            if self.problem.is_chain and prior is None:
                self._chains.solve(wanted.part(part), solution.part(part))
            else:
                solve_frames(self.problem, wanted.part(part), solution.part(part))
        if is_one:
            return solution.part(0)
        if self.options.repair_pops:

            def from_neighbor(frame: int, rotations: FloatArray, root: FloatArray) -> Solution:
                own, found = wanted.part(slice(frame, frame + 1)), solution.part(np.array([frame]))
                own = replace(own, start=rotations[None], roots=root[None] if self.free_root else own.roots)
                solve_frames(self.problem, own, found, from_near=True)
                return found.part(0)

            repair_pops(solution, wanted.positions, from_neighbor)
        return solution


def solve_frames(problem: Problem, targets: Targets, result: Solution, *, from_near: bool = False) -> None:
    """Solve F frames from their start by passes and least squares, then by restarts, slides and priorities.

    Writes into a result. from_near: whether the start is close, so that passes and restarts are not needed.
    """
    wanted, origins = _prepared(problem, targets)
    pose, bent = _first_poses(problem, wanted)
    state, most = _start_state(problem, pose, wanted), problem.options.most_steps
    has_poles = not problem.options.plain and bool(np.isfinite(state.bend).any())
    if from_near:
        problem.least_squares.run(state, most, bending=has_poles)
    else:
        _solve_from_far(problem, state, bent, has_poles=has_poles)
    if not problem.options.plain:
        _slide(problem, state)
        _meet_in_order(problem, state)
    _write(problem, wanted, origins, state, result)


def _solve_from_far(problem: Problem, state: State, bent: Pose | None, *, has_poles: bool) -> None:
    """Bring F frames to their targets by passes and least squares, then by restarts, in place.

    bent: the start poses with all straight limbs bent, if known.
    """
    away, most = np.zeros((len(state.weights), 0)), problem.options.most_steps
    if has_poles:
        away = problem.poles.residual(state.pose, state.bend)
    frames = np.flatnonzero(problem.least_squares.unfinished(state, away))
    if len(frames):
        found = state.part(frames)
        first = min(STEPS, most) if problem.may_restart else most
        attempt(problem, found, first, bent=None if bent is None else bent.part(frames))
        state.iterations[frames] = found.iterations
        take_better(state, frames, found)
    restart(problem, state)
    if problem.may_restart and len(frames := np.flatnonzero(state.unmet() & ~state.stationary)):
        part = state.part(frames)
        problem.least_squares.run(part, most - STEPS)
        state.put(frames, part)


def _prepared(problem: Problem, targets: Targets) -> tuple[Targets, FloatArray]:
    """Targets and poses relative to origins, and the origins (F, 3).

    An origin is the root's head; for a free root, it is the mean of the visible targets.
    """
    origins = targets.roots
    if problem.free_root:
        seen = ~np.isnan(targets.positions)
        counts = seen.sum(axis=1)
        middles = np.where(seen, targets.positions, 0.0).sum(axis=1) / np.maximum(counts, 1)
        origins = np.where(counts > 0, middles, origins)
    return targets.seen_from(origins), origins


def _first_poses(problem: Problem, targets: Targets) -> tuple[Pose, Pose | None]:
    """The start poses of F frames, and these poses with straight limbs bent (None: not known yet).

    A start pose that all frames share is cached.
    """

    def pose(local: FloatArray, roots: FloatArray) -> Pose:
        factors = None
        if problem.slides:
            # At first, lengths are as close to rest as their ranges allow.
            factors = np.ones(local.shape[:2])
            factors[:, problem.bodies.slides] = np.clip(1.0, *problem.least_squares.slides)
        return problem.bodies.pose(local, roots, factors)

    if targets.start.strides[0]:
        return pose(targets.start[:, problem.bones], np.array(targets.roots)), None
    key = targets.start[0].tobytes()
    if key not in problem.first_poses:
        problem.first_poses.clear()
        first = pose(targets.start[:1, problem.bones], np.zeros((1, 3)))
        bent = bend_straight_limbs(problem, first)
        problem.first_poses[key] = first, first if bent is first.local else pose(bent, first.root)
    first, second = problem.first_poses[key]
    return first.at(targets.roots), second.at(targets.roots)


def _start_state(problem: Problem, pose: Pose, targets: Targets) -> State:
    goals, frames, prior = problem.goals, len(targets), targets.prior
    wanted = goals.wanted(targets.positions, targets.rotations)
    weights = goals.weighted(targets.weights, wanted)
    return State(
        pose=pose,
        residual=goals.residual(pose, wanted),
        wanted=wanted,
        weights=weights,
        tolerances=np.broadcast_to(problem.tolerances, weights.shape),
        bend=targets.bend,
        prior=prior and prior.of(problem.bones),
        iterations=np.zeros(frames, dtype=np.int64),
        stationary=np.zeros(frames, dtype=bool),
    )


def _slide(problem: Problem, state: State) -> None:
    """If targets are missed with slides at the lengths nearest to rest, solve with variable lengths."""
    if problem.slides and len(frames := np.flatnonzero(state.unmet())):
        part = state.part(frames)
        part.stationary[:] = False
        problem.least_squares.run(part, problem.options.most_steps, slide=True)
        state.put(frames, part)


def _meet_in_order(problem: Problem, state: State) -> None:
    """If targets are missed, bring each priority as close to its targets as earlier ones allow (the paper's 4.2).

    A second round in reverse order restores targets that earlier priorities have lost.
    """
    ranks, last = problem.ranks, int(problem.ranks.max())
    frames = np.flatnonzero(state.unmet()) if last and problem.options.finish else np.zeros(0, dtype=np.int64)
    if not len(frames):
        return
    part = state.part(frames)
    own, stationary = part.weights, part.stationary
    for rank in (*range(last + 1), *reversed(range(last))):
        part.weights = own * np.where(ranks < rank, 1.0, (ranks == rank) * (_GRADE if rank else 1.0))
        part.stationary[:] = False
        problem.least_squares.run(part, problem.options.most_steps, slide=True)
        stationary = part.stationary.copy() if rank == last else stationary
    part.stationary = stationary
    state.put(frames, part)
    # A priority gives way slightly to later ones, so the status is found with their lower weights.
    state.weights[frames] *= _GRADE**ranks


def _write(problem: Problem, targets: Targets, origins: FloatArray, state: State, result: Solution) -> None:
    goals, bones, pose, frames = problem.goals, problem.bones, state.pose, len(targets)
    if len(bones) < len(problem.skeleton):
        result.rotations[:] = targets.start
    result.rotations[:, bones] = pose.local
    result.root_location[:] = origins + pose.root
    seen = state.wanted.seen[:, : goals.count]
    result.errors[:] = np.where(seen, lengths(state.residual[:, : goals.count]), np.nan)
    if not np.isnan(targets.rotations).all():
        own = quaternion_from_matrix(pose.orientations[:, goals.on[: goals.count]])
        result.rotation_errors[:] = angle_between(own, targets.rotations)
    result.iterations[:] = state.iterations
    result.lengths[:] = problem.skeleton.lengths
    for name, ends in problem.slides.items():
        result.lengths[:, problem.skeleton.index(name)] *= np.clip(1.0, *ends)
    if pose.factors is not None:
        result.lengths[:, bones] = problem.skeleton.lengths[bones] * pose.factors
    if problem.limited:
        result.binding[:, bones] = problem.joint_limits.near(pose.local, CLOSE)
    status = np.where((state.weights > 0).any(axis=1), Status.SOLVED, Status.UNSEEN)
    unmet = np.flatnonzero(state.unmet())
    if len(unmet):
        part = state.part(unmet)
        status[unmet] = _why_unmet(problem, part, result.binding[unmet])
    result.status[:frames] = status


def _why_unmet(problem: Problem, state: State, binding: BoolArray) -> IntArray:
    """(F,) the status of frames on which a target is missed; binding: (F, J) whether a bone's limit is active."""
    beyond = problem.is_beyond_lengths(state.wanted.points, state.weights, state.pose.root)
    several = (state.weights > 0).sum(axis=1) > 1
    # If a single target is missed, a fixed joint may be the cause. Several targets may contradict each other anyway, so
    # fixed joints don't count then.
    limits = zip(problem.bones, problem.body_limits, strict=True)
    turning = [bone for bone, limit in limits if limit is not None and limit.freedom]
    binds = np.where(several, binding[:, turning].any(axis=1), binding.any(axis=1))
    status = np.where(state.stationary & several, Status.FITTED, Status.STALLED)
    limited = np.flatnonzero(state.stationary & binds & ~beyond & problem.fits_freedom(state.weights))
    if len(limited):
        left = problem.least_squares.optimality(state.part(limited))
        status[limited] = np.where(left <= NEARLY_OPTIMAL, Status.LIMITED, Status.STALLED)
    return np.where(beyond, Status.UNREACHABLE, status)


# A joint pops if it moves this many times as far as the targets.
FARTHER = 3.0
# The largest number of frames over which a pose is continued past a pop, and over which a pop is spread on each side.
_LONGEST_SPAN, _SPREAD = 500, 40
# Targets count as having moved by at least this fraction of the skeleton's size.
_AT_LEAST = 0.002
# A rotation by this angle, in radians, counts as a pop.
_SHARPEST = np.pi / 3
# Errors count as equal if they differ by at most this factor.
_NO_WORSE = 1.01

Continue = Callable[[int, FloatArray, FloatArray], Solution]


def jumps(solution: Solution, targets: FloatArray) -> FloatArray:
    """(F - 1,) the farthest movement of a joint from each frame to the next, divided by that of the targets.

    Targets that hardly move count as having moved by a small fraction of the skeleton's size. A bone that rotates
    sharply, even only about itself, counts as a joint that moves too far. targets: (F, E, 3), armature space.
    """
    joints = np.concatenate([solution.heads, solution.tails], axis=1)
    moved = _farthest(joints) / np.maximum(_farthest(targets), _AT_LEAST * solution.skeleton.size)
    alike = np.abs((solution.rotations[1:] * solution.rotations[:-1]).sum(axis=2)).min(axis=1)
    turned = 2.0 * np.arccos(np.minimum(alike, 1.0))
    return np.asarray(np.maximum(moved, FARTHER * turned / _SHARPEST))


def repair_pops(solution: Solution, targets: FloatArray, solve_from: Continue) -> None:
    """Continue the pose through popped and failed frames, in place, if that is smoother and no worse.

    A limb that can meet its target with two poses may switch between them. From each side of such a change, the pose is
    continued from frame to frame until it meets the frames as they were solved. The smoother result is kept. A change
    that remains is spread over the frames around it.

    Args:
        solution: F frames.
        targets: (F, E, 3), armature space.
        solve_from: solves one frame from a neighbor's (J, 4) rotations and (3,) root head.
    """
    count = len(targets)
    for frame in restart_frames(jumps(solution, targets) > FARTHER, _failed(solution.status)):
        pair = slice(frame - 1, frame + 1)
        current = float(jumps(solution.part(pair), targets[pair])[0])
        if current <= FARTHER and not _failed(solution.status[frame]):
            continue
        best, key = {}, (max(current, FARTHER), count)
        ahead = range(frame, min(frame + _LONGEST_SPAN, count))
        for span in (ahead, range(frame - 1, max(frame - _LONGEST_SPAN, -1), -1)):
            poses, left = {}, np.inf
            for index, poses[index] in _continued(solution, solve_from, span):
                beside, left = np.array([index, index + span.step]), 0.0
                if 0 <= beside[1] < count:
                    both = solution.part(beside)
                    both.put(0, poses[index])
                    left = float(jumps(both, targets[beside])[0])
                if left <= FARTHER:
                    break
            if (max(left, FARTHER), len(poses)) < key:
                best, key = poses, (max(left, FARTHER), len(poses))
        for index, pose in best.items():
            solution.put(index, pose)
    for frame in np.flatnonzero(jumps(solution, targets) > FARTHER) + 1:
        _spread(solution, targets, solve_from, int(frame))


def _spread(solution: Solution, targets: FloatArray, solve_from: Continue, frame: int) -> None:
    """Spread the change before a frame over the frames around it, in place, if that is smoother and no worse.

    Poses continued from either side are blended.
    """
    ahead = dict(_continued(solution, solve_from, range(frame, min(frame + _SPREAD, len(targets) - 1))))
    back = dict(_continued(solution, solve_from, range(frame - 1, max(frame - _SPREAD, 1) - 1, -1)))
    span = np.arange(frame - len(back), frame + len(ahead))
    wider = np.arange(span[0] - 1, span[-1] + 2) if len(span) else np.array([frame - 1, frame])
    shares = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, len(wider)))
    before, earlier, later = (solution.part(wider) for _ in range(3))
    for index, pose in ahead.items():
        earlier.put(index - wider[0], pose)
    for index, pose in back.items():
        later.put(index - wider[0], pose)
    roots = earlier.root_location + shares[:, None] * (later.root_location - earlier.root_location)
    for place, index in enumerate(span, start=1):
        both = earlier.rotations[place], later.rotations[place]
        mixed = slerp(*both, np.full(len(both[0]), shares[place]))
        solution.put(index, solve_from(index, mixed, roots[place]))
    after = solution.part(wider)
    sharper = jumps(after, targets[wider]).max() >= jumps(before, targets[wider]).max()
    if sharper or _is_worse(after, before.errors).any():
        solution.put(wider, before)


def _continued(solution: Solution, solve_from: Continue, span: range) -> Iterator[tuple[int, Solution]]:
    """Solve the frames of a range, each from the one before it, until a pose is worse than the existing one."""
    pose = solution.part(span.start - span.step)
    for frame in span:
        pose = solve_from(frame, pose.rotations, pose.root_location)
        if _is_worse(pose, solution.errors[frame]):
            return
        yield frame, pose


def _failed(status: IntArray) -> BoolArray:
    return np.isin(status, (Status.LIMITED, Status.STALLED))


def _is_worse(solution: Solution, errors: FloatArray) -> BoolArray:
    """([F,]) whether unsolved frames miss their targets by more than `errors` ([F,] E)."""
    missed, current = np.nansum(solution.errors, axis=-1), np.nansum(errors, axis=-1)
    return np.asarray((solution.status != Status.SOLVED) & (missed > _NO_WORSE * current))


def restart_frames(pops: BoolArray, failed: BoolArray) -> list[int]:
    """The frames from which a pose is continued: after each pop, and the first of consecutive failed ones.

    pops: (F - 1,) whether a pop follows the frame. failed: (F,) whether the frame failed.
    """
    begins = failed[1:] & ~failed[:-1]
    return [int(frame) for frame in np.flatnonzero(pops | begins) + 1]


def _farthest(points: FloatArray) -> FloatArray:
    """(F - 1,) the largest movement of one of N points (F, N, 3) from each frame to the next, ignoring NaN."""
    steps = np.nan_to_num(np.linalg.norm(np.diff(points, axis=0), axis=2))
    return np.asarray(steps.max(axis=1, initial=0.0))
