"""What a hidden bone did when the rest of the body last moved like this.

People repeat themselves. Over a long gap the way from its one edge to the other says little about what a limb did
between; the other bones say more wherever the take has shown them moving alike before or after. A Gaussian process
from how the other bones stand and move to the hidden bone's rotation finds that, and meets the gap's edges because the
frames about them are among those it knows. It is used only where it would have filled like gaps at other times of the
take better than the edges alone.
"""

from typing import Final

import numpy as np

from ...core.arrays import ROUNDING
from ...core.rotations import (
    angle_between,
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from ..clip import BoolArray, FloatArray, true_spans
from .long import fill_rotations

# How the other bones move is seen from where they are so many seconds before and after.
_LAG: Final = 0.08
# Learnt from is what was so many seconds before and after a gap: more frames say little more, and take time in long
# takes. At most so many of them, and so many on either side of the gap always.
_WITHIN: Final = 4.0
_MOST_FRAMES: Final = 120
_BESIDE: Final = 12
_NOISE: Final = 1e-4
# Gaps at so many other times are tried; the prediction has to be better by this factor.
_TRIALS: Final = 4
_BETTER: Final = 0.7


def fill_from_motion(all_rotations: FloatArray, known: BoolArray, bone: int, longest: float, rate: float) -> FloatArray:
    """(F, 4) a bone's rotations (F, J, 4), filled where they are not known (F, J), long gaps by what the others do.

    longest: frames, see `fill_rotations`; longer gaps than a third of it are looked at. rate: frames a second.
    """
    filled = fill_rotations(all_rotations[:, [bone]], known[:, bone], longest)[:, 0]
    within = round(_WITHIN * rate)
    for first, end in true_spans(~known[:, bone]):
        if 3 * (end - first) < longest or first == 0 or end == len(known):
            continue
        about = slice(max(first - within, 0), end + within)
        gap = slice(first - about.start, end - about.start)
        predicted = _from_motion(all_rotations[about], known[about], bone, gap, longest, rate, filled[first:end])
        filled[first:end] = predicted
    return filled


def _from_motion(
    all_rotations: FloatArray,
    known: BoolArray,
    bone: int,
    gap: slice,
    longest: float,
    rate: float,
    plain: FloatArray,
) -> FloatArray:
    """(N, 4) a bone's rotations over a gap among frames; the `plain` ones where the motion does not say it better."""
    rotations, mine = all_rotations[:, bone], known[:, bone]
    features = _features(all_rotations, known, gap, max(1, round(_LAG * rate)))
    if features is None:
        return plain
    usable = mine & ~np.isnan(features).any(axis=1)
    if not _is_better(rotations, usable, features, (gap.start, gap.stop), longest):
        return plain
    return _predicted(rotations, usable, features, gap, plain)


def _features(rotations: FloatArray, known: BoolArray, part: slice, lag: int) -> FloatArray | None:
    """(F, N) how the bones that are known throughout a part of the take, and about it, stand and move; else NaN."""
    seen = known[max(part.start - lag, 0) : part.stop + lag]
    others = np.flatnonzero(seen.all(axis=0))
    turned = angle_between(rotations[:, others], rotations[part.start, others])
    moving = others[turned.max(axis=0, initial=0.0) > 1e-3]
    if not len(moving) or len(rotations) < 4 * lag:
        return None
    base = rotations[part.start, moving]
    vectors = rotation_vector_from_quaternion(product(conjugate(base), rotations[:, moving]))
    vectors[~known[:, moving]] = np.nan
    now = vectors.reshape(len(vectors), -1)
    before, after = np.roll(now, lag, axis=0), np.roll(now, -lag, axis=0)
    before[:lag], after[-lag:] = now[:lag], now[-lag:]
    features: FloatArray = np.concatenate([before, now, after], axis=1)
    return features


def _is_better(
    rotations: FloatArray, usable: BoolArray, features: FloatArray, gap: tuple[int, int], longest: float
) -> bool:
    """Whether predicting fills like gaps at other times better than their edges alone."""
    length, errors = gap[1] - gap[0], []
    for first in _other_times(usable, length):
        part = slice(first, first + length)
        hidden = usable.copy()
        hidden[part] = False
        plain = fill_rotations(rotations[:, None], hidden | ~usable, longest)[part, 0]
        predicted = _predicted(rotations, hidden, features, part, plain)
        errors.append([angle_between(guess, rotations[part]).mean() for guess in (plain, predicted)])
    if not errors:
        return False
    plain_error, predicted_error = np.mean(errors, axis=0)
    return bool(predicted_error < _BETTER * plain_error)


def _other_times(usable: BoolArray, length: int) -> list[int]:
    """Where gaps of a length, with frames on either side, would fit, spread over the take."""
    need = length + 2 * _BESIDE
    if len(usable) < need:
        return []
    counts = np.convolve(usable, np.ones(need), mode="valid")
    fits = np.flatnonzero(counts == need) + _BESIDE
    if not len(fits):
        return []
    return [int(fits[place]) for place in np.linspace(0, len(fits) - 1, _TRIALS).round().astype(np.intp)]


def _predicted(
    rotations: FloatArray, usable: BoolArray, features: FloatArray, part: slice, plain: FloatArray
) -> FloatArray:
    """(N, 4) rotations for a part of the take, the `plain` ones where nothing alike has been seen."""
    learnt = _learnt(usable, part)
    base = rotations[part.start - 1]
    vectors = rotation_vector_from_quaternion(product(conjugate(base), rotations[learnt]))
    middle = vectors.mean(axis=0)
    among, toward = _squares(features[learnt], features[learnt]), _squares(features[part], features[learnt])
    size = _likeness(among, learnt, part.stop - part.start)
    kernel, cross = np.exp(-0.5 * among / size), np.exp(-0.5 * toward / size)
    kernel[np.diag_indices_from(kernel)] += _NOISE
    weights = np.linalg.solve(kernel, cross.T).T
    sure = np.clip((weights * cross).sum(axis=1), 0.0, 1.0)[:, None]
    found = middle + weights @ (vectors - middle)
    otherwise = rotation_vector_from_quaternion(product(conjugate(base), plain))
    return product(base, quaternion_from_rotation_vector(sure * found + (1.0 - sure) * otherwise))


def _learnt(usable: BoolArray, part: slice) -> FloatArray:
    """Frames to learn from: those beside the part, and of the others as many as is sensible."""
    frames = np.flatnonzero(usable)
    beside = (frames >= part.start - _BESIDE) & (frames < part.stop + _BESIDE)
    others = frames[~beside]
    step = max(1, -(-len(others) // _MOST_FRAMES))
    return np.union1d(frames[beside], others[::step])


def _squares(left: FloatArray, right: FloatArray) -> FloatArray:
    """(N, M) mean squared differences of features (N, C) and (M, C)."""
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
    return np.asarray(np.maximum(squares, 0.0) / left.shape[1])


def _likeness(among: FloatArray, frames: FloatArray, apart: int) -> float:
    """How far features of like moments are from each other: the usual distance to the likest one at another time."""
    other_times = np.abs(frames[:, None] - frames) > apart
    nearest = np.where(other_times, among, np.inf).min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    usual = float(np.median(nearest)) if len(nearest) else 0.0
    steps = float(np.median(np.diag(among, 1))) if len(among) > 1 else 0.0
    return max(4.0 * usual, 16.0 * steps, ROUNDING)
