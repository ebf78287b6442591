"""What the overlay draws of a body's balance, as plain arrays: what it stands on, and where its centre of mass is.

The outline of the support, the centre of mass as a diamond, and a plumb line from there down to the plane of the
support. It ends in a diamond while that is inside; outside it ends in a cross, and thick lines show both.
"""

import numpy as np

from ....core.arrays import FloatArray
from .goal_shapes import Lines, Look, cross, dashed, diamond


def support_lines(corners: FloatArray, up: FloatArray, centre: FloatArray, size: float) -> list[Lines]:
    """The lines for one body.

    Args:
        corners: (N, 3) of its support, a convex outline.
        up: (3,) away from the ground, of length 1.
        centre: (3,) its centre of mass.
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
    """Whether a point (3,) is above or below a convex outline (N, 3), wound either way round."""
    edges = np.roll(corners, -1, axis=0) - corners
    sides = np.cross(edges, point - corners) @ up
    return bool((sides >= 0.0).all() or (sides <= 0.0).all())
