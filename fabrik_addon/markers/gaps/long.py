"""Fills long gaps with curves that continue the motion before and after in value, speed and acceleration."""

from typing import Final

import numpy as np

from ...core.arrays import ROUNDING, smoothstep
from ...core.rotations import (
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from ..clip import BoolArray, FloatArray, true_spans
from ..robust import outlier_weights

# Over gaps longer than this (seconds), speed and acceleration at the edges count less.
CARRIED: Final = 0.5
# Number of frames next to a gap from which speed and acceleration are measured: a share of the gap's length, since
# their errors grow with it, within these bounds.
_BESIDE_SHARE: Final = 0.6
_LEAST_BESIDE: Final = 6
MOST_BESIDE: Final = 30
# A cubic through fewer frames than this would follow the noise.
_FOR_CUBIC: Final = 20
# The curve's degree grows by one for each third of these frames that exists. Without this, four frames at a take's
# beginning led a neck without its marker 170 degrees astray over 30 frames.
_FOR_DEGREE: Final = 3.0
# Frames farther from the cubic than this many times the median get almost no weight; and the number of rounds for that.
_FAR_OFF: Final = 4.0
_ROUNDS: Final = 4
# The least weight of a frame: if nearly all frames agree to the last digit, those alone would not determine a curve.
_LEAST_WEIGHT: Final = 1e-6
# Frames over which the filled values change from the known ones to the fitted curve.
_ONTO_COURSE: Final = 2.0


def fill_points(points: FloatArray, known: BoolArray, longest: float) -> FloatArray:
    """(F, C) points, or other values, with unknown frames filled; known: (F,).

    longest: over gaps of more frames than this, speed and acceleration at the edges count less.
    """
    filled = np.array(points)
    for first, end in _gaps(known):
        near = _near(first, end, len(points))
        across = _across(points[near, None], known[near], first - near.start, end - near.start, longest)
        filled[first:end] = across[:, 0]
    return filled


def fill_rotations(rotations: FloatArray, known: BoolArray, longest: float) -> FloatArray:
    """(F, K, 4) unit quaternions with unknown frames filled; known: (F,). longest: see `fill_points`."""
    filled = np.array(rotations)
    for first, end in _gaps(known):
        base = rotations[first - 1] if first > 0 else rotations[end]
        near = _near(first, end, len(rotations))
        vectors = rotation_vector_from_quaternion(product(conjugate(base), rotations[near]))
        across = _across(vectors, known[near], first - near.start, end - near.start, longest)
        filled[first:end] = product(base, quaternion_from_rotation_vector(across))
    return filled


def hold(values: FloatArray, known: BoolArray, ease: int) -> FloatArray:
    """(F, C) values kept constant over unknown frames, and blended to the next known value at the end of a gap.

    known: (F,). ease: number of frames of that blend. Quaternions have to be normalized afterwards.
    """
    filled = np.array(values)
    for first, end in _gaps(known):
        before = values[first - 1] if first > 0 else values[end]
        after = values[end] if end < len(values) else before
        if values.shape[1] == 4 and np.sum(before * after) < 0.0:
            after = -after
        left = (end - np.arange(first, end)) / (min(ease, end - first) + 1.0)
        share = smoothstep(np.clip(1.0 - left, 0.0, 1.0))[:, None]
        filled[first:end] = (1.0 - share) * before + share * after
    return filled


def _gaps(known: BoolArray) -> list[tuple[int, int]]:
    """Half-open spans of unknown frames; empty if nothing is known."""
    return true_spans(~known) if known.any() else []


def _near(first: int, end: int, count: int) -> slice:
    """A gap with the frames next to it from which it is filled."""
    return slice(max(first - MOST_BESIDE - 1, 0), min(end + MOST_BESIDE + 1, count))


def _across(values: FloatArray, known: BoolArray, first: int, end: int, longest: float) -> FloatArray:
    """(N, K, C) values for the frames of a gap; constant at the ends of the take."""
    if first == 0 or end == len(values):
        edge = values[end] if first == 0 else values[first - 1]
        return np.broadcast_to(edge, (end - first, *values.shape[1:]))
    span = float(end - first + 1)
    carried = span * min(1.0, longest / span)
    scale = np.array([1.0, carried, carried**2])[:, None, None]
    beside = int(np.clip(_BESIDE_SHARE * span, _LEAST_BESIDE, MOST_BESIDE))
    start = _edge(values, known, first - 1, -beside)
    stop = _edge(values, known, end, beside)
    steps = np.arange(1, end - first + 1)[:, None, None]
    s = steps / span
    # The quintic with value, speed and acceleration `a` at 0 and `b` at 1: least integral of squared jerk.
    a, b = start * scale, stop * scale
    rest = b - np.array([a.sum(axis=0) - 0.5 * a[2], a[1] + a[2], a[2]])
    third = 10.0 * rest[0] - 4.0 * rest[1] + 0.5 * rest[2]
    fourth = -15.0 * rest[0] + 7.0 * rest[1] - rest[2]
    fifth = 6.0 * rest[0] - 3.0 * rest[1] + 0.5 * rest[2]
    curve = np.asarray(a[0] + s * (a[1] + s * (0.5 * a[2] + s * (third + s * (fourth + s * fifth)))))
    # The last known values differ from the fitted curve.
    curve += np.exp(-steps / _ONTO_COURSE) * (values[first - 1] - start[0])
    curve += np.exp(-(span - steps) / _ONTO_COURSE) * (values[end] - stop[0])
    return curve


def _edge(values: FloatArray, known: BoolArray, edge: int, beside: int) -> FloatArray:
    """(3, K, C) value, speed and acceleration (per frame) at a gap's edge.

    From a robust fit to `beside` frames after the edge (negative: before it).
    """
    last = np.clip(edge + beside, 0, len(values) - 1)
    frames = np.arange(min(edge, last), max(edge, last) + 1)
    frames = frames[known[frames]]
    covered = int(_FOR_DEGREE * (np.ptp(frames) + 1) / abs(beside))
    degree = min(3 if len(frames) > _FOR_CUBIC else 2, len(frames) - 1, covered)
    powers = ((frames - edge) / abs(beside))[:, None] ** np.arange(degree + 1)
    wanted = np.swapaxes(values[frames], 0, 1)
    weights = np.ones(wanted.shape[:2])
    for _ in range(_ROUNDS):
        weighted = np.swapaxes(weights[..., None] * powers, 1, 2)
        fitted = np.linalg.solve(weighted @ powers, weighted @ wanted)
        away = np.linalg.norm(powers @ fitted - wanted, axis=2)
        allowed = _FAR_OFF * np.median(away, axis=1, keepdims=True) + ROUNDING
        weights = np.maximum(outlier_weights(away, allowed), _LEAST_WEIGHT)
    found = np.zeros((max(degree + 1, 3), *values.shape[1:]))
    found[: degree + 1] = np.swapaxes(fitted, 0, 1)
    per_frame = np.array([1.0, 1.0 / abs(beside), 2.0 / beside**2])
    return np.asarray(found[:3] * per_frame[:, None, None])
