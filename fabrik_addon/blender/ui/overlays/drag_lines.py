"""Draws the lines of a locked drag through the dragged point."""

from typing import Any, Final

import bpy
import numpy as np

from ....core.arrays import FloatArray
from ...posing.drag.mouse import DragInput
from .drawing import Drawing, colored, draw_over

# Pixels at the point's scale: farther from the point than any screen reaches.
_FAR: Final = 10000.0
_WIDTH: Final = 1.0


def locked_lines(said: DragInput) -> list[tuple[int, FloatArray]]:
    """The axes to draw, 0 to 2, and (2, 3) the ends of each one's line; none without a lock."""
    if not said.lock.axis:
        return []
    reach = _FAR * said.pixel
    return [(axis, said.place + reach * np.outer((-1.0, 1.0), said.frame[:, axis])) for axis in said.lock.fields]


def draw_locks(said: DragInput) -> None:
    """Draw the locked axes of a drag into the current viewport."""
    lines = locked_lines(said)
    if not lines:
        return
    context: Any = bpy.context
    theme = context.preferences.themes[0].user_interface
    colors = (theme.axis_x, theme.axis_y, theme.axis_z)
    parts = ((ends, np.array([[0, 1]]), (*colors[axis], 1.0)) for axis, ends in lines)
    draw_over(Drawing({_WIDTH: colored(parts)}), context)
