"""Limbs that nothing leads: where the trunk tilts they keep how they stand to the vertical, and turn about it with it.

Otherwise they would ride on the trunk, and who bends down would have an arm point up. Rigs for animation have the same
choice for limbs on FK (Rigify: "FK limb follow", off as it comes).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..arrays import ROUNDING, BoolArray, FloatArray, IntArray, lengths, times
from ..limits.base import Limit
from ..model.kinematics import forward_kinematics
from ..rotations import matrix_from_quaternion, product, quaternion_from_rotation_vector
from .bodies import Bodies, Pose, cross, joint_axes
from .joint_limits import JointLimits

# Radians: a trunk that is tilted farther than that takes limbs along more and more, until they ride on it upside down.
# There the tilt has no axis of its own: limbs that kept to the vertical would whirl about. Who touches the floor has
# the chest at 125 degrees.
_FARTHEST = np.radians(150.0)


class HangFrom(NamedTuple):
    """The pose whose tilts limbs keep, (J, 4) local rotations and the root's head at (3,), and the way (3,) up."""

    rotations: FloatArray
    location: FloatArray
    up: FloatArray


class Hanging:
    """The H joints at which such limbs hang on bodies.

    Attributes:
        bones: (H,) places in the skeleton.
        share: (J,) of a tilt that a bone's limb does not go along with, 0 where it rides.
        joint: (J,) the bone at whose head that limb hangs.
    """

    def __init__(self, bodies: Bodies, shares: FloatArray, limits: Mapping[str, Limit], start: HangFrom) -> None:
        """shares: (J,) of each joint, by itself."""
        skeleton = bodies.skeleton
        self.joint = _joints(bodies, shares, limits)
        self.bones: IntArray = np.flatnonzero(self.joint == np.arange(len(shares)))
        self.share = np.where(self.joint >= 0, shares[self.joint], 0.0)
        posed = forward_kinematics(skeleton, start.rotations, start.location)
        self._on, self._up, self._local = bodies.carrier[self.bones], start.up, start.rotations[self.bones]
        back = np.swapaxes(posed[bodies.bones[self._on], :3, :3], 1, 2)
        own = posed[self.bones, :3, :3] @ np.swapaxes(matrix_from_quaternion(self._local), 1, 2)
        self._upright, self._carried = back @ start.up, back @ own
        joints = [limits.get(skeleton.names[bone]) for bone in self.bones]
        axes = [joint_axes(limit, 1.0) for limit in joints]
        self._limits = JointLimits(Bodies(skeleton, self.bones.tolist(), axes, False), joints)
        self._posed = posed

    def drawn_in(self, points: FloatArray, posed: FloatArray) -> FloatArray:
        """(J, 3) points of bones that stand at (J, 4, 4), each as near to its limb's joint as it rides on the trunk."""
        joints = posed[self.joint, :3, 3]
        return np.asarray(points - self.share[:, None] * (points - joints))

    def beside(self, along: FloatArray) -> FloatArray:
        """(J, 3) what is left out by that, as the limbs hang, of points that are (J,) metres along the bones."""
        points = self._posed[:, :3, 3] + along[:, None] * self._posed[:, :3, 1]
        return points - self.drawn_in(points, self._posed)

    def turned(self, pose: Pose) -> FloatArray:
        """(H, 4) local rotations of the joints, inside their limits."""
        orientations = pose.orientations[self._on]
        upright = times(orientations, self._upright)
        axes = cross(np.broadcast_to(self._up, upright.shape), upright)
        sine = lengths(axes)
        tilt = np.arctan2(sine, upright @ self._up)
        kept = np.where(tilt > _FARTHEST, _FARTHEST * (np.pi - tilt) / (np.pi - _FARTHEST), tilt)
        back = -(self.share[self.bones] * kept / np.maximum(sine, ROUNDING))[:, None] * axes
        turns = times(np.swapaxes(orientations @ self._carried, 1, 2), back)
        return self._limits.clamped(product(quaternion_from_rotation_vector(turns), self._local))


def _joints(bodies: Bodies, shares: FloatArray, limits: Mapping[str, Limit]) -> IntArray:
    """(J,) the uppermost joint above each bone, or the bone itself, that hangs on a body; -1 for none."""
    skeleton = bodies.skeleton
    led: BoolArray = np.zeros(len(shares), dtype=bool)
    led[bodies.bones] = True
    result = np.full(len(shares), -1, dtype=np.int64)
    rides = led.copy()
    for bone, parent in enumerate(skeleton.parents):
        if led[bone] or parent < 0 or not skeleton.inherits_rotation[bone]:
            continue
        rides[bone] = rides[parent]
        limit = limits.get(skeleton.names[bone])
        hangs = rides[bone] and shares[bone] > 0.0 and (limit is None or limit.freedom > 0)
        result[bone] = result[parent] if result[parent] >= 0 else bone if hangs else -1
    return result
