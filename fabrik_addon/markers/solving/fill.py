"""Bones about which the markers that are seen say too little: carried over from the frames beside the gap.

Such frames are solved again from the pose so guessed, to which lost bones are held a little: what is still seen
decides what it can, joint limits hold, time decides the rest, and nothing jumps.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from ..clip import BoolArray, true_spans
from ..gaps.fill_from_motion import fill_from_motion
from ..gaps.long import fill_points, hold
from .course import FROM_COURSE, prior_weight
from .determined import lost_certainty
from .recording import CHUNK, Recording

Gaps = Literal["SOLVE", "HOLD", "INTERPOLATE", "UNKEYED"]
_HOW: Final = {"SOLVE": "solved", "HOLD": "held", "INTERPOLATE": "interpolated", "UNKEYED": "unkeyed"}
GAPS: Final = tuple(_HOW)

# A bone's rotation is lost when hidden markers make it this much (radians) less sure than it is with all of them.
_LOST: Final = 0.1
# What the pose of a lost bone counts that the frames beside the gap lead to, as a share of what a course does: with all
# of it a forearm without its marker kept the elbow 13 mm off, with this share 9.
_GUESSED: Final = 0.05
# Over gaps longer than this (seconds) the motion at the edges carries less far; held poses go on over the second.
_CARRIED: Final = 0.5
_EASE: Final = 0.1


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
    known, placed = lost <= _LOST, misplaced <= _LOST
    _carry_over(recording, known, placed, gaps)
    recording.expected[:] = recording.solution.rotations
    recording.prior_weights[~known] = _GUESSED * prior_weight(recording, FROM_COURSE)
    if gaps == "SOLVE":
        frames = np.flatnonzero(~(known.all(axis=1) & placed))
        for first in range(0, len(frames), CHUNK):
            part = frames[first : first + CHUNK]
            recording.solve_again(part, recording.sample_weights(part), recording.bridged[part])
            yield (first + len(part)) / len(frames)
    return known


def filled_spans(recording: Recording, known: BoolArray, gaps: Gaps) -> tuple[FilledSpan, ...]:
    """Where bones were not known (F, J), and what was done about it."""
    names = recording.solver.skeleton.names
    return tuple(
        FilledSpan(names[bone], first, end - 1, end - first, _HOW[gaps])
        for bone in np.flatnonzero(~known.all(axis=0))
        for first, end in true_spans(~known[:, bone])
    )


def _carry_over(recording: Recording, known: BoolArray, placed: BoolArray, gaps: Gaps) -> None:
    """Put every bone that is not known (F, J), and the root (F,), to where the frames beside the gap lead it."""
    solution, rate = recording.solution, recording.rate
    rotations, roots = np.array(solution.rotations), np.array(solution.root_location)
    longest, ease = _CARRIED * rate, max(1, round(_EASE * rate))
    for bone in np.flatnonzero(~known.all(axis=0)):
        if gaps == "HOLD":
            rotations[:, bone] = hold(rotations[:, bone], known[:, bone], ease)
        else:
            rotations[:, bone] = fill_from_motion(solution.rotations, known, bone, longest, rate)
    if not placed.all() and recording.root_heads is None:
        roots = hold(roots, placed, ease) if gaps == "HOLD" else fill_points(roots, placed, longest)
    rotations /= np.linalg.norm(rotations, axis=-1, keepdims=True)
    recording.solution = replace(solution, rotations=recording.legal(rotations), root_location=roots)
