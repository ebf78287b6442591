"""A swing limit with any simple outline, and a range of twist."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import hypot, pi
from typing import NamedTuple

import numpy as np

from ..arrays import CLOSE, ROUNDING, FloatArray, lengths, squares
from ..backend import array
from ..backend.array import Condition, Quaternion, Scalar
from ..backend.protocol import Backend
from ..errors import LimitError
from ..readers import numbers, shown
from .base import Limit, Range, check_range, spread
from .swing_twist import Between, between, clamped, compose_arrays

Point = tuple[float, float]


class _Edges(NamedTuple):
    """The N edges of an outline.

    Attributes:
        starts: (N, 2) first corners.
        along: (N, 2) vectors to the other corners.
        normals: (N, 2) outward unit normals.
        low, high: (N,) the shares of an edge's length between which points face it: a little beyond a convex corner,
            not quite up to a concave one.
    """

    starts: FloatArray
    along: FloatArray
    normals: FloatArray
    low: FloatArray
    high: FloatArray


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
        _ = self._edges

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
    def edges(self) -> list[tuple[Point, Point]]:
        """The edges of the outline: pairs of successive corners."""
        return list(zip(self.points, self.points[1:] + self.points[:1], strict=True))

    @cached_property
    def _edges(self) -> _Edges:
        """The checked edges as arrays."""
        starts = np.array(self.points)
        count, ends = len(starts), np.roll(starts, -1, axis=0)
        along = ends - starts
        size = np.hypot(*along.T)
        # (N, N) on which side of an edge a corner is: more than zero to its left.
        away = starts - starts[:, None]
        left = along[:, None, 0] * away[..., 1] - along[:, None, 1] * away[..., 0]
        spans = left * np.roll(left, -1, axis=1) <= 0.0
        number = np.arange(count)
        are_neighbors = np.isin((number[:, None] - number) % count, (0, 1, count - 1))
        if (size <= ROUNDING).any() or (spans & spans.T & ~are_neighbors).any():
            raise LimitError("A polygon limit has edges that touch or cross: its outline must be simple")
        area = 0.5 * (starts[:, 0] * ends[:, 1] - ends[:, 0] * starts[:, 1]).sum()
        if abs(area) < ROUNDING:
            raise LimitError("A polygon limit has no area: its points must not be on one line")
        outward = np.sign(area)
        # The corner at the end of an edge is convex if the outline turns there as it does on the whole.
        beyond = np.where(outward * left[number, (number + 2) % count] > 0.0, CLOSE, -CLOSE)
        normals = outward * np.stack([along[:, 1], -along[:, 0]], axis=1) / size[:, None]
        return _Edges(starts, along, normals, -np.roll(beyond, 1) / size, 1.0 + beyond / size)

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
        best, best_x, best_z = x * 0.0 + np.inf, x, z
        for (ax, az), (bx, bz) in self.edges:
            dx, dz = bx - ax, bz - az
            share = backend.clamp(((x - ax) * dx + (z - az) * dz) / (dx * dx + dz * dz), 0.0, 1.0)
            px, pz = ax + share * dx, az + share * dz
            square = (x - px) ** 2 + (z - pz) ** 2
            nearer = square < best
            best = backend.select(nearer, square, best)
            best_x, best_z = backend.select(nearer, px, best_x), backend.select(nearer, pz, best_z)
        return backend.select(inside, x, best_x), backend.select(inside, z, best_z)

    def nearest_sides(self, swings: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F, 2, 2) outward unit normals of the two edges nearest to swings (F, 2) inside, and (F, 2) distances.

        The second edge matters at a convex corner. At a concave corner a step crosses only one of the edges, so the
        second does not count there; its distance is infinite.
        """
        starts, along, normals, low, high = self._edges
        away = swings[:, None] - starts
        share = (away * along).sum(axis=-1) / squares(along)
        # A point slightly beyond a convex corner still faces the edge. Use its distance from the edge's line, which
        # changes along the normal; the distance from the corner does not.
        held = np.clip(share, np.minimum(low, 0.0), np.maximum(high, 1.0))
        distances = lengths(away - held[..., None] * along)
        frames, first = np.arange(len(swings)), distances.argmin(axis=1)
        others = np.where((share >= low) & (share <= high), distances, np.inf)
        others[frames, first] = np.inf
        second = others.argmin(axis=1)
        gaps = np.stack([distances[frames, first], others[frames, second]], axis=1)
        return normals[np.stack([first, second], axis=1)], gaps
