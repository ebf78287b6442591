"""What a solve is asked for, frame by frame."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from ..arrays import FloatArray, IntArray


class PosePrior(NamedTuple):
    """Local rotations that a pose is expected to have: Σ weight · angle² is added to what least squares minimise.

    Attributes:
        rotations: ([F,] J, 4) unit quaternions.
        weights: ([F,] J) what a squared radian counts beside weight · distance² of the targets; 0: nothing is expected.
    """

    rotations: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class Targets:
    """Targets of E effectors on F frames, in armature space.

    Attributes:
        positions: (F, E, 3) where the effectors are to be; NaN where a target is not seen.
        weights: (F, E) what each target counts.
        rotations: (F, E, 4) unit quaternions w x y z that their bones are to have; NaN where there is none.
        bend: (F, E, 3) points toward which the limbs that end at the effectors bend; NaN where there is none.
        prior: F poses of all J bones that are expected; None where nothing is.
    """

    positions: FloatArray
    weights: FloatArray
    rotations: FloatArray
    bend: FloatArray
    prior: PosePrior | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, frames: slice | IntArray) -> "Targets":
        """The same for some of the frames."""
        prior = None if self.prior is None else PosePrior(*(values[frames] for values in self.prior))
        return Targets(self.positions[frames], self.weights[frames], self.rotations[frames], self.bend[frames], prior)

    def seen_from(self, origins: FloatArray) -> "Targets":
        """The same as seen from (F, 3) other origins."""
        away = origins[:, None]
        return replace(self, positions=self.positions - away, bend=self.bend - away)
