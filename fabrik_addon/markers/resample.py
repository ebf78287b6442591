"""Resamples a recording to another rate."""

import math
from dataclasses import replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from .clip import BoolArray, Clip, ClipError, FloatArray, check_rate

Timing = Literal["KEEP_TIME", "KEEP_FRAMES", "SET_SCENE_RATE"]

# Sample times closer than this share of a frame are the same.
_SAME_SAMPLE: Final = 1e-6


def retimed(clip: Clip, frame_rate: float, timing: Timing) -> Clip:
    """The clip with one sample for each of a scene's frames.

    frame_rate: the scene's, Hz. timing: "KEEP_TIME" resamples to the scene's rate. The others leave the clip unchanged:
    with "KEEP_FRAMES" its samples are played at the scene's rate, with "SET_SCENE_RATE" the scene gets the clip's rate.
    """
    if timing == "KEEP_TIME":
        return resample(clip, frame_rate)
    if timing not in ("KEEP_FRAMES", "SET_SCENE_RATE"):
        raise ClipError(f"the timing must be KEEP_TIME, KEEP_FRAMES or SET_SCENE_RATE, not {timing!r}")
    return clip


def resample(clip: Clip, rate: float) -> Clip:
    """The clip at another rate (Hz), from the same start time.

    Between two visible samples positions follow the Catmull-Rom cubic, with slopes from visible neighbours. Between a
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
    return replace(clip, rate=rate, positions=_between(clip.positions, before, where - before))


def slopes(positions: FloatArray) -> FloatArray:
    """(F, M, 3) movement per frame at each sample of positions (F, M, 3).

    From the neighbours on both sides; from one neighbour and the sample if the other is missing; NaN if both are.
    """
    steps = np.diff(positions, axis=0)
    nothing = np.full((1, *positions.shape[1:]), np.nan)
    back, ahead = np.concatenate((nothing, steps)), np.concatenate((steps, nothing))
    one_sided = np.where(np.isnan(back), ahead, back)
    both: BoolArray = ~np.isnan(back) & ~np.isnan(ahead)
    return np.where(both, 0.5 * (back + ahead), one_sided)


def _between(positions: FloatArray, before: npt.NDArray[np.intp], share: FloatArray) -> FloatArray:
    """(N, M, 3) positions at the fraction `share` between the samples ``before`` and the next ones."""
    last = len(positions) - 1
    after, s = np.minimum(before + 1, last), share[:, None, None]
    slope = slopes(positions)
    start, end = positions[before], positions[after]
    curve = hermite(start, end, slope[before], slope[after], s)
    on_sample: BoolArray = s == 0.0
    return np.where(on_sample, start, curve)


def hermite(
    start: FloatArray, end: FloatArray, start_slope: FloatArray, end_slope: FloatArray, s: FloatArray
) -> FloatArray:
    """The cubic from start to end with the given slopes there, at s from 0 to 1. All arrays broadcast."""
    line = (1.0 - s) * start + s * end
    bend = (1.0 - s) * (start_slope - (end - start)) - s * (end_slope - (end - start))
    return np.asarray(line + s * (1.0 - s) * bend)
