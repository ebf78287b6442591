"""The bones between the root and the effectors, and how far they reach."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, FloatArray
from .effector import Effector
from .skeleton import Skeleton


def participants(skeleton: Skeleton, effectors: Sequence[Effector]) -> list[int]:
    """Bones between the root and some effector, parents first."""
    wanted: set[int] = set()
    for effector in effectors:
        bone = skeleton.index(effector.bone)
        while bone >= 0 and bone not in wanted:
            wanted.add(bone)
            bone = int(skeleton.parents[bone])
    return sorted(wanted)


def on_moving_bone(skeleton: Skeleton, effector: Effector) -> Effector:
    """The effector, or the same point on the parent if it is a bone's head, which the bone itself does not move."""
    bone = skeleton.index(effector.bone)
    parent = skeleton.parents[bone]
    if parent < 0 or effector.rotation_weight > 0.0 or effector_offset(skeleton, effector).any():
        return effector
    x, y, z = skeleton.head_offset(bone).tolist()
    return replace(effector, bone=skeleton.names[parent], offset=(x, y, z))


def effector_offset(skeleton: Skeleton, effector: Effector) -> FloatArray:
    """(3,) the effector's point in its bone's frame."""
    if effector.offset is None:
        return np.array([0.0, skeleton.lengths[skeleton.index(effector.bone)], 0.0])
    return np.array(effector.offset, dtype=np.float64)


@dataclass(frozen=True)
class Reaches:
    """How far each of E effectors can be from the root's head, whatever the rotations.

    Attributes:
        far: (E,) the sum of the path's lengths; infinite for an effector that closes a loop.
        near: (E,) the longest length minus all others, at least zero.
        tolerance_lengths: (E,) the lengths of which tolerances are fractions: `far`, at least the root bone's length.
    """

    far: FloatArray
    near: FloatArray
    tolerance_lengths: FloatArray

    def misses(self, distances: FloatArray, seen: BoolArray) -> BoolArray:
        """(F,) whether a visible target is out of its effector's reach; distances and seen: (F, E)."""
        outside = seen & ((distances > self.far) | (distances < self.near))
        return np.asarray(outside.any(axis=1))


def path_reaches(skeleton: Skeleton, effectors: Sequence[Effector]) -> Reaches:
    """The reach of every effector; infinite for an effector that closes a loop."""
    # For the path from the root's head to each bone's head: the sum and the largest of the distances between joints.
    sums, longest = np.zeros(len(skeleton)), np.zeros(len(skeleton))
    for bone, parent in enumerate(skeleton.parents):
        if parent >= 0:
            step = math.hypot(*skeleton.head_offset(bone))
            sums[bone], longest[bone] = sums[parent] + step, max(longest[parent], step)
    bones = [skeleton.index(effector.bone) for effector in effectors]
    ends = np.array([math.hypot(*effector_offset(skeleton, effector)) for effector in effectors])
    far = sums[bones] + ends
    near = np.maximum(2.0 * np.maximum(longest[bones], ends) - far, 0.0)
    closed = np.array([effector.target_bone is not None for effector in effectors])
    lengths = np.maximum(far, skeleton.lengths[0])
    # Tolerances need a positive length: an effector on the head of a root without length uses the longest bone.
    lengths = np.where(lengths > 0.0, lengths, skeleton.lengths.max() or 1.0)
    return Reaches(np.where(closed, np.inf, far), np.where(closed, 0.0, near), lengths)
