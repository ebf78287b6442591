"""Feet that keep their contacts: where they stand in the source they stand on the rig, and none goes under the floor.

Heel and ball of each foot are looked at by themselves, as at markers. What brings them to where they stand is one turn
and one shift of the whole foot, which fade in and out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..core.arrays import ROUNDING, FloatArray, lengths, squares
from ..core.rotations import matrix_from_quaternion, product, quaternion_from_rotation_vector
from ..human.rest_body import BodyAxes, RestBody
from ..human.soles import soles_of
from ..markers.feet.stances import StandingSettings, find_stances

# What a standing point counts beside one that fades: a share of 1 is as good as certain.
_CERTAIN: Final = 1e-3
# Points that are lower than this share of the height up to which they may stand are about the ground.
_NEAR: Final = 0.4


@dataclass(frozen=True, eq=False)
class Sole:
    """Points of a foot in the frame of its bone: heel and ball; the tip of the toes in theirs.

    ankle: how far above the ground the foot's head is at rest.
    """

    heel: FloatArray
    ball: FloatArray
    toe: str
    tip: FloatArray


def find_soles(target: RestBody) -> dict[str, Sole]:
    """The soles of a rig's feet by the names of their bones."""
    found = {}
    for foot, points in soles_of(target).items():
        (_, heel), (_, left), (_, right), (toe, tip) = points
        ball = 0.5 * (np.array(left) + np.array(right))
        found[foot] = Sole(np.array(heel), ball, toe if toe != foot else "", np.array(tip))
    return found


def ground_height(target: RestBody, soles: dict[str, Sole]) -> float:
    """How far up the ground is on which a rig stands at rest."""
    assert target.axes is not None
    heels = [target.bones[foot].head + target.bones[foot].axes @ sole.heel for foot, sole in soles.items()]
    return min((float(heel @ target.axes.up) for heel in heels), default=0.0)


@dataclass(frozen=True)
class Contact:
    """A point of a foot standing from frame first to last."""

    foot: str
    point: str
    first: int
    last: int


def within_frames(contacts: Iterable[Contact], first: int, count: int) -> Iterator[Contact]:
    """What of contacts is in some frames, counted from their first."""
    for contact in contacts:
        begin, end = max(contact.first - first, 0), min(contact.last - first, count - 1)
        if begin <= end:
            yield replace(contact, first=begin, last=end)


class FootPlan:
    """Where one foot goes on all F frames.

    places: (F, 3) of its head; rotations: (F, 4) of its bone; armature space. contacts: when its points stand.
    standing: (F, 2) how much heel and ball stand or are about the ground, 0 to 1.
    """

    def __init__(
        self,
        name: str,
        sole: Sole,
        places: FloatArray,
        rotations: FloatArray,
        axes: BodyAxes,
        ground: float,
        rate: float,
        standing: StandingSettings,
    ) -> None:
        self._seen = np.stack([axes.forward, axes.left, axes.up])
        self._ground, self._rate, self._standing = ground, rate, standing
        self.contacts: list[Contact] = []
        turned = matrix_from_quaternion(rotations)
        points = np.stack([places + turned @ sole.heel, places + turned @ sole.ball], axis=1)
        shifts, shares = self._held(name, points)
        self.places, self.rotations = _moved(places, rotations, points, shifts, shares)
        self._raise(sole, axes, shares)
        near = self._lift(sole, axes)
        self.standing = np.maximum(shares, near)

    def _held(self, name: str, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F, 2, 3) what brings heel and ball to where they stand, and (F, 2) how much that counts, 0 to 1."""
        shifts, shares = np.zeros(points.shape), np.zeros(points.shape[:2])
        blend = round(self._standing.blend * self._rate)
        seen = points @ self._seen.T
        for place, what in enumerate(("heel", "ball")):
            for first, end in find_stances(seen[:, place], self._rate, settings=self._standing):
                self.contacts.append(Contact(name, what, first, end - 1))
                stand = np.median(seen[first:end, place], axis=0)
                stand[2] = self._ground
                frames = np.arange(max(first - blend, 0), min(end + blend, len(points)))
                away = np.maximum(np.maximum(first - frames, frames - end + 1), 0) / (blend + 1.0)
                share = (1.0 - away) ** 2 * (1.0 + 2.0 * away)
                nearest = np.clip(frames, first, end - 1)
                more = share > shares[frames, place]
                shifts[frames[more], place] = ((stand - seen[nearest, place]) @ self._seen)[more]
                shares[frames[more], place] = share[more]
        return shifts, shares

    def _raise(self, sole: Sole, axes: BodyAxes, shares: FloatArray) -> None:
        """Turn the foot about what stands of it until the rest is above the ground."""
        turned = matrix_from_quaternion(self.rotations)
        points = np.stack([self.places + turned @ sole.heel, self.places + turned @ sole.ball], axis=1)
        low = np.maximum(self._ground - points @ axes.up, 0.0)
        held = np.maximum(shares, low > 0.0)
        self.places, self.rotations = _moved(self.places, self.rotations, points, low[..., None] * axes.up, held)

    def _lift(self, sole: Sole, axes: BodyAxes) -> FloatArray:
        """Keep heel and ball above the ground; (F, 2) how near they come to it, 1 on it."""
        turned = matrix_from_quaternion(self.rotations)
        heights = np.stack([(self.places + turned @ point) @ axes.up for point in (sole.heel, sole.ball)], axis=1)
        lift = np.maximum(self._ground - heights.min(axis=1), 0.0)
        self.places = self.places + lift[:, None] * axes.up
        above = (heights + lift[:, None] - self._ground) / (_NEAR * self._standing.height)
        return np.asarray(np.clip(1.0 - above, 0.0, 1.0))


def _moved(
    places: FloatArray, rotations: FloatArray, points: FloatArray, shifts: FloatArray, shares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Feet turned and shifted so that their points (F, 2, 3) come by their shifts, as far as these count."""
    weights = shares / (1.0 - shares + _CERTAIN)
    both = (shares[:, 0] * shares[:, 1])[:, None]
    span = points[:, 1] - points[:, 0]
    twist = np.cross(span, shifts[:, 1] - shifts[:, 0]) / np.maximum(squares(span), ROUNDING)[:, None]
    turn = quaternion_from_rotation_vector(both * twist)
    matrices = matrix_from_quaternion(turn)
    turned = places[:, None] + np.einsum("fij,fpj->fpi", matrices, points - places[:, None])
    left = shifts + points - turned
    shift = (weights[..., None] * left).sum(axis=1) / (1.0 + weights.sum(axis=1))[:, None]
    return places + shift, product(turn, rotations)


def toe_turns(toe: FloatArray, balls: FloatArray, tip: FloatArray, axes: BodyAxes, ground: float) -> FloatArray:
    """(F, 4) what turns toes, with frames (F, 3, 3) at heads (F, 3), until their tips are above ground."""
    way: FloatArray = toe @ tip
    reach = lengths(way)
    low = np.maximum(ground - (balls + way) @ axes.up, 0.0)
    height = np.clip((way @ axes.up + low) / np.maximum(reach, ROUNDING), -1.0, 1.0)
    flat = way - (way @ axes.up)[:, None] * axes.up
    ahead = flat / np.maximum(lengths(flat), ROUNDING)[:, None]
    now = np.arcsin(np.clip((way @ axes.up) / np.maximum(reach, ROUNDING), -1.0, 1.0))
    angle: FloatArray = np.where(low > 0.0, np.arcsin(height) - now, 0.0)
    return quaternion_from_rotation_vector(angle[:, None] * np.cross(ahead, axes.up))
