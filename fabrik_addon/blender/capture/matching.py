"""The scene's markers: finds, samples and scales them, and matches them to the bones of a rig by label or by motion."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import bpy
import numpy as np
from bpy.types import Context, Object, Scene
from mathutils import Vector

from ...core import Skeleton
from ...core.arrays import FloatArray
from ...core.errors import FabrikError, first_few
from ...human.naming_schemes import match as match_bones
from ...human.rest_body import RestBody, RestBone
from ...markers.assign import Guess, assign_by_motion
from ...markers.clip import Clip
from ...markers.doubts import matching_doubts, placing_doubts
from ...markers.mapping.labels import Matched, is_unlabelled, is_virtual, match, other_sides, parts_of
from ...markers.mapping.marker_map import MappedMarker, read_map, write_map
from ...markers.mapping.marker_sets import PRESETS
from ...markers.steps import finish
from ..control.posed_rig import posed_rig
from ..goals.effectors import Target
from ..goals.places import UNKEYED, has_other_drivers, sample_steps
from ..rig import keyframes
from ..rig.armature import check_editable, check_rig, meters_per_unit, read_rest, world_to_armature
from ..rig.keyframes import bone_path
from ..settings.in_use import add_item, values_of
from ..settings.limit_properties import read_limits
from ..settings.motion import MARKER_NAME, TAKE_DOUBTS, TAKE_RATE, TAKE_STATIC, FabrikCapture, FabrikMarker
from ..settings.rig import follow_take, imported_takes, rig_settings, take_name


class MarkerError(FabrikError):
    """Markers can't be found, matched or stored; the message names them."""


# A message names at most this many markers, and gives the number of the others.
_NAMED: Final = 6
# The collection of a recording, or an armature whose bones are the markers, as io_anim_c3d imports them.
Take: TypeAlias = bpy.types.Collection | Object | None
# The markers in the scene: by label, the object or bone that follows the recorded marker.
Markers: TypeAlias = dict[str, Target]


def match_markers(
    context: Context,
    rig: Object,
    *,
    preset: str = "AUTO",
    take: Take = None,
    keep: bool = False,
) -> Matched:
    """Add the markers that `find_markers` finds to the rig's list, each with the bone for its label if there is one.

    preset: a key of `PRESETS`, or "AUTO" for the one that fits. keep: do not change markers that already have a bone.
    If no bone has a known name, no marker gets one. Raises MarkerError, with nothing changed, if there are no markers.
    """
    check_rig(rig)
    check_editable(rig)
    markers = find_markers(context, rig, take)
    rest = read_rest(rig)
    matched = match(list(markers), parts_of(match_bones(rest)), rest, None if preset == "AUTO" else preset)
    capture = rig_settings(rig).capture
    kept = _certain(capture.markers) if keep else {}
    holder, bone = next(iter(markers.values()))
    if not bone and not isinstance(take, bpy.types.Collection):
        homes = [home for home in holder.users_collection if not home.is_embedded_data]
        imported = [home for home in homes if all(thing.get(MARKER_NAME) is not None for thing in home.objects)]
        take = next(iter(imported), None)
    follow_take(rig, holder if bone else take)
    kept |= _certain(capture.markers) if keep else {}
    capture.preset = matched.preset or ""
    # List matched markers first, in the order of their marker set.
    order = {entry.marker: index for index, entry in enumerate(matched.markers)}
    by_label = {entry.marker: entry for entry in matched.markers if entry.marker not in kept}
    capture.markers.clear()
    capture.active_marker = 0
    # The positions of kept markers are still calibrated.
    if not keep:
        capture.calibrated = ""
    for label in sorted(markers, key=lambda each: order.get(each, len(order) + is_unlabelled(each))):
        target, target_bone = markers[label]
        own = {"name": label, "target": target, "target_bone": target_bone, "error": -1.0}
        entry = add_item(capture.markers, **(kept.get(label, {}) | own))
        if label in by_label:
            set_entry(entry, by_label[label])
    rig_settings(rig).root = "FREE"
    return matched


def match_and_guess(
    context: Context, rig: Object, take: Take, *, guess: bool = True, **how: Any
) -> tuple[str, tuple[str, ...]]:
    """Match markers by their labels, then guess from motion; returns a line about the result, and warnings.

    guess: whether to guess. how: keywords of `match_markers`.
    """
    found = match_markers(context, rig, take=take, **how)
    guesses = [f"{each.entry.marker} ({each.entry.bone})" for each in guess_markers(context, rig)] if guess else []
    capture = rig_settings(rig).capture
    labels = PRESETS[found.preset].title if found.preset else "no known labels"
    unmatched = [entry.name for entry in capture.markers if not entry.bone]
    by_motion = f", guessed from motion: {first_few(guesses, _NAMED)}" if guesses else ""
    free = f"; without a bone: {first_few(unmatched, _NAMED)}" if unmatched else ""
    doubts = matching_doubts_of(rig)
    capture.doubts = "\n".join(doubts)
    return f"{len(found.markers)} markers{of_take(take_name(rig))} matched to bones ({labels}){by_motion}{free}", doubts


def find_markers(context: Context, rig: Object, take: Take = None) -> Markers:
    """The markers of a rig: those given, else its own, else those of the last take imported, else selected empties.

    Static trials are used only if nothing else was imported. Raises MarkerError if there are no markers.
    """
    capture = rig_settings(rig).capture
    take = take or capture.take or capture.take_armature
    if isinstance(take, Object):
        if take == rig or take.type != "ARMATURE":
            raise MarkerError(f"{take.name!r} can't be the marker armature of {rig.name!r}: choose another armature")
        return {bone.name: (take, bone.name) for bone in take.data.bones}
    if take is None:
        take = max(reversed(imported_takes(context.scene)), key=lambda each: not each[TAKE_STATIC], default=None)
    if take is not None:
        return in_collection(take)
    markers = _empties(context.selected_objects)
    if not markers:
        raise MarkerError("No markers found: import some, or select the rig and its marker empties")
    return markers


def in_collection(take: bpy.types.Collection) -> Markers:
    """The empties of a collection as markers."""
    markers = _empties(take.all_objects)
    if not markers:
        raise MarkerError(f"Collection {take.name!r} has no empties to use as markers: choose another")
    return markers


def of_take(name: str) -> str:
    """The words that name the recording in a message."""
    return f" of {name!r}" if name else ""


def _empties(things: Iterable[Object]) -> Markers:
    """The empties as markers. Those without a label of their own in the file are called by their names."""
    empties = [thing for thing in things if thing.type == "EMPTY"]
    labels = [str(thing.get(MARKER_NAME, thing.name)) for thing in empties]
    pairs = zip(empties, labels, strict=True)
    return {label if labels.count(label) == 1 else thing.name: (thing, "") for thing, label in pairs}


def _certain(markers: Iterable[FabrikMarker]) -> dict[str, dict[str, object]]:
    """The values, by marker name, of markers with a bone that is not a guess."""
    certain = [entry for entry in markers if entry.is_certain]
    return {entry.name: values_of(entry) | {"offset": tuple(entry.offset)} for entry in certain}


def matching_doubts_of(rig: Object, unseen: Collection[str] = ()) -> tuple[str, ...]:
    """Warnings that a file was read wrongly, or that markers are on wrong bones or at wrong positions.

    unseen: labels of markers that are never visible.
    """
    capture, rest = rig_settings(rig).capture, read_rest(rig)
    labels, roles = [entry.name for entry in capture.markers], match_bones(rest)
    mapping = mapping_of(capture)
    on_bones = {entry.marker: entry.bone for entry in mapping}
    takes = dict.fromkeys(take for entry in capture.markers if entry.target for take in entry.target.users_collection)
    doubts = [doubt for take in takes for doubt in take.get(TAKE_DOUBTS, "").splitlines()]
    doubts += matching_doubts(labels, on_bones, roles, unseen)
    if capture.calibrated and rest:
        matched = match(labels, parts_of(roles), rest, capture.preset or None).markers
        height = float(np.ptp([bone.head for bone in rest.values()], axis=0).max())
        # Compare the markers with the usual positions for their labels on the same bone, in the armature's units.
        guesses = {entry.marker: entry for entry in matched}
        body = RestBody(rest, roles).axes
        axes = np.eye(3) if body is None else body.columns
        known = [
            (entry, guess)
            for entry in mapping
            if (guess := guesses.get(entry.marker)) is not None and guess.bone == entry.bone
        ]
        places, usual = ({each[index].marker: _place(each[index], rest) @ axes for each in known} for index in (0, 1))
        parts = {entry.marker: roles[entry.bone].part for entry, _ in known if entry.bone in roles}
        doubts += placing_doubts(places, usual, height, {} if body is None else other_sides(labels), parts)
        doubts += capture.calibration_doubts.splitlines()
    return tuple(doubts)


def _place(entry: MappedMarker, rest: Mapping[str, RestBone]) -> FloatArray:
    """(3,) the position of a marker at rest, armature space."""
    bone = rest[entry.bone]
    offset = entry.offset or (0.0, bone.length if entry.point == "TAIL" else 0.0, 0.0)
    return np.asarray(bone.head + bone.axes @ offset)


def set_entry(entry: FabrikMarker, mapped: MappedMarker, guess: float = -1.0) -> None:
    """Assign a marker of the list to a bone. A mapped offset is in the armature's units.

    guess: for a bone guessed from motion, the distance that the marker moves on it, in meters; -1 for other bones.
    """
    entry.guess = guess
    entry.bone, entry.point, entry.weight, entry.enabled = mapped.bone, mapped.point, mapped.weight, True
    entry.offset = mapped.offset or (0.0, 0.0, 0.0)


def mapping_of(capture: FabrikCapture) -> list[MappedMarker]:
    """The enabled markers with a bone; offsets in the armature's units."""
    return [
        MappedMarker(
            entry.name, entry.bone, entry.point, tuple(entry.offset) if entry.point == "OFFSET" else None, entry.weight
        )
        for entry in capture.markers
        if entry.bone and entry.enabled
    ]


def save_map(rig: Object, path: str | os.PathLike[str]) -> int:
    """Write the rig's marker map as JSON, with offsets in meters; returns the number of its markers.

    Raises MarkerError if no marker has a bone, and WriteError if the file can't be written.
    """
    entries = mapping_of(rig_settings(rig).capture)
    if not entries:
        raise MarkerError(f"{rig.name!r} has no matched markers to save: match its markers to bones first")
    write_map(path, [entry.scaled(meters_per_unit(rig)) for entry in entries])
    return len(entries)


def load_map(rig: Object, path: str | os.PathLike[str]) -> tuple[int, int]:
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
            entry = add_item(markers, name=mapped.marker)
        set_entry(entry, mapped.scaled(1.0 / meters_per_unit(rig)))
        entry.enabled = entry.target is not None
    return found, len(entries)


# Frames per second. Smaller differences are ignored, because Blender stores rates in single precision.
SAME_RATE: Final = 1e-3
# Factors that differ from 1 by less than this are ignored.
_SAME: Final = 1e-9


def scene_rate(scene: Scene) -> float:
    """The scene's frames per second."""
    return float(scene.render.fps / scene.render.fps_base)


def recorded_range(scene: Scene, targets: Iterable[Target]) -> tuple[int, int]:
    """The first and the last whole frame with keys of markers; the scene's range if there are no keys."""
    times = list[float]()
    for holder, bone in targets:
        path = bone_path(bone, "location") if bone else "location"
        if holder is not None and (samples := UNKEYED.get(holder.name_full)) is not None:
            times += (samples.first + np.flatnonzero(samples.seen())[[0, -1]]).tolist() if samples.seen().any() else []
        for curve in () if holder is None else keyframes.curves(holder):
            if curve.data_path == path and len(curve.keyframe_points):
                times += [curve.keyframe_points[place].co[0] for place in (0, -1)]
    if not times:
        return scene.frame_start, scene.frame_end
    return int(np.ceil(min(times) - 1e-3)), int(np.floor(max(times) + 1e-3))


def listed_markers(capture: FabrikCapture) -> Markers:
    """The markers in a rig's list that have an object, with or without a bone."""
    return {each.name: (each.target, each.target_bone) for each in capture.markers if each.target is not None}


def marker_clip(scene: Scene, rig: Object, markers: Markers) -> Clip:
    """The markers on their recorded frames, in the rig's armature space and units.

    Raises TargetError if an object is not part of the evaluated scene.
    """
    first, last = recorded_range(scene, markers.values())
    times = np.arange(first, last + 1)
    world, rigs = finish(sample_steps(scene, list(markers.values()), [(rig, "")], times, recorded=True))
    local = world_to_armature(world, rigs[:, 0])
    local.setflags(write=False)
    return Clip(tuple(markers), scene_rate(scene), local, up_axis="Z", source=scene.name)


def check_scalable(holders: Iterable[Object]) -> None:
    """Raise MarkerError, naming the object, if the objects of markers can't be scaled."""
    for holder in holders:
        if holder.library is not None:
            raise MarkerError(
                f"{holder.name!r} is linked from another file and can't be scaled: set Proportions to As Recorded"
            )
        own = (curve for curve in keyframes.curves(holder) if not curve.data_path.startswith("pose.bones"))
        moved = any(curve.data_path != "location" or curve.modifiers for curve in own)
        if has_other_drivers(holder) or moved:
            raise MarkerError(
                f"{holder.name!r} is moved by more than location keys and can't be scaled: set "
                "Proportions to As Recorded"
            )


def scale_markers(holders: Iterable[Object], center: FloatArray, factor: float, lift: FloatArray) -> None:
    """Scale checked objects of markers about `center` (3,), then move them by `lift` (3,), both in world space."""
    if abs(factor - 1.0) < _SAME and np.abs(lift).max() < _SAME:
        return
    for holder in holders:
        shift = (1.0 - factor) * (center - np.array(holder.delta_location)) + lift
        holder.location = Vector((factor * np.array(holder.location) + shift).tolist())
        if (samples := UNKEYED.get(holder.name_full)) is not None:
            samples.locations[:] = samples.locations * factor + shift
        for curve in keyframes.curves(holder):
            if curve.data_path == "location":
                keyframes.scale_values(curve, factor, float(shift[curve.array_index]))
        if holder.type == "ARMATURE":
            holder.scale = holder.scale * factor


def why_another_speed(scene: Scene, rig: Object) -> str:
    """Why the rig's take does not play at its recorded speed; "" if it does."""
    take = rig_settings(rig).capture.take
    rate, now = None if take is None else take.get(TAKE_RATE), scene_rate(scene)
    if take is None or rate is None or abs(now - rate) < SAME_RATE:
        return ""
    return (
        f"{take.name!r} was imported at {rate:g} fps, but the scene now plays at {now:g} fps: set "
        "the scene's frame rate back, or import the recording again"
    )


def marked_skeletons(rig: Object, mapping: Sequence[MappedMarker]) -> list[tuple[Skeleton, list[MappedMarker]]]:
    """The skeletons of the rig's trees at rest, each with its markers, sorted by decreasing number of markers."""
    skeletons = [tree.skeleton for tree in posed_rig(rig).trees(at_rest=True)]
    owned = [(each, [entry for entry in mapping if entry.bone in each.names]) for each in skeletons]
    return sorted(owned, key=lambda each: -len(each[1]))


def guess_markers(context: Context, rig: Object) -> tuple[Guess, ...]:
    """Assign markers without a bone to the bones with which they move, and mark them as guesses; returns the guesses.

    Markers that were assigned by their label or by hand keep their bone. Earlier guesses are made again.
    """
    capture = rig_settings(rig).capture
    for entry in capture.markers:
        if not entry.is_certain:
            entry.bone, entry.guess = "", -1.0
    known, rest = mapping_of(capture), read_rest(rig)
    roles = match_bones(rest)
    names = {entry.marker for entry in known}
    there = {
        label: target
        for label, target in listed_markers(capture).items()
        if label in names or not (capture.markers[label].bone or is_virtual(label))
    }
    if not known or not roles or len(there) <= len(known):
        return ()
    (skeleton, known), meters = marked_skeletons(rig, known)[0], meters_per_unit(rig)
    clip = marker_clip(context.scene, rig, there)
    limits, parts = read_limits(rig, skeleton.names), parts_of(roles)
    guesses = assign_by_motion(skeleton, known, clip, parts, rest, limits=limits, meter=1.0 / meters)
    for guess in guesses:
        set_entry(capture.markers[guess.entry.marker], guess.entry, guess.residual * meters)
    return guesses
