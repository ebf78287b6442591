"""A body of rigid bones for one pose at a time: where everything is, and how it moves when its joints turn.

Joints are columns: three of a joint that turns freely, one of a hinge, none of what is fixed, each a turn about an axis
of the frame that carries the bone; three more for a root whose place is free. All numbers are float64 arrays over the B
bodies, the D columns or n points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..model.skeleton import Skeleton
from ..rotations import matrix_from_quaternion, product, quaternion_from_rotation_vector

_AXES = np.eye(3)
# (D, 3) the axis of each column and (D, 3) the speed of what it moves at the armature's origin.
Motions: TypeAlias = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Stance:
    """How the B bodies stand.

    Attributes:
        local: (B, 4) local rotations, w x y z.
        root: (3,) the root's head.
        heads: (B, 3), frames: (B, 3, 3) in armature space.
        carried: (B, 3, 3) the frames that the bodies would have without their local rotation.
    """

    local: FloatArray
    root: FloatArray
    heads: FloatArray
    frames: FloatArray
    carried: FloatArray


class Bodies:
    """The bones that may move, parents first, each with the columns of its joint.

    Attributes:
        bones: (B,) places in the skeleton.
        parents: (B,) bodies, -1 for the root.
        columns: how many there are, D.
        body_of: (D,) the body of each column; the root's shift belongs to body 0.
        first: (B,) the first column of each body, and `counts` (B,) how many it has.
    """

    def __init__(self, skeleton: Skeleton, bones: Sequence[int], axes: Sequence[FloatArray], free_root: bool) -> None:
        """Make them ready; axes: for each body, (k, 3) unit axes of the carried frame that it may turn about."""
        place = {bone: index for index, bone in enumerate(bones)}
        self.skeleton, self.free_root = skeleton, free_root
        self.bones: IntArray = np.array(bones, dtype=np.int64)
        self.parents: IntArray = np.array([place.get(int(skeleton.parents[bone]), -1) for bone in bones])
        self.inherits: BoolArray = skeleton.inherits_rotation[self.bones]
        self._offsets = np.tile(np.eye(4), (len(bones), 1, 1))
        self._offsets[:, :3, 3] = [skeleton.head_offset(bone) for bone in bones]
        self.rest_turns: FloatArray = np.array([skeleton.rest_turn(bone) for bone in bones])
        self.counts: IntArray = np.array([len(each) for each in axes])
        self.first: IntArray = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        self.turning = int(self.counts.sum())
        self.columns = self.turning + 3 * free_root
        self.axes: FloatArray = np.concatenate([*axes, np.zeros((0, 3))])
        self._turning_body = np.repeat(np.arange(len(bones)), self.counts)
        self.body_of: IntArray = np.concatenate([self._turning_body, np.zeros(3 * free_root, dtype=np.int64)])
        levels = _levels(self.parents)
        self._levels = [(each, self.parents[each], each[~self.inherits[each]]) for each in levels]
        self._frame_of = np.where(self.inherits & (self.parents >= 0), self.parents + 1, 0)

    @cached_property
    def above(self) -> BoolArray:
        """(B, B) entry u, l: whether u is l or above it."""
        result = np.eye(len(self.bones), dtype=bool)
        for body, parent in enumerate(self.parents):
            if parent >= 0:
                result[:, body] |= result[:, parent]
        return result

    @cached_property
    def ends(self) -> IntArray:
        """(B, B) where u's arm to a point of l ends: -1 at the point itself, else at the head of that body.

        A body that does not inherit rotation is moved by those above it, but not turned.
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
    def broken(self) -> bool:
        """Whether some body does not inherit rotation."""
        return bool((self.ends >= 0).any())

    def stand(self, local: FloatArray, root: FloatArray) -> Stance:
        """Where the bodies are with (B, 4) local rotations and the root's head at (3,)."""
        own = self._offsets.copy()
        own[:, :3, :3] = self.rest_turns @ matrix_from_quaternion(local)
        own[0, :3, 3] = root
        # A row of its own for what carries the root.
        posed = np.empty((len(local) + 1, 4, 4))
        posed[0], posed[1] = np.eye(4), own[0]
        for bodies, parents, free in self._levels:
            posed[bodies + 1] = posed[parents + 1] @ own[bodies]
            if len(free):
                posed[free + 1, :3, :3] = own[free, :3, :3]
        frames = posed[1:, :3, :3]
        return Stance(local, root, posed[1:, :3, 3], frames, posed[self._frame_of, :3, :3] @ self.rest_turns)

    def moved(self, stance: Stance, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(B, 4) local rotations and (3,) root after a step (D,), limits not looked at."""
        vectors = self.vectors(step)
        root = stance.root + step[self.turning :] if self.free_root else stance.root
        local = product(quaternion_from_rotation_vector(vectors), stance.local)
        return local / np.sqrt((local * local).sum(axis=1, keepdims=True)), root

    def vectors(self, step: FloatArray) -> FloatArray:
        """(B, 3) rotation vectors, in the frames that carry the bodies, of a step (D,)."""
        vectors = np.zeros((len(self.bones), 3))
        np.add.at(vectors, self._turning_body, step[: self.turning, None] * self.axes)
        return vectors

    def motions(self, stance: Stance) -> Motions:
        """(D, 3) the axis of each column and (D, 3) the speed of what it moves at the armature's origin."""
        axes, speeds = np.zeros((self.columns, 3)), np.empty((self.columns, 3))
        axes[: self.turning] = (stance.carried[self._turning_body] @ self.axes[..., None])[..., 0]
        speeds[: self.turning] = cross(stance.heads[self._turning_body], axes[: self.turning])
        if self.free_root:
            speeds[self.turning :] = _AXES
        return axes, speeds

    def shifts(self, stance: Stance, motions: Motions, points: FloatArray, on: IntArray) -> FloatArray:
        """(n, 3, D) how points (n, 3) of bodies (n,) move with the columns."""
        axes, speeds = motions
        moves = self.above[self.body_of][:, on].T
        arms = points[:, None]
        if self.broken:
            ends = self.ends[self.body_of][:, on].T
            arms = np.where((ends >= 0)[..., None], stance.heads[ends], arms)
        shifts = (cross(axes[None], arms) + speeds) * moves[..., None]
        return np.swapaxes(shifts, 1, 2)

    def symmetric(self, products: FloatArray) -> FloatArray:
        """(D, D) with the entries of pairs whose first column is above the second, on both sides; zero elsewhere."""
        matrix = np.where(self._upper, products, products.T)
        return np.asarray(matrix * self._related)

    @cached_property
    def _upper(self) -> BoolArray:
        return self.above[self.body_of][:, self.body_of]

    @cached_property
    def _related(self) -> BoolArray:
        return self._upper | self._upper.T

    def stiffness(
        self, stance: Stance, motions: Motions, points: FloatArray, on: IntArray, forces: FloatArray
    ) -> FloatArray:
        """(D, D) how the pull of forces (n, 3) at points (n, 3) of bodies (n,) on the columns grows as they turn.

        Σ f · ∂²p / ∂i ∂j, which is f · (a_i × (a_j × arm_j)) where i is above j.
        """
        own = np.zeros((len(self.bones), 12))
        np.add.at(own, on, np.concatenate([(points[:, :, None] * forces[:, None, :]).reshape(-1, 9), forces], axis=1))
        below = (self.above.astype(float) @ own)[self.body_of]
        heads = stance.heads[self.body_of]
        spread = below[:, :9].reshape(-1, 3, 3) - heads[:, :, None] * below[:, None, 9:]
        axes = motions[0]
        turned = (spread @ axes[..., None])[..., 0] - np.trace(spread, axis1=1, axis2=2)[:, None] * axes
        products = axes @ turned.T
        same = self.body_of[:, None] == self.body_of
        return self.symmetric(np.where(same, 0.5 * (products + products.T), products))

    def turns(self, motions: Motions, on: IntArray) -> FloatArray:
        """(n, 3, D) how bodies (n,) turn with the columns."""
        moves = self.above[self.body_of][:, on].T & (self.ends[self.body_of][:, on].T < 0)
        return np.swapaxes(motions[0][None] * moves[..., None], 1, 2)


def _levels(parents: IntArray) -> list[IntArray]:
    """The bodies by their distance from the root, which is left out."""
    depth = np.zeros(len(parents), dtype=np.int64)
    for body, parent in enumerate(parents):
        depth[body] = depth[parent] + 1 if parent >= 0 else 0
    return [np.flatnonzero(depth == level) for level in range(1, int(depth.max()) + 1)]


def cross(first: FloatArray, second: FloatArray) -> FloatArray:
    """(..., 3) the cross product; `np.cross` takes three times as long on a few rows."""
    x, y, z = first[..., 0], first[..., 1], first[..., 2]
    u, v, w = second[..., 0], second[..., 1], second[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)
