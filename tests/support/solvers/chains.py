"""Methods that move the points of a chain: the paper's Algorithm 1, Follow-the-Leader and Triangulation.

Plain versions for comparison, all written alike: one joint after the other on numpy points.
A chain is (n + 1, 3) points, root first, and its n lengths. Each function does one iteration and returns the points.
"""

import numpy as np


class PointChain:
    """A chain of points that one of the functions below moves toward its target."""

    def __init__(self, iteration, points, target):
        self.points = np.array(points, dtype=float)
        self.lengths = np.linalg.norm(np.diff(self.points, axis=0), axis=1)
        self.target = np.array(target, dtype=float)
        self._iteration = iteration

    @property
    def tips(self):
        """(1, 3) position of the end effector."""
        return self.points[-1:]

    @property
    def stretch(self):
        """The greatest change of a link's length, as a share of that length."""
        return np.abs(np.linalg.norm(np.diff(self.points, axis=0), axis=1) / self.lengths - 1.0).max()

    def advance(self):
        self.points = self._iteration(self.points, self.lengths, self.target)


def fabrik(points, lengths, target):
    """A full iteration of Algorithm 1 (steps 1.18 to 1.40), without its test of reach."""
    return follow(follow(points[::-1], lengths[::-1], target)[::-1], lengths, points[0])


def follow(points, lengths, lead):
    """Move the first point to `lead`, and each other one along its line to the one before, at its former distance."""
    moved = [lead]
    for point, length in zip(points[1:], lengths, strict=True):
        line = point - moved[-1]
        moved.append(moved[-1] + line * (length / np.sqrt(line @ line)))
    return np.array(moved)


def follow_the_leader(points, lengths, target):
    """Brown, Latombe and Montgomery (2004), two fixed nodes: mean of following either end."""
    led_by_tip = follow(points[::-1], lengths[::-1], target)[::-1]
    led_by_root = follow(points, lengths, points[0])
    return np.vstack([points[0], 0.5 * (led_by_tip + led_by_root)[1:-1], target])


def triangulation(points, lengths, target):
    """Müller-Cajar and Mukundan (2007): from the root on, each link makes a triangle.

    Its sides are the link, the straight rest of the chain and the line to the target. A rest that is too short makes
    the link point at the target, one that is too long makes it point away.
    """
    placed, directions = [points[0]], np.diff(points, axis=0) / lengths[:, None]
    for link, length in enumerate(lengths):
        rest = lengths[link + 1 :].sum()
        to_target = target - placed[-1]
        distance = np.sqrt(to_target @ to_target)
        cosine = (length**2 + distance**2 - rest**2) / (2.0 * length * distance)
        direction = lean(to_target / distance, directions[link], cosine)
        turn_rest(directions, link, direction)
        placed.append(placed[-1] + length * direction)
    return np.array(placed)


def lean(axis, toward, cosine):
    """The unit vector with this cosine to a unit `axis`, on the side of `toward`; along the axis beyond ±1."""
    if abs(cosine) >= 1.0:
        return axis * np.sign(cosine)
    aside = toward - axis * (axis @ toward)
    if aside @ aside < 1e-18:
        aside = np.roll(axis, 1) - axis * (axis @ np.roll(axis, 1))
    return axis * cosine + aside * np.sqrt((1.0 - cosine**2) / (aside @ aside))


def turn_rest(directions, link, direction):
    """Rotate a link to its new direction by the shortest arc, and the links below it with it, in place."""
    old = directions[link]
    axis, cosine = np.cross(old, direction), old @ direction
    if cosine < -1.0 + 1e-12:
        return
    carried = directions[link:]
    directions[link:] = carried * cosine + np.cross(axis, carried) + axis * (carried @ axis)[:, None] / (1.0 + cosine)
