"""One step: the least of a quadratic where some rows are to be met and some sides are not to be passed."""

from typing import NamedTuple

import numpy as np

from ..arrays import TINY, BoolArray, FloatArray, IntArray
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

    Everything is worked out among the rows and those sides that come into play, so that those that no step can meet do
    no harm: each row gives way by its `yielding` (R,) times the force that it takes.
    """

    def __init__(
        self, matrix: FloatArray, slope: FloatArray, rows: FloatArray, yielding: FloatArray, sides: Sides
    ) -> None:
        """H (D, D), g (D,), rows (R, D), K sides."""
        found: FloatArray = np.linalg.solve(matrix, np.concatenate([slope[None], rows]).T)
        self._matrix, self._rows, self._sides = matrix, rows, sides
        self._free, self._by_rows = found[:, 0], found[:, 1:]
        self._own = rows @ self._by_rows + np.diag(yielding)

    def solve(self, wanted: FloatArray, closed: BoolArray) -> Found:
        """The step that moves the rows by (R,) wanted and no side by more than it has room.

        closed: (K,) the sides that it is thought to come up against.
        """
        sides = self._sides
        forces = np.linalg.solve(self._own, wanted - self._rows @ self._free)
        free: FloatArray = self._free + self._by_rows @ forces
        over = sides.rows @ free - sides.room
        least = _PASSED * float(np.abs(over).max(initial=0.0))
        # The sides that come into play, how they move the columns and press on the rows, and how hard they push back.
        chosen, moved, pressed = np.zeros(0, dtype=np.int64), np.zeros((len(free), 0)), np.zeros((len(forces), 0))
        step, pushes = free, np.zeros(0)
        passed: BoolArray = closed | (over > least)
        while passed.any():
            chosen = np.concatenate([chosen, np.flatnonzero(passed)])
            by_sides = np.linalg.solve(self._matrix, sides.rows[passed].T)
            pressing = np.linalg.solve(self._own, self._rows @ by_sides)
            moved = np.concatenate([moved, by_sides - self._by_rows @ pressing], axis=1)
            pressed = np.concatenate([pressed, pressing], axis=1)
            compliance = sides.rows[chosen] @ moved + np.diag(sides.yielding[chosen])
            pushing = np.concatenate([pushes > 0.0, closed[passed]])
            pushes = _pushes(compliance, over[chosen], np.flatnonzero(pushing))
            step = free - moved @ pushes
            passed = sides.rows @ step - sides.room > least
            passed[chosen] = False
        met: BoolArray = np.zeros(len(over), dtype=bool)
        met[chosen[pushes > 0.0]] = True
        return Found(step, forces + pressed @ pushes, met)

    def corrected(self, wanted: FloatArray, closed: BoolArray) -> FloatArray:
        """(D,) the least step that moves the rows so, and along closed sides not at all."""
        held = self._sides.rows[closed]
        rows = np.concatenate([self._rows, held])
        moved = np.concatenate([self._by_rows, np.linalg.solve(self._matrix, held.T)], axis=1)
        square = rows @ moved
        count = len(wanted)
        square[:count, :count] = self._own
        diagonal = np.arange(count, len(square))
        square[diagonal, diagonal] = square[diagonal, diagonal] * (1.0 + _LOOSE) + self._sides.yielding[closed]
        goal = np.concatenate([wanted, np.zeros(len(square) - count)])
        return np.asarray(moved @ np.linalg.solve(square, goal))


def _pushes(compliance: FloatArray, over: FloatArray, closed: IntArray) -> FloatArray:
    """(K,) how hard each side pushes back, none less than zero: the least of ½ p·A p - over·p.

    Lawson and Hanson's method (*Solving Least Squares Problems*, 1974, chapter 23) in Bro and de Jong's form (Journal
    of Chemometrics 11, 1997), which begins with the sides that are thought to push: each round closes the side that is
    passed farthest, and opens those that would pull.
    """
    square = compliance + np.diag(_LOOSE * np.diagonal(compliance) + TINY)
    scale = np.sqrt(np.maximum(np.diagonal(compliance), TINY))
    least = _PASSED * float(np.abs(over).max())
    result = np.zeros(len(over))
    while len(closed):
        found = np.linalg.solve(square[closed[:, None], closed], over[closed])
        if found.min() > 0.0:
            result[closed] = found
            break
        closed = closed[found > 0.0]
    for _ in range(_MOST_ROUNDS):
        passed = over - square @ result
        passed[closed] = 0.0
        if passed.max() <= least:
            break
        closed = np.append(closed, int((passed / scale).argmax()))
        closed, result = _inside(square, over, result, closed)
    return result


def _inside(square: FloatArray, over: FloatArray, result: FloatArray, closed: IntArray) -> tuple[IntArray, FloatArray]:
    """Which of the closed sides stay so, and the pushes: those that would pull are opened, one after the other."""
    while True:
        found = np.linalg.solve(square[closed[:, None], closed], over[closed])
        before, pulling = result[closed], found <= 0.0
        result = np.zeros(len(over))
        if not pulling.any():
            result[closed] = found
            return closed, result
        # As far toward it as none pulls; what then pushes no more is opened.
        share = (before[pulling] / np.maximum(before[pulling] - found[pulling], TINY)).min()
        pushes = before + share * (found - before)
        kept = ~(pulling & (pushes <= TINY))
        closed = closed[kept]
        result[closed] = pushes[kept]
