"""Writes changes of a motion to its keys inside the span, or to an NLA layer."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import angle_between, conjugate, product
from ..control.model import ControlRigPoses
from ..control.posed_rig import posed_rig
from ..control.switches import bone_in_path
from ..rig import keyframes
from ..rig.actions import add_strip, channels_of, new_strip_action
from ..rig.armature import RigError
from ..rig.keyframes import bone_path, write_curves
from ..rig.locks import unlocked_location, unlocked_rotation
from ..rig.rotation_modes import from_channels, property_name, to_channels
from .replaced import Shift, later_records, shift_keys, shift_records
from .take import SAME_FRAME, Motion, Take, cycle_of, in_cycle

# Radians, or units of location. Smaller changes are not written.
LEAST_TURN = 1e-6
LEAST_MOVE = 1e-6
# This blend mode multiplies the layer's quaternion with the result below, and adds angles and locations.
_BLEND: Final = "COMBINE"


@dataclass(frozen=True)
class Turned:
    """A bone with keys whose rotation changes: (F, 4) before and after, and its channel's values (F, 3 or 4)."""

    bone: bpy.types.PoseBone
    before: FloatArray
    after: FloatArray
    channel: FloatArray


@dataclass(frozen=True)
class NewChannels:
    """Changes over F frames: the bones that rotate, and the root's old and new location (F, 3); None if unchanged.

    unkeyed: the names of controls that are not changed because they have no keys.
    """

    turned: list[Turned]
    place: bpy.types.PoseBone | None
    moved: FloatArray
    unkeyed: tuple[str, ...] = ()


def new_channels(
    armature: bpy.types.Object, take: Take, old: Motion, rotations: FloatArray, roots: FloatArray
) -> NewChannels:
    """The changes of a motion's channels for new local rotations (F, J, 4) and roots (F, 3)."""
    bones = armature.pose.bones
    own = {name: from_channels(bones[name].rotation_mode, held) for name, held in old.channels.items()}
    over = ControlRigPoses(old.bone_matrices, own, old.location)
    poses = (old.rotations, old.roots), (rotations, roots)
    after, shift, unkeyed = posed_rig(armature).channels_for_edit(old.skeleton, *poses, over)
    found = []
    for name, turned in after.items():
        if angle_between(own[name], turned).max() > LEAST_TURN:
            found.append(Turned(bones[name], own[name], turned, old.channels[name]))
    stays = not shift.size or np.abs(shift).max() <= LEAST_MOVE
    return NewChannels(found, None if stays else bones[take.place], old.location + shift, unkeyed)


@dataclass(frozen=True)
class Change:
    """The new and the old values of one curve on (F,) frames."""

    curve: bpy.types.FCurve
    frames: FloatArray
    values: FloatArray
    before: FloatArray


def changes_of(take: Take, old: Motion, new: NewChannels) -> list[Change]:
    """The changes of a motion's curves for new channels."""
    found: list[Change] = []
    if new.place is not None:
        for curve in take.curves(new.place.name, "location"):
            if not (new.place.lock_location[curve.array_index] or keyframes.is_locked(curve)):
                before = old.location[:, curve.array_index]
                found.append(Change(curve, old.frames, new.moved[:, curve.array_index], before))
    for turned in new.turned:
        bone, before = turned.bone, turned.channel
        # All frames at once: each new value depends only on the old value of its own frame.
        values = to_channels(bone.rotation_mode, turned.after[None], previous=before)[1][0]
        values = np.where(angle_between(turned.before, turned.after)[:, None] > LEAST_TURN, values, before)
        free = unlocked_rotation(bone)
        found += [
            Change(curve, old.frames, values[:, curve.array_index], before[:, curve.array_index])
            for curve in take.rotation_curves(bone.name)
            if curve.array_index in free and not keyframes.is_locked(curve)
        ]
    return found


def write_changes(
    armature: bpy.types.Object, changes: list[Change], frames: Sequence[float], ends: tuple[float, float]
) -> None:
    """Move the keys of curves between the ends, and insert keys on some frames and at the ends.

    An end outside a curve's keys and the frames gets no key, so that the motion doesn't get longer. The records of
    holds are updated as well.
    """
    shifts = [shift_of(change, ends) for change in changes]
    shift_records(later_records(armature), shifts)
    for change, shift in zip(changes, shifts, strict=True):
        _write(change, shift, frames, ends)


def shift_of(change: Change, ends: tuple[float, float]) -> Shift:
    """The shifts of a curve's keys between the ends. Frames after the end of a cycle are mapped to its keys."""
    curve, cycle = change.curve, cycle_of(change.curve)
    inside = (change.frames > ends[0] + SAME_FRAME) & (change.frames < ends[1] - SAME_FRAME)
    times, by = change.frames[inside], (change.values - change.before)[inside]
    if cycle is not None:
        times = in_cycle(cycle, times)
        seam = np.abs(times - cycle[0]) < SAME_FRAME
        times, by = np.concatenate([times, np.full(seam.sum(), cycle[1])]), np.concatenate([by, by[seam]])
    return Shift((curve.data_path, curve.array_index), times, by)


def _write(change: Change, shift: Shift, frames: Sequence[float], ends: tuple[float, float]) -> None:
    """Shift the keys of one curve, and insert keys on the frames and at the ends."""
    curve, cycle = change.curve, cycle_of(change.curve)
    own, edges = np.array(frames, dtype=np.float64), np.array(ends)
    if cycle is not None:
        own, edges = in_cycle(cycle, own), in_cycle(cycle, edges)
    times = np.append(keyframes.keys(curve)[:, 0], own)
    # A key at each end, with fixed outer handles, keeps the curve unchanged outside the ends.
    for end in edges[(edges > times.min()) & (edges < times.max())].tolist():
        _keep_shape_beside(curve, end)
        _insert(curve, end)
        _keep_shape_beside(curve, end)
    for frame in own.tolist():
        _insert(curve, frame)
    shift_keys(curve, shift.frames, shift.by)


def _insert(curve: bpy.types.FCurve, frame: float) -> None:
    """Insert a key on a frame without one, without changing the curve."""
    points: Any = curve.keyframe_points
    place = _index_of(points, frame)
    if place == len(points) or points[place].co[0] > frame + SAME_FRAME:
        points.insert(frame, curve.evaluate(frame))


def _keep_shape_beside(curve: bpy.types.FCurve, frame: float) -> None:
    """Make the handles next to a frame free, because Blender fits automatic handles to the neighboring values."""
    points: Any = curve.keyframe_points
    place = _index_of(points, frame)
    for each in points[max(place - 1, 0) : place + 2]:
        if each.interpolation == "BEZIER":
            each.handle_left_type = each.handle_right_type = "FREE"


def _index_of(points: Any, frame: float) -> int:
    """The index of the first key on or after a frame; reads only a few keys."""
    return bisect_left(points, frame - SAME_FRAME, key=lambda point: point.co[0])


def write_layer(armature: bpy.types.Object, old: Motion, new: NewChannels) -> int:
    """Add the changes of a motion to the layer of earlier edits; returns the number of changed bones.

    This layer is the topmost NLA track, if `write_layer` made it and nothing has changed it since. Otherwise a new
    track is added above all others, and the current action becomes a strip below it.

    Raises RigError, with nothing changed, for a bone whose rotation cannot be layered.
    """
    layers = list(_layers(old, new))
    strip = _own_layer(armature)
    if strip is not None:
        _add_to_layer(armature, strip, old.frames, {path: row for path, *row in layers})
    else:
        action = new_strip_action(armature, _layer_name(armature))
        for path, bone, values, free in layers:
            write_curves(action, armature, path, old.frames, values, bone, components=free)
        strip = add_strip(armature, action)
        strip.blend_type, strip.extrapolation = _BLEND, "NOTHING"
        # A strip uses its own influence only if the influence is animated. A single key is enough.
        strip.influence = 1.0
        strip.use_animated_influence = True
    return len({bone for _, bone, _, _ in layers})


def _layer_name(armature: bpy.types.Object) -> str:
    return f"{armature.name} edit"


def _own_layer(armature: bpy.types.Object) -> bpy.types.NlaStrip | None:
    """The strip of earlier edits, if it is topmost, and not renamed, muted, moved, locked or given an influence."""
    animation = armature.animation_data
    if animation is None or animation.action is not None or not animation.nla_tracks:
        return None
    track: Any = animation.nla_tracks[-1]
    if len(track.strips) != 1 or track.mute or track.lock:
        return None
    strip = track.strips[0]
    action = strip.action
    if action is None or not action.name.startswith(_layer_name(armature)) or action.users > 1 or strip.mute:
        return None
    plays = strip.blend_type == _BLEND and strip.scale == 1.0 and strip.repeat == 1.0 and not strip.use_reverse
    stays = (strip.frame_start, strip.frame_end) == (strip.action_frame_start, strip.action_frame_end)
    full = all(key.co[1] == 1.0 for curve in strip.fcurves for key in curve.keyframe_points)
    locked = any(curve.lock for curve in channels_of(action, armature).fcurves)
    return strip if plays and stays and full and not locked else None


def _add_to_layer(
    armature: bpy.types.Object,
    strip: bpy.types.NlaStrip,
    frames: FloatArray,
    layers: Mapping[str, Sequence[Any]],
) -> None:
    """Combine a layer's values with further changes.

    layers: by data path, the bone, (F, n) values, and the indices of the unlocked components.
    """
    curves: dict[str, dict[int, bpy.types.FCurve]] = {}
    for curve in channels_of(strip.action, armature).fcurves:
        curves.setdefault(curve.data_path, {})[curve.array_index] = curve
    own = np.array([key.co[0] for each in curves.values() for curve in each.values() for key in curve.keyframe_points])
    first, last = strip.frame_start, strip.frame_end
    both = np.concatenate([own, frames, [first - 1.0, last + 1.0]])
    ends = min(first, frames[0]), max(last, frames[-1])
    times = np.unique(both[(both >= ends[0]) & (both <= ends[1])])
    # Neither layer changes anything outside its own frames.
    old, new = ((times >= start) & (times <= end) for start, end in ((first, last), (frames[0], frames[-1])))
    for path in dict.fromkeys([*curves, *layers]):
        present, turned = curves.get(path, {}), path.endswith("rotation_quaternion")
        values = np.tile([1.0, 0.0, 0.0, 0.0] if turned else [0.0, 0.0, 0.0], (len(times), 1))
        added = values.copy()
        for index, curve in present.items():
            values[old, index] = [curve.evaluate(time) for time in times[old].tolist()]
        bone, more, free = layers.get(path, (bone_in_path(path), None, ()))
        if more is not None:
            added[new] = np.stack([np.interp(times[new], frames, column) for column in more.T], axis=1)
        values = product(values, added) if turned else values + added
        components = tuple(sorted({*present, *free}))
        write_curves(strip.action, armature, path, times, values, bone, components=components)
    strip.action_frame_start, strip.action_frame_end = ends
    strip.frame_start_raw, strip.frame_end_raw = ends


def _layers(old: Motion, new: NewChannels) -> Iterator[tuple[str, str, FloatArray, tuple[int, ...]]]:
    """The curves of the layer: data path, bone, (F, n) values, and the indices of the unlocked components."""
    if new.place is not None:
        free = unlocked_location(new.place)
        yield bone_path(new.place.name, "location"), new.place.name, new.moved - old.location, free
    for bone, before, after, channel in ((each.bone, each.before, each.after, each.channel) for each in new.turned):
        mode = bone.rotation_mode
        if mode == "AXIS_ANGLE":
            raise RigError(
                f"Bone {bone.name!r} uses the axis angle rotation mode, which layers can't blend: set it "
                "to quaternion or Euler"
            )
        if mode == "QUATERNION":
            values = product(conjugate(before), after)
            values = np.where(values[:, :1] < 0.0, -values, values)
        else:
            values = to_channels(mode, after[None], previous=channel)[1][0] - channel
        yield bone_path(bone.name, property_name(mode)), bone.name, values, unlocked_rotation(bone)
