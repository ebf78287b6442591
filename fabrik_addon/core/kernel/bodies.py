"""Rigid bodies: their forward kinematics, and how they move when their joints rotate.

A free joint has three columns in the Jacobian, a hinge has one, and a fixed joint has none. Each column is a rotation
about an axis of the frame that carries the bone. A root that may move has three more. All numbers are float64 arrays
over the B bodies, the D columns or n points. If poses have a leading axis of frames, (F, B, 4), so do all results.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import BLOCK_NUMBERS, CLOSE, TINY, BoolArray, FloatArray, IntArray, lengths, times
from ..errors import LARGEST, SkeletonError, shaped, shown
from ..limits import Limit
from ..model.effector import Frames
from ..model.skeleton import Skeleton
from ..rotations import CROSSING, matrix_from_quaternion, product, quaternion_from_rotation_vector

# (..., D, 3) the axis of each column and (..., D, 3) the velocity of the point at the armature's origin.
Motions: TypeAlias = tuple[FloatArray, FloatArray]
# Radians. No joint rotates by more than MAX_ROTATION in a step of Newton's method, since the model is inaccurate
# farther away. A joint that rotates by less than AT_REST is at rest.
MAX_ROTATION, AT_REST = 0.5, 1e-5


@dataclass(frozen=True)
class Pose(Frames):
    """A pose of the B bodies.

    Attributes:
        local: (..., B, 4) local rotations, w x y z.
        root: (..., 3) the root's head.
        heads: (..., B, 3), orientations: (..., B, 3, 3) in armature space.
        carried: (..., B, 3, 3) the bodies' orientations without their local rotations.
        factors: (..., B) length factors of bodies that slide; None if none does.
    """

    local: FloatArray
    root: FloatArray
    heads: FloatArray
    orientations: FloatArray
    carried: FloatArray
    factors: FloatArray | None = None

    def points(self, on: IntArray, offsets: FloatArray) -> FloatArray:
        """(..., n, 3) armature-space positions of points at offsets (n, 3) in the frames of bodies `on` (n,)."""
        if self.factors is not None:
            offsets = stretched(offsets, self.factors[..., on])
        return np.asarray(self.heads[..., on, :] + times(self.orientations[..., on, :, :], offsets))

    def at(self, roots: FloatArray) -> "Pose":
        """A pose of one frame repeated F times, with its root moved by (F, 3)."""
        several = [None if value is None else np.repeat(value, len(roots), axis=0) for value in vars(self).values()]
        local, root, heads, orientations, carried, factors = several
        return Pose(local, root + roots, heads + roots[:, None], orientations, carried, factors)  # type: ignore[operator, arg-type]

    def put(self, frames: IntArray, part: "Pose") -> None:
        """Replace some of the frames, `frames` (N,), in place."""
        for name, value in vars(self).items():
            if value is not None:
                value[frames] = getattr(part, name)


class Bodies:
    """The bones that may move, parents first, each with the columns of its joint.

    Attributes:
        bones: (B,) indices in the skeleton.
        offsets: (B, 3) heads in the rest frames of the parents.
        parents: (B,) bodies, -1 for the root.
        columns: D, the number of columns: `turning` for joints, three for a free root, one for each body that slides.
        body_of: (D,) the body of each column; the root's translation belongs to body 0.
        slides: (S,) the bodies that slide.
        first: (B,) the first column of each body, and `counts` (B,) the number of its columns.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        bones: Sequence[int],
        axes: Sequence[FloatArray],
        free_root: bool,
        slides: Sequence[int] = (),
    ) -> None:
        """Prepare the bodies.

        axes: for each body, (k, 3) unit axes of the carried frame about which it may rotate. slides: bodies whose
        length may change; their children move along their Y.
        """
        place = {bone: index for index, bone in enumerate(bones)}
        self.skeleton, self.free_root = skeleton, free_root
        self.bones: IntArray = np.array(bones, dtype=np.int64)
        self.parents: IntArray = np.array([place.get(int(skeleton.parents[bone]), -1) for bone in bones])
        self.inherits: BoolArray = skeleton.inherits_rotation[self.bones]
        self.offsets: FloatArray = skeleton.head_offsets[self.bones]
        self.rest_turns: FloatArray = skeleton.rest_turns[self.bones]
        self.counts: IntArray = np.array([len(each) for each in axes], dtype=np.int64)
        self.first: IntArray = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        self.turning = int(self.counts.sum())
        self.slides: IntArray = np.array(slides, dtype=np.int64)
        self.columns = self.turning + 3 * free_root + len(slides)
        self.axes: FloatArray = np.concatenate([*axes, np.zeros((0, 3))])
        self._turning_body = np.repeat(np.arange(len(bones)), self.counts)
        self.body_of: IntArray = np.concatenate(
            [self._turning_body, np.zeros(3 * free_root, dtype=np.int64), self.slides]
        )
        self._turned = np.flatnonzero(self.inherits & (self.parents >= 0))
        self._jumps = list(_ancestor_steps(np.where(self.inherits, self.parents, -1)))
        # (3 B, turning) the matrix from columns to the rotation vectors of all bodies.
        self._spread = np.zeros((len(bones), 3, self.turning))
        self._spread[self._turning_body, :, np.arange(self.turning)] = self.axes
        self._spread = self._spread.reshape(3 * len(bones), self.turning)

    @cached_property
    def above(self) -> BoolArray:
        """(B, B) for bodies u, l: whether u is l, or above l in the tree."""
        result = np.eye(len(self.bones), dtype=bool)
        for body, parent in enumerate(self.parents):
            if parent >= 0:
                result[:, body] |= result[:, parent]
        return result

    @cached_property
    def carrier(self) -> IntArray:
        """(J,) for each bone of the skeleton, the body that moves it: the bone itself, or the nearest body above it."""
        place = {int(bone): body for body, bone in enumerate(self.bones)}
        result = np.zeros(len(self.skeleton.parents), dtype=np.int64)
        for bone, parent in enumerate(self.skeleton.parents):
            result[bone] = place.get(bone, result[parent] if parent >= 0 else 0)
        return result

    @cached_property
    def ends(self) -> IntArray:
        """(B, B) for bodies u, l: the body at whose head the lever arm from u to points of l ends; -1: at the points.

        Bodies that do not inherit rotation are moved, but not rotated, by those above.
        """
        result = np.full((len(self.bones), len(self.bones)), -1, dtype=np.int64)
        for body, parent in enumerate(self.parents):
            if parent < 0:
                continue
            above = np.flatnonzero(self.above[:, parent])
            before = result[above, parent]
            result[above, body] = before if self.inherits[body] else np.where(before >= 0, before, body)
        return result

    @cached_property
    def breaks_inheritance(self) -> bool:
        """Whether some body does not inherit rotation."""
        return bool((self.ends >= 0).any())

    @cached_property
    def _below(self) -> FloatArray:
        """(B, B) for bodies l, u: 1 if l is u, or below u in the tree; else 0."""
        return self.above.T.astype(float)

    def pose(self, local: FloatArray, root: FloatArray, factors: FloatArray | None = None) -> Pose:
        """The pose with these local rotations (..., B, 4), root's head (..., 3) and length factors (..., B)."""
        return Pose(local, root, *self.placed(local, root, factors), factors)

    def placed(
        self, local: FloatArray, root: FloatArray, factors: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`heads`, `orientations` and `carried` of the `Pose` with these values, which are given as in `pose`."""
        # For many poses, a loop over the bodies is faster.
        if local.ndim == 3 and len(local) > len(self.bones):
            return self._placed_together(local, root, factors)
        orientations = self.rest_turns @ matrix_from_quaternion(local)
        # For few poses, few rounds are faster. Each one doubles the number of ancestors covered.
        for bodies, above in self._jumps:
            orientations[..., bodies, :, :] = orientations[..., above, :, :] @ orientations[..., bodies, :, :]
        shifts = np.empty((*local.shape[:-1], 3))
        shifts[..., 0, :] = root
        offsets = self.offsets[1:]
        if factors is not None:
            offsets = stretched(offsets, factors[..., self.parents[1:]])
        shifts[..., 1:, :] = times(orientations[..., self.parents[1:], :, :], offsets)
        carried = np.empty_like(orientations)
        carried[...] = self.rest_turns
        carriers = orientations[..., self.parents[self._turned], :, :]
        carried[..., self._turned, :, :] = carriers @ self.rest_turns[self._turned]
        return self._below @ shifts, orientations, carried

    def _placed_together(
        self, local: FloatArray, root: FloatArray, factors: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`placed` for F poses, in blocks. With the frames as the last axis, numpy is faster."""
        (count, bodies), roots = local.shape[:2], np.broadcast_to(root, (len(local), 3))
        stretches = None if factors is None else np.broadcast_to(factors, (count, bodies)) - 1.0
        # Each block has three rotation matrices for each body.
        size = max(1, BLOCK_NUMBERS // (27 * bodies))
        heads, orientations, carried = np.empty((count, bodies, 3)), *np.empty((2, count, bodies, 3, 3))
        for first in range(0, count, size):
            part = slice(first, min(first + size, count))
            w, *vector = np.ascontiguousarray(local[part].T)
            places = np.empty((bodies, 3, part.stop - first))
            turned, turns, above = np.empty((3, bodies, 3, 3, part.stop - first))
            for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
                # 1 + 2 w X + 2 X X, where X is the cross product with (x, y, z).
                twice = 2.0 * vector[k]
                turned[:, i, j] = 2.0 * vector[i] * vector[j] - twice * w
                turned[:, j, i] = turned[:, i, j] + 2.0 * twice * w
                turned[:, i, i] = 1.0 - 2.0 * vector[j] * vector[j] - twice * vector[k]
            bones = zip(self.parents, self.rest_turns, self.offsets, strict=True)
            for body, (parent, rest, offset) in enumerate(bones):
                above[body] = rest.T @ turns[parent] if parent >= 0 and self.inherits[body] else rest[..., None]
                places[body] = places[parent] + offset @ turns[parent] if parent >= 0 else roots[part].T
                if stretches is not None and parent >= 0:
                    places[body] += offset[1] * stretches[part, parent] * turns[parent, :, 1]
                np.einsum("ijf,jkf->ikf", above[body], turned[body], out=turns[body])
            found = (np.moveaxis(each, -1, 0) for each in (places, turns, above))
            heads[part], orientations[part], carried[part] = found
        return heads, orientations, carried

    def moved(self, pose: Pose, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(..., B, 4) local rotations and (..., 3) root location after a step (..., D), without clamping to limits."""
        root = pose.root + step[..., self.turning : self.turning + 3] if self.free_root else pose.root
        local = product(quaternion_from_rotation_vector(self.vectors(step)), pose.local)
        return local / lengths(local)[..., None], root

    def vectors(self, step: FloatArray) -> FloatArray:
        """(..., B, 3) rotation vectors of a step (..., D), in the frames that carry the bodies."""
        return (step[..., : self.turning] @ self._spread.T).reshape(*step.shape[:-1], len(self.bones), 3)

    def rates(self, step: FloatArray) -> FloatArray:
        """(F, turning, turning) rotations of joints per change of the columns, after a step (F, D) from a pose.

        The left Jacobian of the rotation vector θ u, with |u| = 1: I + (1 - cos θ) / θ [u]× + (1 - sin θ / θ) [u]×²
        (Solà, Deray, Atchuthan, arXiv 1812.01537, eq. 145).
        """
        vectors = self.vectors(step)
        angles = np.maximum(lengths(vectors), TINY)[..., None, None]
        crossing = cross(np.eye(3), (vectors / angles[..., 0])[..., None, :])
        rates = np.eye(3) + (1.0 - np.cos(angles)) / angles * crossing
        rates += (1.0 - np.sin(angles) / angles) * crossing @ crossing
        spread = self._spread.reshape(len(self.bones), 3, self.turning)
        return np.asarray(self._spread.T @ (rates @ spread).reshape(len(step), -1, self.turning))

    def columns_of(self, vectors: FloatArray) -> FloatArray:
        """(..., turning) the columns of joints for rotation vectors (..., B, 3): the inverse of `vectors`."""
        return np.asarray(vectors.reshape(*vectors.shape[:-2], -1) @ self._spread)

    def motions(self, pose: Pose) -> Motions:
        """(..., D, 3) the axis of each column and (..., D, 3) the velocity of the point at the armature's origin."""
        axes, speeds = np.zeros((2, *pose.root.shape[:-1], self.columns, 3))
        turned = times(pose.carried[..., self._turning_body, :, :], self.axes)
        axes[..., : self.turning, :] = turned
        speeds[..., : self.turning, :] = cross(pose.heads[..., self._turning_body, :], turned)
        if self.free_root:
            speeds[..., self.turning : self.turning + 3, :] = np.eye(3)
        return axes, speeds

    def levers(self, on: IntArray, offsets: FloatArray) -> FloatArray:
        """(n, S) distances by which S sliding bodies move points (n, 3) of bodies (n,), per unit of length factor."""
        result = np.zeros((len(on), len(self.slides)))
        for row, holder in enumerate(on.tolist()):
            body, along = holder, offsets[row, 1]
            while body >= 0:
                result[row, self.slides == body] = along
                body, along = self.parents[body], self.offsets[body, 1]
        return result

    def shifts(self, pose: Pose, motions: Motions, points: FloatArray, on: IntArray) -> FloatArray:
        """(..., n, 3, D) Jacobian of the positions of points (..., n, 3) on bodies `on` (n,)."""
        axes, speeds = motions
        if self.breaks_inheritance:
            ends = self.ends[self.body_of][:, on].T
            arms = np.where((ends >= 0)[..., None], pose.heads[..., ends, :], points[..., None, :])
            turned = np.swapaxes(cross(axes[..., None, :, :], arms), -1, -2)
        else:
            # For each point p the matrix that maps a to a × p.
            crossing = (points @ -CROSSING.reshape(3, 9)).reshape(*points.shape[:-2], -1, 3)
            turned = (crossing @ np.swapaxes(axes, -1, -2)).reshape(*points.shape, self.columns)
        return np.asarray((turned + np.swapaxes(speeds, -1, -2)[..., None, :, :]) * self._moves[on][:, None])

    def turns(self, motions: Motions, on: IntArray) -> FloatArray:
        """(..., n, 3, D) Jacobian of the rotations of bodies `on` (n,), as rotation vectors."""
        moves = self._moves[on][:, None]
        if self.breaks_inheritance:
            moves = moves * (self.ends[self.body_of][:, on].T < 0)[:, None]
        return np.asarray(np.swapaxes(motions[0], -1, -2)[..., None, :, :] * moves)

    @cached_property
    def _moves(self) -> FloatArray:
        """(B, D) 1 if a column moves a body, else 0."""
        return self.above[self.body_of].T.astype(float)

    def below(self, on: IntArray) -> FloatArray:
        """(B, n) 1 if a body is one of `on` (n,) or above it, else 0."""
        return self.above[:, on].astype(float)

    def factors(
        self,
        motions: Motions,
        below: FloatArray,
        points: FloatArray,
        weights: FloatArray,
        forces: FloatArray,
        turning: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The normal equations of weighted points, from composite inertia; all bodies must inherit rotation.

        Source: Featherstone, *Rigid Body Dynamics Algorithms*, 2008, chapter 6.

        Args:
            motions: of the columns.
            below: (B, n) from `below`.
            points: (..., n, 3), armature space.
            weights: (..., n).
            forces: (..., n, 3).
            turning: for bodies whose rotation counts, (B, m) from `below`, weights (..., m) and torques (..., m, 3).

        Returns:
            (..., D, 6) L and R such that `symmetric` of L Rᵀ is Σ weight · JᵀJ, and (..., D) Σ Jᵀ force.
        """
        ones = np.concatenate([np.ones((*points.shape[:-1], 1)), points], axis=-1)
        own = (ones[..., :, None] * (weights[..., None] * ones)[..., None, :]).reshape(*points.shape[:-1], 16)
        inertia = ((below @ own) @ _INERTIA).reshape(*points.shape[:-2], -1, 6, 6)
        pulls = below @ np.concatenate([cross(points, forces), forces], axis=-1)
        if turning is not None:
            carried, counts, torques = turning
            inertia[..., (0, 1, 2), (0, 1, 2)] += carried @ counts[..., None]
            pulls[..., :3] += carried @ torques
        columns = np.concatenate(motions, axis=-1)
        moved = times(inertia[..., self.body_of, :, :], columns)
        return columns, moved, (columns * pulls[..., self.body_of, :]).sum(axis=-1)

    def symmetric(self, products: FloatArray) -> FloatArray:
        """(..., D, D) symmetric matrices from `products`, whose entries u, l are only valid if u is above l.

        The two products of a pair of columns on one body are averaged. Changes `products`.
        """
        products *= self._upper
        return np.asarray(products + np.swapaxes(products, -1, -2))

    @cached_property
    def _upper(self) -> FloatArray:
        """(D, D) 1 if the body of column i is above that of column j, ½ if it is the same."""
        return np.where(self.body_of[:, None] == self.body_of, 0.5, self.above[self.body_of][:, self.body_of])

    def stiffness(
        self,
        pose: Pose,
        motions: Motions,
        points: FloatArray,
        on: IntArray,
        forces: FloatArray,
        turning: tuple[IntArray, FloatArray] | None = None,
    ) -> FloatArray:
        """(..., D, D) second derivatives of the work of forces (..., n, 3) at points (..., n, 3) of bodies `on` (n,).

        Σ f · ∂²p / ∂i ∂j, which is f · (a_i × (a_j × arm_j)) if column i is above column j. turning: also torques t
        (..., m, 3) on bodies (m,), whose rotation vectors change by ½ t · (a_i × a_j) (Baker, Campbell and Hausdorff's
        formula).
        """
        bent = self.stiffness_factor(pose, motions, points, on, forces)
        if turning is not None:
            bent += 0.5 * cross(motions[0], self._moves[turning[0]].T @ turning[1])
        return self.symmetric(motions[0] @ np.swapaxes(bent, -1, -2))

    def stiffness_factor(
        self, pose: Pose, motions: Motions, points: FloatArray, on: IntArray, forces: FloatArray
    ) -> FloatArray:
        """(..., D, 3) the matrix R such that `symmetric` of A Rᵀ is `stiffness`; the axes of the columns are A."""
        products = (points[..., :, None] * forces[..., None, :]).reshape(*points.shape[:-1], 9)
        below = self._moves[on].T @ np.concatenate([products, forces], axis=-1)
        heads, axes = pose.heads[..., self.body_of, :], motions[0]
        spread = below[..., :9].reshape(*below.shape[:-1], 3, 3) - heads[..., :, None] * below[..., None, 9:]
        trace = spread[..., 0, 0] + spread[..., 1, 1] + spread[..., 2, 2]
        return np.asarray(times(spread, axes) - trace[..., None] * axes)


def joint_axes(limit: Limit | None, factor: float) -> FloatArray:
    """(k, 3) axes about which a joint may rotate, in the frame that carries it; none if `factor` is infinite."""
    if not np.isfinite(factor) or (limit is not None and limit.freedom == 0):
        return np.zeros((0, 3))
    return np.eye(3) if limit is None or limit.rotation_axis is None else np.array([limit.rotation_axis])


def _ancestor_steps(carriers: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """For each step of 1, 2, 4 … levels: the bodies with an ancestor that many levels above them, and the ancestors.

    Quantities pass down a tree of depth n in log2(n) rounds. carriers: (B,) the body above each one, -1 for none.
    """
    above = carriers
    while (above >= 0).any():
        bodies = np.flatnonzero(above >= 0)
        yield bodies, above[bodies]
        above = np.where(above >= 0, above[above], -1)


def cross(first: FloatArray, second: FloatArray) -> FloatArray:
    """(..., 3) the cross product; `np.cross` takes three times as long on a few rows."""
    products = first[..., :, None] * second[..., None, :]
    return np.asarray(products.reshape(*products.shape[:-2], 9) @ -CROSSING.reshape(9, 3))


def stretched(offsets: FloatArray, factors: FloatArray) -> FloatArray:
    """(..., n, 3) points (n, 3) in the frames of bodies, moved along Y by the length factors (..., n)."""
    result = np.empty((*factors.shape, 3))
    result[...] = offsets
    result[..., 1] *= factors
    return result


def _inertia() -> FloatArray:
    """(16, 36) the linear map from m · (1, p) (1, p)ᵀ to the (6, 6) inertia of a mass m at p.

    The inertia is that of motions (a, s): axis and velocity at the origin. A point p moves by a × p + s.
    """
    moved = np.zeros((4, 6, 3))
    moved[0, 3:] = np.eye(3)
    moved[1:, :3] = CROSSING
    return np.asarray(np.einsum("iax,jbx->ijab", moved, moved).reshape(16, 36))


_INERTIA = _inertia()


def forward_kinematics(
    skeleton: Skeleton,
    rotations: npt.ArrayLike,
    root_location: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
) -> FloatArray:
    """The armature-space matrix of every bone in a pose.

    pose_i = pose_parent · rest_parent⁻¹ · rest_i · R(q_i), as in Blender. A bone that does not inherit rotation follows
    only the location of its parent.

    Args:
        skeleton: the rest pose, J bones.
        rotations: ([F,] J, 4) local unit quaternions w x y z, as in Blender's pose channels.
        root_location: ([F,] 3) head of the root in armature space; at rest when None.
        lengths: ([F,] J) bone lengths if they differ from rest; children move along the bone's Y with them.

    Returns:
        ([F,] J, 4, 4) matrices in armature space.

    Raises:
        SkeletonError: if a shape does not match the skeleton, or a number is infinite or too large.
    """
    if not isinstance(skeleton, Skeleton):
        raise SkeletonError(f"The skeleton is {shown(skeleton)}: give a Skeleton")
    count = len(skeleton)
    # Larger components would scale bones; single precision may round up those of unit quaternions.
    local = _given("Rotations have", rotations, None, count, 4, largest=1.0 + CLOSE)
    frames = local.shape[0] if local.ndim == 3 else 1
    root, factors = skeleton.rest[0, :3, 3], None
    if root_location is not None:
        root = _given("Root locations have", root_location, frames, 3)
    if lengths is not None:
        rest = np.where(skeleton.lengths > 0, skeleton.lengths, np.inf)
        factors = np.where(rest < np.inf, _given("Lengths have", lengths, frames, count) / rest, 1.0)
    matrices = np.zeros((*local.shape[:-1], 4, 4))
    matrices[..., :3, 3], matrices[..., :3, :3], _ = _bodies(skeleton).placed(local, root, factors)
    matrices[..., 3, 3] = 1.0
    return matrices


@lru_cache(maxsize=8)
def _bodies(skeleton: Skeleton) -> Bodies:
    return Bodies(skeleton, range(len(skeleton)), [np.zeros((0, 3))] * len(skeleton), free_root=False)


def tails(skeleton: Skeleton, matrices: FloatArray, lengths: FloatArray | None = None) -> FloatArray:
    """([F,] J, 3) tails of bones at matrices ([F,] J, 4, 4), armature space; lengths: ([F,] J), at rest when None."""
    length = skeleton.lengths if lengths is None else lengths
    return matrices[..., :3, 3] + matrices[..., :3, 1] * length[..., None]


def _given(what: str, values: object, frames: int | None, *shape: int, largest: float = LARGEST) -> FloatArray:
    """Values as an array for one pose or F poses; NaN is allowed. Raises SkeletonError for invalid ones."""
    array = shaped(SkeletonError, what, values, frames, *shape)
    if (np.abs(array) > largest).any():
        raise SkeletonError(f"{what} a number that is infinite or too large: it must be at most {largest:g}")
    return array
