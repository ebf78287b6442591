"""What goes into a solve besides the skeleton, and what comes out."""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import ClassVar

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .errors import OptionsError
from .model.kinematics import forward_kinematics, tails
from .model.skeleton import Skeleton


class Status(IntEnum):
    """How a frame ended."""

    SOLVED = 0
    """Every target is met within its tolerance, place and rotation."""
    UNREACHABLE = 1
    """A target is beyond, or inside, what the lengths reach."""
    LIMITED = 2
    """Stationary, and only joint limits keep a target away."""
    FITTED = 3
    """Stationary, and the targets disagree with each other: the normal end for noisy markers."""
    STALLED = 4
    """Gave up before it was either solved or stationary."""
    UNSEEN = 5
    """Every target is NaN: the start pose."""


@dataclass(frozen=True)
class Effector:
    """A point of a bone that is to reach a target.

    Attributes:
        bone: the bone's name.
        offset: the point in the bone's frame; None is its tail (0, length, 0).
        weight: how much this target counts beside the others, more than zero.
        rotation_weight: how much the target's rotation counts, 0 to 1. At 1 a radian counts as much as a tenth of the
            path length from the root, and a sweep gives the bone its rotation outright; below that a share of it.
        priority: 0 is met first; where not all can be met, effectors with a higher number give way.
        target_bone: the target is a point on this bone of the same skeleton (a closed loop): both sides give way. The
            effector's entry among the targets does not count, and may be NaN.
        target_offset: that point in the frame of `target_bone`; None is its tail.
    """

    bone: str
    offset: tuple[float, float, float] | None = None
    weight: float = 1.0
    rotation_weight: float = 0.0
    priority: int = 0
    target_bone: str | None = None
    target_offset: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Options:
    """How a solve goes about it.

    Attributes:
        tolerance: the error allowed, as a fraction of each effector's path length from the root; the same number in
            radians is allowed between a rotation and its target.
        max_sweeps: most forward-and-backward sweeps, when nothing else ends them; 0 leaves it all to the finish, for
            a start pose that is close.
        finish: end with the exact finish after a few sweeps; False leaves the sweeps alone.
        plain: the paper's plain method: sweeps only, limits clamped in both passes.
        restarts: how many further start poses inside the limits are tried where limits seem to keep a target away.
        repair_pops: over frames, solve again what jumped or failed, starting from its neighbours. The pose of a frame
            then depends on the frames about it.
        chunk: how many frames are solved at once, so that memory stays flat.

    Raises:
        OptionsError: naming the value out of range.
    """

    tolerance: float = 1e-4
    max_sweeps: int = 1000
    finish: bool = True
    plain: bool = False
    restarts: int = 16
    repair_pops: bool = False
    chunk: int = 2000

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise OptionsError(f"The tolerance is {self.tolerance}: it must be more than zero.")
        if self.max_sweeps < 0:
            raise OptionsError(f"max_sweeps is {self.max_sweeps}: it must be zero or more.")
        if self.restarts < 0:
            raise OptionsError(f"restarts is {self.restarts}: it must be zero or more.")
        if self.chunk < 1:
            raise OptionsError(f"chunk is {self.chunk}: it must be at least 1.")


@dataclass(frozen=True)
class Solution:
    """The pose found, one or F of them ([F,]); E effectors, J bones.

    Attributes:
        skeleton: the skeleton that was solved.
        rotations: ([F,] J, 4) local quaternions w x y z, for the pose channels.
        root_location: ([F,] 3) the root's head in armature space.
        errors: ([F,] E) distance of each effector from its target, NaN where the target is.
        rotation_errors: ([F,] E) radians between an effector's rotation and its target's, NaN where it has none.
        status: ([F,]) values of `Status`.
        iterations: ([F,]) sweeps plus finish steps.
        binding: ([F,] J) whether the bone's limit binds (within 1e-4 rad).
        lengths: ([F,] J) bone lengths.
    """

    skeleton: Skeleton = field(repr=False)
    rotations: FloatArray = field(repr=False)
    root_location: FloatArray
    errors: FloatArray
    rotation_errors: FloatArray = field(repr=False)
    status: IntArray
    iterations: IntArray
    binding: BoolArray = field(repr=False)
    lengths: FloatArray = field(repr=False)

    FRAME_ARRAYS: ClassVar = (
        "rotations",
        "root_location",
        "errors",
        "rotation_errors",
        "status",
        "iterations",
        "binding",
        "lengths",
    )

    @classmethod
    def empty(cls, skeleton: Skeleton, frames: int, effectors: int) -> "Solution":
        """Room for F frames, at rest lengths."""
        bones = len(skeleton)
        return cls(
            skeleton=skeleton,
            rotations=np.empty((frames, bones, 4)),
            root_location=np.empty((frames, 3)),
            errors=np.empty((frames, effectors)),
            rotation_errors=np.full((frames, effectors), np.nan),
            status=np.empty(frames, dtype=np.int64),
            iterations=np.zeros(frames, dtype=np.int64),
            binding=np.zeros((frames, bones), dtype=bool),
            lengths=np.tile(skeleton.lengths, (frames, 1)),
        )

    def single(self) -> "Solution":
        """The only frame, without its axis."""
        return Solution(skeleton=self.skeleton, **{name: getattr(self, name)[0] for name in self.FRAME_ARRAYS})

    def put(self, frames: int | slice | IntArray, part: "Solution") -> None:
        """Take over some frames, in place."""
        for name in self.FRAME_ARRAYS:
            getattr(self, name)[frames] = getattr(part, name)
        self.forget_matrices()

    def forget_matrices(self) -> None:
        """Work the matrices out anew when they are asked for next: the rotations have been changed in place."""
        self.__dict__.pop("matrices", None)
        self.__dict__.pop("tails", None)

    @cached_property
    def matrices(self) -> FloatArray:
        """([F,] J, 4, 4) armature-space matrices."""
        return forward_kinematics(self.skeleton, self.rotations, self.root_location, self.lengths)

    @property
    def heads(self) -> FloatArray:
        """([F,] J, 3) armature-space heads."""
        heads: FloatArray = self.matrices[..., :3, 3]
        return heads

    @cached_property
    def tails(self) -> FloatArray:
        """([F,] J, 3) armature-space tails."""
        return tails(self.skeleton, self.matrices, self.lengths)
