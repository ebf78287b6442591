"""Fewer keys: the ones to keep so that straight lines between them stay within a tolerance on every frame."""

from collections.abc import Callable

import numpy as np

from ...core.arrays import FloatArray, IntArray
from ...core.rotations import angle_between
from ..rig.rotation_modes import from_channels


def rotation_keys(rotation_mode: str, values: FloatArray, angle: float) -> IntArray:
    """(K,) places among F keys of a rotation that are enough.

    rotation_mode: how to read the channels. values: (F, n), of successive frames without jumps. angle: radians that
    the rotation may be off on any of the frames, once Blender has interpolated linearly and normalised.
    """
    exact = from_channels(rotation_mode, values)

    def off(interpolated: FloatArray, frames: IntArray) -> FloatArray:
        return angle_between(from_channels(rotation_mode, interpolated), exact[frames])

    return _kept(values, off, angle)


def location_keys(values: FloatArray, distance: float) -> IntArray:
    """(K,) places among (F, 3) keys of a location that are enough to be off by no more than a distance."""
    return _kept(values, lambda interpolated, frames: np.linalg.norm(interpolated - values[frames], axis=1), distance)


def _kept(values: FloatArray, off: Callable[[FloatArray, IntArray], FloatArray], most: float) -> IntArray:
    """The first and the last key, and the worst one of every stretch that is too far off, until none is.

    After Douglas and Peucker (1973), all stretches at once; those that are near enough are not looked at again.
    off: (K,) how far (K, n) interpolated values are off on (K,) frames.
    """
    kept = np.unique([0, len(values) - 1])
    open_frames = np.arange(len(values))
    while len(open_frames):
        interpolated = np.stack([np.interp(open_frames, kept, column[kept]) for column in values.T], axis=1)
        errors = off(interpolated, open_frames)
        stretch = np.searchsorted(kept, open_frames, side="right")
        first_of_each = np.flatnonzero(np.diff(stretch, prepend=-1))
        largest = np.maximum.reduceat(errors, first_of_each)
        bad = np.repeat(largest > most, np.diff(first_of_each, append=len(stretch)))
        worst = bad & (errors == np.repeat(largest, np.diff(first_of_each, append=len(stretch))))
        kept = np.union1d(kept, open_frames[worst])
        open_frames = np.setdiff1d(open_frames[bad], kept, assume_unique=True)
    return kept
