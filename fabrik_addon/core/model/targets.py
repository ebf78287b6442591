"""The targets of a solve, frame by frame."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from ..arrays import FloatArray, IntArray


class PosePrior(NamedTuple):
    """Local rotations that a pose is expected to have: Σ weight · angle² is added to the least-squares cost.

    Attributes:
        rotations: ([F,] J, 4) unit quaternions.
        weights: ([F,] J) weights of squared radians relative to weight · distance² of the targets; 0: no expectation.
    """

    rotations: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class Targets:
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

    def part(self, frames: slice | IntArray) -> "Targets":
        """The targets on some of the frames."""
        prior = None if self.prior is None else PosePrior(*(values[frames] for values in self.prior))
        return Targets(self.positions[frames], self.weights[frames], self.rotations[frames], self.bend[frames], prior)

    def seen_from(self, origins: FloatArray) -> "Targets":
        """The targets relative to other origins (F, 3)."""
        away = origins[:, None]
        return replace(self, positions=self.positions - away, bend=self.bend - away)
