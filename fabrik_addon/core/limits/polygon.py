"""A swing limit with any simple outline, and a range of twist."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import dist, hypot, pi
from typing import TypeAlias

import numpy as np

from ..arrays import CLOSE, ROUNDING, FloatArray
from ..backend import array
from ..backend.protocol import Backend, Condition, Quaternion, Scalar
from ..errors import LimitError
from ..readers import numbers, shown
from .base import Limit, Range, check_range, spread
from .swing_twist import Between, between, clamped, compose_arrays

Point = tuple[float, float]
Edge = tuple[Point, Point]
_Three: TypeAlias = tuple[Scalar, Scalar, Scalar]


@dataclass(frozen=True)
class Polygon(Limit):
    """An outline of swings and a range of twist.

    Args:
        window: a simple closed outline of three or more (X, Z) swings in radians, in either winding; it need not
            contain rest.
        twist: (min, max) about Y, radians; a range of 2π or more is free.

    Raises:
        LimitError: naming the problem with outline or twist.
    """

    window: Sequence[tuple[float, float]]
    twist: Range = (-pi, pi)

    def __post_init__(self) -> None:
        check_range("A polygon's twist", self.twist)
        _ = self._sides

    @cached_property
    def points(self) -> list[Point]:
        """The checked corners of the outline: swings (x, z) in radians."""
        corners = numbers(self.window)
        if corners is None or (corners.shape != (0,) and corners.shape[1:] != (2,)):
            raise LimitError(f"A polygon limit's outline is {shown(self.window)}: give points of two angles")
        points = [(x, z) for x, z in corners.tolist()]
        if len(points) < 3:
            raise LimitError(f"A polygon limit has {len(points)} points: give at least three")
        if not all(hypot(*point) <= pi + ROUNDING for point in points):
            raise LimitError("A polygon limit has a point that is not a swing: each must be within 180° (pi) of rest")
        return points

    @cached_property
    def edges(self) -> list[Edge]:
        """The edges of the outline: pairs of successive corners."""
        return list(zip(self.points, self.points[1:] + self.points[:1], strict=True))

    @cached_property
    def _sides(self) -> list["_Side"]:
        """The checked edges as `_Side` objects."""
        edges = self.edges
        if _crossing(edges):
            raise LimitError("A polygon limit has edges that touch or cross: its outline must be simple")
        area = sum(ax * bz - bx * az for (ax, az), (bx, bz) in edges) / 2.0
        if abs(area) < ROUNDING:
            raise LimitError("A polygon limit has no area: its points must not be on one line")
        around = zip(edges[-1:] + edges[:-1], edges, edges[1:] + edges[:1], strict=True)
        return [_Side.between(*triple, outward=1.0 if area > 0 else -1.0) for triple in around]

    @cached_property
    def between(self) -> Between:
        """The ends of the range of twist, and the middle between them, in radians."""
        return between(self.twist)

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """Move the swing to the nearest point inside the outline, and the twist to the nearer end of its range."""
        return clamped(backend, rotation, self.nearest, self.between)

    def sample(self, unit_points: FloatArray) -> FloatArray:
        """(..., 4) swings spread over the outline, and twists over the range, from `unit_points` (..., 3).

        The unit square is mapped to the bounding box; swings outside the outline are moved onto it.
        """
        low, high = np.min(self.points, axis=0), np.max(self.points, axis=0)
        swings = low + unit_points[..., :2] * (high - low)
        x, z = self.nearest(array, swings[..., 0], swings[..., 1])
        return compose_arrays(np.asarray(x), np.asarray(z), spread(self.twist, unit_points[..., 2]))

    def outline(self, count: int) -> FloatArray:
        """(N, 2) swings in radians along the outline's edges, the same number on each, at least `count` in all."""
        corners = np.array(self.points)
        share = np.linspace(0.0, 1.0, -(-count // len(corners)), endpoint=False)[:, None]
        edges = corners[:, None] + share * (np.roll(corners, -1, axis=0) - corners)[:, None]
        return np.asarray(edges.reshape(-1, 2))

    def contains(self, backend: Backend, x: Scalar, z: Scalar) -> Condition:
        """Whether a swing is inside: a ray to the right crosses the outline an odd number of times."""
        inside: Scalar = 0.0
        for (ax, az), (bx, bz) in self.edges:
            if az == bz:
                continue
            spans = ((az > z) & (bz <= z)) | ((bz > z) & (az <= z))
            crossing = ax + (z - az) * ((bx - ax) / (bz - az))
            inside = backend.select(spans & (x < crossing), 1.0 - inside, inside)
        return inside > 0.5

    def nearest(self, backend: Backend, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
        """The swing itself if it is inside, else the nearest point on the outline."""
        inside = self.contains(backend, x, z)
        best: _Three = (x * 0.0 + np.inf, x, z)
        for edge in self._sides:
            found = edge.nearest(backend, x, z, 0.0, 1.0)
            best = _chosen(backend, found[0] < best[0], found, best)
        return backend.select(inside, x, best[1]), backend.select(inside, z, best[2])

    def nearest_sides(self, backend: Backend, x: Scalar, z: Scalar) -> list[tuple[tuple[Scalar, Scalar], Scalar]]:
        """The outward unit normals of the two edges nearest to a point inside, and the distances to them.

        The second edge matters at a convex corner. At a concave corner a step crosses only one of the edges, so the
        second does not count there.
        """
        nothing = x * 0.0
        first: _Three = (nothing + np.inf, nothing, nothing)
        second, counts = first, nothing > 1.0
        for edge in self._sides:
            # A point slightly beyond a convex corner still faces the edge. Use its distance from the edge's line, which
            # changes along the normal; the distance from the corner does not.
            square = edge.nearest(backend, x, z, min(edge.low, 0.0), max(edge.high, 1.0))[0]
            found: _Three = (square, nothing + edge.normal[0], nothing + edge.normal[1])
            faces = edge.faces(x, z)
            nearer = found[0] < first[0]
            other = _chosen(backend, nearer, first, found)
            usable = backend.select(nearer, counts, faces) & (other[0] < second[0])
            second = _chosen(backend, usable, other, second)
            first, counts = _chosen(backend, nearer, found, first), backend.select(nearer, faces, counts)
        return [((nx, nz), backend.sqrt(square)) for square, nx, nz in (first, second)]


@dataclass(frozen=True)
class _Side:
    """One edge of an outline.

    Attributes:
        start: its first corner.
        along: the vector to its other corner.
        normal: the outward unit normal.
        low, high: the shares of its length between which points face it: a little beyond a convex corner, not quite up
            to a concave one.
    """

    start: Point
    along: Point
    normal: Point
    low: float
    high: float

    @classmethod
    def between(cls, before: Edge, edge: Edge, after: Edge, outward: float) -> "_Side":
        """The side for an edge, from its neighbors and the winding of the outline."""
        (ax, az), (bx, bz) = edge
        length = hypot(bx - ax, bz - az)
        normal = (outward * (bz - az) / length, -outward * (bx - ax) / length)
        margins = [
            CLOSE / length * (1.0 if outward * turn > 0 else -1.0) for turn in (_turn(before, edge), _turn(edge, after))
        ]
        return cls((ax, az), (bx - ax, bz - az), normal, -margins[0], 1.0 + margins[1])

    def share(self, x: Scalar, z: Scalar) -> Scalar:
        """The projection of a point onto the edge, as a share of its length."""
        dx, dz = self.along
        return ((x - self.start[0]) * dx + (z - self.start[1]) * dz) / (dx * dx + dz * dz)

    def faces(self, x: Scalar, z: Scalar) -> Condition:
        """Whether a point faces the edge."""
        share = self.share(x, z)
        return (share >= self.low) & (share <= self.high)

    def nearest(self, backend: Backend, x: Scalar, z: Scalar, low: float, high: float) -> _Three:
        """The squared distance to the nearest point between two shares of the edge, and that point."""
        share = backend.clamp(self.share(x, z), low, high)
        px, pz = self.start[0] + share * self.along[0], self.start[1] + share * self.along[1]
        return (x - px) ** 2 + (z - pz) ** 2, px, pz


def _turn(first: Edge, second: Edge) -> float:
    """Positive if an outline turns left from one edge to the next, negative if it turns right."""
    return _side(first[0], first[1], second[1])


def _chosen(backend: Backend, condition: Condition, chosen: _Three, otherwise: _Three) -> _Three:
    a, b, c = (backend.select(condition, new, old) for new, old in zip(chosen, otherwise, strict=True))
    return a, b, c


def _crossing(edges: list[tuple[Point, Point]]) -> bool:
    """Whether two edges that are not neighbors have a point in common, or an edge has no length."""
    count = len(edges)
    if any(dist(start, end) <= ROUNDING for start, end in edges):
        return True
    return any(
        _meet(edges[i], edges[j]) for i in range(count) for j in range(i + 2, count) if not (i == 0 and j == count - 1)
    )


def _meet(first: tuple[Point, Point], second: tuple[Point, Point]) -> bool:
    (a, b), (c, d) = first, second
    return _side(a, b, c) * _side(a, b, d) <= 0 and _side(c, d, a) * _side(c, d, b) <= 0


def _side(a: Point, b: Point, point: Point) -> float:
    return (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])
