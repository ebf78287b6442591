"""FABRIK written directly from the paper in plain Python: the reference of the benchmarks."""

from math import dist


def solve(start, lengths, target, tolerance, most):
    """The points of a chain after Algorithm 1, and the number of sweeps."""
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
