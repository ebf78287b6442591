"""Finds the takes of a scene, and stores the state of each on a rig: matched, calibrated, baked."""

from inspect import get_annotations
from typing import Any

import bpy
from bpy.types import Object, Scene

from ..settings.in_use import add_item, seen, values_of
from ..settings.motion import TAKE_STATIC, FabrikTake, OfATake
from ..settings.rig import rig_settings


def imported_takes(scene: Scene) -> list[bpy.types.Collection]:
    """The collections of a scene with imported recordings, in the order of their import."""
    return [each for each in scene.collection.children_recursive if each.get(TAKE_STATIC) is not None]


def take_name(rig: Object) -> str:
    """The name of the recording of a rig's markers; "" if they were selected one by one."""
    capture = seen(rig).capture
    take = capture.take or capture.take_armature
    return "" if take is None else take.name


def _record_of(rig: Object, collection: bpy.types.Collection | None) -> FabrikTake | None:
    """The rig's record of a take; None if there is none."""
    return next((each for each in seen(rig).capture.takes if each.collection == collection), None)


def follow_take(rig: Object, take: bpy.types.Collection | None, take_armature: Object | None = None) -> None:
    """Switch a rig to another take: its markers, calibration and report replace the current ones.

    The current ones are stored until the rig is switched back.
    """
    capture = rig_settings(rig).capture
    if (capture.take, capture.take_armature) == (take, take_armature):
        return
    if len(capture.markers) or capture.report is not None:
        _copy(rig, to_record=True)
    capture.take, capture.take_armature = take, take_armature
    _copy(rig, to_record=False)


def _copy(rig: Object, *, to_record: bool) -> None:
    """Copy the data about the rig's current take to its record, or back; makes the record if there is none."""
    capture = rig_settings(rig).capture
    record = _record_of(rig, capture.take) or capture.takes.add()
    record.collection, record.name = capture.take, take_name(rig)
    source, target = (capture, record) if to_record else (record, capture)
    for name in get_annotations(OfATake):
        value: Any = getattr(source, name)
        if hasattr(value, "add"):
            rows = getattr(target, name)
            rows.clear()
            for each in value:
                add_item(rows, **values_of(each))
        else:
            setattr(target, name, value)


def state_of_take(rig: Object, collection: bpy.types.Collection) -> str:
    """The state of a take on a rig: "BAKED", "CALIBRATED", "MATCHED", "STATIC" or "NEW"."""
    capture = seen(rig).capture
    own = capture if capture.take == collection else _record_of(rig, collection)
    if own is not None and own.action is not None:
        return "BAKED"
    if own is not None and any(marker.bone for marker in own.markers):
        return "CALIBRATED" if own.calibrated else "MATCHED"
    return "STATIC" if collection.get(TAKE_STATIC) else "NEW"
