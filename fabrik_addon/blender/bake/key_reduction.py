"""Removes keys so that straight lines between the remaining ones stay within a tolerance on every frame."""

from collections.abc import Callable

import numpy as np

from ...core.arrays import FloatArray, IntArray
from ...core.rotations import angle_between
from ..rig.rotation_modes import from_channels


def rotation_keys(rotation_mode: str, values: FloatArray, angle: float) -> IntArray:
    """(K,) indices of the keys of a rotation to keep, out of F keys.

    rotation_mode: how to read the channels. values: (F, n) on successive frames, without jumps. angle: the maximum
    error of the rotation in radians on any frame, after Blender's linear interpolation and normalization.
    """
    exact = from_channels(rotation_mode, values)

    def off(interpolated: FloatArray, frames: IntArray) -> FloatArray:
        return angle_between(from_channels(rotation_mode, interpolated), exact[frames])

    return _kept(values, off, angle)


def location_keys(values: FloatArray, distance: float) -> IntArray:
    """(K,) indices of the (F, 3) keys of a location to keep, so that the error is at most a distance."""
    return _kept(values, lambda interpolated, frames: np.linalg.norm(interpolated - values[frames], axis=1), distance)


def _kept(values: FloatArray, off: Callable[[FloatArray, IntArray], FloatArray], most: float) -> IntArray:
    """Indices of the keys to keep: the first, the last, and the worst key of each interval whose error is too large.

    Repeats until no error is too large, for all intervals at once (Douglas and Peucker 1973). Intervals whose error is
    small enough are not checked again. off: the (K,) errors of (K, n) interpolated values on (K,) frames.
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
