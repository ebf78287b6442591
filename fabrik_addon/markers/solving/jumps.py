"""Bones that jump from one frame to the next, eased over the neighboring frames.

When a marker appears or disappears, or what is seen allows two poses, neighboring frames may be far apart though the
person moved evenly. There the pose is held to the mean of the frames around it, weakly at first and more firmly only if
the jump stays. Frames whose markers end up much farther off are put back: that jump is a kick.
"""

from typing import Final, NamedTuple

import numpy as np

from ...core.arrays import TINY, IntArray
from ...core.rotations import angle_between
from ..clip import BoolArray, FloatArray
from .course import FROM_COURSE, NOISE, prior_weight, usual_rotations
from .recording import Recording, about, parts


class _Round(NamedTuple):
    """How jumps are eased.

    counts: weight of the mean, relative to a course's. spread: seconds over which the mean is taken (standard
    deviation).
    jump: radians that a bone rotates in a frame more than the mean does.
    """

    counts: float
    spread: float
    jump: float


# With spreads of 0.1 s from the start, feet of surface sets with holes came out 2 mm worse; with the first two rounds
# alone, forearms of keypoints with holes that fold over kept turning by up to 31° a frame. People who walk speed up by
# 5° a frame: with jumps of 6° nearly all frames of a walk were solved again, for 0.1 mm.
_ROUNDS: Final = (_Round(4.0, 0.05, 0.15), _Round(16.0, 0.05, 0.15), _Round(64.0, 0.1, 0.3))
# Frames a second for which the jumps above are given; at lower rates people rotate more in a frame.
_USUAL_RATE: Final = 60.0
# How many times its RMS before, the take's median or the usual noise a frame's RMS may become. Without a bound a kick
# of 110° at 2,100° a second was blunted by 14°, with this by 4; with 1.5 a dancer who leaves the rig's limits kept
# turning a foot by 65° in a frame.
_FARTHER: Final = 2.0
# How many standard deviations of the mean are looked at on either side of a jump.
_BESIDE: Final = 2.0


def ease_jumps(recording: Recording) -> None:
    """Solve frames around jumps again, in rounds, with the jumping bones held to the mean of the frames."""
    rotations, real = recording.solution.rotations, np.zeros(len(recording.expected), dtype=bool)
    allowed = None
    for choice in _ROUNDS:
        least = choice.jump * max(1.0, _USUAL_RATE / recording.rate)
        turns = angle_between(rotations[1:], rotations[:-1])
        if not (turns > least).any():
            return
        if allowed is None:
            # Markers that are far off anyway do not show that a jump is real.
            rms = _frame_rms(recording, np.arange(len(recording.targets)))
            usual = max(float(np.median(rms)), NOISE * recording.solver.skeleton.size)
            allowed = np.where(rms > _FARTHER * usual, np.inf, _FARTHER * np.maximum(rms, usual))
        spread = choice.spread * recording.rate
        near = int(np.ceil(_BESIDE * spread))
        smooth = usual_rotations(rotations, spread)
        jumping = turns - angle_between(smooth[1:], smooth[:-1]) > least
        easing = about_jumps(jumping, near) & ~real[:, None]
        frames = np.flatnonzero(easing.any(axis=1))
        before = recording.state(frames)
        weight = choice.counts * prior_weight(recording, FROM_COURSE)
        for part in parts(frames):
            which = easing[part]
            expected = recording.legal(np.where(which[..., None], smooth[part], recording.expected[part]))
            counts = recording.prior_weights[part]
            recording.expected[part] = expected
            recording.prior_weights[part] = np.where(which, np.maximum(counts, weight), counts)
            rotations[part] = np.where(which[..., None], expected, rotations[part])
            recording.solve_bridged(part)
        real[frames[_frame_rms(recording, frames) > allowed[frames]]] = True
        real = about(real, near)
        recording.put_back(frames, before, real[frames])


def _frame_rms(recording: Recording, frames: IntArray) -> FloatArray:
    """(N,) the weighted RMS of some frames, without outliers."""
    distances = np.where(recording.outliers[frames], np.nan, recording.distances(frames))
    weights = np.where(np.isnan(distances), 0.0, recording.weights)
    squares = (weights * np.nan_to_num(distances) ** 2).sum(axis=1)
    return np.asarray(np.sqrt(squares / np.maximum(weights.sum(axis=1), TINY)))


def about_jumps(jumping: BoolArray, near: int) -> BoolArray:
    """(F, J) whether a frame is at most `near` frames from one of two between which a bone jumps (F - 1, J)."""
    return about(np.pad(jumping, ((1, 0), (0, 0))) | np.pad(jumping, ((0, 1), (0, 0))), near)
