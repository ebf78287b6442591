"""The share of a change at one frame that neighboring frames get."""

import numpy as np

from .arrays import FloatArray


def falloff(frames: FloatArray, first: float, last: float, before: float, after: float) -> FloatArray:
    """(F,) shares of a change: 1 from frame `first` to `last`, 0 beyond `before` and `after` frames outside them.

    frames: (F,). The curve has zero speed and acceleration at its top and ends: of all curves from 1 to 0 it has the
    least jerk (Flash and Hogan, Journal of Neuroscience 5, 1985). Its acceleration is at most 5.8 / (span)².
    """
    given = np.asarray(frames, dtype=np.float64)
    times = given - np.clip(given, first, last)
    width = np.where(times < 0.0, before, after)
    distance = np.where(
        width > 0.0, np.abs(times) / np.where(width > 0.0, width, 1.0), np.where(times == 0.0, 0.0, 1.0)
    )
    share = 1.0 - np.clip(distance, 0.0, 1.0)
    smooth: FloatArray = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return smooth
