"""Naive, obviously correct versions of the core's functions in plain Python: the reference of the tests."""

from itertools import pairwise
from math import dist


def algorithm_1(points, target, tolerance, most=100_000):
    """The paper's Algorithm 1, line for line; returns the new points and the iterations it took."""
    p, t = [tuple(point) for point in points], tuple(target)
    d = [dist(a, b) for a, b in pairwise(p)]
    if dist(p[0], t) > sum(d):
        for i in range(len(d)):
            p[i + 1] = mix(p[i], t, d[i] / dist(t, p[i]))
        return p, 1
    b, iterations = p[0], 0
    while dist(p[-1], t) > tolerance and iterations < most:
        p[-1] = t
        for i in range(len(d) - 1, -1, -1):
            p[i] = mix(p[i + 1], p[i], d[i] / dist(p[i + 1], p[i]))
        p[0] = b
        for i in range(len(d)):
            p[i + 1] = mix(p[i], p[i + 1], d[i] / dist(p[i], p[i + 1]))
        iterations += 1
    return p, iterations


def mix(a, b, share):
    """(1 - share) a + share b."""
    return tuple((1 - share) * x + share * y for x, y in zip(a, b, strict=True))
