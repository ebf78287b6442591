"""Motions as input for retargeting: of an armature over frames, and of the body in a file of poses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from ..core.arrays import ROUNDING, FloatArray, IntArray, lengths, times
from ..core.errors import FabrikError
from ..core.rotations import conjugate, matrix_from_quaternion, product, rotation_between, slerp
from ..human.rest_body import RestBone, bones_of

# A loop has at least this many frames.
_SHORTEST_LOOP: Final = 8
# Locations on a loop's first and last frame differ by at most this fraction of the body's size, and rotations by at
# most about twice this number, in radians.
_SAME: Final = 1e-3


class RetargetError(FabrikError):
    """A motion that cannot be retargeted to a rig; the message gives the reason and a remedy."""


@dataclass(frozen=True, eq=False)
class Motion:
    """F frames of N bones in world space, parents first.

    Attributes:
        name: of the armature or its file.
        names: N bone names.
        parents: (N,) index of each bone's parent, -1 for roots.
        lengths: (N,) from head to tail.
        rest: (N, 4, 4) rest matrices without scale.
        rotations: (F, N, 4) unit quaternions w x y z of the bones' frames.
        heads: (F, N, 3) heads of the bones.
        origin: (3,) the armature's location.
        rate: frames per second.
        heading: radians by which the armature's object is rotated about Z.
    """

    name: str
    names: Sequence[str]
    parents: IntArray
    lengths: FloatArray
    rest: FloatArray
    rotations: FloatArray
    heads: FloatArray
    origin: FloatArray
    rate: float
    heading: float = 0.0

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def is_loop(self) -> bool:
        """Whether the last frame equals the first, so that the motion can repeat seamlessly."""
        if len(self) < _SHORTEST_LOOP:
            return False
        apart = np.abs(self.heads[-1] - self.heads[0]).max() / max(float(np.ptp(self.heads[0], axis=0).max()), ROUNDING)
        turned = 1.0 - np.abs((self.rotations[-1] * self.rotations[0]).sum(axis=1)).min()
        return bool(apart < _SAME and turned < _SAME**2)

    def repeated(self, beside: int) -> "Motion":
        """The loop with its last `beside` frames repeated before it, and its first ones after it."""
        order = np.arange(-beside, len(self) + beside) % (len(self) - 1)
        return replace(self, rotations=self.rotations[order], heads=self.heads[order])

    def bones_at(self, frames: int | IntArray | None) -> dict[str, RestBone]:
        """The bones in their pose on a frame, or on frames (F,), counted from 0; None: at rest."""
        if frames is None:
            return bones_of(self.names, self.parents, self.rest, self.lengths)
        heads = self.heads[frames]
        matrices = np.broadcast_to(np.eye(4), (*heads.shape[:-1], 4, 4)).copy()
        matrices[..., :3, :3] = matrix_from_quaternion(self.rotations[frames])
        matrices[..., :3, 3] = heads
        return bones_of(self.names, self.parents, np.moveaxis(matrices, -3, 0), self.lengths)


# The highest plausible speed in m/s: sprinters reach 12.
_FASTEST: Final = 45.0
# Meters above the world's origin: hips of standing people are at 1.
_HIGHEST: Final = 50.0


@dataclass(frozen=True, eq=False)
class Recorded:
    """F frames of a body of N bones, Z up; at rest it faces -Y, as people in Blender do.

    Positions are in meters, or in the units of a .bvh file, which does not name them.

    Attributes:
        names: N bone names, parents before their children.
        parents: (N,) index of each bone's parent; -1 for roots, such as the first bone.
        heads: (N, 3) heads of the bones at rest.
        tails: (N, 3) tails of the bones at rest.
        frames: (F,) indices of these frames in the file, from 0; incomplete frames are left out.
        rotations: (F, N, 4) unit quaternions: each bone's rotation from rest, relative to its parent, about the axes of
            the rest pose; for the root relative to the world.
        root: (F, 3) the root bone's head, world space.
        rate: frames per second; 0 if unknown, for a single pose.
        notes: omissions and corrections, one sentence each.
        doubts: possible errors, such as an assumed rate or axis, one sentence each.
        shifted: (F, 3) for bones, by index, whose distance from their parent changes: the bone's head relative to the
            parent's, in the axes of the rest pose; for further roots relative to the world.
    """

    names: Sequence[str]
    parents: IntArray
    heads: FloatArray
    tails: FloatArray
    frames: IntArray
    rotations: FloatArray
    root: FloatArray
    rate: float
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    shifted: Mapping[int, FloatArray] = field(default_factory=dict)

    def part(self, first: int = 1, last: int = 0) -> "Recorded":
        """The frames from `first` to `last`, counted from 1 (0: to the end).

        Raises RetargetError if there are none.
        """
        wanted = (self.frames >= first - 1) & (self.frames < (last or np.inf))
        if not wanted.any():
            raise RetargetError(
                f"there are no frames {first} to {last or 'the end'}: choose some from 1 to {self.frames[-1] + 1}"
            )
        frames = self.frames[wanted] - first + 1
        shifted = {bone: values[wanted] for bone, values in self.shifted.items()}
        return replace(self, frames=frames, rotations=self.rotations[wanted], root=self.root[wanted], shifted=shifted)

    def at(self, frames: IntArray) -> "Recorded":
        """The body on frames (F,), counted from 0: interpolated between the file's frames, else constant."""
        places = np.interp(frames, self.frames, np.arange(len(self.frames)))
        before, after, share = places.astype(np.int64), np.ceil(places).astype(np.int64), places % 1.0

        def between(values: FloatArray) -> FloatArray:
            return np.asarray(values[before] + share[:, None] * (values[after] - values[before]))

        rotations = self.rotations[before]
        if share.any():
            ends = self.rotations[after]
            bones = [slerp(rotations[:, bone], ends[:, bone], share) for bone in range(len(self.names))]
            rotations = np.stack(bones, axis=1)
        shifted = {bone: between(values) for bone, values in self.shifted.items()}
        return replace(self, frames=frames, rotations=rotations, root=between(self.root), shifted=shifted)

    def motion(self, name: str) -> Motion:
        """The body's motion in world space; name: of the motion."""
        heads, world = np.empty((len(self.frames), len(self.names), 3)), np.empty(self.rotations.shape)
        for index, parent in enumerate(self.parents.tolist()):
            if parent < 0:
                world[:, index], heads[:, index] = self.rotations[:, index], self.shifted.get(index, self.root)
                continue
            world[:, index] = product(world[:, parent], self.rotations[:, index])
            offset = self.shifted.get(index, self.heads[index] - self.heads[parent])
            heads[:, index] = heads[:, parent] + times(matrix_from_quaternion(world[:, parent]), offset)
        along = self.tails - self.heads
        axes = rotation_between(np.broadcast_to([0.0, 1.0, 0.0], along.shape), along)
        rest = np.tile(np.eye(4), (len(along), 1, 1))
        rest[:, :3, :3], rest[:, :3, 3] = matrix_from_quaternion(axes), self.heads
        turned, origin = product(world, axes), np.zeros(3)
        return Motion(name, self.names, self.parents, lengths(along), rest, turned, heads, origin, self.rate)

    def positions(self) -> FloatArray:
        """(F, N, 3) the bones' heads, Z up."""
        return self.motion("").heads


def in_meters(body: Recorded) -> Recorded:
    """The body; raises RetargetError if no person can move like that, because units or rate are wrong.

    Wrong units are detected from the height of a person who stands still, and from the speed of one who moves.
    """
    steps = lengths(np.diff(body.root, axis=0)) * body.rate / np.diff(body.frames)
    fast, high = float(np.median(steps)) if len(steps) else 0.0, float(np.median(np.abs(body.root[:, 2])))
    if fast > _FASTEST:
        raise RetargetError(
            f"its body moves {fast:.0f} m per second: export locations in meters, or choose the rate if "
            f"{body.rate:g} Hz is wrong"
        )
    if high > _HIGHEST:
        raise RetargetError(f"its body is {high:.0f} m above or below the origin: export locations in meters")
    return body


def whole_frames(*arrays: FloatArray) -> tuple[IntArray, tuple[str, ...]]:
    """Indices of the frames on which all numbers of (F, …) arrays are finite, and a note if other frames exist.

    Raises RetargetError if there is none.
    """
    whole = np.logical_and.reduce([np.isfinite(array.reshape(len(array), -1)).all(axis=1) for array in arrays])
    frames = np.flatnonzero(whole)
    if not len(frames):
        raise RetargetError("it has no frame whose numbers are all finite: export it again")
    lost = len(whole) - len(frames)
    return frames, (f"left out {lost} incomplete frames; poses there are interpolated",) * (lost > 0)


def local_rotations(world: FloatArray, parents: IntArray) -> FloatArray:
    """(F, N, 4) rotations relative to the parents, from (F, N, 4) world rotations; parents: (N,) indices."""
    local = world.copy()
    for index, parent in enumerate(parents.tolist()):
        if parent >= 0:
            local[:, index] = product(conjugate(world[:, parent]), world[:, index])
    return local


def in_other_axes(rotations: FloatArray, change: FloatArray) -> FloatArray:
    """(..., 4) rotations expressed in axes that are rotated by `change` (4,)."""
    return product(product(change, rotations), conjugate(change))
