"""One quadratic program: goals are equality rows with a compliance, everything else is an inequality.

Minimize ½ x·H x − g·x + ½ f·κ f + ½ p·κ_c p over a step x (D,), where A x + κ f = r for the goals' rows (R,) and
C x − κ_c p ≤ d for the constraints (K,). f are the forces of the goals, p ≥ 0 the multipliers of the constraints:

    x = H⁻¹ (g + Aᵀ f − Cᵀ p),   p · (C x − κ_c p − d) = 0

A compliance κ or κ_c of zero makes a row exact. Rows that contradict each other do no harm if they have a compliance.
"""

from typing import NamedTuple

import numpy as np

from ..arrays import TINY, BoolArray, FloatArray, IntArray
from ..kernel.joint_limits import ConstraintRows

# Added to a constraint's own compliance, as a share of it: the tangents of a curved outline are nearly the same row.
_REGULAR = 1e-8
# A violation by less than this share of the largest one is rounding.
_PASSED = 1e-7
# A person's pose is held by some ten constraints, most of them the same as a step before.
_MOST_ROUNDS = 60


class Minimum(NamedTuple):
    """The step x (D,), the forces f (R,) of the goals and the multipliers p (K,) of the constraints."""

    step: FloatArray
    forces: FloatArray
    multipliers: FloatArray

    @property
    def active(self) -> BoolArray:
        """(K,) the active set."""
        return np.asarray(self.multipliers > 0.0)


class QuadraticProgram:
    """One matrix and its rows, solved for several right sides and compliances."""

    def __init__(self, matrix: FloatArray, slope: FloatArray, rows: FloatArray, constraints: ConstraintRows) -> None:
        """H (D, D) positive definite, g (D,), A (R, D), and C, d, κ_c as `ConstraintRows`."""
        self._inverse: FloatArray = np.linalg.inv(matrix)
        self._rows, self._constraints = rows, constraints
        self._free = self._inverse @ slope
        self._by_forces = self._inverse @ rows.T
        self._by_constraints = self._inverse @ constraints.rows.T

    @property
    def compliance(self) -> FloatArray:
        """(R / 3,) how far a force of 1 moves each goal of three rows, in the mean of its directions."""
        diagonal = np.einsum("rd,dr->r", self._rows, self._by_forces)
        return np.asarray(diagonal.reshape(-1, 3).mean(axis=1))

    def minimum(self, wanted: FloatArray, compliance: FloatArray, active: BoolArray) -> Minimum:
        """The minimum for r (R,) and κ (R,); active: (K,) the expected active set, from which the search begins."""
        constraints, rows, by_forces = self._constraints, self._rows, self._by_forces
        own = np.linalg.inv(rows @ by_forces + np.diag(compliance))
        forces = own @ (wanted - rows @ self._free)
        free: FloatArray = self._free + by_forces @ forces
        # Only constraints that come into play are worked with: those that are violated, then those that this violates.
        over: FloatArray = constraints.rows @ free - constraints.gaps
        least = _PASSED * float(np.abs(over).max(initial=0.0))
        played, moved, pressed = np.zeros(0, dtype=np.int64), np.zeros((len(free), 0)), np.zeros((len(forces), 0))
        step, multipliers = free, np.zeros(0)
        passed: BoolArray = active | (over > least)
        while passed.any():
            played = np.concatenate([played, np.flatnonzero(passed)])
            by_new = self._by_constraints[:, passed]
            pressing = own @ (rows @ by_new)
            moved = np.concatenate([moved, by_new - by_forces @ pressing], axis=1)
            pressed = np.concatenate([pressed, pressing], axis=1)
            square = constraints.rows[played] @ moved + np.diag(constraints.compliance[played])
            expected = np.concatenate([multipliers > 0.0, active[passed]])
            multipliers = nonnegative_minimum(square, over[played], np.flatnonzero(expected))
            step = free - moved @ multipliers
            passed = constraints.rows @ step - constraints.gaps > least
            passed[played] = False
        every: FloatArray = np.zeros(len(over))
        every[played] = multipliers
        return Minimum(step, forces + pressed @ multipliers, every)

    def onto(self, chosen: BoolArray, active: BoolArray) -> FloatArray:
        """(D, n) the smallest steps, in H, that move (R,) chosen rows by one each and (K,) active constraints by none."""
        rows = np.concatenate([self._rows[chosen], self._constraints.rows[active]])
        moved = np.concatenate([self._by_forces[:, chosen], self._by_constraints[:, active]], axis=1)
        square, count = rows @ moved, int(np.count_nonzero(chosen))
        regular = _REGULAR * np.diagonal(square)
        regular[count:] += self._constraints.compliance[active]
        return np.asarray(moved @ np.linalg.inv(square + np.diag(regular + TINY))[:, :count])


def nonnegative_minimum(square: FloatArray, right: FloatArray, active: IntArray) -> FloatArray:
    """(K,) the p >= 0 that minimizes ½ p·A p − b·p, for A (K, K) positive semidefinite and b (K,).

    Lawson and Hanson's active-set method (*Solving Least Squares Problems*, 1974, chapter 23) in the form of Bro and
    de Jong (Journal of Chemometrics 11, 1997), which begins with an expected active set (n,): each round adds the
    constraint that is violated most, and drops those whose multipliers would be negative.
    """
    matrix = square + np.diag(_REGULAR * np.diagonal(square) + TINY)
    scale = np.sqrt(np.maximum(np.diagonal(square), TINY))
    least = _PASSED * float(np.abs(right).max())
    result = np.zeros(len(right))
    while len(active):
        found = np.linalg.solve(matrix[active[:, None], active], right[active])
        if found.min() > 0.0:
            result[active] = found
            break
        active = active[found > 0.0]
    for _ in range(_MOST_ROUNDS):
        passed = right - matrix @ result
        passed[active] = 0.0
        if passed.max() <= least:
            break
        active = np.append(active, int((passed / scale).argmax()))
        active, result = _drop_negative(matrix, right, result, active)
    return result


def _drop_negative(
    matrix: FloatArray, right: FloatArray, result: FloatArray, active: IntArray
) -> tuple[IntArray, FloatArray]:
    """The active set and the multipliers once constraints whose multiplier would be negative are dropped."""
    while True:
        found = np.linalg.solve(matrix[active[:, None], active], right[active])
        before, negative = result[active], found <= 0.0
        result = np.zeros(len(right))
        if not negative.any():
            result[active] = found
            return active, result
        # As far toward the minimum as no multiplier becomes negative.
        share = (before[negative] / np.maximum(before[negative] - found[negative], TINY)).min()
        multipliers = before + share * (found - before)
        kept = ~(negative & (multipliers <= TINY))
        active = active[kept]
        result[active] = multipliers[kept]
