"""Stores the keys that a hold replaces in an unused action, and restores them.

The action has two slots: the keys before the hold, and the keys that the hold has written. A key that still has the
written value is restored. A key that was inserted or changed since is kept. Therefore other edits of the same keys
also change both slots. Keys that were moved in time are found again by their values.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import bpy
import numpy as np

from ...core.arrays import BoolArray, FloatArray
from ..rig import keyframes
from ..settings.rig import rig_settings
from .take import SAME_FRAME, cycle_of

# A curve is identified by its data path and its index.
Curves: TypeAlias = Mapping[tuple[str, int], bpy.types.FCurve]
_BEFORE, _WRITTEN = "Before", "Written"
# Values that differ by less than this share (of 1 for small values) are equal; Blender stores keys in single precision.
_SAME_VALUE: Final = 1e-5
# The written keys are found if at least this share of them have their written values, all moved by the same time.
_FOUND: Final = 0.25


class Shift(NamedTuple):
    """The (F,) values by which the keys of a curve on (F,) frames shift."""

    curve: tuple[str, int]
    frames: FloatArray
    by: FloatArray


def start_record(
    armature: bpy.types.Object, name: str, curves: Iterable[bpy.types.FCurve], ends: tuple[float, float]
) -> bpy.types.Action:
    """Store the keys of some curves between two frames in a new record, before they are changed.

    A dot in front of the record's name hides it in Blender's lists.
    """
    record = bpy.data.actions.new(f".{name}")
    strip: Any = record.layers.new("Layer").strips.new(type="KEYFRAME")
    for slot in (_BEFORE, _WRITTEN):
        strip.channelbag(record.slots.new(id_type=armature.id_type, name=slot), ensure=True)
    _copy(curves, record, _BEFORE, ends)
    return record


def complete_record(record: bpy.types.Action, curves: Iterable[bpy.types.FCurve], ends: tuple[float, float]) -> None:
    """Complete a record with the current keys of the same curves."""
    _copy(curves, record, _WRITTEN, ends)


def later_records(
    armature: bpy.types.Object, but: bpy.types.Action | None = None
) -> list[tuple[bpy.types.Action, float]]:
    """The records of the armature's holds, and the number of frames by which the current curves were moved since.

    Changes of the curves must be made in these records too, with `shift_records`.
    """
    curves, found = _own(keyframes.curves(armature)), []
    for hold in rig_settings(armature).holds:
        record = hold.replaced
        moved = None if record is None or record == but else moved_in_time(record, curves)
        if moved is not None:
            if record.users > 1:
                # A copied rig shares the record, so copy it.
                record = hold.replaced = record.copy()
            found.append((record, moved))
    return found


def shift_records(records: Iterable[tuple[bpy.types.Action, float]], shifts: Iterable[Shift]) -> None:
    """Shift the keys in the records from `later_records` by the same values as the current curves."""
    by_curve = {shift.curve: shift for shift in shifts}
    for record, moved in records:
        for slot in (_BEFORE, _WRITTEN):
            for key, curve in _of(record, slot).items():
                if key in by_curve:
                    shift_keys(curve, by_curve[key].frames - moved, by_curve[key].by)


def restore_keys(armature: bpy.types.Object, record: bpy.types.Action) -> tuple[int, bool]:
    """Restore the keys of a record that still have their written values.

    Searches the armature's current curves, those of its NLA strips, and all actions, in this order. Returns the number
    of frames with keys that were changed since and are kept, and whether the written keys were found.
    """
    for curves, is_present in _candidates(armature):
        moved = moved_in_time(record, curves)
        if moved is not None:
            others = later_records(armature, but=record) if is_present else []
            shifts, stay = _put_back(record, curves, moved)
            shift_records(others, shifts)
            return stay, True
    return 0, False


def moved_in_time(record: bpy.types.Action, curves: Curves) -> float | None:
    """The number of frames by which the written keys were moved in time; None if the curves don't contain them."""
    written = {key: keyframes.keys(curve) for key, curve in _of(record, _WRITTEN).items() if key in curves}
    if not written:
        return None
    # Use the curve that varies most, because it identifies frames best. Ignore keys that the hold did not change.
    key = max(written, key=lambda each: float(np.ptp(written[each][:, 1])))
    was = keyframes.keys(_of(record, _BEFORE)[key])
    changed = [not any(_same(was[np.abs(was[:, 0] - frame) < SAME_FRAME, 1], value)) for frame, value in written[key]]
    if not any(changed):
        return None
    times, values = written[key][changed].T
    own_times, own_values = keyframes.keys(curves[key]).T
    same = _same(own_values[:, None], values)
    moves = np.round((own_times[:, None] - times)[same] / SAME_FRAME) * SAME_FRAME
    found, counts = np.unique(moves, return_counts=True)
    if not len(found) or counts.max() < _FOUND * len(times):
        return None
    best = found[counts == counts.max()]
    return float(best[np.abs(best).argmin()])


def shift_keys(curve: bpy.types.FCurve, frames: FloatArray, by: FloatArray) -> None:
    """Move the keys on frames (F,), with their handles, by values `by` (F,)."""
    times = keyframes.keys(curve)[:, 0]
    if not len(times) or not len(frames):
        return
    nearest = np.abs(times[:, None] - frames).argmin(axis=1)
    places = np.flatnonzero(np.abs(times - frames[nearest]) < SAME_FRAME)
    if len(places):
        moved = np.zeros(len(times))
        moved[places] = by[nearest[places]]
        keyframes.scale_values(curve, 1.0, moved)


def _put_back(record: bpy.types.Action, curves: Curves, moved: float) -> tuple[list[Shift], int]:
    """Restore keys; returns the shifts of the changed keys, and the number of frames with kept keys."""
    before, written = _of(record, _BEFORE), _of(record, _WRITTEN)
    shifts, stay = [], set()
    for path in dict.fromkeys(path for path, _ in written):
        keys = [key for key in written if key[0] == path and key in curves]
        is_own = _still_written(curves, written, moved, keys)
        stay |= {frame for frame, own in is_own.items() if not own}
        for key in keys:
            curve, were, was_written = curves[key], before[key], written[key]
            ours = np.array([frame for frame, own in is_own.items() if own])
            values = np.array([curve.evaluate(frame) for frame in ours.tolist()])
            _put_back_curve(curve, were, was_written, ours, moved)
            after = np.array([curve.evaluate(frame) for frame in ours.tolist()])
            shifts.append(Shift(key, ours, after - values))
    return shifts, len(stay)


def _still_written(curves: Curves, written: Curves, moved: float, keys: list[tuple[str, int]]) -> dict[float, bool]:
    """The frames in the span with keys of a property, and whether all keys on each have their written values."""
    found: dict[float, bool] = {}
    for key in keys:
        times = keyframes.keys(written[key])[:, 0] + moved
        own = keyframes.keys(curves[key])
        for frame, value in own[(own[:, 0] > times[0] - SAME_FRAME) & (own[:, 0] < times[-1] + SAME_FRAME)].tolist():
            is_same = bool(_same(value, written[key].evaluate(frame - moved)))
            found[frame] = found.get(frame, True) and is_same
    return found


def _put_back_curve(
    curve: bpy.types.FCurve, before: bpy.types.FCurve, written: bpy.types.FCurve, frames: FloatArray, moved: float
) -> None:
    """Restore the keys of one curve on some frames, and remove keys that the hold added."""
    points: Any = curve.keyframe_points
    were, added = keyframes.keys(before)[:, 0] + moved, keyframes.keys(written)[:, 0] + moved
    for place in range(len(points) - 1, -1, -1):
        frame = points[place].co[0]
        if not _has(frames, frame):
            continue
        if _has(were, frame):
            source = before.keyframe_points[int(np.abs(were - frame).argmin())]
            target = points[place]
            for name in keyframes.KEY_KINDS:
                if getattr(target, name) != getattr(source, name):
                    setattr(target, name, getattr(source, name))
            for name in ("co", "handle_left", "handle_right"):
                x, y = getattr(source, name)
                setattr(target, name, (x + moved, y))
        elif _has(added, frame):
            points.remove(points[place], fast=True)
        else:
            points[place].co_ui[1] = before.evaluate(frame - moved)
    curve.update()


def _copy(curves: Iterable[bpy.types.FCurve], record: bpy.types.Action, slot: str, ends: tuple[float, float]) -> None:
    """Copy curves into a slot of a record: all keys if cyclic, else the keys in the span and one on each side."""
    for curve in curves:
        copy = _bag(record, slot).fcurves.new(curve.data_path, index=curve.array_index)
        copy.extrapolation = curve.extrapolation
        times = keyframes.keys(curve)[:, 0]
        first, last = np.searchsorted(times, (ends[0] - SAME_FRAME, ends[1] + SAME_FRAME))
        # The keys beside the span belong to it, because their handles change too.
        whole = slice(None) if cycle_of(curve) else slice(max(int(first) - 1, 0), int(last) + 1)
        keyframes.copy_keys(curve, copy, whole)


def _candidates(armature: bpy.types.Object) -> Iterator[tuple[Curves, bool]]:
    """Sets of curves that may contain the written keys, and whether each is the armature's current one."""
    animation = armature.animation_data
    yield _own(keyframes.curves(armature)), True
    for track in animation.nla_tracks if animation is not None else ():
        for strip in track.strips:
            yield _own(keyframes.curves_of(strip.action, strip.action_slot)), False
    for action in bpy.data.actions:
        if not action.name.startswith(".") and action.library is None:
            for slot in action.slots:
                yield _own(keyframes.curves_of(action, slot)), False


def _of(record: bpy.types.Action, slot: str) -> dict[tuple[str, int], bpy.types.FCurve]:
    """The curves of a slot of a record."""
    return _own(_bag(record, slot).fcurves)


def _bag(record: bpy.types.Action, slot: str) -> Any:
    """The channel bag of a slot of a record."""
    strip: Any = record.layers[0].strips[0]
    return strip.channelbag(next(each for each in record.slots if each.name_display == slot))


def _own(curves: Iterable[bpy.types.FCurve]) -> dict[tuple[str, int], bpy.types.FCurve]:
    return {(curve.data_path, curve.array_index): curve for curve in curves}


def _has(frames: FloatArray, frame: float) -> bool:
    return bool(len(frames)) and bool(np.abs(frames - frame).min() < SAME_FRAME)


def _same(first: Any, second: Any) -> BoolArray:
    """Whether values are equal except for rounding."""
    return np.asarray(np.abs(first - second) <= _SAME_VALUE * np.maximum(1.0, np.abs(second)))
