"""One step: the least of a quadratic where some rows are to be met and some sides are not to be passed."""

from typing import NamedTuple

import numpy as np

from ..arrays import TINY, BoolArray, FloatArray
from .joint_limits import Sides

# How much a side gives way, as a share of what it would move by itself: those of a curved outline say nearly the same.
_LOOSE = 1e-8
# Sides that are passed by less, as a share of the farthest, are not passed.
_PASSED = 1e-7
# A person's pose comes up against some ten sides, most of them the same as before.
_MOST_ROUNDS = 60


class Found(NamedTuple):
    """step: (D,). forces: (R,) that the rows took. closed: (K,) the sides that it came up against."""

    step: FloatArray
    forces: FloatArray
    closed: BoolArray


class Step:
    """½ x·H x - g·x for x (D,), with R rows that are to be met and K sides that are not to be passed.

    Everything is worked out among rows and sides, so that those that no step can meet do no harm: each row gives way by
    its `yielding` (R,) times the force that it takes.
    """

    def __init__(
        self, matrix: FloatArray, slope: FloatArray, rows: FloatArray, yielding: FloatArray, sides: Sides
    ) -> None:
        """H (D, D), g (D,), rows (R, D), K sides."""
        count = len(rows)
        every = np.concatenate([rows, sides.rows])
        found = np.linalg.solve(matrix, np.concatenate([slope[None], every]).T)
        self._rows, self._sides, self._room, self._free = rows, sides.rows, sides.room, found[:, 0]
        self._side_yielding = sides.yielding
        self._by_rows, self._by_sides = found[:, 1 : 1 + count], found[:, 1 + count :]
        self._own = rows @ self._by_rows
        self._own[np.arange(count), np.arange(count)] += yielding

    def solve(self, wanted: FloatArray, closed: BoolArray) -> Found:
        """The step that moves the rows by (R,) wanted and no side by more than it has room.

        closed: (K,) the sides that it is thought to come up against.
        """
        if len(wanted):
            across = self._rows @ self._by_sides
            both = np.linalg.solve(
                self._own, np.concatenate([(wanted - self._rows @ self._free)[:, None], across], axis=1)
            )
            forces, gives = both[:, 0], both[:, 1:]
            free, moved = self._free + self._by_rows @ forces, self._by_sides - self._by_rows @ gives
        else:
            forces, gives = np.zeros(0), np.zeros((0, len(self._room)))
            free, moved = self._free, self._by_sides
        if not len(self._room):
            return Found(free, forces, closed)
        compliance = self._sides @ moved + np.diag(self._side_yielding)
        pushes = _pushes(compliance, self._sides @ free - self._room, closed)
        return Found(free - moved @ pushes, forces + gives @ pushes, pushes > 0.0)

    def corrected(self, wanted: FloatArray, closed: BoolArray) -> FloatArray:
        """(D,) the least step that moves the rows so, and along closed sides not at all."""
        rows = np.concatenate([self._rows, self._sides[closed]])
        moved = np.concatenate([self._by_rows, self._by_sides[:, closed]], axis=1)
        square = rows @ moved
        count = len(wanted)
        square[:count, :count] = self._own
        diagonal = np.arange(count, len(square))
        square[diagonal, diagonal] = square[diagonal, diagonal] * (1.0 + _LOOSE) + self._side_yielding[closed]
        goal = np.concatenate([wanted, np.zeros(len(square) - count)])
        return np.asarray(moved @ np.linalg.solve(square, goal))


def _pushes(compliance: FloatArray, over: FloatArray, closed: BoolArray) -> FloatArray:
    """(K,) how hard each side pushes back, none less than zero: the least of ½ p·A p - over·p.

    Lawson and Hanson's method (*Solving Least Squares Problems*, 1974, chapter 23) in Bro and de Jong's form (Journal
    of Chemometrics 11, 1997), which begins with the sides that are thought to push: each round closes the side that is
    passed farthest, and opens those that would pull.
    """
    square = compliance + np.diag(_LOOSE * np.diagonal(compliance) + TINY)
    result, pushing = np.zeros(len(over)), closed.copy()
    scale = np.sqrt(np.maximum(np.diagonal(compliance), TINY))
    least = _PASSED * float(np.abs(over).max())
    for _ in range(_MOST_ROUNDS):
        result, pushing = _inside(square, over, result, pushing)
        passed = np.where(pushing, 0.0, over - square @ result)
        if passed.max() <= least:
            break
        pushing[int((passed / scale).argmax())] = True
    return result


def _inside(
    square: FloatArray, over: FloatArray, result: FloatArray, pushing: BoolArray
) -> tuple[FloatArray, BoolArray]:
    """The pushes of the sides in `pushing` alone, those that would pull left out, one after the other."""
    while True:
        where = np.flatnonzero(pushing)
        found = np.zeros(len(over))
        found[where] = np.linalg.solve(square[where[:, None], where], over[where])
        pulling = pushing & (found <= 0.0)
        if not pulling.any():
            return found, pushing
        # As far toward it as none pulls; what then pushes no more is opened.
        share = np.where(pulling, result / np.maximum(result - found, TINY), 1.0).min()
        result = np.where(pushing, result + share * (found - result), 0.0)
        pushing = pushing & (result > 0.0) & ~(pulling & (result <= TINY))
        result = np.where(pushing, result, 0.0)
