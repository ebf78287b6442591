"""Bones about which the markers that are seen say too little: carried over from the frames beside the gap.

Such frames are solved again from the pose so guessed, to which lost bones are held a little: what is still seen
decides what it can, joint limits hold, time decides the rest, and nothing jumps.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from ...core.rotations import (
    angle_between,
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from ..clip import BoolArray, true_spans
from ..gaps.fill_from_motion import fill_from_motion
from ..gaps.long import CARRIED, fill_points, hold
from .course import FROM_COURSE, GUESSED, prior_weight
from .determined import LOST, lost_certainty
from .recording import Recording, parts

Gaps = Literal["SOLVE", "HOLD", "INTERPOLATE", "UNKEYED"]
_HOW: Final = {"SOLVE": "solved", "HOLD": "held", "INTERPOLATE": "interpolated", "UNKEYED": "unkeyed"}
GAPS: Final = tuple(_HOW)

# Held poses go on over so many seconds.
_EASE: Final = 0.1
# A lost bone that turns by so much more (radians) in a frame than where it is led jumps. It comes to what its markers
# say over so many seconds (one standard deviation), held to that with this share of a course's weight: of keypoints
# with holes 14 bones then turned by more than 25 degrees a frame, 46 before.
_JUMP: Final = 0.1
_SOFTENED: Final = 0.05
_EASED: Final = 0.2


@dataclass(frozen=True)
class FilledSpan:
    """Frames first to last, counted from 0, on which markers say too little about a bone; how that was got over."""

    bone: str
    first: int
    last: int
    count: int
    how: str


def fill_gaps(recording: Recording, gaps: Gaps) -> Generator[float, None, BoolArray]:
    """Carry bones over what is not seen; yields the share done, and returns (F, J) where a bone is known."""
    observed = recording.seen & ~recording.outliers | recording.close
    lost, misplaced = lost_certainty(recording.solver, recording.solution, observed)
    known, placed = lost <= LOST, misplaced <= LOST
    _carry_over(recording, known, placed, gaps)
    recording.expected[:] = recording.solution.rotations
    recording.rest_weights[~known] = 0.0
    recording.prior_weights[~known] = GUESSED * prior_weight(recording, FROM_COURSE)
    if gaps == "SOLVE":
        frames = np.flatnonzero(~(known.all(axis=1) & placed))
        for part in parts(frames):
            recording.solve_again(part, recording.sample_weights(part), recording.bridged[part])
            yield part[-1] / len(recording.targets)
        _ease_jumps(recording, known)
    return known


def filled_spans(recording: Recording, known: BoolArray, gaps: Gaps) -> tuple[FilledSpan, ...]:
    """Where bones were not known (F, J), and what was done about it."""
    names = recording.solver.skeleton.names
    return tuple(
        FilledSpan(names[bone], first, end - 1, end - first, _HOW[gaps])
        for bone in np.flatnonzero(~known.all(axis=0))
        for first, end in true_spans(~known[:, bone])
    )


def _ease_jumps(recording: Recording, known: BoolArray) -> None:
    """Let lost bones (F, J) come to what is left of their markers over some frames where they jump to it.

    They are expected as far from where the frames beside lead them as they are on the frames about, and solved again.
    """
    rotations, led = recording.solution.rotations, recording.expected
    jumps = angle_between(rotations[1:], rotations[:-1]) - angle_between(led[1:], led[:-1]) > _JUMP
    deviation = _SOFTENED * recording.rate
    steps = np.arange(-np.ceil(3.0 * deviation), np.ceil(3.0 * deviation) + 1).astype(np.int64)
    jumping = (jumps & ~(known[1:] & known[:-1])).any(axis=1)
    near = np.unique(np.clip(np.flatnonzero(jumping)[:, None] + [[*steps, steps[-1] + 1]], 0, len(known) - 1))
    frames = near[~known[near].all(axis=1)]
    if not len(frames):
        return
    away = rotation_vector_from_quaternion(product(conjugate(led), rotations))
    away[known] = 0.0
    counts = np.exp(-0.5 * (steps / deviation) ** 2)
    beside = np.clip(frames[:, None] + steps, 0, len(known) - 1)
    mean = sum(count * away[beside[:, place]] for place, count in enumerate(counts / counts.sum()))
    expected = recording.legal(product(led[frames], quaternion_from_rotation_vector(mean)))
    lost = ~known[frames]
    led[frames] = np.where(lost[..., None], expected, led[frames])
    recording.solution.rotations[frames] = np.where(lost[..., None], expected, rotations[frames])
    recording.prior_weights[frames] = np.where(
        lost, _EASED * prior_weight(recording, FROM_COURSE), recording.prior_weights[frames]
    )
    for part in parts(frames):
        recording.solve_again(part, recording.sample_weights(part), recording.bridged[part])


def _carry_over(recording: Recording, known: BoolArray, placed: BoolArray, gaps: Gaps) -> None:
    """Put every bone that is not known (F, J), and the root (F,), to where the frames beside the gap lead it."""
    solution, rate = recording.solution, recording.rate
    rotations, roots = np.array(solution.rotations), np.array(solution.root_location)
    longest, ease = CARRIED * rate, max(1, round(_EASE * rate))
    for bone in np.flatnonzero(~known.all(axis=0)):
        if gaps == "HOLD":
            rotations[:, bone] = hold(rotations[:, bone], known[:, bone], ease)
        else:
            rotations[:, bone] = fill_from_motion(solution.rotations, known, bone, longest, rate)
    if not placed.all() and recording.root_heads is None:
        roots = hold(roots, placed, ease) if gaps == "HOLD" else fill_points(roots, placed, longest)
    rotations /= np.linalg.norm(rotations, axis=-1, keepdims=True)
    recording.solution = replace(solution, rotations=recording.legal(rotations), root_location=roots)
