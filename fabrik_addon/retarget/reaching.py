"""Limbs that limits keep from their goals: those frames are solved anew, with the collar bone, by least squares."""

from collections.abc import Mapping

import numpy as np

from ..core import Effector, Fixed, Options, Skeleton, Solver, forward_kinematics
from ..core.arrays import FloatArray, IntArray, lengths
from ..core.limits.base import Limit
from ..core.model.targets import PosePrior
from ..core.rotations import matrix_from_quaternion
from .goals import End

# What a bone's turn off the source's rotation counts beside places: a radian as much as this share of the limb.
_ROTATION_SHARE = 0.03
# Shares of the limb's length: a goal missed by more is solved for, to about so exact.
_MISSED = 1e-3
_OPTIONS = Options(max_sweeps=0, restarts=0, tolerance=5e-4)
_HEAD = (0.0, 0.0, 0.0)


class Reach:
    """Solves one limb, prepared once."""

    def __init__(self, skeleton: Skeleton, end: End, limits: Mapping[str, Limit], free: frozenset[str]) -> None:
        """free: the bones that may turn; the collar bone joins in where it is one of them."""
        path = skeleton.path(end.limb[-1])
        first = path.index(end.limb[0])
        if end.is_hand and first > 0 and skeleton.names[path[first - 1]] in free & limits.keys():
            first -= 1
        self._bones: IntArray = np.array(path[first:])
        self._carrier = path[first - 1] if first else -1
        part = skeleton.part(path[first:])
        points = [] if end.sole is None else [tuple(end.sole.heel.tolist()), tuple(end.sole.ball.tolist())]
        self.points = np.array([_HEAD, *points])
        own: dict[str, Limit] = {name: Fixed() for name in part.names if name not in free}
        own |= {name: limits[name] for name in part.names if name in free and name in limits}
        effectors = [Effector(end.name, (point[0], point[1], point[2])) for point in self.points.tolist()]
        self._solver = Solver(part, effectors, limits=own, options=_OPTIONS)
        self._rest = np.eye(4) if self._carrier < 0 else skeleton.rest[self._carrier]
        self._length = float(sum(np.linalg.norm(np.diff(skeleton.rest[path[first:], :3, 3], axis=0), axis=1)))
        self._limited = bool(own)

    def solve(self, local: FloatArray, matrices: FloatArray, places: FloatArray, rotations: FloatArray) -> None:
        """Write the limb's rotations into (F, J, 4) local ones where their clamped ones miss the goals.

        matrices: (F, J, 4, 4) where the carrier is. places, rotations: (F, 3) and (F, 4) of the end.
        """
        if not self._limited:
            return
        targets = places[:, None] + self.points @ np.swapaxes(matrix_from_quaternion(rotations), 1, 2)
        if self._carrier >= 0:
            away = self._rest @ np.linalg.inv(matrices[:, self._carrier])
            targets = np.einsum("fij,fpj->fpi", away[:, :3, :3], targets) + away[:, None, :3, 3]
        own = local[:, self._bones]
        legal = self._solver.problem.legal(own)
        reached = forward_kinematics(self._solver.skeleton, legal)[:, -1]
        placed = reached[:, None, :3, 3] + self.points @ np.swapaxes(reached[:, :3, :3], 1, 2)
        missed = np.flatnonzero(lengths(placed - targets).max(axis=1) > _MISSED * self._length)
        local[:, self._bones] = legal
        if len(missed):
            weights = np.full(len(self._bones), (_ROTATION_SHARE * self._length) ** 2)
            prior = PosePrior(own[missed], weights)
            solved = self._solver.solve(targets[missed], start=legal[missed], prior=prior)
            local[missed[:, None], self._bones] = solved.rotations
