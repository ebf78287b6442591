"""The immutable tree of bones that is solved."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import CLOSE, SINGLE, BoolArray, FloatArray, IntArray, times
from ..errors import LARGEST, SkeletonError, flags, numbers, shown


class Skeleton:
    """A tree of bones in their rest pose, in armature space.

    Args:
        names: J bone names, all different.
        parents: (J,) index of each bone's parent, -1 for the only root; parents come before their children.
        rest: (J, 4, 4) rest matrices without scale; local Y points along the bone, the translation is its head.
        lengths: (J,) lengths from head to tail, zero or more.
        inherits_rotation: (J,) False if the bone does not rotate with its parent; all True when None.

    Raises:
        SkeletonError: naming the bone, if the parts are not one tree of rigid bones.
    """

    def __init__(
        self,
        names: Sequence[str],
        parents: npt.ArrayLike,
        rest: npt.ArrayLike,
        lengths: npt.ArrayLike,
        inherits_rotation: npt.ArrayLike | None = None,
    ) -> None:
        try:
            self.names = tuple(names)
        except TypeError:
            raise SkeletonError(f"The skeleton's names are {shown(names)}: give a list of strings") from None
        count = len(self.names)
        above = _frozen(parents, (count,), "parents")
        if not ((above == np.trunc(above)) & (above >= -1) & (above < count)).all():
            raise SkeletonError("The skeleton's parents must be indices of its bones, -1 for the root")
        self.parents: IntArray = above.astype(np.int64)
        self.parents.flags.writeable = False
        self.rest: FloatArray = _frozen(rest, (count, 4, 4), "rest")
        self.lengths: FloatArray = _frozen(lengths, (count,), "lengths")
        inherits = np.ones(count, dtype=bool) if inherits_rotation is None else inherits_rotation
        self.inherits_rotation: BoolArray = _frozen(inherits, (count,), "inherits_rotation", truths=True)
        _check_names(self.names)
        self._index = {name: index for index, name in enumerate(self.names)}
        _check_tree(self)
        _check_bodies(self)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._index

    @cached_property
    def size(self) -> float:
        """The approximate size of the rest pose: the diagonal of the heads' bounding box plus the longest bone."""
        return float(np.linalg.norm(np.ptp(self.rest[:, :3, 3], axis=0)) + self.lengths.max())

    @cached_property
    def extent(self) -> float:
        """The size to which forces are relative: the longest side of the heads' bounding box plus the longest bone."""
        return float(np.ptp(self.rest[:, :3, 3], axis=0).max() + self.lengths.max())

    def is_like(self, other: "Skeleton") -> bool:
        """Whether another skeleton has the same bones and rest pose, up to its location."""
        if self.names != other.names or not np.array_equal(self.parents, other.parents):
            return False
        heads = [each.rest[:, :3, 3] - each.rest[0, :3, 3] for each in (self, other)]
        return bool(
            np.array_equal(self.rest[:, :3, :3], other.rest[:, :3, :3])
            and np.array_equal(self.lengths, other.lengths)
            and np.array_equal(self.inherits_rotation, other.inherits_rotation)
            and np.abs(heads[0] - heads[1]).max() <= SINGLE * self.size
        )

    def index(self, name: str) -> int:
        """The index of a bone in the arrays; raises SkeletonError if there is no bone of that name."""
        try:
            return self._index[name]
        except KeyError:
            raise SkeletonError(f"There is no bone named {name!r} in this skeleton: use one of its names") from None

    def path(self, bone: int) -> list[int]:
        """Bone indices from the root to `bone`, both included."""
        path = [bone]
        while self.parents[path[-1]] >= 0:
            path.append(int(self.parents[path[-1]]))
        return path[::-1]

    def part(self, bones: Sequence[int], rest: npt.ArrayLike | None = None) -> "Skeleton":
        """The skeleton of some of the bones, parents first; rest: (len(bones), 4, 4); unchanged if None."""
        members = np.asarray(bones, dtype=np.int64)
        # Bones that are left out get -1. The extra last entry, which the parent -1 of a root selects, is -1 too.
        indices = np.full(len(self) + 1, -1)
        indices[members] = np.arange(len(members))
        return Skeleton(
            [self.names[bone] for bone in members],
            indices[self.parents[members]],
            self.rest[members] if rest is None else rest,
            self.lengths[members],
            self.inherits_rotation[members],
        )

    @cached_property
    def head_offsets(self) -> FloatArray:
        """(J, 3) the heads in the rest frames of the parents; in armature space for the root."""
        heads, has_parent = self.rest[:, :3, 3], self.parents >= 0
        from_parent = heads - np.where(has_parent[:, None], heads[self.parents], 0.0)
        return times(np.swapaxes(self._carriers(has_parent), 1, 2), from_parent)

    @cached_property
    def rest_turns(self) -> FloatArray:
        """(J, 3, 3) rest rotations relative to parents, or to the armature if the bone does not inherit rotation."""
        carriers = self._carriers((self.parents >= 0) & self.inherits_rotation)
        return np.asarray(np.swapaxes(carriers, 1, 2) @ self.rest[:, :3, :3])

    def _carriers(self, chosen: BoolArray) -> FloatArray:
        """(J, 3, 3) rest rotations of the parents of some bones, `chosen` (J,); the identity for others."""
        return np.where(chosen[:, None, None], self.rest[self.parents, :3, :3], np.eye(3))


def scaled_skeleton(skeleton: Skeleton, factors: Mapping[str, float]) -> Skeleton:
    """The skeleton with some bones at other lengths; their children move along their Y."""
    if all(factor == 1.0 for factor in factors.values()):
        return skeleton
    rest, lengths = np.array(skeleton.rest), np.array(skeleton.lengths)
    for bone, parent in enumerate(skeleton.parents):
        lengths[bone] *= factors.get(skeleton.names[bone], 1.0)
        if parent >= 0:
            offset = np.array(skeleton.head_offsets[bone])
            offset[1] *= factors.get(skeleton.names[parent], 1.0)
            rest[bone, :3, 3] = rest[parent, :3, 3] + rest[parent, :3, :3] @ offset
    return Skeleton(skeleton.names, skeleton.parents, rest, lengths, skeleton.inherits_rotation)


def _frozen(values: object, shape: tuple[int, ...], what: str, *, truths: bool = False) -> npt.NDArray[Any]:
    array = flags(values) if truths else numbers(values)
    if array is None:
        raise SkeletonError(f"The skeleton's {what} must be {'True or False' if truths else 'numbers'}")
    if array.shape != shape:
        raise SkeletonError(f"The skeleton's {what} have shape {array.shape}: it must be {shape}")
    array.flags.writeable = False
    return array


def _check_names(names: tuple[str, ...]) -> None:
    if not names:
        raise SkeletonError("A skeleton has no bones: give at least one")
    for name in names:
        if not isinstance(name, str):
            raise SkeletonError(f"A bone is named {shown(name)}: its name must be a string")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SkeletonError(f"Two bones are named {twice!r}: give each its own name")


def _check_tree(skeleton: Skeleton) -> None:
    names, parents = skeleton.names, skeleton.parents
    for bone, parent in enumerate(parents):
        if not -1 <= parent < bone and bone > 0:
            raise SkeletonError(f"Bone {names[bone]!r} comes before its parent: list parents first")
    if parents[0] != -1 or (parents[1:] == -1).any():
        roots = [names[i] for i in np.flatnonzero(parents == -1)]
        raise SkeletonError(f"A skeleton has exactly one root, listed first, not {roots}: solve each tree on its own")


def _check_bodies(skeleton: Skeleton) -> None:
    # Clipped to the range of rotation matrices, so that nothing overflows.
    lengths, rotations = skeleton.lengths, np.clip(np.nan_to_num(skeleton.rest[:, :3, :3]), -2.0, 2.0)
    squares = np.swapaxes(rotations, 1, 2) @ rotations
    broken = (np.abs(squares - np.eye(3)) > CLOSE).any(axis=(1, 2)) | (np.linalg.det(rotations) < 0)
    checks = [
        (~(np.abs(skeleton.rest) <= LARGEST).all(axis=(1, 2)), "its rest matrix must be finite"),
        (~((lengths >= 0) & (lengths <= LARGEST)), "its length must be zero or more, and finite"),
        (broken, "its rest matrix must be a pure rotation, without scale or shear"),
    ]
    for wrong, what in checks:
        if wrong.any():
            raise SkeletonError(f"Bone {skeleton.names[int(np.argmax(wrong))]!r}: {what}")
