"""The least-squares finish: from FABRIK's pose to the nearest one that meets the targets as well as can be.

Minimises Σ weight · distance² over the joints' rotations (and a free root's place) by damped least squares
(Levenberg and Marquardt), every frame with a damping of its own. The algebra is numpy over frames; the
kinematics run on either number system. A joint that stands at its limit and is pushed outward is locked there and the
step worked out again, as often as another one meets its limit.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np

from .arrays import FloatArray, Quaternion
from .bodies import Body, Pose, carried_frame, effector_points, place_bodies
from .levers import Equations, Levers
from .walls import Walls
from .work import Work

_MOST_STEPS = 60
_FIRST_DAMPING = 1e-3
_EASE, _TIGHTEN = 0.1, 4.0
_LEAST_DAMPING, _MOST_DAMPING = 1e-9, 1e6
_STATIONARY = 3e-4
_LONGEST_TURN = 0.7
_MOST_LOCKS = 4
_TINY = 1e-30


class LeastSquares:
    """The finish for one set of bodies, E effectors on them, and a root whose place is fixed or free."""

    def __init__(self, bodies: Sequence[Body], count: int, free_root: bool) -> None:
        self.bodies = bodies
        self.count = count
        self.levers = Levers(bodies, count, free_root)
        self.limited = any(body.limit is not None for body in bodies)

    def run(self, numbers: ModuleType, work: Work) -> None:
        """Improve the frames in place until each is met or stationary; `work.stationary` says which are."""
        open_frames = np.arange(len(work.targets))
        damping = np.full(len(open_frames), _FIRST_DAMPING)
        part = work
        for _ in range(_MOST_STEPS):
            errors = part.errors(numbers, self.bodies)
            going = part.unmet(errors) & ~part.stationary
            if not going.all():
                work.replace(numbers, open_frames, part)
                kept = np.flatnonzero(going)
                open_frames, damping = open_frames[kept], damping[kept]
                part = part.part(numbers, kept)
            if not len(open_frames):
                return
            damping = self._step(numbers, part, damping)
        work.replace(numbers, open_frames, part)

    def _step(self, numbers: ModuleType, work: Work, damping: FloatArray) -> FloatArray:
        """One damped step on every frame, kept where it is better; returns the next damping."""
        pose = place_bodies(self.bodies, work.local, work.root)
        points = numbers.stack(effector_points(self.bodies, pose, self.count), len(damping))
        heads = numbers.stack(pose.heads, len(damping))
        before = work.cost(points)
        equations = self.levers.equations(points, heads, work.targets - points, work.weights)
        step = self._shortened(self._locked_step(numbers, work, pose, equations, damping))
        turns, shift = self._parts(step)
        trial = replace(work, local=self._turned(numbers, work, pose, turns), root=work.root + numbers.vector(shift))
        after = work.cost(trial.points(numbers, self.bodies))
        better = after < before
        work.iterations += 1
        frames = np.flatnonzero(better)
        if len(frames):
            work.replace(numbers, frames, trial.part(numbers, frames))
        work.stationary |= better & (before - after <= _STATIONARY * before) | (damping > _MOST_DAMPING)
        gain = (before - after) / np.maximum(equations.promise(step), _TINY)
        eased = damping * np.clip(1.0 - (2.0 * gain - 1.0) ** 3, _EASE, _TIGHTEN)
        return np.where(better, np.maximum(eased, _LEAST_DAMPING), damping * _TIGHTEN)

    def _locked_step(
        self, numbers: ModuleType, work: Work, pose: Pose, equations: Equations, damping: FloatArray
    ) -> FloatArray:
        """(F, D) the damped step that pushes no joint through a limit at which it stands."""
        if not self.limited:
            return equations.step(damping)
        walls = Walls(numbers, self.bodies, work.local, pose, len(damping))
        step = equations.step(damping, walls.open)
        frames = np.arange(len(damping))
        for _ in range(_MOST_LOCKS):
            pushed = walls.lock(step, frames)
            frames = frames[pushed]
            if not len(frames):
                break
            step[frames] = equations.part(frames).step(damping[frames], walls.open[frames])
        return step

    def _shortened(self, step: FloatArray) -> FloatArray:
        """(F, D) the step, as a whole made so short that no joint turns too far."""
        longest = np.linalg.norm(self._parts(step)[0], axis=2).max(axis=1)
        share = np.minimum(1.0, _LONGEST_TURN / np.maximum(longest, _LONGEST_TURN))
        return np.asarray(step * share[:, None])

    def _parts(self, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A step as (F, B, 3) rotation vectors in armature space and (F, 3) the root's shift."""
        turning = 3 * len(self.bodies)
        shift = step[:, turning:] if self.levers.free_root else np.zeros((len(step), 3))
        return step[:, :turning].reshape(len(step), -1, 3), shift

    def _turned(self, numbers: ModuleType, work: Work, pose: Pose, turns: FloatArray) -> list[Quaternion]:
        """Local rotations after each body has been turned by its share, the shares of those above included."""
        result = []
        for index, (body, rotation) in enumerate(zip(self.bodies, work.local, strict=True)):
            carried = carried_frame(body, pose)
            turn = numbers.turn_by(carried.conjugated() @ numbers.vector(turns[:, index]))
            turned = (turn @ rotation).normalized()
            result.append(turned if body.limit is None else body.limit.clamp(numbers, turned))
        return result
