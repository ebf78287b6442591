"""Poles: a limb rotates about the line from its base to its end until its middle points at its pole.

The residual is the remaining angle, so it does not act against goals.
"""

from collections.abc import Sequence

import numpy as np

from ..arrays import TINY, FloatArray, IntArray, lengths
from ..fabrik.limbs import BendLimb
from ..kernel.bodies import Bodies, Motions, Pose, cross

# A limb is straight if its middle is closer to its line than this fraction of its length: then no direction is defined.
CLEAR = 1e-3


class Poles:
    """P limbs that may have poles.

    Attributes:
        limbs: (P,).
        effectors: (P,) at which they end.
        sizes: (P,) units of length for a radian: a tenth of the limbs' lengths.
    """

    def __init__(self, bodies: Bodies, limbs: Sequence[BendLimb]) -> None:
        self.limbs, self._bodies = limbs, bodies
        self.effectors: IntArray = np.array([limb.effector for limb in limbs], dtype=np.int64)
        bones = bodies.skeleton.lengths[bodies.bones]
        self.sizes: FloatArray = np.array([0.1 * max(bones[list(limb.bodies)].sum(), TINY) for limb in limbs])

    def residual(self, pose: Pose, poles: FloatArray) -> FloatArray:
        """(F, P) the angles of P limbs to their poles (F, E, 3), in radians, times `sizes`; zero without a pole."""
        angles = [self.angle(index, pose, poles) for index in range(len(self.limbs))]
        return np.stack(angles, axis=1) * self.sizes if angles else np.zeros((len(pose.root), 0))

    def angle(self, index: int, pose: Pose, poles: FloatArray) -> FloatArray:
        """(F,) radians from a limb's middle to its pole, about its line; reduced to zero if either is almost on it."""
        axis, length, side, to_pole = self._frame(index, pose, poles)
        angle = np.arctan2((axis * cross(side, to_pole)).sum(axis=-1), (side * to_pole).sum(axis=-1))
        clear = np.minimum(lengths(side), lengths(to_pole)) / np.maximum(length * CLEAR, TINY)
        return np.where(np.isnan(angle) | (length <= TINY), 0.0, angle * np.minimum(clear, 1.0))

    def axis(self, index: int, pose: Pose) -> tuple[FloatArray, FloatArray]:
        """(F, 3) unit vectors from a limb's base to its end, and (F,) the distances."""
        limb = self.limbs[index]
        line = pose.points(np.array(limb.bodies[-1:]), limb.end[None])[:, 0] - pose.heads[:, limb.bodies[0]]
        length = lengths(line)
        return line / np.maximum(length, TINY)[:, None], length

    def rows(self, pose: Pose, motions: Motions, poles: FloatArray) -> FloatArray:
        """(F, P, D) the reduction of the residual per unit of each column while the limb's line is fixed."""
        rows = np.zeros((len(pose.root), len(self.limbs), self._bodies.columns))
        for index, limb in enumerate(self.limbs):
            axis, _, side, to_pole = self._frame(index, pose, poles)
            middle = np.array(limb.middle)
            shifts = self._bodies.shifts(pose, motions, pose.heads[:, middle], middle)
            base = np.array(limb.bodies[:1])
            moved = (shifts - self._bodies.shifts(pose, motions, pose.heads[:, base], base)).sum(axis=1)
            about = cross(axis, side) / np.maximum((side * side).sum(axis=-1), TINY)[:, None]
            seen = ~np.isnan(to_pole).any(axis=-1) & (lengths(side) > TINY)
            rows[:, index] = np.where(seen[:, None], (about[:, None] @ moved)[:, 0], 0.0)
        return rows * self.sizes[:, None]

    def _frame(
        self, index: int, pose: Pose, poles: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """(F, 3) a limb's line, (F,) its length, and (F, 3) vectors to its middle and pole, perpendicular to it."""
        limb = self.limbs[index]
        base, (axis, length) = pose.heads[:, limb.bodies[0]], self.axis(index, pose)
        side = (pose.heads[:, list(limb.middle)] - base[:, None]).sum(axis=1)
        to_pole = poles[:, limb.effector] - base
        return axis, length, *(arm - axis * (arm * axis).sum(axis=-1, keepdims=True) for arm in (side, to_pole))
