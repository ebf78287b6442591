"""The takes of a scene, and how far each has come on a rig: matched, calibrated, baked."""

import bpy

from ..settings.markers import TAKE_SEEN, TAKE_STATIC, FabrikTake
from ..settings.rig import rig_settings


def is_take(collection: bpy.types.Collection) -> bool:
    """Whether a collection holds an imported recording."""
    return collection.get(TAKE_STATIC) is not None


def imported_takes(scene: bpy.types.Scene) -> list[bpy.types.Collection]:
    """The collections of a scene that hold imported recordings, the last one imported last."""
    return [each for each in scene.collection.children_recursive if is_take(each)]


def take_name(rig: bpy.types.Object) -> str:
    """What the recording that a rig's markers are from is called; "" where they were picked one by one."""
    capture = rig_settings(rig).capture
    take = capture.take or capture.take_armature
    return "" if take is None else take.name


def record_of(rig: bpy.types.Object, collection: bpy.types.Collection | None = None) -> FabrikTake | None:
    """What a rig knows of a take, of the one that it follows unless one is named; None where that is nothing."""
    capture = rig_settings(rig).capture
    wanted = collection or capture.take
    return next((each for each in capture.takes if each.collection == wanted), None)


def new_record_of(rig: bpy.types.Object) -> FabrikTake:
    """What a rig knows of the take that it follows, nothing yet where it has not met it."""
    capture = rig_settings(rig).capture
    record = record_of(rig) or capture.takes.add()
    record.collection, record.name = capture.take, take_name(rig)
    return record


def note_matched(scene: bpy.types.Scene, rig: bpy.types.Object, *, keep: bool) -> None:
    """A rig follows another take, or the same anew: it has to be calibrated, unless what was matched is kept.

    The takes that are there have been seen: what is imported from now on is new.
    """
    capture = rig_settings(rig).capture
    capture.chosen_take = capture.take
    new_record_of(rig).calibrated &= keep
    for each in imported_takes(scene):
        if each.library is None:
            each[TAKE_SEEN] = True


def state_of_take(rig: bpy.types.Object, collection: bpy.types.Collection) -> str:
    """How far a take has come on a rig: "BAKED", "CALIBRATED", "MATCHED", "STATIC" or "NEW"."""
    capture = rig_settings(rig).capture
    record = record_of(rig, collection)
    if record is not None and record.action is not None:
        return "BAKED"
    if capture.take == collection and any(marker.bone for marker in capture.markers):
        return "CALIBRATED" if record is not None and record.calibrated else "MATCHED"
    return "STATIC" if collection.get(TAKE_STATIC) else "NEW"
