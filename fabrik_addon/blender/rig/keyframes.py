"""Actions, their slots, NLA strips and curves; writes and reads many keys at a time.

No other module knows how Blender stores curves in an action. Each animated data-block has a slot, and its curves are in
the slot's channel bag, on the only strip of the only layer.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, Final

import bpy
import numpy as np
import numpy.typing as npt
from bpy.types import Action, FCurve, Object, PoseBone
from bpy_extras import anim_utils

from ...core.arrays import FloatArray, IntArray
from ...core.channels import from_channels
from ...core.errors import FabrikError
from ..settings.why_not import is_layered, why_not_editable
from .armature import property_name


class KeyframeError(FabrikError):
    """An action that cannot be written; the message names it."""


def new_action(owner: Object, name: str, *, without: Collection[str] | None = None) -> Action:
    """A new action that animates `owner`: empty, or like its current one without the data paths in `without`.

    The current action is kept in the file, even if unused. Raises KeyframeError if it cannot be replaced.
    """
    animation = _animation_data(owner)
    previous, slot = animation.action, animation.action_slot
    is_copy = without is not None and previous is not None
    action = previous.copy() if is_copy else bpy.data.actions.new(name)
    animation.action = action
    if previous is not None and previous.library is None and previous.users == 0:
        previous.use_fake_user = True
    animation.action_slot = action.slots[slot.identifier] if is_copy and slot is not None else _new_slot(action, owner)
    if is_copy:
        action.name, channels = name, channels_of(action, owner)
        for curve in [curve for curve in channels.fcurves if curve.data_path in without]:
            channels.fcurves.remove(curve)
    return action


def check_action(owner: Object, *, new: bool, tweaked: bool = False) -> None:
    """Raise KeyframeError, with the reason, if the owner's action can't be written or, with `new`, replaced.

    tweaked: whether the action may be that of an NLA strip in tweak mode, see `action_frame`.
    """
    if reason := why_not_editable(owner):
        raise KeyframeError(reason)
    if not tweaked:
        check_not_tweaked(owner)
    animation = owner.animation_data
    if not new and animation is not None and animation.action is not None and not animation.action.is_editable:
        name = animation.action.name
        raise KeyframeError(f"Action {name!r} is linked from another file: make it local, or use a new action")


def check_not_shared(owner: Object) -> None:
    """Raise KeyframeError if another object is animated by the owner's current slot, since it would change too."""
    animation = owner.animation_data
    slot: Any = None if animation is None else animation.action_slot
    if others := [] if slot is None else [each.name for each in slot.users() if each != owner]:
        name = animation.action.name
        raise KeyframeError(
            f"Action {name!r} also animates {others[0]!r} with the same slot: make it single-user first"
        )


def current_or_new_action(owner: Object, name: str) -> Action:
    """The action that animates `owner`, with a slot for it; a new one called `name` if there is none.

    Raises KeyframeError if the action cannot be written, such as one linked from another file.
    """
    animation = _animation_data(owner)
    action = animation.action
    if action is None:
        return new_action(owner, name)
    check_action(owner, new=False)
    if animation.action_slot is None:
        animation.action_slot = _own_slot(action, owner)
    return action


def new_strip_action(owner: Object, name: str) -> Action:
    """A new, empty action for `owner`, which is not assigned to it. It becomes a strip once it has keys.

    Raises KeyframeError if the owner's animation cannot be changed.
    """
    check_action(owner, new=True)
    action = bpy.data.actions.new(name)
    _new_slot(action, owner)
    return action


def add_strip(owner: Object, action: Action) -> bpy.types.NlaStrip:
    """Play an action as an NLA strip on a new track above all others, on the frames of its keys.

    The owner's current action, which would hide every strip, becomes a strip below it, as with Blender's Push Down.
    """
    animation = _animation_data(owner)
    current = animation.action
    if current is not None and current != action:
        # Make the current action a strip with the same influence, blending and extrapolation, to keep its effect.
        slot, influence = animation.action_slot, animation.action_influence
        blend_type, extrapolation = animation.action_blend_type, animation.action_extrapolation
        animation.action = None
        strip = _new_strip(animation, current, slot)
        strip.blend_type, strip.extrapolation = blend_type, extrapolation
        if influence < 1.0:
            # A strip uses its own influence only if the influence is animated. This sets the value of its single key.
            strip.influence = influence
            strip.use_animated_influence = True
    return _new_strip(animation, action, _own_slot(action, owner))


def channels_of(action: Action, owner: Object) -> Any:
    """The channel bag of `action` for `owner`, with its curves and groups; made if it does not exist."""
    layer = action.layers[0] if action.layers else action.layers.new("Layer")
    strip: Any = layer.strips[0] if layer.strips else layer.strips.new(type="KEYFRAME")
    return strip.channelbag(_own_slot(action, owner), ensure=True)


def _animation_data(owner: Object) -> bpy.types.AnimData:
    """The owner's animation data, made if it does not exist, with an action that may be replaced."""
    check_action(owner, new=True)
    return owner.animation_data or owner.animation_data_create()


def _new_strip(animation: bpy.types.AnimData, action: Action, slot: bpy.types.ActionSlot | None) -> bpy.types.NlaStrip:
    """A strip of an action, on a new track above all others, on the frames of its keys."""
    track = animation.nla_tracks.new()
    track.name = action.name
    first = action.frame_range[0]
    strip = track.strips.new(action.name, int(np.floor(first)), action)
    # Blender makes strips on whole frames.
    strip.frame_end_raw += first - strip.frame_start_raw
    strip.frame_start_raw = first
    if slot is not None:
        strip.action_slot = slot
    return strip


def check_not_tweaked(owner: Object) -> None:
    """Raise KeyframeError if one of the owner's NLA strips is in tweak mode."""
    if owner.animation_data is not None and owner.animation_data.use_tweak_mode:
        raise KeyframeError(
            f"{owner.name!r} has an NLA strip in tweak mode, where keys are in the strip's own time: "
            "press Tab in the NLA editor to leave it"
        )


def action_frame(owner: Object, frame: float, *, to_scene: bool = False) -> float:
    """Convert a frame of the scene to the time of the owner's action, or back; they differ only in tweak mode."""
    animation = owner.animation_data
    if animation is None or not animation.use_tweak_mode:
        return frame
    return animation.nla_tweak_strip_time_to_scene(frame, invert=not to_scene)


def _new_slot(action: Action, owner: Object) -> bpy.types.ActionSlot:
    return action.slots.new(id_type=owner.id_type, name=owner.name)


def _own_slot(action: Action, owner: Object) -> bpy.types.ActionSlot:
    """The slot of an action for its owner: the assigned slot, the slot with the owner's name, or a new slot.

    Never returns a slot with another name, which may animate something else.
    """
    animation = owner.animation_data
    if animation is not None and animation.action == action and animation.action_slot is not None:
        return animation.action_slot
    own = (slot for slot in action.slots if slot.target_id_type == owner.id_type and slot.name_display == owner.name)
    return next(own, None) or _new_slot(action, owner)


def active_strips(armature: Object) -> list[bpy.types.NlaStrip]:
    """The strips of an armature that have an action and are not muted."""
    tracks = [track for track in armature.animation_data.nla_tracks if not track.mute]
    return [strip for track in tracks for strip in track.strips if not strip.mute and strip.action is not None]


# Frames that differ by less than this are equal.
SAME_FRAME: Final = 1e-3
# The modes of the Cycles modifier that repeat a curve beyond its keys.
_ROUND: Final = {"REPEAT", "REPEAT_OFFSET"}
# Evaluating a curve takes as long as reading this many of its keys.
_FEW_FRAMES: Final = 20
# With these handles, a curve is smooth if it is later switched to Bézier interpolation.
_KEY_KINDS: Final = {"interpolation": "LINEAR", "handle_left_type": "AUTO_CLAMPED", "handle_right_type": "AUTO_CLAMPED"}
# Blender computes these handles in a fraction of the time. They lie on the lines between keys.
_STRAIGHT: Final = {"handle_left_type": "VECTOR", "handle_right_type": "VECTOR"}
# The properties of a key other than its frame, value and handles.
KEY_KINDS: Final = ("interpolation", "easing", "handle_left_type", "handle_right_type", "amplitude", "back", "period")
# The ID property with the slot and the name of an action that was set aside.
_ASIDE: Final = "fabrik_aside"
_BONE: Final = re.compile(r'pose\.bones\["((?:[^"\\]|\\.)*)"\]')
ROTATION_CHANNELS: Final = ("rotation_quaternion", "rotation_axis_angle", "rotation_euler")


def bone_path(bone: str, channel: str) -> str:
    """The data path of a pose bone's channel, relative to its armature object."""
    return f'pose.bones["{bpy.utils.escape_identifier(bone)}"].{channel}'


def bone_in_path(path: str) -> str:
    """The bone in a data path; "" if there is none."""
    found = _BONE.match(path)
    return bpy.utils.unescape_identifier(found[1]) if found else ""


def write_curves(
    action: Action,
    owner: Object,
    data_path: str,
    frames: npt.ArrayLike,
    values: npt.ArrayLike,
    group: str,
    *,
    components: Collection[int] | None = None,
) -> bool:
    """Key a property on many frames at once, with linear interpolation and one curve for each component.

    Keys from the first to the last frame are replaced; others stay. Locked curves do not change. Returns whether a
    curve is locked.

    Args:
        action: from `new_action` or `current_or_new_action`.
        owner: the data-block that the action animates.
        data_path: the property's path from `owner`.
        frames: (F,) increasing frames or subframes; without frames the curves are made but stay empty.
        values: (F, n).
        group: heading of the curves in the animation editors.
        components: indices of the components that get keys; None for all.

    Raises:
        KeyframeError: if a value is not finite.
    """
    times = np.asarray(frames, dtype=np.float64)
    table = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(table).all() and np.isfinite(times).all()):
        raise KeyframeError(
            f"A key of {data_path} in action {action.name!r} would not be a finite number: move its "
            "target closer to the rig"
        )
    channels = channels_of(action, owner)
    any_locked = False
    for index, column in enumerate(table.T):
        if components is None or index in components:
            curve = channels.fcurves.find(data_path, index=index) or channels.fcurves.new(data_path, index=index)
            if curve.group is None:
                curve.group = channels.groups.get(group) or channels.groups.new(group)
            any_locked |= is_locked(curve)
            if len(times) and not is_locked(curve):
                _replace_keys(curve, times, column)
    return any_locked


def is_locked(curve: FCurve) -> bool:
    """Whether a curve, or its group, is locked."""
    return curve.lock or (curve.group is not None and curve.group.lock)


def insert_keys(curve: FCurve, frames: FloatArray, values: FloatArray) -> None:
    """Set keys of a curve on frames (F,) to values (F,); other keys stay, even between these frames.

    An existing key keeps its interpolation, and its handles move with it; a new one gets the interpolation of the key
    before it.
    """
    points = curve.keyframe_points
    # Blender copies the interpolation only if there are two keys already.
    only = points[0].interpolation if len(points) == 1 else None
    for frame, value in zip(frames.tolist(), values.tolist(), strict=True):
        points.insert(frame, value, options={"FAST"})
    for key in points if only else ():
        key.interpolation = only
    curve.update()


def set_aside(owners: Collection[Object]) -> None:
    """Unassign new actions until another file is opened, because Blender copies the keys of actions in use.

    `curves` still finds these actions. Saved files assign them to their owners, with the values on the current frame.
    """

    def toggle(*_saved: object) -> None:
        for owner in owners:
            animation, aside = owner.animation_data, _aside(owner)
            if aside is None:
                owner[_ASIDE] = f"{animation.action_slot.identifier}\n{animation.action.name}"
                animation.action = None
                continue
            for path, own in curves_by_path(curves(owner)).items():
                # The property may no longer exist, or be a single number.
                with suppress(ValueError, TypeError):
                    values = owner.path_resolve(path)
                    for curve in own:
                        values[curve.array_index] = curve.evaluate(bpy.context.scene.frame_current_final)
            animation.action, animation.action_slot = aside
            del owner[_ASIDE]

    toggle()
    bpy.app.handlers.save_pre.append(toggle)
    bpy.app.handlers.save_post.append(toggle)


def _aside(owner: Object) -> tuple[Action, bpy.types.ActionSlot] | None:
    """The action of an object that was set aside, and its slot; None if there is none."""
    slot, _, name = owner.get(_ASIDE, "").partition("\n")
    return (action := bpy.data.actions[name, None], action.slots[slot]) if name else None


def point_to_action(holder: Any, owner: Object) -> None:
    """Set the `action` of a property group to that of an owner; if that was set aside, only in saved files."""
    aside, animation = _aside(owner), owner.animation_data
    # The topmost NLA strip, if there is no current action.
    action = aside[0] if aside else animation.action or animation.nla_tracks[-1].strips[-1].action

    def point(*_saved: object) -> None:
        holder.action = action

    def release(*_saved: object) -> None:
        holder.action = None

    if aside:
        bpy.app.handlers.save_pre.append(point)
        bpy.app.handlers.save_post.append(release)
    else:
        point()


def curves(owner: Object) -> list[FCurve]:
    """The curves of the current action for `owner`; empty without an action, or without a slot in it."""
    if (aside := _aside(owner)) is not None:
        return curves_of(*aside)
    animation = owner.animation_data
    return [] if animation is None else curves_of(animation.action, animation.action_slot)


def curves_of(action: Action | None, slot: bpy.types.ActionSlot | None) -> list[FCurve]:
    """The curves of an action for a slot; empty without an action or a slot."""
    channels = anim_utils.action_get_channelbag_for_slot(action, slot)
    return [] if channels is None else list(channels.fcurves)


def every_curve(armature: Object) -> list[FCurve]:
    """The curves of an armature's action; without an action, those of the active strips."""
    return strip_curves(armature) if is_layered(armature) else curves(armature)


def strip_curves(armature: Object) -> list[FCurve]:
    """The curves of an armature's active strips."""
    return [curve for each in active_strips(armature) for curve in curves_of(each.action, each.action_slot)]


def curves_by_key(every: Iterable[FCurve]) -> dict[tuple[str, int], FCurve]:
    """The curves by data path and index."""
    return {(curve.data_path, curve.array_index): curve for curve in every}


def curves_by_path(every: Iterable[FCurve]) -> dict[str, list[FCurve]]:
    """The curves that have keys and are not muted, by data path."""
    found: dict[str, list[FCurve]] = {}
    for curve in every:
        if len(curve.keyframe_points) and not (curve.mute or (curve.group is not None and curve.group.mute)):
            found.setdefault(curve.data_path, []).append(curve)
    return found


class RigCurves:
    """Reads the channels of an armature's bones from curves. Curves that have no keys or are muted are left out."""

    def __init__(self, armature: Object, every: Iterable[FCurve]) -> None:
        self._bones, self._by_path = armature.pose.bones, curves_by_path(every)

    def channel(self, bone: str, channel: str = "") -> list[FCurve]:
        """The curves of a bone's channel, by default of its rotation in its rotation mode; empty without the bone."""
        found: PoseBone | None = self._bones.get(bone) if self._by_path else None
        if found is None:
            return []
        return self._by_path.get(found.path_from_id(channel or property_name(found.rotation_mode)), [])

    def times(self, bone: str) -> FloatArray:
        """(K,) frames with a key of a bone's rotation, in order."""
        return np.unique(np.concatenate([np.zeros(0), *(keys(curve)[:, 0] for curve in self.channel(bone))]))

    def values(self, bone: str, frames: FloatArray | IntArray, channel: str = "") -> FloatArray:
        """(F, n) values of a bone's channel on frames (F,), by default of its rotation.

        Components without a curve keep their current value.
        """
        found = self._bones[bone]
        current = getattr(found, channel or property_name(found.rotation_mode))
        return channel_values(current, self.channel(bone, channel), frames)

    def rotations(self, bone: str, frames: FloatArray | IntArray) -> FloatArray:
        """(F, 4) local rotations of a bone, w x y z, on frames (F,)."""
        return from_channels(self._bones[bone].rotation_mode, self.values(bone, frames))


def keys(curve: FCurve) -> FloatArray:
    """(K, 2) frames and values of a curve's keys, in order of time."""
    return _get(curve.keyframe_points, "co", 2, np.float32).astype(np.float64)


def cycle_of(curve: FCurve) -> tuple[float, float] | None:
    """The first and the last frame of the cycle of a curve; None if it is not cyclic."""
    modifiers: Any = curve.modifiers
    for modifier in modifiers:
        if modifier.type == "CYCLES" and not modifier.mute and _ROUND & {modifier.mode_before, modifier.mode_after}:
            times = keys(curve)[:, 0]
            return (float(times[0]), float(times[-1])) if len(times) > 1 else None
    return None


def in_cycle(cycle: tuple[float, float], frames: FloatArray) -> FloatArray:
    """Map frames (F,) to the frames of the cycle that they repeat. The cycle's last frame counts as its first."""
    first, last = cycle
    places = np.mod(frames - first, last - first)
    return np.asarray(first + np.where(places > last - first - SAME_FRAME, 0.0, places))


def key_times(curve: FCurve, within: tuple[float, float] | None) -> FloatArray:
    """(K,) frames of a curve's keys; with `within`, keys of a cyclic curve are repeated between these frames."""
    times, cycle = keys(curve)[:, 0], cycle_of(curve)
    if cycle is None or within is None:
        return times
    length = cycle[1] - cycle[0]
    rounds = np.arange(np.floor((within[0] - cycle[0]) / length), np.ceil((within[1] - cycle[0]) / length) + 1.0)
    again = (times[:-1] + length * rounds[:, None]).ravel()
    return np.asarray(again[(again >= within[0]) & (again <= within[1])])


def values_at(curve: FCurve, frames: FloatArray | IntArray) -> FloatArray:
    """(F,) values of a curve on frames (F,): from keys or lines between them if possible, else evaluated."""
    if len(curve.keyframe_points) <= _FEW_FRAMES * len(frames) and not curve.modifiers:
        times, values = keys(curve).T
        places = np.minimum(np.searchsorted(times, frames), max(len(times) - 1, 0))
        if len(times) and (times[places] == frames).all():
            return np.asarray(values[places])
        kinds = _get(curve.keyframe_points, "interpolation", 1, np.uint8)
        if len(times) and curve.extrapolation == "CONSTANT" and (kinds == _enum_value("interpolation", "LINEAR")).all():
            return np.interp(frames, times, values)
    return np.array([curve.evaluate(frame) for frame in frames.tolist()])


def channel_values(current: npt.ArrayLike, curves: Iterable[FCurve], frames: FloatArray | IntArray) -> FloatArray:
    """(F, n) values of a property on frames (F,); components without a curve keep their current value (n,)."""
    values = np.tile(np.asarray(current, dtype=np.float64), (len(frames), 1))
    for curve in curves:
        values[:, curve.array_index] = values_at(curve, frames)
    return values


def scale_values(curve: FCurve, factor: float, shift: float | FloatArray) -> None:
    """Multiply the values of a curve's K keys and handles by a factor, and add `shift`, a number or (K,)."""
    points, automatic = curve.keyframe_points, _enum_value("handle_left_type", "AUTO_CLAMPED")
    # Blender computes automatic handles itself.
    handles = [
        side
        for side in ("handle_left", "handle_right")
        if not (_get(points, f"{side}_type", 1, np.uint8) == automatic).all()
    ]
    for name in ("co", *handles):
        table = _get(points, name, 2, np.float32)
        table[:, 1] = table[:, 1] * factor + shift
        points.foreach_set(name, table.ravel())
    curve.update()


def copy_keys(source: FCurve, target: FCurve, places: slice) -> None:
    """Copy some keys of a curve, with all their properties, to an empty curve."""
    points, copies = source.keyframe_points, target.keyframe_points
    copies.add(len(range(*places.indices(len(points)))))
    for name in (*KEY_KINDS, "co", "handle_left", "handle_right"):
        is_number = name in {"amplitude", "back", "period", "co", "handle_left", "handle_right"}
        width = 2 if name in {"co", "handle_left", "handle_right"} else 1
        values = _get(points, name, width, np.float32 if is_number else np.uint8)
        copies.foreach_set(name, values[places].ravel())
    target.update()


def make_steps(curve: FCurve) -> None:
    """Make a curve keep the value of each key until the next key."""
    points, kind = curve.keyframe_points, _enum_value("interpolation", "CONSTANT")
    points.foreach_set("interpolation", np.full(len(points), kind, dtype=np.uint8))
    curve.update()


def _replace_keys(curve: FCurve, frames: FloatArray, values: FloatArray) -> None:
    """Replace all keys from the first to the last of frames (F,) by values (F,); call the curve's `update` after it."""
    points = curve.keyframe_points
    was_empty = not len(points)
    first = frames[0] - SAME_FRAME
    last = frames[-1] + SAME_FRAME
    count = len(frames)
    times = _get(points, "co", 2, np.float32)[:, 0]
    inside = np.flatnonzero((times >= first) & (times <= last))
    # Removing keys one by one is slow, but a repeated bake replaces the same number of keys.
    for place in inside[count:][::-1]:
        points.remove(points[int(place)], fast=True)
    current = len(points)
    points.add(max(0, count - len(inside)))
    rows = np.concatenate((inside[:count], np.arange(current, len(points))))
    _set(points, "co", np.column_stack((frames, values)).astype(np.float32), rows)
    for name, item in (_KEY_KINDS | (_STRAIGHT if was_empty else {})).items():
        _set(points, name, np.full(len(rows), _enum_value(name, item), dtype=np.uint8), rows)
    curve.update()
    for name in _STRAIGHT if was_empty else ():
        points.foreach_set(name, np.full(len(points), _enum_value(name, _KEY_KINDS[name]), dtype=np.uint8))


def _get(points: "bpy.types.FCurveKeyframePoints", name: str, width: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """(K, width) values of a property of every key; (K,) if the width is 1."""
    values = np.empty(len(points) * width, dtype=kind)
    points.foreach_get(name, values)
    return values.reshape(-1, width) if width > 1 else values


def _set(points: "bpy.types.FCurveKeyframePoints", name: str, values: npt.NDArray[Any], rows: IntArray) -> None:
    """Set a property, (F, width) or (F,), of the keys at indices (F,)."""
    if len(rows) < len(points):
        every = _get(points, name, values.shape[1] if values.ndim > 1 else 1, values.dtype)
        every[rows] = values
        values = every
    points.foreach_set(name, values.ravel())


def _enum_value(name: str, item: str) -> int:
    choice: Any = bpy.types.Keyframe.bl_rna.properties[name]
    return choice.enum_items[item].value
