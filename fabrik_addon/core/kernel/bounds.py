"""Constraints of a body other than its joint limits: the floor, self-collision, and balance over a support."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from ..arrays import ROUNDING, TINY, FloatArray, IntArray, joined, lengths, squares, times
from ..model.effector import Effector
from ..model.skeleton import Skeleton
from .bodies import Bodies, Motions, Pose, cross, forward_kinematics
from .joint_limits import AXES, KEYS, ConstraintRows, Holder
from .posture import Away, PostureTerm

# A step is assumed to close no gap above this fraction of the body's size.
NEAR = 0.03
# The rows and keys of each pair: one at the closest points, and one at each end of the two segments.
_KINDS = 5
# The end of a segment adds its own row if its closest points differ from the pair's by this fraction of a segment, and
# if its gap exceeds the pair's by at most this fraction of the distance at which rows are added.
_BESIDE = 0.2


Place: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True)
class Capsule:
    """A capsule on a bone.

    Attributes:
        bone: its name. A bone that is not in the skeleton does not move.
        start, end: the ends of its segment, (x, y, z) in the bone's frame; in armature space for a bone that is not in
            the skeleton.
        radius: in armature units.
    """

    bone: str
    start: Place
    end: Place
    radius: float


@dataclass(frozen=True)
class SelfCollision:
    """Capsules, and the pairs that must not overlap, as indices of capsules."""

    capsules: tuple[Capsule, ...]
    pairs: tuple[tuple[int, int], ...]

    def without_loops(self, skeleton: Skeleton, effectors: Sequence[Effector]) -> "SelfCollision":
        """A copy without the pairs that closed loops bring together, such as those of two hands on one stick."""
        ties = [
            (_about(skeleton, each.bone), _about(skeleton, each.target_bone)) for each in effectors if each.target_bone
        ]

        def is_tied(one: str, two: str) -> bool:
            return any((one in a and two in b) or (one in b and two in a) for a, b in ties)

        pairs = [(a, b) for a, b in self.pairs if not is_tied(self.capsules[a].bone, self.capsules[b].bone)]
        return replace(self, pairs=tuple(pairs))


def _about(skeleton: Skeleton, bone: str) -> set[str]:
    index = skeleton.index(bone)
    below = {name for name in skeleton.names if index in skeleton.path(skeleton.index(name))}
    parent = int(skeleton.parents[index])
    return below | ({skeleton.names[parent]} if parent >= 0 else set())


class Contacts(NamedTuple):
    """n contact points (n, 3) on bodies `on` (n,). A row, `rows` (n,), pushes each along its normal (n, 3)."""

    points: FloatArray
    on: IntArray
    normals: FloatArray
    rows: IntArray

    @classmethod
    def none(cls) -> "Contacts":
        """No points."""
        return cls(np.zeros((0, 3)), np.zeros(0, dtype=np.int64), np.zeros((0, 3)), np.zeros(0, dtype=np.int64))

    def forces(self, pushes: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """(n, 3) points on which pushes (K,) of the rows act, their bodies (n,) and forces (n, 3)."""
        pressed = np.flatnonzero(pushes[self.rows] > 0.0)
        forces = pushes[self.rows[pressed], None] * self.normals[pressed]
        return self.points[pressed], self.on[pressed], forces


class Capsules:
    """The capsules of one body, which must not overlap, for one pose or for poses with a leading axis of frames.

    The distance of two capsules is the distance of their segments minus their radii (Ericson, *Real-Time Collision
    Detection*, 2005, section 5.1.9). Each near pair gives inequalities rows · x <= gap: one at the closest points of
    the segments, and one at each end whose own closest point is near. The latter keep parallel capsules from rocking.

    Attributes:
        contacts: the contact points of the last rows of one pose.
    """

    def __init__(self, bodies: Bodies, collision: SelfCollision | None) -> None:
        self._bodies = bodies
        skeleton = bodies.skeleton
        capsules = () if collision is None else collision.capsules
        self._names = [each.bone for each in capsules]
        self._bones: IntArray = np.array(
            [skeleton.index(each.bone) if each.bone in skeleton.names else -1 for each in capsules], dtype=np.int64
        )
        carrier = np.where(self._bones >= 0, bodies.carrier[self._bones], -1)
        pairs = [] if collision is None else [pair for pair in collision.pairs if carrier[pair[0]] != carrier[pair[1]]]
        self._pairs: IntArray = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        radii = np.array([each.radius for each in capsules])
        self._radii: FloatArray = radii[self._pairs].sum(axis=0) if pairs else np.zeros(0)
        # (2, C, 3) the segments' ends in the frames of bones.
        self._ends: FloatArray = (
            np.array([[each.start, each.end] for each in capsules]).reshape(-1, 2, 3).swapaxes(0, 1)
        )
        # (10, P) where each pair's scalar products are among those of all starts (i, j) and directions (a, b).
        (i, j), count = self._pairs, len(capsules)
        a, b = i + count, j + count
        products = [(i, i), (j, j), (i, j), (a, a), (b, b), (a, b), (a, i), (a, j), (b, i), (b, j)]
        self._products: IntArray = np.array([2 * count * row + column for row, column in products])
        self._on = np.maximum(carrier, 0)
        self._moves = (carrier >= 0).astype(float)
        self._allowed: FloatArray = np.zeros(len(pairs))
        self._carried = self._ends
        self.contacts = Contacts.none()
        # The last pose and its measurements, since a step needs them first for its merit and then for its rows.
        self._measured: tuple[Pose, tuple[FloatArray, FloatArray, FloatArray, FloatArray]] | None = None

    def __bool__(self) -> bool:
        return len(self._radii) > 0

    @property
    def keys(self) -> int:
        """The number of keys of rows."""
        return _KINDS * len(self._radii)

    def carry(self, rotations: FloatArray, location: FloatArray) -> None:
        """Set the pose of bones that cannot move: rotations (..., J, 4) and the root's head at (..., 3)."""
        if not self:
            return
        posed = forward_kinematics(self._bodies.skeleton, rotations, location)
        own, carrying = posed[..., None, self._bones, :, :], posed[..., None, self._bodies.bones[self._on], :, :]
        away = own[..., :3, 3] + times(own[..., :3, :3], self._ends) - carrying[..., :3, 3]
        carried = times(np.swapaxes(carrying[..., :3, :3], -1, -2), away)
        self._carried = np.where(self._moves[:, None] > 0.0, carried, self._ends)
        self._measured = None

    def allow(self, pose: Pose) -> None:
        """Allow overlaps up to the depth that they have in a pose."""
        if self:
            self._allowed, self._measured = np.zeros(len(self._radii)), None
            self._allowed, self._measured = np.minimum(self._measure(pose)[0], 0.0), None

    def depths(self, pose: Pose) -> FloatArray:
        """(..., P) the overlaps of the pairs beyond the allowed overlaps, armature units."""
        return np.maximum(-self._measure(pose)[0], 0.0) if self else np.zeros(0)

    def rows(self, pose: Pose, motions: Motions, within: float) -> ConstraintRows:
        """The rows of one pose with a gap of at most `within`."""
        if not self:
            return ConstraintRows.none(self._bodies.columns)
        gaps, one, two, ends = self._measure(pose)
        near = np.flatnonzero(gaps <= within)
        one, two, segments = one[near], two[near], self._segments(ends, near)
        first, second = segments
        ones, twos = np.repeat(one[None], _KINDS, axis=0), np.repeat(two[None], _KINDS, axis=0)
        ones[1:3] = twos[3:] = [[0.0], [1.0]]
        twos[1:3], ones[3:] = nearest(second, first), nearest(first, second)
        at, on = _between(first, ones), _between(second, twos)
        distances = lengths(at - on)
        found = distances - (self._radii + self._allowed)[near]
        kept = (np.abs(ones - one) > _BESIDE) | (np.abs(twos - two) > _BESIDE)
        kept &= found <= gaps[near] + _BESIDE * within
        kept[0] = True
        kind, pair = np.nonzero(kept)
        rows = self._rows(pose, motions, at[kind, pair], on[kind, pair], segments[:, :, pair], near[pair])
        return ConstraintRows(rows, found[kind, pair], _KINDS * near[pair] + kind, np.zeros(len(pair)))

    def holder(self, key: int) -> Holder:
        """The two bones that a row keeps apart; `key` is the row's key."""
        first, second = self._pairs[:, key // _KINDS]
        return Holder("BODY", self._names[first], self._names[second])

    def sides(self, pose: Pose, motions: Motions, within: float) -> tuple[FloatArray, FloatArray]:
        """(F, K, D) rows for the closest points of K pairs in F poses, and (F, K) gaps; infinite if above `within`."""
        if not self:
            return np.zeros((len(pose.root), 0, self._bodies.columns)), np.zeros((len(pose.root), 0))
        gaps, one, two, ends = self._measure(pose)
        near = np.flatnonzero((gaps <= within).any(axis=0))
        gaps, segments = gaps[:, near], self._segments(ends, near)
        at, on = _between(segments[:, 0], one[:, near]), _between(segments[:, 1], two[:, near])
        return self._rows(pose, motions, at, on, segments, near), np.where(gaps <= within, gaps, np.inf)

    def _segments(self, ends: FloatArray, pairs: IntArray) -> FloatArray:
        """(..., 2, 2, n, 3) the first and the second segments of pairs (n,), from ends (..., 2, C, 3)."""
        return np.swapaxes(ends[..., self._pairs[:, pairs], :], -3, -4)

    def _rows(
        self, pose: Pose, motions: Motions, at: FloatArray, on: FloatArray, segments: FloatArray, pairs: IntArray
    ) -> FloatArray:
        """(..., n, D) how fast columns bring points `at` and `on` (..., n, 3) of pairs (n,) together."""
        across = at - on
        distances = lengths(across)[..., None]
        if distances.min(initial=1.0) <= ROUNDING:
            # Segments that cross are pushed apart along their common perpendicular.
            first, second = np.moveaxis(segments[..., 1, :, :] - segments[..., 0, :, :], -3, 0)
            across = np.where(distances > ROUNDING, across, cross(first, second))
            distances = lengths(across)[..., None]
        normals = across / np.maximum(distances, TINY)
        capsules = self._pairs[:, pairs].ravel()
        signed = np.concatenate([normals, -normals], axis=-2) * self._moves[capsules, None]
        points, bodies = np.concatenate([at, on], axis=-2), self._on[capsules]
        self.contacts = Contacts(points, bodies, signed, np.tile(np.arange(len(pairs)), 2))
        work = (signed[..., None, :] @ self._bodies.shifts(pose, motions, points, bodies))[..., 0, :]
        return np.asarray(-work[..., : len(pairs), :] - work[..., len(pairs) :, :])

    def _measure(self, pose: Pose) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Measure the pairs in a pose.

        Returns (..., P) gaps, the closest points as fractions (..., P) of the first and (..., P) of the second segment,
        and (..., 2, C, 3) the ends of the segments.
        """
        if self._measured is None or self._measured[0] is not pose:
            heads, turns = pose.heads[..., None, self._on, :], pose.orientations[..., None, self._on, :, :]
            ends = heads + times(turns, self._carried)
            if not self._moves.all():
                ends = np.where(self._moves[:, None] > 0.0, ends, self._ends)
            # All scalar products of starts and directions: 24 capsules form 170 pairs. Starts are relative to the
            # first one, since small distances would be inaccurate far from the origin.
            vectors = ends - ends[..., :1, :1, :]
            vectors[..., 1, :, :] -= vectors[..., 0, :, :]
            vectors = vectors.reshape(*ends.shape[:-3], -1, 3)
            products = (vectors @ np.swapaxes(vectors, -1, -2)).reshape(*vectors.shape[:-2], -1)
            found = products[..., self._products]
            ii, jj, ij, aa, bb, ab, ai, aj, bi, bj = (found[..., row, :] for row in range(len(self._products)))
            distances, one, two = _closest(aa, bb, ab, ai - aj, bi - bj, ii + jj - 2.0 * ij)
            self._measured = pose, (distances - self._radii - self._allowed, one, two, ends)
        return self._measured[1]


def closest(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The distances (..., n) of n pairs of segments (..., 2, n, 3).

    Also returns the closest points on the first and the second segment as fractions of their lengths, (..., n) each;
    if segments are parallel, one of many pairs.
    """
    start, other = first[..., 0, :, :], second[..., 0, :, :]
    along, across, between = first[..., 1, :, :] - start, second[..., 1, :, :] - other, start - other
    both, ahead, beyond = (np.einsum("...i,...i->...", *each) for each in combinations((along, across, between), 2))
    return _closest(squares(along), squares(across), both, ahead, beyond, squares(between))


def _closest(
    own: FloatArray, its: FloatArray, both: FloatArray, ahead: FloatArray, beyond: FloatArray, apart: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distances and closest points of pairs, from the scalar products (..., n) of vectors: see `closest`.

    own, its: squares of the two directions. both: their product. ahead, beyond: their products with the vector from
    the second start to the first. apart: the square of that vector.
    """
    own, its = np.maximum(own, TINY), np.maximum(its, TINY)
    least = own * its - both**2
    one = _share((both * beyond - its * ahead) / np.maximum(least, TINY))
    one = np.where(least > ROUNDING * own * its, one, 0.5)
    two = _share((both * one + beyond) / its)
    one = _share((both * two - ahead) / own)
    squared = apart + one * (one * own + 2.0 * ahead) + two * (two * its - 2.0 * beyond - 2.0 * one * both)
    return np.sqrt(np.maximum(squared, 0.0)), one, two


def nearest(segments: FloatArray, points: FloatArray) -> FloatArray:
    """(..., n) the fractions along segments (..., 2, n, 3) at which they are closest to points (..., n, 3)."""
    start, along = segments[..., 0, :, :], segments[..., 1, :, :] - segments[..., 0, :, :]
    along_points = ((points - start) * along).sum(axis=-1)
    return _share(along_points / np.maximum(squares(along), TINY))


def _between(segments: FloatArray, shares: FloatArray) -> FloatArray:
    """(..., n, 3) the points at fractions (..., n) along segments (..., 2, n, 3)."""
    start, end = segments[..., 0, :, :], segments[..., 1, :, :]
    return np.asarray(start + shares[..., None] * (end - start))


def _share(values: FloatArray) -> FloatArray:
    """Clamp `values` (...) to 0…1; for few values `np.clip` takes three times as long."""
    return np.asarray(np.minimum(np.maximum(values, 0.0), 1.0))


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

        The higher a leg is lifted, the less weight it bears. The share is 1 for a lift by the distance to the support.
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
