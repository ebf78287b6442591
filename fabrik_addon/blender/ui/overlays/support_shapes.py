"""The shapes that the overlay draws for a body's balance, as plain arrays.

These are the outline of the support, the center of mass as a diamond, and a plumb line down to the plane of the
support. The line ends in a diamond inside the support. Outside, it ends in a cross, and all lines are thick.
"""

import numpy as np

from ....core.arrays import FloatArray
from .goal_shapes import Lines, Look, cross, dashed, diamond


def support_lines(corners: FloatArray, up: FloatArray, centre: FloatArray, size: float) -> list[Lines]:
    """The lines for one body, in world space.

    Args:
        corners: (N, 3) corners of its support, a convex outline.
        up: (3,) unit vector away from the ground.
        centre: (3,) its center of mass.
        size: the size of the marks.
    """
    foot = centre - ((centre - corners.mean(axis=0)) @ up) * up
    balanced = is_inside(corners, up, foot)
    look = Look.PINNED if balanced else Look.MISSED
    around = np.arange(len(corners))
    outline = Lines(look, corners, np.stack([around, np.roll(around, -1)], axis=1))
    mark = diamond if balanced else cross
    return [outline, diamond(look, centre, size), dashed(look, centre, foot), mark(look, foot, size)]


def is_inside(corners: FloatArray, up: FloatArray, point: FloatArray) -> bool:
    """Whether a point (3,) is above or below a convex outline (N, 3), in any orientation."""
    edges = np.roll(corners, -1, axis=0) - corners
    sides = np.cross(edges, point - corners) @ up
    return bool((sides >= 0.0).all() or (sides <= 0.0).all())
