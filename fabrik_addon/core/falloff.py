"""How much of a change at one frame the neighboring frames get."""

from typing import Final

import numpy as np

from .arrays import FloatArray

CURVES: Final = ("SMOOTH", "SHARP", "FLAT")
# The share of a span that a flat falloff keeps at full height.
_FLAT: Final = 0.5


def falloff(
    frames: FloatArray, first: float, last: float, before: float, after: float, curve: str = "SMOOTH"
) -> FloatArray:
    """(F,) shares of a change: 1 from frame `first` to `last`, 0 beyond `before` and `after` frames outside them.

    frames: (F,). "SMOOTH" has zero speed and acceleration at its top and ends: of all curves from 1 to 0 the one of
    least jerk (Flash and Hogan, Journal of Neuroscience 5, 1985), whose acceleration is at most 5.8 / (span)². "SHARP"
    is its square, narrower at the top. "FLAT" holds the change for the inner half of the span.
    """
    given = np.asarray(frames, dtype=np.float64)
    times = given - np.clip(given, first, last)
    width = np.where(times < 0.0, before, after)
    distance = np.where(
        width > 0.0, np.abs(times) / np.where(width > 0.0, width, 1.0), np.where(times == 0.0, 0.0, 1.0)
    )
    if curve == "FLAT":
        distance = (distance - _FLAT) / (1.0 - _FLAT)
    share = 1.0 - np.clip(distance, 0.0, 1.0)
    smooth: FloatArray = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return smooth**2 if curve == "SHARP" else smooth
