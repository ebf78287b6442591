"""The least-squares finish: from FABRIK's pose to the nearest one that meets the targets as well as can be.

Minimises Σ weight · distance² over the joints' rotations (and a free root's place) by damped least squares
(Levenberg and Marquardt), every frame with a damping of its own. The algebra is numpy over frames; the
kinematics run on either number system.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np

from .arrays import FloatArray, Quaternion
from .bodies import Body, Pose, carried_frame, effector_points, place_bodies
from .levers import Levers
from .work import Work

_MOST_STEPS = 60
_FIRST_DAMPING = 1e-3
_EASE, _TIGHTEN = 0.2, 5.0
_MOST_DAMPING = 1e6
_STATIONARY = 1e-4
_LONGEST_TURN = 0.7
_TINY = 1e-30


class LeastSquares:
    """The finish for one set of bodies, E effectors on them, and a root whose place is fixed or free."""

    def __init__(self, bodies: Sequence[Body], count: int, free_root: bool) -> None:
        self.bodies = bodies
        self.count = count
        self.levers = Levers(bodies, count, free_root)

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
        turns, shift = self._shortened(self._damped(points, heads, work.targets - points, work.weights, damping))
        trial = replace(work, local=self._turned(numbers, work, pose, turns), root=work.root + numbers.vector(shift))
        after = work.cost(trial.points(numbers, self.bodies))
        better = after < before
        work.iterations += 1
        frames = np.flatnonzero(better)
        if len(frames):
            work.replace(numbers, frames, trial.part(numbers, frames))
        work.stationary |= better & (before - after <= _STATIONARY * before) | (damping > _MOST_DAMPING)
        return np.where(better, damping * _EASE, damping * _TIGHTEN)

    def _shortened(self, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A step as (F, B, 3) rotation vectors in armature space and (F, 3) the root's shift, none turning too far."""
        turning = 3 * len(self.bodies)
        turns = step[:, :turning].reshape(len(step), -1, 3)
        shift = step[:, turning:] if self.levers.free_root else np.zeros((len(step), 3))
        longest = np.linalg.norm(turns, axis=2).max(axis=1)
        share = np.minimum(1.0, _LONGEST_TURN / np.maximum(longest, _LONGEST_TURN))[:, None]
        return turns * share[..., None], shift * share

    def _damped(
        self, points: FloatArray, heads: FloatArray, misses: FloatArray, weights: FloatArray, damping: FloatArray
    ) -> FloatArray:
        """(F, D) the damped least-squares step, by whichever of the two normal equations is smaller."""
        if 3 * self.count < self.levers.columns:
            root = np.sqrt(weights)
            rows = self.levers.jacobian(points, heads, root)
            across = np.swapaxes(rows, 1, 2)
            residual = (misses * root[..., None]).reshape(len(points), -1, 1)
            return np.asarray((across @ _solved(rows @ across, residual, damping * self._share))[..., 0])
        square, slope = self.levers.normal_equations(points, heads, misses, weights)
        return np.asarray(_solved(square, slope[..., None], damping)[..., 0])

    @property
    def _share(self) -> float:
        """The dual matrix has the same trace on fewer rows: this makes its mean diagonal the other's."""
        return 3 * self.count / self.levers.columns

    def _turned(self, numbers: ModuleType, work: Work, pose: Pose, turns: FloatArray) -> list[Quaternion]:
        """Local rotations after each body has been turned by its share, the shares of those above included."""
        result = []
        for index, (body, rotation) in enumerate(zip(self.bodies, work.local, strict=True)):
            carried = carried_frame(body, pose)
            turn = numbers.turn_by(carried.conjugated() @ numbers.vector(turns[:, index]))
            result.append((turn @ rotation).normalized())
        return result


def _solved(square: FloatArray, right: FloatArray, damping: FloatArray) -> FloatArray:
    """Solve with `damping` times the mean diagonal added to the diagonal."""
    size = square.shape[1]
    scale = np.trace(square, axis1=1, axis2=2) / size + _TINY
    square[:, range(size), range(size)] += (damping * scale)[:, None]
    return np.asarray(np.linalg.solve(square, right))
