"""Draws the path of a point dragged over time, before and after the drag."""

from typing import Final

import bpy
import numpy as np

from ....core.arrays import FloatArray
from ...edit.spread_drag import SpreadDrag
from .drawing import Drawing, colored, draw_over

_BEFORE: Final = (0.7, 0.7, 0.7, 0.5)
_AFTER: Final = (0.94, 0.89, 0.26, 1.0)
_WIDTHS: Final = (1.25, 2.5)


def lines_of(before: FloatArray, after: FloatArray) -> Drawing:
    """The two paths, (F, 3) each, as a drawing."""
    pairs = np.repeat(np.arange(len(before)), 2)[1:-1].reshape(-1, 2)
    ways = zip(_WIDTHS, (before, after), (_BEFORE, _AFTER), strict=True)
    return Drawing({width: colored([(way, pairs, color)]) for width, way, color in ways})


def draw_ways(drag: object) -> None:
    """Draw the paths of a drag over time into the current viewport; nothing for other drags."""
    if isinstance(drag, SpreadDrag):
        draw_over(lines_of(*drag.ways()), bpy.context)
