"""The window around the leans of many poses: their convex hull on the chart, wider by a margin, with few corners."""

from math import cos, pi
from typing import Final

import numpy as np

from ...core.arrays import FloatArray
from ...human.soles import convex_hull

# A window has no more corners than this: they are edited by hand.
_MOST_CORNERS: Final = 12
# Points of the circle that stands for a margin, which they go round outside.
_ROUND: Final = 16
# Radians: leans on a line, or all alike, still get a window with some area.
_LEAST_MARGIN: Final = 1e-3


def window_around(leans: FloatArray, margin: float) -> FloatArray:
    """(C, 2) corners of a window that holds (F, 2) leans and a margin around them, counter-clockwise.

    At most twelve corners: edges are left out, and the two beside each drawn out to meet, as long as that adds least.
    Half a turn from rest nothing is outside, so corners stop there.
    """
    angles = 2.0 * pi * np.arange(_ROUND) / _ROUND
    circle = max(margin, _LEAST_MARGIN) / cos(pi / _ROUND) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    wide = (convex_hull(leans)[:, None] + circle).reshape(-1, 2)
    size = np.linalg.norm(wide, axis=1, keepdims=True)
    corners = convex_hull(np.asarray(wide * np.minimum(1.0, pi / np.maximum(size, pi))))
    while len(corners) > _MOST_CORNERS:
        ways = [(*_without(corners, edge), edge) for edge in range(len(corners))]
        added, tip, edge = min(ways, key=lambda way: way[0])
        if not np.isfinite(added):
            break
        rolled = np.roll(corners, -edge, axis=0)
        corners = np.array([tip, *rolled[2:]])
    return corners


def _without(corners: FloatArray, edge: int) -> tuple[float, FloatArray]:
    """What leaving out the edge from a corner to the next adds to the area, and (2,) where its neighbours meet."""
    before, first, second, after = (corners[(edge + step) % len(corners)] for step in (-1, 0, 1, 2))
    one, other = first - before, after - second
    slant = _cross(one, other)
    # Neighbours that go apart, or nearly, meet behind or far away.
    if slant <= 1e-9 * float(np.linalg.norm(one) * np.linalg.norm(other)):
        return np.inf, first
    tip = first + one * (_cross(second - first, other) / slant)
    if np.linalg.norm(tip) > pi:
        return np.inf, first
    return abs(_cross(tip - first, second - first)) / 2.0, tip


def _cross(one: FloatArray, other: FloatArray) -> float:
    return float(one[0] * other[1] - one[1] * other[0])
