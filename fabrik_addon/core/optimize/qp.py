"""Quadratic programs: equations with compliance, forces with caps, and inequalities.

With a step x (D,), forces f (R,) and pushes p (K,):

    minimize  ½ x·H x - g·x + ½ Σ c f² + ½ Σ d p²   subject to  A x + c f = a,  G x - d p <= h

H (D, D) is positive definite. Compliances c >= 0 and d >= 0 are lengths per force: a row gives way to its own force.
The conditions of Karush, Kuhn and Tucker are

    H x = g + Aᵀf - Gᵀp,   A x + c f = a,   h - G x + d p >= 0,   p >= 0,   p · (h - G x + d p) = 0.

Eliminating x leaves a linear complementarity problem in f and p with a matrix of R + K rows. Lawson and Hanson's method
(*Solving Least Squares Problems*, 1974, chapter 23) solves it. It begins with a guess of the active set (Bro, de Jong,
J. Chemometrics 11, 1997). It adds several inequalities at once, but from nearly parallel ones only the one violated
most. The energy falls with each active set, so none is tried twice. Block principal pivoting (Júdice and Pires 1994;
Kim and Park 2011) takes many times the rounds.

A force can have a cap. Rows then come in threes, the components of one goal, and the compliance of a goal whose force
would be longer than its cap grows until the force is as long as the cap. The goal then costs its cap times its
distance: an exact penalty. The compliance is the root of a secular equation, found by Newton's method on 1 / |f(c)|,
which is nearly linear (Moré and Sorensen, SIAM Journal on Scientific and Statistical Computing 4, 1983).
"""

from typing import Final, NamedTuple

import numpy as np

from ..arrays import CLOSE, MAX_ROUNDS, ROUNDS, TINY, BoolArray, FloatArray, lengths

# Compliance of equations that are met: with it, a point misses its target by about 1e-10 of the body's size.
RIGID: Final = 1e-10
# A step that does not reduce the cost is shortened to the fraction SHORTER, at most MAX_SHORTER times.
SHORTER, MAX_SHORTER = 0.4, 4
# Pushes and gaps of the wrong sign are ignored below this fraction of the largest movement; both are in units of
# √energy. Two inequalities may be equal, so each gets a compliance: the same fraction of its movement by a unit push.
_ACCURACY: Final = 1e-8
# The cosine above which inequalities are nearly parallel.
_PARALLEL: Final = 0.5


class QpStep(NamedTuple):
    """The solution of a quadratic program.

    Attributes:
        step: (D,). forces: (R,) of the equations. pushes: (K,) of the inequalities, above zero if active.
        compliance: (R,) of the equations: larger than given for goals whose force is at its cap.
    """

    step: FloatArray
    forces: FloatArray
    pushes: FloatArray
    compliance: FloatArray

    @property
    def active(self) -> BoolArray:
        """(K,) the inequalities that hold as equations."""
        return np.asarray(self.pushes > 0.0)


class QuadraticProgram:
    """One factorization of H for any right-hand sides, compliances and caps."""

    def __init__(
        self,
        matrix: FloatArray,
        slope: FloatArray,
        rows: FloatArray,
        constraints: FloatArray,
        stiffness: FloatArray | float = 0.0,
    ) -> None:
        """Take H (D, D), g (D,), A (R, D) and G (K, D); rows of zeros are allowed.

        stiffness: (R,) s by which the equations are already in H and g, as Aᵀ s A and Aᵀ s a. That changes no solution.
        Raises numpy.linalg.LinAlgError if H is singular.
        """
        # Products of all rows with each other are left out, since few inequalities are ever active. Without BLAS, as in
        # Blender's own numpy, products with the inverse are slow.
        self._both = np.concatenate([rows, constraints])
        self._count = len(rows)
        solved = np.linalg.solve(matrix, np.concatenate([slope[None], self._both]).T).T
        self._free, self._solved = solved[0], solved[1:]
        # (R + K,) the values of the rows without multipliers.
        self._moved: FloatArray = self._both @ self._free
        own = np.einsum("nd,nd->n", self._both, self._solved)
        self._units: FloatArray = np.sqrt(np.where(own > TINY, own, 1.0))
        self._least: FloatArray = _ACCURACY * own
        self._least[: self._count] = 0.0
        self._stiffness = np.zeros(len(own))
        self._stiffness[: self._count] = stiffness
        self._most: FloatArray = (1.0 - CLOSE) / np.maximum(self._stiffness[: self._count], TINY)

    def solve(
        self,
        wanted: FloatArray,
        gaps: FloatArray,
        compliance: FloatArray | float = RIGID,
        constraint_compliance: FloatArray | float = 0.0,
        caps: FloatArray | None = None,
        active: BoolArray | None = None,
        expected: FloatArray | None = None,
    ) -> QpStep:
        """Find the step for a (R,) and h (K,), which is infinite for unused inequalities.

        compliance: (R,), above zero if rows of A may be zero or depend on each other. constraint_compliance: (K,).
        caps: (R / 3,) of the lengths of forces. active: (K,) a guess. expected: (R,) a guess of the compliance at which
        forces are at their caps.
        """
        count = self._count
        target = np.concatenate([wanted, gaps]) - self._moved
        compliance = np.broadcast_to(compliance, wanted.shape)
        yielding = self._least.copy()
        yielding[count:] += constraint_compliance
        yielding[:count] = compliance if expected is None else np.minimum(expected, self._most)
        used = np.ones(target.shape, dtype=bool)
        used[count:] = False if active is None else active
        multipliers = self._complementary(target, yielding, used)
        for done in range(2 * ROUNDS):
            if caps is None or not self._capped(multipliers, yielding, compliance, caps, used, one=done >= ROUNDS):
                break
            last, multipliers = multipliers, self._complementary(target, yielding, used)
            if (lengths((multipliers - last)[:count].reshape(-1, 3)) < CLOSE * caps).all():
                break
        # Undo the compliance added to inequalities, which matters if nearly dependent ones have large multipliers.
        missed = target - self._change(multipliers, yielding) - (yielding - self._least) * multipliers
        multipliers += self._multipliers(missed, yielding, used)
        step = self._free + self._left(yielding) * multipliers @ self._solved
        return QpStep(step, multipliers[:count], np.maximum(-multipliers[count:], 0.0), yielding[:count])

    def _left(self, yielding: FloatArray) -> FloatArray:
        """(R + K,) the fractions of multipliers that are not in H, for compliances (R + K,)."""
        return 1.0 - self._stiffness * yielding

    def _change(self, multipliers: FloatArray, yielding: FloatArray) -> FloatArray:
        """(R + K,) the change of the rows' values by multipliers (R + K,), for compliances (R + K,)."""
        return np.asarray(self._both @ (self._left(yielding) * multipliers @ self._solved))

    def _complementary(self, target: FloatArray, yielding: FloatArray, used: BoolArray) -> FloatArray:
        """(N,) multipliers of all N rows, zero or more for inequalities. Changes `used` (N,), the active rows."""
        units, first = self._units, self._count
        least = _ACCURACY * max(
            float(np.abs(self._moved / units).max(initial=TINY)),
            float(np.abs(target[:first] / units[:first]).max(initial=0.0)),
        )
        result = np.zeros(target.shape)
        for _ in range(MAX_ROUNDS):
            found = self._multipliers(target, yielding, used)
            pulling = found > 0.0
            pulling[:first] = False
            if pulling.any():
                # Move until an inequality would pull. Inequalities that do not push are then dropped.
                share = (result[pulling] / np.minimum(result[pulling] - found[pulling], -TINY)).min()
                result = result + share * (found - result)
                used &= ~pulling | (result * units < -TINY)
                continue
            result = found
            passed = ((self._change(found, yielding) - target) / units)[first:]
            passed[used[first:] | (passed <= least)] = 0.0
            places = np.flatnonzero(passed)
            if not len(places):
                break
            passed, places = passed[places], places + first
            near = self._both[places] @ self._solved[places].T
            parallel = near > _PARALLEL * units[places, None] * units[places]
            used[places] |= passed >= (parallel * passed).max(axis=1)
        return result

    def _capped(
        self,
        multipliers: FloatArray,
        yielding: FloatArray,
        least: FloatArray,
        caps: FloatArray,
        used: BoolArray,
        *,
        one: bool,
    ) -> bool:
        """Adjust in place the compliance of goals whose force exceeds its cap, or whose compliance is too large.

        Takes a step of Newton's method for all these goals together, or for the `one` that is farthest off, since goals
        that work against each other may cycle. Returns whether any was adjusted.
        """
        count = self._count
        forces, own, least = multipliers[:count], yielding[:count].reshape(-1, 3), least.reshape(-1, 3)
        sizes = np.maximum(lengths(forces.reshape(-1, 3)), TINY)
        loose = own[:, 0] > least[:, 0]
        wrong = (sizes > (1.0 + CLOSE) * caps) | (loose & (sizes < (1.0 - CLOSE) * caps))
        if not wrong.any():
            return False
        # (N, E) each goal's force in its own column, to find how multipliers fall as its compliance grows.
        alone = np.zeros((len(multipliers), len(caps)))
        rows = np.arange(count)
        alone[rows, rows // 3] = forces
        in_matrix = self._both @ ((self._stiffness[:, None] * alone).T @ self._solved).T
        falls = self._multipliers(alone - in_matrix, yielding, used)
        # A goal that cannot yield more must not slow down the others.
        at_most = self._most.reshape(own.shape)[:, 0] <= own[:, 0]
        change = np.where(wrong & ~(at_most & (sizes > caps)), sizes / caps - 1.0, 0.0)
        if one:
            off = np.abs(np.log(sizes / caps)) * (change != 0.0)
            change[off < off.max()] = 0.0
        some = np.flatnonzero(change)
        asked, pulls = (change * sizes**2)[some], (alone.T @ falls)[np.ix_(some, some)]
        step = np.linalg.solve(pulls + TINY * np.eye(len(some)), asked)
        if (step * asked < 0.0).any():
            # Goals that work against each other overshoot. So count them all as if they pulled along one line.
            step = asked / np.maximum(np.abs(pulls).sum(axis=1), TINY)
        change[some] = step
        yielding[:count] = np.minimum(np.maximum(own + change[:, None], least).ravel(), self._most)
        return True

    def _multipliers(self, target: FloatArray, yielding: FloatArray, used: BoolArray) -> FloatArray:
        """(N,) or (N, n) solutions of the equations of the used rows (N,), zero in all others."""
        some = np.flatnonzero(used)
        result = np.zeros(target.shape)
        system = self._both[some] @ self._solved[some].T * self._left(yielding)[some]
        np.einsum("ii->i", system)[...] += yielding[some]
        result[some] = np.linalg.solve(system, target[some])
        return result
