"""Projected Levenberg-Marquardt: from FABRIK's pose to the nearest one that meets the targets as well as can be.

Minimises Σ weight · distance² over the joints' rotations (and a free root's place) inside the limits (Kanzow, Yamashita
and Fukushima 2004), every frame with a damping of its own (Nielsen 1999) on columns scaled as Moré (1978) does; a
wanted rotation is a third kind of distance. Limits at which joints stand and which the cost pushes them against are
active: the step leaves them alone, and whatever it takes beyond other limits is clamped; where that spoils it, it is
taken again with the clamped joints held there. The algebra is numpy over
frames; the kinematics run on either backend.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, IntArray, Quaternion, Scalar, lengths
from ..model.bodies import Body, Pose, carried_frame
from ..model.prismatic import Slides
from ..model.residuals import Residuals
from ..state import State
from .active_limits import LimitConstraints, cut_short
from .damping import MOST_DAMPING, Damping
from .equations import Equations
from .jacobian import Jacobian

# Nine in ten fits end within 30 iterations; those that take more gain next to nothing.
_MOST_ITERATIONS = 60
# A frame is stationary where a step gained and had predicted no more than this share of the cost, and the gradient is
# as good as nothing (`Equations.optimality`). Of 400 frames of a person whose five targets are 5 cm off, on to the
# optimum, 9 can be improved by more than 1 % and 3 by more than 10 %; with tight ankles 17 and 6. All of those 3 and 6
# were cut off by `_MOST_ITERATIONS`. A smaller share lets noisy fits wander in flat valleys (with 1e-4 bones turn
# 5° farther between two frames, for 0.02 % of the cost).
_SMALL_GAIN = 1e-3
_OPTIMAL = 3e-3
# Whatever the gain: what is left is rounding.
_NO_GRADIENT = 1e-6
# Radians that one joint turns in one step: beyond, the linear problem says little.
_LONGEST_TURN = 0.7
# The matrices of a block of frames fit into the processor's cache together, as numbers.
_BLOCK_NUMBERS = 500_000
_TINY = 1e-30


@dataclass(frozen=True)
class _Placed:
    """Where the bodies are, and the M vectors that are measured of them (F, M, 3)."""

    pose: Pose
    points: FloatArray

    def part(self, numbers: ModuleType, frames: IntArray) -> "_Placed":
        """The same on some of the frames."""
        heads = [numbers.take(head, frames) for head in self.pose.heads]
        turns = [numbers.take(frame, frames) for frame in self.pose.frames]
        return _Placed(Pose(heads, turns), self.points[frames])

    def back(self, numbers: ModuleType, frames: IntArray, before: "_Placed") -> "_Placed":
        """This state, in place, with some of the frames as they were before."""
        pose = Pose(
            _put_back(numbers, self.pose.heads, frames, before.pose.heads, len(self.points)),
            _put_back(numbers, self.pose.frames, frames, before.pose.frames, len(self.points)),
        )
        self.points[frames] = before.points[frames]
        return _Placed(pose, self.points)


@dataclass(frozen=True)
class _Linearisation:
    """What the equations of a step are made of, frame by frame (see `Jacobian.equations`), and the slides' factors."""

    points: FloatArray
    heads: FloatArray
    residuals: FloatArray
    weights: FloatArray
    hinges: FloatArray
    axes: FloatArray | None = None
    factors: FloatArray | None = None
    prior: tuple[FloatArray, FloatArray] | None = None

    def part(self, frames: slice) -> "_Linearisation":
        """The same on some of the frames."""
        arrays = {name: value[frames] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        prior = None if self.prior is None else (self.prior[0][frames], self.prior[1][frames])
        return _Linearisation(**arrays, prior=prior)


class _Step(NamedTuple):
    """(F, D) a step, (F,) by how much it is predicted to lower the cost, and (F,) the optimality before it."""

    change: FloatArray
    predicted: FloatArray
    optimality: FloatArray


class LeastSquares:
    """The least squares of one set of bodies, what is measured of them, and a root whose place is fixed or free."""

    def __init__(
        self, bodies: Sequence[Body], measures: Residuals, free_root: bool, slides: Slides | None = None
    ) -> None:
        self.bodies, self.slides = bodies, slides
        self.jacobian = Jacobian(bodies, measures, free_root, slides.bodies if slides else ())
        self.limited = any(body.limit is not None for body in bodies)

    def run(self, numbers: ModuleType, work: State, most_steps: int | None = None) -> None:
        """Improve the frames in place until each is met or stationary; `work.stationary` says which are.

        Args:
            numbers: the number system.
            work: the frames.
            most_steps: after so many steps it ends in any case.
        """
        open_frames = np.arange(len(work.targets))
        damping = Damping.first(len(open_frames), len(self.bodies))
        part, state = work, self._state(numbers, work)
        for _ in range(_MOST_ITERATIONS if most_steps is None else most_steps):
            going = part.unfinished(part.misses(state.points)) & ~part.stationary
            if not going.any():
                break
            if not going.all():
                work.replace(numbers, open_frames, part)
                kept = np.flatnonzero(going)
                open_frames, damping = open_frames[kept], damping.part(kept)
                part, state = part.part(numbers, kept), state.part(numbers, kept)
            state, damping = self._iterate(numbers, part, state, damping)
        work.replace(numbers, open_frames, part)

    def optimality(self, numbers: ModuleType, work: State) -> FloatArray:
        """(F,) how much one joint by itself could still bring the effectors nearer inside its limit.

        0: whichever is turned, nothing gets better. 1: one could turn straight toward all that is missing.
        """
        damping = Damping.first(len(work.targets), len(self.bodies))
        return self._step(numbers, work, self._state(numbers, work), damping).optimality

    def _state(self, numbers: ModuleType, work: State) -> _Placed:
        pose = work.pose(self.bodies)
        return _Placed(pose, work.points_of(numbers, self.bodies, pose))

    def _iterate(self, numbers: ModuleType, work: State, state: _Placed, damping: Damping) -> tuple[_Placed, Damping]:
        """One damped step on every frame, kept where it is better; the state after it and the next damping."""
        step = self._step(numbers, work, state, damping)
        turns, shift = self._parts(step.change)
        local, root = self._turned(numbers, work, state.pose, turns), work.root + numbers.vector(shift)
        factors = self._slid(numbers, work, step.change)
        turned = replace(work, local=local, root=root, factors=factors)
        trial = self._state(numbers, turned)
        before, after = work.cost(state.points), turned.cost(trial.points)
        better = after < before
        worse, count = np.flatnonzero(~better), len(before)
        met, moved = cut_short(numbers, self.bodies, state.pose, (work.local, local), turns, worse)
        work.local = _put_back(numbers, local, worse, work.local, count)
        work.root = _put_back(numbers, [root], worse, [work.root], count)[0]
        slid = _put_back(numbers, list(factors.values()), worse, list(work.factors.values()), count)
        work.factors = dict(zip(factors, slid, strict=True))
        work.iterations += 1
        small = (before - after <= _SMALL_GAIN * before) & (step.predicted <= _SMALL_GAIN * before)
        work.stationary |= better & small & (step.optimality <= _OPTIMAL)
        work.stationary |= (step.optimality <= _NO_GRADIENT) | (damping.value > MOST_DAMPING)
        gain = (before - after) / np.maximum(step.predicted, _TINY)
        return trial.back(numbers, worse, state), damping.after(better, gain, met, moved)

    def _step(self, numbers: ModuleType, work: State, state: _Placed, damping: Damping) -> _Step:
        """The step for each frame's damping, in blocks whose matrices stay in the cache."""
        count, cost = len(damping.value), work.cost(state.points)
        problem = self._linearised(numbers, work, state)
        limits = LimitConstraints(numbers, self.bodies, work.local, state.pose, count) if self.limited else None
        step = _Step(np.empty((count, self.jacobian.columns)), np.empty(count), np.empty(count))
        block = max(1, _BLOCK_NUMBERS // self.jacobian.numbers_a_frame)
        for first in range(0, count, block):
            frames = slice(first, first + block)
            equations = self._equations(problem.part(frames))
            if limits is not None:
                equations = limits.projected(equations, frames, cost[frames])
            scaled = equations.holding_step(damping.part(frames))
            change = equations.widened(scaled)
            longest = lengths(self._parts(change)[0]).max(axis=1)
            share = np.minimum(1.0, _LONGEST_TURN / np.maximum(longest, _LONGEST_TURN))[:, None]
            step.change[frames] = change * share
            step.predicted[frames] = equations.predicted(scaled * share)
            step.optimality[frames] = equations.optimality(cost[frames])
        return step

    def _linearised(self, numbers: ModuleType, work: State, state: _Placed) -> _Linearisation:
        frames, residuals = len(work.targets), work.targets - state.points
        heads = numbers.stack(state.pose.heads, frames)
        hinges = self.jacobian.dofs.hinge_axes(numbers, state.pose, frames)
        plain = _Linearisation(state.points, heads, residuals, work.weights, hinges)
        if work.prior is not None:
            pairs = zip(self.bodies, work.prior.away(work.local), strict=True)
            expected = numbers.stack([carried_frame(body, state.pose) @ away for body, away in pairs], frames)
            plain = replace(plain, prior=(expected, work.prior.weights))
        if self.slides is None:
            return plain
        along = numbers.Vector((0.0, 1.0, 0.0))
        axes = numbers.stack([state.pose.frames[body] @ along for body in self.slides.bodies], frames)
        return replace(plain, axes=axes, factors=self._factors(work))

    def _equations(self, problem: _Linearisation) -> Equations:
        """The least-squares problem of a step; slides at an end that are pushed outward do not move."""
        equations = self.jacobian.equations(
            problem.points,
            problem.heads,
            problem.residuals,
            problem.weights,
            problem.hinges,
            problem.axes,
            problem.prior,
        )
        if self.slides is None or problem.factors is None:
            return equations
        columns = np.ones((len(problem.points), self.jacobian.columns))
        columns[:, self.jacobian.slid] = ~self.slides.locked(problem.factors, equations.push()[:, self.jacobian.slid])
        return equations.kept(columns)

    def _factors(self, work: State) -> FloatArray:
        """(F, S) of the bodies that slide."""
        return np.stack([np.broadcast_to(factor, len(work.targets)) for factor in work.factors.values()], axis=1)

    def _slid(self, numbers: ModuleType, work: State, step: FloatArray) -> dict[int, Scalar]:
        """The factors of the slides after a step."""
        if self.slides is None:
            return work.factors
        moved = self.slides.clamp(self._factors(work) + step[:, self.jacobian.slid])
        return {body: numbers.scalar(moved[:, place]) for place, body in enumerate(self.slides.bodies)}

    def _parts(self, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A step as (F, B, 3) rotation vectors in armature space and (F, 3) the root's shift."""
        turning = 3 * len(self.bodies)
        shift = step[:, turning : turning + 3] if self.jacobian.free_root else np.zeros((len(step), 3))
        return step[:, :turning].reshape(len(step), -1, 3), shift

    def _turned(self, numbers: ModuleType, work: State, pose: Pose, turns: FloatArray) -> list[Quaternion]:
        """Local rotations after each body has been turned by its share, the shares of those above included."""
        result = []
        for index, (body, rotation) in enumerate(zip(self.bodies, work.local, strict=True)):
            carried = carried_frame(body, pose)
            turn = numbers.exp_map(carried.conjugated() @ numbers.vector(turns[:, index]))
            turned = (turn @ rotation).normalized()
            result.append(turned if body.limit is None else body.limit.clamp(numbers, turned))
        return result


def _put_back(numbers: ModuleType, values: list[Any], frames: IntArray, before: list[Any], count: int) -> list[Any]:
    """Values, in place, as they were before on some of the frames."""
    if not len(frames):
        return values
    pairs = zip(values, before, strict=True)
    return [numbers.put(new, frames, numbers.take(old, frames), count) for new, old in pairs]
