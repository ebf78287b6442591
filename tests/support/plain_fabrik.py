"""FABRIK as one would write it down from the paper in plain Python: what the benchmarks measure against.

Unlimited chains of points only. Tuples of floats and no classes: what Python does fastest.
"""

from math import dist


def solve(start, lengths, target, tolerance, most):
    """The points of a chain after Algorithm 1, and the sweeps that it took.

    Args:
        start: n + 1 points (x, y, z), root first.
        lengths: the n distances between them.
        target: where the last point is to go.
        tolerance: how near is near enough.
        most: sweeps after which to give up.
    """
    points, root = list(start), start[0]
    if dist(root, target) > sum(lengths):
        for index, length in enumerate(lengths):
            points[index + 1] = _on_line(points[index], target, length)
        return points, 1
    for sweep in range(most):
        if dist(points[-1], target) <= tolerance:
            return points, sweep
        points[-1] = target
        for index in range(len(lengths) - 1, -1, -1):
            points[index] = _on_line(points[index + 1], points[index], lengths[index])
        points[0] = root
        for index, length in enumerate(lengths):
            points[index + 1] = _on_line(points[index], points[index + 1], length)
    return points, most


def _on_line(anchor, point, length):
    """The point at a distance from the anchor on the line through another point."""
    ax, ay, az = anchor
    px, py, pz = point
    share = length / dist(anchor, point)
    return ax + (px - ax) * share, ay + (py - ay) * share, az + (pz - az) * share
