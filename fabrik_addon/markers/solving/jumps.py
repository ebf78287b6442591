"""Smooths bones that jump from one frame to the next, over the neighboring frames.

When a marker appears or disappears, or when the markers allow two poses, neighboring frames may differ a lot though the
person moved smoothly. There the pose is held to the mean of the frames around it, weakly at first and more strongly
only if the jump stays. Frames whose markers end up much farther off are restored: that jump is a real one, such as a
kick.
"""

from typing import Final, NamedTuple

import numpy as np

from ...core.arrays import TINY, IntArray
from ...core.rotations import angle_between
from ..clip import BoolArray, FloatArray
from .course import FROM_COURSE, NOISE, prior_weight, usual_rotations
from .recording import Recording, about, parts


class _Round(NamedTuple):
    """One round of smoothing jumps.

    counts: weight of the mean, relative to the course. spread: seconds over which the mean is taken (standard
    deviation). jump: radians that a bone rotates in a frame beyond the mean's rotation.
    """

    counts: float
    spread: float
    jump: float


# With spreads of 0.1 s from the start, feet of surface sets with gaps were 2 mm worse. With the first two rounds alone,
# folded forearms of keypoints with gaps kept rotating by up to 31° a frame. People who walk accelerate by 5° a frame:
# with jumps of 6° nearly all frames of a walk were solved again, for 0.1 mm.
_ROUNDS: Final = (_Round(4.0, 0.05, 0.15), _Round(16.0, 0.05, 0.15), _Round(64.0, 0.1, 0.3))
# Frames a second for which the jumps above hold; at lower rates people rotate more in a frame.
_USUAL_RATE: Final = 60.0
# Largest factor on a frame's RMS, relative to its former RMS, the take's median and the usual noise. Without a bound a
# kick of 110° at 2,100° a second was reduced by 14°, with this by 4°; with 1.5 a dancer who exceeds the rig's limits
# kept rotating a foot by 65° in a frame.
_FARTHER: Final = 2.0
# Frames within this many standard deviations of the mean around a jump are used.
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
            # If markers are far off anyway, they do not show that a jump is real.
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
    """(N,) the weighted RMS of frames, without outliers."""
    distances = np.where(recording.outliers[frames], np.nan, recording.distances(frames))
    weights = np.where(np.isnan(distances), 0.0, recording.weights)
    squares = (weights * np.nan_to_num(distances) ** 2).sum(axis=1)
    return np.asarray(np.sqrt(squares / np.maximum(weights.sum(axis=1), TINY)))


def about_jumps(jumping: BoolArray, near: int) -> BoolArray:
    """(F, J) whether a frame is at most `near` frames from a jump; jumping: (F - 1, J) between frames."""
    return about(np.pad(jumping, ((1, 0), (0, 0))) | np.pad(jumping, ((0, 1), (0, 0))), near)
