"""Effectors, which are points of bones that have targets: their paths and reach; and the options of a solve."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..errors import OptionsError
from ..readers import LARGEST, number, shown, whole
from .skeleton import Skeleton


@dataclass(frozen=True)
class Effector:
    """A point of a bone that has a target.

    Attributes:
        bone: the bone's name.
        offset: the point in the bone's frame; None is its tail (0, length, 0).
        weight: the weight of this target relative to the others, more than zero.
        rotation_weight: the weight of the target's rotation, 0 to 1. At 1 a radian counts as much as a tenth of the
            path length from the root, and a sweep applies the whole rotation; below that a fraction of it.
        priority: 0 is met first; if not all targets can be met, effectors with a higher number give way.
        target_bone: the target is a point on this bone of the same skeleton (a closed loop); both sides move. The
            effector's entry among the targets is ignored, and may be NaN.
        target_offset: that point in the frame of `target_bone`; None is its tail.
    """

    bone: str
    offset: tuple[float, float, float] | None = None
    weight: float = 1.0
    rotation_weight: float = 0.0
    priority: int = 0
    target_bone: str | None = None
    target_offset: tuple[float, float, float] | None = None


def loops_of(effectors: Sequence[Effector]) -> tuple[int, ...]:
    """(K,) indices of the effectors that close loops."""
    return tuple(index for index, effector in enumerate(effectors) if effector.target_bone is not None)


def with_partners(effectors: Sequence[Effector]) -> list[Effector]:
    """The E effectors, followed by the K partners of those that close loops, in the same order.

    A partner is a point fixed to the target bone, which the effector should meet.
    """
    partners = [
        Effector(effector.target_bone, effector.target_offset, effector.weight)
        for effector in effectors
        if effector.target_bone is not None
    ]
    return [*effectors, *partners]


def with_factors_applied(effectors: Sequence[Effector], factors: Mapping[str, float]) -> list[Effector]:
    """The effectors of stretched bones: each point is moved along Y by its bone's length factor."""

    def moved(effector: Effector) -> Effector:
        if effector.offset is None or effector.bone not in factors:
            return effector
        x, y, z = effector.offset
        return replace(effector, offset=(x, y * factors[effector.bone], z))

    return [moved(effector) for effector in effectors]


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


@dataclass(frozen=True)
class Options:
    """The options of a solve.

    Attributes:
        tolerance: the allowed error, as a fraction of each effector's path length from the root, and in radians for a
            rotation.
        max_sweeps: the largest number of forward-and-backward sweeps; with 0, the finish alone solves, which is enough
            if the start pose is close.
        finish: end with the exact finish after a few sweeps; False uses sweeps alone.
        most_steps: the largest number of steps of the finish. Nine in ten fits end within 30; the others gain almost
            nothing after that.
        plain: the paper's plain method: sweeps only, limits clamped in both passes.
        restarts: the number of other start poses inside the limits that are tried if limits seem to keep a target
            away. With 16, a hand with five goals missed 1 of 150 targets, and a robot of five hinges 2 of 120.
        repair_pops: solve frames that pop or fail again, starting from neighboring frames. A frame's pose then depends
            on those frames.
        chunk: the number of frames solved at once, so that memory does not grow with the length of an action.

    Raises:
        OptionsError: naming the value out of range.
    """

    tolerance: float = 1e-4
    max_sweeps: int = 1000
    finish: bool = True
    most_steps: int = 60
    plain: bool = False
    restarts: int = 32
    repair_pops: bool = False
    chunk: int = 2000

    def __post_init__(self) -> None:
        if not 0.0 < number(self.tolerance) <= LARGEST:
            raise OptionsError(f"The tolerance is {shown(self.tolerance)}: it must be a number above zero")
        for name, least in (("max_sweeps", 0), ("most_steps", 0), ("restarts", 0), ("chunk", 1)):
            value = whole(getattr(self, name))
            if value is None or not least <= value <= LARGEST:
                raise OptionsError(
                    f"{name} is {shown(getattr(self, name))}: it must be a whole number, at least {least}"
                )
        for name in ("finish", "plain", "repair_pops"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise OptionsError(f"{name} is {shown(getattr(self, name))}: it must be True or False")
