"""Projected Levenberg-Marquardt: from FABRIK's pose to the nearest one that meets the targets as well as can be.

Minimises Σ weight · distance² over the joints' rotations (and a free root's place) inside the limits (Kanzow, Yamashita
and Fukushima 2004), every frame with a damping of its own (Nielsen 1999) on columns scaled as Moré (1978) does; a
wanted rotation is a third kind of distance. Limits at which joints stand and which the cost pushes them against are
active: the step leaves them alone, and whatever it takes beyond other limits is clamped; where that spoils it, it is
taken again with the clamped joints held there. All of it is numpy over frames, whichever backend the passes run on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..arrays import TINY, BoolArray, FloatArray, IntArray, lengths
from ..backend.array import Quaternion, Vector
from ..model.bodies import Body
from ..model.options import Options
from ..model.prismatic import Slides
from ..model.residuals import Residuals
from ..state import Objective, State
from .active_limits import LimitConstraints, cut_short
from .damping import MOST_DAMPING, Damping
from .equations import Equations
from .jacobian import Jacobian
from .joints import Joints, Placed, by_frame, by_row

_MOST_ITERATIONS = Options.most_steps
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
_BLOCK_NUMBERS = 120_000


@dataclass
class _Fit(Objective):
    """F frames under way.

    Attributes:
        local: (4, B, F) local rotations.
        root: (F, 3) the root's head.
        factors: (F, S) of the lengths of bodies that slide.
    """

    local: FloatArray
    root: FloatArray
    factors: FloatArray

    @classmethod
    def of(cls, state: State) -> "_Fit":
        """The frames of a state."""
        backend, frames = state.backend, len(state.targets)
        return cls(
            **state.objective(slice(None)),
            local=by_row(backend.stack(state.local, frames)),
            root=backend.stack([state.root], frames)[:, 0],
            factors=backend.row(list(state.factors.values()), frames),
        )

    def part(self, frames: IntArray) -> "_Fit":
        """Some of the frames."""
        return _Fit(
            **self.objective(frames),
            local=self.local[..., frames],
            root=self.root[frames],
            factors=self.factors[frames],
        )

    def put(self, frames: IntArray, part: "_Fit") -> None:
        """Take over the pose and the progress of some of the frames, in place."""
        self.local[..., frames] = part.local
        for name in ("root", "factors", "iterations", "stationary"):
            getattr(self, name)[frames] = getattr(part, name)

    def give(self, state: State) -> None:
        """Put it all into a state."""
        backend = state.backend
        state.local = backend.quaternions(self.local.transpose(2, 1, 0), range(self.local.shape[1]))
        state.root = backend.vector(self.root)
        columns = zip(state.factors, self.factors.T, strict=True)
        state.factors = {body: backend.scalar(factor) for body, factor in columns}
        state.iterations[:], state.stationary[:] = self.iterations, self.stationary

    def local_rotations(self) -> FloatArray:
        """(F, B, 4) of the bodies."""
        return self.local.transpose(2, 1, 0)


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
    """(F,) the cost before a step, (F, D) the step, (F,) its predicted gain, and (F,) the optimality before it."""

    cost: FloatArray
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
        self.joints = Joints(bodies, measures.ends)
        self.limited = any(body.limit is not None for body in bodies)

    def run(self, state: State, most_steps: int | None = None) -> None:
        """Improve the frames in place until each is met or stationary; `state.stationary` says which are.

        Args:
            state: the frames.
            most_steps: after so many steps it ends in any case.
        """
        whole = fit = _Fit.of(state)
        open_frames = np.arange(len(fit.targets))
        damping, placed = Damping.first(len(open_frames), len(self.bodies)), self._place(fit)
        for _ in range(_MOST_ITERATIONS if most_steps is None else most_steps):
            going = fit.unfinished(fit.misses(placed.points)) & ~fit.stationary
            if not going.all():
                whole.put(open_frames, fit)
                kept = np.flatnonzero(going)
                open_frames, damping = open_frames[kept], damping.part(kept)
                fit, placed = fit.part(kept), placed.part(kept)
            if not len(open_frames):
                break
            fit, placed, damping = self._iterate(fit, placed, damping)
        whole.put(open_frames, fit)
        whole.give(state)

    def optimality(self, state: State) -> FloatArray:
        """(F,) how much one joint by itself could still bring the effectors nearer inside its limit.

        0: whichever is turned, nothing gets better. 1: one could turn straight toward all that is missing.
        """
        fit = _Fit.of(state)
        return self._step(fit, self._place(fit), Damping.first(len(fit.targets), len(self.bodies))).optimality

    def binding(self, state: State) -> BoolArray:
        """(F, B) whether a body stands at a side of its limit; a fixed one always does."""
        return self.joints.binding(by_row(state.local_rotations()))

    def _place(self, fit: _Fit) -> Placed:
        factors = None
        if self.slides is not None:
            factors = np.ones(fit.local.shape[1:])
            factors[list(self.slides.bodies)] = fit.factors.T
        orientations, carried, heads = self.joints.place(fit.local, fit.root, factors)
        points = self.joints.points(orientations, heads, factors)
        held = orientations[:, list(fit.residuals.holders)].transpose(2, 1, 0)
        points = fit.residuals.measured(points, held, fit.target_rotations)
        return Placed(orientations, carried, heads, points)

    def _iterate(self, fit: _Fit, placed: Placed, damping: Damping) -> tuple[_Fit, Placed, Damping]:
        """One damped step on every frame, kept where it is better; where it leads, and the next damping."""
        step = self._step(fit, placed, damping)
        rotation_vectors, shift = self._parts(step.change)
        local = self.joints.turned(fit.local, placed.carried, rotation_vectors)
        trial = replace(fit, local=local, root=fit.root + shift, factors=self._slid(fit.factors, step.change))
        trial.iterations = fit.iterations + 1
        after = self._place(trial)
        before_cost, after_cost = step.cost, trial.cost(after.points)
        better = after_cost < before_cost
        worse = np.flatnonzero(~better)
        met, moved = cut_short(placed.carried, fit.local, local, rotation_vectors, worse if self.limited else worse[:0])
        for now, old in ((trial.local, fit.local), (trial.root.T, fit.root.T), (trial.factors.T, fit.factors.T)):
            now[..., worse] = old[..., worse]
        after.put_back(worse, placed)
        gained = before_cost - after_cost
        small = (gained <= _SMALL_GAIN * before_cost) & (step.predicted <= _SMALL_GAIN * before_cost)
        trial.stationary = (
            fit.stationary
            | (better & small & (step.optimality <= _OPTIMAL))
            | (step.optimality <= _NO_GRADIENT)
            | (damping.value > MOST_DAMPING)
        )
        return trial, after, damping.after(better, gained / np.maximum(step.predicted, TINY), met, moved)

    def _step(self, fit: _Fit, placed: Placed, damping: Damping) -> _Step:
        """The step for each frame's damping, in blocks whose matrices stay in the cache."""
        count, cost = len(damping.value), fit.cost(placed.points)
        problem = self._linearised(fit, placed)
        limits = LimitConstraints(self.joints, fit.local, placed.carried) if self.limited else None
        step = _Step(cost, np.empty((count, self.jacobian.columns)), np.empty(count), np.empty(count))
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

    def _linearised(self, fit: _Fit, placed: Placed) -> _Linearisation:
        linear = _Linearisation(
            placed.points,
            np.ascontiguousarray(placed.heads.transpose(2, 1, 0)),
            fit.targets - placed.points,
            fit.weights,
            self.jacobian.dofs.hinge_axes(placed.orientations),
        )
        if fit.prior is not None:
            away = Vector(by_row(fit.prior.away(fit.local_rotations())))
            linear = replace(linear, prior=(by_frame(Quaternion(placed.carried) @ away), fit.prior.weights))
        if self.slides is None:
            return linear
        sliding = Quaternion(placed.orientations[:, list(self.slides.bodies)])
        return replace(linear, axes=by_frame(sliding @ Vector((0.0, 1.0, 0.0))), factors=fit.factors)

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

    def _slid(self, factors: FloatArray, step: FloatArray) -> FloatArray:
        """(F, S) the factors of the slides after a step."""
        return factors if self.slides is None else self.slides.clamp(factors + step[:, self.jacobian.slid])

    def _parts(self, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A step as (F, B, 3) rotation vectors in armature space and (F, 3) the root's shift."""
        turning = 3 * len(self.bodies)
        shift = step[:, turning : turning + 3] if self.jacobian.free_root else np.zeros((len(step), 3))
        return step[:, :turning].reshape(len(step), -1, 3), shift
