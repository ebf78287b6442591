"""The door: solve() checks, prepares the problem, and takes each chunk of frames from its start to its solution."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .arrays import FloatArray
from .backend import array
from .limits.base import Limit
from .model.effector import Effector
from .model.options import Options
from .model.prismatic import SlideRange
from .model.skeleton import Skeleton
from .model.targets import PosePrior, Targets
from .model.validation import (
    checked_bend_targets,
    checked_prior,
    checked_root_location,
    checked_start,
    checked_target_rotations,
    checked_targets,
    checked_weights,
)
from .problem import Problem, make_problem
from .solution import Solution
from .state import Start, State
from .strategy.attempt import attempt, start_state
from .strategy.bend_targets import turn_to_bend_targets
from .strategy.one_chain import OneChain
from .strategy.outcome import write_solution
from .strategy.priorities import meet_groups
from .strategy.restarts import restart, take_better
from .strategy.temporal import repair_pops


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
    """Find the pose in which the effectors meet their targets, for one pose or F frames, each by itself.

    Args:
        skeleton: J bones in their rest pose.
        effectors: E points on bones.
        targets: (E, 3) or (F, E, 3) in armature space; a NaN row is not seen on that frame.
        limits: bone name to limit.
        slides: bone name to (low, high) factors of its length, which changes only where targets cannot be met else.
        start: (J, 4) or (F, J, 4) local rotations to start from; rest when None.
        start_location: (3,) or (F, 3) the root's head at the start; its rest place when None.
        root: "FIXED" keeps the root's head, "FREE" lets it go where the fit wants it (one effector pulls all along).
        target_rotations: (E, 4) or (F, E, 4) quaternions w x y z in armature space that effectors' bones are to have,
            each as much as its rotation_weight says; NaN: none.
        bend_targets: (E, 3) or (F, E, 3) points toward which the limbs that end at the effectors bend; NaN: none.
        options: tolerance and method.

    Raises:
        TargetError, LimitError, OptionsError: naming what does not fit or makes no sense.
    """
    return Solver(skeleton, effectors, limits=limits, slides=slides, root=root, options=options).solve(
        targets,
        start=start,
        start_location=start_location,
        target_rotations=target_rotations,
        bend_targets=bend_targets,
    )


class Solver:
    """A problem made ready once, to be solved many times (see `solve` for the arguments)."""

    def __init__(
        self,
        skeleton: Skeleton,
        effectors: Iterable[Effector],
        *,
        limits: Mapping[str, Limit] | None = None,
        slides: Mapping[str, SlideRange] | None = None,
        root: str = "FIXED",
        options: Options | None = None,
    ) -> None:
        self.problem = problem = make_problem(skeleton, effectors, limits, slides, root, options)
        self.skeleton, self.effectors, self.limits = problem.skeleton, problem.effectors, problem.limits
        self.free_root, self.options, self.reaches = problem.free_root, problem.options, problem.reaches

    @property
    def frames_at_once(self) -> int:
        """How many frames are solved together."""
        return self.problem.frames_at_once

    @cached_property
    def _for_one(self) -> Problem:
        """The problem on the backend for a single pose: mathutils where there is one."""
        try:
            from .backend.scalar import BACKEND  # noqa: PLC0415  mathutils comes with Blender only
        except ImportError:
            return self.problem
        return self.problem.on(BACKEND)

    @cached_property
    def _one_chain(self) -> OneChain | None:
        """The short way to one pose, where there is nothing but a chain without limits."""
        problem = self._for_one
        if problem.backend is array or problem.free_root or problem.slides or not problem.is_chain:
            return None
        return OneChain(problem)

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
        """One pose for (E, 3) targets, F poses for (F, E, 3).

        weights: ([F,] E) instead of the effectors' own. prior: local rotations that are expected.
        """
        special = [weights, target_rotations, bend_targets, prior]
        if self._one_chain is not None and all(each is None for each in special):
            alone = self._one_chain.solve(targets, start, start_location)
            if alone is not None:
                return alone
        positions, is_one = checked_targets(targets, len(self.effectors))
        wanted = self._targets(positions, weights, target_rotations, bend_targets, prior)
        begun = self._start(start, start_location, len(wanted))
        if is_one:
            return solve_frames(self._for_one, begun, wanted).single()
        solution = solve_frames(self.problem, begun, wanted)
        if self.options.repair_pops:
            list(self._repair(solution, begun, wanted))
        return solution

    def repair_pops(
        self,
        solution: Solution,
        targets: npt.ArrayLike,
        start_location: npt.ArrayLike | None = None,
        *,
        weights: npt.ArrayLike | None = None,
        target_rotations: npt.ArrayLike | None = None,
        bend_targets: npt.ArrayLike | None = None,
    ) -> Iterator[bool]:
        """Solve again, in place, what jumps or failed in F frames of a solution; see `temporal`.

        Yields:
            After each span of frames, whether it was replaced, so that long work can be watched and stopped.
        """
        positions, _ = checked_targets(targets, len(self.effectors))
        wanted = self._targets(positions, weights, target_rotations, bend_targets)
        return self._repair(solution, self._start(None, start_location, len(wanted)), wanted)

    def _repair(self, solution: Solution, start: Start, targets: Targets) -> Iterator[bool]:
        def from_neighbour(frame: int, rotations: FloatArray, root: FloatArray) -> Solution:
            own = start.part(slice(frame, frame + 1))
            begun = Start(rotations[None], root[None] if self.free_root else own.roots, own.origins)
            return refine_frame(self._for_one, begun, targets.part(slice(frame, frame + 1)))

        return repair_pops(solution, targets.positions, from_neighbour)

    def _targets(
        self,
        positions: FloatArray,
        weights: npt.ArrayLike | None,
        target_rotations: npt.ArrayLike | None,
        bend_targets: npt.ArrayLike | None,
        prior: PosePrior | None = None,
    ) -> Targets:
        shape = len(positions), len(self.effectors)
        return Targets(
            positions,
            checked_weights(weights, self.effectors, len(positions)),
            checked_target_rotations(target_rotations, *shape),
            checked_bend_targets(bend_targets, *shape),
            checked_prior(prior, self.skeleton, len(positions)),
        )

    def _start(self, start: npt.ArrayLike | None, start_location: npt.ArrayLike | None, frames: int) -> Start:
        rotations = checked_start(start, self.skeleton, frames)
        roots = checked_root_location(start_location, self.skeleton, frames)
        return Start(rotations, roots, np.zeros_like(roots))


def solve_frames(problem: Problem, start: Start, targets: Targets) -> Solution:
    """F frames, a chunk at a time: from the start by passes and least squares, then restarts, then what comes after."""
    solution = Solution.empty(problem.skeleton, len(targets), len(problem.effectors))
    for first in range(0, len(targets), problem.frames_at_once):
        part = slice(first, first + problem.frames_at_once)
        begun, wanted = _made_ready(problem, start.part(part), targets.part(part))
        state = start_state(problem, begun, wanted)
        _solve_from_start(problem, state)
        restart(problem, begun, state)
        _post_process(problem, begun, state)
        write_solution(problem, begun, wanted, state, solution.part(part))
    return solution


def refine_frame(problem: Problem, start: Start, targets: Targets) -> Solution:
    """One frame taken from its start to the nearest pose that meets the targets: by least squares alone."""
    solution = Solution.empty(problem.skeleton, 1, len(problem.effectors))
    begun, wanted = _made_ready(problem, start, targets)
    state = start_state(problem, begun, wanted)
    problem.least_squares.run(state)
    _post_process(problem, begun, state)
    write_solution(problem, begun, wanted, state, solution)
    return solution.single()


def _made_ready(problem: Problem, start: Start, targets: Targets) -> tuple[Start, Targets]:
    """A start inside the limits and its targets, both as seen from near where the root is or, if free, will be."""
    origins = start.roots
    if problem.free_root:
        seen = ~np.isnan(targets.positions)
        counts = seen.sum(axis=1)
        middles = np.where(seen, targets.positions, 0.0).sum(axis=1) / np.maximum(counts, 1)
        origins = np.where(counts > 0, middles, origins)
    return Start(problem.legal(start.rotations), start.roots - origins, origins), targets.seen_from(origins)


def _solve_from_start(problem: Problem, state: State) -> None:
    """One attempt for the frames that their start does not meet; none ends worse than it began."""
    frames = np.flatnonzero(state.unfinished(state.errors(problem.bodies)))
    if not len(frames):
        return
    part = state.part(frames)
    points = attempt(problem, part)
    state.iterations[frames] = part.iterations
    take_better(problem, state, frames, part, points)


def _post_process(problem: Problem, start: Start, state: State) -> None:
    """Slides give way, groups are met in their order, limbs turn toward their bend targets."""
    if problem.options.plain:
        return
    if problem.sliding_least_squares is not None:
        _slide(problem, state)
    meet_groups(problem, start, state)
    if problem.bend_limbs and not np.isnan(state.bend_targets).all():
        turn_to_bend_targets(problem, state)


def _slide(problem: Problem, state: State) -> None:
    """Where not all is met at the lengths nearest to rest, let the slides give way."""
    frames = np.flatnonzero(state.unmet(state.errors(problem.bodies)))
    if len(frames) and problem.sliding_least_squares is not None:
        part = state.part(frames)
        part.stationary[:] = False
        problem.sliding_least_squares.run(part)
        state.replace(frames, part)
