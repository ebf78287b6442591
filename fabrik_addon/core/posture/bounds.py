"""What a body keeps to besides its joints' limits: the floor, and its centre of mass over what it stands on."""

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray
from .body import Bodies, Motions, Stance
from .joint_limits import Sides
from .mass import PostureTerm

# Keys of these sides, beyond those of all joints.
_FLOOR_KEYS, _SUPPORT_KEYS = 1_000_000, 2_000_000
# Metres of room for the centre of mass; less is none.
_NO_ROOM = 1e-9
# By how much the support gives way to a goal's force of 1: goals count ten times as much, the posture a thirtieth. With
# 3 and 10, a hand that is led a centimetre beyond its reach is let go by 117 and 60 mm, for the sake of balance.
_BALANCE_YIELDS = 10.0
# So much of the way to the support's edge the centre of mass goes as it will; beyond, hips go back, as people's do.
# That gives way by so much more, and a metre that it is lowered counts as so many on the way: who bends down brings the
# hips back farther than who reaches out. Without, and with 0.28 and a lowering of 0 and 0.03, the centre of mass goes
# 11.6, 6.3 and 5.9 cm for a hand on the floor, and the hips 1.8, 2.0 and 2.0 cm for a hand 70 cm to the front.
_AT_EASE, _EASE_YIELDS, _LOWERED = 0.285, 10.0, 0.03


@dataclass(frozen=True)
class Floor:
    """Points that do not go through the floor, all in armature space.

    Attributes:
        points: bones and where on them, (x, y, z) in the bone's frame.
        normal: (3,) up from the floor.
        height: how far up it is from the armature's origin.
    """

    points: tuple[tuple[str, tuple[float, float, float]], ...]
    normal: tuple[float, float, float]
    height: float


@dataclass(frozen=True)
class Support:
    """What a body stands on, in armature space.

    Attributes:
        corners: (N, 3) of a convex outline, one after the other; the centre of mass is to be over it.
        up: (3,) the way that over is.
    """

    corners: FloatArray
    up: tuple[float, float, float]


class Bounds:
    """The sides that a floor and a support are, for one body. Bones that do not take part bear no floor."""

    def __init__(self, bodies: Bodies, floor: Floor | None, support: Support | None) -> None:
        self._bodies = bodies
        self._on: IntArray = np.zeros(0, dtype=np.int64)
        if floor is not None:
            place = {int(bone): body for body, bone in enumerate(bodies.bones)}
            bones = [
                (bodies.skeleton.index(name), point) for name, point in floor.points if name in bodies.skeleton.names
            ]
            here = [(place[bone], point) for bone, point in bones if bone in place]
            self._on = np.array([body for body, _ in here], dtype=np.int64)
            self._points: FloatArray = np.array([point for _, point in here]).reshape(-1, 3)
            self._normal, self._height = np.array(floor.normal), floor.height
        self._outline = None if support is None or len(support.corners) < 3 else _outline(support)
        self._up = np.zeros(3) if support is None else np.array(support.up)

    def sides(self, stance: Stance, motions: Motions, posture: PostureTerm, within: float) -> Sides:
        """Those of the floor that are nearer than `within`, and all of the support's; room is in metres."""
        return Sides.joined([self.floor_sides(stance, motions, within), self._support_sides(stance, motions, posture)])

    def cost(self, stance: Stance, posture: PostureTerm, price: float) -> float:
        """What it costs to be through the floor, at a price a metre, and out of balance."""
        cost = 0.0
        if len(self._on):
            cost += price * float(np.maximum(self._height - self._standing(stance) @ self._normal, 0.0).sum())
        if self._outline is not None:
            normals, reaches, yielding = self._outline_for(posture)
            out = np.maximum(normals @ posture.centre_of_mass(stance) - reaches, 0.0)
            cost += 0.5 * float(out @ (out / yielding))
        return cost

    def _standing(self, stance: Stance) -> FloatArray:
        """(n, 3) where the points are."""
        return np.asarray(stance.heads[self._on] + (stance.frames[self._on] @ self._points[..., None])[..., 0])

    def floor_sides(self, stance: Stance, motions: Motions, within: float) -> Sides:
        """Those of the floor that are nearer than `within` metres."""
        if not len(self._on):
            return _none(self._bodies.columns)
        points = self._standing(stance)
        room = points @ self._normal - self._height
        near = np.flatnonzero(room <= within)
        rows = -self._normal @ self._bodies.shifts(stance, motions, points[near], self._on[near])
        return Sides.firm(rows.reshape(-1, self._bodies.columns), room[near], _FLOOR_KEYS + near)

    def _outline_for(self, posture: PostureTerm) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Normals, reaches and how much they yield of the outline, and of a smaller one in which the body is at ease.

        Wide enough for the preferred pose: who begins on two feet is not pulled over one at once.
        """
        if self._outline is None:
            return np.zeros((0, 3)), np.zeros(0), np.zeros(0)
        normals, reaches = self._outline
        preferred = posture.preferred_centre_of_mass
        room = np.maximum(reaches - normals @ preferred, 0.0)
        eased = normals - _LOWERED * self._up
        at_ease = _AT_EASE * room**2 / max(float(room.max()), _NO_ROOM)
        return (
            np.concatenate([normals, eased]),
            np.concatenate([normals @ preferred + room, eased @ preferred + at_ease]),
            np.repeat((_BALANCE_YIELDS, _EASE_YIELDS), len(normals)),
        )

    def _support_sides(self, stance: Stance, motions: Motions, posture: PostureTerm) -> Sides:
        if self._outline is None:
            return _none(self._bodies.columns)
        normals, reaches, yielding = self._outline_for(posture)
        centres = posture.centres(stance)
        shifts = self._bodies.shifts(stance, motions, centres, posture.carrier)
        shift = np.einsum("j,jid->id", posture.shares, shifts) / posture.shares.sum()
        middle = posture.shares @ centres / posture.shares.sum()
        keys = _SUPPORT_KEYS + np.arange(len(normals))
        return Sides(normals @ shift, reaches - normals @ middle, keys, yielding)


def _outline(support: Support) -> tuple[FloatArray, FloatArray]:
    """(N, 3) normals that point out of the outline, level, and how far out its edges are."""
    corners, up = np.asarray(support.corners, dtype=np.float64), np.array(support.up)
    edges = np.roll(corners, -1, axis=0) - corners
    normals = np.cross(edges, up)
    normals *= np.sign((normals * (corners - corners.mean(axis=0))).sum())
    lengths = np.linalg.norm(normals, axis=1)
    kept = lengths > _NO_ROOM
    normals = normals[kept] / lengths[kept, None]
    return normals, (normals * corners[kept]).sum(axis=1)


def _none(columns: int) -> Sides:
    return Sides.firm(np.zeros((0, columns)), np.zeros(0), np.zeros(0, dtype=np.int64))
