"""Changes of a motion written to the keys that it has: none outside the span changes, and only few are new."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import angle_between
from ..rig import keyframes
from ..rig.locks import unlocked_rotation
from ..rig.rotation_modes import to_channels
from .new_channels import LEAST_TURN, NewChannels, Turned
from .take import SAME_FRAME, Motion, Take, cycle_of, in_cycle


@dataclass(frozen=True)
class Change:
    """New values of one curve on (F,) frames, and what it holds there."""

    curve: bpy.types.FCurve
    frames: FloatArray
    values: FloatArray
    before: FloatArray


def changes_of(take: Take, old: Motion, new: NewChannels) -> list[Change]:
    """What new channels change of a motion's curves."""
    found: list[Change] = []
    if new.place is not None:
        for curve in take.curves(new.place.name, "location"):
            if not new.place.lock_location[curve.array_index]:
                before = old.location[:, curve.array_index]
                found.append(Change(curve, old.frames, new.moved[:, curve.array_index], before))
    for turned in new.turned:
        found += _rotation_changes(turned, take, old.frames)
    return found


def write_changes(changes: list[Change], frames: Sequence[float], ends: tuple[float, float]) -> int:
    """Move the keys of curves between the ends, and set some on frames and at the ends; how many keys are new."""
    return sum(_write(change, frames, ends) for change in changes)


def shift_keys(curve: bpy.types.FCurve, frames: FloatArray, by: FloatArray) -> None:
    """Move the keys that are on (F,) frames, with their handles, by (F,) values."""
    places, rows = _meeting(keyframes.keys(curve)[:, 0], frames)
    moved = np.zeros(len(curve.keyframe_points))
    moved[places] = by[rows]
    keyframes.scale_values(curve, 1.0, moved)


def _rotation_changes(turned: Turned, take: Take, frames: FloatArray) -> Iterator[Change]:
    bone, before = turned.bone, turned.channel
    # Side by side, not one after the other: each goes by what its own frame held.
    values = to_channels(bone.rotation_mode, turned.after[None], previous=before)[1][0]
    values = np.where(angle_between(turned.before, turned.after)[:, None] > LEAST_TURN, values, before)
    free = unlocked_rotation(bone)
    for curve in take.rotation_curves(bone.name):
        if curve.array_index in free:
            yield Change(curve, frames, values[:, curve.array_index], before[:, curve.array_index])


def _write(change: Change, frames: Sequence[float], ends: tuple[float, float]) -> int:
    """Write one curve; how many keys are new. What is beyond the seam of one that goes round is in its keys before."""
    curve, before, cycle = change.curve, len(change.curve.keyframe_points), cycle_of(change.curve)
    inside = (change.frames > ends[0] + SAME_FRAME) & (change.frames < ends[1] - SAME_FRAME)
    times, by = change.frames[inside], (change.values - change.before)[inside]
    own, edges = np.array(frames, dtype=np.float64), np.array(ends)
    if cycle is not None:
        times, own, edges = (in_cycle(cycle, each) for each in (times, own, edges))
        seam = np.abs(times - cycle[0]) < SAME_FRAME
        times, by = np.concatenate([times, np.full(seam.sum(), cycle[1])]), np.concatenate([by, by[seam]])
    # Nothing outside the ends changes: there is a key at each of them, whose outer side keeps its shape.
    for end in edges.tolist():
        _keep_shape_beside(curve, end)
        _insert(curve, end)
        _keep_shape_beside(curve, end)
    for frame in own.tolist():
        _insert(curve, frame)
    shift_keys(curve, times, by)
    return len(curve.keyframe_points) - before


def _meeting(times: FloatArray, frames: FloatArray) -> tuple[Any, Any]:
    """The places of keys at (K,) times that are on some of (F,) frames, and of those frames."""
    nearest = np.abs(times[:, None] - frames).argmin(axis=1)
    places = np.flatnonzero(np.abs(times - frames[nearest]) < SAME_FRAME)
    return places, nearest[places]


def _insert(curve: bpy.types.FCurve, frame: float) -> None:
    """A key on a frame where there is none, on the curve as it is."""
    times = keyframes.keys(curve)[:, 0]
    if np.abs(times - frame).min() >= SAME_FRAME:
        curve.keyframe_points.insert(frame, curve.evaluate(frame))


def _keep_shape_beside(curve: bpy.types.FCurve, frame: float) -> None:
    """Make handles next to a frame stay as they are: Blender fits automatic ones to their neighbours' values."""
    points = curve.keyframe_points
    place = int(np.searchsorted(keyframes.keys(curve)[:, 0], frame - SAME_FRAME))
    for each in points[max(place - 1, 0) : place + 2]:
        if each.interpolation == "BEZIER":
            each.handle_left_type = each.handle_right_type = "FREE"
