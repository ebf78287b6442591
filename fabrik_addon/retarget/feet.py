"""Keeps the contacts of feet: feet planted in the source are planted on the rig, and no foot goes below the floor.

Heel and ball of each foot have separate contacts, as with markers. One rotation and one translation of the whole foot
bring them to their planted positions, and blend in and out. The foot then rotates about its ball until neither side of
the ball is below the floor. Toes that are still below it bend up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ..core import Skeleton
from ..core.arrays import ROUNDING, FloatArray, lengths, squares, times
from ..core.rotations import (
    matrix_from_quaternion,
    product,
    quaternion_from_rotation_vector,
    rotation_between,
)
from ..human.rest_body import BodyAxes, RestBody, soles_of
from ..markers.feet import FootPoint, Stance, StandingSettings, drift, faded, find_stances

# A point with a share s has the weight s / (1 - s + this): large, but not infinite, for a share of 1.
_CERTAIN: Final = 1e-3
# Points below this share of the contact height count as near the ground.
_NEAR: Final = 0.4
# A point planted at most this many times the contact height above the floor is put on it.
_ON_FLOOR: Final = 1.5
# Radians per second at which toes are raised before they would go through the ground, and lowered afterwards. Toes move
# faster when people push off, so this hardly changes a step.
_LIFTED: Final = 2.0


@dataclass(frozen=True, eq=False)
class Sole:
    """Heel and ball of a foot, in the frame of its bone.

    pivot: (3,) the joint above the ball, about which the foot rolls while its toes stay in place; the ball, if there
    are no toes. aside: (3,) from the middle of the ball to its left side. toe: the bone of the toes, "" if there is
    none; tip: their end. All in the same frame.
    """

    heel: FloatArray
    ball: FloatArray
    pivot: FloatArray
    aside: FloatArray
    toe: str
    tip: FloatArray


def find_soles(target: RestBody) -> dict[str, Sole]:
    """The soles of a rig's feet, by the names of their bones."""
    found = {}
    for foot, points in soles_of(target).items():
        heel, left, right, tip = (np.array(point) for _, point in points)
        toe, ball, bone = points[-1][0], 0.5 * (left + right), target.bones[foot]
        pivot = ball if toe == foot else bone.axes.T @ (target.bones[toe].head - bone.head)
        found[foot] = Sole(heel, ball, pivot, 0.5 * (left - right), toe if toe != foot else "", tip)
    return found


class RigFloor(NamedTuple):
    """The floor below a rig at rest: its height along the body's up axis."""

    axes: BodyAxes
    height: float

    @classmethod
    def of(cls, target: RestBody, soles: Mapping[str, Sole]) -> "RigFloor":
        """The floor below a rig with these feet."""
        assert target.axes is not None
        heels = [target.bones[foot].head + target.bones[foot].axes @ sole.heel for foot, sole in soles.items()]
        return cls(target.axes, min((float(heel @ target.axes.up) for heel in heels), default=0.0))

    def above(self, points: FloatArray) -> FloatArray:
        """(...) heights of points (..., 3) above the floor; negative below it."""
        return np.asarray(points @ self.axes.up - self.height)


class FootPlan:
    """The planned motion of one foot over F frames.

    positions: (F, 3) of its bone's head; rotations: (F, 4) of the bone; both in armature space. stances: contacts of
    its points. standing: (F, 2) from 0 to 1, how firmly heel and ball are planted, or how near the ground they are.
    """

    def __init__(
        self,
        name: str,
        sole: Sole,
        positions: FloatArray,
        rotations: FloatArray,
        floor: RigFloor,
        rate: float,
        standing: StandingSettings,
    ) -> None:
        """positions: (F, 3), rotations: (F, 4), of the source's foot. standing: thresholds for contacts."""
        self.positions, self.rotations = positions, rotations
        # Heel and pivot, and the points below them on a flat foot.
        ends, grounds = np.array([sole.heel, sole.pivot]), np.array([sole.heel, sole.ball])
        self.stances: list[Stance] = []
        up = floor.axes.up
        axes, raised = floor.axes.columns.T, lengths(ends - grounds)
        # The translations of heel and pivot to their planted positions, and their weights, 0 to 1.
        points = self._points(ends)
        shifts, shares = np.zeros(points.shape), np.zeros(points.shape[:2])
        seen, below = points @ axes.T - raised[:, None] * [0.0, 0.0, 1.0], self._points(grounds) @ axes.T
        for index, offset in enumerate(ends):
            point = FootPoint(name, (float(offset[0]), float(offset[1]), float(offset[2])))
            for first, end in find_stances(seen[:, index], rate, settings=standing):
                self.stances.append(Stance(point, first, end - 1, drift(seen[first:end, index]), np.nan))
                # Use the ball, since the pivot is not straight above it unless the foot is flat.
                planted = np.median(below[first:end, index], axis=0)
                # Points planted much higher stay there: on a step, or if the recording drifts.
                if planted[2] - floor.height <= _ON_FLOOR * standing.height:
                    planted[2] = floor.height
                frames, share = faded((first, end), round(rate * standing.blend), len(points))
                nearest = np.clip(frames, first, end - 1)
                more = share > shares[frames, index]
                shifts[frames[more], index] = ((planted - seen[nearest, index]) @ axes)[more]
                shares[frames[more], index] = share[more]
        self._move(ends, shifts, shares)
        # Rotate the foot about its planted point until the other point is above the ground.
        points = self._points(ends)
        heights = floor.above(points) - raised
        low = np.maximum(-heights, 0.0)
        # Hold a point gradually as it approaches the ground. Otherwise the foot would rotate within one frame.
        near = np.clip(1.0 - (heights + low) / (_NEAR * standing.height), 0.0, 1.0)
        self._move(ends, low[..., None] * up, np.maximum(shares, near))
        pivots = self._points(ends)[:, 1]
        # Roll it until neither side of the ball is below the ground: about the ball, or about the pivot if the heel is
        # not planted. The point that it rolls about does not move sideways.
        balls = self._points(grounds)[:, 1]
        aside = matrix_from_quaternion(self.rotations) @ sole.aside
        height, most = aside @ up, np.maximum(floor.above(balls), 0.0)
        flat, level = aside - height[:, None] * up, np.clip(height, -most, most)
        across = np.sqrt(np.maximum(squares(aside) - level**2, 0.0)) / np.maximum(lengths(flat), ROUNDING)
        self._turn(balls, rotation_between(aside, across[:, None] * flat + level[:, None] * up))
        slid = pivots - self._points(ends)[:, 1]
        self.positions = self.positions + (1.0 - shares[:, :1]) * (slid - (slid @ up)[:, None] * up)
        heights = floor.above(self._points(grounds))
        lift = np.maximum(-heights.min(axis=1), 0.0)
        self.positions = self.positions + lift[:, None] * up
        above = (heights + lift[:, None]) / (_NEAR * standing.height)
        self.standing = np.maximum(shares, np.clip(1.0 - above, 0.0, 1.0))

    def _points(self, offsets: FloatArray) -> FloatArray:
        """(F, 2, 3) positions of two points (2, 3) in the frame of the bone, in armature space."""
        turned = matrix_from_quaternion(self.rotations)
        return np.stack([self.positions + turned @ offset for offset in offsets], axis=1)

    def _turn(self, about: FloatArray, turn: FloatArray) -> None:
        """Rotate the foot by quaternions (F, 4) about points (F, 3), armature space."""
        self.positions = about + times(matrix_from_quaternion(turn), self.positions - about)
        self.rotations = product(turn, self.rotations)

    def _move(self, ends: FloatArray, shifts: FloatArray, shares: FloatArray) -> None:
        """Rotate and translate the foot so that its ends (2, 3) move by (F, 2, 3), weighted by shares (F, 2)."""
        points = self._points(ends)
        weights = shares / (1.0 - shares + _CERTAIN)
        both = (shares[:, 0] * shares[:, 1])[:, None]
        span = points[:, 1] - points[:, 0]
        twist = np.cross(span, shifts[:, 1] - shifts[:, 0]) / np.maximum(squares(span), ROUNDING)[:, None]
        self._turn(self.positions, quaternion_from_rotation_vector(both * twist))
        left = shifts + points - self._points(ends)
        self.positions = self.positions + (weights[..., None] * left).sum(axis=1) / (1.0 + weights.sum(axis=1))[:, None]


def leading(needed: FloatArray, step: float) -> FloatArray:
    """(F, ...) the smallest values that are at least `needed` (F, ...) and change by at most `step` between frames."""
    ramp = (step * np.arange(len(needed))).reshape(-1, *[1] * (needed.ndim - 1))
    after = np.maximum.accumulate(needed + ramp, axis=0) - ramp
    before = np.maximum.accumulate((needed - ramp)[::-1], axis=0)[::-1] + ramp
    return np.asarray(np.maximum(after, before))


class ToeLift:
    """Bends the toes of one foot up on frames on which they would go through the ground, with smooth transitions."""

    def __init__(self, skeleton: Skeleton, sole: Sole, floor: RigFloor, frames: int, rate: float) -> None:
        """frames: the number of frames. rate: frames per second."""
        self._bone = skeleton.index(sole.toe)
        self._tip, self._floor, self._step = sole.tip, floor, _LIFTED / rate
        self._angles, self._axes = np.zeros(frames), np.zeros((frames, 3))

    def look(self, frames: slice, matrices: FloatArray) -> None:
        """Measure the angles by which toes must bend up on some frames; matrices: (F, J, 4, 4), armature space."""
        toe = matrices[:, self._bone]
        angles, axes = toe_angles(toe[:, :3, :3], toe[:, :3, 3], self._tip, self._floor)
        self._angles[frames] = angles
        # In the toe's own frame.
        self._axes[frames] = times(np.swapaxes(toe[:, :3, :3], 1, 2), axes)

    def apply(self, frames: slice, local: FloatArray) -> None:
        """Bend the toes in (F, J, 4) local rotations; call `look` for all frames first."""
        angles = leading(self._angles, self._step)[frames, None]
        turn = quaternion_from_rotation_vector(angles * self._axes[frames])
        local[:, self._bone] = product(local[:, self._bone], turn)


def toe_angles(toe: FloatArray, balls: FloatArray, tip: FloatArray, floor: RigFloor) -> tuple[FloatArray, FloatArray]:
    """(F,) radians and (F, 3) axes of the rotations of toes that bring their tips above the floor.

    toe: (F, 3, 3) the toes' frames. balls: (F, 3) their heads. tip: (3,) their end in that frame.
    """
    way, up = np.asarray(toe @ tip), floor.axes.up
    reach, rise = np.maximum(lengths(way), ROUNDING), way @ up
    low = np.maximum(-floor.above(balls + way), 0.0)
    before, after = (np.arcsin(np.clip(each / reach, -1.0, 1.0)) for each in (rise, rise + low))
    flat = way - rise[:, None] * up
    ahead = flat / np.maximum(lengths(flat), ROUNDING)[:, None]
    return np.where(low > 0.0, after - before, 0.0), np.cross(ahead, up)
