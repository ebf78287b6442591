"""The shapes of a body's balance in the overlay, as plain arrays: its support and its center of mass.

The outline of the support, the center of mass as a diamond, and a plumb line from there down to the plane of the
support. It ends in a diamond if that is inside; outside it ends in a cross, and thick lines show both.
"""

import numpy as np

from ....core.arrays import FloatArray
from .goal_shapes import Lines, Look, cross, dashed, diamond


def support_lines(corners: FloatArray, up: FloatArray, centre: FloatArray, size: float) -> list[Lines]:
    """The lines for one body, in world space.

    Args:
        corners: (N, 3) of its support, a convex outline.
        up: (3,) away from the ground, of length 1.
        centre: (3,) its center of mass.
        size: of the marks.
    """
    foot = centre - ((centre - corners.mean(axis=0)) @ up) * up
    balanced = is_inside(corners, up, foot)
    look = Look.PINNED if balanced else Look.MISSED
    around = np.arange(len(corners))
    outline = Lines(look, corners, np.stack([around, np.roll(around, -1)], axis=1))
    mark = diamond if balanced else cross
    return [outline, diamond(look, centre, size), dashed(look, centre, foot), mark(look, foot, size)]


def is_inside(corners: FloatArray, up: FloatArray, point: FloatArray) -> bool:
    """Whether a point (3,) is above or below a convex outline (N, 3), in either winding."""
    edges = np.roll(corners, -1, axis=0) - corners
    sides = np.cross(edges, point - corners) @ up
    return bool((sides >= 0.0).all() or (sides <= 0.0).all())
