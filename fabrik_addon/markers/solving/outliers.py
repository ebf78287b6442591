"""Samples that cannot be right: swapped, fallen and badly reconstructed markers."""

from typing import Final

import numpy as np

from ...core.arrays import IntArray
from ..clip import BoolArray, FloatArray, true_spans
from ..gaps.long import CARRIED, fill_points, fill_rotations
from ..robust import outlier_weights, usual_distances
from .course import FROM_COURSE, SPACING, prior_weight
from .recording import Recording, about

# A sample may be so many times farther off than its marker usually is, but not more than one share of the skeleton's
# size (9 cm of a person) and not less than another (27 mm): skin moves by as much.
_USUAL_TIMES: Final = 4.0
_ALWAYS_SHARE: Final = 0.015
_NEVER_SHARE: Final = 0.05
# Tolerance begins wide, so that one bad marker does not make its neighbours look bad; a step between the two found no
# more of 140 samples that were put elsewhere.
_TOLERANCES: Final = (4.0, 1.0)
# Farther off than so many times what is allowed, once the good ones have the pose: an outlier.
_OUTLYING: Final = 2.0
# What the course that is expected still counts on frames with such samples: enough not to fold anew.
_EXPECTED: Final = 0.05
# With fewer of a frame's markers than this left, all of them count.
_LEAST_INLIERS: Final = 0.5
# Flung away for up to three frames is what is off the middle of the seven about it by this share of the size (10 cm of
# a person), or by as much as a hand that hits turns within a frame (400 m/s², of a person's size).
_REACH: Final = 3
_FLUNG_SHARE: Final = 0.04
_FASTEST: Final = 170.0


def flung(targets: FloatArray, rate: float, size: float) -> BoolArray:
    """(F, E) samples of targets (F, E, 3) that are away from the ones before and after as no body moves.

    Of an arm with an elbow and a wrist alone a pose would rather follow a wrong wrist and leave the elbow out (80
    degrees in a frame). rate: frames a second. size: of the skeleton, in the targets' units.
    """
    away = np.zeros(targets.shape[:2], dtype=bool)
    least = size * max(_FLUNG_SHARE, _FASTEST / rate**2)
    jumps = np.zeros_like(away)
    jumps[1:] = np.linalg.norm(np.diff(targets, axis=0), axis=2) > 0.5 * least
    frames, places = np.nonzero(about(jumps, _REACH) & ~np.isnan(targets).any(axis=2))
    window = np.clip(frames[:, None] + np.arange(-_REACH, _REACH + 1), 0, len(targets) - 1)
    usual = np.nanmedian(targets[window, places[:, None]], axis=1)
    away[frames, places] = np.linalg.norm(targets[frames, places] - usual, axis=1) > least
    return away


def leave_out_flung(recording: Recording) -> None:
    """Leave samples out, before anything is solved, that are flung away for a moment.

    Where others on the same bone, or on the next one, are flung with them it is the limb that moves: a kick.
    """
    skeleton, bones = recording.solver.skeleton, np.array(recording.bones)
    above = skeleton.parents[bones]
    child = above[:, None] == bones
    together = (bones[:, None] == bones) | child | child.T
    away = flung(recording.targets, recording.rate, skeleton.size)
    recording.outliers = away & (away.astype(np.int64) @ together.astype(np.int64) == 1)
    if recording.outliers.any():
        recording.bridge()


def reject_outliers(recording: Recording) -> None:
    """Find the samples that cannot be right, and solve their frames without them.

    Their frames are solved with less and less weight for what is far off (Geman and McClure's, graduated).
    """
    distances = recording.distances()
    allowed = _allowed(recording.solver.skeleton.size, distances)
    # What is expected there, and as far beside as the next knot of the course, was told by the same samples.
    near = round(SPACING * recording.rate)
    frames = np.flatnonzero(about((distances > allowed).any(axis=1), near))
    if not len(frames):
        return
    trusted = recording.state(frames)
    recording.prior_weights[frames] = _EXPECTED * prior_weight(recording, FROM_COURSE)
    _solve_without(recording, frames, allowed)
    wrong = recording.distances(frames) > _OUTLYING * allowed
    doubtful = frames[_more_than_beside(wrong, frames, near)]
    if len(doubtful):
        _solve_without(recording, doubtful, allowed)
        wrong = recording.distances(frames) > _OUTLYING * allowed
    left = (recording.seen[frames] & ~wrong).sum(axis=1)
    enough = left >= _LEAST_INLIERS * recording.seen[frames].sum(axis=1)
    recording.outliers[frames] = wrong & enough[:, None]
    changed = about(recording.outliers.any(axis=1), near)[frames]
    # With so little of the course, keypoints on a rig without limits were folded anew by 107 degrees a frame.
    recording.put_back(frames, trusted, ~changed)
    before = recording.bridged
    recording.bridge()
    beside = np.flatnonzero((np.nan_to_num(before) != np.nan_to_num(recording.bridged)).any(axis=(1, 2)))
    frames = np.union1d(frames[changed], beside)
    recording.expected[frames] = recording.solution.rotations[frames]
    recording.solve_bridged(frames, far=True)


def _solve_without(recording: Recording, frames: IntArray, allowed: FloatArray) -> None:
    """Solve frames, begun from those beside, with less and less weight for samples farther off than is allowed (E,)."""
    _start_from_beside(recording, frames)
    for factor in _TOLERANCES:
        weights = outlier_weights(recording.distances(frames), factor * allowed) * recording.weights
        recording.solve_again(frames, weights, recording.targets[frames], far=True)


def _more_than_beside(wrong: BoolArray, frames: IntArray, near: int) -> BoolArray:
    """(N,) which of some frames have more outliers than another so near that has any: a good one is among them."""
    counts = wrong.sum(axis=1)
    spread = np.full(frames[-1] + 1 + 2 * near, wrong.shape[1])
    spread[frames + near] = np.where(counts, counts, wrong.shape[1])
    least = np.lib.stride_tricks.sliding_window_view(spread, 2 * near + 1).min(axis=1)
    return np.asarray(counts > least[frames])


def _start_from_beside(recording: Recording, frames: IntArray) -> None:
    """Put poses that such samples have dragged away for a while to where the frames beside lead."""
    good = np.ones(len(recording.targets), dtype=bool)
    good[frames] = False
    longest, short = CARRIED * recording.rate, np.zeros_like(good)
    for first, end in true_spans(~good):
        short[first:end] = end - first <= longest and first > 0 and end < len(good)
    solution, led = recording.solution, np.flatnonzero(short)
    rotations = recording.legal(fill_rotations(solution.rotations, good, longest)[led])
    solution.rotations[led] = recording.expected[led] = rotations
    if recording.root_heads is None:
        solution.root_location[led] = fill_points(solution.root_location, good, longest)[led]


def _allowed(size: float, distances: FloatArray) -> FloatArray:
    """(E,) how far off a sample of each marker may be; size: of the skeleton. distances: (F, E)."""
    usual = _USUAL_TIMES * np.nan_to_num(usual_distances(distances))
    return np.clip(usual, _ALWAYS_SHARE * size, _NEVER_SHARE * size)
