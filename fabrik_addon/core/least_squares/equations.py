"""The damped linear least-squares problem of one step, on many frames at once."""

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import TINY, FloatArray, times
from .damping import Damping
from .dofs import DegreesOfFreedom

# Beside what S makes of the others, a column whose square is less does next to nothing, however far its joint turns.
_LEAST_SQUARE = 1e-6


@dataclass(frozen=True)
class Equations:
    """min |r − J x|² + damping · |S⁻¹ x|² on F frames, in d open columns that S scales to length one (Moré 1978).

    Attributes:
        matrix: (F, d, d) S JᵀJ S, or where `wide` (F, R, d) J S with fewer rows than columns.
        right: (F, d) S Jᵀ r, or where `wide` (F, R) r.
        scale: (F, d) the diagonal of S.
        dofs: which columns are open.
        hinges: (F, H, 3) axes of the bodies that are hinges.
        wide: which of the two.
    """

    matrix: FloatArray
    right: FloatArray
    scale: FloatArray
    dofs: DegreesOfFreedom
    hinges: FloatArray
    wide: bool = False

    @classmethod
    def of_rows(
        cls, rows: FloatArray, residuals: FloatArray, dofs: DegreesOfFreedom, hinges: FloatArray
    ) -> "Equations":
        """From fewer rows (F, R, d) J than columns, and their residuals (F, R)."""
        scale = dofs.scales((rows * rows).sum(axis=1))
        return cls(rows * scale[:, None], residuals, scale, dofs, hinges, wide=True)

    @classmethod
    def scaled(cls, square: FloatArray, force: FloatArray, dofs: DegreesOfFreedom, hinges: FloatArray) -> "Equations":
        """From (F, d, d) JᵀJ and (F, d) Jᵀ r."""
        scale = dofs.scales(np.einsum("fii->fi", square))
        return cls(square * (scale[:, :, None] * scale[:, None, :]), force * scale, scale, dofs, hinges)

    def gradient(self) -> FloatArray:
        """(F, d) S Jᵀ r: half of what the cost falls by, for each column of length one."""
        return times(np.swapaxes(self.matrix, 1, 2), self.right) if self.wide else self.right

    def push(self) -> FloatArray:
        """(F, D) the same, in all columns."""
        return self.dofs.widen(self.gradient(), self.hinges)

    def projected(self, tangents: FloatArray) -> "Equations":
        """The same where bodies turn only as (F, B, 3, 3) tangent projectors let them."""
        matrix = self.matrix.copy()
        self.dofs.project(matrix, tangents)
        if self.wide:
            return replace(self, matrix=matrix)
        right = self.right.copy()
        self.dofs.project(np.swapaxes(matrix, 1, 2), tangents)
        self.dofs.project(right[:, None], tangents)
        return replace(self, matrix=matrix, right=right)

    def kept(self, columns: FloatArray) -> "Equations":
        """The same where some columns behind those of bodies, zero in (F, D), do not move."""
        kept = np.ones((len(columns), self.matrix.shape[2]))
        kept[:, self.dofs.turning :] = columns[:, self.dofs.all_turning :]
        matrix = self.matrix * kept[:, None]
        if self.wide:
            return replace(self, matrix=matrix)
        return replace(self, matrix=matrix * kept[..., None], right=self.right * kept)

    def holding_step(self, damping: Damping) -> FloatArray:
        """(F, d) the scaled step for a damping; joints that are held turn as far as they are let."""
        if not damping.held.any():
            return self.step(damping.value)
        normals = damping.held
        turning = np.zeros((len(normals), self.dofs.all_turning + self.matrix.shape[2] - self.dofs.turning))
        turning[:, : self.dofs.all_turning] = (normals * damping.moved[..., None]).reshape(len(normals), -1)
        step = self.dofs.narrow(turning, self.hinges) / self.scale
        left = replace(self, right=self.right - times(self.matrix, step))
        others = left.projected(np.eye(3) - normals[..., :, None] * normals[..., None, :])
        return step + others.step(damping.value)

    def step(self, damping: FloatArray) -> FloatArray:
        """(F, d) the scaled step S⁻¹ x for (F,) damping."""
        matrix, across = self.matrix, np.swapaxes(self.matrix, 1, 2)
        square = matrix @ across if self.wide else matrix.copy()
        diagonal = np.einsum("fii->fi", square)
        diagonal += damping[:, None] + TINY
        solution = np.linalg.solve(square, self.right[..., None])
        return np.asarray((across @ solution if self.wide else solution)[..., 0])

    def predicted(self, step: FloatArray) -> FloatArray:
        """(F,) by how much a scaled step lowers the cost if the problem were linear."""
        moved = times(self.matrix, step)
        return np.asarray(((2.0 * self.right - moved) * (moved if self.wide else step)).sum(axis=1))

    def optimality(self, cost: FloatArray) -> FloatArray:
        """(F,) the greatest cosine between the residuals and what one joint by itself can do about them.

        cost: (F,) |r|². Its square is the share of the cost that this joint could take away. It is measured by the
        joint's own columns: S makes those short of what counts little beside the rest, as a later group does.
        """
        squares = (self.matrix**2).sum(axis=1) if self.wide else np.einsum("fii->fi", self.matrix)
        own = np.sqrt(np.maximum(self.dofs.even(squares), _LEAST_SQUARE))
        return np.asarray(self.dofs.largest(self.gradient() / own) / np.sqrt(np.maximum(cost, TINY)))

    def widened(self, step: FloatArray) -> FloatArray:
        """(F, D) the step x in all columns, from the scaled one."""
        return self.dofs.widen(step * self.scale, self.hinges)
