"""A missing joint between two known ones (the paper, section 4): on the circle in which two spheres intersect."""

from ..arrays import TINY
from ..backend.protocol import Backend, Scalar, Vector


def joint_between(
    backend: Backend, first: Vector, second: Vector, to_first: Scalar, to_second: Scalar, previous: Vector
) -> Vector:
    """The position of a joint between two known neighbours, nearest to where it was before.

    The spheres about the neighbours, with the bone lengths as radii, intersect in a circle; the joint is its point
    nearest to `previous`. If they do not intersect, the joint is on the line through the neighbours, at its distance
    from the first, on the side that comes nearest to its distance from the second.

    Args:
        backend: array or scalar.
        first: a neighbour.
        second: the other one.
        to_first: the length of the bone to the first.
        to_second: the length of the bone to the second.
        previous: the former position of the joint, which selects the point of the circle. On the axis any point is
            used.
    """
    line = second - first
    distance = backend.sqrt(backend.maximum(line.length_squared, TINY))
    axis = line * (1.0 / distance)
    along = (distance * distance + to_first * to_first - to_second * to_second) * (0.5 / distance)
    along = backend.clamp(along, -to_first, to_first)
    radius = backend.sqrt(backend.maximum(to_first * to_first - along * along, 0.0))
    side = beside(previous - first, axis)
    other = beside(backend.Vector((axis.y, axis.z, axis.x)) + backend.Vector((0.5, 0.0, 0.0)), axis)
    side = backend.select(side.length_squared > TINY, side, other)
    scale = radius / backend.sqrt(backend.maximum(side.length_squared, TINY))
    return first + axis * along + side * scale


def beside(arm: Vector, axis: Vector) -> Vector:
    """The component of an arm perpendicular to a unit axis."""
    return arm - axis * arm.dot(axis)
