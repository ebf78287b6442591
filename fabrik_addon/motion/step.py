"""One step of many frames toward their goals: what moves least, with rows that give way by so much."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core.arrays import FloatArray, IntArray, times

# How firmly joints are held at constraints beside the posture's own weights (of about 0.1).
_HELD: Final = 1e3


@dataclass
class Problem:
    """½ x·H x − g·x with rows to be met: (F, D, D), (F, D), (F, R, D), (F, R), and (F, R) how each gives way."""

    matrix: FloatArray
    slope: FloatArray
    rows: FloatArray
    residual: FloatArray
    yielding: FloatArray

    def part(self, frames: IntArray) -> "Problem":
        """The same on some of the frames."""
        return Problem(
            self.matrix[frames], self.slope[frames], self.rows[frames], self.residual[frames], self.yielding[frames]
        )

    def standing_at(self, constraints: FloatArray, gaps: FloatArray) -> "Problem":
        """The same on N frames, with (N, W, Dt) constraints stood at, zero where not, that are (N, W) away."""
        turning = constraints.shape[2]
        matrix, slope, across = self.matrix.copy(), self.slope.copy(), _HELD * np.swapaxes(constraints, 1, 2)
        matrix[:, :turning, :turning] += across @ constraints
        slope[:, :turning] += times(across, gaps)
        return Problem(matrix, slope, self.rows, self.residual, self.yielding)

    def step(self) -> FloatArray:
        """(F, D) the least."""
        across = np.swapaxes(self.rows, 1, 2)
        found = np.linalg.solve(self.matrix, np.concatenate([self.slope[..., None], across], axis=2))
        free, by_rows = found[..., :1], found[..., 1:]
        own = self.rows @ by_rows
        np.einsum("fii->fi", own)[...] += self.yielding
        forces = np.linalg.solve(own, self.residual[..., None] - self.rows @ free)
        return np.asarray((free + by_rows @ forces)[..., 0])
