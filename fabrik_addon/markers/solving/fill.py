"""Fills bones that the visible markers do not determine from the frames next to the gap.

Such frames are solved again from the filled pose, to which lost bones are held weakly: visible markers decide as far as
they can, joint limits are respected, and the rest follows the neighboring frames.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from ..clip import BoolArray, true_spans
from ..gaps.fill_from_motion import fill_from_motion
from ..gaps.long import CARRIED, fill_points, hold
from .course import FROM_COURSE, prior_weight
from .determined import LOST, lost_certainty
from .recording import Recording, parts

Gaps = Literal["SOLVE", "HOLD", "INTERPOLATE", "UNKEYED"]
_HOW: Final = {"SOLVE": "solved", "HOLD": "held", "INTERPOLATE": "interpolated", "UNKEYED": "unkeyed"}
GAPS: Final = tuple(_HOW)

# Seconds over which held poses change to the next known ones.
_EASE: Final = 0.1
# Weight of a lost bone's filled pose, relative to the course. With the full weight a forearm without its marker moved
# the elbow by 13 mm, with this share by 9.
_GUESSED: Final = 0.05
# The same weight for the root, from which all else is solved. With no more than for others, keypoints with half of the
# samples lost and the trunk's missing for 150 frames rotated the hips by up to 141 degrees; with this by at most 50.
_GUESSED_ROOT: Final = 4.0


@dataclass(frozen=True)
class FilledSpan:
    """Frames first to last, counted from 0, on which markers do not determine a bone, and how they were filled."""

    bone: str
    first: int
    last: int
    count: int
    how: str


def fill_gaps(recording: Recording, gaps: Gaps) -> Generator[float, None, BoolArray]:
    """Fill bones on frames that do not determine them; yields the share done, returns (F, J) where bones are known."""
    observed = recording.seen & ~recording.outliers | recording.close
    lost, misplaced = lost_certainty(recording.solver, recording.solution, observed)
    known, placed = lost <= LOST, misplaced <= LOST
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
    recording.expected[:] = recording.solution.rotations
    recording.rest_weights[~known] = 0.0
    recording.prior_weights[~known] = _GUESSED * prior_weight(recording, FROM_COURSE)
    recording.prior_weights[~known[:, 0], 0] = _GUESSED_ROOT * prior_weight(recording, FROM_COURSE)
    if gaps == "SOLVE":
        for part in parts(np.flatnonzero(~(known.all(axis=1) & placed))):
            recording.solve_bridged(part)
            yield part[-1] / len(recording.targets)
    return known


def filled_spans(recording: Recording, known: BoolArray, gaps: Gaps) -> tuple[FilledSpan, ...]:
    """The spans over which bones were not known; known: (F, J)."""
    names = recording.solver.skeleton.names
    return tuple(
        FilledSpan(names[bone], first, end - 1, end - first, _HOW[gaps])
        for bone in np.flatnonzero(~known.all(axis=0))
        for first, end in true_spans(~known[:, bone])
    )
