"""The loop: from targets to poses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from types import ModuleType

import numpy as np
import numpy.typing as npt

from . import chain as chains
from . import many
from .arrays import BoolArray, FloatArray, IntArray, Quaternion, Scalar, lengths
from .bend import Bends, find_limbs
from .bodies import Body, Pose, Reaches, build_bodies, effector_points, path_reaches, place_bodies
from .check import (
    check_effectors,
    check_limits,
    check_root,
    check_slides,
    checked_poles,
    checked_root_location,
    checked_start,
    checked_targets,
    checked_turns,
    checked_weights,
)
from .finish import LeastSquares
from .groups import Groups
from .limits import Limit
from .links import find_links
from .loops import with_partners
from .one_chain import OneChain
from .orientation import Measures, holders_of, make_measures, rotation_errors, turning_spread
from .pops import repair_pops
from .reach import Goals, Sweeper, make_goals
from .skeleton import Skeleton
from .slides import SlideRange, at_factors, find_slides, moved_with, nearest_to_rest
from .solution import Effector, Options, Solution, Status
from .start import align_root, bend_straight_limbs, spread_places, straight_runs
from .walls import binding
from .wanted import Wanted
from .work import Work

_OPENING_SWEEPS = 5
_NO_CHANGE = 0.01
_SPREAD_POSES = 256
_RESTART_STEPS = 25
_LEFT_TO_DO = 0.05
_BATCH_ENDS = (1, 5)
# No more than one in so many frames of a chunk is put off.
_PUT_OFF = 10
_NO_TURN = np.array([1.0, 0.0, 0.0, 0.0])
# An unlimited chain needs little room for a frame, and many frames to be worth numpy's while.
_CHUNKS_OF_A_CHAIN = 5


def solve(  # noqa: PLR0913  the one public door: what it takes is the contract
    skeleton: Skeleton,
    effectors: Sequence[Effector],
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
        root: "FIXED" keeps the root's head, "FREE" lets it go where the fit wants it; a single effector then pulls the
            rest along behind it.
        target_rotations: (E, 4) or (F, E, 4) quaternions w x y z in armature space that effectors' bones are to have,
            each as much as its rotation_weight says; NaN: none.
        bend_targets: (E, 3) or (F, E, 3) points toward which the limbs that end at the effectors bend; NaN: none.
        options: tolerance and method.

    Raises:
        TargetError: for effectors, targets or starts that do not fit; OptionsError for an unknown root mode.
        LimitError: for limits and slides that make no sense.
    """
    return Solver(skeleton, effectors, limits=limits, slides=slides, root=root, options=options).solve(
        targets,
        start=start,
        start_location=start_location,
        target_rotations=target_rotations,
        bend_targets=bend_targets,
    )


class Solver:
    """A skeleton and its effectors made ready once, to be solved many times (see `solve` for the arguments)."""

    def __init__(
        self,
        skeleton: Skeleton,
        effectors: Sequence[Effector],
        *,
        limits: Mapping[str, Limit] | None = None,
        slides: Mapping[str, SlideRange] | None = None,
        root: str = "FIXED",
        options: Options | None = None,
    ) -> None:
        check_root(root)
        check_effectors(skeleton, effectors)
        self.limits = dict(limits or {})
        check_limits(skeleton, self.limits)
        self.skeleton = skeleton
        self.effectors = tuple(effectors)
        self.free_root = root == "FREE"
        self.options = options or Options()
        self.slides = dict(slides or {})
        check_slides(skeleton, self.slides)
        self.limits_by_bone = [skeleton.index(name) for name in self.limits], list(self.limits.values())
        self._factors = {name: nearest_to_rest(ends) for name, ends in self.slides.items()}
        self.shape = at_factors(skeleton, self._factors)
        self.reaches = self._reaches()

    def _reaches(self) -> Reaches:
        """How far effectors get, with all slides out."""
        reaches = path_reaches(self.shape, moved_with(self.effectors, self._factors))
        if not self.slides:
            return reaches
        longest = {name: high for name, (_, high) in self.slides.items()}
        out = path_reaches(at_factors(self.skeleton, longest), moved_with(self.effectors, longest))
        return Reaches(out.far, np.zeros_like(out.near), reaches.tolerance_lengths)

    def solve(
        self,
        targets: npt.ArrayLike,
        *,
        start: npt.ArrayLike | None = None,
        start_location: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        target_rotations: npt.ArrayLike | None = None,
        bend_targets: npt.ArrayLike | None = None,
    ) -> Solution:
        """One pose for (E, 3) targets, F poses for (F, E, 3); weights: ([F,] E) instead of the effectors' own."""
        if self._one_chain is not None and weights is None and target_rotations is None and bend_targets is None:
            alone = self._one_chain.solve(targets, start, start_location)
            if alone is not None:
                return alone
        points, is_one = checked_targets(targets, len(self.effectors))
        wanted = self._wanted(points, weights, target_rotations, bend_targets)
        frames = len(wanted)
        rotations = checked_start(start, self.skeleton, frames)
        locations = checked_root_location(start_location, self.skeleton, frames)
        kernel = self._for_one if is_one else self._for_many
        result = self._solved(kernel, wanted, rotations, locations, hurry=frames > self.frames_at_once)
        if self.options.repair_pops and not is_one:
            again = self.repair_pops(
                result,
                points,
                start_location,
                weights=weights,
                target_rotations=target_rotations,
                bend_targets=bend_targets,
            )
            list(again)
        return result.single() if is_one else result

    def _solved(
        self, kernel: "_Kernel", wanted: Wanted, rotations: FloatArray, locations: FloatArray, *, hurry: bool
    ) -> Solution:
        """All frames, a chunk at a time; in a hurry those that take long are put off, to be solved all together."""
        frames, at_once = len(wanted), self.frames_at_once
        result = Solution.empty(self.skeleton, frames, len(self.effectors))
        put_off = [np.arange(0)]
        for first in range(0, frames, at_once):
            part = slice(first, first + at_once)
            run = _Run(self, kernel, wanted.part(part), rotations[part], locations[part])
            put_off.append(first + run.solve(at_once // _PUT_OFF if hurry else 0))
            run.settle()
            run.write(result, part)
        late = np.concatenate(put_off)
        if len(late):
            result.put(late, self._solved(kernel, wanted.part(late), rotations[late], locations[late], hurry=False))
        return result

    def _wanted(
        self,
        points: FloatArray,
        weights: npt.ArrayLike | None,
        target_rotations: npt.ArrayLike | None,
        bend_targets: npt.ArrayLike | None,
    ) -> Wanted:
        shape = len(points), len(self.effectors)
        weighed = checked_weights(weights, self.effectors, len(points))
        return Wanted(points, weighed, checked_turns(target_rotations, *shape), checked_poles(bend_targets, *shape))

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
        """Solve again, in place, what jumps or failed in F frames of a solution; see `pops`.

        Yields:
            After each span of frames, whether it was replaced, so that long work can be watched and stopped.
        """
        points, _ = checked_targets(targets, len(self.effectors))
        locations = checked_root_location(start_location, self.skeleton, len(points))
        wanted = self._wanted(points, weights, target_rotations, bend_targets)
        return repair_pops(solution, points, partial(self._continue, wanted, locations))

    def _continue(
        self, wanted: Wanted, locations: FloatArray, frame: int, rotations: FloatArray, root: FloatArray
    ) -> Solution:
        """One frame carried on from its neighbour's pose: the finish alone, which moves no more than it must."""
        head = root if self.free_root else locations[frame]
        this = wanted.part(slice(frame, frame + 1))
        result = Solution.empty(self.skeleton, 1, len(self.effectors))
        run = _Run(self, self._for_one, this, rotations[None], head[None])
        run.follow()
        run.settle()
        run.write(result, slice(0, 1))
        return result.single()

    @cached_property
    def frames_at_once(self) -> int:
        """How many frames are solved together."""
        is_chain = not self.free_root and chains.is_chain(self._for_many.bodies)
        return self.options.chunk * (_CHUNKS_OF_A_CHAIN if is_chain else 1)

    @cached_property
    def wishes_within_freedom(self) -> BoolArray:
        """Entry n: whether n targets, places and rotations, ask no more of the joints than they are free to give."""
        bodies = self._for_many.bodies
        freedom = sum(3 if body.limit is None else body.limit.freedom for body in bodies) + 3 * self.free_root
        return 3 * np.arange(2 * len(self.effectors) + 1) <= freedom

    @cached_property
    def spread_poses(self) -> tuple[FloatArray, FloatArray]:
        """(P, J, 4) a fixed sequence of poses that fill the limits, (P, E, 3) their effectors from the root's head."""
        count = len(self.skeleton)
        poses = np.tile([1.0, 0.0, 0.0, 0.0], (_SPREAD_POSES, count, 1))
        places = np.stack([spread_places(index + 1, count) for index in range(_SPREAD_POSES)])
        for name, limit in self.limits.items():
            bone = self.skeleton.index(name)
            inside = limit.clamp(many, many.quaternion(limit.sample(places[:, bone])))
            poses[:, bone] = many.stack([inside], _SPREAD_POSES)[:, 0]
        bodies = self._for_many.bodies
        local = [many.quaternion(poses[:, body.bone]) for body in bodies]
        pose = place_bodies(bodies, local, many.Vector((0.0, 0.0, 0.0)))
        points = effector_points(bodies, pose, len(with_partners(self.effectors)))
        return poses, many.stack(points[: len(self.effectors)], _SPREAD_POSES)

    @cached_property
    def _for_many(self) -> "_Kernel":
        return self._kernel(many, self._bodies(many))

    @cached_property
    def _for_one(self) -> "_Kernel":
        """The number system for a single pose: mathutils where there is one."""
        try:
            from . import one  # noqa: PLC0415  mathutils comes with Blender only
        except ImportError:
            return self._for_many
        return self._kernel(one, self._bodies(one))

    @cached_property
    def _one_chain(self) -> OneChain | None:
        """The short way to one pose, where there is nothing but a chain without limits."""
        kernel = self._for_one
        more = self.free_root or self.slides or kernel.measures.special or not chains.is_chain(kernel.bodies)
        if more or kernel.numbers is many:
            return None
        tolerance = float(kernel.measures.tolerances[0])
        return OneChain(kernel.numbers, kernel.bodies, self.skeleton, self.reaches, tolerance, self.options)

    def _bodies(self, numbers: ModuleType) -> list[Body]:
        points = moved_with(with_partners(self.effectors), self._factors)
        return build_bodies(self.shape, points, self.limits, numbers)

    def _kernel(self, numbers: ModuleType, bodies: list[Body]) -> "_Kernel":
        measures = make_measures(bodies, self.effectors, self.reaches.tolerance_lengths, self.options.tolerance)
        links = [
            link
            for link in find_links(bodies if numbers is many else self._for_many.bodies)
            if not {link.ball, *link.hinges}.intersection(measures.holders)
        ]
        sweeper = Sweeper(numbers, bodies, links, self.free_root, self.options.plain)
        finish = LeastSquares(bodies, measures, self.free_root)
        slides = find_slides(bodies, self.skeleton, self.slides)
        stretch = LeastSquares(bodies, measures, self.free_root, slides) if slides.bodies else None
        groups = Groups(numbers, bodies, measures, stretch or finish)
        bends = Bends(numbers, bodies, find_limbs(bodies, links, measures), finish)
        arrays = None if numbers is many else self._for_many
        bones, runs = [body.bone for body in bodies], straight_runs(bodies)
        return _Kernel(numbers, bodies, bones, runs, measures, sweeper, finish, stretch, bends, groups, arrays)


@dataclass(frozen=True)
class _Kernel:
    """What solves on one number system, made ready once; `arrays` does so on arrays where this one does not."""

    numbers: ModuleType
    bodies: list[Body]
    bones: list[int]
    runs: list[list[int]]
    measures: Measures
    sweeper: Sweeper
    finish: LeastSquares
    stretch: LeastSquares | None
    bends: Bends
    groups: Groups
    arrays: "_Kernel | None" = None


class _Run:
    """One chunk of frames on its way from the start pose to the result."""

    def __init__(
        self,
        solver: Solver,
        kernel: _Kernel,
        wanted: Wanted,
        rotations: FloatArray,
        locations: FloatArray,
    ) -> None:
        self.solver, self.kernel = solver, kernel
        self.numbers, self.bodies = kernel.numbers, kernel.bodies
        self.sweeper, self.finish = kernel.sweeper, kernel.finish
        self.groups, self.stretch = kernel.groups, kernel.stretch
        self.bends = kernel.bends if wanted.bending else None
        self.options = solver.options
        self.rotations, self.locations = self._legal(rotations), locations
        self.wanted, self.measures = wanted, kernel.measures
        self.seen = self.measures.seen(wanted)
        frames = len(wanted)
        local = self._local(self.rotations)
        self.work = Work(
            local=local,
            root=self.numbers.vector(locations),
            rest=local,
            bound=[self.numbers.scalar(np.zeros(frames)) > 0 for _ in self.bodies],
            targets=self.measures.targets(wanted, self.seen),
            weights=self.measures.weigh(wanted, self.seen),
            tolerances=np.broadcast_to(self.measures.tolerances, self.seen.shape),
            iterations=np.zeros(frames, dtype=np.int64),
            stationary=np.zeros(frames, dtype=bool),
            turns=np.where(np.isnan(wanted.turns), _NO_TURN, wanted.turns) if self.measures.oriented else wanted.turns,
            poles=wanted.poles,
            measures=self.measures,
            factors=self._slides_at_start(frames),
        )
        self.reached = self.work.points(self.numbers, self.bodies)

    def _slides_at_start(self, frames: int) -> dict[int, Scalar]:
        slides = () if self.stretch is None or self.stretch.slides is None else self.stretch.slides.bodies
        return {body: self.numbers.scalar(np.ones(frames)) for body in slides}

    def _local(self, rotations: FloatArray) -> list[Quaternion]:
        turns: list[Quaternion] = self.numbers.quaternions(rotations, self.kernel.bones)
        return turns

    def _legal(self, rotations: FloatArray) -> FloatArray:
        """(F, J, 4) with every limited bone inside its limit."""
        if not self.solver.limits:
            return rotations
        # One pose for all frames needs to be looked at once only.
        numbers, legal = self.numbers, np.array(rotations[:1] if rotations.strides[0] == 0 else rotations)
        bones, limits = self.solver.limits_by_bone
        inside = [
            limit.clamp(numbers, turn) for limit, turn in zip(limits, numbers.quaternions(legal, bones), strict=True)
        ]
        legal[:, bones] = numbers.stack(inside, len(legal))
        return np.broadcast_to(legal, rotations.shape)

    def solve(self, few: int = 0) -> IntArray:
        """Improve the frames that their start pose does not meet; none ends worse than it began.

        Returns:
            Frames that take long and are not done, where they are no more than a few: each further step costs much the
            same for one frame as for a hundred.
        """
        frames = np.flatnonzero(self.work.unmet(self.work.misses(self.reached)))
        left = frames[self._attempt(frames, few)]
        if len(left) > few:
            left = left[:0]
        if not (self.options.finish and self.options.restarts) or self.options.plain:
            return left
        frames = self._stuck(frames)
        if len(left):
            frames = np.setdiff1d(frames, left)
        if not len(frames):
            return left
        if len(frames) <= few:
            return np.union1d(left, frames)
        self._restart(frames)
        return left

    def follow(self) -> None:
        """Go from the start pose to the nearest one that meets the targets as well as can be."""
        if self.work.unmet(self.work.misses(self.reached)).any():
            self.finish.run(self.numbers, self.work)
            self.reached = self.work.points(self.numbers, self.bodies)

    def settle(self) -> None:
        """See to what comes after: slides give way, groups are met in their order, limbs turn toward their poles."""
        if self.options.plain:
            return
        if self.stretch is not None:
            self._slide(self.stretch)
        if self.groups.last and self.options.finish:
            self._solve_in_groups()
        if self.bends is not None:
            self.bends.settle(self.work)
        if self.groups.last or self.bends is not None or self.stretch is not None:
            self.reached = self.work.points(self.numbers, self.bodies)

    def _slide(self, stretch: LeastSquares) -> None:
        """Where not all is met at the lengths nearest to rest, let the slides give way."""
        frames = np.flatnonzero(self.work.unmet(self.work.errors(self.numbers, self.bodies)))
        if len(frames):
            part = self.work.part(self.numbers, frames)
            part.stationary[:] = False
            stretch.run(self.numbers, part)
            self.work.replace(self.numbers, frames, part)

    def _solve_in_groups(self) -> None:
        """Where not all is met, meet the groups in order: from the present pose, and if need be from the start."""
        frames = np.flatnonzero(self.work.unmet(self.work.errors(self.numbers, self.bodies)))
        if not len(frames):
            return
        part = self.work.part(self.numbers, frames)
        self.groups.in_order(part)
        self.work.replace(self.numbers, frames, part)
        again = np.flatnonzero(self.groups.unmet_above_last(part))
        if len(again):
            self._solve_first_group(frames[again])
        self.work.weights[frames] = self.groups.graded(self.work.weights[frames])

    def _solve_first_group(self, frames: IntArray) -> None:
        """Solve some frames anew from their start pose, the first group by itself before the others join in."""
        before = self.work.part(self.numbers, frames)
        part = before.part(self.numbers, np.arange(len(frames)))
        weights, part.weights = part.weights, self.groups.first_alone(part)
        part.local = self._local(self.rotations[frames])
        part.root = self.numbers.vector(self.locations[frames])
        part.factors = self._slides_at_start(len(frames))
        self._improve(part, aiming=True)
        part.weights = weights
        self.groups.in_order(part)
        better = np.flatnonzero(self.groups.no_worse(part, before))
        self.work.replace(self.numbers, frames[better], part.part(self.numbers, better))

    def _attempt(self, frames: IntArray, few: int) -> BoolArray:
        """Solve some frames from their start pose; which of them were left when they had become few."""
        if not len(frames):
            return np.zeros(0, dtype=bool)
        part = self.work.part(self.numbers, frames)
        points = self._improve(part, aiming=True, leave=few)
        self.work.iterations[frames] = part.iterations
        self._keep_better(frames, part, points)
        return part.unmet(part.misses(points)) & ~part.stationary

    def _keep_better(self, frames: IntArray, part: Work, points: FloatArray) -> None:
        """Take over, for some frames, poses that are no worse than what there is; (F, M, 3) points is what they do."""
        better = np.flatnonzero(part.cost(points) <= part.cost(self.reached[frames]))
        iterations = self.work.iterations[frames]
        kept = part if len(better) == len(frames) else part.part(self.numbers, better)
        self.work.replace(self.numbers, frames[better], kept)
        self.work.iterations[frames] = iterations
        self.reached[frames[better]] = points[better]

    def _restart(self, frames: IntArray) -> None:
        """Try other start poses, several at once, for frames whose limits seem to keep them from their targets."""
        if self.kernel.arrays is not None:
            self._restart_on_arrays(self.kernel.arrays)
            return
        for batch in _batches(self.options.restarts):
            several = max(1, self.solver.frames_at_once // len(batch))
            for first in range(0, len(frames), several):
                self._attempt_several(frames[first : first + several], batch)
            frames = self._stuck(frames)
            if not len(frames):
                return

    def _restart_on_arrays(self, kernel: "_Kernel") -> None:
        """The same for the one pose of this run, on arrays: there all start poses are solved at once."""
        run = _Run(self.solver, kernel, self.wanted, self.rotations, self.locations)
        run._take_over(self)
        run._restart(np.arange(1))
        self._take_over(run)

    def _take_over(self, other: "_Run") -> None:
        """Go on from the one pose of a run on the other number system."""
        turns = other.numbers.stack(other.work.local, 1)[0]
        self.work.local = [self.numbers.quaternion(turn[None]) for turn in turns]
        self.work.root = self.numbers.vector(other.numbers.stack([other.work.root], 1)[:, 0])
        self.work.iterations, self.work.stationary = other.work.iterations, other.work.stationary
        self.reached = self.work.points(self.numbers, self.bodies)

    def _attempt_several(self, frames: IntArray, batch: range) -> None:
        """Solve some frames from each restart of a batch, and keep the best of them where it is better."""
        numbers, count = self.numbers, len(frames)
        part = self.work.part(numbers, np.tile(frames, len(batch)))
        part.local = self._local(self._restart_poses(frames, batch))
        part.iterations[:] = 0
        points = self._improve(part, aiming=False, most_steps=_RESTART_STEPS)
        costs = part.cost(points).reshape(len(batch), count)
        self.work.iterations[frames] += part.iterations.reshape(costs.shape).sum(axis=0)
        best = part.part(numbers, costs.argmin(axis=0) * count + np.arange(count))
        if not best.stationary.all():
            self.finish.run(numbers, best)
        self._keep_better(frames, best, best.points(numbers, self.bodies))

    def _stuck(self, frames: IntArray) -> IntArray:
        """Frames that joint limits may have kept from their targets: other start poses may do better."""
        if not self.finish.limited or not len(frames):
            return frames[:0]
        frames = frames[self.work.unmet(self.work.misses(self.reached))[frames]]
        return frames[self._satisfiable(frames)] if len(frames) else frames

    def _satisfiable(self, frames: IntArray) -> BoolArray:
        """(F,) whether the targets are within reach of the lengths and no more than the joints are free to give."""
        seen = self.seen[frames]
        few = self.solver.wishes_within_freedom[seen.sum(axis=1)]
        return np.asarray(few & ~self._beyond_lengths(frames))

    def _beyond_lengths(self, frames: IntArray) -> BoolArray:
        seen = self.seen[frames]
        if self.solver.free_root:
            return np.zeros(len(seen), dtype=bool)
        count = self.measures.count
        distances = lengths(self.work.targets[frames, :count] - self.locations[frames, None])
        return self.solver.reaches.misses(distances, seen[:, :count])

    def _restart_poses(self, frames: IntArray, batch: range) -> FloatArray:
        """(R * F, J, 4) for R restarts of F frames, restart by restart.

        First the legal pose nearest to rest, then those of a fixed set that bring the effectors nearest.
        """
        poses = []
        if 0 in batch:
            rest = np.broadcast_to([1.0, 0.0, 0.0, 0.0], (len(frames), len(self.solver.skeleton), 4))
            poses.append(self._legal(rest))
        others = [restart - 1 for restart in batch if restart > 0]
        if others:
            spread, nearest = self.solver.spread_poses[0], self._nearest_poses(frames)
            poses += [spread[nearest[:, min(place, len(spread) - 1)]] for place in others]
        return np.concatenate(poses)

    def _nearest_poses(self, frames: IntArray) -> IntArray:
        """(F, P) the solver's spread poses in the order of how near they bring the effectors."""
        count = self.measures.count
        aims = self.work.targets[frames, :count] - self.locations[frames, None]
        shares = self.work.weights[frames, :count] * self.measures.in_space
        points = self.solver.spread_poses[1]
        misses = np.stack([(shares * ((point - aims) ** 2).sum(axis=2)).sum(axis=1) for point in points], axis=1)
        return np.asarray(np.argsort(misses, axis=1, kind="stable"))

    def _improve(self, work: Work, *, aiming: bool, most_steps: int | None = None, leave: int = 0) -> FloatArray:
        """Bring a start pose to its targets; limbs are aimed at their poles first, but not those of a restart.

        Returns:
            (F, M, 3) where the effectors are then, and what else is measured.
        """
        numbers, bodies = self.numbers, self.bodies
        bends = self.bends if aiming else None
        pulled = self.solver.free_root and self.measures.count == 1 and not self.measures.special
        alone = not self.measures.special and chains.is_chain(bodies)
        if pulled and alone:
            work.rest = work.local
            return chains.pull_chain(numbers, bodies, work)
        if self.solver.free_root and not pulled:
            self._align(work)
        if bends is not None:
            bends.bow(work)
        work.local = bend_straight_limbs(numbers, bodies, work.local, work.root, self.kernel.runs)
        if bends is not None:
            bends.aim(work)
        work.rest = work.local
        if alone:
            return chains.solve_chain(numbers, bodies, work, self.options)
        sweeping = self.options.plain or not self.options.finish
        self._sweep(work, self.options.max_sweeps if sweeping else min(self.options.max_sweeps, _OPENING_SWEEPS))
        if not sweeping:
            work.stationary[:] = False
            self.finish.run(numbers, work, most_steps, leave)
        return work.points(numbers, bodies)

    def _align(self, work: Work) -> None:
        """Turn and move the whole start pose to where it fits its targets best."""
        numbers, body = self.numbers, self.bodies[0]
        pose, count = work.pose(self.bodies), self.measures.count
        points = work.points_of(numbers, self.bodies, pose)[:, :count]
        weights = work.weights[:, :count] * self.measures.in_space
        frames = numbers.stack(pose.frames, len(points))
        turning = turning_spread(self.measures, frames, work.turns, work.weights) if self.measures.oriented else None
        rotation, centre, goes_to = align_root(points, work.targets[:, :count], weights, turning)
        turn, own = numbers.quaternion(rotation), body.rest_turn
        work.root = numbers.vector(goes_to) + turn @ (work.root - numbers.vector(centre))
        turned = (own.conjugated() @ turn @ own @ work.local[0]).normalized()
        work.local = [turned if body.limit is None else body.limit.clamp(numbers, turned), *work.local[1:]]

    def _sweep(self, work: Work, most: int) -> None:
        """Sweep until each frame is met, moves no more, or has had the most."""
        frames, part = np.arange(len(work.targets)), work
        pose = part.pose(self.bodies)
        goals, before = self._goals(part, pose), part.points_of(self.numbers, self.bodies, pose)
        for _ in range(most):
            self._sweep_once(part, pose, goals)
            points = part.points_of(self.numbers, self.bodies, pose)
            part.stationary = ~part.moved(points, before, _NO_CHANGE)
            going = part.unmet(part.misses(points)) & ~part.stationary
            before = points
            if not going.all():
                work.replace(self.numbers, frames, part)
                kept = np.flatnonzero(going)
                if not len(kept):
                    return
                frames, part, before = frames[kept], part.part(self.numbers, kept), points[kept]
                pose = part.pose(self.bodies)
                goals = self._goals(part, pose)
            elif self.measures.loops:
                goals = self._goals(part, pose)
        work.replace(self.numbers, frames, part)

    def _goals(self, work: Work, pose: Pose) -> Goals:
        """What the next sweep wants; it stays the same where no loop is closed."""
        numbers, ends = self.numbers, range(self.measures.ends)
        places, shares = self.measures.goals(numbers, self.bodies, pose, work.targets, work.weights)
        targets = [numbers.vector(places[:, point]) for point in ends]
        weights = [numbers.scalar(shares[:, point]) for point in ends]
        frames = self.measures.frames(numbers, work.turns, work.weights)
        return make_goals(numbers, self.bodies, targets, weights, frames)

    def _sweep_once(self, work: Work, pose: Pose, goals: Goals) -> None:
        """Sweep the bodies from the pose in which they stand; it changes in place."""
        turning = [
            rest if body.limit is None else local
            for body, rest, local in zip(self.bodies, work.rest, work.local, strict=True)
        ]
        work.local = self.sweeper.sweep(pose, turning, work.bound, goals)
        work.root = pose.heads[0]
        work.iterations += 1

    def write(self, result: Solution, part: slice) -> None:
        """Put the frames into their place in the result."""
        errors, bones = self.work.misses(self.reached), self.kernel.bones
        rotations = result.rotations[part]
        if len(bones) < rotations.shape[1]:
            rotations[:] = self.rotations
        self.numbers.write(self.work.local, rotations, bones)
        result.root_location[part] = self.numbers.stack([self.work.root], len(errors))[:, 0]
        count = self.measures.count
        result.errors[part] = np.where(self.seen[:, :count], errors[:, :count], np.nan)
        result.rotation_errors[part] = self._rotation_errors()
        result.iterations[part] = self.work.iterations
        result.lengths[part] = self.solver.shape.lengths
        for body, factor in self.work.factors.items():
            result.lengths[part, self.bodies[body].bone] *= factor
        if self.finish.limited:
            result.binding[part, bones] = binding(self.numbers, self.bodies, self.work.local, len(errors))
        result.status[part] = self._status(errors, result.binding[part].any(axis=1))

    def _rotation_errors(self) -> FloatArray:
        """(F, E) radians, NaN where no rotation is wanted."""
        if np.isnan(self.wanted.turns).all():
            return np.full(self.wanted.turns.shape[:2], np.nan)
        frames = self.work.pose(self.bodies).frames
        stacked = self.numbers.stack(frames, len(self.wanted))
        holders = holders_of(self.bodies, self.measures.ends)[: self.measures.count]
        return rotation_errors(stacked[:, holders], self.wanted.turns)

    def _status(self, errors: FloatArray, binds: BoolArray) -> IntArray:
        """(F,) how each frame ended."""
        status = np.where(self.seen.any(axis=1), Status.SOLVED, Status.UNSEEN)
        unmet = np.flatnonzero(self.work.unmet(errors))
        if len(unmet):
            status[unmet] = self._why_unmet(unmet, binds[unmet])
        return status

    def _why_unmet(self, frames: IntArray, binds: BoolArray) -> IntArray:
        """The status of frames on which not all is met; whether limits bind on them."""
        stationary, several = self.work.stationary[frames], self.seen[frames].sum(axis=1) > 1
        status = np.where(stationary & several, Status.FITTED, Status.STALLED)
        limited = np.flatnonzero(stationary & binds & self._satisfiable(frames))
        status[limited] = np.where(self._at_rest(frames[limited]), Status.LIMITED, Status.STALLED)
        return np.where(self._beyond_lengths(frames), Status.UNREACHABLE, status)

    def _at_rest(self, frames: IntArray) -> BoolArray:
        """Whether there is truly nothing left that a joint of some frames could do."""
        if not len(frames):
            return np.zeros(0, dtype=bool)
        return np.asarray(self.finish.steepness(self.numbers, self.work.part(self.numbers, frames)) < _LEFT_TO_DO)


def _batches(restarts: int) -> list[range]:
    """The restarts in the order in which they are tried: rest, a few, all others."""
    ends = [0, *(end for end in _BATCH_ENDS if end < restarts), restarts]
    return [range(*pair) for pair in pairwise(ends)]
