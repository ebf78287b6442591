"""What a solve is asked for, frame by frame."""

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Wanted:
    """Targets of E effectors on F frames, in armature space.

    Attributes:
        points: (F, E, 3) where the effectors are to be; NaN where a target is not seen.
        weights: (F, E) what each target counts.
        turns: (F, E, 4) unit quaternions w x y z, the frames that their bones are to have; NaN where there is none.
        poles: (F, E, 3) points toward which the limbs that end at the effectors bend; NaN where there is none.
    """

    points: FloatArray
    weights: FloatArray
    turns: FloatArray
    poles: FloatArray

    def __len__(self) -> int:
        return len(self.points)

    def part(self, frames: slice | IntArray) -> "Wanted":
        """The same for some of the frames."""
        return Wanted(self.points[frames], self.weights[frames], self.turns[frames], self.poles[frames])

    @property
    def bending(self) -> bool:
        """Whether there is a pole on some frame."""
        return not bool(np.isnan(self.poles).all())
