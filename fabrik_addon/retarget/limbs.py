"""Arms and legs in closed form: an elbow or knee bends by how far its hand or foot is to be, the limb turns toward it.

A hinge says besides how the bone above it is rolled: so that the fold is about the hinge's axis. Where a limb is all
but straight that says nothing; there the roll goes by the frames about it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ..core import Hinge, Skeleton
from ..core.arrays import ROUNDING, FloatArray, lengths, times, wrapped
from ..core.limits.base import Limit
from ..core.rotations import (
    NO_TURN,
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_between,
)

# Squared sine of the fold (33 degrees) from which on a frame's own fold says all of the roll, and what the take's usual
# roll counts below: as much as a fold of 27 degrees, as knees are seen stretched 10 to 15 beyond straight.
_FOLDED: Final = 0.3
_USUAL: Final = 0.2
# Seconds about a frame over which the roll is smoothed: it turns by no more than a person's arm does.
_QUICK: Final = 0.08
# Seconds about a frame in which folds count.
ABOUT: Final = 0.25
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

    def __init__(self, skeleton: Skeleton, limb: Limb, rotations: tuple[FloatArray, FloatArray], rate: float) -> None:
        """rotations: (F, 4) the rotations of the upper and the lower bone in armature space, as carried over."""
        self.limb, self._beside = limb, max(1, round(ABOUT * rate))
        rest = skeleton.rest
        upper = rest[limb.upper, :3, :3]
        self._elbow = upper.T @ (rest[limb.lower, :3, 3] - rest[limb.upper, :3, 3])
        self._forearm = rest[limb.lower, :3, :3].T @ (rest[limb.end, :3, 3] - rest[limb.lower, :3, 3])
        self._lower = quaternion_from_matrix(upper.T @ rest[limb.lower, :3, :3])
        self._end = quaternion_from_matrix(rest[limb.lower, :3, :3].T @ rest[limb.end, :3, :3])
        self._along = self._elbow / max(float(np.linalg.norm(self._elbow)), ROUNDING)
        # (F,) how the upper bone is rolled beyond what was carried over; (F,) the hinge's angle.
        self._roll: FloatArray
        self._angles: FloatArray | None
        self._roll, self._angles = (
            (np.zeros(len(rotations[0])), None) if limb.hinge is None else self._rolled(*rotations, limb.hinge)
        )

    def solve(self, frames: slice, local: FloatArray, matrices: FloatArray, goals: FloatArray, end: FloatArray) -> None:
        """Write the limb's rotations into (F, J, 4) local ones, which put the bones at matrices (F, J, 4, 4).

        goals, end: (F, 3) for the head of the limb's last bone, and (F, 4) for its rotation, in armature space.
        """
        limb, count = self.limb, len(local)
        upper = quaternion_from_matrix(matrices[:, limb.upper, :3, :3])
        carrier = product(upper, conjugate(local[:, limb.upper]))
        shoulder = matrices[:, limb.upper, :3, 3]
        reach = lengths(goals - shoulder)
        if limb.hinge is None or self._angles is None:
            axis, bent = self._fold_axis(local[:, limb.lower])
        else:
            upper = product(upper, quaternion_from_rotation_vector(self._roll[frames, None] * self._along))
            axis = np.broadcast_to(_axis_of(limb.hinge), (count, 3))
            bent = quaternion_from_rotation_vector(self._angles[frames, None] * axis)
        folded = self._folded(axis, bent, reach)
        ends = self._elbow + _turned(product(self._lower, folded), self._forearm)
        upper = product(rotation_between(_turned(upper, ends), goals - shoulder), upper)
        lower = product(product(upper, self._lower), folded)
        local[:, limb.upper] = product(conjugate(carrier), upper)
        local[:, limb.lower] = folded
        local[:, limb.end] = product(conjugate(product(lower, self._end)), end)

    def _fold_axis(self, bent: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F, 3) the axis about which a free elbow is folded, in the lower bone's rest frame, and its rotations."""
        along = _turned(conjugate(self._lower), self._along)
        axis = np.cross(np.broadcast_to(along, (len(bent), 3)), _turned(bent, self._forearm))
        size = lengths(axis)
        # A straight limb folds as most of the take does.
        usual = axis.sum(axis=0)
        usual = usual / np.linalg.norm(usual) if np.linalg.norm(usual) > ROUNDING else np.array([1.0, 0.0, 0.0])
        straight = size <= 1e-3 * np.linalg.norm(self._forearm)
        return np.where(straight[:, None], usual, axis / np.maximum(size, ROUNDING)[:, None]), bent

    def _rolled(self, upper: FloatArray, lower: FloatArray, hinge: Hinge) -> tuple[FloatArray, FloatArray]:
        """(F,) how far to roll the upper bone for the hinge to fold as the limb does; (F,) the angle of the hinge."""
        count, axis = len(upper), _axis_of(hinge)
        way = _turned(product(conjugate(upper), lower), self._forearm)
        span = lengths(self._elbow + way)
        none = np.broadcast_to(NO_TURN, (count, 4))
        angle = self._angle(np.broadcast_to(axis, (count, 3)), none, span)
        angle = np.clip(_nearest_turn(angle, 0.5 * (hinge.low + hinge.high)), hinge.low, hinge.high)
        folded = quaternion_from_rotation_vector(angle[:, None] * axis)
        own = _turned(product(self._lower, folded), self._forearm)
        return self._steady_roll(own, way), angle

    def _steady_roll(self, own: FloatArray, way: FloatArray) -> FloatArray:
        """(F,) radians about the upper bone from where the hinge takes the forearm to where it is to be.

        A complex number a frame: its angle is the roll, its size how much the fold tells of it. A limb that is all but
        straight, or bent a little the wrong way, goes by what the take usually does and by the frames about it.
        """
        flat, wanted = (vector - (vector @ self._along)[:, None] * self._along for vector in (own, way))
        size = max(float(self._forearm @ self._forearm), ROUNDING)
        number = ((flat * wanted).sum(axis=1) + 1j * (np.cross(flat, wanted) @ self._along)) / size
        told = np.abs(number)
        clear = number * np.maximum(told - _USUAL, 0.0)
        usual = clear.sum() + ROUNDING
        usual = usual / abs(usual)
        unsure = np.maximum(1.0 - told / _FOLDED, 0.0) ** 2
        total = number + _smooth(clear, self._beside) + unsure * _USUAL * usual
        return np.asarray(np.angle(_smooth(total, max(1, round(_QUICK / ABOUT * self._beside)))))

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
        elbow = _turned(conjugate(self._lower), self._elbow)
        forearm = _turned(bent, self._forearm)
        along = (forearm * axis).sum(axis=1)
        across = forearm - along[:, None] * axis
        constant = elbow @ elbow + float(self._forearm @ self._forearm) + 2.0 * along * (axis @ elbow)
        cosine, sine = 2.0 * across @ elbow, 2.0 * np.cross(axis, across) @ elbow
        size = np.maximum(np.hypot(cosine, sine), ROUNDING)
        middle, half = np.arctan2(sine, cosine), np.arccos(np.clip((reach**2 - constant) / size, -1.0, 1.0))
        angles = np.stack([wrapped(middle + half), wrapped(middle - half)])
        hinge = self.limb.hinge
        if hinge is None:
            return np.where(np.abs(angles[0]) < np.abs(angles[1]), angles[0], angles[1])
        now = 2.0 * np.arctan2((bent[:, 1:] * axis).sum(axis=1), bent[:, 0])
        middle_of_range = 0.5 * (hinge.low + hinge.high)
        away = np.abs(wrapped(now + angles - middle_of_range))
        return np.where(away[0] < away[1], angles[0], angles[1])


def _smooth(numbers: npt.NDArray[np.complex128], beside: int) -> npt.NDArray[np.complex128]:
    """(F,) complex numbers, each with those about it, the nearest most."""
    window = np.hanning(2 * beside + 3)[1:-1]
    return np.convolve(np.pad(numbers, beside, mode="edge"), window / window.sum(), mode="valid")


def _axis_of(hinge: Hinge) -> FloatArray:
    """(3,) the axis of a hinge."""
    return np.asarray(np.eye(3)[_AXES[hinge.axis]])


def _nearest_turn(angle: FloatArray, middle: float) -> FloatArray:
    """The same angles, whole turns apart, that are nearest to one."""
    return np.asarray(middle + wrapped(angle - middle))


def _turned(rotations: FloatArray, vectors: FloatArray) -> FloatArray:
    """(..., 3) vectors turned by (..., 4) rotations."""
    return times(matrix_from_quaternion(rotations), vectors)
