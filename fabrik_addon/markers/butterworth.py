"""Taking the noise out of a recording without moving anything in time."""

import math
from typing import Final

import numpy as np

from .clip import ClipError, FloatArray, true_spans
from .gaps.short import bridge

# Twice the usual second-order filter, forward and back, as biomechanics uses it.
_ORDER: Final = 4


def low_pass(positions: FloatArray, rate: float, cutoff: float) -> FloatArray:
    """(F, M, 3) positions without what is faster than ``cutoff``; that and the rate in Hz. 0: as they are.

    A Butterworth filter of order 4 without delay: motion of the frequency f keeps 1 / √(1 + (f / cutoff)⁸) of its size,
    0.71 at the cutoff. What is not seen stays so. A gap shorter than half a period of the cutoff is bridged for the
    filter, since nothing that passes could turn round in it; longer ones keep their two sides apart. The first and the
    last sample of each such stretch, and even motion, stay as they are.
    Raises ClipError for a cutoff of half the rate or more.
    """
    if cutoff == 0.0:
        return positions
    if not (math.isfinite(cutoff) and 0.0 < cutoff < 0.5 * rate):
        raise ClipError(f"the cutoff must be over 0 and under half the rate ({0.5 * rate:g} Hz), not {cutoff:g} Hz")
    whole = bridge(positions, rate, longest=int(0.5 * rate / cutoff))
    smooth = np.full_like(whole, np.nan)
    # The half-open spans on which markers are seen without a break, and the markers' indices.
    stretches: dict[tuple[int, int], list[int]] = {}
    for marker, seen in enumerate(~np.isnan(whole).any(axis=-1).T):
        for span in true_spans(seen):
            stretches.setdefault(span, []).append(marker)
    for (first, end), markers in stretches.items():
        smooth[first:end, markers] = _filtered(whole[first:end, markers], cutoff / rate)
    smooth[np.isnan(positions).any(axis=-1)] = np.nan
    return smooth


def _filtered(samples: FloatArray, cutoff: float) -> FloatArray:
    """(N, M, 3) samples through the filter; cutoff: cycles a sample.

    What is left of the samples beside the straight line from first to last, followed by the same upside down and
    backwards, repeats without a step or a kink; so its spectrum can be weighed as it is.
    """
    count = len(samples)
    if count < 3:
        return samples
    share = np.linspace(0.0, 1.0, count)[:, None, None]
    line = (1.0 - share) * samples[0] + share * samples[-1]
    beside = samples - line
    period = np.concatenate((beside, -beside[-2:0:-1]))
    frequencies = np.fft.rfftfreq(len(period))[:, None, None]
    gain = 1.0 / np.sqrt(1.0 + (frequencies / cutoff) ** (2 * _ORDER))
    smooth = np.fft.irfft(gain * np.fft.rfft(period, axis=0), n=len(period), axis=0)
    return np.asarray(line + smooth[:count])
