"""The targets of a solve, frame by frame, and the poses it starts from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..arrays import FloatArray, IntArray, squares
from ..rotations import conjugate, product, rotation_vector_from_quaternion


class Frames:
    """A dataclass whose fields are arrays over frames, contain such arrays, or are None."""

    def part(self, frames: IntArray | slice) -> Self:
        """A copy with some of the frames, `frames` (N,)."""
        return type(self)(**{name: _part(value, frames) for name, value in vars(self).items()})


def _part(value: Any, frames: IntArray | slice) -> Any:
    if value is None:
        return None
    return value[frames] if isinstance(value, np.ndarray) else value.part(frames)


@dataclass(frozen=True)
class PosePrior(Frames):
    """Local rotations that a pose is expected to have: Σ weight · angle² is added to the least-squares cost.

    Attributes:
        rotations: ([F,] J, 4) unit quaternions.
        weights: ([F,] J) weights of squared radians relative to weight · distance² of the targets; 0: no expectation.
    """

    rotations: FloatArray
    weights: FloatArray

    def of(self, bones: Sequence[int]) -> "PosePrior":
        """The prior of some of the bones."""
        return PosePrior(self.rotations[:, bones], self.weights[:, bones])

    def away(self, local: FloatArray) -> FloatArray:
        """(F, J, 3) rotation vectors from `local` (F, J, 4) to the expected rotations, in the carried frames."""
        return rotation_vector_from_quaternion(product(self.rotations, conjugate(local)))

    def cost(self, local: FloatArray) -> FloatArray:
        """(F,) Σ weight · angle²; local: (F, J, 4)."""
        return np.asarray((self.weights * squares(self.away(local))).sum(axis=1))


@dataclass(frozen=True)
class Targets(Frames):
    """Targets of E effectors on F frames, in armature space.

    Attributes:
        positions: (F, E, 3) target positions; NaN if a target is not seen.
        weights: (F, E) of the targets.
        rotations: (F, E, 4) target rotations of the effectors' bones, unit quaternions w x y z; NaN for none.
        bend: (F, E, 3) poles of the limbs that end at the effectors; NaN for none.
        prior: F expected poses of all J bones; None for none.
    """

    positions: FloatArray
    weights: FloatArray
    rotations: FloatArray
    bend: FloatArray
    prior: PosePrior | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def seen_from(self, origins: FloatArray) -> "Targets":
        """The targets relative to other `origins` (F, 3)."""
        away = origins[:, None]
        return replace(self, positions=self.positions - away, bend=self.bend - away)


@dataclass(frozen=True)
class Start(Frames):
    """The start of F frames of J bones.

    Attributes:
        rotations: (F, J, 4) local rotations inside all limits.
        roots: (F, 3) the root's head, armature space.
    """

    rotations: FloatArray
    roots: FloatArray
