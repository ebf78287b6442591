"""Quadratic programs of many frames at once: equations with compliance, forces with caps, and inequalities.

For each frame, with a step x (D,), forces f (R,) and pushes p (K,):

    minimize  ½ x·H x - g·x + ½ Σ c f² + ½ Σ d p²   subject to  A x + c f = a,  G x - d p <= h

H (D, D) is positive definite. Compliances c >= 0 and d >= 0 are lengths per force: a row gives way to its own force.
The conditions of Karush, Kuhn and Tucker are

    H x = g + Aᵀf - Gᵀp,   A x + c f = a,   h - G x + d p >= 0,   p >= 0,   p · (h - G x + d p) = 0.

Eliminating x leaves a linear complementarity problem in f and p with a matrix of R + K rows. Lawson and Hanson's method
(*Solving Least Squares Problems*, 1974, chapter 23) solves it. It begins with a guess of the active set (Bro, de Jong,
J. Chemometrics 11, 1997). It adds several inequalities at once: among nearly parallel ones, those violated most. The
energy falls with each active set, so none is tried twice. If cones of limits give nine nearly parallel inequalities
each, this method takes 14 rounds in the median, and at most 29. Block principal pivoting (Júdice and Pires 1994; Kim
and Park 2011) takes 95, and often 200.

A force can have a cap. Rows then come in threes, the components of one goal, and the compliance of a goal whose force
would be longer than its cap grows until the force is as long as the cap. The goal then costs its cap times its
distance: an exact penalty. The compliance is the root of a secular equation, found by Newton's method on 1 / |f(c)|,
which is nearly linear (Moré and Sorensen, SIAM Journal on Scientific and Statistical Computing 4, 1983).
"""

from typing import Final, NamedTuple

import numpy as np

from ..arrays import CLOSE, TINY, BoolArray, FloatArray, IntArray, lengths, times

# Compliance of equations that are met: with it, a point misses its target by about 1e-10 of the body's size.
RIGID: Final = 1e-10
# A step that does not reduce the cost is shortened to the share SHORTER, at most MAX_SHORTER times.
SHORTER, MAX_SHORTER = 0.4, 4
# Pushes and gaps of the wrong sign are ignored below this share of the largest movement; both are in units of √energy.
# Inequalities may be equal, so each gets a compliance: the same share of the distance that a unit push moves it.
_ACCURACY: Final = 1e-8
# The largest number of rounds, in case rounding errors cause a cycle.
_MAX_ROUNDS: Final = 200
# The cosine above which inequalities are nearly parallel.
_PARALLEL: Final = 0.5
# The largest number of Newton steps in the search for the compliance of a capped goal. Goals that contradict each other
# take 5 to 12 steps, others 3.
_MAX_CAP_STEPS: Final = 20


class QpStep(NamedTuple):
    """The solution for F frames.

    Attributes:
        step: (F, D). forces: (F, R) of the equations. pushes: (F, K) of the inequalities, above zero if active.
        compliance: (F, R) of the equations: larger than given for goals whose force is at its cap.
    """

    step: FloatArray
    forces: FloatArray
    pushes: FloatArray
    compliance: FloatArray

    @property
    def active(self) -> BoolArray:
        """(F, K) the inequalities that hold as equations."""
        return np.asarray(self.pushes > 0.0)


class QuadraticProgram:
    """One factorization of H for any right-hand sides, compliances and caps."""

    def __init__(self, matrix: FloatArray, slope: FloatArray, rows: FloatArray, constraints: FloatArray) -> None:
        """Take H (F, D, D), g (F, D), A (F, R, D) and G (F, K, D); rows of zeros are allowed.

        Raises numpy.linalg.LinAlgError if some H is singular.
        """
        # With 150 rows, products with the inverse take half as long as `np.linalg.solve`. Products of all rows with
        # each other are left out, since few inequalities are ever active.
        inverse = np.linalg.inv(matrix)
        self._both = np.concatenate([rows, constraints], axis=1)
        self._count = rows.shape[1]
        self._free, self._solved = times(inverse, slope), self._both @ inverse
        # (F, R + K) the values of the rows without multipliers.
        self._moved: FloatArray = times(self._both, self._free)
        own = np.einsum("fnd,fnd->fn", self._both, self._solved)
        self._units: FloatArray = np.sqrt(np.where(own > TINY, own, 1.0))
        self._least: FloatArray = np.where(np.arange(own.shape[1]) < self._count, 0.0, _ACCURACY * own)

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
        """Find the step for a (F, R) and h (F, K), which is infinite for unused inequalities.

        compliance: (F, R), above zero if rows of A may be zero or depend on each other. constraint_compliance: (F, K).
        caps: (F, R / 3) of the lengths of forces. active: (F, K) a guess. expected: (F, R) a guess of the compliance at
        which forces are at their caps.
        """
        target = np.concatenate([wanted, gaps], axis=1) - self._moved
        compliance = np.broadcast_to(compliance, wanted.shape)
        yielding = self._least.copy()
        yielding[:, self._count :] += constraint_compliance
        yielding[:, : self._count] = compliance if expected is None else expected
        used = np.ones(target.shape, dtype=bool)
        used[:, self._count :] = False if active is None else active
        multipliers = self._complementary(target, yielding, used)
        for _ in range(_MAX_CAP_STEPS):
            if caps is None or not self._capped(multipliers, yielding, compliance, caps, used):
                break
            last, multipliers = multipliers, self._complementary(target, yielding, used)
            changed = lengths((multipliers - last)[:, : self._count].reshape(*caps.shape, 3))
            if (changed < CLOSE * caps).all():
                break
        # Undo the compliance added to inequalities, which matters if nearly dependent ones have large multipliers.
        missed = target - self._change(multipliers) - (yielding - self._least) * multipliers
        multipliers += self._multipliers(missed, yielding, used)
        forces, pushes = multipliers[:, : self._count], -multipliers[:, self._count :]
        step = self._free + times(self._solved.swapaxes(1, 2), multipliers)
        return QpStep(step, forces, np.maximum(pushes, 0.0), yielding[:, : self._count])

    def _change(self, multipliers: FloatArray, frames: IntArray | slice = slice(None)) -> FloatArray:
        """(F, R + K) the change of the rows' values by multipliers (F, R + K)."""
        return times(self._both[frames], times(self._solved[frames].swapaxes(1, 2), multipliers))

    def correction(self, wanted: FloatArray, compliance: FloatArray, active: BoolArray) -> FloatArray:
        """(F, D) the shortest steps in the metric H that change A by `wanted` (F, R).

        Active inequalities do not change.
        """
        used = np.concatenate([np.ones(wanted.shape, dtype=bool), active], axis=1)
        yielding = self._least.copy()
        yielding[:, : self._count] = compliance
        target = np.concatenate([wanted, np.zeros(active.shape)], axis=1)
        return times(self._solved.swapaxes(1, 2), self._multipliers(target, yielding, used))

    def _complementary(self, target: FloatArray, yielding: FloatArray, used: BoolArray) -> FloatArray:
        """(F, N) multipliers of all N rows, zero or more for inequalities. Changes `used` (F, N), the active rows."""
        units, first = self._units, self._count
        least = _ACCURACY * np.abs(self._moved / units).max(axis=1, initial=TINY)
        least = np.maximum(least, _ACCURACY * np.abs(target[:, :first] / units[:, :first]).max(axis=1, initial=0.0))
        result = np.zeros(target.shape)
        frames = np.arange(len(target))
        for _ in range(_MAX_ROUNDS):
            some = slice(None) if len(frames) == len(target) else frames
            now = used[some]
            found = self._multipliers(target[some], yielding[some], now, some)
            pulling = found > 0.0
            pulling[:, :first] = False
            is_pulling = pulling.any(axis=1)
            if is_pulling.any():
                # Move until an inequality would pull. Inequalities that do not push are then dropped.
                before = result[some]
                share = np.where(pulling, before / np.minimum(before - found, -TINY), 1.0).min(axis=1)
                found = before + share[:, None] * (found - before)
                now &= ~pulling | (found * units[some] < -TINY)
            passed = ((self._change(found, some) - target[some]) / units[some])[:, first:]
            passed[now[:, first:] | is_pulling[:, None] | (passed <= least[some, None])] = 0.0
            places = first + np.flatnonzero(passed.any(axis=0))
            if len(places):
                passed, unit = passed[:, places - first], units[some][:, places]
                near = self._both[some][:, places] @ self._solved[some][:, places].swapaxes(1, 2)
                parallel = near > _PARALLEL * unit[:, :, None] * unit[:, None]
                now[:, places] |= (passed > 0.0) & (passed >= (parallel * passed[:, None]).max(axis=2))
            result[some], used[some] = found, now
            frames = frames[is_pulling | (passed > 0.0).any(axis=1)]
            if not len(frames):
                break
        return result

    def _capped(
        self, multipliers: FloatArray, yielding: FloatArray, least: FloatArray, caps: FloatArray, used: BoolArray
    ) -> bool:
        """Adjust in place the compliance of goals whose force exceeds its cap, or whose compliance is too large.

        Returns whether any was adjusted.
        """
        shape = (len(caps), -1, 3)
        forces, own = multipliers[:, : self._count].reshape(shape), yielding[:, : self._count].reshape(shape)
        sizes = np.maximum(lengths(forces), TINY)
        loose = own[..., 0] > least.reshape(shape)[..., 0]
        wrong = (sizes > (1.0 + CLOSE) * caps) | (loose & (sizes < (1.0 - CLOSE) * caps))
        frames = np.flatnonzero(wrong.any(axis=1))
        if not len(frames):
            return False
        # (n, N, E) each goal's force in its own column, to find how multipliers fall as its compliance grows.
        alone = np.zeros((len(frames), multipliers.shape[1], caps.shape[1]))
        rows = np.arange(self._count)
        alone[:, rows, rows // 3] = multipliers[frames, : self._count]
        falls = self._multipliers(alone, yielding[frames], used[frames], frames)
        change = np.where(wrong[frames], sizes[frames] / caps[frames] - 1.0, 0.0)
        # Goals that change alike are counted together, as if they pulled along one line, so that no step overshoots.
        coupled = np.abs(alone.swapaxes(1, 2) @ falls) * (change[:, :, None] * change[:, None] > 0.0)
        change *= sizes[frames] ** 2 / np.maximum(coupled.sum(axis=2), TINY)
        changed = np.maximum(own[frames] + change[..., None], least.reshape(shape)[frames])
        yielding[frames, : self._count] = changed.reshape(len(frames), -1)
        return True

    def _multipliers(
        self, target: FloatArray, yielding: FloatArray, used: BoolArray, frames: IntArray | slice = slice(None)
    ) -> FloatArray:
        """(F, N) or (F, N, n) solutions of the equations of the used rows (F, N), zero in all others."""
        some = np.flatnonzero(used.any(axis=0))
        result = np.zeros(target.shape)
        if not len(some):
            return result
        both, right = used[:, some], target.reshape(*used.shape, -1)[:, some]
        system = self._both[frames][:, some] @ self._solved[frames][:, some].swapaxes(1, 2)
        system *= both[:, :, None] & both[:, None]
        np.einsum("fii->fi", system)[...] += np.where(both, yielding[:, some], 1.0)
        found = np.linalg.solve(system, np.where(both[..., None], right, 0.0))
        result[:, some] = found.reshape(result[:, some].shape)
        return result
