"""Solves chains without limits, with one target and a fixed root: many poses with arrays, or one with mathutils.

Points are enough (see `fabrik.chain`), so no matrices are computed.
"""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .arrays import CLOSE, TINY, FloatArray
from .attempt import bend_straight_limbs
from .backend.array import Backend, Condition, Quaternion, Scalar, Vector, many
from .errors import LARGEST, numbers
from .fabrik import chain as chains
from .fabrik.chain import first_direction
from .fabrik.limbs import make_links, place_bodies
from .fabrik.passes import sum_vectors
from .model.effector import Targets, checked_root_location, checked_start
from .optimize.least_squares import CLEAR
from .problem import Problem
from .rotations import angle_between, quaternion_from_matrix
from .solution import Solution, Status


class _StartPoses(NamedTuple):
    """Start poses with their root at the origin. If all frames share a pose, values are stored only once.

    Attributes:
        rotations: (F, J, 4) local rotations of all bones.
        local: the local rotations of the B bodies.
        bent: the local rotations after straight limbs have been bent.
        points: the points of the chain at the start, root first.
        bent_points: the points of the bent chain.
    """

    rotations: FloatArray
    local: list[Quaternion]
    bent: list[Quaternion]
    points: list[Vector]
    bent_points: list[Vector]


class _Found(NamedTuple):
    """The results of all frames: local rotations of bodies, distances from the targets, and numbers of steps."""

    local: list[Quaternion]
    error: Scalar
    iterations: Scalar


class ChainSolver:
    """A chain, prepared once to be solved on one backend; see `Problem.is_chain`."""

    def __init__(self, problem: Problem, backend: Backend) -> None:
        self._problem, self._backend = problem, backend
        self._bodies = make_links(problem.bodies, problem.goals, problem.body_limits, backend)
        self._tolerance = float(problem.tolerances[0])
        self._links = [index for index, body in enumerate(self._bodies) if body.attachments[0].distance > 0]
        self._distances = [self._bodies[index].attachments[0].distance for index in self._links]
        self._origin = backend.vector_of((0.0, 0.0, 0.0))

    def solve(self, targets: Targets, result: Solution) -> None:
        """Solve F frames in arrays, and write them into a result."""
        backend, frames, roots = self._backend, len(targets), targets.roots
        rotations, pole, poles = targets.start, None, None
        if len(self._links) > 1 and np.isfinite(targets.bend).any():
            poles = targets.bend - roots[:, None]
            pole = backend.vector(poles[:, 0])
        elif rotations.strides[0] == 0:  # A pose that all frames share is checked only once.
            rotations = rotations[:1]
        starts = self._start_poses(rotations, poles)
        counts = targets.weights[:, 0] > 0.0
        found = self._improved(starts, backend.vector(targets.positions[:, 0] - roots), frames, counts, pole)
        result.rotations[:] = starts.rotations
        many.write(found.local, result.rotations, self._problem.bones)
        result.root_location[:] = roots
        result.errors[:, 0] = found.error
        result.iterations[:] = found.iterations
        if not np.isnan(targets.rotations).all():
            pose = self._problem.bodies.pose(result.rotations[:, self._problem.bones], roots)
            own = quaternion_from_matrix(pose.orientations[:, self._problem.goals.on])
            result.rotation_errors[:] = angle_between(own, targets.rotations)
        seen = counts & ~np.isnan(targets.positions[:, 0, 0])
        beyond = self._problem.is_beyond_lengths(targets.positions, targets.weights, roots)
        unmet = np.where(beyond, Status.UNREACHABLE, Status.STALLED)
        status = np.where(np.asarray(found.error) <= self._tolerance, Status.SOLVED, unmet)
        result.status[:] = np.where(seen, status, Status.UNSEEN)

    def solve_one(
        self, targets: npt.ArrayLike, start: npt.ArrayLike | None, start_location: npt.ArrayLike | None
    ) -> Solution | None:
        """The pose for one visible target with a fixed root; None for any other targets.

        targets: (1, 3), armature space. start: (J, 4) local rotations; rest when None. start_location: (3,) the root's
        head, armature space; at rest when None. Raises TargetError for a start that does not fit.
        """
        problem, target = self._problem, numbers(targets)
        if target is None or target.shape != (1, 3):
            return None
        place = target[0].tolist()
        # This comparison is false for NaN, too.
        if not all(abs(part) <= LARGEST for part in place):
            return None
        starts, location = self._rest, problem.skeleton.rest[0, :3, 3]
        if start is not None:
            starts = self._start_poses(problem.legal(checked_start(start, problem.skeleton, 1)))
        if start_location is not None:
            location = checked_root_location(start_location, problem.skeleton, 1)[0]
        # Relative to the root, since single precision is coarse far from the origin.
        away = [part - own for part, own in zip(place, location.tolist(), strict=True)]
        found = self._improved(starts, self._backend.vector_of(away), 1, True)
        rotations = np.array(starts.rotations[0])
        rotations[problem.bones] = self._backend.stack(found.local, 1)[0]
        is_near = problem.reaches.near[0] <= math.hypot(*away) <= problem.reaches.far[0]
        unmet = Status.STALLED if is_near else Status.UNREACHABLE
        return Solution(
            skeleton=problem.skeleton,
            rotations=rotations,
            root_location=np.array(location),
            errors=np.array([found.error]),
            rotation_errors=np.array([math.nan]),
            status=np.array(Status.SOLVED if found.error <= self._tolerance else unmet)[()],
            iterations=np.array(found.iterations, dtype=np.int64)[()],
            binding=np.zeros(len(rotations), dtype=bool),
            lengths=np.array(problem.skeleton.lengths),
        )

    @cached_property
    def _rest(self) -> _StartPoses:
        return self._start_poses(self._problem.legal(checked_start(None, self._problem.skeleton, 1)))

    def _start_poses(self, rotations: FloatArray, poles: FloatArray | None = None) -> _StartPoses:
        """Prepare start poses (F, J, 4). Straight chains bend toward poles (F, 1, 3), given relative to the root."""
        backend, bodies, bones = self._backend, self._bodies, self._problem.bones
        own, frames = rotations[:, bones], len(rotations)
        bent = bend_straight_limbs(self._problem, self._problem.bodies.pose(own, np.zeros((frames, 3))), poles)
        if frames == 1:
            own, bent = (np.broadcast_to(each[0], each.shape) for each in (own, bent))
        local, bent_local = (backend.quaternions(each) for each in (own, bent))
        poses = (place_bodies(bodies, each, self._origin) for each in (local, bent_local))
        points, bent_points = (
            [*(pose.heads[index] for index in self._links), pose.point(len(bodies) - 1, bodies[-1].attachments[0])]
            for pose in poses
        )
        return _StartPoses(rotations, local, bent_local, points, bent_points)

    def _improved(
        self, starts: _StartPoses, goal: Vector, count: int, counts: Condition, pole: Vector | None = None
    ) -> _Found:
        """Solve the chains, and bend them toward `pole` (NaN: none); no chain gets farther from its target."""
        backend = self._backend
        before = (starts.points[-1] - goal).length
        unmet = before > self._tolerance
        if pole is not None:
            unmet = unmet | (np.abs(_pole_angle(backend, starts.points, pole)[1]) > CLOSE)
        frames = backend.frames_where(unmet & counts)
        if not len(frames) or not self._links:
            return _Found(starts.local, before, 0)
        bent, points, target = starts.bent, starts.bent_points, goal
        if len(frames) < count:
            target, pole = backend.take(goal, frames), None if pole is None else backend.take(pole, frames)
            bent = [backend.take(rotation, frames) for rotation in bent]
            points = [backend.take(point, frames) for point in points]
        new = self._reached(bent, points, target, pole, len(frames))
        better = backend.frames_where(new.error <= backend.maximum(backend.take(before, frames), self._tolerance))
        if len(better) == count:
            return new
        where, steps = frames[better], backend.put(backend.scalar(np.zeros(count)), frames, new.iterations, count)
        local = [
            backend.put(old, where, backend.take(rotation, better), count)
            for old, rotation in zip(starts.local, new.local, strict=True)
        ]
        return _Found(local, backend.put(before, where, backend.take(new.error, better), count), steps)

    def _reached(
        self, bent: list[Quaternion], points: list[Vector], target: Vector, pole: Vector | None, frames: int
    ) -> _Found:
        backend = self._backend
        chain = chains.Chain(points, self._distances, target.x * 0.0, frames)
        chains.reach(backend, chain, target, self._tolerance, self._problem.options)
        if pole is not None:
            axis, angle = _pole_angle(backend, chain.points, pole)
            turn = backend.exp_map(axis * angle)
            chain.points = [chain.points[0], *(turn @ point for point in chain.points[1:])]
        aims = dict(zip(self._links, chain.points[1:], strict=True))
        local, tip = chains.turn_bodies(backend, self._bodies, bent, self._origin, aims)
        return _Found(local, (tip - target).length, chain.iterations)


def _pole_angle(backend: Backend, points: list[Vector], pole: Vector) -> tuple[Vector, Scalar]:
    """The line from the root (the origin) to the tip, and the angle about it from a chain's middle to its pole.

    It is reduced to zero if either is almost on the line, and is zero if the pole is NaN.
    """
    axis = first_direction(backend, points[-1], points[1], points[1])
    side, wanted = (arm - axis * arm.dot(axis) for arm in (sum_vectors(points[1:-1]), pole))
    angle = backend.atan2(axis.dot(side.cross(wanted)), side.dot(wanted))
    clear = backend.minimum(side.length, wanted.length) / (CLEAR * points[-1].length + TINY)
    return axis, np.nan_to_num(angle * backend.minimum(clear, 1.0))
