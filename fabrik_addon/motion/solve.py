"""Frames of a motion that follow changed goals, each as near to its own pose as can be.

For every frame the posture term is least, with that frame's own pose as the preferred one, among the poses that meet
the goals: Gauss-Newton steps with the goals as constraints, of which those that are dragged give way a little, until
they are met exactly at the end. Limits are sides that a step does not pass: what a joint can't do there the others make
up for. A frame depends on its own pose and goals alone, so a smooth change of the goals is one of the motion.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np

from ..core.arrays import BoolArray, FloatArray, times
from ..core.kernel.bodies import Bodies, Pose, joint_axes
from ..core.kernel.posture import Masses, PostureTerm
from ..core.limits.base import Limit
from ..core.model.effector import Effector
from ..core.model.kinematics import forward_kinematics
from ..core.model.skeleton import Skeleton
from ..core.rotations import product, quaternion_from_rotation_vector
from .joints import LONGEST_TURN, PASSED, FrameLimits
from .poses import MotionPoses, smoothed, widened
from .step import Problem
from .terms import FrameGoals

# By how much rows give way to a force of 1: dragged ones while goals and posture come into balance (then a pull of a
# decimetre is some millimetres short, and what can't be reached does no harm), and all of them at the end.
_YIELDING: Final = 3e-3
_MET: Final = 1e-7
# Steps of the first part, at most: from its own pose a hand goes 20 cm in four to 1e-4 of what a step turns.
_MOST_STEPS, _STEPS_FROM_NEAR, _MOST_CORRECTIONS = 6, 3, 12
# Radians: a step in which no joint turns farther is the last one.
_LAST_TURN: Final = 1e-3
# How often a step that passes a limit is worked out again.
_MOST_ROUNDS: Final = 6
# A share of the skeleton's size: goals are met to this.
_TOLERANCE: Final = 1e-6
# The last part begins with this much giving way, a tenth of it after each step that is better and ten times after one
# that is not; what is held counts so much more than what is dragged.
_FIRST_YIELDING, _EASED, _PRICE = 1e-5, 0.1, 1e2
# It ends where so much is not better either. On the demo's walk a head that is to go 10 cm up, which is out of reach,
# comes 4 to 5 cm up; if it ended with what dragged rows give way by at first, 2 to 4, as each frame happens to.
_GIVEN_UP: Final = 0.1
# What a calmer motion may have a point that is out of reach fall short by beside a half more, as a share of the size:
# limbs that are kept bent are as much shorter.
_FALLS_SHORT: Final = 2e-3
# Frames at once, so that the matrices stay in the processor's cache.
_BLOCK: Final = 48


@dataclass(frozen=True)
class MotionModel:
    """What follows over frames.

    Attributes:
        skeleton: J bones. effectors: E points on them; those of the lowest priorities are held before others are met.
        masses: of the bones. limits: by bone. turning: names of the bones that may turn.
        free_root: whether the root may go along.
    """

    skeleton: Skeleton
    effectors: Sequence[Effector]
    masses: Masses
    limits: Mapping[str, Limit]
    turning: Collection[str]
    free_root: bool = False

    def axes(self, bone: int) -> FloatArray:
        """(k, 3) what a joint may turn about, in the frame that carries it."""
        name = self.skeleton.names[bone]
        return joint_axes(self.limits.get(name), self.masses.factors[bone] if name in self.turning else np.inf)


class MotionSolver:
    """A model over F frames, made ready once to be solved for target after target."""

    def __init__(
        self, model: MotionModel, rotations: FloatArray, roots: FloatArray, shares: FloatArray | None = None
    ) -> None:
        """Stay near (F, J, 4) local rotations and the root's head at (F, 3).

        shares: (F,) how much of a change frames get. Where their own poses are beyond limits, they are brought inside
        as much, so that what begins and ends beyond does not jump; all the way when None.
        """
        self._skeleton = model.skeleton
        self._tolerance = _TOLERANCE * model.skeleton.size
        parts = [slice(first, first + _BLOCK) for first in range(0, len(rotations), _BLOCK)]
        inside = np.ones(len(rotations)) if shares is None else shares
        self._blocks = [(part, _Block(model, rotations[part], roots[part], inside[part])) for part in parts]
        self._own = MotionPoses(rotations, roots, np.zeros((len(rotations), len(model.effectors))))

    @property
    def bones(self) -> list[int]:
        """The bones that may turn, as places in the skeleton."""
        return self._blocks[0][1].turned

    @cached_property
    def own_points(self) -> FloatArray:
        """(F, E, 3) where the effectors are in the frames' own poses."""
        return np.concatenate([block.goals.points(block.own) for _, block in self._blocks])

    @cached_property
    def own_rotations(self) -> FloatArray:
        """(F, O, 4) how those bones are turned then that an effector's rotation counts for."""
        return np.concatenate([block.goals.rotations(block.own) for _, block in self._blocks])

    def solve(self, targets: FloatArray, rotations: FloatArray, start: MotionPoses | None = None) -> MotionPoses:
        """The poses for (F, E, 3) targets and (F, O, 4) rotations, NaN where there is none; from a near start."""
        most = _MOST_STEPS if start is None else _STEPS_FROM_NEAR
        return self._by_blocks(most, targets, rotations, start or self._own)

    def calmed(self, targets: FloatArray, rotations: FloatArray, found: MotionPoses, now: int) -> MotionPoses:
        """Poses found for goals on frames that follow each other, made no more sudden than the take is there.

        Where a limit comes into play two frames may go different ways: then each has the mean of the changes about it.
        The mean has the goals not quite, and what brings it onto them is little: on the demo's walk a hand that goes
        20 cm up at frame 150 was 3.0 times as sudden as the take there, and is 1.0 times. Where that is not enough
        limbs come to be straight: they stop a little before, and the dragged points get out of the way, but at the
        place `now`: hips that turn by 0.3 were up to 2.4 times as sudden, a head out of reach 11 times; of 104
        drags of hips and 104 of the head all are within 1.2 but two, of 2.1, at a frame on which a knee has to be
        straight.
        """
        most = self._suddenness(self._own)
        if self._suddenness(found) <= most:
            return found
        calm = self._by_blocks(0, targets, rotations, smoothed(found, self._own))
        best = self._calmer(found, calm, calm.errors.max() <= max(2.0 * found.errors.max(), self._tolerance))
        if self._suddenness(best) <= most:
            return best
        eased = self._within_reach(targets, rotations, found, now)
        kept = self._by_blocks(_MOST_STEPS, *eased, self._own, bent=True)
        short = float(np.linalg.norm(self._missing(found, targets, rotations)[now]))
        is_reached = short <= self._tolerance
        allowed = self._tolerance if is_reached else 1.5 * short + _FALLS_SHORT * self._skeleton.size
        for each in (kept, self._by_blocks(0, *eased, smoothed(kept, self._own), bent=True)):
            there = np.linalg.norm(self._missing(each, targets, rotations)[now])
            best = self._calmer(best, each, bool(there <= allowed))
        return best

    def _calmer(self, found: MotionPoses, other: MotionPoses, is_as_good: bool) -> MotionPoses:
        """The other poses where they are as good, and calmer."""
        return other if is_as_good and self._suddenness(other) < self._suddenness(found) else found

    def _within_reach(
        self, targets: FloatArray, rotations: FloatArray, found: MotionPoses, now: int
    ) -> tuple[FloatArray, FloatArray]:
        """(F, E, 3) and (F, O, 4) goals that limbs which are kept bent meet: without what they miss about a frame."""
        probe = self._by_blocks(0, targets, rotations, found, bent=True)
        count = targets.shape[1] * 3
        missing = widened(self._missing(probe, targets, rotations), now)
        rotation_vectors = missing[:, count:].reshape(*rotations.shape[:2], 3)
        back = quaternion_from_rotation_vector(-rotation_vectors)
        return targets - missing[:, :count].reshape(targets.shape), product(back, rotations)

    def _missing(self, poses: MotionPoses, targets: FloatArray, rotations: FloatArray) -> FloatArray:
        """(F, R) what poses have dragged rows miss of their goals; zero of what is held."""
        parts = [
            block.missing(poses.rotations[part], poses.roots[part], targets[part], rotations[part])
            for part, block in self._blocks
        ]
        return np.concatenate(parts)

    def _suddenness(self, poses: MotionPoses) -> float:
        """The most that the speed of a joint changes from frame to frame."""
        heads = forward_kinematics(self._skeleton, poses.rotations, poses.roots)[..., :3, 3]
        return float(np.abs(np.diff(heads, 2, axis=0)).max(initial=0.0))

    def _by_blocks(
        self, most: int, targets: FloatArray, rotations: FloatArray, start: MotionPoses, *, bent: bool = False
    ) -> MotionPoses:
        """The poses for goals, after so many steps toward the balance of goals and posture at most; limbs kept bent."""
        found = [
            block.solve(targets[part], rotations[part], start.rotations[part], start.roots[part], most, bent=bent)
            for part, block in self._blocks
        ]
        return MotionPoses(*(np.concatenate([getattr(each, name) for each in found]) for name in vars(found[0])))


class _Block:
    """So many frames as are solved together."""

    def __init__(self, model: MotionModel, rotations: FloatArray, roots: FloatArray, shares: FloatArray) -> None:
        self.goals = FrameGoals(model.skeleton, model.effectors)
        bones = self.goals.bones
        axes = [model.axes(bone) for bone in bones]
        self.bodies = Bodies(model.skeleton, bones, axes, model.free_root)
        self.turned = [bone for bone, own in zip(bones, axes, strict=True) if len(own)]
        self._make_limits = partial(FrameLimits, self.bodies, model.limits, rotations[:, bones], shares)
        self._limits = self._inside = self._make_limits(bent=False)
        self._rotations = rotations
        self._posture = PostureTerm(self.bodies, model.masses, rotations, roots)
        self._tolerance = _TOLERANCE * self._posture.size
        self.own = self.bodies.pose(rotations[:, bones], roots)

    @cached_property
    def _bent(self) -> FrameLimits:
        """The limits by which limbs stay bent."""
        return self._make_limits(bent=True)

    def missing(self, poses: FloatArray, roots: FloatArray, targets: FloatArray, rotations: FloatArray) -> FloatArray:
        """(F, R) how far dragged rows are from goals in (F, J, 4) poses; zero of what is held."""
        residual = self.goals.residual(self.bodies.pose(poses[:, self.goals.bones], roots), targets, rotations)
        return np.where(self.goals.hard, 0.0, np.nan_to_num(residual))

    def solve(
        self,
        targets: FloatArray,
        rotations: FloatArray,
        start: FloatArray,
        start_roots: FloatArray,
        most: int,
        *,
        bent: bool,
    ) -> MotionPoses:
        """The poses for goals, from (F, J, 4) and (F, 3), after so many steps toward the balance at most."""
        self._inside = self._bent if bent else self._limits
        pose = self.bodies.pose(self._inside.clamped(start[:, self.goals.bones]), start_roots)
        for _ in range(most):
            pose, longest = self._balanced(pose, self.goals.residual(pose, targets, rotations))
            if longest < _LAST_TURN:
                break
        pose = self._met(pose, targets, rotations, np.ones(len(self.goals.hard), dtype=bool))
        pose = self._met(pose, targets, rotations, self.goals.hard)
        found = self._rotations.copy()
        found[:, self.goals.bones] = pose.local
        errors = np.linalg.norm(targets - self.goals.points(pose), axis=2)
        return MotionPoses(found, pose.root, errors)

    def _balanced(self, pose: Pose, residual: FloatArray) -> tuple[Pose, float]:
        """A step toward goals and posture in balance, and the farthest that a joint turned in it."""
        yielding = np.where(self.goals.hard, _MET, np.full((len(residual), 1), _YIELDING))
        return self._limited(pose, self._problem(pose, residual, yielding))

    def _met(self, pose: Pose, targets: FloatArray, rotations: FloatArray, chosen: BoolArray) -> Pose:
        """The chosen rows (R,) as well as can be, by the least mass moved; what is held gives way last.

        Levenberg and Marquardt's steps in the metric of the posture term: what rows give way by is the damping.
        """
        residual = np.where(chosen, self.goals.residual(pose, targets, rotations), np.nan)
        hard, price = self.goals.hard, np.where(self.goals.hard, _PRICE, 1.0)
        yielding = np.full(len(residual), _FIRST_YIELDING)
        for _ in range(_MOST_CORRECTIONS):
            missing = np.nan_to_num(np.abs(residual)).max(axis=1)
            if not ((missing > self._tolerance) & (yielding < _GIVEN_UP)).any():
                break
            problem = self._problem(pose, residual, np.where(hard, _MET, yielding[:, None]))
            trial, _ = self._limited(pose, replace(problem, slope=np.zeros(problem.slope.shape)))
            left = np.where(chosen, self.goals.residual(trial, targets, rotations), np.nan)
            better = np.nansum(price * left**2, axis=1) < np.nansum(price * residual**2, axis=1)
            pose, residual = _chosen(better, trial, pose), np.where(better[:, None], left, residual)
            yielding = np.where(better, np.maximum(_EASED * yielding, _MET), yielding / _EASED)
        return pose

    def _problem(self, pose: Pose, residual: FloatArray, yielding: FloatArray) -> Problem:
        """The problem of a step in which the goals' residual (F, R), NaN where nothing is asked for, is made good."""
        motions = self.bodies.motions(pose)
        matrix, gradient = self._posture.equations(self._posture.away(pose), pose, motions)
        rows = self.goals.rows(self.bodies, pose, motions) * ~np.isnan(residual)[..., None]
        return Problem(matrix, -gradient, rows, np.nan_to_num(residual), yielding)

    def _limited(self, pose: Pose, problem: Problem) -> tuple[Pose, float]:
        """The pose after a problem's step, inside the limits, and the farthest that a joint turned in it."""
        turning = self.bodies.turning
        step = problem.step()
        constraints = self._inside.constraints(pose.local)
        if constraints is not None:
            self._hold_back(problem, step, *constraints)
        longest = np.abs(step[:, :turning]).max(axis=1, initial=0.0)
        share = np.minimum(1.0, LONGEST_TURN / np.maximum(longest, LONGEST_TURN))
        local, root = self.bodies.moved(pose, step * share[:, None])
        return self.bodies.pose(self._inside.clamped(local), root), float((longest * share).max())

    def _hold_back(self, problem: Problem, step: FloatArray, normals: FloatArray, gaps: FloatArray) -> None:
        """Work steps (F, D) out again, in place, that would pass constraints: (F, W, Dt) and (F, W) radians up to them.

        Those that are passed are stood at, and let go again where they would pull: a primal-dual active set
        (Hintermüller, Ito and Kunisch, SIAM Journal on Optimization 13, 2002).
        """
        turning = normals.shape[2]
        active = np.zeros(gaps.shape, dtype=bool)
        for _ in range(_MOST_ROUNDS):
            push = times(normals, step[:, :turning]) - gaps
            now = push > np.where(active, 0.0, PASSED)
            where = np.flatnonzero((now != active).any(axis=1))
            if not len(where):
                break
            active[where] = now[where]
            step[where] = problem.part(where).standing_at(normals[where] * now[where][..., None], gaps[where]).step()


def _chosen(better: BoolArray, trial: Pose, before: Pose) -> Pose:
    """The trial on some of the frames, what was before on the others."""
    pairs = [(getattr(trial, name), getattr(before, name)) for name, value in vars(trial).items() if value is not None]
    return Pose(*(np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old) for new, old in pairs))
