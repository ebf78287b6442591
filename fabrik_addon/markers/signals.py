"""Changes markers over time: resamples them, bridges short gaps, filters noise. Also weighs outliers.

Outliers are swapped, fallen or badly reconstructed markers.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from ..core.arrays import ROUNDING, FloatArray
from .clip import Clip, ClipError, check_rate, true_spans

Timing = Literal["KEEP_TIME", "KEEP_FRAMES", "SET_SCENE_RATE"]

# Sample times closer than this fraction of a frame are the same.
_SAME_SAMPLE: Final = 1e-6
# Seconds: in a gap, a marker moves by at most the distance that it covers in this time at its speed next to the gap.
_CARRIED: Final = 0.25
# The usual second-order filter of biomechanics, applied forward and backward.
_ORDER: Final = 4


def retimed(clip: Clip, frame_rate: float, timing: Timing) -> Clip:
    """The clip with one sample for each of a scene's frames.

    frame_rate: the scene's, Hz. timing: "KEEP_TIME" resamples to the scene's rate. The others leave the clip unchanged.
    With "KEEP_FRAMES" its samples are played at the scene's rate; with "SET_SCENE_RATE" the scene gets the clip's rate.
    """
    return resample(clip, frame_rate) if timing == "KEEP_TIME" else clip


def resample(clip: Clip, rate: float) -> Clip:
    """The clip at another rate (Hz), from the same first sample.

    Between two visible samples positions follow the Catmull-Rom cubic, with slopes from visible neighbors. Between a
    visible and a missing sample the marker stays missing, so that gaps are not filled. Samples at the same time do not
    change; a lower rate does not smooth. Raises ClipError if the rate is not positive and finite.
    """
    check_rate(rate)
    if clip.frame_count == 0 or rate == clip.rate:
        return replace(clip, rate=rate)
    last = clip.frame_count - 1
    count = math.floor(last * rate / clip.rate + _SAME_SAMPLE) + 1
    where = np.minimum(np.arange(count) * (clip.rate / rate), last)
    # Without rounding, a time exactly on a sample could fall into the gap next to it.
    near = np.rint(where)
    where = np.where(np.abs(where - near) < _SAME_SAMPLE, near, where)
    before = np.floor(where).astype(np.intp)
    return replace(clip, rate=rate, positions=between(clip.positions, before, where - before))


def between(positions: FloatArray, before: npt.NDArray[np.intp], share: FloatArray) -> FloatArray:
    """(N, M, C) positions between samples, on the Catmull-Rom cubic.

    positions: (F, M, C). before: (N,) index of the sample before. share: (N,) fraction of the time to the next sample.
    """
    last = len(positions) - 1
    after, s = np.minimum(before + 1, last), share[:, None, None]
    # The movement per frame at each sample is measured between the neighbors on both sides. If one is missing, the
    # sample itself is used instead.
    steps, nothing = np.diff(positions, axis=0), np.full((1, *positions.shape[1:]), np.nan)
    back, ahead = np.concatenate((nothing, steps)), np.concatenate((steps, nothing))
    slope = np.where(np.isnan(back), ahead, np.where(np.isnan(ahead), back, 0.5 * (back + ahead)))
    start, end = positions[before], positions[after]
    curve = hermite(start, end, slope[before], slope[after], s)
    return np.where(s == 0.0, start, curve)


def hermite(
    start: FloatArray, end: FloatArray, start_slope: FloatArray, end_slope: FloatArray, s: FloatArray
) -> FloatArray:
    """(...) values of Hermite's cubic from `start` (...) to `end` (...), at `s` (...), 0 to 1.

    start_slope, end_slope: (...) slopes at both ends, per unit of s. All arrays broadcast.
    """
    line = (1.0 - s) * start + s * end
    bend = (1.0 - s) * (start_slope - (end - start)) - s * (end_slope - (end - start))
    return np.asarray(line + s * (1.0 - s) * bend)


def bridge(positions: FloatArray, rate: float, longest: int) -> FloatArray:
    """(F, M, 3) positions with gaps of at most `longest` frames filled; rate: Hz.

    A gap is filled if the marker is seen on both sides. The curve begins and ends with the marker's speeds next to the
    gap. In long gaps these are reduced, so that the marker does not swing far out.
    """
    seen, every = ~np.isnan(positions).any(axis=-1), np.arange(len(positions))[:, None]
    # For each sample, the frames on which its marker was last seen and will next be seen; -1 and F if there is none.
    before = np.maximum.accumulate(np.where(seen, every, -1), axis=0)
    after = np.minimum.accumulate(np.where(seen, every, len(seen))[::-1], axis=0)[::-1]
    fill = (after - before > 1) & (after - before <= longest + 1) & (before >= 0) & (after < len(positions))
    frames, markers = np.nonzero(fill)
    before, after = before[fill], after[fill]
    steps = (after - before)[:, None]
    start, end = positions[before, markers], positions[after, markers]
    across = (end - start) / steps
    # Slopes at both edges of the cubic through two samples on either side (Newton's form). With single samples, the
    # curve is a parabola or a line.
    last = len(positions) - 1
    # A marker's movement per frame before and after a gap; NaN if it is seen on one frame only.
    leaving = np.where(before[:, None] > 0, start - positions[np.maximum(before - 1, 0), markers], np.nan)
    coming = np.where(after[:, None] < last, positions[np.minimum(after + 1, last), markers] - end, np.nan)
    leaving, coming = (
        np.where(np.isnan(own), np.where(np.isnan(other), across, 2.0 * across - other), own)
        for own, other in ((leaving, coming), (coming, leaving))
    )
    bend = (leaving - 2.0 * across + coming) * (steps / ((steps + 1.0) * (steps + 2.0)))
    edges = []
    for edge in (leaving, coming):
        own = edge + (across - edge) / (steps + 1.0) - bend
        whole, straight = own * steps, end - start
        # A cubic is monotone if its end slopes are at most three times that of the straight line (Fritsch and Carlson,
        # *Monotone Piecewise Cubic Interpolation*, 1980). A larger slope is limited to the distance that the marker
        # would move at its own speed in `_CARRIED` seconds.
        along = np.where(whole * straight > 0.0, 3.0 * np.abs(straight), 0.0)
        farthest = np.maximum(along, np.abs(own) * (_CARRIED * rate))
        edges.append(np.sign(whole) * np.minimum(np.abs(whole), farthest))
    filled = positions.copy()
    filled[fill] = hermite(start, end, edges[0], edges[1], (frames - before)[:, None] / steps)
    return filled


def low_pass(positions: FloatArray, rate: float, cutoff: float) -> FloatArray:
    """Low-pass filter positions (F, M, 3); rate and ``cutoff`` in Hz. A cutoff of 0 changes nothing.

    A Butterworth filter of order 4 without delay: motion of frequency f keeps 1 / √(1 + (f / cutoff)⁸) of its size,
    0.71 at the cutoff. Missing samples stay missing. Gaps shorter than half a period of the cutoff are bridged for the
    filter; longer gaps split the recording into parts. The first and last sample of each part, and motion at constant
    speed, do not change. Raises ClipError if the cutoff is half the rate or more.
    """
    if cutoff == 0.0:
        return positions
    if not (math.isfinite(cutoff) and 0.0 < cutoff < 0.5 * rate):
        raise ClipError(
            f"the cutoff must be more than 0 and less than half the rate ({0.5 * rate:g} Hz), not {cutoff:g} Hz"
        )
    whole = bridge(positions, rate, longest=int(0.5 * rate / cutoff))
    smooth = np.full_like(whole, np.nan)
    for marker, seen in enumerate(~np.isnan(whole).any(axis=-1).T):
        for first, end in true_spans(seen):
            smooth[first:end, marker] = _filtered(whole[first:end, marker], cutoff / rate)
    smooth[np.isnan(positions).any(axis=-1)] = np.nan
    return smooth


def _filtered(samples: FloatArray, cutoff: float) -> FloatArray:
    """(N, 3) samples after the filter; cutoff: cycles per sample.

    The line from the first to the last sample is subtracted. The rest, followed by itself reversed and negated, is
    periodic without a step or kink, so its Fourier spectrum can be weighted directly.
    """
    count = len(samples)
    if count < 3:
        return samples
    share = np.linspace(0.0, 1.0, count)[:, None]
    line = (1.0 - share) * samples[0] + share * samples[-1]
    beside = samples - line
    period = np.concatenate((beside, -beside[-2:0:-1]))
    frequencies = np.fft.rfftfreq(len(period))[:, None]
    gain = 1.0 / np.sqrt(1.0 + (frequencies / cutoff) ** (2 * _ORDER))
    smooth = np.fft.irfft(gain * np.fft.rfft(period, axis=0), n=len(period), axis=0)
    return np.asarray(line + smooth[:count])


# The median distance of a normally distributed 3D point from its mean, divided by the standard deviation on one axis.
MEDIAN_DISTANCE: Final = 1.5382


def outlier_weights(distances: FloatArray, limits: FloatArray) -> FloatArray:
    """Geman and McClure's weights: 1 at distance 0, ¼ at the limit, and near 0 far beyond it; 0 for NaN.

    distances: (F, M), NaN where not seen. limits: broadcasts to (F, M), in the same units.
    """
    shares = np.nan_to_num(distances / np.maximum(limits, ROUNDING), nan=np.inf)
    weights: FloatArray = 1.0 / (1.0 + np.minimum(shares, 1e6) ** 2) ** 2
    return np.where(np.isnan(distances), 0.0, weights)


def medians(values: FloatArray) -> FloatArray:
    """The medians of (F, ...) values over F, ignoring NaN; NaN where there is nothing else."""
    found = np.full(values.shape[1:], np.nan)
    some = ~np.isnan(values).all(axis=0)
    if some.any():
        found[some] = np.nanmedian(values[:, some], axis=0)
    return found


def middle_of(places: Sequence[FloatArray] | FloatArray) -> FloatArray:
    """(F, 3) the mean of the (F, 3) positions that are seen; NaN if none is."""
    counts = np.isfinite(places).sum(axis=0)
    return np.asarray(np.nansum(places, axis=0) / np.where(counts, counts, np.nan))
