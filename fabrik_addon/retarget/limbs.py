"""Arms and legs in closed form: an elbow or knee bends by how far its hand or foot is to be, the limb turns toward it.

A hinge says besides how the bone above it is rolled: so that the fold is about the hinge's axis. Where a limb is all
but straight that says nothing; there the roll goes by the frames about it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core import Hinge, Skeleton
from ..core.arrays import BoolArray, FloatArray, lengths
from ..core.limits.base import Limit
from ..core.rotations import (
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
)

# Squared sine of the fold (11 degrees) at which a frame's own fold and those about it count alike for the roll.
_FOLDED: Final = 0.04
# Seconds about a frame in which folds count.
ABOUT: Final = 0.25
_TINY: Final = 1e-12
_AXES: Final = {"X": 0, "Y": 1, "Z": 2}


@dataclass(frozen=True, eq=False)
class Limb:
    """Two bones and what hangs on the second; places in the skeleton. hinge: the second's limit, where it is one."""

    upper: int
    lower: int
    end: int
    hinge: Hinge | None

    @classmethod
    def of(cls, skeleton: Skeleton, bones: Sequence[int], limits: Mapping[str, Limit]) -> "Limb | None":
        """A limb of three bones; None where they do not hang on one another and turn together."""
        upper, lower, end = bones
        path = skeleton.path(end)
        if (
            upper not in path
            or lower not in path
            or not skeleton.inherits_rotation[path[path.index(upper) + 1 :]].all()
        ):
            return None
        hinge = limits.get(skeleton.names[lower])
        return cls(upper, lower, end, hinge if isinstance(hinge, Hinge) and hinge.axis != "Y" else None)


class LimbSolver:
    """Brings one limb's end to goals on many frames, prepared once."""

    def __init__(self, skeleton: Skeleton, limb: Limb, rate: float) -> None:
        self.limb, self._beside = limb, max(1, round(ABOUT * rate))
        rest = skeleton.rest
        upper = rest[limb.upper, :3, :3]
        self._elbow = upper.T @ (rest[limb.lower, :3, 3] - rest[limb.upper, :3, 3])
        self._forearm = rest[limb.lower, :3, :3].T @ (rest[limb.end, :3, 3] - rest[limb.lower, :3, 3])
        self._lower = quaternion_from_matrix(upper.T @ rest[limb.lower, :3, :3])
        self._end = quaternion_from_matrix(rest[limb.lower, :3, :3].T @ rest[limb.end, :3, :3])
        self._along = self._elbow / max(float(np.linalg.norm(self._elbow)), _TINY)

    def solve(self, local: FloatArray, matrices: FloatArray, goals: FloatArray) -> None:
        """Write the limb's rotations into (F, J, 4) local ones, which put the bones at matrices (F, J, 4, 4).

        goals: (F, 3) for the head of the limb's last bone, which keeps its rotation in armature space.
        """
        limb, count = self.limb, len(local)
        upper, lower, end = (
            quaternion_from_matrix(matrices[:, bone, :3, :3]) for bone in (limb.upper, limb.lower, limb.end)
        )
        carrier = product(upper, conjugate(local[:, limb.upper]))
        shoulder = matrices[:, limb.upper, :3, 3]
        reach = lengths(goals - shoulder)
        if limb.hinge is None:
            axis, bent = self._fold_axis(local[:, limb.lower])
        else:
            upper, axis, bent = self._rolled(upper, local[:, limb.lower], limb.hinge)
        folded = self._folded(axis, bent, reach)
        ends = self._elbow + _turn(product(np.broadcast_to(self._lower, (count, 4)), folded), self._forearm)
        upper = product(between(_turned(upper, ends), goals - shoulder), upper)
        lower = product(product(upper, np.broadcast_to(self._lower, (count, 4))), folded)
        local[:, limb.upper] = product(conjugate(carrier), upper)
        local[:, limb.lower] = folded
        local[:, limb.end] = product(conjugate(product(lower, np.broadcast_to(self._end, (count, 4)))), end)

    def _fold_axis(self, bent: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F, 3) the axis about which a free elbow is folded, in the lower bone's rest frame, and its rotations."""
        along = _turn(conjugate(self._lower)[None], self._along)
        axis = np.cross(np.broadcast_to(along, (len(bent), 3)), _turn(bent, self._forearm))
        size = lengths(axis)
        # A straight limb folds as most of the take does.
        usual = axis.sum(axis=0)
        usual = usual / np.linalg.norm(usual) if np.linalg.norm(usual) > _TINY else np.array([1.0, 0.0, 0.0])
        straight = size <= 1e-3 * np.linalg.norm(self._forearm)
        return np.where(straight[:, None], usual, axis / np.maximum(size, _TINY)[:, None]), bent

    def _rolled(self, upper: FloatArray, bent: FloatArray, hinge: Hinge) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The upper bone rolled so that the hinge can fold as the limb does; the hinge's axis and its rotations."""
        count = len(upper)
        axis = np.eye(3)[_AXES[hinge.axis]]
        way = _turn(product(np.broadcast_to(self._lower, (count, 4)), bent), self._forearm)
        span = lengths(self._elbow + way)
        angle = self._angle(np.broadcast_to(axis, (count, 3)), np.broadcast_to([1.0, 0.0, 0.0, 0.0], (count, 4)), span)
        angle = np.clip(_nearest_turn(angle, 0.5 * (hinge.low + hinge.high)), hinge.low, hinge.high)
        folded = quaternion_from_rotation_vector(angle[:, None] * axis)
        own = _turn(product(np.broadcast_to(self._lower, (count, 4)), folded), self._forearm)
        roll = self._roll(own, way)
        rolled = product(upper, quaternion_from_rotation_vector(roll[:, None] * self._along))
        return rolled, np.broadcast_to(axis, (count, 3)), folded

    def _roll(self, own: FloatArray, way: FloatArray) -> FloatArray:
        """(F,) radians about the upper bone from where the hinge takes the forearm to where it is to be."""
        flat, wanted = (vector - (vector @ self._along)[:, None] * self._along for vector in (own, way))
        # Complex numbers: their angle is the roll, their size how much the fold tells.
        size = float(self._forearm @ self._forearm)
        real, imaginary = (flat * wanted).sum(axis=1), np.cross(flat, wanted) @ self._along
        number = (real + 1j * imaginary) / max(size, _TINY)
        window = np.hanning(2 * self._beside + 3)[1:-1]
        about = (
            np.convolve(number, window / window.sum(), mode="same")
            if len(number) > len(window)
            else number + number.mean()
        )
        share = _FOLDED * about / np.maximum(np.abs(about), _TINY)
        return np.asarray(np.angle(number + np.where(np.abs(about) > _TINY, share, 1.0)))

    def _folded(self, axis: FloatArray, bent: FloatArray, reach: FloatArray) -> FloatArray:
        """(F, 4) the lower bone's rotations at which the limb is as long as it is to reach."""
        angle = self._angle(axis, bent, reach)
        hinge = self.limb.hinge
        if hinge is None:
            return product(quaternion_from_rotation_vector(angle[:, None] * axis), bent)
        now = 2.0 * np.arctan2((bent[:, 1:] * axis).sum(axis=1), bent[:, 0])
        angle = np.clip(_nearest_turn(now + angle, 0.5 * (hinge.low + hinge.high)), hinge.low, hinge.high)
        return quaternion_from_rotation_vector(angle[:, None] * axis)

    def _angle(self, axis: FloatArray, bent: FloatArray, reach: FloatArray) -> FloatArray:
        """(F,) the smallest turn about an axis of the lower bone, after `bent`, at which the limb is so long.

        |elbow + R(angle) forearm|² = a + b cos(angle) + c sin(angle).
        """
        elbow = _turn(conjugate(self._lower)[None], self._elbow)[0]
        forearm = _turn(bent, self._forearm)
        along = (forearm * axis).sum(axis=1)
        across = forearm - along[:, None] * axis
        constant = elbow @ elbow + float(self._forearm @ self._forearm) + 2.0 * along * (axis @ elbow)
        cosine, sine = 2.0 * across @ elbow, 2.0 * np.cross(axis, across) @ elbow
        size = np.maximum(np.hypot(cosine, sine), _TINY)
        middle, half = np.arctan2(sine, cosine), np.arccos(np.clip((reach**2 - constant) / size, -1.0, 1.0))
        angles = np.stack([_wrapped(middle + half), _wrapped(middle - half)])
        hinge = self.limb.hinge
        if hinge is None:
            return np.where(np.abs(angles[0]) < np.abs(angles[1]), angles[0], angles[1])
        now = 2.0 * np.arctan2((bent[:, 1:] * axis).sum(axis=1), bent[:, 0])
        middle_of_range = 0.5 * (hinge.low + hinge.high)
        away = np.abs(_wrapped(now + angles - middle_of_range))
        return np.where(away[0] < away[1], angles[0], angles[1])


def _wrapped(angle: FloatArray) -> FloatArray:
    """Angles between -π and π."""
    return np.asarray((angle + np.pi) % (2.0 * np.pi) - np.pi)


def _nearest_turn(angle: FloatArray, middle: float) -> FloatArray:
    """The same angles, whole turns apart, that are nearest to one."""
    return np.asarray(middle + _wrapped(angle - middle))


def _turn(rotations: FloatArray, vector: FloatArray) -> FloatArray:
    """(F, 3) a vector turned by (F, 4) rotations."""
    return np.asarray(matrix_from_quaternion(rotations) @ vector)


def _turned(rotations: FloatArray, vectors: FloatArray) -> FloatArray:
    """(F, 3) vectors turned by (F, 4) rotations."""
    turned: FloatArray = np.einsum("fij,fj->fi", matrix_from_quaternion(rotations), vectors)
    return turned


def between(starts: FloatArray, ends: FloatArray) -> FloatArray:
    """(F, 4) the shortest turns from the ways of vectors (F, 3) to those of others; none where one has no length."""
    sizes = lengths(starts) * lengths(ends)
    quaternion = np.concatenate([(sizes + (starts * ends).sum(axis=1))[:, None], np.cross(starts, ends)], axis=1)
    size = lengths(quaternion)
    found: BoolArray = size > _TINY
    none = np.array([1.0, 0.0, 0.0, 0.0])
    return np.where(found[:, None], quaternion / np.maximum(size, _TINY)[:, None], none)
