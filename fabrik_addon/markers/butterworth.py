"""Taking the noise out of a recording without moving anything in time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .clip import Clip, ClipError, FloatArray, true_spans
from .gaps.spans import bridged


def low_pass(clip: Clip, cutoff: float, order: int = 4) -> Clip:
    """The clip without what is faster than ``cutoff`` (Hz).

    A Butterworth filter of the given order without delay: motion of the frequency f keeps 1 / √(1 + (f / cutoff)^(2
    order)) of its size, 0.71 at the cutoff. What is not seen stays so. A gap shorter than half a period of the cutoff
    is bridged for the filter, since nothing that passes could turn round in it; longer ones keep their two sides apart.
    The first and the last sample of each such stretch, and even motion, stay as they are.
    Raises ClipError for a cutoff that is not between 0 and half the clip's rate, or an order that is not 1 or more.
    """
    if not (math.isfinite(cutoff) and 0.0 < cutoff < 0.5 * clip.rate):
        raise ClipError(
            f"the cutoff must be over 0 and under half the rate ({0.5 * clip.rate:g} Hz), not {cutoff:g} Hz"
        )
    if order < 1:
        raise ClipError(f"the order of the filter must be 1 or more, not {order}")
    whole = bridged(clip.positions, clip.rate, longest=int(0.5 * clip.rate / cutoff))
    positions = np.full_like(whole, np.nan)
    for (first, end), markers in _stretches(whole).items():
        positions[first:end, markers] = _filtered(whole[first:end, markers], cutoff / clip.rate, order)
    positions[~clip.seen] = np.nan
    return replace(clip, positions=positions)


def _stretches(positions: FloatArray) -> dict[tuple[int, int], list[int]]:
    """The half-open spans on which markers are seen without a break, and the markers' places."""
    stretches: dict[tuple[int, int], list[int]] = {}
    for marker, seen in enumerate(~np.isnan(positions).any(axis=-1).T):
        for span in true_spans(seen):
            stretches.setdefault(span, []).append(marker)
    return stretches


def _filtered(samples: FloatArray, cutoff: float, order: int) -> FloatArray:
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
    gain = 1.0 / np.sqrt(1.0 + (frequencies / cutoff) ** (2 * order))
    smooth = np.fft.irfft(gain * np.fft.rfft(period, axis=0), n=len(period), axis=0)
    return np.asarray(line + smooth[:count])
