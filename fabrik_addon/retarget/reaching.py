"""Solves arms and legs by least squares on frames on which limits keep hands or feet from their targets.

An arm is solved together with its collar bone. Legs are solved together with the hips, which give way to planted feet.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ..core import Effector, Fixed, Options, Skeleton, Solver, forward_kinematics
from ..core.arrays import FloatArray, IntArray, lengths, times
from ..core.limits.base import Limit
from ..core.model.targets import PosePrior
from ..core.rotations import conjugate, matrix_from_quaternion, product, quaternion_from_matrix
from .alignment import path_length
from .goals import End

# Weight of the source's rotations: a radian counts as much as this share of the limb's length. A leg that kicks beyond
# its limits keeps its direction rather than its foot's position: with 0.03 it jumps between two poses.
_ARM_SHARE: Final = 0.05
_LEG_SHARE: Final = 0.15
_HIPS_SHARE: Final = 0.2
# Targets missed by more than this share of the limb's length are solved for.
_MISSED: Final = 1e-3
# In a dance 60 steps bring the hips 1 mm nearer to their target than 20, with feet as near, in twice the time; 12 leave
# feet up to 1 cm too deep.
_OPTIONS: Final = Options(max_sweeps=0, restarts=0, tolerance=5e-4, most_steps=20)
# Weights of the hips, of a foot in the air, and the factor for a point that is planted or near the ground. Measured on
# three takes and four rigs: with 0.05 and 1000 hips give way half as much again to a leg that kicks beyond its limits,
# and are twice as restless; with 1 and 1000 soles are up to 6 mm below the floor, with these 4.3. In between, the
# logarithm of the weight grows with the share. A linear weight reached nearly its full value at a share of a fiftieth,
# and shins rotated by 19 degrees in a frame where the source's did by 6.
_HIPS_WEIGHT: Final = 0.3
_FOOT_WEIGHT: Final = 0.1
_STANDING_WEIGHT: Final = 2500.0
_HEAD: Final = (0.0, 0.0, 0.0)


class ArmReach:
    """Solves one arm; prepared once."""

    def __init__(self, skeleton: Skeleton, end: End, limits: Mapping[str, Limit], free: frozenset[str]) -> None:
        """free: the bones that may rotate; the collar bone is used if it is among them."""
        path = skeleton.path(end.limb[-1])
        first = path.index(end.limb[0])
        if first > 0 and skeleton.names[path[first - 1]] in free & limits.keys():
            first -= 1
        self._bones: IntArray = np.array(path[first:])
        self._carrier = path[first - 1] if first else -1
        part = skeleton.part(path[first:])
        own = _own_limits(part, limits, free)
        self._solver = Solver(part, [Effector(end.name, _HEAD)], limits=own, options=_OPTIONS)
        self._rest = np.eye(4) if self._carrier < 0 else skeleton.rest[self._carrier]
        self._length = path_length(skeleton.rest[path[first:], :3, 3])
        self._limited = bool(own)

    def solve(self, local: FloatArray, matrices: FloatArray, places: FloatArray) -> None:
        """Write the arm's rotations into local ones (F, J, 4) on frames on which limits keep the hand from its target.

        matrices: (F, J, 4, 4) of the bones. places: (F, 3) target positions of the hand's head, armature space.
        """
        if not self._limited:
            return
        targets = places
        if self._carrier >= 0:
            away = self._rest @ np.linalg.inv(matrices[:, self._carrier])
            targets = times(away[:, :3, :3], targets) + away[:, :3, 3]
        own = local[:, self._bones]
        legal = self._solver.problem.legal(own)
        reached = forward_kinematics(self._solver.skeleton, legal)[:, -1, :3, 3]
        missed = np.flatnonzero(lengths(reached - targets) > _MISSED * self._length)
        local[:, self._bones] = legal
        if len(missed):
            weights = np.full(len(self._bones), (_ARM_SHARE * self._length) ** 2)
            prior = PosePrior(own[missed], weights)
            solved = self._solver.solve(targets[missed, None], start=legal[missed], prior=prior)
            local[missed[:, None], self._bones] = solved.rotations


class LegReach:
    """Solves hips and legs together; prepared once."""

    def __init__(
        self, skeleton: Skeleton, hips: int, ends: Sequence[End], limits: Mapping[str, Limit], free: frozenset[str]
    ) -> None:
        """ends: the feet. free: the bones that may rotate."""
        paths = [skeleton.path(end.limb[-1]) for end in ends]
        bones = [hips, *sorted({bone for path in paths if hips in path for bone in path[path.index(hips) + 1 :]})]
        self._bones: IntArray = np.array(bones)
        part = skeleton.part(bones)
        self._limited = any(name in limits for name in part.names[1:])
        # The head of each foot, its heel and both sides of its ball, in its frame.
        self._points = []
        for end in ends:
            sole = end.sole
            corners = [] if sole is None else [sole.heel, sole.ball + sole.aside, sole.ball - sole.aside]
            self._points.append(np.array([_HEAD, *corners]))
        self._feet = [part.index(end.name) for end in ends]
        effectors = [Effector(skeleton.names[hips], _HEAD)]
        for end, points in zip(ends, self._points, strict=True):
            effectors += [Effector(end.name, (x, y, z)) for x, y, z in points.tolist()]
        own = _own_limits(part, limits, free)
        self._solver = Solver(part, effectors, limits=own, root="FREE", options=_OPTIONS)
        self._rest = quaternion_from_matrix(skeleton.rest[hips, :3, :3])
        self._length = float(np.mean([end.length for end in ends])) if ends else 1.0

    def solve(
        self,
        local: FloatArray,
        root: FloatArray,
        matrices: FloatArray,
        feet: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    ) -> None:
        """Write rotations of hips and legs into local ones (F, J, 4), and the root's location into `root` (F, 3).

        matrices: (F, J, 4, 4) of the bones. feet: for each (F, 3) its location, (F, 4) its rotation, and (F, 2) how
        firmly heel and ball are planted; armature space.
        """
        if not self._limited:
            return
        hips = int(self._bones[0])
        own = local[:, self._bones]
        turned = quaternion_from_matrix(matrices[:, hips, :3, :3])
        own[:, 0] = product(conjugate(self._rest), turned)
        heads = matrices[:, hips, :3, 3]
        legal = self._solver.problem.legal(own)
        targets, weights = [heads[:, None]], [np.full((len(heads), 1), _HIPS_WEIGHT)]
        for points, (places, rotations, standing) in zip(self._points, feet, strict=True):
            targets.append(places[:, None] + points @ np.swapaxes(matrix_from_quaternion(rotations), 1, 2))
            counted = np.full((len(heads), len(points)), _FOOT_WEIGHT)
            if len(points) > 1:
                # Each side of the ball counts half as much as the heel.
                counted[:, 1:] *= (_STANDING_WEIGHT * np.array([1.0, 0.5, 0.5])) ** standing[:, [0, 1, 1]]
            weights.append(counted)
        wanted, counts = np.concatenate(targets, axis=1), np.concatenate(weights, axis=1)
        posed = forward_kinematics(self._solver.skeleton, legal, heads)
        placed = [
            posed[:, foot, None, :3, 3] + points @ np.swapaxes(posed[:, foot, :3, :3], 1, 2)
            for foot, points in zip(self._feet, self._points, strict=True)
        ]
        off = lengths(np.concatenate(placed, axis=1) - wanted[:, 1:]).max(axis=1)
        missed = np.flatnonzero(off > _MISSED * self._length)
        local[:, self._bones[1:]] = legal[:, 1:]
        if not len(missed):
            return
        shares = np.full(len(self._bones), (_LEG_SHARE * self._length) ** 2)
        shares[0] = (_HIPS_SHARE * self._length) ** 2
        solved = self._solver.solve(
            wanted[missed],
            start=legal[missed],
            start_location=heads[missed],
            weights=counts[missed],
            prior=PosePrior(own[missed], shares),
        )
        local[missed[:, None], self._bones[1:]] = solved.rotations[:, 1:]
        found = product(self._rest, solved.rotations[:, 0])
        local[missed, hips] = product(local[missed, hips], product(conjugate(turned[missed]), found))
        root[missed] += solved.root_location - heads[missed]


def _own_limits(part: Skeleton, limits: Mapping[str, Limit], free: frozenset[str]) -> dict[str, Limit]:
    """The limits of some bones; bones that are not free are fixed."""
    own: dict[str, Limit] = {name: Fixed() for name in part.names[1:] if name not in free}
    return own | {name: limits[name] for name in part.names if name in free and name in limits}
