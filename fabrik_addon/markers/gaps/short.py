"""Fills short gaps: each marker continues its motion from before and after."""

from typing import Final

import numpy as np

from ..clip import FloatArray
from ..resample import hermite

# Seconds for which a marker may keep the speed at which it was last seen.
_CARRIED: Final = 0.25


def bridge(positions: FloatArray, rate: float, longest: int) -> FloatArray:
    """(F, M, 3) positions with gaps of at most `longest` frames filled; rate: Hz.

    A gap is filled if the marker is seen on both sides. The marker leaves and returns with its visible speeds, which
    move it off the straight line for a quarter of a second at most.
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
    # Slopes at both edges of the cubic through two samples on either side (Newton's form). A single sample on one side
    # is mirrored, which gives a parabola; single samples on both sides give a straight line.
    last = len(positions) - 1
    # Movement of a marker per frame before and after a gap; NaN if it is seen on one frame only.
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
        # A cubic stays monotone up to three times the straight slope (Fritsch and Carlson, Monotone Piecewise Cubic
        # Interpolation, 1980). Beyond that it goes as far as its speed takes it in the time above.
        along = np.where(whole * straight > 0.0, 3.0 * np.abs(straight), 0.0)
        farthest = np.maximum(along, np.abs(own) * (_CARRIED * rate))
        edges.append(np.sign(whole) * np.minimum(np.abs(whole), farthest))
    filled = positions.copy()
    filled[fill] = hermite(start, end, edges[0], edges[1], (frames - before)[:, None] / steps)
    return filled
