"""The least change of a motion that meets linear equations on some of its frames, smooth over time.

Finds the most probable change x of F frames, with D numbers each, that meets A x = b on the given rows, if changes are
drawn from a Gaussian process (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, chapter 2). Its
covariance has two parts:

* a change that is smooth over time and moves the masses as little as possible: a Matérn kernel of order 3/2, whose most
  probable curve is a spline of least acceleration, times the inverse of the mass matrix;
* a smaller one that differs from frame to frame. It takes up noise in b, such as that of recordings. Its variance falls
  with the square of the mass of each number, so that light bones take up the noise and the trunk remains calm.
"""

from typing import Final

import numpy as np

from ..arrays import TINY, FloatArray, IntArray

# The length of the smooth kernel, as a share of the time in which a change fades. With 0.33, a hand jerks if a hold
# moves it by 31 cm; with 1.0, limbs of some recorded walks jerk.
_LENGTH: Final = 0.5
# The smallest and the largest share of the variance for the part that differs from frame to frame.
_ROUGH: Final = (1e-5, 0.1)
# The variance of errors of the equations, as a share of the mean variance of their values. So equations that
# contradict each other do not cause large changes.
_SLACK: Final = 1e-6


# The largest number of rows solved at once, since the time grows with its cube.
_MAX_ROWS: Final = 900
# The number of last frames of a part that the next part continues.
_KNOWN: Final = 3


class ChangeOverTime:
    """The covariance of the changes of F frames."""

    def __init__(
        self, frames: FloatArray, window: FloatArray, ease: float, mass: FloatArray, rough: float, units: FloatArray
    ) -> None:
        """Prepare frames (F,), in increasing order.

        window: (F,) factors on the changes, such as 0 on frames that must not change. ease: frames over which a change
        fades in. mass: (D, D) the mass matrix. rough: the share of the variance that may change quickly. units: (D,)
        the amount that counts as much as one radian: 1 for angles, the size of the body for lengths.
        """
        self._frames, self._window, self._length = frames, window, _LENGTH * max(ease, 1.0)
        self._light: FloatArray = np.linalg.inv(mass)
        lightest, alike = 1.0 / (np.diag(mass) * units**2) ** 2, np.diag(self._light) / units**2
        self._lightest: FloatArray = np.diag(rough * alike.sum() / lightest.sum() * lightest * units**2)

    def least(self, on: IntArray, rows: FloatArray, wanted: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F, D) the change for rows (N, D) with values (N,) on frames with the indices `on` (N,), and (N,) forces.

        Long motions are solved part by part. Each part continues the last frames of the part before, and looks ahead by
        its own length. A hold of 100 frames in two parts differs by 0.5 mm from one that is solved at once.
        """
        count, columns = len(self._frames), rows.shape[1]
        part = count if len(on) <= _MAX_ROWS else max(_MAX_ROWS * count // (2 * len(on)), 4 * _KNOWN)
        change, forces = np.zeros((count, columns)), np.zeros(len(on))
        # Scale the equations that keep the continued frames, so that they count as much as those of points.
        units = 1.0 / np.sqrt(np.diag(self._light))
        for first in range(0, count, part):
            end = min(first + 2 * part, count)
            known = np.arange(max(first - _KNOWN, 0), first)
            here = np.flatnonzero((on >= first) & (on < end))
            found, pushes = self._at_once(
                slice(first - len(known), end),
                np.concatenate([on[here], np.repeat(known, columns)]) - first + len(known),
                np.concatenate([rows[here], np.tile(np.diag(units), (len(known), 1))]),
                np.concatenate([wanted[here], (units * change[known]).ravel()]),
            )
            change[first:end], forces[here] = found[len(known) :], pushes[: len(here)]
        return change, forces

    def _at_once(
        self, part: slice, on: IntArray, rows: FloatArray, wanted: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The change of `least` for a part of the frames; `on` are indices in this part."""
        apart = np.abs(self._frames[part, None] - self._frames[part])
        both, scaled = self._window[part, None] * self._window[part], np.sqrt(3.0) * apart / self._length
        smooth = both * (1.0 + scaled) * np.exp(-scaled)
        # The standard deviation is one frame.
        rough = both * np.exp(-0.5 * apart**2)
        pairs = np.ix_(on, on)
        values = smooth[pairs] * (rows @ self._light @ rows.T) + rough[pairs] * (rows @ self._lightest @ rows.T)
        values[np.diag_indices(len(on))] += _SLACK * np.trace(values) / max(len(on), 1)
        forces = np.linalg.solve(values, wanted)
        pulls = np.zeros((len(smooth), rows.shape[1]))
        np.add.at(pulls, on, forces[:, None] * rows)
        return smooth @ pulls @ self._light + rough @ pulls @ self._lightest, forces


def noise_share(values: FloatArray) -> float:
    """The share of noise in the variance of (F, n) values on successive frames; NaN for none.

    Noise of variance v gives fourth differences of variance 70 v. Motion that is smooth over five frames gives almost
    none.
    """
    differences, total = np.diff(values, 4, axis=0), np.nansum(values**2)
    count = np.isfinite(differences).sum()
    noise = np.nansum(differences**2) / (70.0 * max(count, 1)) * np.isfinite(values).sum()
    return float(np.clip(noise / max(total, TINY), *_ROUGH))
