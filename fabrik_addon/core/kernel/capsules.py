"""Self-collision: capsules on a body's bones that must not overlap.

The distance of two capsules is the distance of their segments minus their radii (Ericson, *Real-Time Collision
Detection*, 2005, section 5.1.9). Each near pair gives inequalities rows · x <= gap: one at the closest points of the
segments, and one at each end whose own closest point is near. The latter keep parallel capsules from rocking.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from ..arrays import ROUNDING, TINY, FloatArray, IntArray, lengths, squares, times
from ..model.effector import Effector
from ..model.skeleton import Skeleton
from .bodies import Bodies, Motions, Pose, cross, forward_kinematics
from .joint_limits import ConstraintRows, Holder

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
    """The capsules of one body, for one pose or for poses with a leading axis of frames.

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
        # (10, P) indices of each pair's scalar products among those of all starts, i and j, and directions, a and b.
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

        Returns (..., P) gaps, twice (..., P) the closest points as fractions of the first and the second segment, and
        (..., 2, C, 3) the ends of the segments.
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

    own, its: squares of the segments' directions. both: of the two directions. ahead, beyond: of the two with the
    vector from the second start to the first. apart: the square of that vector.
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
