"""A low-pass filter that removes noise from a recording without delaying it."""

import math
from typing import Final

import numpy as np

from .clip import ClipError, FloatArray, true_spans
from .gaps import bridge

# The usual second-order filter of biomechanics, applied forward and backward.
_ORDER: Final = 4


def low_pass(positions: FloatArray, rate: float, cutoff: float) -> FloatArray:
    """Low-pass filter positions (F, M, 3); rate and ``cutoff`` in Hz. A cutoff of 0 changes nothing.

    A Butterworth filter of order 4 without delay: motion of frequency f keeps 1 / √(1 + (f / cutoff)⁸) of its size,
    0.71 at the cutoff. Missing samples stay missing. A gap shorter than half a period of the cutoff is bridged for the
    filter, since no frequency that passes can reverse within it; a longer gap splits the recording in two. The first
    and last sample of each part, and motion at constant speed, do not change. Raises ClipError if the cutoff is half
    the rate or more.
    """
    if cutoff == 0.0:
        return positions
    if not (math.isfinite(cutoff) and 0.0 < cutoff < 0.5 * rate):
        raise ClipError(
            f"the cutoff must be more than 0 and less than half the rate ({0.5 * rate:g} Hz), not {cutoff:g} Hz"
        )
    whole = bridge(positions, rate, longest=int(0.5 * rate / cutoff))
    smooth = np.full_like(whole, np.nan)
    # Half-open spans on which markers are seen without a break, and the indices of those markers.
    stretches: dict[tuple[int, int], list[int]] = {}
    for marker, seen in enumerate(~np.isnan(whole).any(axis=-1).T):
        for span in true_spans(seen):
            stretches.setdefault(span, []).append(marker)
    for (first, end), markers in stretches.items():
        smooth[first:end, markers] = _filtered(whole[first:end, markers], cutoff / rate)
    smooth[np.isnan(positions).any(axis=-1)] = np.nan
    return smooth


def _filtered(samples: FloatArray, cutoff: float) -> FloatArray:
    """(N, M, 3) samples after the filter; cutoff: cycles per sample.

    The line from the first to the last sample is subtracted. The rest, followed by itself reversed and negated, is
    periodic without a step or kink, so its Fourier spectrum can be weighted directly.
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
