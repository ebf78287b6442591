"""Fills gaps in poses: short ones with curves between the known frames, long ones from the motion of other bones."""

from typing import Final

import numpy as np

from ..core.arrays import ROUNDING, BoolArray, FloatArray, smoothstep
from ..core.rotations import (
    angle_between,
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from .clip import true_spans
from .signals import hermite

# Seconds: in longer gaps, the speeds at the edges have less influence.
CARRIED: Final = 0.5
# Frames on either side of a gap that show the speeds at its edges.
_BESIDE: Final = 30
# Seconds: slower changes are motion, faster ones noise. With much less, noise counts as speed, and an arm swings out.
_MOTION: Final = 0.03


def fill_points(points: FloatArray, known: BoolArray, rate: float) -> FloatArray:
    """(F, C) points, or other values, with unknown frames filled; known: (F,). rate: frames per second."""
    filled = np.array(points)
    for first, end in _gaps(known):
        filled[first:end] = _across(points, known, first, end, rate)
    return filled


def fill_rotations(rotations: FloatArray, known: BoolArray, rate: float) -> FloatArray:
    """(F, K, 4) unit quaternions with unknown frames filled; known: (F,). rate: frames per second."""
    filled = np.array(rotations)
    for first, end in _gaps(known):
        near = slice(max(first - _BESIDE, 0), end + _BESIDE)
        base = rotations[first - 1] if first > 0 else rotations[end]
        vectors = rotation_vector_from_quaternion(product(conjugate(base), rotations[near]))
        across = _across(vectors, known[near], first - near.start, end - near.start, rate)
        filled[first:end] = product(base, quaternion_from_rotation_vector(across))
    return filled


def hold(values: FloatArray, known: BoolArray, ease: int) -> FloatArray:
    """(F, C) values that stay constant over a gap, and blend into the next known value at its end.

    known: (F,). ease: number of frames of the blend. Quaternions have to be normalized afterwards.
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


def _across(values: FloatArray, known: BoolArray, first: int, end: int, rate: float) -> FloatArray:
    """(N, K, C) values for the N frames of a gap; constant at the ends of the take.

    A cubic joins the known values. Its speeds at both ends are those of a smoothing spline through the known frames
    near the gap (Green and Silverman, Nonparametric Regression, 1994, section 2.3).
    """
    if first == 0 or end == len(values):
        edge = values[end] if first == 0 else values[first - 1]
        return np.broadcast_to(edge, (end - first, *values.shape[1:]))
    window = slice(max(first - _BESIDE, 0), end + _BESIDE)
    frames = window.start + np.flatnonzero(known[window])
    samples, steps, count = values[frames].reshape(len(frames), -1), np.diff(frames).astype(np.float64), len(frames) - 2
    # The book's matrices Q' and R: second divided differences, and scalar products of the curve's accelerations.
    rows = np.arange(count)
    second, gram = np.zeros((count, count + 2)), np.diag((steps[:-1] + steps[1:]) / 3.0)
    second[rows, rows], second[rows, rows + 2] = 1.0 / steps[:-1], 1.0 / steps[1:]
    second[rows, rows + 1] = -1.0 / steps[:-1] - 1.0 / steps[1:]
    gram[rows[:-1], rows[1:]] = gram[rows[1:], rows[:-1]] = steps[1:-1] / 6.0
    stiffness = (_MOTION * rate) ** 4
    bends = np.zeros(samples.shape)
    bends[1:-1] = np.linalg.solve(gram + stiffness * second @ second.T, second @ samples)
    smooth = samples - stiffness * second.T @ bends[1:-1]
    before = int(np.searchsorted(frames, first)) - 1
    after, span = before + 1, float(end - first + 1)
    carried = span * min(1.0, CARRIED * rate / span)
    across = (smooth[after] - smooth[before]) / span
    leaving = carried * (across - span * (2.0 * bends[before] + bends[after]) / 6.0)
    coming = carried * (across + span * (bends[before] + 2.0 * bends[after]) / 6.0)
    share = np.arange(1, end - first + 1)[:, None] / span
    curve = hermite(samples[before], samples[after], leaving, coming, share)
    return curve.reshape(-1, *values.shape[1:])


# Long gaps: a hidden bone is predicted from other times of the take, at which the rest of the body moved similarly.
#
# People repeat their movements: if the other bones move similarly at another time of the take, the limb probably does
# so too. A Gaussian process (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, chapter 2)
# predicts the hidden bone's rotation from the poses and motion of the other bones. It also uses the frames next to the
# edges, and is used only if it fills test gaps of the same length better than the edges alone do.

# Seconds: shorter gaps are filled from their edges alone.
_LONG: Final = CARRIED / 3.0
# Seconds: poses of the other bones this long before and after a frame describe their motion.
_LAG: Final = 0.08
# Motion is learned from frames within this many seconds of a gap.
_WITHIN: Final = 4.0
# At most _MAX_FRAMES of these frames are used, evenly spread, and always _ALWAYS frames next to each end of the gap.
_MAX_FRAMES: Final = 120
_ALWAYS: Final = 12
_NOISE: Final = 1e-4
# Number of test gaps at other times.
_TRIALS: Final = 4


def fill_from_motion(all_rotations: FloatArray, known: BoolArray, bone: int, rate: float) -> FloatArray:
    """(F, 4) the rotations of one bone with gaps filled, long gaps from the motion of the other bones.

    all_rotations: (F, J, 4). known: (F, J), true where a bone's rotation is known. rate: frames per second.
    """
    filled = fill_rotations(all_rotations[:, [bone]], known[:, bone], rate)[:, 0]
    within, lag = round(_WITHIN * rate), max(1, round(_LAG * rate))
    for first, end in true_spans(~known[:, bone]):
        if end - first < _LONG * rate or first == 0 or end == len(known):
            continue
        window = slice(max(first - within, 0), end + within)
        gap = slice(first - window.start, end - window.start)
        rotations = all_rotations[window, bone]
        features = _features(all_rotations[window], known[window], gap, lag)
        if features is None:
            continue
        usable = known[window, bone] & ~np.isnan(features).any(axis=1)
        if _is_better(rotations, usable, features, gap.stop - gap.start, rate):
            filled[first:end] = _predicted(rotations, usable, features, gap, filled[first:end])
    return filled


def _features(rotations: FloatArray, known: BoolArray, gap: slice, lag: int) -> FloatArray | None:
    """(F, N) poses before, at and after each frame, of the bones that are known throughout a gap.

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


def _is_better(rotations: FloatArray, usable: BoolArray, features: FloatArray, length: int, rate: float) -> bool:
    """Whether predictions fill test gaps of this length better than their edges alone."""
    need, errors = length + 2 * _ALWAYS, []
    if len(usable) < need:
        return False
    fits = np.flatnonzero(np.convolve(usable, np.ones(need), mode="valid") == need) + _ALWAYS
    for first in fits[np.linspace(0, len(fits) - 1, _TRIALS).round().astype(np.intp)] if len(fits) else ():
        part = slice(int(first), int(first) + length)
        hidden = usable.copy()
        hidden[part] = False
        plain = fill_rotations(rotations[:, None], hidden | ~usable, rate)[part, 0]
        predicted = _predicted(rotations, hidden, features, part, plain)
        errors.append([angle_between(guess, rotations[part]).mean() for guess in (plain, predicted)])
    if not errors:
        return False
    plain_error, predicted_error = np.mean(errors, axis=0)
    return bool(predicted_error < plain_error)


def _predicted(
    rotations: FloatArray, usable: BoolArray, features: FloatArray, part: slice, plain: FloatArray
) -> FloatArray:
    """(N, 4) predicted rotations of a bone on a part of the take; `plain` if no similar frame is known."""
    frames = np.flatnonzero(usable)
    beside = (frames >= part.start - _ALWAYS) & (frames < part.stop + _ALWAYS)
    others = frames[~beside]
    learned = np.union1d(frames[beside], others[:: max(1, -(-len(others) // _MAX_FRAMES))])
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
