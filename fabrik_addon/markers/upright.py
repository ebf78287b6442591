"""Which way is up for a recorded person, from the trunk and the floor."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..core.arrays import lengths
from .clip import FloatArray
from .mapping.labels import landmarks_of
from .mapping.landmarks import LANDMARKS
from .robust import middle_of

# An axis is up if the trunk is within 45° of it on at least this share of the frames.
_ALONG: Final = np.sqrt(0.5)
_MOST: Final = 0.7
# The largest distance of the floor from height 0, in meters.
FLOOR_OFF: Final = 0.3
# Meters: the pelvis of someone who is lying on the floor is at least this high.
_LYING: Final = 0.07
# Maximum number of frames to examine.
LOOKED_AT: Final = 2000


def up_of_markers(points: FloatArray, names: Sequence[str]) -> tuple[int, bool, bool] | None:
    """The result of `up_of_person` for (F, M, 3) labeled points, meters."""
    known = {name: LANDMARKS[landmark].part for name, (_, landmark) in landmarks_of(names).items()}
    if not known:
        return None
    points = points[:: max(1, len(points) // LOOKED_AT), [name in known for name in names]]

    def middle(*parts: str) -> FloatArray:
        """(F, 3) mean of the points on these parts; NaN if none of them is seen."""
        own = [known[name] in parts for name in names if name in known]
        return middle_of(np.moveaxis(points, 1, 0)[own])

    hips = middle("hips")
    return up_of_person(middle("shoulder", "chest", "head") - hips, np.fmin.reduce(points, axis=1), hips)


def up_of_person(trunks: FloatArray, lowest: FloatArray, hips: FloatArray) -> tuple[int, bool, bool] | None:
    """The up axis (1 for Y, 2 for Z), whether it points up, and whether the trunk shows it; None if unknown.

    The trunk of most people points up on most frames. If it does not, but the body stays on a floor at height 0 of Y or
    Z, the person lies, crawls or is upside down, and the floor shows the axis.

    trunks: (F, 3) from the hips toward the head, NaN if not seen. lowest: (F, 3) the smallest coordinates of the body,
    meters. hips: (F, 3) meters.
    """
    along = trunks / np.maximum(lengths(trunks), np.finfo(np.float64).tiny)[:, None]
    seen = np.isfinite(along).all(axis=1)
    if not seen.any():
        return None
    shares = {
        (axis, up): float(((1 if up else -1) * along[seen, axis] >= _ALONG).mean())
        for axis in (1, 2)
        for up in (True, False)
    }
    axis, up = max(shares, key=lambda key: shares[key])
    sure = shares[axis, up] >= _MOST
    near = np.abs(lowest[seen]) <= FLOOR_OFF
    if not (sure and up and near[:, axis].mean() >= _MOST):
        # Someone who is always upside down along Y is upright in front of a camera, whose Y points down.
        others = (2,) if sure and axis == 1 else (2, 1)
        near &= hips[seen] >= _LYING
        on_floor = [each for each in others if near[:, each].mean() >= _MOST]
        if on_floor:
            axis, up = max(on_floor, key=lambda each: shares[each, True]), True
        elif not sure:
            return None
    return axis, up, shares[axis, up] >= _MOST
