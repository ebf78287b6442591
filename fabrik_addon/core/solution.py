"""The result of a solve."""

from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property
from typing import ClassVar

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .kernel.bodies import forward_kinematics, tails
from .model.skeleton import Skeleton


class Status(IntEnum):
    """The outcome of a frame."""

    SOLVED = 0
    """Every target is met within its tolerance, position and rotation."""
    UNREACHABLE = 1
    """A target is too far away, or too near, for the lengths."""
    LIMITED = 2
    """Stationary, and only joint limits keep a target away."""
    FITTED = 3
    """Stationary, and the targets contradict each other: the normal end for noisy markers."""
    STALLED = 4
    """Ended before it was either solved or stationary."""
    UNSEEN = 5
    """Every target is NaN; the start pose is kept."""


@dataclass(frozen=True)
class Solution:
    """The pose found, one or F of them ([F,]); E effectors, J bones.

    Attributes:
        skeleton: the skeleton that was solved.
        rotations: ([F,] J, 4) local quaternions w x y z, for the pose channels.
        root_location: ([F,] 3) the root's head in armature space.
        errors: ([F,] E) distance of each effector from its target; NaN without a target.
        rotation_errors: ([F,] E) radians between an effector's rotation and its target rotation; NaN without one.
        status: ([F,]) values of `Status`.
        iterations: ([F,]) sweeps plus finish steps.
        binding: ([F,] J) whether the bone's limit is active (within 1e-4 rad).
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

    FRAME_ARRAYS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def empty(cls, skeleton: Skeleton, frames: int, effectors: int) -> "Solution":
        """An empty result for F frames, at rest lengths."""
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

    def part(self, frames: int | slice | IntArray) -> "Solution":
        """One frame without the axis of frames, or some of the frames (N,); a slice shares arrays with this one."""
        return Solution(skeleton=self.skeleton, **{name: getattr(self, name)[frames] for name in self.FRAME_ARRAYS})

    def put(self, frames: int | slice | IntArray, part: "Solution") -> None:
        """Replace some frames, `frames` (N,), by those of another solution, in place."""
        for name in self.FRAME_ARRAYS:
            getattr(self, name)[frames] = getattr(part, name)
        self.forget_matrices()

    def forget_matrices(self) -> None:
        """Drop cached matrices after rotations have been changed in place."""
        self.__dict__.pop("matrices", None)
        self.__dict__.pop("tails", None)

    @cached_property
    def matrices(self) -> FloatArray:
        """([F,] J, 4, 4) armature-space matrices."""
        return forward_kinematics(self.skeleton, self.rotations, self.root_location, self.lengths)

    @property
    def heads(self) -> FloatArray:
        """([F,] J, 3) heads, armature space."""
        return np.asarray(self.matrices[..., :3, 3])

    @cached_property
    def tails(self) -> FloatArray:
        """([F,] J, 3) tails, armature space."""
        return tails(self.skeleton, self.matrices, self.lengths)


Solution.FRAME_ARRAYS = tuple(array.name for array in fields(Solution) if array.name != "skeleton")
