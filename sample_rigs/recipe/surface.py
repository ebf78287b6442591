"""A smooth surface from a distance function: surface nets on a grid of uneven spacing.

A distance function maps points (N, 3) to (N,) distances, negative inside.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .bones import FloatArray

Distance = Callable[[FloatArray], FloatArray]
IntArray = NDArray[np.int64]
_STEP = 1e-4


def surface_net(distance: Distance, axes: tuple[FloatArray, FloatArray, FloatArray]) -> tuple[FloatArray, IntArray]:
    """Points (V, 3) and outward-facing quads (Q, 4) of the surface where the distance is zero.

    Args:
        distance: the shape; its surface must lie inside the grid.
        axes: the grid's coordinates along x, y and z, rising.
    """
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = distance(grid.reshape(-1, 3)).reshape(grid.shape[:3])
    cells = tuple(size - 1 for size in values.shape)
    sums, counts = np.zeros((*cells, 3)), np.zeros(cells)
    quads = []
    for axis in range(3):
        corners, points, inside_first = _crossings(grid, values, axis)
        ring = [corners + step for step in _ring(axis)]
        for cell in ring:
            place = tuple(cell.T)
            np.add.at(sums, place, points)
            np.add.at(counts, place, 1.0)
        flat = np.stack([np.ravel_multi_index(tuple(cell.T), cells) for cell in ring], axis=1)
        quads.append(np.where(inside_first[:, None], flat, flat[:, ::-1]))
    used = np.flatnonzero(counts.ravel())
    number = np.full(counts.size, -1)
    number[used] = np.arange(len(used))
    return sums.reshape(-1, 3)[used] / counts.ravel()[used, None], number[np.concatenate(quads)]


def _crossings(grid: FloatArray, values: FloatArray, axis: int) -> tuple[IntArray, FloatArray, NDArray[np.bool_]]:
    """Grid edges along one axis that cross the surface: first corner, crossing, and whether they lead outward."""
    first = np.take(values, range(values.shape[axis] - 1), axis)
    second = np.take(values, range(1, values.shape[axis]), axis)
    corners = np.argwhere((first < 0.0) != (second < 0.0))
    at = tuple(corners.T)
    share = (first[at] / (first[at] - second[at]))[:, None]
    start, end = grid[at], grid[tuple((corners + np.eye(3, dtype=int)[axis]).T)]
    return corners, start + share * (end - start), first[at] < 0.0


def _ring(axis: int) -> list[IntArray]:
    """The four cells around a grid edge, right-handed about its axis."""
    around = np.eye(3, dtype=int)[[(axis + 1) % 3, (axis + 2) % 3]]
    return [-i * around[0] - j * around[1] for i, j in ((1, 1), (0, 1), (0, 0), (1, 0))]


def gradient(distance: Distance, points: FloatArray) -> FloatArray:
    """(N, 3) the direction in which the distance grows, by central differences."""
    steps = _STEP * np.eye(3)
    return np.stack([distance(points + step) - distance(points - step) for step in steps], axis=1) / (2.0 * _STEP)


def settled(distance: Distance, points: FloatArray, edges: IntArray, rounds: int) -> FloatArray:
    """Points (V, 3) spread evenly along the surface: moved toward their neighbors' mean, then back onto the surface."""
    for _ in range(rounds):
        middle = spread(points, edges)
        normal = gradient(distance, points)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        move = middle - points
        points = points + 0.5 * (move - np.sum(move * normal, axis=1, keepdims=True) * normal)
        slope = gradient(distance, points)
        points = points - (distance(points) / np.sum(slope * slope, axis=1))[:, None] * slope
    return points


def spread(values: FloatArray, edges: IntArray) -> FloatArray:
    """The mean of the values (V, N) of each vertex's neighbors, by edges (E, 2)."""
    sums, counts = np.zeros_like(values), np.zeros(len(values))
    for here, there in (edges.T, edges.T[::-1]):
        np.add.at(sums, here, values[there])
        np.add.at(counts, here, 1.0)
    return sums / counts[:, None]


def edges_of(quads: IntArray) -> IntArray:
    """(E, 2) every edge of the quads once."""
    pairs = np.concatenate([quads[:, [i, (i + 1) % 4]] for i in range(4)])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def graded(stops: list[tuple[float, float]]) -> FloatArray:
    """Coordinates from the first stop to the last; each stop is (coordinate, spacing wanted there)."""
    places, sizes = np.array(stops).T
    fine = np.linspace(places[0], places[-1], 4000)
    density = 1.0 / np.interp(fine, places, sizes)
    count = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2.0 * np.diff(fine))])
    cells = round(float(count[-1]))
    return np.interp(np.linspace(0.0, count[-1], cells + 1), count, fine)
