"""The least change of a motion that meets linear equations on some of its frames, smooth over time.

Finds the most probable change x of F frames, with D numbers each, that meets A x = b on the given rows, if changes are
drawn from a Gaussian process (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, chapter 2) about
an expected change. Its covariance has two parts:

* a change that is smooth over time and moves the masses as little as possible: a Matérn kernel of order 3/2, whose most
  probable curve is a spline of least acceleration, times the inverse of the mass matrix;
* a smaller change that is independent on each frame. It takes up noise in b, such as that of recordings. Its variance
  falls with the square of the mass of each number, so that light bones take up the noise and the trunk remains calm.

The Matérn process is Markov in its value and velocity, so a Kalman filter and a smoother find the change in a time that
is proportional to F (Hartikainen and Särkkä, *Kalman filtering and smoothing solutions to temporal Gaussian process
regression models*, 2010).
"""

from typing import Final

import numpy as np

from ..arrays import SINGLE, TINY, FloatArray, IntArray, squares

# The length of the smooth kernel, as a fraction of the time in which a change fades. With 0.33, a hand jerks if a hold
# moves it by 31 cm; with 1.0, limbs of some recorded walks jerk.
_LENGTH: Final = 0.5
# The smallest and the largest fraction of the variance for the part that is independent on each frame.
_ROUGH: Final = (1e-5, 0.1)
# The variance of the error of an exact equation, as a fraction of the variance of its values. So contradicting
# equations do not cause large changes.
EXACT: Final = SINGLE


class ChangeOverTime:
    """The distribution of the changes of F frames: their expected values and their covariance."""

    def __init__(
        self,
        frames: FloatArray,
        window: FloatArray,
        ease: float,
        mass: FloatArray,
        rough: float,
        units: FloatArray,
        expected: FloatArray,
    ) -> None:
        """Prepare frames (F,), in increasing order.

        window: (F,) factors on the deviations from the expected changes, such as 0 on frames that must not deviate.
        ease: frames over which a change fades in. mass: (D, D) the mass matrix. rough: the fraction of the variance
        that may change quickly. units: (D,) the amount that counts as much as one radian: 1 for angles, the size of the
        body for lengths. expected: (F, D) the mean of the changes.
        """
        self._window, self._expected = window, expected
        light = np.linalg.inv(mass)
        # The smooth part is this matrix times D independent processes of variance 1.
        self._mixing: FloatArray = np.linalg.cholesky(light)
        lightest, alike = 1.0 / (np.diag(mass) * units**2) ** 2, np.diag(light) / units**2
        # (D,) the variances of the part that is independent on each frame.
        self._rough: FloatArray = rough * alike.sum() / lightest.sum() * lightest * units**2
        # A process's value and velocity have the covariance `stationary`; over a time t they are multiplied by `moves`.
        rate, apart = np.sqrt(3.0) / (_LENGTH * max(ease, 1.0)), np.diff(frames, prepend=frames[0])
        turn = np.array([[rate, 1.0], [-(rate**2), -rate]])
        self._moves: FloatArray = np.exp(-rate * apart)[:, None, None] * (np.eye(2) + apart[:, None, None] * turn)
        self._stationary: FloatArray = np.diag([1.0, rate**2])
        self._noise: FloatArray = self._stationary - self._moves @ self._stationary @ np.swapaxes(self._moves, 1, 2)

    def least(
        self, on: IntArray, rows: FloatArray, wanted: FloatArray, slack: FloatArray | float = EXACT
    ) -> tuple[FloatArray, FloatArray]:
        """(F, D) the change for rows (N, D) with values (N,) on frames with the indices `on` (N,), and (N,) forces.

        slack: (N,) variances of the errors of the equations, as fractions of the variances of their values.
        """
        (count, columns), slack = self._expected.shape, np.broadcast_to(slack, on.shape)
        missing = wanted - (rows * self._expected[on]).sum(axis=1)
        # Frames that hardly deviate can't meet any equation.
        own = [np.flatnonzero((on == frame) & (self._window[frame] > SINGLE)) for frame in range(count)]
        mixed, rough = (self._window[on, None] * rows) @ self._mixing, self._window**2 * self._rough[:, None]
        bumps = rows * rough.T[on]
        errors = slack * (squares(mixed) + (bumps * rows).sum(axis=1))
        # Forward: the mean (2, D) of values and velocities, and covariance (2, 2, D, D), given the equations so far.
        mean, covariance = np.zeros((2, columns)), np.multiply.outer(self._stationary, np.eye(columns))
        pulls, gains = [], []
        pairs = np.einsum("fij,fkl->fikjl", self._moves, self._moves).reshape(-1, 4, 4)
        for frame in range(count):
            if frame:
                mean = self._moves[frame] @ mean
                covariance = (pairs[frame] @ covariance.reshape(4, -1)).reshape(covariance.shape)
                np.einsum("ijaa->ija", covariance)[...] += self._noise[frame][..., None]
            here, onto = own[frame], mixed[own[frame]]
            across = onto @ covariance[0]
            system = across[0] @ onto.T + bumps[here] @ rows[here].T
            np.einsum("ii->i", system)[...] += errors[here]
            # Products with a root of the inverse keep the covariance symmetric, so that rounding errors do not grow.
            root = np.linalg.inv(np.linalg.cholesky(system))
            half, pull = root @ across, root @ (missing[here] - onto @ mean[0])
            pulls.append(root.T @ pull)
            gains.append(root.T @ half)
            mean = mean + pull @ half
            covariance -= half.swapaxes(1, 2)[:, None] @ half
        # Backward: the forces of the equations, and the pull (2, D) of all later ones on each frame.
        forces, later, total = np.zeros(len(on)), np.zeros((2, columns)), np.zeros((count, 2, columns))
        for frame in reversed(range(count)):
            forces[own[frame]] = pulls[frame] - np.einsum("imd,id->m", gains[frame], later)
            later[0] += forces[own[frame]] @ mixed[own[frame]]
            total[frame] = later
            later = self._moves[frame].T @ later
        # Forward again: the smoothed values (Koopman, Biometrika 80, 1993).
        change, state = self._expected.copy(), np.zeros((2, columns))
        for frame in range(count):
            noise = self._noise[frame] if frame else self._stationary
            state = self._moves[frame] @ state + noise @ total[frame]
            change[frame] += self._window[frame] * (self._mixing @ state[0])
            change[frame] += rough[:, frame] * (forces[own[frame]] @ rows[own[frame]])
        return change, forces


def noise_share(values: FloatArray) -> float:
    """The fraction of noise in the variance of (F, n) values on successive frames; NaN for none.

    Noise of variance v gives fourth differences of variance 70 v. Motion that is smooth over five frames has almost
    none.
    """
    differences, total = np.diff(values, 4, axis=0), np.nansum(values**2)
    count = np.isfinite(differences).sum()
    noise = np.nansum(differences**2) / (70.0 * max(count, 1)) * np.isfinite(values).sum()
    return float(np.clip(noise / max(total, TINY), *_ROUGH))
