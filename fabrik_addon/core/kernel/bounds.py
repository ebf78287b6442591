"""Constraints of a body other than its joint limits: the floor, self-collision, and balance over a support."""

from dataclasses import dataclass

import numpy as np

from ..arrays import ROUNDING, TINY, FloatArray, IntArray, joined, lengths, squares, times
from .bodies import Bodies, Motions, Pose, forward_kinematics
from .capsules import NEAR, Capsules, Contacts, Place, SelfCollision, nearest
from .joint_limits import AXES, KEYS, ConstraintRows, Holder
from .posture import Away, PostureTerm

# A body has rows only for its lowest point now, and for the points that would be lowest if the floor had this slope
# along either of two axes. Rows for all points take longer.
_SLOPE = 0.4
# Points may be below the floor by this fraction of the body's size; otherwise the floor holds feet that pins already
# hold. With 0, hips that are dragged by 30 cm above pinned feet stop 26 cm too early.
_SLACK = 3e-5
# If a body starts off its support, its center of mass moves into a region of this fraction of the support's size. With
# 0.6, the hips move 1 cm farther if a foot is lifted.
_STANDS_IN = 0.85
# Compliance of the support: the distance by which it yields per force. It is a pure number: masses are shares, so
# forces are lengths.
_YIELDS = 0.015
# The center of mass moves freely up to _AT_EASE, a fraction of the distance to the support's edge. Beyond it, the hips
# move back: by 1.8 cm for a hand 70 cm forward. For each meter that the center is lowered, the region is narrower by
# _LOWERED meters, because bending down moves the hips farther back than reaching out.
_AT_EASE, _LOWERED = 0.42, 0.15
# The largest force of the support, as a multiple of the body's size. It is below the caps of goals (30, or 4 for hips),
# so balance gives way first. With 0.5, a person on one foot who reaches far loses balance.
_MOST_FORCE = 0.7


@dataclass(frozen=True)
class Floor:
    """Points that stay above the floor, all in armature space.

    Attributes:
        points: bones and positions (x, y, z) in the bone's frame. Their limbs bend at the floor.
        balls: more points, each with a radius.
        normal: (3,) up from the floor.
        height: of the floor along `normal`, from the armature's origin.
    """

    points: tuple[tuple[str, tuple[float, float, float]], ...]
    normal: tuple[float, float, float]
    height: float
    balls: tuple[tuple[str, Place, float], ...] = ()


@dataclass(frozen=True)
class Support:
    """The support of a body, in armature space.

    Attributes:
        corners: (N, 3) of a convex outline, in order; the center of mass should be above it.
        up: (3,) the direction of "above".
    """

    corners: FloatArray
    up: tuple[float, float, float]


class Bounds:
    """The constraints from floor, support and capsules, for one body. Bones that cannot move do not touch the floor.

    Attributes:
        capsules: those of the body.
    """

    def __init__(
        self, bodies: Bodies, floor: Floor | None, support: Support | None, collision: SelfCollision | None = None
    ) -> None:
        self._bodies, self.capsules = bodies, Capsules(bodies, collision)
        names = bodies.skeleton.names
        own = [] if floor is None else [(name, point, 0.0) for name, point in floor.points]
        borne = [each for each in [*own, *(floor.balls if floor else ())] if each[0] in bodies.skeleton]
        self._bones: IntArray = np.array([names.index(name) for name, _, _ in borne], dtype=np.int64)
        self._places: FloatArray = np.array([place for _, place, _ in borne]).reshape(-1, 3)
        self._radii: FloatArray = np.array([radius for _, _, radius in borne])
        # The M bodies with points, and (M, N) the points of each; short rows repeat their first point.
        on = bodies.carrier[self._bones]
        self._on: IntArray = np.unique(on)
        most = int(np.bincount(on).max(initial=0))
        self._own: IntArray = np.empty((len(self._on), most), dtype=np.int64)
        for row, body in enumerate(self._on):
            points = np.flatnonzero(on == body)
            self._own[row] = np.append(points, np.repeat(points[0], most - len(points)))
        self._normal: FloatArray = np.array((0.0, 0.0, 1.0) if floor is None else floor.normal)
        self._height = 0.0 if floor is None else floor.height
        along = np.linalg.svd(self._normal[None])[2][1:]
        self._upward: FloatArray = self._normal + np.concatenate([np.zeros((1, 3)), _SLOPE * AXES @ along])
        self._support = support if support is not None and len(support.corners) > 2 else None
        self._normals: FloatArray = np.zeros((0, 3))
        if self._support is not None:
            self._sides, self._edges = _outline(self._support)
            middle = self._sides @ self._support.corners.mean(axis=0)
            self._inner = middle + _STANDS_IN * (self._edges - middle)
            self._normals = self._sides - _LOWERED * np.array(self._support.up)
            # Beyond a corner several sides push. Each side's cap is proportional to the angles at its ends, and whole
            # with right angles. So the force hardly depends on the number of sides.
            turns = np.arccos(np.clip((self._sides * np.roll(self._sides, -1, axis=0)).sum(axis=1), -1.0, 1.0))
            self._strongest = _MOST_FORCE * bodies.skeleton.extent / np.pi * (turns + np.roll(turns, 1))
            self._most = self._strongest
        # The first keys of the rows of floor, capsules and support, beyond those of all joint limits.
        self._first = np.cumsum([KEYS * len(bodies.bones), len(self._bones), self.capsules.keys])

    def prefer(self, posture: PostureTerm, rotations: FloatArray, location: FloatArray) -> None:
        """Set the preferred pose: (J, 4) local rotations and the root's head at (3,), armature space.

        Sets the region in which the center of mass moves freely. Points that start below the floor may stay as low.
        """
        self._posture, self._off_support = posture, 0.0
        self.capsules.carry(rotations, location)
        if len(self._bones):
            posed = forward_kinematics(self._bodies.skeleton, rotations, location)
            own, carrying = posed[self._bones[self._own]], posed[self._bodies.bones[self._on]][:, None]
            places = own[..., :3, 3] + times(own[..., :3, :3], self._places[self._own])
            # (M, N, 3) the points in the frames of the bodies, and (M, N) their lowest allowed heights.
            self._points = times(np.swapaxes(carrying[..., :3, :3], -1, -2), places - carrying[..., :3, 3])
            self._heights = np.minimum(self._height + self._radii[self._own], places @ self._normal)
            self._heights -= _SLACK * self._bodies.skeleton.extent
            self._reaches_down = (lengths(self._points) + self._heights).max(axis=1)
        if self._support is None:
            return
        start, corners, up = posture.preferred_center_of_mass, self._support.corners, np.array(self._support.up)
        self._way = np.zeros(3)
        if (self._sides @ start > self._edges).any():
            inner = corners.mean(axis=0) + _STANDS_IN * (corners - corners.mean(axis=0))
            along = np.roll(inner, -1, axis=0) - inner
            shares = nearest(np.stack([inner, inner + along]), np.broadcast_to(start, inner.shape))
            ways = inner + shares[:, None] * along - start
            ways -= (ways @ up)[:, None] * up
            self._way = ways[squares(ways).argmin()]
            self._off_support = float(np.linalg.norm(self._way))
        self.shift(0.0, *np.zeros((2, 3)))

    def lifted(self, ways: FloatArray) -> FloatArray:
        """(n,) the shares of the shift for legs whose targets move by `ways` (n, 3).

        The higher a leg is lifted, the less weight it bears. At the height of the distance to the support, it is 1.
        """
        if self._support is None or not self._off_support:
            return np.ones(len(ways))
        return np.asarray(np.clip(ways @ np.array(self._support.up) / self._off_support, 0.0, 1.0))

    def shift(self, share: float, carried: FloatArray, borne: FloatArray) -> FloatArray:
        """(3,) `share` times the translation that brings an unsupported body over its support; armature space.

        Also centers the region of free movement on the shifted center of mass. The region extends along the movement
        `carried` (3,) of the root's targets: dragged hips may carry the body over one foot. It also extends by `borne`
        (3,), beyond the support, toward feet that bear weight.
        """
        if not len(self._normals):
            return np.zeros(3)
        middle = self._posture.preferred_center_of_mass + share * self._way
        gaps = np.maximum(self._edges - self._sides @ middle, 0.0)
        at_ease = _AT_EASE * gaps**2 / max(float(gaps.max()), TINY)
        at_ease += np.clip(self._inner - self._sides @ middle - at_ease, 0.0, np.maximum(self._sides @ carried, 0.0))
        self._reaches = self._normals @ middle + at_ease + np.maximum(self._sides @ borne, 0.0)
        return np.asarray(share * self._way)

    def lean_on(self, points: FloatArray, within: float) -> None:
        """Let points (n, 3) that are nearer to the ground than `within` bear weight, the more the nearer they are."""
        if self._support is not None:
            heights = (points - self._support.corners[:1]) @ np.array(self._support.up)
            share = np.clip(heights.min(initial=within) / within, ROUNDING, 1.0)
            self._most = share * self._strongest

    def rows(self, pose: Pose, motions: Motions, away: Away) -> tuple[ConstraintRows, Contacts]:
        """The rows that a step could violate, with gaps in units of length, and their contact points."""
        near = NEAR * self._bodies.skeleton.extent
        found = [
            self._floor_rows(pose, motions, near),
            (self.capsules.rows(pose, motions, near), self.capsules.contacts),
            self._support_rows(pose, motions, away),
        ]
        starts = np.cumsum([0, *(len(rows.gaps) for rows, _ in found)])
        contacts = [each._replace(rows=each.rows + start) for (_, each), start in zip(found, starts, strict=False)]
        rows = [each._replace(keys=each.keys + first) for (each, _), first in zip(found, self._first, strict=True)]
        return joined(rows), joined(contacts)

    def _floor_rows(self, pose: Pose, motions: Motions, within: float) -> tuple[ConstraintRows, Contacts]:
        near, gaps = self._gaps(pose, within, self._upward)
        if not len(near):
            return ConstraintRows.none(self._bodies.columns), Contacts.none()
        lowest = near[:, None] * self._own.shape[1] + gaps.argmin(axis=1)
        body, point = np.divmod(np.unique(lowest), self._own.shape[1])
        points, on = pose.points(self._on[body], self._points[body, point]), self._on[body]
        gaps = points @ self._normal - self._heights[body, point]
        kept = gaps <= within
        points, on, gaps, keys = points[kept], on[kept], gaps[kept], self._own[body, point][kept]
        rows = -self._normal @ self._bodies.shifts(pose, motions, points, on)
        contacts = Contacts(points, on, np.broadcast_to(self._normal, points.shape), np.arange(len(points)))
        return ConstraintRows(rows, gaps, keys, np.zeros(len(gaps))), contacts

    def _gaps(self, pose: Pose, within: float, normals: FloatArray) -> tuple[IntArray, FloatArray]:
        """Measure the bodies that may be near the floor.

        Returns (m,) their indices in `_on`, and (m, N, K) the heights of their points above K floors with normals
        (K, 3), tilted about the point below the body's head.
        """
        if not len(self._on):
            return self._on, np.zeros((0, 0, len(normals)))
        heads = pose.heads[self._on] @ self._normal
        near = np.flatnonzero(heads - self._reaches_down <= within)
        upward = np.swapaxes(pose.orientations[self._on[near]], -1, -2) @ normals.T
        return near, self._points[near] @ upward + (heads[near, None] - self._heights[near])[..., None]

    def _support_rows(self, pose: Pose, motions: Motions, away: Away) -> tuple[ConstraintRows, Contacts]:
        posture, count, carrier = self._posture, len(self._normals), self._bodies.carrier
        if not count:
            return ConstraintRows.none(self._bodies.columns), Contacts.none()
        shifts = self._bodies.shifts(pose, motions, away.balanced, carrier)
        shift = (posture.shares @ shifts.reshape(len(shifts), -1)).reshape(3, -1)
        out = self._out(away)
        # Beyond its largest value a force stays almost constant: it grows by at most a tenth more.
        beyond = out - self._most * _YIELDS
        yielding = np.maximum(_YIELDS, 10.0 / self._most * beyond)
        gaps = -np.where(beyond > 0.0, self._most * yielding, out)
        rows = ConstraintRows(self._normals @ shift, gaps, np.arange(count), yielding)
        masses = len(posture.shares)
        return rows, Contacts(
            np.tile(away.balanced, (count, 1)),
            np.tile(carrier, count),
            (-posture.shares[:, None] * self._normals[:, None]).reshape(-1, 3),
            np.repeat(np.arange(count), masses),
        )

    def _out(self, away: Away) -> FloatArray:
        """(N,) the distance of the center of mass beyond each of the N sides of the support, units of length."""
        return np.asarray(self._normals @ self._posture.center_of_mass(away) - self._reaches)

    def holder(self, key: int) -> Holder:
        """The constraint that a row belongs to; `key` is the row's key."""
        floor, capsules, support = self._first.tolist()
        if key >= support:
            return Holder("BALANCE")
        if key >= capsules:
            return self.capsules.holder(key - capsules)
        return Holder("FLOOR", self._bodies.skeleton.names[self._bones[key - floor]])

    def depth(self, pose: Pose) -> float:
        """The largest penetration: of a point into the floor, or of the body into itself."""
        return float(max(self._below(pose).max(initial=0.0), self.capsules.depths(pose).max(initial=0.0)))

    def cost(self, pose: Pose, away: Away, price: float) -> float:
        """The cost of imbalance, and of penetrations of floor and body at `price` per unit of length."""
        cost = price * float(self.capsules.depths(pose).sum() + self._below(pose).sum())
        if len(self._normals):
            out = np.maximum(self._out(away), 0.0)
            forces = np.minimum(out / _YIELDS, self._most)
            cost += float(forces @ (out - 0.5 * forces * _YIELDS))
        return cost

    def _below(self, pose: Pose) -> FloatArray:
        """(m,) depths of the lowest points of bodies below the floor, units of length."""
        _, gaps = self._gaps(pose, 0.0, self._normal[None])
        return np.asarray(np.maximum(-gaps[..., 0].min(axis=1, initial=0.0), 0.0))


def _outline(support: Support) -> tuple[FloatArray, FloatArray]:
    """(N, 3) horizontal outward normals of the outline, and (N,) the distances of its edges along them."""
    corners, up = np.asarray(support.corners, dtype=np.float64), np.array(support.up)
    edges = np.roll(corners, -1, axis=0) - corners
    normals = np.cross(edges, up)
    normals *= np.sign((normals * (corners - corners.mean(axis=0))).sum())
    lengths = np.linalg.norm(normals, axis=1)
    kept = lengths > ROUNDING * lengths.max()
    normals = normals[kept] / lengths[kept, None]
    return normals, (normals * corners[kept]).sum(axis=1)
