"""Finds the scene's markers, matches them to the bones of a rig by their labels, and stores the list with the rig."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ...core.errors import FabrikError
from ...human.naming_schemes import match as match_bones
from ...human.rest_body import RestBone
from ...markers.mapping.labels import Matched, is_unlabelled, match, parts_of
from ...markers.mapping.marker_map import MappedMarker, read_map, write_map
from ...markers.report.doubts import matching_doubts, placing_doubts
from ..limits.preset import read_rest
from ..rig.armature import check_editable, check_rig
from ..rig.spaces import meters_per_unit
from ..settings.markers import MARKER_NAME, TAKE_SEEN, TAKE_STATIC, FabrikCapture, FabrikMarker
from ..settings.rig import rig_settings
from .takes import follow_take, imported_takes, note_matched


class MarkerError(FabrikError):
    """Markers can't be found, matched or stored; the message names them."""


@dataclass(frozen=True)
class SceneMarker:
    """A marker in the scene: its label, and the object or bone that follows the recorded marker."""

    label: str
    holder: bpy.types.Object
    bone: str = ""


def match_markers(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    *,
    preset: str = "AUTO",
    take: bpy.types.Collection | None = None,
    take_armature: bpy.types.Object | None = None,
    keep: bool = False,
) -> Matched:
    """Add the scene's markers to the rig's list, each with the bone for its label if there is one.

    Args:
        context: its selected empties are the markers if no others are found.
        rig: an armature with a known naming scheme.
        preset: a key of `naming.PRESETS`, or "AUTO" for the one that fits.
        take: the collection of the markers.
        take_armature: the armature whose bones are the markers, as io_anim_c3d imports them.
        keep: do not change markers that already have a bone.

    Raises:
        MarkerError: if there are no markers, or the names of the rig's bones are unknown; nothing is changed.
    """
    check_rig(rig)
    check_editable(rig)
    markers = find_markers(context, rig, take, take_armature)
    rest = read_rest(rig)
    roles = match_bones(rest)
    if not roles:
        raise MarkerError(f"No bone of {rig.name!r} has the name of a human bone: choose each marker's bone by hand")
    labels = [marker.label for marker in markers]
    matched = match(labels, parts_of(roles), rest, None if preset == "AUTO" else preset)
    capture = rig_settings(rig).capture
    kept = _certain(capture.markers) if keep else {}
    follow_take(rig, _take_of(markers, take), markers[0].holder if markers[0].bone else None)
    kept |= _certain(capture.markers) if keep else {}
    capture.preset = matched.preset or ""
    note_matched(context.scene, rig, keep=keep)
    _fill(capture, markers, matched.markers, kept)
    rig_settings(rig).root = "FREE"
    return matched


def find_markers(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    take: bpy.types.Collection | None = None,
    take_armature: bpy.types.Object | None = None,
) -> list[SceneMarker]:
    """The markers of a rig: the given ones, else newly imported ones, else the previous ones, else selected empties.

    Newly imported markers are those of the last take imported since the last match, except static trials.
    Raises MarkerError if there are no markers.
    """
    capture = rig_settings(rig).capture
    imported = imported_takes(context.scene)
    if take is None and take_armature is None:
        new = [each for each in imported if each.get(TAKE_SEEN) is None and not each[TAKE_STATIC]]
        take, take_armature = (new[-1], None) if new else (capture.take, capture.take_armature)
    if take_armature is not None:
        if take_armature == rig or take_armature.type != "ARMATURE":
            raise MarkerError(
                f"{take_armature.name!r} can't be the marker armature of {rig.name!r}: choose another armature"
            )
        return [SceneMarker(bone.name, take_armature, bone.name) for bone in take_armature.data.bones]
    take = take or next(reversed(imported), None)
    if take is not None:
        return in_collection(take)
    markers = [SceneMarker(_label(thing), thing) for thing in context.selected_objects if thing.type == "EMPTY"]
    if not markers:
        raise MarkerError("No markers found: import some, or select the rig and its marker empties")
    return _unique(markers)


def in_collection(take: bpy.types.Collection) -> list[SceneMarker]:
    """The empties of a collection as markers."""
    markers = [SceneMarker(_label(thing), thing) for thing in take.all_objects if thing.type == "EMPTY"]
    if not markers:
        raise MarkerError(f"Collection {take.name!r} has no empties to use as markers: choose another")
    return _unique(markers)


def of_take(name: str) -> str:
    """The part of a message that names the recording."""
    return f" of {name!r}" if name else ""


def _label(thing: bpy.types.Object) -> str:
    """The label of a marker in its file; for an object that was not imported, its name."""
    return str(thing.get(MARKER_NAME, thing.name))


def _unique(markers: Sequence[SceneMarker]) -> list[SceneMarker]:
    """The markers; those with the same label are named after their objects."""
    labels = [marker.label for marker in markers]
    return [
        marker if labels.count(marker.label) == 1 else replace(marker, label=marker.holder.name) for marker in markers
    ]


def _take_of(markers: Sequence[SceneMarker], take: bpy.types.Collection | None) -> bpy.types.Collection | None:
    """The collection of the markers: the given one, or that of imported markers; None for selected empties."""
    if take is not None or markers[0].bone:
        return take
    homes = [home for home in markers[0].holder.users_collection if not home.is_embedded_data]
    imported = [home for home in homes if all(thing.get(MARKER_NAME) is not None for thing in home.objects)]
    return next(iter(imported), None)


# The properties of a marker that `keep` preserves.
_KEPT = ("bone", "point", "weight", "enabled")


def _certain(markers: Iterable[FabrikMarker]) -> dict[str, dict[str, object]]:
    """The properties to preserve, by marker name, of markers with a bone that is not a guess."""
    return {
        entry.name: {"offset": tuple(entry.offset), **{name: getattr(entry, name) for name in _KEPT}}
        for entry in markers
        if entry.is_certain
    }


def _fill(
    capture: FabrikCapture,
    markers: Sequence[SceneMarker],
    mapped: Sequence[MappedMarker],
    kept: Mapping[str, Mapping[str, object]],
) -> None:
    """Rebuild the list: matched markers first, in the order of their marker set, then the others."""
    order = {entry.marker: place for place, entry in enumerate(mapped)}
    by_label = {entry.marker: entry for entry in mapped}
    capture.markers.clear()
    capture.calibrated = ""
    capture.active_marker = 0
    for marker in sorted(markers, key=lambda each: order.get(each.label, len(order) + is_unlabelled(each.label))):
        entry = capture.markers.add()
        entry.name, entry.target, entry.target_bone = marker.label, marker.holder, marker.bone
        if marker.label in kept:
            for name, value in kept[marker.label].items():
                setattr(entry, name, value)
        elif marker.label in by_label:
            set_entry(entry, by_label[marker.label])


def matching_doubts_of(rig: bpy.types.Object, unseen: Collection[str] = ()) -> tuple[str, ...]:
    """Warnings that markers may be on wrong bones, or at wrong positions.

    unseen: labels of markers that are never visible.
    """
    capture, rest = rig_settings(rig).capture, read_rest(rig)
    labels, roles = [entry.name for entry in capture.markers], match_bones(rest)
    mapping = mapping_of(capture)
    on_bones = {entry.marker: entry.bone for entry in mapping}
    doubts = [*matching_doubts(labels, on_bones, roles, unseen)]
    if capture.calibrated and rest:
        matched = match(labels, parts_of(roles), rest, capture.preset or None).markers
        height = float(np.ptp([bone.head for bone in rest.values()], axis=0).max())
        # Compare the markers with the usual positions for their labels on the same bone, in the armature's units.
        guesses = {entry.marker: entry for entry in matched}
        moved = {
            entry.marker: float(np.linalg.norm(np.subtract(_place(entry, rest), _place(guess, rest))))
            for entry in mapping
            if (guess := guesses.get(entry.marker)) is not None and guess.bone == entry.bone
        }
        doubts += placing_doubts(moved, height)
        doubts += capture.calibration_doubts.splitlines()
    return tuple(doubts)


def _place(entry: MappedMarker, rest: Mapping[str, RestBone]) -> tuple[float, float, float]:
    """The position of a marker in its bone's frame."""
    return entry.offset or (0.0, rest[entry.bone].length if entry.point == "TAIL" else 0.0, 0.0)


def set_entry(entry: FabrikMarker, mapped: MappedMarker, guess: float = -1.0) -> None:
    """Assign a marker of the list to a bone; a mapped offset is in the armature's units.

    guess: if the bone was guessed from motion, meters by which the marker moves on it.
    """
    entry.guess = guess
    entry.bone, entry.point, entry.weight, entry.enabled = mapped.bone, mapped.point, mapped.weight, True
    entry.offset = mapped.offset or (0.0, 0.0, 0.0)


def mapping_of(capture: FabrikCapture) -> list[MappedMarker]:
    """The enabled markers with a bone; offsets in the armature's units."""
    return [
        MappedMarker(
            entry.name,
            entry.bone,
            entry.point,
            tuple(entry.offset) if entry.point == "OFFSET" else None,
            entry.weight,
        )
        for entry in capture.markers
        if entry.bone and entry.enabled
    ]


def save_map(rig: bpy.types.Object, path: str | os.PathLike[str]) -> int:
    """Write the rig's map as JSON, with offsets in meters; returns the number of its markers.

    Raises MarkerError if no marker has a bone, and MapError if the file can't be written.
    """
    entries = mapping_of(rig_settings(rig).capture)
    if not entries:
        raise MarkerError(f"{rig.name!r} has no matched markers to save: match its markers to bones first")
    write_map(path, [scaled_entry(entry, meters_per_unit(rig)) for entry in entries])
    return len(entries)


def load_map(rig: bpy.types.Object, path: str | os.PathLike[str]) -> tuple[int, int]:
    """Assign the rig's markers to the bones in a map; returns the number of assigned markers and of markers in the map.

    Markers that are only in the map are added to the list without an object. Raises MapError for a file that is not a
    map, and MarkerError for a bone that the rig does not have; then nothing is changed.
    """
    entries = read_map(path)
    missing = next((entry for entry in entries if entry.bone not in rig.data.bones), None)
    if missing is not None:
        raise MarkerError(
            f"The map assigns {missing.marker!r} to {missing.bone!r}, but {rig.name!r} has no such bone: choose "
            "another map"
        )
    markers = rig_settings(rig).capture.markers
    for entry in markers:
        entry.bone = ""
    found = 0
    for mapped in entries:
        entry = markers.get(mapped.marker)
        found += entry is not None
        if entry is None:
            entry = markers.add()
            entry.name = mapped.marker
        set_entry(entry, scaled_entry(mapped, 1.0 / meters_per_unit(rig)))
        entry.enabled = entry.target is not None
    return found, len(entries)


def scaled_entry(entry: MappedMarker, factor: float) -> MappedMarker:
    """The entry with its offset times a factor."""
    if entry.offset is None:
        return entry
    x, y, z = entry.offset
    return replace(entry, offset=(x * factor, y * factor, z * factor))
