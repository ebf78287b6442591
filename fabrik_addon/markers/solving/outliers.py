"""Finds markers that jump, swap, or are too far from any position that the body allows."""

from typing import Final

import numpy as np

from ...core.arrays import BoolArray, FloatArray, lengths
from ...core.rotations import angle_between
from ..clip import true_spans
from ..gaps import CARRIED, fill_points, fill_rotations
from ..signals import medians, outlier_weights
from .course import FROM_COURSE, NOISE, SPACING, prior_weight, usual_rotations
from .recording import FAR, ON_CURVE, Recording, near_flagged, parts

# For each round of smoothing jumps: the weight of the mean pose, relative to the course; the standard deviation of the
# Gaussian mean, in seconds; and the radians by which a jumping bone's rotation in a frame exceeds the mean's. With a
# spread of 0.1 s in all rounds, feet were 2 mm less accurate. Without the last round, folded forearms still jumped.
# With a threshold of 0.1 rad, a walk has jumps on most frames.
_ROUNDS: Final = ((4.0, 0.05, 0.15), (16.0, 0.05, 0.15), (64.0, 0.1, 0.3))
# The frame rate in Hz for which the jumps above hold; at lower rates people rotate more in a frame.
_USUAL_RATE: Final = 60.0
# A jump is real, and not smoothed, if smoothing multiplies the frame's RMS error (before it at least the take's median,
# and at least the usual noise) by more than this. With 1.5, a wrong jump of a dancer's foot remained. With a much
# larger factor, fast kicks lose up to 14°.
_FARTHER: Final = 2.0
# The mean around a jump uses the frames within this many standard deviations.
_BESIDE: Final = 2.0


def smooth_jumps(recording: Recording) -> None:
    """Solve frames around jumps again, in rounds, with the jumping bones held to their mean over nearby frames."""
    rotations, real = recording.solution.rotations, np.zeros(len(recording.expected), dtype=bool)
    allowed = None
    for counts, seconds, jump in _ROUNDS:
        least = jump * max(1.0, _USUAL_RATE / recording.rate)
        turns = _turns(rotations)
        if not (turns > least).any():
            return
        if allowed is None:
            # A frame with a large error before smoothing cannot show that a jump is real.
            rms = recording.rms(np.arange(len(recording.targets)))
            usual = max(float(np.median(rms)), NOISE * recording.solver.skeleton.size)
            allowed = np.where(rms > _FARTHER * usual, np.inf, _FARTHER * np.maximum(rms, usual))
        spread = seconds * recording.rate
        near = int(np.ceil(_BESIDE * spread))
        smooth = usual_rotations(rotations, spread)
        jumping = turns - _turns(smooth) > least
        easing = near_jumps(jumping, near) & ~real[:, None]
        frames = np.flatnonzero(easing.any(axis=1))
        before = recording.state(frames)
        weight = counts * prior_weight(recording, FROM_COURSE)
        for part in parts(frames):
            which = easing[part]
            expected = recording.legal(np.where(which[..., None], smooth[part], recording.expected[part]))
            former = recording.prior_weights[part]
            recording.expected[part] = expected
            recording.prior_weights[part] = np.where(which, np.maximum(former, weight), former)
            rotations[part] = np.where(which[..., None], expected, rotations[part])
            recording.solve_bridged(part, ON_CURVE)
        real[frames[recording.rms(frames) > allowed[frames]]] = True
        real = near_flagged(real, near)
        recording.restore(frames, before, real[frames])


def _turns(rotations: FloatArray) -> FloatArray:
    """(F - 1, J) radians between successive rotations (F, J, 4); in parts, to save memory."""
    turns = np.empty((len(rotations) - 1, rotations.shape[1]))
    for part in parts(np.arange(len(turns))):
        turns[part] = angle_between(rotations[part + 1], rotations[part])
    return turns


def near_jumps(jumping: BoolArray, near: int) -> BoolArray:
    """(F, J) frames at most `near` from a jump. jumping: (F - 1, J) whether a bone jumps after each frame."""
    return near_flagged(np.pad(jumping, ((1, 0), (0, 0))) | np.pad(jumping, ((0, 1), (0, 0))), near)


# A sample counts as good up to this many times its marker's usual distance from the pose.
_USUAL_TIMES: Final = 4.0
# It always counts as good within the first fraction of the skeleton's size (36 mm on a person), since skin moves that
# much. It never counts as good beyond the second (12 cm).
_ALWAYS_SHARE: Final = 0.015
_NEVER_SHARE: Final = 0.05
# Factors on the allowed distance, one for each round. The first is wide, so that one bad marker does not make its
# neighbors look bad.
_TOLERANCES: Final = (4.0, 1.0)
# A sample is an outlier if it is this many times farther off than allowed, once the good samples determine the pose.
_OUTLYING: Final = 2.0
# Weight of the course on frames with outliers: enough to prevent bones from folding.
_EXPECTED: Final = 0.05
# If fewer than this fraction of a frame's markers would remain, all of them are used.
_MIN_INLIERS: Final = 0.5
# A sample is compared with those on this many frames before and after it.
_REACH: Final = 3
# A sample is implausible if it is off by more than the first number, a fraction of the skeleton's size (10 cm on a
# person), and by more than the second one explains: the largest acceleration, in sizes per s² (a striking hand reaches
# 400 m/s²).
_FLUNG_SHARE: Final = 0.04
_FASTEST: Final = 170.0


def implausible_samples(targets: FloatArray, rate: float, size: float) -> BoolArray:
    """(F, E) whether a sample of targets (F, E, 3) is farther from those of nearby frames than a body can move.

    This is checked before the first solve. Otherwise an arm with two markers follows a wrong wrist marker, not its
    elbow. An implausible sample is far from the median of the samples on nearby frames, and from a line through them by
    repeated medians (Siegel, Robust Regression Using Repeated Medians, 1982).

    rate: frames per second. size: of the skeleton, in the targets' units.
    """
    away = np.zeros(targets.shape[:2], dtype=bool)
    least = size * max(_FLUNG_SHARE, _FASTEST / rate**2)
    jumps = np.zeros_like(away)
    jumps[1:] = lengths(np.diff(targets, axis=0)) > 0.5 * least
    frames, places = np.nonzero(near_flagged(jumps, _REACH) & ~np.isnan(targets).any(axis=2))
    steps = np.arange(-_REACH, _REACH + 1)[:, None]

    def far(usual: FloatArray) -> BoolArray:
        return np.asarray(lengths(targets[frames, places] - usual) > least)

    def near() -> FloatArray:
        """(7, N, 3) the samples around each sample; NaN outside the recording."""
        window = frames + steps
        outside = (window < 0) | (window >= len(targets))
        return np.where(outside[..., None], np.nan, targets[window % len(targets), places])

    suspects = far(medians(near()))
    frames, places = frames[suspects], places[suspects]
    around, between = near(), (steps - steps.T)[..., None, None]
    speeds = (around[:, None] - around) / np.where(between, between, np.nan)
    away[frames, places] = far(medians(around - steps[..., None] * medians(medians(speeds))))
    return away


def reject_implausible_samples(recording: Recording) -> None:
    """Reject implausible samples before anything is solved.

    A sample stays if others on the same bone, its parent or a child are implausible too: then the limb itself moves
    fast, as in a kick.
    """
    skeleton, bones = recording.solver.skeleton, np.array(recording.bones)
    child = skeleton.parents[bones][:, None] == bones
    together = (bones[:, None] == bones) | child | child.T
    away = implausible_samples(recording.targets, recording.rate, skeleton.size)
    recording.reject(away & (away.astype(np.int64) @ together.astype(np.int64) == 1))


def reject_outliers(recording: Recording) -> None:
    """Find samples that cannot be right, and solve their frames without them.

    These samples have already displaced the poses. So poses of short spans are first interpolated from neighboring
    frames. Distant samples then lose weight step by step (Geman and McClure's weights, graduated).
    """
    distances, size = recording.errors(), recording.solver.skeleton.size
    usual = _USUAL_TIMES * np.nan_to_num(medians(distances))
    allowed = np.clip(usual, _ALWAYS_SHARE * size, _NEVER_SHARE * size)
    # The rejected samples also affected the course up to the next knots.
    near = round(SPACING * recording.rate)
    good = ~near_flagged((distances > allowed).any(axis=1), near)
    frames = np.flatnonzero(~good)
    if not len(frames):
        return
    trusted = recording.state(frames)
    recording.prior_weights[frames] = _EXPECTED * prior_weight(recording, FROM_COURSE)
    longest, short = CARRIED * recording.rate, np.zeros_like(good)
    for first, end in true_spans(~good):
        short[first:end] = end - first <= longest and first > 0 and end < len(good)
    solution, filled = recording.solution, np.flatnonzero(short)
    rotations = recording.legal(fill_rotations(solution.rotations, good, recording.rate)[filled])
    solution.rotations[filled] = recording.expected[filled] = rotations
    if recording.root_heads is None:
        solution.root_location[filled] = fill_points(solution.root_location, good, recording.rate)[filled]
    for factor in _TOLERANCES:
        for part in parts(frames):
            weights = outlier_weights(recording.distances(part), factor * allowed) * recording.weights
            recording.solve_again(part, weights, recording.targets[part], FAR)
    wrong = recording.solution.errors[frames] > _OUTLYING * allowed
    left = (recording.seen[frames] & ~wrong).sum(axis=1)
    enough = left >= _MIN_INLIERS * recording.seen[frames].sum(axis=1)
    outliers = recording.outliers.copy()
    outliers[frames] = wrong & enough[:, None]
    changed = near_flagged(outliers.any(axis=1), near)[frames]
    # Restore the other frames: the course had so little weight that bones without limits may have folded.
    recording.restore(frames, trusted, ~changed)
    frames = np.union1d(frames[changed], recording.reject(outliers))
    recording.expected[frames] = recording.solution.rotations[frames]
    for part in parts(frames):
        recording.solve_bridged(part, FAR)
