"""Changes of a motion written to the keys that it has: none outside the span changes, and only few are new."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import angle_between
from ..rig import keyframes
from ..rig.locks import unlocked_rotation
from ..rig.rotation_modes import to_channels
from .new_channels import LEAST_TURN, NewChannels, Turned
from .replaced import Shift, follow, followers, shift_keys
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
            if not (new.place.lock_location[curve.array_index] or keyframes.is_locked(curve)):
                before = old.location[:, curve.array_index]
                found.append(Change(curve, old.frames, new.moved[:, curve.array_index], before))
    for turned in new.turned:
        found += _rotation_changes(turned, take, old.frames)
    return found


def write_changes(
    armature: bpy.types.Object, changes: list[Change], frames: Sequence[float], ends: tuple[float, float]
) -> None:
    """Move the keys of curves between the ends, and set some on frames and at the ends.

    An end before the first or after the last of a curve's keys and of the frames gets none: the motion becomes no
    longer. The records of holds change as well.
    """
    follow(followers(armature), [shift_of(change, ends) for change in changes])
    for change in changes:
        _write(change, frames, ends)


def shift_of(change: Change, ends: tuple[float, float]) -> Shift:
    """By what the keys of a curve between the ends are moved. Beyond the seam of a cycle they are those before it."""
    curve, cycle = change.curve, cycle_of(change.curve)
    inside = (change.frames > ends[0] + SAME_FRAME) & (change.frames < ends[1] - SAME_FRAME)
    times, by = change.frames[inside], (change.values - change.before)[inside]
    if cycle is not None:
        times = in_cycle(cycle, times)
        seam = np.abs(times - cycle[0]) < SAME_FRAME
        times, by = np.concatenate([times, np.full(seam.sum(), cycle[1])]), np.concatenate([by, by[seam]])
    return Shift((curve.data_path, curve.array_index), times, by)


def _rotation_changes(turned: Turned, take: Take, frames: FloatArray) -> Iterator[Change]:
    bone, before = turned.bone, turned.channel
    # Side by side, not one after the other: each goes by what its own frame held.
    values = to_channels(bone.rotation_mode, turned.after[None], previous=before)[1][0]
    values = np.where(angle_between(turned.before, turned.after)[:, None] > LEAST_TURN, values, before)
    free = unlocked_rotation(bone)
    for curve in take.rotation_curves(bone.name):
        if curve.array_index in free and not keyframes.is_locked(curve):
            yield Change(curve, frames, values[:, curve.array_index], before[:, curve.array_index])


def _write(change: Change, frames: Sequence[float], ends: tuple[float, float]) -> None:
    """Write one curve."""
    curve, cycle = change.curve, cycle_of(change.curve)
    shift = shift_of(change, ends)
    own, edges = np.array(frames, dtype=np.float64), np.array(ends)
    if cycle is not None:
        own, edges = in_cycle(cycle, own), in_cycle(cycle, edges)
    times = np.append(keyframes.keys(curve)[:, 0], own)
    # Nothing outside the ends changes: there is a key at each of them, whose outer side keeps its shape.
    for end in edges[(edges > times.min()) & (edges < times.max())].tolist():
        _keep_shape_beside(curve, end)
        _insert(curve, end)
        _keep_shape_beside(curve, end)
    for frame in own.tolist():
        _insert(curve, frame)
    shift_keys(curve, shift.frames, shift.by)


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
