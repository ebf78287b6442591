"""Edits over time: poses of many frames that follow changed goals, each as near to its own pose as possible.

For each frame x, by itself:

    minimize  posture(x) + Σ cap · |goal(x) - target|   subject to joint limits

The posture term prefers the frame's own pose. A goal costs a distance, not its square, so that it is met exactly until
the force that holds it reaches its cap; beyond that it is let go smoothly. A limb that is nearly straight needs more and
more force to become longer. It therefore stays a little bent, and its joints do not jump as it becomes straight. Points
that are held have higher caps than points that are dragged.

Each step is a Newton step for all frames of a block: a quadratic program (`optimize.qp`) with the Hessian of the
Lagrangian, then back onto the goals along the same factorization, and shorter until the sum above falls. A frame depends
on its own pose and goals alone, so a smooth change of the goals gives a smooth change of the poses.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from .arrays import ROUNDING, BoolArray, FloatArray, IntArray, lengths, squares, times
from .kernel.bodies import Bodies, Pose, joint_axes
from .kernel.goals import Goals, Wanted
from .kernel.joint_limits import JointLimits
from .kernel.posture import Masses, PostureTerm
from .limits.base import Limit
from .model.bodies import participants
from .model.effector import Effector
from .model.skeleton import Skeleton
from .optimize.qp import QuadraticProgram
from .rotations import (
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)

# The force at which a goal of weight 1 is let go, in units of the body's mass and size. With 1 instead of 0.3 a head
# that is pulled out of reach accelerates 1.9 instead of 0.9 times as much as in the take; with 0.15 TODO.
_CAP: Final = 0.15
# Each priority has a cap so many times that of the next one.
_RANK: Final = 50.0
# The compliance of goals below their caps, in units of 1 / mass: a force of a cap is a micrometer short.
_COMPLIANCE: Final = 1e-7
# Radians: the farthest that a joint rotates in a step, and a step below which a frame is finished.
_LONGEST_TURN, _LAST_TURN = 0.5, 1e-2
# Steps at most: on release, and while the mouse moves, where each move continues from the last one.
_MOST_STEPS, _STEPS_FROM_NEAR = 20, 4
# The Hessian is made positive by at least this share of the mass matrix.
_MARGIN: Final = 0.2
_STIFFNESS: Final = 10.0
# Shares of a step that are tried; the mass matrix is then multiplied by more.
_SHARES: Final = (1.0, 0.4, 0.16, 0.064)
# Frames that are solved together: their matrices stay in the processor's cache.
_BLOCK: Final = 12


@dataclass(frozen=True)
class EditModel:
    """The bones, goals and limits of an edit.

    Attributes:
        skeleton: J bones.
        effectors: E points on them; those of the lowest priority number are held before others are met.
        masses: of the bones.
        limits: by bone.
        turning: names of the bones that may rotate.
        free_root: whether the root may move.
    """

    skeleton: Skeleton
    effectors: Sequence[Effector]
    masses: Masses
    limits: Mapping[str, Limit]
    turning: Collection[str]
    free_root: bool = False


@dataclass(frozen=True)
class EditPoses:
    """F poses.

    Attributes:
        rotations: (F, J, 4) local rotations, w x y z.
        roots: (F, 3) the root's head, in armature space.
        errors: (F, E) distances of effectors from their targets, NaN without a target.
    """

    rotations: FloatArray
    roots: FloatArray
    errors: FloatArray


class EditSolver:
    """An edit of F frames, prepared once to be solved for target after target.

    Attributes:
        bones: the bones that may rotate, as indices in the skeleton.
        own_points: (F, E, 3) where the effectors are in the frames' own poses, in armature space.
        own_rotations: (F, E, 4) how their bones are rotated there.
    """

    def __init__(
        self, model: EditModel, rotations: FloatArray, roots: FloatArray, shares: FloatArray | None = None
    ) -> None:
        """Prefer (F, J, 4) local rotations and the root's head at (F, 3), in armature space.

        shares: (F,) how much of a change each frame gets. Own poses beyond limits are brought inside by that share, so
        that nothing jumps where the change begins and ends; all the way when None.
        """
        inside = np.ones(len(rotations)) if shares is None else shares
        self._parts = [slice(first, first + _BLOCK) for first in range(0, len(rotations), _BLOCK)]
        self._blocks = [_Block(model, rotations[part], roots[part], inside[part]) for part in self._parts]
        self.bones = self._blocks[0].turning
        self.own_points: FloatArray = np.concatenate([block.own_points for block in self._blocks])
        self.own_rotations: FloatArray = np.concatenate([block.own_rotations for block in self._blocks])

    def solve(self, targets: FloatArray, rotations: FloatArray, start: EditPoses | None = None) -> EditPoses:
        """The poses for targets (F, E, 3) and rotations (F, E, 4) of effectors' bones, NaN where there is none.

        start: poses near to them, such as those of the last move: then they need not be found to the end.
        """
        found = []
        for part, block in zip(self._parts, self._blocks, strict=True):
            own = None if start is None else (start.rotations[part], start.roots[part])
            found.append(block.solve(targets[part], rotations[part], own))
        return EditPoses(*(np.concatenate(values) for values in zip(*found, strict=True)))


class _Block:
    """Frames that are solved together."""

    def __init__(self, model: EditModel, rotations: FloatArray, roots: FloatArray, shares: FloatArray) -> None:
        skeleton, masses, self._rotations, self._roots = model.skeleton, model.masses, rotations, roots
        self._bones = participants(skeleton, model.effectors)
        names = [skeleton.names[bone] for bone in self._bones]
        factors = [masses.factors[bone] if skeleton.names[bone] in model.turning else np.inf for bone in self._bones]
        limits = [model.limits.get(name) for name in names]
        axes = [joint_axes(limit, factor) for limit, factor in zip(limits, factors, strict=True)]
        self.turning = [bone for bone, own in zip(self._bones, axes, strict=True) if len(own)]
        self._bodies = Bodies(skeleton, self._bones, axes, model.free_root)
        self._limits = _Limits(self._bodies, limits, rotations[:, self._bones], shares)
        self._posture = PostureTerm(self._bodies, masses, rotations, roots)
        self._goals = goals = Goals(self._bodies, model.effectors)
        ranks = np.array([effector.priority for effector in model.effectors])
        weights = np.array([effector.weight for effector in model.effectors])
        caps = _CAP * self._posture.size * weights * np.where(ranks > 0, 1.0, _RANK)
        self._caps: FloatArray = np.concatenate([caps, goals.shares * caps[goals.oriented]])
        own = self._bodies.pose(rotations[:, self._bones], roots)
        self.own_points = goals.points(own)[:, : goals.count]
        self.own_rotations = quaternion_from_matrix(own.orientations[:, goals.on[: goals.count]])

    def solve(
        self, targets: FloatArray, rotations: FloatArray, start: tuple[FloatArray, FloatArray] | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What `EditPoses` are made of, for targets and from a start as for `EditSolver`."""
        goals, bodies, posture = self._goals, self._bodies, self._posture
        wanted = goals.wanted(targets, rotations)
        local, root = (self._rotations, self._roots) if start is None else start
        pose = bodies.pose(self._limits.clamped(local[:, self._bones]), root)
        cost, residual = self._cost(pose, wanted)
        count = len(targets), len(self._caps)
        caps, rigid = np.broadcast_to(self._caps, count), np.full((count[0], 3 * count[1]), _COMPLIANCE)
        forces, damping, is_met = np.zeros((*count, 3)), np.zeros(count[0]), np.ones(rigid.shape, dtype=bool)
        for _ in range(_MOST_STEPS if start is None else _STEPS_FROM_NEAR):
            motions, away = bodies.motions(pose), posture.away(pose)
            mass, gradient = posture.equations(away, pose, motions)
            rows = goals.rows(pose, motions, wanted).reshape(*rigid.shape, -1)
            curvature = bodies.stiffness(
                pose,
                motions,
                np.concatenate([goals.points(pose), away.centres], axis=1),
                np.concatenate([goals.on, posture.carrier]),
                np.concatenate([goals.forces(forces), -posture.pulls(away)], axis=1),
            )
            # Stiffness along goals that are met changes no step, but needs less mass to be added.
            stiff = _STIFFNESS * np.swapaxes(rows * is_met[..., None], 1, 2)
            hessian = _positive((1.0 + damping)[:, None, None] * mass - curvature + stiff @ rows, mass)
            slope = times(stiff, residual.reshape(rigid.shape)) - gradient
            free = QuadraticProgram(hessian, slope, rows, np.zeros((count[0], 0, bodies.columns)))
            program, found = free, free.solve(residual.reshape(rigid.shape), rigid[:, :0], rigid, caps=caps)
            normals, gaps = self._limits.rows(pose.local, self._longest(found.step).max())
            if (times(normals, found.step) > gaps).any():
                program = QuadraticProgram(hessian, slope, rows, normals)
                found = program.solve(residual.reshape(rigid.shape), gaps, rigid, caps=caps)
            longest, forces = self._longest(found.step), found.forces.reshape(forces.shape)
            is_met = found.compliance <= _COMPLIANCE
            active = found.active if program is not free else np.zeros((count[0], 0), dtype=bool)
            share = np.minimum(1.0, _LONGEST_TURN / np.maximum(longest, ROUNDING))
            is_better = np.zeros(count[0], dtype=bool)
            best, least = pose, cost + ROUNDING * posture.size**2
            for shorter in _SHARES:
                step = (shorter * share)[:, None] * found.step
                trial = self._moved(pose, step)
                # Goals curve away from their tangents: back to what the step promised.
                off = goals.residual(trial, wanted).reshape(rigid.shape) - residual.reshape(rigid.shape)
                back = program.onto(off + times(rows, step), found.compliance, active)
                trial = self._moved(trial, back * np.minimum(1.0, share * longest / np.maximum(self._longest(back), ROUNDING))[:, None])
                value, _ = self._cost(trial, wanted)
                now = (value <= least) & ~is_better
                best, is_better = _chosen(now, trial, best), is_better | now
                if is_better.all():
                    break
            pose = best
            cost, residual = self._cost(pose, wanted)
            if longest.max() < _LAST_TURN:
                break
            damping = np.where(is_better, 0.25 * damping, np.maximum(4.0 * damping, 0.3))
        found_rotations = self._rotations.copy()
        found_rotations[:, self._bones] = pose.local
        return found_rotations, pose.root, lengths(targets - goals.points(pose)[:, : goals.count])

    def _cost(self, pose: Pose, wanted: Wanted) -> tuple[FloatArray, FloatArray]:
        """(F,) the sum that is minimized, and (F, E + O, 3) the goals' residual."""
        away, residual = self._posture.away(pose), self._goals.residual(pose, wanted)
        posture = 0.5 * (squares(away.moved) @ self._posture.masses + squares(away.turned) @ self._posture.inertia)
        return posture + lengths(residual) @ self._caps, residual

    def _longest(self, step: FloatArray) -> FloatArray:
        """(F,) how far the joint that rotates farthest does in a step (F, D)."""
        return np.asarray(np.abs(step[:, : self._bodies.turning]).max(axis=1, initial=0.0))

    def _moved(self, pose: Pose, step: FloatArray) -> Pose:
        """The pose after a step (F, D), inside the limits."""
        local, root = self._bodies.moved(pose, step)
        return self._bodies.pose(self._limits.clamped(local), root)


class _Limits:
    """The limits of B bodies on F frames, rotated for joints whose own pose is beyond them."""

    def __init__(
        self, bodies: Bodies, limits: Sequence[Limit | None], own: FloatArray, shares: FloatArray
    ) -> None:
        """own: (F, B, 4) the frames' own poses. shares: (F,) how much of the part beyond the limits is taken away."""
        self._bodies, self._limits = bodies, JointLimits(bodies, limits)
        away = rotation_vector_from_quaternion(product(own, conjugate(self._limits.clamped(own))))
        # A hinge has no rotation beside its axis, and joints that do not rotate stay as they are.
        kept = np.array([limit is not None and limit.turn_axis is None for limit in limits]) & (bodies.counts > 0)
        away *= kept[:, None] & (lengths(away) > 1e-6)[..., None]
        self._beyond = quaternion_from_rotation_vector((1.0 - shares)[:, None, None] * away) if away.any() else None

    @cached_property
    def _turns(self) -> FloatArray:
        return matrix_from_quaternion(self._beyond)

    def clamped(self, local: FloatArray) -> FloatArray:
        """(F, B, 4) the nearest rotations inside."""
        if self._beyond is None:
            return self._limits.clamped(local)
        return product(self._beyond, self._limits.clamped(product(conjugate(self._beyond), local)))

    def rows(self, local: FloatArray, within: float) -> tuple[FloatArray, FloatArray]:
        """(F, W, D) rows and (F, W) gaps of the inequalities that a rotation by `within` radians could violate."""
        if self._beyond is None:
            return self._limits.sides(local, within).rows(self._bodies, len(local))
        found = self._limits.sides(product(conjugate(self._beyond), local), within)
        turned = times(self._turns[found.frames, found.bodies], found.normals)
        return found._replace(normals=turned).rows(self._bodies, len(local))


def _positive(hessian: FloatArray, mass: FloatArray) -> FloatArray:
    """(F, D, D) with as much of the mass matrix added as makes each positive by a margin."""
    try:
        np.linalg.cholesky(hessian - _MARGIN * mass)
    except np.linalg.LinAlgError:
        inverse = np.linalg.inv(np.linalg.cholesky(mass))
        lowest = np.linalg.eigvalsh(inverse @ hessian @ np.swapaxes(inverse, 1, 2))[:, 0]
        return hessian + np.maximum(_MARGIN - lowest, 0.0)[:, None, None] * mass
    return hessian


def _chosen(is_better: BoolArray, trial: Pose, before: Pose) -> Pose:
    """The trial on some of the frames, the pose before on the others."""
    pairs = [(getattr(trial, name), getattr(before, name)) for name in vars(trial)]
    return Pose(*(np.where(is_better.reshape(-1, *[1] * (new.ndim - 1)), new, old) for new, old in pairs))


def between(found: EditPoses, knots: IntArray, rotations: FloatArray, roots: FloatArray) -> EditPoses:
    """Poses of all F frames near to those found for K of them: the change is interpolated linearly.

    knots: (K,) rising, the first frame and the last among them. rotations: (F, J, 4), roots: (F, 3) before the change.
    The errors are empty.
    """
    changed = product(found.rotations, conjugate(rotations[knots]))
    changed = np.where(changed[..., :1] < 0.0, -changed, changed)
    frames = np.arange(len(rotations))
    after = np.clip(np.searchsorted(knots, frames, side="right"), 1, len(knots) - 1)
    share = ((frames - knots[after - 1]) / (knots[after] - knots[after - 1]))[:, None]
    turn = changed[after - 1] + share[..., None] * (changed[after] - changed[after - 1])
    shift = found.roots - roots[knots]
    moved = roots + shift[after - 1] + share * (shift[after] - shift[after - 1])
    turned = product(turn / np.linalg.norm(turn, axis=-1, keepdims=True), rotations)
    return EditPoses(turned, moved, np.empty(0))
