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
from ..gaps.long import CARRIED, fill_points, hold
from .course import FROM_COURSE, GUESSED, prior_weight
from .determined import LOST, lost_certainty
from .recording import Recording, parts

Gaps = Literal["SOLVE", "HOLD", "INTERPOLATE", "UNKEYED"]
_HOW: Final = {"SOLVE": "solved", "HOLD": "held", "INTERPOLATE": "interpolated", "UNKEYED": "unkeyed"}
GAPS: Final = tuple(_HOW)

# Held poses go on over so many seconds.
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
    known, placed = lost <= LOST, misplaced <= LOST
    _carry_over(recording, known, placed, gaps)
    recording.expected[:] = recording.solution.rotations
    recording.rest_weights[~known] = 0.0
    recording.prior_weights[~known] = GUESSED * prior_weight(recording, FROM_COURSE)
    if gaps == "SOLVE":
        frames = np.flatnonzero(~(known.all(axis=1) & placed))
        for part in parts(frames):
            recording.solve_bridged(part)
            yield part[-1] / len(recording.targets)
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
