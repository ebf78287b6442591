"""One pose of a chain without limits: the short way from a target to a solution.

Step for step what `solve` does, with the same sweeps and the same finish (see `chain`), but without its bookkeeping
for many frames, limits and several goals, which for one pose of ten bones takes longer than the sweeps.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, Quaternion, Vector
from ..model.bodies import Body, Reaches, place_bodies
from ..model.options import Options
from ..model.skeleton import Skeleton
from ..model.validation import checked_root_location, checked_start
from ..solution import Solution, Status
from . import chain as chains
from .start import bend_limbs, straight_runs


class _Start(NamedTuple):
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
    """A chain made ready to be solved for one pose at a time.

    Args:
        numbers: the number system for one pose.
        bodies: one chain, as `chain.is_chain` says.
        skeleton: the bones that they are of.
        reaches: how far its one effector gets.
        tolerance: the distance from a target that is near enough.
        options: how to go about it.
    """

    def __init__(
        self,
        numbers: ModuleType,
        bodies: Sequence[Body],
        skeleton: Skeleton,
        reaches: Reaches,
        tolerance: float,
        options: Options,
    ) -> None:
        self._numbers, self._bodies, self._skeleton, self._options = numbers, bodies, skeleton, options
        self._far, self._near, self._tolerance = float(reaches.far[0]), float(reaches.near[0]), tolerance
        self._runs, self._links = straight_runs(bodies), chains.links_of(bodies)
        self._distances = [bodies[index].attachments[0].distance for index in self._links]
        self._bones = [body.bone for body in bodies]

    def solve(
        self, targets: npt.ArrayLike, start: npt.ArrayLike | None, start_location: npt.ArrayLike | None
    ) -> Solution | None:
        """The pose for one target that is seen; None for any other targets.

        Raises:
            TargetError: for a start that does not fit.
        """
        target = np.asarray(targets, dtype=np.float64)
        if target.shape != (1, 3):
            return None
        place = target[0].tolist()
        if not all(map(math.isfinite, place)):
            return None
        begun = self._rest if start is None and start_location is None else self._begun(start, start_location)
        local, error, iterations = self._improved(begun, place)
        return self._solution(begun, local, error, iterations, self._status(begun, place, error))

    @cached_property
    def _rest(self) -> _Start:
        return self._begun(None, None)

    def _begun(self, start: npt.ArrayLike | None, start_location: npt.ArrayLike | None) -> _Start:
        """The start pose, checked."""
        numbers, bodies = self._numbers, self._bodies
        rotations = checked_start(start, self._skeleton, 1)[0]
        location = checked_root_location(start_location, self._skeleton, 1)[0]
        root = numbers.Vector(location.tolist())
        local = numbers.quaternions(rotations[None], self._bones)
        pose = place_bodies(bodies, local, root)
        points = chains.chain_points(bodies, self._links, pose)
        tip = points[-1]
        bent = bend_limbs(numbers, bodies, self._runs, local, pose)
        if bent is not local:
            points = chains.chain_points(bodies, self._links, place_bodies(bodies, bent, root))
        return _Start(rotations, location, local, root, tip, bent, points)

    def _improved(self, start: _Start, target: Sequence[float]) -> tuple[list[Quaternion], float, int]:
        """Local rotations no farther from the target than at the start, how far that is, and the steps taken."""
        numbers, bodies = self._numbers, self._bodies
        goal = numbers.Vector(target)
        before = (start.tip - goal).length
        if before <= self._tolerance or not self._links:
            return start.local, before, 0
        chain = chains.Chain(start.points, self._distances, 0)
        chains.reach(numbers, chain, goal, self._tolerance, self._options)
        aims = dict(zip(self._links, chain.points[1:], strict=True))
        local, pose = chains.turn_bodies(numbers, bodies, start.bent, start.root, aims)
        after = (pose.point(len(bodies) - 1, bodies[-1].attachments[0]) - goal).length
        return (local, after, chain.iterations) if after <= before else (start.local, before, chain.iterations)

    def _status(self, start: _Start, target: Sequence[float], error: float) -> Status:
        if error <= self._tolerance:
            return Status.SOLVED
        within = self._near <= math.dist(target, start.location) <= self._far
        return Status.STALLED if within else Status.UNREACHABLE

    def _solution(
        self, start: _Start, local: list[Quaternion], error: float, iterations: int, status: Status
    ) -> Solution:
        rotations = np.array(start.rotations)
        rotations[self._bones] = self._numbers.stack(local)[0]
        return Solution(
            skeleton=self._skeleton,
            rotations=rotations,
            root_location=np.array(start.location),
            errors=np.array([error]),
            rotation_errors=np.array([math.nan]),
            status=_entry(status),
            iterations=_entry(iterations),
            binding=np.zeros(len(rotations), dtype=bool),
            lengths=np.array(self._skeleton.lengths),
        )


def _entry(number: int) -> Any:
    """A whole number as one frame of many would hold it."""
    return np.int64(number)
