"""An armature's motion over frames, as input for retargeting."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..core.arrays import ROUNDING, FloatArray, IntArray
from ..core.errors import FabrikError
from ..core.rotations import matrix_from_quaternion
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
