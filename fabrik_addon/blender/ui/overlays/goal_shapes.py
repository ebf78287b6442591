"""The shapes that the overlay draws for goals, as plain arrays that need no window.

The form of a mark shows its meaning; color is only an addition. A met target has a diamond, a pin a box, and a pole
target a pyramid. A missed target has a cross, a missed pin a crossed box, and a thick line leads to both.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from ....core.arrays import TINY, FloatArray, IntArray

# Relative to the size of a mark.
_DOT: Final = 0.35
_DASHES: Final = 12
# The number of lines in a circle.
_AROUND: Final = 24

_DIAMOND: Final = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
_DIAMOND_LINES: Final = ((0, 2), (2, 1), (1, 3), (3, 0), (0, 4), (4, 1), (1, 5), (5, 0), (2, 4), (4, 3), (3, 5), (5, 2))
_BOX: Final = tuple((x, y, z) for x in (-0.7, 0.7) for y in (-0.7, 0.7) for z in (-0.7, 0.7))
_BOX_LINES: Final = ((0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (1, 3), (4, 6), (5, 7), (0, 4), (1, 5), (2, 6), (3, 7))
_PYRAMID: Final = ((0, 0, 1), (0.9, 0, -0.6), (-0.45, 0.8, -0.6), (-0.45, -0.8, -0.6))
_PYRAMID_LINES: Final = ((0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 1))
_CROSS: Final = tuple((x, y, z) for x in (-0.6, 0.6) for y in (-0.6, 0.6) for z in (-0.6, 0.6))
_CROSS_LINES: Final = ((0, 7), (1, 6), (2, 5), (3, 4))


class Goal(Enum):
    """The kind of a marked goal."""

    TARGET = "target"
    PIN = "pin"
    BEND = "bend target"


class Look(Enum):
    """The look of a line; the values are the names of colors."""

    MET = "met"
    MISSED = "missed"
    PINNED = "pinned"
    BEND = "bend"


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of one look: (N, 3) points, and (L, 2) indices of their ends."""

    look: Look
    points: FloatArray
    ends: IntArray


def goal_lines(goal: Goal, effector: FloatArray, place: FloatArray, size: float, *, met: bool) -> list[Lines]:
    """The lines for one goal.

    Args:
        goal: its kind.
        effector: (3,) the point that reaches for the goal; for a pole target, the joint from which a line points to it.
        place: (3,) the position of the goal.
        size: the size of the mark.
        met: whether the goal is met.
    """
    if goal is Goal.BEND:
        return [_mark(Look.BEND, _PYRAMID, _PYRAMID_LINES, place, size), dashed(Look.BEND, effector, place)]
    look = Look.MISSED if not met else Look.PINNED if goal is Goal.PIN else Look.MET
    box = [_mark(look, _BOX, _BOX_LINES, place, size)] if goal is Goal.PIN else []
    if met:
        return [*(box or [diamond(look, place, size)]), diamond(look, effector, size * _DOT)]
    return [*box, cross(look, place, size), Lines(look, np.stack([effector, place]), np.array([[0, 1]]))]


def diamond(look: Look, place: FloatArray, size: float) -> Lines:
    """A diamond around a position (3,)."""
    return _mark(look, _DIAMOND, _DIAMOND_LINES, place, size)


def cross(look: Look, place: FloatArray, size: float) -> Lines:
    """A cross of four lines at a position (3,)."""
    return _mark(look, _CROSS, _CROSS_LINES, place, size)


def dashed(look: Look, start: FloatArray, end: FloatArray) -> Lines:
    """A dashed line from one position (3,) to another."""
    shares = np.linspace(0.0, 1.0, 2 * _DASHES)[:, None]
    return Lines(look, start + shares * (end - start), np.arange(2 * _DASHES).reshape(-1, 2))


def capsule(look: Look, ends: FloatArray, aside: FloatArray, radius: float) -> Lines:
    """A capsule: rings at the ends (2, 3) of its segment, and two outlines along it; aside: (3,) not parallel to it."""
    along = ends[1] - ends[0]
    along = along / max(float(np.linalg.norm(along)), TINY)
    first = aside - (aside @ along) * along
    first /= max(float(np.linalg.norm(first)), TINY)
    second = np.cross(along, first)
    angle = np.linspace(0.0, 2.0 * np.pi, _AROUND, endpoint=False)[:, None]
    cosine, sine = radius * np.cos(angle), radius * np.sin(angle)
    rings = [end + cosine * first + sine * second for end in ends]
    # Each outline goes along one side, over one end, back along the other side and over the other end.
    near = np.where(sine[:, :1] > 0.0, ends[1], ends[0])
    outlines = [near + cosine * side + sine * along for side in (first, second)]
    points = np.stack([*rings, *outlines])
    starts = np.arange(points.shape[0] * _AROUND).reshape(-1, _AROUND)
    return Lines(look, points.reshape(-1, 3), np.stack([starts, np.roll(starts, -1, axis=1)], axis=-1).reshape(-1, 2))


def _mark(
    look: Look,
    corners: tuple[tuple[float, ...], ...],
    edges: tuple[tuple[int, int], ...],
    place: FloatArray,
    size: float,
) -> Lines:
    """A wireframe with `corners` around a position."""
    return Lines(look, place + size * np.array(corners, dtype=np.float64), np.array(edges))
