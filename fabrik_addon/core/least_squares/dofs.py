"""The ways in which joints can turn at all: the columns that a least-squares step is worked out in."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from ..arrays import FloatArray
from ..model.bodies import Body, Pose

# An open hinge's projector has trace 1, a closed one's trace 0.
_CLOSED = 0.5


class Ways:
    """Which of D columns are open: three of a body that turns freely, one of a hinge, none of a fixed one.

    The D columns are the bodies' rotation vectors in armature space and whatever else moves behind them. Of the d open
    ones the free bodies' come first, then the angles of the hinges, then whatever else moves.

    Attributes:
        full_turning: how many of the D columns are the bodies'.
        turning: how many of the d open ones are.
    """

    def __init__(self, bodies: Sequence[Body]) -> None:
        limits = [body.limit for body in bodies]
        self._axes = [(place, limit.turn_axis) for place, limit in enumerate(limits) if limit and limit.turn_axis]
        self._hinges = np.array([place for place, _ in self._axes], dtype=np.int64)
        free = [place for place, limit in enumerate(limits) if limit is None or limit.freedom == 3]
        self._free = np.array(free, dtype=np.int64)
        self._columns = (3 * self._free[:, None] + np.arange(3)).ravel()
        self._hinge_columns = 3 * self._hinges[:, None] + np.arange(3)
        self.full_turning = 3 * len(limits)
        self.turning = len(self._columns) + len(self._hinges)

    def hinge_axes(self, numbers: ModuleType, pose: Pose, frames: int) -> FloatArray:
        """(F, H, 3) the axes of the bodies that are hinges: a turn about it leaves an axis where it is."""
        if not self._axes:
            return np.zeros((frames, 0, 3))
        return np.asarray(
            numbers.stack([pose.frames[place] @ numbers.Vector(axis) for place, axis in self._axes], frames)
        )

    def narrow(self, full: FloatArray, hinges: FloatArray) -> FloatArray:
        """(F, ..., d) of (F, ..., D): rows, or vectors, in the open columns."""
        if self.turning == self.full_turning:
            return full
        axes = hinges.reshape(len(hinges), *[1] * (full.ndim - 2), *hinges.shape[1:])
        angles = (full[..., self._hinge_columns] * axes).sum(axis=-1)
        return np.concatenate([full[..., self._columns], angles, full[..., self.full_turning :]], axis=-1)

    def widen(self, narrow: FloatArray, hinges: FloatArray) -> FloatArray:
        """(F, D) vectors of (F, d) ones, zero where nothing is open."""
        if self.turning == self.full_turning:
            return narrow
        full = np.zeros((len(narrow), self.full_turning + narrow.shape[1] - self.turning))
        full[:, self._columns] = narrow[:, : len(self._columns)]
        full[:, self._hinge_columns] = narrow[:, len(self._columns) : self.turning, None] * hinges
        full[:, self.full_turning :] = narrow[:, self.turning :]
        return full

    def project(self, rows: FloatArray, open_: FloatArray) -> None:
        """Take out of (F, R, d) rows, in place, what is not open of bodies that stand at their limits.

        open_: (F, B, 3, 3) projects each body's rotation vector on what is open.
        """
        free, hinges = open_[:, self._free], open_[:, self._hinges]
        where, which = np.nonzero((free != np.eye(3)).any(axis=(2, 3)))
        where, columns = where[:, None], 3 * which[:, None] + np.arange(3)
        rows[where, :, columns] = free[where[:, 0], which] @ rows[where, :, columns]
        where, which = np.nonzero(np.trace(hinges, axis1=2, axis2=3) < _CLOSED)
        rows[where, :, len(self._columns) + which] = 0.0

    def arms(self, squares: FloatArray) -> FloatArray:
        """(F, B) lengths from the squares (F, d) by which the open columns count; what is fixed has none."""
        squares = np.maximum(squares, 0.0)  # from sums of moments, a square of nothing may be less by rounding
        arms = np.zeros((len(squares), self.full_turning // 3))
        free = squares[:, : len(self._columns)].reshape(len(squares), -1, 3)
        arms[:, self._free] = np.sqrt(free.sum(axis=2) / 2.0)
        arms[:, self._hinges] = np.sqrt(squares[:, len(self._columns) : self.turning])
        return arms
