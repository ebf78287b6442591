"""Bones that jump from one frame to the next, eased over the frames about.

Where a marker comes or goes, or what is seen allows two poses, neighbouring frames may be far apart though the person
moved on evenly. There the pose is expected to go by the mean of the frames about it, which counts little at first and
more only where the jump stays. Frames whose markers come out much farther off so are put back: the jump is a kick.
"""

from typing import Final, NamedTuple

import numpy as np

from ...core.arrays import TINY, IntArray
from ...core.rotations import angle_between
from ..clip import BoolArray, FloatArray
from .course import FROM_COURSE, NOISE, prior_weight, usual_rotations
from .recording import Recording, about, parts


class _Round(NamedTuple):
    """What the mean of the frames counts, and what a jump is.

    counts: times a course's weight. spread: seconds that the mean is over (one standard deviation). jump: radians that
    a bone turns in a frame beyond what the mean turns.
    """

    counts: float
    spread: float
    jump: float


# With spreads of 0.1 s at once feet of surface sets with holes came out 2 mm farther from where they were without; with
# the first two rounds alone forearms of keypoints with holes that fold over kept turning by up to 31° a frame. People
# who walk speed up by 5° a frame: with jumps of 6° nearly all frames of a walk were solved again, for 0.1 mm.
_ROUNDS: Final = (_Round(4.0, 0.05, 0.15), _Round(16.0, 0.05, 0.15), _Round(64.0, 0.1, 0.3))
# Frames a second at which jumps are told as above; between fewer frames people turn by more.
_USUAL_RATE: Final = 60.0
# Beside its own RMS before and the take's median, or what markers are off at least, that a frame's RMS may become. With
# no end a kick of 110° at 2,100° a second was blunted by 14°, with this by 4; with 1.5 a dancer who leaves the rig's
# limits kept turning a foot by 65° in a frame.
_FARTHER: Final = 2.0
# Standard deviations beside a jump that are looked at.
_BESIDE: Final = 2.0


def ease_jumps(recording: Recording) -> None:
    """Solve frames about jumps again, in rounds: the bones that jump are expected to go by the mean of the frames."""
    rotations, real = recording.solution.rotations, np.zeros(len(recording.expected), dtype=bool)
    allowed = None
    for choice in _ROUNDS:
        least = choice.jump * max(1.0, _USUAL_RATE / recording.rate)
        turns = angle_between(rotations[1:], rotations[:-1])
        if not (turns > least).any():
            return
        spread = choice.spread * recording.rate
        near = int(np.ceil(_BESIDE * spread))
        smooth = usual_rotations(rotations, spread)
        jumping = turns - angle_between(smooth[1:], smooth[:-1]) > least
        easing = about_jumps(jumping, near) & ~real[:, None]
        frames = np.flatnonzero(easing.any(axis=1))
        allowed = _allowed(recording) if allowed is None else allowed
        before = recording.state(frames)
        _solve_toward(recording, frames, smooth, easing, choice.counts * prior_weight(recording, FROM_COURSE))
        real[frames[_frame_rms(recording, frames) > allowed[frames]]] = True
        real = about(real, near)
        recording.put_back(frames, before, real[frames])


def _allowed(recording: Recording) -> FloatArray:
    """(F,) how far off a frame's markers may come (RMS): where they are farther, they show that the jump is real.

    Markers that are so far off anyway show nothing.
    """
    rms = _frame_rms(recording, np.arange(len(recording.targets)))
    usual = max(float(np.median(rms)), NOISE * recording.solver.skeleton.size)
    return np.where(rms > _FARTHER * usual, np.inf, _FARTHER * np.maximum(rms, usual))


def _frame_rms(recording: Recording, frames: IntArray) -> FloatArray:
    """(N,) the weighted RMS of what counts on some frames."""
    distances = np.where(recording.outliers[frames], np.nan, recording.distances(frames))
    weights = np.where(np.isnan(distances), 0.0, recording.weights)
    squares = (weights * np.nan_to_num(distances) ** 2).sum(axis=1)
    return np.asarray(np.sqrt(squares / np.maximum(weights.sum(axis=1), TINY)))


def _solve_toward(
    recording: Recording, chosen: IntArray, smooth: FloatArray, easing: BoolArray, weight: FloatArray
) -> None:
    """Solve chosen frames again, on which some bones (F, J) are expected as in a smooth motion (F, J, 4)."""
    for frames in parts(chosen):
        which = easing[frames]
        expected = recording.legal(np.where(which[..., None], smooth[frames], recording.expected[frames]))
        counts = recording.prior_weights[frames]
        recording.expected[frames] = expected
        recording.prior_weights[frames] = np.where(which, np.maximum(counts, weight), counts)
        rotations = recording.solution.rotations[frames]
        recording.solution.rotations[frames] = np.where(which[..., None], expected, rotations)
        recording.solve_bridged(frames)


def about_jumps(jumping: BoolArray, near: int) -> BoolArray:
    """(F, J) whether a bone jumps between two frames (F - 1, J) of which one is this, or so near to it."""
    return about(np.pad(jumping, ((1, 0), (0, 0))) | np.pad(jumping, ((0, 1), (0, 0))), near)
