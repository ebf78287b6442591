"""Frames of a motion that follow changed goals, each as near to its own pose as can be.

For every frame the posture term is least, with that frame's own pose as the preferred one, among the poses that meet
the goals: Gauss-Newton steps with the goals as constraints, of which those that are dragged give way a little, until
they are met exactly at the end. Limits are sides that a step does not pass: what a joint can't do there the others make
up for. A frame depends on its own pose and goals alone, so a smooth change of the goals is one of the motion.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..core.arrays import BoolArray, FloatArray, IntArray
from ..core.backend import array as many
from ..core.limits.base import Limit
from ..core.model.effector import Effector
from ..core.model.kinematics import forward_kinematics
from ..core.model.skeleton import Skeleton
from ..core.posture.body import Stance
from ..core.posture.mass import Masses
from ..core.rotations import (
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from .bodies import FrameBodies
from .poses import MotionPoses, smoothed
from .terms import FrameGoals, FramePosture

# By how much rows give way to a force of 1: dragged ones while goals and posture come into balance (then a pull of a
# decimetre is some millimetres short, and what can't be reached does no harm), and all of them at the end.
_YIELDING: Final = 3e-3
_MET: Final = 1e-7
# Steps of the first part, at most: from its own pose a hand goes 20 cm in four to 1e-4 of what a step turns.
_MOST_STEPS, _STEPS_FROM_NEAR, _MOST_CORRECTIONS = 6, 3, 12
# Radians: a step in which no joint turns farther is the last one; none turns farther than the longest.
_LAST_TURN, _LONGEST_TURN = 1e-3, 0.6
# Radians by which a step must pass a limit to be worked out again, how firmly joints are then held there beside the
# posture's own weights (of about 0.1), and how often.
_PASSED, _HELD, _MOST_ROUNDS = 1e-6, 1e3, 6
# A share of the skeleton's size: goals are met to this.
_TOLERANCE: Final = 1e-6
# The last part begins with this much giving way, a tenth of it after each step that is better and ten times after one
# that is not; what is held counts so much more than what is dragged.
_FIRST_YIELDING, _EASED, _PRICE = 1e-5, 0.1, 1e2
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
        limit = self.limits.get(name)
        if name not in self.turning or not np.isfinite(self.masses.factors[bone]):
            return np.zeros((0, 3))
        if limit is not None and limit.freedom == 0:
            return np.zeros((0, 3))
        return np.eye(3) if limit is None or limit.turn_axis is None else np.array([limit.turn_axis])


class MotionSolver:
    """A model over F frames, made ready once to be solved for target after target."""

    def __init__(
        self, model: MotionModel, rotations: FloatArray, roots: FloatArray, shares: FloatArray | None = None
    ) -> None:
        """Stay near (F, J, 4) local rotations and the root's head at (F, 3).

        shares: (F,) how much of a change frames get. Where their own poses are beyond limits, they are brought inside
        as much, so that what begins and ends beyond does not jump; all the way when None.
        """
        self.rotations, self.roots, self._skeleton = rotations, roots, model.skeleton
        parts = [slice(first, first + _BLOCK) for first in range(0, len(rotations), _BLOCK)]
        inside = np.ones(len(rotations)) if shares is None else shares
        self._blocks = [_Block(model, rotations[part], roots[part], inside[part]) for part in parts]

    @property
    def bones(self) -> list[int]:
        """The bones that may turn, as places in the skeleton."""
        return self._blocks[0].turned

    def own_points(self) -> FloatArray:
        """(F, E, 3) where the effectors are in the frames' own poses."""
        return np.concatenate([block.goals.points(block.own) for block in self._blocks])

    def own_rotations(self) -> FloatArray:
        """(F, O, 4) how those bones are turned then that an effector's rotation counts for."""
        return np.concatenate([block.goals.rotations(block.own) for block in self._blocks])

    def solve(self, targets: FloatArray, rotations: FloatArray, start: MotionPoses | None = None) -> MotionPoses:
        """The poses for (F, E, 3) targets and (F, O, 4) rotations, NaN where there is none; from a near start."""
        if start is None:
            own = MotionPoses(self.rotations, self.roots, np.empty(0))
            return self._by_blocks(_MOST_STEPS, targets, rotations, own)
        return self._by_blocks(_STEPS_FROM_NEAR, targets, rotations, start)

    def calmed(self, targets: FloatArray, rotations: FloatArray, found: MotionPoses) -> MotionPoses:
        """Poses found for goals on frames that follow each other, each from the mean of the changes about it.

        Where a limit comes into play, or a limb is straight, two frames may go different ways. The mean has the goals
        not quite, and what brings it onto them is little: on the demo's walk a hand that goes 20 cm up at frame 150 was
        3.0 times as sudden as the take there, and is 1.0 times. Where it is not calmer, or was calm, they stay.
        """
        sudden = self._suddenness(found)
        if sudden <= self._suddenness(MotionPoses(self.rotations, self.roots, found.errors)):
            return found
        calm = self._by_blocks(0, targets, rotations, smoothed(found, self.rotations, self.roots))
        missed = calm.errors.max() > max(2.0 * found.errors.max(), _TOLERANCE * self._skeleton.size)
        return found if missed or self._suddenness(calm) > sudden else calm

    def _suddenness(self, poses: MotionPoses) -> float:
        """The most that the speed of a joint changes from frame to frame."""
        heads = forward_kinematics(self._skeleton, poses.rotations, poses.roots)[..., :3, 3]
        return float(np.abs(np.diff(heads, 2, axis=0)).max(initial=0.0))

    def _by_blocks(self, most: int, targets: FloatArray, rotations: FloatArray, start: MotionPoses) -> MotionPoses:
        """The poses for goals, after so many steps toward the balance of goals and posture at most."""
        found, first = [], 0
        for block in self._blocks:
            part = slice(first, first + len(block.own.root))
            begun = start.rotations[part], start.roots[part]
            found.append(block.solve(targets[part], rotations[part], *begun, most))
            first = part.stop
        return MotionPoses(*(np.concatenate([getattr(each, name) for each in found]) for name in vars(found[0])))


class _Block:
    """So many frames as are solved together."""

    def __init__(self, model: MotionModel, rotations: FloatArray, roots: FloatArray, shares: FloatArray) -> None:
        self.goals = FrameGoals(model.skeleton, model.effectors)
        bones = self.goals.bones
        axes = [model.axes(bone) for bone in bones]
        self.bodies = FrameBodies(model.skeleton, bones, axes, model.free_root)
        self.turned = [bone for bone, own in zip(bones, axes, strict=True) if len(own)]
        limits = [model.limits.get(model.skeleton.names[bone]) for bone in bones]
        self._limits = [
            _Joint(body, limit, rotations[:, bones[body]], shares)
            for body, limit in enumerate(limits)
            if limit is not None and self.bodies.counts[body]
        ]
        self._rotations = rotations
        self._posture = FramePosture(self.bodies, model.masses, rotations, roots)
        self._tolerance = _TOLERANCE * self._posture.size
        self.own = self.bodies.stand(rotations[:, bones], roots)

    def solve(
        self, targets: FloatArray, rotations: FloatArray, start: FloatArray, start_roots: FloatArray, most: int
    ) -> MotionPoses:
        """The poses for goals, from (F, J, 4) and (F, 3), after so many steps toward the balance at most."""
        stance = self.bodies.stand(self._clamped(start[:, self.goals.bones]), start_roots)
        for _ in range(most):
            stance, longest = self._balanced(stance, self.goals.residual(stance, targets, rotations))
            if longest < _LAST_TURN:
                break
        stance = self._met(stance, targets, rotations, np.ones(len(self.goals.hard), dtype=bool))
        stance = self._met(stance, targets, rotations, self.goals.hard)
        found = self._rotations.copy()
        found[:, self.goals.bones] = stance.local
        errors = np.linalg.norm(targets - self.goals.points(stance), axis=2)
        return MotionPoses(found, stance.root, errors)

    def _balanced(self, stance: Stance, residual: FloatArray) -> tuple[Stance, float]:
        """A step toward goals and posture in balance, and the farthest that a joint turned in it."""
        yielding = np.where(self.goals.hard, _MET, np.full((len(residual), 1), _YIELDING))
        return self._limited(stance, self._problem(stance, residual, yielding))

    def _met(self, stance: Stance, targets: FloatArray, rotations: FloatArray, chosen: BoolArray) -> Stance:
        """The chosen rows (R,) as well as can be, by the least mass moved; what is held gives way last.

        Levenberg and Marquardt's steps in the metric of the posture term: what rows give way by is the damping.
        """
        residual = np.where(chosen, self.goals.residual(stance, targets, rotations), np.nan)
        hard, price = self.goals.hard, np.where(self.goals.hard, _PRICE, 1.0)
        yielding = np.full(len(residual), _FIRST_YIELDING)
        for _ in range(_MOST_CORRECTIONS):
            missing = np.nan_to_num(np.abs(residual)).max(axis=1)
            if not ((missing > self._tolerance) & (yielding < _YIELDING)).any():
                break
            problem = self._problem(stance, residual, np.where(hard, _MET, yielding[:, None]))
            trial, _ = self._limited(stance, replace(problem, slope=np.zeros(problem.slope.shape)))
            left = np.where(chosen, self.goals.residual(trial, targets, rotations), np.nan)
            better = np.nansum(price * left**2, axis=1) < np.nansum(price * residual**2, axis=1)
            stance, residual = _chosen(better, trial, stance), np.where(better[:, None], left, residual)
            yielding = np.where(better, np.maximum(_EASED * yielding, _MET), yielding / _EASED)
        return stance

    def _problem(self, stance: Stance, residual: FloatArray, yielding: FloatArray) -> "_Problem":
        """The problem of a step in which the goals' residual (F, R), NaN where nothing is asked for, is made good."""
        motions = self.bodies.motions(stance)
        matrix, gradient = self._posture.frame_equations(self.bodies, stance, motions)
        rows = self.goals.rows(self.bodies, stance, motions) * ~np.isnan(residual)[..., None]
        return _Problem(matrix, -gradient, rows, np.nan_to_num(residual), yielding)

    def _limited(self, stance: Stance, problem: "_Problem") -> tuple[Stance, float]:
        """The stance after a problem's step, inside the limits, and the farthest that a joint turned in it."""
        turning = self.bodies.turning
        step = problem.step()
        walls = self._walls(stance.local) if self._limits else None
        if walls is not None:
            self._hold_back(problem, step, *walls)
        longest = np.abs(step[:, :turning]).max(axis=1, initial=0.0)
        share = np.minimum(1.0, _LONGEST_TURN / np.maximum(longest, _LONGEST_TURN))
        local, root = self.bodies.moved(stance, step * share[:, None])
        return self.bodies.stand(self._clamped(local), root), float((longest * share).max())

    def _hold_back(self, problem: "_Problem", step: FloatArray, normals: FloatArray, room: FloatArray) -> None:
        """Work steps (F, D) out again, in place, that would pass walls: (F, W, Dt) and (F, W) radians up to them.

        Walls that are passed are stood at, and those let go that would pull: a primal-dual active set
        (Hintermüller, Ito and Kunisch, SIAM Journal on Optimization 13, 2002).
        """
        turning = normals.shape[2]
        active = np.zeros(room.shape, dtype=bool)
        for _ in range(_MOST_ROUNDS):
            push = (normals @ step[:, :turning, None])[..., 0] - room
            now = push > np.where(active, 0.0, _PASSED)
            where = np.flatnonzero((now != active).any(axis=1))
            if not len(where):
                break
            active[where] = now[where]
            step[where] = problem.part(where).standing_at(normals[where] * now[where][..., None], room[where]).step()

    def _walls(self, local: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """The sides of limits near (F, B, 4) rotations: (F, W, Dt) in the turning columns, and (F, W) up to them."""
        body_of, rows, room = self.bodies.body_of[: self.bodies.turning], [], []
        for joint in self._limits:
            columns = np.flatnonzero(body_of == joint.body)
            for normal, slack in joint.walls(local[:, joint.body]):
                row = np.zeros((len(local), len(body_of)))
                row[:, columns] = normal @ self.bodies.axes[columns].T
                rows.append(row)
                room.append(np.maximum(slack, 0.0))
        return (np.stack(rows, axis=1), np.stack(room, axis=1)) if rows else None

    def _clamped(self, local: FloatArray) -> FloatArray:
        """(F, B, 4) inside the limits."""
        result = local.copy()
        for joint in self._limits:
            result[:, joint.body] = joint.clamped(local[:, joint.body])
        return result


class _Joint:
    """A limited joint on F frames: its limit, turned by what of its own poses' way beyond they may keep."""

    def __init__(self, body: int, limit: Limit, own: FloatArray, shares: FloatArray) -> None:
        """own: (F, 4) the poses. shares: (F,) how much of it they may not keep."""
        self.body, self._limit = body, limit
        self._beyond: FloatArray | None = None
        away = rotation_vector_from_quaternion(product(own, conjugate(self.clamped(own))))
        if np.abs(away).max() > _PASSED and limit.turn_axis is None:
            self._beyond = quaternion_from_rotation_vector((1.0 - shares)[:, None] * away)

    def clamped(self, local: FloatArray) -> FloatArray:
        """(F, 4) inside."""
        inside = many.stack([self._limit.clamp(many, many.quaternion(self._seen(local)))], len(local))[:, 0]
        return inside if self._beyond is None else product(self._beyond, inside)

    def walls(self, local: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
        """(F, 3) normals in the frame that carries the joint, and (F,) radians up to each side that is near."""
        for wall in self._limit.walls(many, many.quaternion(self._seen(local)), _LONGEST_TURN):
            yield many.stack([wall.normal], len(local))[:, 0], many.row([wall.slack], len(local))[:, 0]

    def _seen(self, local: FloatArray) -> FloatArray:
        return local if self._beyond is None else product(conjugate(self._beyond), local)


@dataclass
class _Problem:
    """½ x·H x − g·x with rows to be met: (F, D, D), (F, D), (F, R, D), (F, R), and (F, R) how each gives way."""

    matrix: FloatArray
    slope: FloatArray
    rows: FloatArray
    residual: FloatArray
    yielding: FloatArray

    def part(self, frames: IntArray) -> "_Problem":
        """The same on some of the frames."""
        return _Problem(
            self.matrix[frames], self.slope[frames], self.rows[frames], self.residual[frames], self.yielding[frames]
        )

    def standing_at(self, walls: FloatArray, room: FloatArray) -> "_Problem":
        """The same on N frames, with (N, W, Dt) walls stood at, zero where not, that are (N, W) away."""
        turning = walls.shape[2]
        matrix, slope, across = self.matrix.copy(), self.slope.copy(), _HELD * np.swapaxes(walls, 1, 2)
        matrix[:, :turning, :turning] += across @ walls
        slope[:, :turning] += (across @ room[..., None])[..., 0]
        return _Problem(matrix, slope, self.rows, self.residual, self.yielding)

    def step(self) -> FloatArray:
        """(F, D) the least."""
        across = np.swapaxes(self.rows, 1, 2)
        found = np.linalg.solve(self.matrix, np.concatenate([self.slope[..., None], across], axis=2))
        free, by_rows = found[..., :1], found[..., 1:]
        own = self.rows @ by_rows
        np.einsum("fii->fi", own)[...] += self.yielding
        forces = np.linalg.solve(own, self.residual[..., None] - self.rows @ free)
        return np.asarray((free + by_rows @ forces)[..., 0])


def _chosen(better: BoolArray, trial: Stance, before: Stance) -> Stance:
    """The trial on some of the frames, what was before on the others."""
    pairs = [(getattr(trial, name), getattr(before, name)) for name in vars(trial)]
    return Stance(*(np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old) for new, old in pairs))
