"""The least-squares finish: from FABRIK's pose to the nearest one that meets the targets as well as can be.

Minimises Σ weight · distance² over the joints' rotations (and a free root's place) by damped least squares
(Levenberg and Marquardt), every frame with a damping of its own; a wanted rotation is a third kind of distance. The
algebra is numpy over frames; the kinematics run on either number system. A joint that stands at its limit and is pushed
outward is locked there and the step worked out again, as often as another one meets its limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray, Quaternion, Scalar, lengths
from ..model.bodies import Body, Pose, carried_frame
from ..model.prismatic import Slides
from ..model.residuals import Residuals
from ..state import State
from .active_limits import AT_LIMIT, Walls
from .jacobian import Equations, Levers

_MOST_STEPS = 60
_FIRST_DAMPING = 1e-3
_EASE, _TIGHTEN = 0.1, 4.0
_LEAST_DAMPING, _MOST_DAMPING = 1e-9, 1e6
_STATIONARY = 1e-3
_LONGEST_TURN = 0.7
_MOST_LOCKS = 4
# The matrices of a block of frames fit into the processor's cache together, as numbers.
_BLOCK_NUMBERS = 500_000
_TINY = 1e-30


@dataclass(frozen=True)
class _State:
    """Where the bodies are, and the M vectors that are measured of them (F, M, 3)."""

    pose: Pose
    points: FloatArray

    def part(self, numbers: ModuleType, frames: IntArray) -> "_State":
        """The same on some of the frames."""
        heads = [numbers.take(head, frames) for head in self.pose.heads]
        turns = [numbers.take(frame, frames) for frame in self.pose.frames]
        return _State(Pose(heads, turns), self.points[frames])

    def back(self, numbers: ModuleType, frames: IntArray, before: "_State") -> "_State":
        """This state, in place, with some of the frames as they were before."""
        pose = Pose(
            _put_back(numbers, self.pose.heads, frames, before.pose.heads, len(self.points)),
            _put_back(numbers, self.pose.frames, frames, before.pose.frames, len(self.points)),
        )
        self.points[frames] = before.points[frames]
        return _State(pose, self.points)


@dataclass(frozen=True)
class _Problem:
    """What the equations of a step are made of, frame by frame (see `Levers.equations`), and the slides' factors."""

    points: FloatArray
    heads: FloatArray
    misses: FloatArray
    weights: FloatArray
    hinges: FloatArray
    axes: FloatArray | None = None
    factors: FloatArray | None = None

    def part(self, frames: IntArray) -> "_Problem":
        """The same on some of the frames."""
        arrays = {name: value[frames] for name, value in vars(self).items() if value is not None}
        return _Problem(**arrays)


class LeastSquares:
    """The finish for one set of bodies, what is measured of them, and a root whose place is fixed or free."""

    def __init__(
        self, bodies: Sequence[Body], measures: Residuals, free_root: bool, slides: Slides | None = None
    ) -> None:
        self.bodies, self.slides = bodies, slides
        self.levers = Levers(bodies, measures, free_root, slides.bodies if slides else ())
        self.limited = any(body.limit is not None for body in bodies)

    def run(self, numbers: ModuleType, work: State, most_steps: int | None = None, leave: int = 0) -> None:
        """Improve the frames in place until each is met or stationary; `work.stationary` says which are.

        Args:
            numbers: the number system.
            work: the frames.
            most_steps: after so many steps it ends in any case.
            leave: it ends when no more than so many frames are left to do.
        """
        open_frames = np.arange(len(work.targets))
        damping = np.full(len(open_frames), _FIRST_DAMPING)
        part, state = work, self._state(numbers, work)
        for _ in range(_MOST_STEPS if most_steps is None else most_steps):
            going = part.unmet(part.misses(state.points)) & ~part.stationary
            if not going.any():
                break
            if not going.all():
                work.replace(numbers, open_frames, part)
                kept = np.flatnonzero(going)
                open_frames, damping = open_frames[kept], damping[kept]
                part, state = part.part(numbers, kept), state.part(numbers, kept)
            if len(open_frames) <= leave:
                break
            state, damping = self._step(numbers, part, state, damping)
        work.replace(numbers, open_frames, part)

    def steepness(self, numbers: ModuleType, work: State) -> FloatArray:
        """(F,) how much one body by itself could still bring the effectors nearer inside its limit.

        0: whichever is turned, nothing gets better. 1: one could turn straight toward all that is missing.
        """
        state, bodies = self._state(numbers, work), len(self.bodies)
        equations = self._equations(self._problem(numbers, work, state))
        walls = Walls(numbers, self.bodies, work.local, state.pose, len(work.targets))
        force = equations.force()
        walls.begin(force, np.arange(len(force)))
        pull = force[:, : 3 * bodies].reshape(-1, bodies, 3, 1)
        pulls = lengths((walls.open @ pull)[..., 0])
        scale = np.sqrt(work.cost(state.points))[:, None] * equations.arms()
        return np.asarray((pulls / np.maximum(scale, _TINY)).max(axis=1))

    def _state(self, numbers: ModuleType, work: State) -> "_State":
        pose = work.pose(self.bodies)
        return _State(pose, work.points_of(numbers, self.bodies, pose))

    def _step(
        self, numbers: ModuleType, work: State, state: "_State", damping: FloatArray
    ) -> tuple["_State", FloatArray]:
        """One damped step on every frame, kept where it is better; the state after it and the next damping."""
        step, promise = self._steps(numbers, work, state, damping)
        turns, shift = self._parts(step)
        local, root = self._turned(numbers, work, state.pose, turns), work.root + numbers.vector(shift)
        factors = self._slid(numbers, work, step)
        trial = self._state(numbers, replace(work, local=local, root=root, factors=factors))
        before, after = work.cost(state.points), work.cost(trial.points)
        better = after < before
        worse, count = np.flatnonzero(~better), len(before)
        work.local = _put_back(numbers, local, worse, work.local, count)
        work.root = _put_back(numbers, [root], worse, [work.root], count)[0]
        slid = _put_back(numbers, list(factors.values()), worse, list(work.factors.values()), count)
        work.factors = dict(zip(factors, slid, strict=True))
        work.iterations += 1
        work.stationary |= better & (before - after <= _STATIONARY * before) | (damping > _MOST_DAMPING)
        gain = (before - after) / np.maximum(promise, _TINY)
        eased = damping * np.clip(1.0 - (2.0 * gain - 1.0) ** 3, _EASE, _TIGHTEN)
        damping = np.where(better, np.maximum(eased, _LEAST_DAMPING), damping * _TIGHTEN)
        return trial.back(numbers, worse, state), damping

    def _steps(
        self, numbers: ModuleType, work: State, state: "_State", damping: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(F, D) the damped steps, and (F,) what they promise; in blocks whose matrices stay in the cache."""
        problem, count = self._problem(numbers, work, state), len(damping)
        near = _LONGEST_TURN + AT_LIMIT
        walls = Walls(numbers, self.bodies, work.local, state.pose, count, near) if self.limited else None
        step, promise = np.empty((count, self.levers.columns)), np.empty(count)
        block = max(1, _BLOCK_NUMBERS // self.levers.numbers_a_frame)
        for first in range(0, count, block):
            frames = np.arange(first, min(first + block, count))
            equations = self._equations(problem.part(frames))
            step[frames] = self._shortened(self._locked_step(equations, walls, damping[frames], frames))
            promise[frames] = equations.promise(step[frames])
        return step, promise

    def _problem(self, numbers: ModuleType, work: State, state: "_State") -> "_Problem":
        frames, misses = len(work.targets), work.targets - state.points
        heads = numbers.stack(state.pose.heads, frames)
        hinges = self.levers.ways.hinge_axes(numbers, state.pose, frames)
        if self.slides is None:
            return _Problem(state.points, heads, misses, work.weights, hinges)
        along = numbers.Vector((0.0, 1.0, 0.0))
        axes = numbers.stack([state.pose.frames[body] @ along for body in self.slides.bodies], frames)
        return _Problem(state.points, heads, misses, work.weights, hinges, axes, self._factors(work))

    def _equations(self, problem: "_Problem") -> Equations:
        """The least-squares problem of a step; slides at an end that are pushed outward do not move."""
        equations = self.levers.equations(
            problem.points, problem.heads, problem.misses, problem.weights, problem.hinges, problem.axes
        )
        if self.slides is None or problem.factors is None:
            return equations
        columns = np.ones((len(problem.points), self.levers.columns))
        columns[:, self.levers.slid] = ~self.slides.locked(problem.factors, equations.force()[:, self.levers.slid])
        return equations.locked(columns)

    def _factors(self, work: State) -> FloatArray:
        """(F, S) of the bodies that slide."""
        return np.stack([np.broadcast_to(factor, len(work.targets)) for factor in work.factors.values()], axis=1)

    def _slid(self, numbers: ModuleType, work: State, step: FloatArray) -> dict[int, Scalar]:
        """The factors of the slides after a step."""
        if self.slides is None:
            return work.factors
        moved = self.slides.clamp(self._factors(work) + step[:, self.levers.slid])
        return {body: numbers.scalar(moved[:, place]) for place, body in enumerate(self.slides.bodies)}

    def _locked_step(
        self, equations: Equations, walls: Walls | None, damping: FloatArray, every: IntArray
    ) -> FloatArray:
        """(N, D) the damped step of a block of frames that pushes no joint through a limit at which it stands."""
        if walls is None:
            return equations.step(damping)
        walls.begin(equations.force(), every)
        step = equations.open_step(damping, walls.open[every], walls.moved[every])
        frames, part = np.arange(len(damping)), equations
        for _ in range(_MOST_LOCKS):
            present = step[frames]
            force = part.force_after(present, damping[frames])
            changed = walls.settle(self._shortened(present), force, every[frames])
            frames, part = frames[changed], part.part(np.flatnonzero(changed))
            if not len(frames):
                break
            where = every[frames]
            step[frames] = part.open_step(damping[frames], walls.open[where], walls.moved[where])
        return step

    def _shortened(self, step: FloatArray) -> FloatArray:
        """(F, D) the step, as a whole made so short that no joint turns too far."""
        longest = lengths(self._parts(step)[0]).max(axis=1)
        share = np.minimum(1.0, _LONGEST_TURN / np.maximum(longest, _LONGEST_TURN))
        return np.asarray(step * share[:, None])

    def _parts(self, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A step as (F, B, 3) rotation vectors in armature space and (F, 3) the root's shift."""
        turning = 3 * len(self.bodies)
        shift = step[:, turning : turning + 3] if self.levers.free_root else np.zeros((len(step), 3))
        return step[:, :turning].reshape(len(step), -1, 3), shift

    def _turned(self, numbers: ModuleType, work: State, pose: Pose, turns: FloatArray) -> list[Quaternion]:
        """Local rotations after each body has been turned by its share, the shares of those above included."""
        result = []
        for index, (body, rotation) in enumerate(zip(self.bodies, work.local, strict=True)):
            carried = carried_frame(body, pose)
            turn = numbers.turn_by(carried.conjugated() @ numbers.vector(turns[:, index]))
            turned = (turn @ rotation).normalized()
            result.append(turned if body.limit is None else body.limit.clamp(numbers, turned))
        return result


def _put_back(numbers: ModuleType, values: list[Any], frames: IntArray, before: list[Any], count: int) -> list[Any]:
    """Values, in place, as they were before on some of the frames."""
    if not len(frames):
        return values
    pairs = zip(values, before, strict=True)
    return [numbers.put(new, frames, numbers.take(old, frames), count) for new, old in pairs]
