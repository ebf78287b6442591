"""One chunk of frames on its way from the start pose to the result: sweeps, the finish, and restarts."""

from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray, Quaternion, Scalar, lengths
from .fabrik import chain as chains
from .fabrik.passes import Goals, Sweeper, make_goals
from .fabrik.start import align_root, bend_straight_limbs
from .least_squares.active_limits import binding
from .least_squares.solve import LeastSquares
from .model.bodies import Body, Pose
from .model.residuals import Measures, holders_of, rotation_errors, turning_spread
from .model.targets import Wanted
from .solution import Solution, Status
from .state import Work
from .strategy.bend_targets import Bends
from .strategy.priorities import Groups

if TYPE_CHECKING:
    from .solve import Solver

_OPENING_SWEEPS = 5
_NO_CHANGE = 0.01
_RESTART_STEPS = 25
_LEFT_TO_DO = 0.05
_BATCH_ENDS = (1, 5)
_NO_TURN = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class Kernel:
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
    arrays: "Kernel | None" = None


class Run:
    """One chunk of frames on its way from the start pose to the result."""

    def __init__(
        self,
        solver: "Solver",
        kernel: Kernel,
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

    def _restart_on_arrays(self, kernel: "Kernel") -> None:
        """The same for the one pose of this run, on arrays: there all start poses are solved at once."""
        run = Run(self.solver, kernel, self.wanted, self.rotations, self.locations)
        run._take_over(self)
        run._restart(np.arange(1))
        self._take_over(run)

    def _take_over(self, other: "Run") -> None:
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
