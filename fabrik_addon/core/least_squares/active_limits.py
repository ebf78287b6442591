"""The joint limits at which bodies stand, and what they leave open of a least-squares step."""

import numpy as np

from ..arrays import ROUNDING, FloatArray, IntArray, lengths, times
from ..backend import array
from ..backend.array import Quaternion, Vector
from ..model.residuals import rotation_vector
from .equations import Equations
from .joints import AT_LIMIT, Joints, by_frame

# A limit is active from this cosine on between the residuals and a turn out of it; below it is rounding.
_PUSH = 1e-9
# A turn is cut short where a limit takes a tenth of it: less is the bend of the limit's own outline.
_CUT = 0.1


class LimitConstraints:
    """The limit constraints at which B bodies stand on F frames, K or fewer to a body.

    Attributes:
        normals: (F, B, K, 3) unit, in armature space; turning along one leads out of the limit. Zero where there is
            none, or where the body does not stand at it.
    """

    def __init__(self, joints: Joints, local: FloatArray, carried: FloatArray) -> None:
        """Look at all limits from local rotations (4, B, F), in the frames (4, B, F) that carry them."""
        found = list(joints.constraints(local))
        most = max((side + 1 for _, _, side, _ in found), default=0)
        self.normals = np.zeros((*local.shape[:0:-1], most, 3))
        for bodies, frames, side, normal in found:
            outward = Quaternion(carried[:, bodies, frames]) @ Vector(normal)
            size = 1.0 / np.maximum(outward.length, ROUNDING)
            self.normals[frames, bodies, side] = np.array([outward.x * size, outward.y * size, outward.z * size]).T

    def projected(self, equations: Equations, frames: slice, cost: FloatArray) -> Equations:
        """The equations of N of the frames, whose cost is (N,), without what the active limits close."""
        if not self.normals.any():
            return equations
        push = equations.push()[:, : 3 * self.normals.shape[1]]
        least = _PUSH * np.sqrt(cost)
        return equations.projected(self.tangents(push.reshape(len(push), -1, 3), least, frames))

    def tangents(self, push: FloatArray, least: FloatArray, frames: slice) -> FloatArray:
        """(N, B, 3, 3) projectors of rotation vectors on what the limits leave open where (N, B, 3) pushes the joints.

        A push of no more than (N,) `least` is none.

        The limit that is pushed against most is active; then, of what it leaves of the push, the one that this is
        pushed against most, and so on. With two limits, at a corner, this is the nearest feasible direction.
        """
        normals = self.normals[frames]
        tangents = np.broadcast_to(np.eye(3), (*push.shape, 3)).copy()
        where = np.nonzero(normals.any(axis=(2, 3)))
        normals, left, open_ = normals[where], push[where], tangents[where]
        least = least[where[0]]
        for _ in range(normals.shape[1]):
            against = times(normals, left)
            most = against.argmax(axis=1)
            rows = np.arange(len(most))
            active = against[rows, most] > least
            if not active.any():
                break
            unit = times(open_, normals[rows, most])
            unit *= (active / np.maximum(lengths(unit), ROUNDING))[:, None]
            open_ -= unit[:, :, None] * unit[:, None, :]
            left = times(open_, left)
        tangents[where] = open_
        return tangents


def cut_short(
    carried: FloatArray, before: FloatArray, after: FloatArray, wanted: FloatArray, frames: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Where limits kept joints from turning as wanted, on N of F frames.

    Args:
        carried: (4, B, F) the frames that carry the bodies.
        before: (4, B, F) local rotations.
        after: (4, B, F) those after the step.
        wanted: (F, B, 3) rotation vectors in armature space.
        frames: (N,) the frames to look at.

    Returns:
        (F, B, 3) unit axes about which they did, zero for all others, and (F, B) how far they let them.
    """
    axes, moved = np.zeros(wanted.shape), np.zeros(wanted.shape[:2])
    if len(frames):
        carrying, old, new = (Quaternion(rows[..., frames]) for rows in (carried, before, after))
        turned = by_frame(carrying @ rotation_vector(array, new @ old.conjugated()))
        cut = wanted[frames] - turned
        size = lengths(cut)
        short = size > AT_LIMIT + _CUT * lengths(wanted[frames])
        axes[frames] = cut * (short / np.maximum(size, ROUNDING))[..., None]
        moved[frames] = (axes[frames] * turned).sum(axis=-1)
    return axes, moved
