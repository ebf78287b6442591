"""A recording at another rate."""

import math
from dataclasses import replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from .clip import BoolArray, Clip, ClipError, FloatArray, check_rate

Timing = Literal["KEEP_TIME", "KEEP_FRAMES", "SET_SCENE_RATE"]

# Two sample times closer than this share of a frame are the same sample.
_SAME_SAMPLE: Final = 1e-6


def retimed(clip: Clip, frame_rate: float, timing: Timing) -> Clip:
    """The clip with one sample to each of a scene's frames.

    timing: "KEEP_TIME" resamples it to the scene's rate (Hz); with "KEEP_FRAMES" the samples are played at whatever
    the scene's rate is; with "SET_SCENE_RATE" the scene will take on the clip's: both leave it as it is.
    """
    if timing == "KEEP_TIME":
        return resample(clip, frame_rate)
    if timing not in ("KEEP_FRAMES", "SET_SCENE_RATE"):
        raise ClipError(f"the timing must be KEEP_TIME, KEEP_FRAMES or SET_SCENE_RATE, not {timing!r}")
    return clip


def resample(clip: Clip, rate: float) -> Clip:
    """The clip at another rate (Hz), from the same start time.

    Between two seen samples positions follow a cubic through both, with the slopes that their seen neighbours give
    (Catmull and Rom's); between a seen and an unseen one the marker stays unseen, so nothing is made up inside a gap.
    Samples at the same time stay exactly as they are; going to a lower rate does not smooth first.
    Raises ClipError for a rate that is not positive and finite.
    """
    check_rate(rate)
    if clip.frame_count == 0 or rate == clip.rate:
        return replace(clip, rate=rate)
    last = clip.frame_count - 1
    count = math.floor(last * rate / clip.rate + _SAME_SAMPLE) + 1
    where = np.minimum(np.arange(count) * (clip.rate / rate), last)
    # Rounding must not turn "exactly on a sample" into "a hair before it, inside a gap".
    near = np.rint(where)
    where = np.where(np.abs(where - near) < _SAME_SAMPLE, near, where)
    before = np.floor(where).astype(np.intp)
    return replace(clip, rate=rate, positions=_between(clip.positions, before, where - before))


def slopes(positions: FloatArray) -> FloatArray:
    """(F, M, 3) how far a marker moves a frame, at each sample.

    Between both neighbours; from the sample to one where the other is not seen; NaN where neither is.
    """
    steps = np.diff(positions, axis=0)
    nothing = np.full((1, *positions.shape[1:]), np.nan)
    back, ahead = np.concatenate((nothing, steps)), np.concatenate((steps, nothing))
    one_sided = np.where(np.isnan(back), ahead, back)
    both: BoolArray = ~np.isnan(back) & ~np.isnan(ahead)
    return np.where(both, 0.5 * (back + ahead), one_sided)


def _between(positions: FloatArray, before: npt.NDArray[np.intp], share: FloatArray) -> FloatArray:
    """(N, M, 3) positions a share of the way from the samples ``before`` to the next ones."""
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
    """The cubic from start to end with the given slopes there, at shares s of 0 to 1."""
    line = (1.0 - s) * start + s * end
    bend = (1.0 - s) * (start_slope - (end - start)) - s * (end_slope - (end - start))
    return np.asarray(line + s * (1.0 - s) * bend)
