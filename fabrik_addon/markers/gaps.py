"""Fills gaps in markers: short ones by curves, long ones by other markers, all others by the motion."""

from typing import Final

import numpy as np

from ..core.arrays import ROUNDING, smoothstep
from ..core.rotations import (
    angle_between,
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from .clip import BoolArray, FloatArray, true_spans
from .resample import hermite
from .robust import outlier_weights

# Seconds for which a marker may keep the speed at which it was last seen.
_CARRIED: Final = 0.25


def bridge(positions: FloatArray, rate: float, longest: int) -> FloatArray:
    """(F, M, 3) positions with gaps of at most `longest` frames filled; rate: Hz.

    A gap is filled if the marker is seen on both sides. The marker leaves and returns with its visible speeds, which
    move it off the straight line for a quarter of a second at most.
    """
    seen, every = ~np.isnan(positions).any(axis=-1), np.arange(len(positions))[:, None]
    # For each sample, the frames on which its marker was last seen and will next be seen; -1 and F if there is none.
    before = np.maximum.accumulate(np.where(seen, every, -1), axis=0)
    after = np.minimum.accumulate(np.where(seen, every, len(seen))[::-1], axis=0)[::-1]
    fill = (after - before > 1) & (after - before <= longest + 1) & (before >= 0) & (after < len(positions))
    frames, markers = np.nonzero(fill)
    before, after = before[fill], after[fill]
    steps = (after - before)[:, None]
    start, end = positions[before, markers], positions[after, markers]
    across = (end - start) / steps
    # Slopes at both edges of the cubic through two samples on either side (Newton's form). A single sample on one side
    # is mirrored, which gives a parabola; single samples on both sides give a straight line.
    last = len(positions) - 1
    # Movement of a marker per frame before and after a gap; NaN if it is seen on one frame only.
    leaving = np.where(before[:, None] > 0, start - positions[np.maximum(before - 1, 0), markers], np.nan)
    coming = np.where(after[:, None] < last, positions[np.minimum(after + 1, last), markers] - end, np.nan)
    leaving, coming = (
        np.where(np.isnan(own), np.where(np.isnan(other), across, 2.0 * across - other), own)
        for own, other in ((leaving, coming), (coming, leaving))
    )
    bend = (leaving - 2.0 * across + coming) * (steps / ((steps + 1.0) * (steps + 2.0)))
    edges = []
    for edge in (leaving, coming):
        own = edge + (across - edge) / (steps + 1.0) - bend
        whole, straight = own * steps, end - start
        # A cubic stays monotone up to three times the straight slope (Fritsch and Carlson, Monotone Piecewise Cubic
        # Interpolation, 1980). Beyond that it goes as far as its speed takes it in the time above.
        along = np.where(whole * straight > 0.0, 3.0 * np.abs(straight), 0.0)
        farthest = np.maximum(along, np.abs(own) * (_CARRIED * rate))
        edges.append(np.sign(whole) * np.minimum(np.abs(whole), farthest))
    filled = positions.copy()
    filled[fill] = hermite(start, end, edges[0], edges[1], (frames - before)[:, None] / steps)
    return filled


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


# Predicts a hidden bone from other times of the take at which the rest of the body moved alike.
#
# People repeat their movements. Over a long gap the motion at its edges says little about a limb; the other bones say
# more, if the take shows them moving alike at another time. A Gaussian process from the poses and motion of the other
# bones to the hidden bone's rotation predicts it. It meets the gap's edges, since it also learns from the frames next
# to them. It is only used if it would have filled gaps of the same length at other times better than the edges alone.

# Seconds: poses of the other bones this long before and after describe their motion.
_LAG: Final = 0.08
# Seconds on either side of a gap from which motion is learned; more take time and add little. Then the largest number
# of their frames, and the number of frames next to the gap that are always used.
_WITHIN: Final = 4.0
_MOST_FRAMES: Final = 120
_BESIDE: Final = 12
_NOISE: Final = 1e-4
# Number of test gaps at other times, and the largest error of the prediction there, as a share of the plain fill's.
_TRIALS: Final = 4
_BETTER: Final = 0.7


def fill_from_motion(all_rotations: FloatArray, known: BoolArray, bone: int, longest: float, rate: float) -> FloatArray:
    """(F, 4) a bone's rotations from (F, J, 4), with gaps filled; long gaps from the motion of the other bones.

    known: (F, J), true where a bone's rotation is known. longest: frames, see `fill_rotations`; a gap is long if it
    exceeds a third of it. rate: frames a second.
    """
    filled = fill_rotations(all_rotations[:, [bone]], known[:, bone], longest)[:, 0]
    within, lag = round(_WITHIN * rate), max(1, round(_LAG * rate))
    for first, end in true_spans(~known[:, bone]):
        if 3 * (end - first) < longest or first == 0 or end == len(known):
            continue
        window = slice(max(first - within, 0), end + within)
        gap = slice(first - window.start, end - window.start)
        rotations = all_rotations[window, bone]
        features = _features(all_rotations[window], known[window], gap, lag)
        if features is None:
            continue
        usable = known[window, bone] & ~np.isnan(features).any(axis=1)
        if _is_better(rotations, usable, features, gap.stop - gap.start, longest):
            filled[first:end] = _predicted(rotations, usable, features, gap, filled[first:end])
    return filled


def _features(rotations: FloatArray, known: BoolArray, gap: slice, lag: int) -> FloatArray | None:
    """(F, N) poses before, at and after each frame, of the bones that are known over a gap.

    NaN if unknown; None if no bone is known.
    """
    others = np.flatnonzero(known[max(gap.start - lag, 0) : gap.stop + lag].all(axis=0))
    angles = angle_between(rotations[:, others], rotations[gap.start, others])
    moving = others[angles.max(axis=0, initial=0.0) > 1e-3]
    if not len(moving) or len(rotations) < 4 * lag:
        return None
    vectors = rotation_vector_from_quaternion(product(conjugate(rotations[gap.start, moving]), rotations[:, moving]))
    vectors[~known[:, moving]] = np.nan
    now = vectors.reshape(len(vectors), -1)
    before, after = np.roll(now, lag, axis=0), np.roll(now, -lag, axis=0)
    before[:lag], after[-lag:] = now[:lag], now[-lag:]
    return np.asarray(np.concatenate([before, now, after], axis=1))


def _is_better(rotations: FloatArray, usable: BoolArray, features: FloatArray, length: int, longest: float) -> bool:
    """Whether predictions fill test gaps of this length better than their edges alone."""
    need, errors = length + 2 * _BESIDE, []
    if len(usable) < need:
        return False
    fits = np.flatnonzero(np.convolve(usable, np.ones(need), mode="valid") == need) + _BESIDE
    for first in fits[np.linspace(0, len(fits) - 1, _TRIALS).round().astype(np.intp)] if len(fits) else ():
        part = slice(int(first), int(first) + length)
        hidden = usable.copy()
        hidden[part] = False
        plain = fill_rotations(rotations[:, None], hidden | ~usable, longest)[part, 0]
        predicted = _predicted(rotations, hidden, features, part, plain)
        errors.append([angle_between(guess, rotations[part]).mean() for guess in (plain, predicted)])
    if not errors:
        return False
    plain_error, predicted_error = np.mean(errors, axis=0)
    return bool(predicted_error < _BETTER * plain_error)


def _predicted(
    rotations: FloatArray, usable: BoolArray, features: FloatArray, part: slice, plain: FloatArray
) -> FloatArray:
    """(N, 4) rotations for a part of the take; the plain ones if no similar frame is known."""
    frames = np.flatnonzero(usable)
    beside = (frames >= part.start - _BESIDE) & (frames < part.stop + _BESIDE)
    others = frames[~beside]
    learned = np.union1d(frames[beside], others[:: max(1, -(-len(others) // _MOST_FRAMES))])
    base = rotations[part.start - 1]
    vectors = rotation_vector_from_quaternion(product(conjugate(base), rotations[learned]))
    middle = vectors.mean(axis=0)
    among = _squared_distances(features[learned], features[learned])
    toward = _squared_distances(features[part], features[learned])
    # The kernel's length scale: the usual distance to the most similar frame at another time.
    other_times = np.abs(learned[:, None] - learned) > part.stop - part.start
    nearest = np.where(other_times, among, np.inf).min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    usual = float(np.median(nearest)) if len(nearest) else 0.0
    steps = float(np.median(np.diag(among, 1))) if len(among) > 1 else 0.0
    size = max(4.0 * usual, 16.0 * steps, ROUNDING)
    kernel, cross = np.exp(-0.5 * among / size), np.exp(-0.5 * toward / size)
    kernel[np.diag_indices_from(kernel)] += _NOISE
    weights = np.linalg.solve(kernel, cross.T).T
    sure = np.clip((weights * cross).sum(axis=1), 0.0, 1.0)[:, None]
    found = middle + weights @ (vectors - middle)
    otherwise = rotation_vector_from_quaternion(product(conjugate(base), plain))
    return product(base, quaternion_from_rotation_vector(sure * found + (1.0 - sure) * otherwise))


def _squared_distances(left: FloatArray, right: FloatArray) -> FloatArray:
    """(N, M) mean squared differences of features (N, C) and (M, C)."""
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
    return np.asarray(np.maximum(squares, 0.0) / left.shape[1])
