"""Bones about which the markers that are seen say too little: carried over from the frames beside the gap.

The pose so guessed gives the hidden markers targets that count for almost nothing beside those that are seen, except at
a gap's edges, where they fade; such frames are solved again from that pose. So what is still seen decides what it can,
joint limits hold, time decides the rest, and nothing jumps.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from ..calibrate.offsets import seen_from_bones
from ..clip import BoolArray, FloatArray, true_spans
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
# What a hidden marker's guessed place counts beside a seen one and in the middle of a gap; in how many frames it fades.
_EDGE_WEIGHT: Final = 0.2
_GUESS_WEIGHT: Final = 1e-3
_FADE: Final = 3.0
# What the pose of a lost bone counts that the frames beside the gap lead to, as a share of what a course does.
_GUESSED: Final = 0.1
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
    inliers = recording.seen & ~recording.outliers
    observed = inliers | recording.close
    lost, misplaced = lost_certainty(recording.solver, recording.solution, observed)
    known, placed = lost <= _LOST, misplaced <= _LOST
    _carry_over(recording, known, placed, gaps)
    recording.expected[:] = recording.solution.rotations
    recording.prior_weights[~known] = _GUESSED * prior_weight(recording, FROM_COURSE)
    if gaps == "SOLVE":
        frames = np.flatnonzero(~observed.all(axis=1))
        targets, weights = _guessed_targets(recording, inliers, frames)
        for first in range(0, len(frames), CHUNK):
            part = slice(first, first + CHUNK)
            recording.solve_again(frames[part], weights[part], targets[part])
            yield min(1.0, part.stop / len(frames))
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


def _guessed_targets(recording: Recording, inliers: BoolArray, frames: Any) -> tuple[FloatArray, FloatArray]:
    """(N, E, 3) targets for frames with hidden markers, those where the guessed pose has them, and (N, E) weights."""

    def away(part: slice) -> FloatArray:
        """(N, E, 3) how far markers of some frames are from their offsets, in their bones' frames."""
        shown = np.where(inliers[part][..., None], recording.targets[part], np.nan)
        return np.asarray(seen_from_bones(recording.matrices(part), recording.bones, shown) - recording.offsets)

    local = _across(recording.by_parts(away), inliers)[frames] + recording.offsets
    bones = recording.matrices(frames)[:, recording.bones]
    places = bones[..., :3, 3] + (bones[..., :3, :3] @ local[..., None])[..., 0]
    observed = inliers[frames] | recording.close[frames]
    fading = recording.weights * _fading(inliers)[frames]
    weights = np.where(observed, recording.sample_weights(frames), fading)
    return np.where(observed[..., None], recording.bridged[frames], places), weights


def _across(away: FloatArray, inliers: BoolArray) -> FloatArray:
    """(F, E, 3) how far markers are from their offsets, on straight lines across gaps; skin moves little."""
    frames, filled = np.arange(len(away)), np.zeros_like(away)
    for marker in np.flatnonzero(inliers.any(axis=0)):
        at = frames[inliers[:, marker]]
        for axis in range(3):
            filled[:, marker, axis] = np.interp(frames, at, away[at, marker, axis])
    return filled


def _fading(inliers: BoolArray) -> FloatArray:
    """(F, E) what hidden samples count: almost all beside a seen one, next to nothing far from any.

    Before a marker is first and after it is last seen its place is only guessed from one side.
    """
    frames = np.arange(len(inliers))
    fade = np.full(inliers.shape, _GUESS_WEIGHT)
    for marker in np.flatnonzero(inliers.any(axis=0)):
        at = frames[inliers[:, marker]]
        after = np.searchsorted(at, frames)
        next_ = np.abs(at[np.minimum(after, len(at) - 1)] - frames)
        last = np.abs(at[np.maximum(after - 1, 0)] - frames)
        inside = slice(at[0], at[-1])
        fade[inside, marker] = np.maximum(
            _EDGE_WEIGHT * np.exp(-np.minimum(next_, last)[inside] / _FADE), _GUESS_WEIGHT
        )
    return fade
