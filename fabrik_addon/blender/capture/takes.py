"""Finds the takes of a scene, and stores the state of each on a rig: matched, calibrated, baked."""

from inspect import get_annotations
from typing import Any

import bpy
from bpy.types import Object, Scene

from ..settings.in_use import seen, values_of
from ..settings.motion import KEPT, TAKE_SEEN, TAKE_STATIC, FabrikCapture, FabrikTake, OfATake
from ..settings.rig import rig_settings


def imported_takes(scene: Scene) -> list[bpy.types.Collection]:
    """The collections of a scene with imported recordings, in the order of their import."""
    return [each for each in scene.collection.children_recursive if each.get(TAKE_STATIC) is not None]


def take_name(rig: Object) -> str:
    """The name of the recording of a rig's markers; "" if they were selected one by one."""
    capture = seen(rig).capture
    take = capture.take or capture.take_armature
    return "" if take is None else take.name


def record_of(rig: Object, collection: bpy.types.Collection | None = None) -> FabrikTake | None:
    """The rig's record of a take, by default of its current take; None if there is none."""
    capture = seen(rig).capture
    wanted = collection or capture.take
    return next((each for each in capture.takes if each.collection == wanted), None)


def follow_take(rig: Object, take: bpy.types.Collection | None, take_armature: Object | None = None) -> None:
    """Switch a rig to another take: its markers, calibration and report replace the current ones.

    The current ones are stored until the rig is switched back.
    """
    capture = rig_settings(rig).capture
    if (capture.take, capture.take_armature) == (take, take_armature):
        return
    if len(capture.markers) or capture.report is not None:
        new_record_of(rig)[KEPT] = _values(capture)
    capture.take, capture.take_armature = take, take_armature
    record: Any = record_of(rig) or new_record_of(rig)
    for name in get_annotations(OfATake):
        capture.property_unset(name)
    for name, value in (record[KEPT].to_dict() if KEPT in record else {}).items():
        if not isinstance(value, list):
            setattr(capture, name, value)
            continue
        for fields in value:
            row = getattr(capture, name).add()
            for field, each in fields.items():
                setattr(row, field, each)


def _values(capture: FabrikCapture) -> dict[str, Any]:
    """The data of the current take as values of ID properties, without empty ones."""
    found = {name: getattr(capture, name) for name in get_annotations(OfATake)}
    for name, rows in found.items():
        if hasattr(rows, "add"):
            found[name] = [
                {
                    field: value if isinstance(value, (str, int, float, bpy.types.ID)) else tuple(value)
                    for field, value in values_of(row).items()
                    if value is not None
                }
                for row in rows
            ]
    return {name: value for name, value in found.items() if value not in (None, [])}


def new_record_of(rig: Object) -> FabrikTake:
    """The rig's record of its current take; a new one if there is none."""
    capture = rig_settings(rig).capture
    record = record_of(rig) or capture.takes.add()
    record.collection, record.name = capture.take, take_name(rig)
    return record


def note_matched(scene: Scene, rig: Object, *, keep: bool) -> None:
    """Record that markers were matched: the rig must be calibrated again, unless the former markers are kept.

    Takes that are imported later count as new.
    """
    new_record_of(rig).calibrated &= keep
    for each in imported_takes(scene):
        if each.library is None:
            each[TAKE_SEEN] = True


def state_of_take(rig: Object, collection: bpy.types.Collection) -> str:
    """The state of a take on a rig: "BAKED", "CALIBRATED", "MATCHED", "STATIC" or "NEW"."""
    capture, record = seen(rig).capture, record_of(rig, collection)
    if record is not None and record.action is not None:
        return "BAKED"
    kept = () if record is None else record.get(KEPT, {}).get("markers", ())
    bones = [each.bone for each in capture.markers] if capture.take == collection else [each["bone"] for each in kept]
    if any(bones):
        return "CALIBRATED" if record is not None and record.calibrated else "MATCHED"
    return "STATIC" if collection.get(TAKE_STATIC) else "NEW"
