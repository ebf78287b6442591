"""Gaps in a recording: where markers are not seen, and filling them between what is seen on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..clip import BoolArray, Clip, FloatArray, missing_spans
from ..resample import hermite, slopes

# For so many seconds a marker may go on as it did when it was last seen.
_CARRIED: Final = 0.25


class Gap(NamedTuple):
    """Frames on which a marker is not seen, from ``first`` to ``last``, both included, counted from 0."""

    marker: str
    first: int
    last: int


def gaps(clip: Clip) -> tuple[Gap, ...]:
    """All gaps, marker by marker."""
    return tuple(_gaps(clip))


def interpolated(clip: Clip, longest: int | None = None) -> tuple[Clip, tuple[Gap, ...]]:
    """The clip with its gaps filled, and which were.

    A gap is filled where the marker is seen on both sides and, with ``longest``, has at most so many frames. The marker
    leaves and comes back with the speeds that it is seen to have; these carry it off the way from one place to the
    other for a quarter of a second and no longer.
    """
    filled = tuple(gap for gap in _gaps(clip) if _can_fill(gap, clip.frame_count, longest))
    return replace(clip, positions=bridged(clip.positions, clip.rate, longest)), filled


def bridged(positions: FloatArray, rate: float, longest: int | None = None) -> FloatArray:
    """The (F, M, 3) positions, at a rate in Hz, with the gaps filled that ``interpolated`` fills."""
    before, after = _seen_around(~np.isnan(positions).any(axis=-1))
    steps = after - before
    fill = (steps > 1) & (before >= 0) & (after < len(positions))
    if longest is not None:
        fill &= steps <= longest + 1
    frames, markers = np.nonzero(fill)
    before, after = before[fill], after[fill]
    slope = slopes(positions)
    start, end = positions[before, markers], positions[after, markers]
    steps = (after - before)[:, None]
    leaving, coming = (
        _held(slope[ends, markers], steps, end - start, carry=_CARRIED * rate) for ends in (before, after)
    )
    done = positions.copy()
    done[fill] = hermite(start, end, leaving, coming, (frames - before)[:, None] / steps)
    return done


def _gaps(clip: Clip) -> Iterator[Gap]:
    for place, name in enumerate(clip.names):
        for first, end in missing_spans(clip.positions[:, place]):
            yield Gap(name, first, end - 1)


def _can_fill(gap: Gap, frame_count: int, longest: int | None) -> bool:
    inside = gap.first > 0 and gap.last < frame_count - 1
    return inside and (longest is None or gap.last - gap.first < longest)


def _seen_around(seen: BoolArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """For each sample (F, M) the frames on which its marker was last and is next seen.

    Its own where it is seen; -1 and F where there is none.
    """
    frames = np.arange(len(seen))[:, None]
    before = np.maximum.accumulate(np.where(seen, frames, -1), axis=0)
    after = np.minimum.accumulate(np.where(seen, frames, len(seen))[::-1], axis=0)[::-1]
    return before, after


def _held(slope: FloatArray, steps: npt.NDArray[np.intp], straight: FloatArray, carry: float) -> FloatArray:
    """How far (N, 3) slopes a frame lead over whole gaps of so many steps (N, 1), cut back where that is too far.

    Up to three times the straight way a cubic does not turn round (Fritsch and Carlson, Monotone Piecewise Cubic
    Interpolation, 1980); else it goes as far as ``carry`` frames lead. Slopes that are not known become 0.
    """
    known = np.nan_to_num(slope)
    whole = known * steps
    along = np.where(whole * straight > 0.0, 3.0 * np.abs(straight), 0.0)
    farthest = np.maximum(along, np.abs(known) * carry)
    return np.asarray(np.sign(whole) * np.minimum(np.abs(whole), farthest))
