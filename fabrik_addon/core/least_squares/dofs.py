"""The degrees of freedom of joints: the columns in which a least-squares step is worked out."""

from collections.abc import Sequence

import numpy as np

from ..arrays import TINY, FloatArray, lengths
from ..backend import array
from ..model.bodies import Body
from .joints import by_frame

# The tangent projector of an open hinge has trace 1 along its axis, that of a closed one 0.
_CLOSED = 0.5
# Against columns that move nothing: a share of the mean square.
_LEAST_SHARE = 1e-12


class DegreesOfFreedom:
    """Which of D columns are open: three of a body that turns freely, one of a hinge, none of a fixed one.

    The D columns are the bodies' rotation vectors in armature space, then a free root's place and what slides, in
    threes. Of the d open ones the free bodies' come first, then the angles of the hinges, then whatever else moves.

    Attributes:
        all_turning: how many of the D columns are the bodies'.
        turning: how many of the d open ones are.
        owners: (turning,) the body of each open column that is a body's.
    """

    def __init__(self, bodies: Sequence[Body]) -> None:
        limits = [body.limit for body in bodies]
        axes = [(place, limit.turn_axis) for place, limit in enumerate(limits) if limit and limit.turn_axis]
        self._hinges = np.array([place for place, _ in axes], dtype=np.int64)
        self._axes = np.array([axis for _, axis in axes]).reshape(-1, 3).T[..., None]
        free = [place for place, limit in enumerate(limits) if limit is None or limit.freedom == 3]
        self._free = np.array(free, dtype=np.int64)
        self._columns = (3 * self._free[:, None] + np.arange(3)).ravel()
        self._hinge_columns = 3 * self._hinges[:, None] + np.arange(3)
        self.all_turning = 3 * len(limits)
        self.owners = np.concatenate([np.repeat(self._free, 3), self._hinges])
        self.turning = len(self.owners)

    def hinge_axes(self, orientations: FloatArray) -> FloatArray:
        """(F, H, 3) the axes of the bodies that are hinges (4, B, F): a turn about it leaves an axis where it is."""
        return by_frame(array.Quaternion(orientations[:, self._hinges]) @ array.Vector(self._axes))

    def narrow(self, full: FloatArray, hinges: FloatArray) -> FloatArray:
        """(F, ..., d) of (F, ..., D): rows, or vectors, in the open columns."""
        if self.turning == self.all_turning:
            return full
        axes = hinges.reshape(len(hinges), *[1] * (full.ndim - 2), *hinges.shape[1:])
        angles = (full[..., self._hinge_columns] * axes).sum(axis=-1)
        return np.concatenate([full[..., self._columns], angles, full[..., self.all_turning :]], axis=-1)

    def widen(self, narrow: FloatArray, hinges: FloatArray) -> FloatArray:
        """(F, D) vectors of (F, d) ones, zero where nothing is open."""
        if self.turning == self.all_turning:
            return narrow
        full = np.zeros((len(narrow), self.all_turning + narrow.shape[1] - self.turning))
        full[:, self._columns] = narrow[:, : len(self._columns)]
        full[:, self._hinge_columns] = narrow[:, len(self._columns) : self.turning, None] * hinges
        full[:, self.all_turning :] = narrow[:, self.turning :]
        return full

    def expect(self, force: FloatArray, hinges: FloatArray, expected: FloatArray, weights: FloatArray) -> FloatArray:
        """Add to (F, d) forces that bodies turn by rotation vectors (F, B, 3), with weights (F, B).

        Returns (F, d) what it adds to the diagonal of the matrix.
        """
        counts = np.zeros_like(force)
        counts[:, : self.turning] = weights[:, self.owners]
        pulls = np.zeros((len(force), self.all_turning + force.shape[1] - self.turning))
        pulls[:, : self.all_turning] = (expected * weights[..., None]).reshape(len(force), -1)
        force += self.narrow(pulls, hinges)
        return counts

    def project(self, rows: FloatArray, tangents: FloatArray) -> None:
        """Take out of (F, R, d) rows, in place, what limits do not leave open.

        tangents: (F, B, 3, 3) projects each body's rotation vector on what is open.
        """
        free, hinges = tangents[:, self._free], tangents[:, self._hinges]
        where, which = np.nonzero((free != np.eye(3)).any(axis=(2, 3)))
        where, columns = where[:, None], 3 * which[:, None] + np.arange(3)
        rows[where, :, columns] = free[where[:, 0], which] @ rows[where, :, columns]
        where, which = np.nonzero(np.trace(hinges, axis1=2, axis2=3) < 2.0 + _CLOSED)
        rows[where, :, len(self._columns) + which] = 0.0

    def scales(self, squares: FloatArray) -> FloatArray:
        """(F, d) one over the length of each column of the Jacobian, from their squares (F, d).

        The three columns of a joint that turns freely count alike, so that the result does not depend on the axes that
        they are worked out in; so do each three behind those of joints. Of a joint's square half is its own, half the
        mean of all: with its own alone, poses far from their targets took 1.8 times the steps and ended farther from
        the optimum (joints near an effector turn too much); with the mean alone, 1 % of the reachable targets of a
        limited human needed a restart.
        """
        even = self.even(squares)
        if self.turning:
            turning = even[:, : self.turning]
            turning += turning.mean(axis=1, keepdims=True)
            turning *= 0.5
        least = _LEAST_SHARE * even.max(axis=1, initial=0.0, keepdims=True) + TINY
        return np.asarray(1.0 / np.sqrt(np.maximum(even, least)))

    def even(self, squares: FloatArray) -> FloatArray:
        """(F, d) squares of columns' lengths (F, d), the three of a joint that turns freely made their mean."""
        even = squares.copy()
        free, rest = even[:, : len(self._columns)], even[:, self.turning :]
        for threes in (free.reshape(len(even), -1, 3), rest.reshape(len(even), -1, 3)):
            threes[...] = threes.sum(axis=2, keepdims=True) / 3.0
        return even

    def largest(self, narrow: FloatArray) -> FloatArray:
        """(F,) the longest of the parts of vectors (F, d), one part for each joint and one for each column behind."""
        free = lengths(narrow[:, : len(self._columns)].reshape(len(narrow), -1, 3))
        return np.asarray(
            np.maximum(free.max(axis=1, initial=0.0), np.abs(narrow[:, len(self._columns) :]).max(axis=1, initial=0.0))
        )
