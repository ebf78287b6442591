"""One pose of a chain without limits: the short way from a target to a solution.

Step for step what `solve` does, with the same sweeps and the same exact end (see `chain`), but without its bookkeeping
for many frames, limits and several targets. For 2, 10 and 30 bones it takes 34, 118 and 238 µs, the common way 592, 668
and 965 (medians of nine rounds): of what that takes more, keeping the better pose, the solution and the state are two
thirds, some 150 numpy calls that one pose is too small for.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..attempt import bend_straight
from ..backend.protocol import Backend, Quaternion, Vector
from ..fabrik import chain as chains
from ..model.bodies import build_bodies, place_bodies
from ..model.validation import FARTHEST, checked_root_location, checked_start
from ..problem import Problem
from ..readers import numbers
from ..solution import Solution, Status


class _Begun(NamedTuple):
    """A start pose.

    Attributes:
        rotations: (J, 4) of all bones.
        location: (3,) the root's head.
        local: the local rotations of the B bodies.
        root: the root's head.
        tip: the effector.
        bent: the local rotations where straight limbs have been bent.
        points: the points of the bent chain, root first.
    """

    rotations: FloatArray
    location: FloatArray
    local: list[Quaternion]
    root: Vector
    tip: Vector
    bent: list[Quaternion]
    points: list[Vector]


class OneChain:
    """A chain made ready to be solved for one pose at a time; see `Problem.is_chain`."""

    def __init__(self, problem: Problem, backend: Backend) -> None:
        self._problem, self._backend = problem, backend
        self._bodies = build_bodies(problem.skeleton, problem.effectors, {}, backend)
        self._tolerance = float(problem.tolerances[0])
        self._links = chains.links_of(self._bodies)
        self._distances = [self._bodies[index].attachments[0].distance for index in self._links]

    def solve(
        self, targets: npt.ArrayLike, start: npt.ArrayLike | None, start_location: npt.ArrayLike | None
    ) -> Solution | None:
        """The pose for one target that is seen; None for any other targets.

        Raises:
            TargetError: for a start that does not fit.
        """
        target = numbers(targets)
        if target is None or target.shape != (1, 3):
            return None
        place = target[0].tolist()
        if not all(abs(part) <= FARTHEST for part in place):  # NaN is not
            return None
        begun = self._rest if start is None and start_location is None else self._begun(start, start_location)
        local, error, iterations = self._improved(begun, place)
        return self._solution(begun, local, error, iterations, self._status(begun, place, error))

    @cached_property
    def _rest(self) -> _Begun:
        return self._begun(None, None)

    def _begun(self, start: npt.ArrayLike | None, start_location: npt.ArrayLike | None) -> _Begun:
        """The start pose, checked."""
        backend, bodies = self._backend, self._bodies
        rotations = self._problem.legal(checked_start(start, self._problem.skeleton, 1))[0]
        location = checked_root_location(start_location, self._problem.skeleton, 1)[0]
        root = backend.Vector((0.0, 0.0, 0.0))  # in single precision far places are rough
        local = backend.quaternions(rotations[None], self._problem.bones)
        pose = place_bodies(bodies, local, root)
        points = chains.chain_points(bodies, self._links, pose)
        tip = points[-1]
        straight = self._problem.bodies.pose(rotations[None, self._problem.bones], np.zeros((1, 3)))
        bent = backend.quaternions(bend_straight(self._problem, straight, np.zeros(1, dtype=bool)), range(len(bodies)))
        points = chains.chain_points(bodies, self._links, place_bodies(bodies, bent, root))
        return _Begun(rotations, location, local, root, tip, bent, points)

    def _improved(self, start: _Begun, target: Sequence[float]) -> tuple[list[Quaternion], float, int]:
        """Local rotations no farther from the target than at the start, how far that is, and the steps taken."""
        backend, bodies = self._backend, self._bodies
        goal = backend.Vector([place - own for place, own in zip(target, start.location.tolist(), strict=True)])
        before = float((start.tip - goal).length)
        if before <= self._tolerance or not self._links:
            return start.local, before, 0
        chain = chains.Chain(start.points, self._distances, 0)
        chains.reach(backend, chain, goal, self._tolerance, self._problem.options)
        aims = dict(zip(self._links, chain.points[1:], strict=True))
        local, pose = chains.turn_bodies(backend, bodies, start.bent, start.root, aims)
        after = float((pose.point(len(bodies) - 1, bodies[-1].attachments[0]) - goal).length)
        iterations = int(chain.iterations)
        return (local, after, iterations) if after <= before else (start.local, before, iterations)

    def _status(self, start: _Begun, target: Sequence[float], error: float) -> Status:
        if error <= self._tolerance:
            return Status.SOLVED
        near, far = self._problem.reaches.near[0], self._problem.reaches.far[0]
        within = near <= math.dist(target, start.location) <= far
        return Status.STALLED if within else Status.UNREACHABLE

    def _solution(
        self, start: _Begun, local: list[Quaternion], error: float, iterations: int, status: Status
    ) -> Solution:
        rotations = np.array(start.rotations)
        rotations[self._problem.bones] = self._backend.stack(local, 1)[0]
        return Solution(
            skeleton=self._problem.skeleton,
            rotations=rotations,
            root_location=np.array(start.location),
            errors=np.array([error]),
            rotation_errors=np.array([math.nan]),
            status=_entry(status),
            iterations=_entry(iterations),
            binding=np.zeros(len(rotations), dtype=bool),
            lengths=np.array(self._problem.skeleton.lengths),
        )


def _entry(number: int) -> Any:
    """A whole number as one frame of many would hold it."""
    return np.int64(number)
