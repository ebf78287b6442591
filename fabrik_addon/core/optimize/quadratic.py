"""One step: the least of a quadratic where some rows are to be met and some sides are not to be passed."""

from typing import NamedTuple

import numpy as np

from ..arrays import TINY, BoolArray, FloatArray, IntArray
from ..kernel.joint_limits import ConstraintRows

# How much a side gives way, as a share of what it would move by itself: those of a curved outline say nearly the same.
_LOOSE = 1e-8
# ConstraintRows that are passed by less, as a share of the farthest, are not passed.
_PASSED = 1e-7
# A person's pose comes up against some ten sides, most of them the same as before.
_MOST_ROUNDS = 60
_ALL = slice(None)


class Found(NamedTuple):
    """step: (D,). forces: (R,) that the rows took. pushes: (K,) of the sides, above zero where it came up to them."""

    step: FloatArray
    forces: FloatArray
    pushes: FloatArray

    @property
    def closed(self) -> BoolArray:
        """(K,) the sides that it came up against."""
        return np.asarray(self.pushes > 0.0)


class Step:
    """½ x·H x - g·x for x (D,), with some of R rows that are to be met and K sides that are not to be passed.

    Everything is worked out among the rows and those sides that come into play, so that those that no step can meet do
    no harm: each row gives way by its `compliance` (R,) times the force that it takes.
    """

    def __init__(
        self,
        matrix: FloatArray,
        slope: FloatArray,
        rows: FloatArray,
        compliance: FloatArray,
        sides: ConstraintRows,
        closed: BoolArray,
    ) -> None:
        """H (D, D), g (D,), rows (R, D), K sides; closed: (K,) those that it is thought to come up against."""
        self._matrix, self._rows, self._yielding, self._sides = matrix, rows, compliance, sides
        self._closed = self._known = closed
        found: FloatArray = np.linalg.solve(matrix, np.concatenate([slope[None], rows, sides.rows[closed]]).T)
        self._free, self._by_rows = found[:, 0], found[:, 1 : 1 + len(rows)]
        self._by_sides: FloatArray = np.zeros((len(matrix), len(closed)))
        self._by_sides[:, closed] = found[:, 1 + len(rows) :]

    def solve(self, wanted: FloatArray, chosen: BoolArray | slice = _ALL) -> Found:
        """The step that moves (R,) chosen rows by (n,) wanted and no side by more than it has gaps."""
        sides, rows, by_rows = self._sides, self._rows[chosen], self._by_rows[:, chosen]
        own = rows @ by_rows + np.diag(self._yielding[chosen])
        forces = np.linalg.solve(own, wanted - rows @ self._free)
        free: FloatArray = self._free + by_rows @ forces
        over: FloatArray = sides.rows @ free - sides.gaps
        least = _PASSED * float(np.abs(over).max(initial=0.0))
        # The sides that come into play, how they move the columns and press on the rows, and how hard they push back.
        played, moved, pressed = np.zeros(0, dtype=np.int64), np.zeros((len(free), 0)), np.zeros((len(forces), 0))
        step, pushes = free, np.zeros(0)
        passed: BoolArray = np.logical_or(self._closed, over > least)
        while passed.any():
            played = np.concatenate([played, np.flatnonzero(passed)])
            by_sides = self._moved_by(passed)
            pressing = np.linalg.solve(own, rows @ by_sides)
            moved = np.concatenate([moved, by_sides - by_rows @ pressing], axis=1)
            pressed = np.concatenate([pressed, pressing], axis=1)
            compliance = sides.rows[played] @ moved + np.diag(sides.compliance[played])
            pushing = np.concatenate([pushes > 0.0, self._closed[passed]])
            pushes = _pushes(compliance, over[played], np.flatnonzero(pushing))
            step = free - moved @ pushes
            passed = sides.rows @ step - sides.gaps > least
            passed[played] = False
        pushed: FloatArray = np.zeros(len(over))
        pushed[played] = pushes
        return Found(step, forces + pressed @ pushes, pushed)

    def back(self, closed: BoolArray, chosen: BoolArray | slice = _ALL) -> FloatArray:
        """(D, n) the least steps that move (R,) chosen rows by one each, and along (K,) closed sides not at all."""
        rows = self._rows[chosen]
        count, rows = len(rows), np.concatenate([rows, self._sides.rows[closed]])
        moved = np.concatenate([self._by_rows[:, chosen], self._moved_by(closed)], axis=1)
        square = rows @ moved
        diagonal = np.diagonal(square)[count:] * _LOOSE + self._sides.compliance[closed]
        square += np.diag(np.concatenate([self._yielding[chosen], diagonal]))
        return np.asarray(moved @ np.linalg.inv(square)[:, :count])

    def _moved_by(self, chosen: BoolArray) -> FloatArray:
        """(D, n) how pushes of (K,) chosen sides move the columns."""
        new = chosen & ~self._known
        if new.any():
            self._by_sides[:, new] = np.linalg.solve(self._matrix, self._sides.rows[new].T)
            self._known = self._known | new
        return self._by_sides[:, chosen]


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
