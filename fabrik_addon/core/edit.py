"""Edits over time: poses of many frames follow changed goals, each as near to its own pose as possible.

For each frame x separately:

    minimize  posture(x) + Σ cap · |goal(x) - target|   subject to joint limits and self-collision

The posture term prefers the frame's own pose. A goal costs a distance, not its square, so it is met exactly until the
force that holds it reaches its cap; beyond that it is released smoothly. The nearer a limb is to straight, the more
force it takes to extend it. It therefore stays a little bent, and its joints do not jump as it becomes straight. Held
points have higher caps than dragged points.

Each step is a Newton step for all frames of a block: a quadratic program (`optimize.qp`) with the Hessian of the
Lagrangian, followed by a correction onto the goals with the same factorization. It is shortened until the sum above
falls.

Frames that are solved separately may jump: the best pose switches from one minimum to another, as an arm can bend two
ways, and limbs jerk as they become straight. `EditSolver.over_time` therefore solves all frames at once, for the most
probable change that is smooth over time (see `optimize.over_time`). `EditSolver.smoothed` keeps frames separate, which
self-collision needs. It takes a solution, smooths its change over time, and prefers poses near that: one step of a
proximal method for smoothness.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

import numpy as np

from .arrays import ROUNDING, SINGLE, BoolArray, FloatArray, IntArray, joined, lengths, squares, times
from .kernel.bodies import AT_REST, MAX_ROTATION, Bodies, Pose, joint_axes
from .kernel.capsules import NEAR, Capsules, SelfCollision
from .kernel.goals import LEVER, PRIORITY, Goals, Wanted
from .kernel.joint_limits import JointLimits
from .kernel.posture import Masses, PostureTerm
from .limits.base import Limit
from .model.bodies import participants
from .model.effector import Effector
from .model.skeleton import Skeleton
from .optimize.over_time import EXACT, ChangeOverTime, noise_share
from .optimize.qp import MAX_SHORTER, RIGID, SHORTER, QpStep, QuadraticProgram
from .rotations import (
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)

# The cap of a goal of weight 1, in units of the body's mass and size. With 0.2 a straight leg does not bend for hips
# that are dragged down 10 cm.
_CAP: Final = 0.3
# The share of that cap for dragged points in `smoothed`, whose preferred pose is close to the solution. With it, joints
# accelerate at most 1.5 times as much as in the recording, in 225 drags of the sample walk.
_CAP_NEAR: Final = 0.25
# The largest moment of inertia of the whole body, in units of mass and its size squared: that of a rod about its end.
_INERTIA: Final = 1.0 / 3.0
# Radians. A frame is finished if a step rotates no joint by more than this.
_LAST_TURN: Final = 1e-2
# The largest number of steps: from the start, and for a move of the mouse, which continues from the last one.
_MAX_STEPS, _STEPS_FROM_NEAR = 30, 4
# Frames: the standard deviation of the Gaussian that smooths a change over time. With 5 the motion is not smoother.
_SPREAD: Final = 3.0
# The smallest allowed eigenvalue of the Hessian, in units of the mass matrix. If necessary, a multiple of the mass
# matrix is added. This is also the first damping.
_MARGIN: Final = 0.2
# The largest number of steps for a change over time. With 12, knees jump if a foot is lifted by 20 cm over 60 frames.
_MAX_TIMES: Final = 25
# A limit replaces one that the joint met before if the cosine between their rows is above this.
_ALIKE: Final = 0.9
# The distance by which an effector may miss its target, as a share of the body's size.
_MISSED: Final = 1e-5
# The slack of dragged points in a change over time, on frames with only a part of the change: the variance of their
# errors, as a share of that of their movements. Paths within reach are followed to 1 %. With a tenth of it, points that
# are held near the edge of reach miss by millimeters; with ten times as much, dragged feet go through the floor.
_FOLLOWING: Final = 1e-2
# The slack of capsules that touch. With that of exact equations, feet that are held slip by 0.5 mm to keep parts apart.
_TOUCHING: Final = 1e-4
# Number of frames solved together: their matrices fit the processor's cache.
_BLOCK: Final = 12


@dataclass(frozen=True)
class EditModel:
    """The bones, goals and limits of an edit.

    Attributes:
        skeleton: J bones.
        effectors: E points on them; those of priority 0 are held, with a higher cap than the others.
        masses: of the bones.
        limits: bone name to limit.
        turning: names of the bones that may rotate.
        free_root: whether the root may move.
        collision: capsules that must not overlap.
        separate: whether capsules that overlap in a frame's own pose are moved apart; otherwise they go no deeper.
    """

    skeleton: Skeleton
    effectors: Sequence[Effector]
    masses: Masses
    limits: Mapping[str, Limit]
    turning: Collection[str]
    free_root: bool = False
    collision: SelfCollision | None = None
    separate: bool = False


@dataclass(frozen=True)
class EditPoses:
    """F poses.

    Attributes:
        rotations: (F, J, 4) local rotations, w x y z.
        roots: (F, 3) the root's head, armature space.
        errors: (F, E) distances of effectors from their targets; NaN without a target.
    """

    rotations: FloatArray
    roots: FloatArray
    errors: FloatArray


class KnownPose(NamedTuple):
    """The pose on one of F frames: the frame's index, (J, 4) local rotations and the root's head (3,)."""

    frame: int
    rotations: FloatArray
    root: FloatArray


_Poses = TypeVar("_Poses", Pose, EditPoses)


class EditSolver:
    """An edit of F frames, prepared once to be solved for many targets.

    Attributes:
        bones: indices of the bones that may rotate.
        own_points: (F, E, 3) the effectors in the frames' own poses, armature space.
        own_rotations: (F, E, 4) the rotations of their bones there, armature space.
        overlaps: (F,) the deepest overlap of capsules there beyond the allowed one, armature units.
    """

    def __init__(
        self, model: EditModel, rotations: FloatArray, roots: FloatArray, shares: FloatArray | None = None
    ) -> None:
        """Prefer local rotations (F, J, 4) and the root's head at (F, 3), armature space.

        shares: (F,) the share of a change that each frame gets. Own poses beyond limits are clamped by that share, so
        that nothing jumps at the ends of the change; None: all of it.
        """
        self._model, self._own = model, EditPoses(rotations, roots, np.empty(0))
        self._shares = inside = np.ones(len(rotations)) if shares is None else shares
        self._parts = [slice(first, first + _BLOCK) for first in range(0, len(rotations), _BLOCK)]
        self._blocks = [_Block(model, rotations[part], roots[part], inside[part]) for part in self._parts]
        self.bones = self._blocks[0].turning
        self.own_points: FloatArray = np.concatenate([block.own_points for block in self._blocks])
        self.own_rotations: FloatArray = np.concatenate([block.own_rotations for block in self._blocks])
        self.overlaps: FloatArray = np.concatenate([block.overlaps for block in self._blocks])

    def solve(
        self, targets: FloatArray, rotations: FloatArray, start: EditPoses | None = None, *, settled: bool = False
    ) -> EditPoses:
        """The poses for targets (F, E, 3) and rotations (F, E, 4) of effectors' bones, armature space; NaN for none.

        start: nearby poses, such as those of the last move, from which a few steps are enough. settled: take more steps
        if necessary.
        """
        steps = _MAX_STEPS if settled or start is None else _STEPS_FROM_NEAR
        return self._solve(targets, rotations, start or self._own, self._own, steps, cap=1.0)

    def smoothed(self, targets: FloatArray, rotations: FloatArray, found: EditPoses) -> EditPoses:
        """Poses for the same targets on successive frames, near to `found` with their change smoothed over time.

        targets: (F, E, 3) and rotations: (F, E, 4), armature space; NaN for none.
        """
        rotation_vectors = rotation_vector_from_quaternion(product(found.rotations, conjugate(self._own.rotations)))
        turns = _mean(rotation_vectors.reshape(len(rotation_vectors), -1)).reshape(rotation_vectors.shape)
        turned = product(quaternion_from_rotation_vector(turns), self._own.rotations)
        smooth = EditPoses(turned, self._own.roots + _mean(found.roots - self._own.roots), found.errors)
        return self._solve(targets, rotations, smooth, smooth, _MAX_STEPS, cap=_CAP_NEAR)

    def over_time(
        self,
        targets: FloatArray,
        rotations: FloatArray,
        frames: FloatArray,
        ease: float,
        known: KnownPose | None = None,
    ) -> EditPoses:
        """Poses for targets on some of the frames; on the others, the change fades in and out smoothly.

        targets: (F, E, 3) and rotations: (F, E, 4), armature space; NaN for none. frames: (F,) increasing frame
        numbers. ease: the number of frames over which the change fades. known: the pose on one frame. The other frames
        follow its change by their shares, all targets are shifted so that it meets them, and capsules are kept apart.
        """
        block = self._whole
        if known is not None:
            return block.over_time(*self._through(known, targets, rotations), frames, ease, known)
        found = block.over_time(targets, rotations, frames, ease)
        if not block.misses(found).any():
            return found
        # Targets out of reach would bend limbs on other frames too, so they become the nearest points within reach.
        reached = self.solve(targets, rotations)
        far = block.misses(reached)
        if far.any():
            points, turned = block.effectors(reached)
            seen = far[:, None, None] & ~np.isnan(targets)
            nearer = np.where(seen, points, targets), np.where(seen[..., :1], turned, rotations)
            found = block.over_time(*nearer, frames, ease)
            found = replace(found, errors=lengths(targets - block.effectors(found)[0]))
        near = self._solve(targets, rotations, found, found, _MAX_STEPS, cap=_CAP_NEAR)
        return _chosen(block.misses(found), near, found)

    def _through(self, known: KnownPose, targets: FloatArray, rotations: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Targets (F, E, 3) and rotations (F, E, 4) shifted so that a known pose meets them on its frame.

        On other frames, they are shifted by their share of that.
        """
        points, turned = self._whole.effectors(EditPoses(known.rotations[None], known.root[None], np.empty(0)))
        off = rotation_vector_from_quaternion(product(turned[0], conjugate(rotations[known.frame])))
        turns = quaternion_from_rotation_vector(self._shares[:, None, None] * off)
        shifts = self._shares[:, None, None] * (points[0] - targets[known.frame])
        return targets + shifts, product(turns, rotations)

    @cached_property
    def _whole(self) -> "_Block":
        """One block with all frames."""
        return _Block(self._model, self._own.rotations, self._own.roots, self._shares)

    def _solve(
        self,
        targets: FloatArray,
        rotations: FloatArray,
        start: EditPoses,
        preferred: EditPoses,
        steps: int,
        *,
        cap: float,
    ) -> EditPoses:
        found = []
        for part, block in zip(self._parts, self._blocks, strict=True):
            problem = block.problem(
                targets[part], rotations[part], preferred.rotations[part], preferred.roots[part], cap
            )
            found.append(block.solve(problem, start.rotations[part], start.roots[part], steps))
        local, roots, points = (np.concatenate(values) for values in zip(*found, strict=True))
        return EditPoses(local, roots, lengths(targets - points))


class _Problem(NamedTuple):
    """The problem of a block of frames; caps: (F, E + O) the largest forces on points and rotations."""

    wanted: Wanted
    posture: PostureTerm
    caps: FloatArray


class _Block:
    """F frames that are solved together."""

    def __init__(self, model: EditModel, rotations: FloatArray, roots: FloatArray, shares: FloatArray) -> None:
        self._model, self._rotations, self._roots, skeleton = model, rotations, roots, model.skeleton
        self._shares, self._size = shares, skeleton.extent
        self._bones = participants(skeleton, model.effectors)
        names = [skeleton.names[bone] for bone in self._bones]
        limits = [model.limits.get(name) for name in names]
        factors = np.where([name in model.turning for name in names], model.masses.factors[self._bones], np.inf)
        axes = [joint_axes(limit, factor) for limit, factor in zip(limits, factors, strict=True)]
        self.turning = [bone for bone, own in zip(self._bones, axes, strict=True) if len(own)]
        self._bodies = Bodies(skeleton, self._bones, axes, model.free_root)
        self._limits = _Limits(self._bodies, limits, rotations[:, self._bones], shares)
        self._goals = goals = Goals(self._bodies, model.effectors)
        weights = np.array([effector.weight for effector in model.effectors])
        self._weights = np.concatenate([weights, goals.shares * weights[goals.oriented]])
        is_held = np.array([effector.priority == 0 for effector in model.effectors])
        self._is_held = np.concatenate([is_held, is_held[goals.oriented]])
        own = self._bodies.pose(rotations[:, self._bones], roots)
        self._capsules = Capsules(self._bodies, model.collision)
        self._capsules.carry(rotations, roots)
        if not model.separate:
            self._capsules.allow(own)
        self.overlaps = np.broadcast_to(self._capsules.depths(own).max(axis=-1, initial=0.0), len(rotations))
        self.own_points, self.own_rotations = self.effectors(EditPoses(rotations, roots, np.empty(0)))

    def problem(
        self, targets: FloatArray, rotations: FloatArray, preferred: FloatArray, roots: FloatArray, cap: float
    ) -> _Problem:
        """The problem for targets as in `EditSolver.solve`.

        preferred, roots: the preferred poses. cap: factor on the caps of dragged points.
        """
        posture = PostureTerm(self._bodies, self._model.masses, preferred, roots)
        wanted = self._goals.wanted(targets, rotations)
        # A dragged point's cap includes the force that moves the whole body, of mass 1, by the distance to the target.
        asked = lengths(self._goals.residual(self._bodies.pose(preferred[:, self._bones], roots), wanted))
        rigid = np.append(np.ones(self._goals.count), _INERTIA * (self._size / self._goals.arms) ** 2)
        base = _CAP * self._size
        caps = self._weights * np.where(self._is_held, PRIORITY * base, cap * (base + rigid * asked))
        return _Problem(wanted, posture, caps)

    def solve(
        self, problem: _Problem, rotations: FloatArray, roots: FloatArray, steps: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(F, J, 4) rotations, (F, 3) roots and (F, E, 3) effectors of the solution.

        rotations: (F, J, 4) and roots: (F, 3) to start from.
        """
        pose = self._bodies.pose(self._limits.clamped(rotations[:, self._bones]), roots)
        cost, residual = self._cost(problem, pose)
        forces, damping = np.zeros(residual.shape), np.zeros(len(residual))
        for _ in range(steps):
            rows, program, found = self._step(problem, pose, residual, forces, damping)
            forces, longest = found.forces.reshape(forces.shape), self._longest(found.step)
            share = np.minimum(1.0, MAX_ROTATION / np.maximum(longest, ROUNDING))
            before, before_residual, least = pose, residual, cost + ROUNDING * self._size**2
            is_better = np.zeros(len(residual), dtype=bool)
            for _ in range(MAX_SHORTER):
                step = share[:, None] * found.step
                trial = self._moved(before, step)
                # Goals curve away from their tangents: correct the pose to what the step predicted.
                off = self._goals.residual(trial, problem.wanted) - before_residual
                back = program.correction(off.reshape(len(off), -1) + times(rows, step), found.compliance, found.active)
                most = share * longest / np.maximum(self._longest(back), ROUNDING)
                trial = self._moved(trial, np.minimum(1.0, most)[:, None] * back)
                value, trial_residual = self._cost(problem, trial)
                now = (value <= least) & ~is_better
                pose, is_better = _chosen(now, trial, pose), is_better | now
                cost, residual = np.where(now, value, cost), np.where(now[:, None, None], trial_residual, residual)
                if is_better.all():
                    break
                share = SHORTER * share
            if ((1.0 + damping) * longest).max() < _LAST_TURN:
                break
            damping = np.where(is_better, SHORTER * damping, np.maximum(damping / SHORTER, _MARGIN))
        local = self._rotations.copy()
        local[:, self._bones] = pose.local
        return local, pose.root, self._goals.points(pose)[:, : self._goals.count]

    def over_time(
        self,
        targets: FloatArray,
        rotations: FloatArray,
        frames: FloatArray,
        ease: float,
        known: KnownPose | None = None,
    ) -> EditPoses:
        """The poses of `EditSolver.over_time` for targets within reach.

        Takes Gauss-Newton steps for the change of all frames. Its columns are rotation vectors relative to the frames'
        own poses.
        """
        bodies, goals, count = self._bodies, self._goals, len(frames)
        wanted, is_whole = goals.wanted(targets, rotations), (self._shares == 1.0)[:, None]
        slack = np.where(self._is_held | is_whole, EXACT, _FOLLOWING)
        own = bodies.pose(self._rotations[:, self._bones], self._roots)
        posture = PostureTerm(bodies, self._model.masses, self._rotations, self._roots)
        mass = posture.equations(posture.away(own), own, bodies.motions(own))[0].mean(axis=0)
        light = np.linalg.inv(mass)
        units = np.where(np.arange(bodies.columns) < bodies.turning, 1.0, self._size)
        # The equations that keep a known pose, in units in which all are equally probable.
        fixed, expected = _Equations.none(bodies.columns), np.zeros((count, bodies.columns))
        if known is not None:
            wanted.seen[known.frame] = False
            to_known = self._change(bodies.pose(known.rotations[self._bones], known.root), own)[known.frame]
            expected, equal = self._shares[:, None] * to_known, np.linalg.cholesky(mass).T
            at = np.full(bodies.columns, known.frame)
            fixed = _Equations(at, equal, equal @ expected[known.frame], np.full(len(at), EXACT))
        moves = wanted.seen & ~wanted.seen.all(axis=0)
        missed = goals.residual(own, wanted)
        rough = noise_share(np.where(moves[..., None], missed, np.nan).reshape(count, -1))
        prior = ChangeOverTime(frames, self._shares, ease, mass, rough, units, expected)
        change, stops = expected, _Stops(bodies, LEVER * self._size)
        pose = self._moved(own, change)
        residual = goals.residual(pose, wanted)

        def cost(left: FloatArray) -> float:
            return float((squares(left) * EXACT / slack).sum())

        for _ in range(_MAX_TIMES):
            motions, rates = bodies.motions(pose), bodies.rates(change)
            rows = goals.rows(pose, motions, wanted).reshape(count, -1, bodies.columns)
            rows[..., : bodies.turning] = rows[..., : bodies.turning] @ rates
            if known is not None:
                touching, gaps = self._capsules.sides(pose, motions, SINGLE * self._size)
                touching[..., : bodies.turning] = touching[..., : bodies.turning] @ rates
                stops.touch(touching, times(touching, change) + gaps)
            missing = residual.reshape(count, -1) + times(rows, change)
            on, used = np.nonzero((rows != 0.0).any(axis=2))
            asked = _Equations(on, rows[on, used], missing[on, used], slack[on, used // 3])
            step = stops.least(prior, joined([asked, fixed])) - change
            for _ in range(MAX_SHORTER):
                stopped = self._moved(own, change + step)
                trial = self._held(stopped, wanted, light)
                left = goals.residual(trial, wanted)
                if cost(left) + stops.cost(change + step) <= cost(residual) + stops.cost(change):
                    break
                step = SHORTER * step
            else:
                break
            stops.add(change + step, self._change(stopped, own))
            pose, residual, change = trial, left, self._change(trial, own)
            is_met = lengths(residual)[:, self._is_held].max(initial=0.0) <= SINGLE * self._size
            if is_met and np.abs(step[:, : bodies.turning]).max(initial=0.0) < _LAST_TURN:
                break
        local = self._rotations.copy()
        local[:, self._bones] = pose.local
        return EditPoses(local, pose.root, lengths(targets - goals.points(pose)[:, : goals.count]))

    def _held(self, pose: Pose, wanted: Wanted, light: FloatArray) -> Pose:
        """The pose moved back onto its held goals, with as little mass moved as possible.

        light: (D, D) the inverse of the mass matrix.
        """
        goals = self._goals
        for _ in range(2):
            off = goals.residual(pose, wanted)[:, self._is_held].reshape(len(pose.local), -1)
            rows = goals.rows(pose, self._bodies.motions(pose), wanted)[:, self._is_held]
            rows = rows.reshape(*off.shape, self._bodies.columns)
            by_forces = light @ rows.swapaxes(1, 2)
            system = rows @ by_forces
            np.einsum("fii->fi", system)[...] *= 1.0 + SINGLE
            np.einsum("fii->fi", system)[...] += RIGID
            pose = self._moved(pose, times(by_forces, np.linalg.solve(system, off[..., None])[..., 0]))
        return pose

    def _change(self, pose: Pose, own: Pose) -> FloatArray:
        """(F, D) the change from the own poses to others: rotation vectors of joints, and the root's translation."""
        bodies = self._bodies
        turned = bodies.columns_of(rotation_vector_from_quaternion(product(pose.local, conjugate(own.local))))
        return np.concatenate([turned, pose.root - own.root], axis=1) if bodies.free_root else turned

    def misses(self, found: EditPoses) -> BoolArray:
        """(F,) whether some effector misses its target."""
        return np.asarray((found.errors > _MISSED * self._model.skeleton.size).any(axis=1))

    def effectors(self, found: EditPoses) -> tuple[FloatArray, FloatArray]:
        """(F, E, 3) positions and (F, E, 4) rotations of the effectors in some poses."""
        pose, goals = self._bodies.pose(found.rotations[:, self._bones], found.roots), self._goals
        turned = quaternion_from_matrix(pose.orientations[:, goals.on[: goals.count]])
        return goals.points(pose)[:, : goals.count], turned

    def _step(
        self,
        problem: _Problem,
        pose: Pose,
        residual: FloatArray,
        forces: FloatArray,
        damping: FloatArray,
    ) -> tuple[FloatArray, QuadraticProgram, QpStep]:
        """The goals' rows (F, R, D) and the Newton step (F, D); forces: (F, E + O, 3) of the step before.

        damping: (F,) the factor on the mass matrix that is added.
        """
        goals, bodies, posture, count = self._goals, self._bodies, problem.posture, len(residual)
        motions, away = bodies.motions(pose), posture.away(pose)
        mass, gradient = posture.equations(away, pose, motions)
        wanted = residual.reshape(count, -1)
        rows = goals.rows(pose, motions, problem.wanted).reshape(*wanted.shape, -1)
        curvature = bodies.stiffness(
            pose,
            motions,
            np.concatenate([goals.points(pose), away.centers], axis=1),
            np.concatenate([goals.on, posture.carrier]),
            np.concatenate([goals.forces(forces), -posture.pulls(away)], axis=1),
        )
        hessian = _positive((1.0 + damping)[:, None, None] * mass - curvature, mass)
        program = QuadraticProgram(hessian, -gradient, rows, np.zeros((count, 0, bodies.columns)))
        found = program.solve(wanted, np.zeros((count, 0)), caps=problem.caps)
        normals, gaps = self._limits.rows(pose.local, float(self._longest(found.step).max()))
        touching, distances = self._capsules.sides(pose, motions, NEAR * self._size)
        normals, gaps = np.concatenate([normals, touching], axis=1), np.concatenate([gaps, distances], axis=1)
        if (times(normals, found.step) > gaps).any():
            program = QuadraticProgram(hessian, -gradient, rows, normals)
            found = program.solve(wanted, gaps, caps=problem.caps)
        return rows, program, found

    def _cost(self, problem: _Problem, pose: Pose) -> tuple[FloatArray, FloatArray]:
        """(F,) the sum that is minimized, and (F, E + O, 3) the goals' residual."""
        posture, residual = problem.posture, self._goals.residual(pose, problem.wanted)
        away = posture.away(pose)
        value = 0.5 * (squares(away.moved) @ posture.masses + squares(away.turned) @ posture.inertia)
        # A unit of overlap costs as much as a held point that is a unit away from its target.
        value += PRIORITY * _CAP * self._size * self._capsules.depths(pose).sum(axis=-1)
        return value + (lengths(residual) * problem.caps).sum(axis=1), residual

    def _longest(self, step: FloatArray) -> FloatArray:
        """(F,) the largest rotation of a joint in a step (F, D), radians."""
        return np.asarray(np.abs(step[:, : self._bodies.turning]).max(axis=1, initial=0.0))

    def _moved(self, pose: Pose, step: FloatArray) -> Pose:
        """The pose after a step (F, D), inside the limits."""
        local, root = self._bodies.moved(pose, step)
        return self._bodies.pose(self._limits.clamped(local), root)


class _Limits:
    """The limits of B bodies on F frames, shifted for joints whose own pose exceeds them."""

    def __init__(self, bodies: Bodies, limits: Sequence[Limit | None], own: FloatArray, shares: FloatArray) -> None:
        """Shift the limits. own: (F, B, 4) the own poses. shares: (F,) the share of their excess that is removed."""
        self._bodies, self._limits = bodies, JointLimits(bodies, limits)
        away = rotation_vector_from_quaternion(product(own, conjugate(self._limits.clamped(own))))
        # A hinge can only rotate about its axis. Other rotations are rounding errors, and so are very small ones.
        is_hinge = np.array([limit is not None and limit.rotation_axis is not None for limit in limits])
        away[is_hinge | (lengths(away) < SINGLE)] = 0.0
        self._is_beyond = bool(away.any())
        self._beyond = quaternion_from_rotation_vector((1.0 - shares)[:, None, None] * away)
        self._turns = matrix_from_quaternion(self._beyond)

    def clamped(self, local: FloatArray) -> FloatArray:
        """(F, B, 4) the nearest local rotations inside the limits."""
        if not self._is_beyond:
            return self._limits.clamped(local)
        return product(self._beyond, self._limits.clamped(product(conjugate(self._beyond), local)))

    def rows(self, local: FloatArray, within: float) -> tuple[FloatArray, FloatArray]:
        """(F, W, D) rows and (F, W) gaps of the inequalities that a rotation by `within` radians could violate."""
        if not self._is_beyond:
            return self._limits.sides(local, within).rows(self._bodies, len(local))
        found = self._limits.sides(product(conjugate(self._beyond), local), within)
        turned = times(self._turns[found.frames, found.bodies], found.normals)
        return found._replace(normals=turned).rows(self._bodies, len(local))


class _Equations(NamedTuple):
    """N linear equations of a change: the frames' indices (N,), rows (N, D), values (N,) and slack (N,)."""

    on: IntArray
    rows: FloatArray
    values: FloatArray
    slack: FloatArray

    @classmethod
    def none(cls, columns: int) -> "_Equations":
        """No equations, of D columns."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros((0, columns)), np.zeros(0), np.zeros(0))

    def part(self, which: BoolArray) -> "_Equations":
        """Some of the equations, `which` (N,)."""
        return _Equations(self.on[which], self.rows[which], self.values[which], self.slack[which])


class _Stops:
    """What stops joints in a change over time, as equations in its columns: limits, and capsules that touch."""

    def __init__(self, bodies: Bodies, unit: float) -> None:
        """Begin without stops; unit: the length that counts as much as a radian."""
        self._bodies, self._unit = bodies, unit
        self._at_limits = self._touching = _Equations.none(bodies.columns)

    def touch(self, rows: FloatArray, values: FloatArray) -> None:
        """Keep capsules apart in the next solve: rows (F, K, D) are at most `values` (F, K), infinite for none."""
        on, which = np.nonzero(np.isfinite(values))
        self._touching = _Equations(on, rows[on, which], values[on, which], np.full(len(on), _TOUCHING))

    def least(self, prior: ChangeOverTime, asked: _Equations) -> FloatArray:
        """(F, D) the least change for N equations, while joints that have met limits or capsules are stopped.

        Drops stops whose multiplier has the wrong sign, so that their joints can move away.
        """
        for _ in range(MAX_SHORTER):
            change, forces = prior.least(*joined([asked, self._touching, self._at_limits]))
            pushes = forces[len(asked.on) :] <= 0.0
            if pushes.all():
                break
            touching = len(self._touching.on)
            self._touching = self._touching.part(pushes[:touching])
            self._at_limits = self._at_limits.part(pushes[touching:])
        return change

    def add(self, change: FloatArray, allowed: FloatArray) -> None:
        """Stop the joints that limits keep from a change (F, D); `allowed` (F, D) is the part within the limits."""
        bodies = self._bodies
        over = change - allowed
        for first, columns in zip(bodies.first.tolist(), bodies.counts.tolist(), strict=True):
            part = slice(first, first + columns)
            far = lengths(over[:, part])
            on = np.flatnonzero(far > AT_REST)
            rows = np.zeros((len(on), bodies.columns))
            rows[:, part] = self._unit * over[on, part] / far[on, None]
            alike = (self._at_limits.on[:, None] == on) & (self._at_limits.rows @ rows.T > _ALIKE * self._unit**2)
            found = _Equations(on, rows, (rows * allowed[on]).sum(axis=1), np.full(len(on), EXACT))
            self._at_limits = joined([self._at_limits.part(~alike.any(axis=1)), found])

    def cost(self, change: FloatArray) -> float:
        """The sum of the squared errors of the equations of limits."""
        on, rows, values, _ = self._at_limits
        return float((((rows * change[on]).sum(axis=1) - values) ** 2).sum())


def _positive(hessian: FloatArray, mass: FloatArray) -> FloatArray:
    """(F, D, D) Hessians, each with enough of the mass matrix added to be positive by a margin."""
    try:
        np.linalg.cholesky(hessian - _MARGIN * mass)
    except np.linalg.LinAlgError:
        inverse = np.linalg.inv(np.linalg.cholesky(mass))
        lowest = np.linalg.eigvalsh(inverse @ hessian @ np.swapaxes(inverse, 1, 2))[:, 0]
        return hessian + np.maximum(_MARGIN - lowest, 0.0)[:, None, None] * mass
    return hessian


def _chosen(is_better: BoolArray, trial: _Poses, before: _Poses) -> _Poses:
    """The trial's poses on frames on which they are better, and the previous poses on the others."""
    pairs = [(name, value, getattr(before, name)) for name, value in vars(trial).items() if value is not None]
    return replace(
        before, **{name: np.where(is_better.reshape(-1, *[1] * (new.ndim - 1)), new, old) for name, new, old in pairs}
    )


def _mean(change: FloatArray) -> FloatArray:
    """(F, n) a change over successive frames, smoothed by Gaussian weights; constant beyond its ends."""
    count, beside = len(change), int(3.0 * _SPREAD)
    weights = np.exp(-0.5 * (np.arange(-beside, beside + 1) / _SPREAD) ** 2)
    padded = np.pad(change, ((beside, beside), (0, 0)), mode="edge")
    mean = sum(weight * padded[first : first + count] for first, weight in enumerate(weights)) / weights.sum()
    frames = np.arange(count)
    inside = np.clip(np.minimum(frames, frames[::-1]) / _SPREAD, 0.0, 1.0)[:, None]
    return np.asarray(change + inside * (mean - change))
