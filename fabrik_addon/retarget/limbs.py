"""Solves arms and legs in closed form: the elbow or knee bends until the length fits, then the limb swings.

A hinge also determines the twist of the bone above it, since the limb folds about the hinge's axis. The fold of a
nearly straight limb does not show this twist, so the take's usual twist is used.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ..core import Hinge
from ..core.arrays import ROUNDING, FloatArray, lengths, times, wrapped
from ..core.limits.base import Limit
from ..core.rotations import (
    IDENTITY,
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_between,
)
from .alignment import Transfer
from .goals import End

# Weight of the take's usual twist: the squared sine of a fold by 27 degrees. It is large because recorded knees are up
# to 15 degrees beyond straight.
_USUAL: Final = 0.2


class LimbSolver:
    """Brings one limb's end to its targets on many frames; prepared once."""

    def __init__(self, transfer: Transfer, end: End, hinge: Hinge | None) -> None:
        """hinge: the limit of the limb's second bone, if that is a hinge."""
        skeleton, self._limb, self._hinge = transfer.skeleton, end.limb, hinge
        upper, lower, last = (skeleton.rest[bone] for bone in end.limb)
        # The vectors of the upper and lower bone to the next joint, each in its own bone's frame.
        self._elbow = upper[:3, :3].T @ (lower[:3, 3] - upper[:3, 3])
        self._forearm = lower[:3, :3].T @ (last[:3, 3] - lower[:3, 3])
        self._lower = quaternion_from_matrix(upper[:3, :3].T @ lower[:3, :3])
        self._end = quaternion_from_matrix(lower[:3, :3].T @ last[:3, :3])
        self._along = self._elbow / max(float(np.linalg.norm(self._elbow)), ROUNDING)
        if hinge is not None:
            self._axis = np.eye(3)["XYZ".index(hinge.axis)]
            rotations = [transfer.turned(bone, slice(None)) for bone in end.limb[:2]]
            self._twist, self._angles = self._twisted(*rotations)

    @classmethod
    def of(cls, transfer: Transfer, end: End, limits: Mapping[str, Limit]) -> "LimbSolver | None":
        """The solver of a limb; None if its bones are not connected or do not inherit rotation."""
        skeleton, (upper, lower, last) = transfer.skeleton, end.limb
        path = skeleton.path(last)
        below = path[path.index(upper) + 1 :] if upper in path else []
        if lower not in below or not skeleton.inherits_rotation[below].all():
            return None
        hinge = limits.get(skeleton.names[lower])
        return cls(transfer, end, hinge if isinstance(hinge, Hinge) and hinge.axis != "Y" else None)

    def solve(self, frames: slice, local: FloatArray, matrices: FloatArray, goals: FloatArray, end: FloatArray) -> None:
        """Solve the limb and write its local rotations to `local` (F, J, 4).

        matrices: (F, J, 4, 4) of the bones. goals: (F, 3) positions for the head of the limb's last bone. end: (F, 4)
        its rotations. All in armature space.
        """
        first, second, last = self._limb
        upper = quaternion_from_matrix(matrices[:, first, :3, :3])
        carrier = product(upper, conjugate(local[:, first]))
        shoulder = matrices[:, first, :3, 3]
        reach = lengths(goals - shoulder)
        if self._hinge is None:
            bent = local[:, second]
            axis = self._fold_axis(bent)
            folded = product(quaternion_from_rotation_vector(self._angle(axis, bent, reach)[:, None] * axis), bent)
        else:
            upper = product(upper, quaternion_from_rotation_vector(self._twist[frames, None] * self._along))
            axis = np.broadcast_to(self._axis, (len(local), 3))
            now = self._angles[frames]
            bent = quaternion_from_rotation_vector(now[:, None] * axis)
            folded = quaternion_from_rotation_vector(
                self._in_range(now + self._angle(axis, bent, reach))[:, None] * axis
            )
        ends = self._elbow + _turned(product(self._lower, folded), self._forearm)
        upper = product(rotation_between(_turned(upper, ends), goals - shoulder), upper)
        lower = product(product(upper, self._lower), folded)
        local[:, first] = product(conjugate(carrier), upper)
        local[:, second] = folded
        local[:, last] = product(conjugate(product(lower, self._end)), end)

    def _fold_axis(self, bent: FloatArray) -> FloatArray:
        """(F, 3) axes about which a free elbow is folded by rotations `bent` (F, 4), in the lower bone's rest frame."""
        along = _turned(conjugate(self._lower), self._along)
        axis = np.cross(np.broadcast_to(along, (len(bent), 3)), _turned(bent, self._forearm))
        size = lengths(axis)
        # A straight limb folds about the usual axis of the take.
        usual = axis.sum(axis=0)
        usual = usual / np.linalg.norm(usual) if np.linalg.norm(usual) > ROUNDING else np.array([1.0, 0.0, 0.0])
        straight = size <= 1e-3 * np.linalg.norm(self._forearm)
        return np.where(straight[:, None], usual, axis / np.maximum(size, ROUNDING)[:, None])

    def _in_range(self, angle: FloatArray) -> FloatArray:
        """(F,) hinge angles clamped to the range, after full turns are added to bring them nearest to its middle."""
        assert self._hinge is not None
        middle = 0.5 * (self._hinge.low + self._hinge.high)
        return np.clip(middle + wrapped(angle - middle), self._hinge.low, self._hinge.high)

    def _twisted(self, upper: FloatArray, lower: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F,) twists of the upper bone at which the hinge's fold matches the limb's, and (F,) hinge angles, radians.

        The twist of a frame is the argument of a complex number. Its absolute value grows with the bend of the limb,
        since a bent limb shows the twist more clearly. A limb that is nearly straight, or slightly bent the wrong way,
        gets the take's usual twist. upper, lower: (F, 4) transferred rotations of the two bones, armature space.
        """
        count = len(upper)
        forearm = _turned(product(conjugate(upper), lower), self._forearm)
        axis, none = np.broadcast_to(self._axis, (count, 3)), np.broadcast_to(IDENTITY, (count, 4))
        angle = self._in_range(self._angle(axis, none, lengths(self._elbow + forearm)))
        folded = quaternion_from_rotation_vector(angle[:, None] * self._axis)
        own = _turned(product(self._lower, folded), self._forearm)
        flat, wanted = (vector - (vector @ self._along)[:, None] * self._along for vector in (own, forearm))
        size = max(float(self._forearm @ self._forearm), ROUNDING)
        number = ((flat * wanted).sum(axis=1) + 1j * (np.cross(flat, wanted) @ self._along)) / size
        usual = (number * np.maximum(np.abs(number) - _USUAL, 0.0)).sum() + ROUNDING
        usual = usual / abs(usual)
        return np.asarray(np.angle(number + _USUAL * usual)), angle

    def _angle(self, axis: FloatArray, bent: FloatArray, reach: FloatArray) -> FloatArray:
        """(F,) the smallest angles (radians) at which the limb's end is at distances `reach` (F,) from its beginning.

        They are about `axis` (F, 3) of the lower bone, after its rotation `bent` (F, 4).

        They solve |elbow + R(angle) forearm|² = a + b cos(angle) + c sin(angle). A hinge has the solution nearer to the
        middle of its range.
        """
        elbow = _turned(conjugate(self._lower), self._elbow)
        forearm = _turned(bent, self._forearm)
        along = (forearm * axis).sum(axis=1)
        across = forearm - along[:, None] * axis
        constant = elbow @ elbow + float(self._forearm @ self._forearm) + 2.0 * along * (axis @ elbow)
        cosine, sine = 2.0 * across @ elbow, 2.0 * np.cross(axis, across) @ elbow
        size = np.maximum(np.hypot(cosine, sine), ROUNDING)
        middle, half = np.arctan2(sine, cosine), np.arccos(np.clip((reach**2 - constant) / size, -1.0, 1.0))
        angles = np.stack([wrapped(middle + half), wrapped(middle - half)])
        away = np.abs(angles)
        if self._hinge is not None:
            now = 2.0 * np.arctan2((bent[:, 1:] * axis).sum(axis=1), bent[:, 0])
            away = np.abs(wrapped(now + angles - 0.5 * (self._hinge.low + self._hinge.high)))
        return np.where(away[0] < away[1], angles[0], angles[1])


def _turned(rotations: FloatArray, vectors: FloatArray) -> FloatArray:
    """(..., 3) vectors rotated by (..., 4) rotations."""
    return times(matrix_from_quaternion(rotations), vectors)
