"""Short gaps of markers: each goes on as it was seen to before and after."""

from typing import Final

import numpy as np
import numpy.typing as npt

from ..clip import BoolArray, FloatArray
from ..resample import hermite, slopes

# For so many seconds a marker may go on as it did when it was last seen.
_CARRIED: Final = 0.25


def bridge(positions: FloatArray, rate: float, longest: int) -> FloatArray:
    """(F, M, 3) positions with the gaps filled that are at most `longest` frames long, at a rate in Hz.

    A gap is filled where the marker is seen on both sides. The marker leaves and comes back with the speeds that it is
    seen to have; these carry it off the way from one place to the other for a quarter of a second and no longer.
    """
    before, after = _seen_around(~np.isnan(positions).any(axis=-1))
    steps = after - before
    fill = (steps > 1) & (before >= 0) & (after < len(positions))
    fill &= steps <= longest + 1
    frames, markers = np.nonzero(fill)
    before, after = before[fill], after[fill]
    slope = slopes(positions)
    start, end = positions[before, markers], positions[after, markers]
    steps = (after - before)[:, None]
    edges = _edge_slopes(slope[before, markers], slope[after, markers], (end - start) / steps, steps)
    leaving, coming = (_held(edge, steps, end - start, carry=_CARRIED * rate) for edge in edges)
    done = positions.copy()
    done[fill] = hermite(start, end, leaving, coming, (frames - before)[:, None] / steps)
    return done


def _seen_around(seen: BoolArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """For each sample (F, M) the frames on which its marker was last and is next seen.

    Its own where it is seen; -1 and F where there is none.
    """
    frames = np.arange(len(seen))[:, None]
    before = np.maximum.accumulate(np.where(seen, frames, -1), axis=0)
    after = np.minimum.accumulate(np.where(seen, frames, len(seen))[::-1], axis=0)[::-1]
    return before, after


def _edge_slopes(
    before: FloatArray, after: FloatArray, across: FloatArray, steps: npt.NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """(N, 3) slopes a frame at both ends of gaps, of the cubic through the two samples on either side (Newton).

    before, after: (N, 3) from the one of the two to the other; NaN where there is only one. across: (N, 3) over the gap
    of so many steps (N, 1).
    """
    # Where there is only one on a side, a parabola; on both sides, a straight line.
    mirrored = [np.where(np.isnan(other), across, 2.0 * across - other) for other in (after, before)]
    before, after = (np.where(np.isnan(own), other, own) for own, other in zip((before, after), mirrored, strict=True))
    bend = (before - 2.0 * across + after) * (steps / ((steps + 1.0) * (steps + 2.0)))
    leaving, coming = (slope + (across - slope) / (steps + 1.0) - bend for slope in (before, after))
    return leaving, coming


def _held(slope: FloatArray, steps: npt.NDArray[np.intp], straight: FloatArray, carry: float) -> FloatArray:
    """How far (N, 3) slopes a frame lead over whole gaps of so many steps (N, 1), cut back where that is too far.

    Up to three times the straight way a cubic does not turn round (Fritsch and Carlson, Monotone Piecewise Cubic
    Interpolation, 1980); else it goes as far as ``carry`` frames lead.
    """
    whole = slope * steps
    along = np.where(whole * straight > 0.0, 3.0 * np.abs(straight), 0.0)
    farthest = np.maximum(along, np.abs(slope) * carry)
    return np.asarray(np.sign(whole) * np.minimum(np.abs(whole), farthest))
