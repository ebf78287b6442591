"""Animation curves: the only place that knows how Blender's versions keep them in an action.

Up to 4.3 an action holds its curves itself; from 4.4 on each animated data-block has a slot, and the curves are in the
slot's channel bag, on the one strip of the one layer that there can be. Both are told apart by what they offer.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator
from math import inf
from typing import Any, Final, TypeAlias

import bpy
import numpy as np
import numpy.typing as npt

from ...core.arrays import FloatArray, IntArray
from ...core.errors import FabrikError

# What holds curves and their groups: an Action up to 4.3, a channel bag later. Not every version has the other types.
_Channels: TypeAlias = Any
_Slot: TypeAlias = Any
_Strip: TypeAlias = Any
_ListOfKeys: TypeAlias = "bpy.types.FCurveKeyframePoints"

# Two keys nearer to each other than this, in frames, are on the same frame.
_SAME_FRAME: Final = 1e-3
# With these handles a curve is smooth at once, should somebody ask for Bézier interpolation later.
_HANDLES: Final = "AUTO_CLAMPED"


ROTATION_CHANNELS: Final = ("rotation_quaternion", "rotation_axis_angle", "rotation_euler")


def bone_path(bone: str, channel: str) -> str:
    """The data path of a pose bone's channel, from its armature object."""
    return f'pose.bones["{bpy.utils.escape_identifier(bone)}"].{channel}'


def bone_property_path(bone: str, name: str) -> str:
    """The data path of a custom property of a pose bone, from its armature object."""
    return f'pose.bones["{bpy.utils.escape_identifier(bone)}"]["{name}"]'


class KeyframeError(FabrikError):
    """An action that cannot be written; the sentence names it."""


def new_action(owner: bpy.types.Object, name: str) -> bpy.types.Action:
    """A new, empty action that animates `owner`. The one it had is kept in the file, even if nothing else uses it.

    Raises KeyframeError where the owner's action cannot be exchanged.
    """
    animation = _animation_data(owner)
    previous = animation.action
    action = bpy.data.actions.new(name)
    animation.action = action
    if previous is not None and previous.library is None and previous.users == 0:
        previous.use_fake_user = True
    if _has_slots(action):
        animation.action_slot = _new_slot(action, owner)
    return action


def check_action(owner: bpy.types.Object, *, new: bool) -> None:
    """Raise KeyframeError, naming the trouble, where the owner's action cannot be exchanged or, not `new`, written."""
    _check_owner(owner)
    animation = owner.animation_data
    if not new and animation is not None and animation.action is not None and not animation.action.is_editable:
        name = animation.action.name
        raise KeyframeError(f"Action {name!r} is linked from another file: bake to a new action instead.")


def new_action_like(owner: bpy.types.Object, name: str, *, without: Collection[str] = ()) -> bpy.types.Action:
    """A new action that animates `owner` as its present one does, except for the data paths `without`.

    The present one is kept in the file as it is. Raises KeyframeError where it cannot be exchanged.
    """
    animation = _animation_data(owner)
    previous = animation.action
    if previous is None:
        return new_action(owner, name)
    slot = _slot_identifier(owner)
    action = previous.copy()
    action.name = name
    animation.action = action
    previous.use_fake_user = previous.use_fake_user or (previous.library is None and previous.users == 0)
    if _has_slots(action):
        animation.action_slot = action.slots[slot] if slot else _new_slot(action, owner)
    _remove_curves(action, owner, without)
    return action


def current_or_new_action(owner: bpy.types.Object, name: str) -> bpy.types.Action:
    """The action that animates `owner`, with a slot for it; a new one called `name` where there is none.

    Raises KeyframeError where the action cannot be written, such as one linked from another file.
    """
    animation = _animation_data(owner)
    action = animation.action
    if action is None:
        return new_action(owner, name)
    check_action(owner, new=False)
    if _has_slots(action) and animation.action_slot is None:
        animation.action_slot = _own_slot(action, owner)
    return action


def new_strip_action(owner: bpy.types.Object, name: str) -> bpy.types.Action:
    """A new, empty action made for `owner` and not assigned to it, to become a strip once it has its keys.

    Raises KeyframeError where the owner's animation cannot be changed.
    """
    _check_owner(owner)
    action = bpy.data.actions.new(name)
    if _has_slots(action):
        _new_slot(action, owner)
    return action


def add_strip(owner: bpy.types.Object, action: bpy.types.Action) -> bpy.types.NlaStrip:
    """Play an action as an NLA strip on a track of its own, above all others, on the frames that its keys are on.

    The owner's present action, which would hide every strip, becomes a strip below it, as Blender's Push Down does.
    """
    animation = _animation_data(owner)
    present = animation.action
    if present is not None and present != action:
        _push_down(animation, present)
    return _new_strip(animation, action, _own_slot(action, owner) if _has_slots(action) else None)


def write_curves(
    action: bpy.types.Action,
    owner: bpy.types.Object,
    data_path: str,
    frames: npt.ArrayLike,
    values: npt.ArrayLike,
    group: str,
    *,
    interpolation: str = "LINEAR",
    components: Collection[int] | None = None,
) -> None:
    """Key a property on many frames at once, one curve for each of its components.

    Keys from the first to the last of the frames are replaced, those outside stay as they are.

    Args:
        action: as from `new_action` or `current_or_new_action`.
        owner: the data-block that the action animates.
        data_path: the property's path from `owner`.
        frames: (F,) rising, whole or not; with none of them the curves are made but not touched.
        values: (F, n), or (F,) for a property of one number.
        group: heading of the curves in the animation editors.
        interpolation: of the keys, such as "LINEAR" or "BEZIER".
        components: which of the property's numbers get keys; all of them when None.

    Raises:
        KeyframeError: when a value is not finite.
    """
    times = np.asarray(frames, dtype=np.float64)
    table = np.asarray(values, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if not (np.isfinite(table).all() and np.isfinite(times).all()):
        raise KeyframeError(f"A key of {data_path} in action {action.name!r} would not be a finite number.")
    channels = _channels(action, owner)
    heading = channels.groups.get(group) or channels.groups.new(group)
    for index, column in enumerate(table.T):
        if components is not None and index not in components:
            continue
        curve = channels.fcurves.find(data_path, index=index) or channels.fcurves.new(data_path, index=index)
        if curve.group is None:
            curve.group = heading
        if len(times):
            _replace_keys(curve, times, column, interpolation)


def amend_curve(
    action: bpy.types.Action,
    owner: bpy.types.Object,
    data_path: str,
    index: int,
    frames: npt.ArrayLike,
    values: npt.ArrayLike,
    group: str,
) -> None:
    """Set keys of one component on some frames only; all others stay, also those between.

    A key that is there keeps its interpolation, and its handles go with it; a new one takes over the interpolation of
    the key before it.

    Args:
        action: as from `current_or_new_action`.
        owner: the data-block that the action animates.
        data_path: the property's path from `owner`.
        index: which component of it.
        frames: (F,) rising, whole or not.
        values: (F,)
        group: heading of a curve that has to be made.
    """
    channels = _channels(action, owner)
    curve = channels.fcurves.find(data_path, index=index) or channels.fcurves.new(data_path, index=index)
    if curve.group is None:
        curve.group = channels.groups.get(group) or channels.groups.new(group)
    _amend_keys(curve, np.asarray(frames, dtype=np.float64), np.asarray(values, dtype=np.float64))


def curves(owner: bpy.types.Object) -> Iterator[bpy.types.FCurve]:
    """The curves that the present action has for `owner`; none without an action or a slot in it."""
    animation = owner.animation_data
    if animation is None or animation.action is None:
        return
    if not _has_slots(animation.action):
        yield from animation.action.fcurves
    elif animation.action_slot is not None:
        for channels in _bags(animation.action, animation.action_slot):
            yield from channels.fcurves


def keys(curve: bpy.types.FCurve) -> FloatArray:
    """(K, 2) frame and value of a curve's keys, in order of time."""
    return _get(curve.keyframe_points, "co", 2, np.float32).astype(np.float64)


def keys_beside(curve: bpy.types.FCurve, frame: float) -> tuple[float, float]:
    """The frames of the last key before a frame and of the first one on it or after it; infinite where there is none.

    Looks at a few keys only, however many there are.
    """
    points: Any = curve.keyframe_points
    place = bisect_left(points, frame, key=lambda point: point.co[0])
    return points[place - 1].co[0] if place else -inf, points[place].co[0] if place < len(points) else inf


def scale_values(curve: bpy.types.FCurve, factor: float, shift: float) -> None:
    """Multiply the values of a curve by a factor and add to them; its shape stays what it was."""
    points = curve.keyframe_points
    for name in ("co", "handle_left", "handle_right"):
        table = _get(points, name, 2, np.float32)
        table[:, 1] = table[:, 1] * factor + shift
        points.foreach_set(name, table.ravel())
    curve.update()


def all_linear(curve: bpy.types.FCurve) -> bool:
    """Whether every key of a curve goes on to the next in a straight line."""
    kinds = _get(curve.keyframe_points, "interpolation", 1, np.int32)
    return bool((kinds == _enum_value("interpolation", "LINEAR")).all())


def _animation_data(owner: bpy.types.Object) -> bpy.types.AnimData:
    """The owner's animation data, made where there is none, with an action that may be exchanged."""
    _check_owner(owner)
    return owner.animation_data or owner.animation_data_create()


def _push_down(animation: bpy.types.AnimData, action: bpy.types.Action) -> None:
    """Make the present action a strip that plays just as it does: as much, blended and going on beyond its ends."""
    slot, influence = getattr(animation, "action_slot", None), animation.action_influence
    blend_type, extrapolation = animation.action_blend_type, animation.action_extrapolation
    animation.action = None
    strip = _new_strip(animation, action, slot)
    strip.blend_type, strip.extrapolation = blend_type, extrapolation
    if influence < 1.0:
        # A strip's influence is its own only where it is animated; the curve's one key takes this value over.
        strip.influence = influence
        strip.use_animated_influence = True


def _new_strip(animation: bpy.types.AnimData, action: bpy.types.Action, slot: _Slot) -> bpy.types.NlaStrip:
    """A strip of an action, on a track of its own above all others, on the frames that its keys are on."""
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


def _check_owner(owner: bpy.types.Object) -> None:
    """Raise KeyframeError where the owner cannot be animated as things are."""
    if owner.library is not None:
        raise KeyframeError(f"{owner.name!r} is linked from another file: make a library override first.")
    if owner.animation_data is not None and owner.animation_data.use_tweak_mode:
        raise KeyframeError(f"{owner.name!r} has an NLA strip in tweak mode: leave it first.")


def _has_slots(action: bpy.types.Action) -> bool:
    return hasattr(action, "slots")


def _new_slot(action: bpy.types.Action, owner: bpy.types.Object) -> _Slot:
    return action.slots.new(id_type=owner.id_type, name=owner.name)


def _own_slot(action: bpy.types.Action, owner: bpy.types.Object) -> _Slot:
    """The slot of an action for its owner: the one assigned, the one of its name, or a new one.

    Never one of another name: it may animate something else.
    """
    animation = owner.animation_data
    if animation is not None and animation.action == action and animation.action_slot is not None:
        return animation.action_slot
    own = (slot for slot in action.slots if slot.target_id_type == owner.id_type and slot.name_display == owner.name)
    return next(own, None) or _new_slot(action, owner)


def _slot_identifier(owner: bpy.types.Object) -> str:
    """What the owner's slot is called in its present action; "" where there are no slots or it has none."""
    slot = getattr(owner.animation_data, "action_slot", None)
    return slot.identifier if slot is not None else ""


def _remove_curves(action: bpy.types.Action, owner: bpy.types.Object, data_paths: Collection[str]) -> None:
    """Take the curves of some data paths out of an action."""
    channels = _channels(action, owner)
    for curve in [curve for curve in channels.fcurves if curve.data_path in data_paths]:
        channels.fcurves.remove(curve)


def _channels(action: bpy.types.Action, owner: bpy.types.Object) -> _Channels:
    """What holds the curves of `action` for `owner`, made where it is not there yet."""
    if not _has_slots(action):
        return action
    layer = action.layers[0] if action.layers else action.layers.new("Layer")
    strip: _Strip = layer.strips[0] if layer.strips else layer.strips.new(type="KEYFRAME")
    return strip.channelbag(_own_slot(action, owner), ensure=True)


def _bags(action: bpy.types.Action, slot: _Slot) -> Iterator[_Channels]:
    """The channel bags of a slot that are there."""
    strips: list[_Strip] = [strip for layer in action.layers for strip in layer.strips]
    for strip in strips:
        bag = strip.channelbag(slot)
        if bag is not None:
            yield bag


def _replace_keys(curve: bpy.types.FCurve, frames: FloatArray, values: FloatArray, interpolation: str) -> None:
    """Put (F,) keys in place of all from the first frame to the last; `update` then sorts them."""
    points = curve.keyframe_points
    was_empty = not len(points)
    rows = _make_room(points, frames[0] - _SAME_FRAME, frames[-1] + _SAME_FRAME, len(frames))
    _set(points, "co", np.column_stack((frames, values)).astype(np.float32), rows)
    kinds = {"interpolation": interpolation, "handle_left_type": _HANDLES, "handle_right_type": _HANDLES}
    for name, item in kinds.items():
        # Keys that have just been added are all alike; to be told what they are already takes long.
        if not (was_empty and getattr(points[0], name) == item):
            _set(points, name, _enum_column(name, item, len(rows)), rows)
    curve.update()


def _amend_keys(curve: bpy.types.FCurve, frames: FloatArray, values: FloatArray) -> None:
    """Move the keys that are on (F,) frames to (F,) values, and add those that are not."""
    points = curve.keyframe_points
    present = _get(points, "co", 2, np.float32)
    places = np.searchsorted(present[:, 0], frames - _SAME_FRAME)
    there = np.zeros(len(frames), dtype=np.bool_)
    inside = places < len(present)
    there[inside] = present[places[inside], 0] <= frames[inside] + _SAME_FRAME
    _move_keys(points, places[there], values[there])
    new = np.flatnonzero(~there)
    kinds = _get(points, "interpolation", 1, np.int32)
    before = kinds[np.maximum(places[new] - 1, 0)] if len(kinds) else _enum_column("interpolation", "LINEAR", len(new))
    points.add(len(new))
    rows = np.arange(len(present), len(points))
    _set(points, "co", np.column_stack((frames, values))[new].astype(np.float32), rows)
    _set(points, "interpolation", before.astype(np.int32), rows)
    _set(points, "handle_left_type", _enum_column("handle_left_type", _HANDLES, len(rows)), rows)
    _set(points, "handle_right_type", _enum_column("handle_right_type", _HANDLES, len(rows)), rows)
    curve.update()


def _move_keys(points: "_ListOfKeys", rows: IntArray, values: FloatArray) -> None:
    """Give the keys at (K,) places (K,) values; what was drawn by hand about them moves along."""
    moves = values - _get(points, "co", 2, np.float32)[rows, 1]
    for name in ("co", "handle_left", "handle_right"):
        table = _get(points, name, 2, np.float32)
        table[rows, 1] += moves
        points.foreach_set(name, table.ravel())


def _make_room(points: "_ListOfKeys", first: float, last: float, count: int) -> IntArray:
    """(count,) places of keys to be set: those from frame `first` to frame `last`, made more or fewer as needed."""
    times = _get(points, "co", 2, np.float32)[:, 0]
    inside = np.flatnonzero((times >= first) & (times <= last))
    # One by one is slow, but baking again finds as many keys as it brings.
    for place in inside[count:][::-1]:
        points.remove(points[int(place)], fast=True)
    present = len(points)
    points.add(max(0, count - len(inside)))
    return np.concatenate((inside[:count], np.arange(present, len(points))))


def _get(points: "_ListOfKeys", name: str, width: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """(K, width) a property of every key, (K,) where the width is 1."""
    values = np.empty(len(points) * width, dtype=kind)
    points.foreach_get(name, values)
    return values.reshape(-1, width) if width > 1 else values


def _set(points: "_ListOfKeys", name: str, values: npt.NDArray[Any], rows: IntArray) -> None:
    """Set a property, (F, width) or (F,), of the keys at (F,) places."""
    if len(rows) < len(points):
        width = values.shape[1] if values.ndim > 1 else 1
        every = _get(points, name, width, values.dtype)
        every[rows] = values
        values = every
    points.foreach_set(name, values.ravel())


def _enum_column(name: str, item: str, count: int) -> npt.NDArray[np.int32]:
    """(count,) the number that stands for a choice of one of the keys' properties."""
    return np.full(count, _enum_value(name, item), dtype=np.int32)


def _enum_value(name: str, item: str) -> int:
    choice: Any = bpy.types.Keyframe.bl_rna.properties[name]
    number: int = choice.enum_items[item].value
    return number
