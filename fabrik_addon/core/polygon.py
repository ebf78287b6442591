"""The window of a polygon limit, on the chart of leans."""

from collections.abc import Sequence
from math import hypot, pi
from types import ModuleType

import numpy as np

from . import many
from .arrays import FloatArray, Scalar
from .errors import LimitError

_TINY = 1e-12
Point = tuple[float, float]


class Window:
    """A simple closed polygon of (x, z) leans, three points or more, in either winding, with or without rest inside.

    Raises:
        LimitError: for too few points, points out of range, no area, or edges that cross.
    """

    def __init__(self, points: Sequence[Point]) -> None:
        self.points = [(float(x), float(z)) for x, z in points]
        if len(self.points) < 3:
            raise LimitError(f"A polygon limit needs at least three points, not {len(self.points)}.")
        if not all(hypot(*point) <= pi + _TINY for point in self.points):
            raise LimitError("A polygon limit has a point that is not a lean: each must be within pi of rest.")
        self.edges = list(zip(self.points, self.points[1:] + self.points[:1], strict=True))
        if _crossing(self.edges):
            raise LimitError("A polygon limit has edges that touch or cross: its outline must be simple.")
        area = sum(ax * bz - bx * az for (ax, az), (bx, bz) in self.edges) / 2.0
        if abs(area) < _TINY:
            raise LimitError("A polygon limit has no area.")
        self._outward = 1.0 if area > 0 else -1.0

    def contains(self, numbers: ModuleType, x: Scalar, z: Scalar) -> Scalar:
        """Whether a lean is inside: a ray to the right crosses the outline an odd number of times."""
        inside = 0.0
        for (ax, az), (bx, bz) in self.edges:
            if az == bz:
                continue
            spans = numbers.either(numbers.both(az > z, bz <= z), numbers.both(bz > z, az <= z))
            crossing = ax + (z - az) * ((bx - ax) / (bz - az))
            inside = numbers.select(numbers.both(spans, x < crossing), 1.0 - inside, inside)
        return inside > 0.5

    def nearest(self, numbers: ModuleType, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
        """The lean itself where it is inside, else the nearest one on the outline."""
        inside = self.contains(numbers, x, z)
        nx, nz, _, _, _ = self._nearest_edge(numbers, x, z)
        return numbers.select(inside, x, nx), numbers.select(inside, z, nz)

    def wall(self, numbers: ModuleType, x: Scalar, z: Scalar) -> tuple[tuple[Scalar, Scalar], Scalar]:
        """The outward unit normal of the edge nearest to a point inside, and the distance to it."""
        _, _, square, normal_x, normal_z = self._nearest_edge(numbers, x, z)
        return (normal_x, normal_z), numbers.sqrt(square)

    def _nearest_edge(self, numbers: ModuleType, x: Scalar, z: Scalar) -> tuple[Scalar, ...]:
        """Nearest outline point, its squared distance, and the outward normal of its edge."""
        best: tuple[Scalar, ...] = (x, z, x * 0.0 + np.inf, x * 0.0, x * 0.0)
        for (ax, az), (bx, bz) in self.edges:
            dx, dz = bx - ax, bz - az
            length = hypot(dx, dz)
            share = numbers.clamp(((x - ax) * dx + (z - az) * dz) / length**2, 0.0, 1.0)
            px, pz = ax + share * dx, az + share * dz
            square = numbers.square(x - px) + numbers.square(z - pz)
            found = (px, pz, square, self._outward * dz / length, -self._outward * dx / length)
            nearer = square < best[2]
            best = tuple(numbers.select(nearer, new, old) for new, old in zip(found, best, strict=True))
        return best

    def sample(self, u: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Leans for points of the unit square: its box, with what falls outside moved onto the outline."""
        low, high = np.min(self.points, axis=0), np.max(self.points, axis=0)
        x, z = low[0] + u * (high[0] - low[0]), low[1] + v * (high[1] - low[1])
        return self.nearest(many, x, z)


def _crossing(edges: list[tuple[Point, Point]]) -> bool:
    """Whether two edges that are not neighbours have a point in common, or an edge has no length."""
    count = len(edges)
    if any(start == end for start, end in edges):
        return True
    return any(
        _meet(edges[i], edges[j]) for i in range(count) for j in range(i + 2, count) if not (i == 0 and j == count - 1)
    )


def _meet(first: tuple[Point, Point], second: tuple[Point, Point]) -> bool:
    (a, b), (c, d) = first, second
    return _side(a, b, c) * _side(a, b, d) <= 0 and _side(c, d, a) * _side(c, d, b) <= 0


def _side(a: Point, b: Point, point: Point) -> float:
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])
