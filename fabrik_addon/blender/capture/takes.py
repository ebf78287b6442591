"""The takes of a scene, and the state of each on a rig: matched, calibrated, baked."""

from inspect import get_annotations
from typing import Any

import bpy

from ..settings.in_use import seen
from ..settings.markers import TAKE_SEEN, TAKE_STATIC, FabrikTake, OfATake
from ..settings.rig import rig_settings


def imported_takes(scene: bpy.types.Scene) -> list[bpy.types.Collection]:
    """The collections of a scene with imported recordings, in the order of their import."""
    return [each for each in scene.collection.children_recursive if each.get(TAKE_STATIC) is not None]


def take_name(rig: bpy.types.Object) -> str:
    """The name of the recording of a rig's markers; "" if they were selected one by one."""
    capture = seen(rig).capture
    take = capture.take or capture.take_armature
    return "" if take is None else take.name


def record_of(rig: bpy.types.Object, collection: bpy.types.Collection | None = None) -> FabrikTake | None:
    """The rig's record of a take, by default of its current take; None if there is none."""
    capture = seen(rig).capture
    wanted = collection or capture.take
    return next((each for each in capture.takes if each.collection == wanted), None)


def follow_take(
    rig: bpy.types.Object, take: bpy.types.Collection | None, take_armature: bpy.types.Object | None = None
) -> None:
    """Switch a rig to another take: its markers, calibration and report replace the current ones.

    The current ones are stored until the rig is switched back.
    """
    capture = rig_settings(rig).capture
    if (capture.take, capture.take_armature) == (take, take_armature):
        return
    if len(capture.markers) or capture.report is not None:
        _copy(capture, new_record_of(rig).kept)
    capture.take, capture.take_armature = take, take_armature
    record = record_of(rig)
    if record is None:
        record = new_record_of(rig)
    _copy(record.kept, capture)


def _copy(source: Any, target: Any) -> None:
    """Copy the rig's data of a take."""
    for name in get_annotations(OfATake):
        value = getattr(source, name)
        if not hasattr(value, "add"):
            setattr(target, name, value)
            continue
        items = getattr(target, name)
        items.clear()
        for each in value:
            item = items.add()
            for field in each.bl_rna.properties:
                if not field.is_readonly:
                    setattr(item, field.identifier, getattr(each, field.identifier))


def new_record_of(rig: bpy.types.Object) -> FabrikTake:
    """The rig's record of its current take; a new one if there is none."""
    capture = rig_settings(rig).capture
    record = record_of(rig) or capture.takes.add()
    record.collection, record.name = capture.take, take_name(rig)
    return record


def note_matched(scene: bpy.types.Scene, rig: bpy.types.Object, *, keep: bool) -> None:
    """Note that markers were matched: the rig must be calibrated again, unless the former markers are kept.

    Takes that are imported after this count as new.
    """
    new_record_of(rig).calibrated &= keep
    for each in imported_takes(scene):
        if each.library is None:
            each[TAKE_SEEN] = True


def state_of_take(rig: bpy.types.Object, collection: bpy.types.Collection) -> str:
    """The state of a take on a rig: "BAKED", "CALIBRATED", "MATCHED", "STATIC" or "NEW"."""
    capture, record = seen(rig).capture, record_of(rig, collection)
    if record is not None and record.action is not None:
        return "BAKED"
    markers = capture.markers if capture.take == collection else () if record is None else record.kept.markers
    if any(marker.bone for marker in markers):
        return "CALIBRATED" if record is not None and record.calibrated else "MATCHED"
    return "STATIC" if collection.get(TAKE_STATIC) else "NEW"
