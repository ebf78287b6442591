"""Bakes a marker file onto a rig without a window, and saves a .blend."""

import errno
import os
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import bpy
import numpy as np
from bpy.types import Context, Object, Scene
from mathutils import Vector

from ...core.errors import FabrikError
from ...human.naming_schemes import match
from ...markers.calibrate.size import rigid_pairs, uniform_scale
from ...markers.clip import Clip, to_z_up
from ...markers.files.any_file import read_markers
from ...markers.files.suffixes import ARMATURE_SUFFIXES, SUFFIXES
from ...markers.mapping.labels import Matched
from ...markers.mapping.marker_map import MappedMarker, check_map, read_map
from ...markers.report.text import csv_text
from ...markers.signals import retimed
from ...markers.steps import finish
from ...markers.whole_files import prepared
from ..capture.calibrate import CalibrationResult, calibrate_markers
from ..capture.import_markers import Timing, choose_performer, import_clip, part_of, remove_take
from ..capture.matching import guess_markers, match_markers, scaled_entry, scene_rate, set_entry
from ..control.set_up import use_control_rig
from ..rig.armature import RigError, check_editable, check_rig, meters_per_unit
from ..rig.locks import constrained_bones
from ..settings.control import may_be_control_rig
from ..settings.markers import MARKER_NAME
from ..settings.rig import rig_settings
from .bake import BakeResult, BakeSettings, bake_steps
from .batch import INTERRUPTED, BatchTake, identity, modified

_VIDEO: Final = "is a video: convert it to a .trc file with Pose2Sim or OpenCap"
# File types that are not supported, and what to do.
ADVICE: Final = {
    ".amc": "has Acclaim motion: convert it to .bvh",
    ".asf": "is an Acclaim skeleton: convert it and its .amc file to .bvh",
    ".avi": _VIDEO,
    ".bip": "is a 3ds Max Biped: export it as .bvh or .fbx",
    ".blend": "is a Blender file: export its armature as .bvh, .fbx or .glb",
    ".cap": "is a Cortex capture: export its markers as .trc or .c3d",
    ".dae": "is COLLADA: export it as .fbx or .glb",
    ".htr": "is a Cortex hierarchy: export its markers as .trc or .c3d, or the skeleton as .bvh",
    ".mot": "has OpenSim motion: use the .trc file that it was made from",
    ".mov": _VIDEO,
    ".mp4": _VIDEO,
    ".mvn": "is an Xsens MVN recording: export it as .mvnx, .bvh, .fbx or .c3d",
    ".pkl": "has pickled Python objects, which are not safe to read: export it as .bvh, .trc or .c3d",
    ".qtm": "is a Qualisys QTM recording: export its markers as .c3d",
    ".tak": "is a Motive take: export its markers as .c3d, or the skeleton as .bvh or .fbx",
    ".trb": "has binary Cortex tracks: export them as .trc or .c3d",
    ".vmd": "has MikuMikuDance motion: import it in Blender with an add-on, and export the armature as .bvh",
    ".x1d": "has raw Vicon data: process it in Nexus or Shogun, and export it as .c3d",
    ".x2d": "has raw Vicon data: process it in Nexus or Shogun, and export it as .c3d",
}
# Look for controls only if constraints move one of these bones. Constraints on fingers or eyes don't matter.
_PARTS: Final = frozenset({"hips", "spine", "chest", "neck", "head", "thigh", "shin", "foot", "upper_arm", "forearm"})


# The seek table at the end of a zstd file: compressed and uncompressed sizes, and the number of entries.
_TABLE_ENTRY: Final = struct.Struct("<II")
_TABLE_END: Final = struct.Struct("<IBI")
_TABLE_MAGIC: Final = 0x8F92EAB1


class BakeFileError(FabrikError):
    """A file can't be baked or written; the message names it."""


@dataclass(frozen=True)
class BakeFileRequest:
    """The recording, the rig and the options of a bake.

    rig, markers: files to read. mapping: the map to read, None to match the markers by their labels. output: the
    .blend to write. report: the CSV to write, or None. previous: as in `BatchTake`. armature: name of the armature
    object, "" for the only one. performer: the person whose markers are baked, if there are several. samples: first
    and last frame of the recording to import, counted from 1, None for all. frame_range: first and last scene frame
    to bake, None for all imported frames. up_axis, units, keypoints, rate: as for `read_markers` (keypoints: its
    layout). scale: factor for marker positions, None to measure it on the rig. preset: the marker set, as in
    `match_markers`. calibrate: measure the positions of the markers on the rig; None: if there is no map. static: a
    recording to calibrate from, or None. calibration: keywords of `calibrate_markers`. options: those of
    `BakeSettings`. The rest is as in `import_clip` and `bake`.
    """

    rig: Path
    markers: Path
    output: Path
    mapping: Path | None = None
    report: Path | None = None
    previous: int | None = None
    armature: str = ""
    performer: str = ""
    samples: tuple[int, int] | None = None
    start_frame: int = 1
    frame_range: tuple[int, int] | None = None
    timing: Timing = "SET_SCENE_RATE"
    up_axis: str | None = None
    units: str | None = None
    keypoints: str | None = None
    rate: float | None = None
    scale: float | None = 1.0
    root: str = "FREE"
    action_name: str = ""
    preset: str = "AUTO"
    calibrate: bool | None = None
    static: Path | None = None
    calibration: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BakeFileResult:
    """The baked recording, the scale factor of its positions, and the result of the bake.

    matched: the matched labels, None if there was a map. calibration: None if there was none. guessed: the bones of
    labels that were guessed from motion.
    """

    clip: Clip
    scale: float
    bake: BakeResult
    matched: Matched | None = None
    calibration: CalibrationResult | None = None
    guessed: Mapping[str, str] = field(default_factory=dict)


def bake_file(request: BakeFileRequest) -> BakeFileResult:
    """Open the rig, import the markers, assign them to bones, calibrate, bake and save.

    Replaces the markers of the rig, so that the saved file can be baked again by hand. Raises a FabrikError, with no
    file written, if anything is wrong.
    """
    clip = _read(request, request.markers, request.samples)
    static = None if request.static is None else _read(request, request.static, None)
    entries = None if request.mapping is None else read_map(request.mapping)
    (rig, notes), context = open_rig(request.rig, request.armature), bpy.context
    scale = request.scale
    if entries is not None:
        check_map(entries, clip.names, rig.data.bones.keys())
    if scale is None:
        scale = 1.0 if entries is None else _measured_scale(rig, entries, clip)
    take = import_clip(context, clip, timing=request.timing, start_frame=request.start_frame, scale=scale)
    matched = _put_on_bones(context, rig, take, request, entries)
    calibration, began = None, time.perf_counter()
    if request.calibrate or (request.calibrate is None and entries is None):
        # A static recording is removed from the file afterwards.
        other = None if static is None else import_clip(context, static, timing="KEEP_FRAMES")
        try:
            calibration = calibrate_markers(context, rig, static=other, **request.calibration)
        finally:
            if other is not None:
                remove_take(other)
        scale *= calibration.scale
    calibrating = {} if calibration is None else {"calibrate": time.perf_counter() - began}
    rig_settings(rig).root = request.root
    count = retimed(clip, scene_rate(context.scene), request.timing).frame_count
    first, last = request.frame_range or (request.start_frame, request.start_frame + count - 1)
    settings = BakeSettings(first, last, action_name=request.action_name, source="MARKERS", **request.options)
    result = finish(bake_steps(context, rig, settings))
    result = replace(result, timings=calibrating | result.timings, warnings=(*notes, *result.warnings))
    show_range(context.scene, first, last)
    write_files(result, BatchTake(request.markers, request.output, request.report, request.previous))
    guessed = {entry.name: entry.bone for entry in rig_settings(rig).capture.markers if entry.is_guess}
    return BakeFileResult(clip, scale, result, matched, calibration, guessed)


def _read(request: BakeFileRequest, path: Path, samples: tuple[int, int] | None) -> Clip:
    """Read one recording, of one performer."""
    suffix = path.suffix.lower()
    if suffix in ARMATURE_SUFFIXES:
        raise BakeFileError(f"{path.name}: has an armature but no markers: use the command retarget")
    if suffix in ADVICE and suffix not in SUFFIXES:
        raise BakeFileError(f"{path.name}: {ADVICE[suffix]}")
    clip = choose_performer(
        read_markers(path, request.units, request.up_axis, request.keypoints, request.rate), request.performer
    )
    return clip if samples is None else part_of(clip, *samples)


def _put_on_bones(
    context: Context,
    rig: Object,
    take: bpy.types.Collection,
    request: BakeFileRequest,
    entries: Sequence[MappedMarker] | None,
) -> Matched | None:
    """List the markers on the rig, by the map or by their labels; raises BakeFileError if none gets a bone."""
    if entries is not None:
        # The map's markers replace those of the rig. Its offsets are in meters.
        targets, meter = {empty[MARKER_NAME]: empty for empty in take.objects}, 1.0 / meters_per_unit(rig)
        capture = rig_settings(rig).capture
        capture.markers.clear()
        capture.factors.clear()
        capture.calibrated = ""
        capture.active_marker = 0
        for entry in entries:
            marker = capture.markers.add()
            marker.name, marker.target = entry.marker, targets[entry.marker]
            set_entry(marker, scaled_entry(entry, meter))
        return None
    matched = match_markers(context, rig, preset=request.preset, take=take)
    if not matched.markers:
        raise BakeFileError(f"{request.markers}: no label is known: map the markers to bones with --map")
    guess_markers(context, rig)
    return matched


def open_rig(path: Path, name: str) -> tuple[Object, list[str]]:
    """Open a .blend and find its armature: the one with the given name, or the only one.

    Returns also sentences about how the armature was prepared: a control rig is set up if it has not been. Python in
        the file is not run. Raises a FabrikError if the file can't be opened or the armature can't be posed.
    """
    rig = _opened(path, name)
    notes = []
    if bpy.app.autoexec_fail:
        notes.append(
            f"Python in {path.name} was not run ({bpy.app.autoexec_fail_message}): drivers that use it have no effect"
        )
    if not may_be_control_rig(rig):
        return rig, notes
    # The trunk, arm and leg bones that constraints move, if the rig is not set up as a control rig.
    deform = [bone.name for bone in rig.data.bones if bone.use_deform]
    parts = [name for name, role in match(deform).items() if role.part in _PARTS]
    owned = constrained_bones(rig).keys() & set(parts or deform)
    if owned:
        line, left = "", list[str]()
        with suppress(RigError):
            line, left = use_control_rig(bpy.context, rig)
        if not owned.isdisjoint(rig_settings(rig).control.carriers.keys()):
            return rig, [*notes, line, *left]
        # No control moves the constrained bones; IK legs may follow an empty, for example. Pose the bones directly.
        rig = _opened(path, name)
    return rig, notes


def _opened(path: Path, name: str) -> Object:
    """Open a .blend and return its armature."""
    try:
        bpy.ops.wm.open_mainfile(filepath=str(path.resolve()), load_ui=False, use_scripts=False)
    except RuntimeError:
        raise BakeFileError(
            f"{path}: this Blender ({bpy.app.version_string}) can't open the file: save it again in this version"
        ) from None
    rig = _find_armature(bpy.context.scene, name)
    check_rig(rig)
    check_editable(rig)
    return rig


def _find_armature(scene: Scene, name: str) -> Object:
    """The armature with a name in the scene, "" for the only one; raises BakeFileError for none, or for several."""
    # Objects of this file come last, so that they replace linked ones with the same name.
    things = sorted(scene.objects, key=lambda thing: thing.library is None)
    armatures = {found.name: found for found in things if found.type == "ARMATURE"}
    listed = ", ".join(repr(found) for found in armatures)
    if not armatures:
        raise BakeFileError(f"There is no armature in scene {scene.name!r}: choose a file with one")
    if name and name not in armatures:
        raise BakeFileError(f"There is no armature {name!r} in scene {scene.name!r}: choose one of {listed}")
    if not name and len(armatures) > 1:
        raise BakeFileError(f"There are several armatures, {listed}: choose one with --armature")
    return armatures[name] if name else next(iter(armatures.values()))


def _measured_scale(rig: Object, entries: Sequence[MappedMarker], clip: Clip) -> float:
    """The factor that scales the recorded person to the size of the rig."""
    bones = rig.data.bones
    parents = {bone.name: bone.parent.name if bone.parent else None for bone in bones}
    connected = [bone.name for bone in bones if bone.use_connect]
    meters, points = meters_per_unit(rig), []
    for entry in entries:
        # The mapped point at rest, in meters from the armature's origin.
        bone = bones[entry.bone]
        end = bone.head_local if entry.point == "HEAD" else bone.tail_local
        offset = entry.offset
        points.append(meters * np.array(end if offset is None else bone.matrix_local @ (Vector(offset) / meters)))
    columns = [clip.names.index(entry.marker) for entry in entries]
    return uniform_scale(
        np.array(points), rigid_pairs(entries, parents, connected), to_z_up(clip).positions[:, columns]
    )


def show_range(scene: Scene, first: int, last: int) -> None:
    """Set the scene's range to the baked frames, and go to the first frame."""
    scene.frame_start, scene.frame_end = first, last
    scene.frame_set(first)


def write_files(result: BakeResult, take: BatchTake) -> None:
    """Write the .blend and the report, or neither; raises BakeFileError if that fails.

    Like Blender when it saves, this keeps a .blend from before the call as .blend1.
    """
    for library in bpy.data.libraries:
        path = Path(bpy.path.abspath(library.filepath, library=library.parent))
        if identity(path) in map(identity, take.files):
            raise BakeFileError(f"{path}: is linked by the rig's file and would be replaced: choose another name")
    paths, kept = take.files, bpy.context.preferences.filepaths.save_version > 0
    try:
        with prepared(*paths, keep_previous=kept and take.previous == modified(take.output)) as parts:
            if take.report is not None:
                parts[1].write_text(csv_text(result.report), encoding="utf-8", newline="")
            bpy.ops.wm.save_as_mainfile(filepath=str(parts[0]), compress=True, copy=True)
            _check_complete(parts[0])
            if INTERRUPTED.is_set():
                raise KeyboardInterrupt
    except (OSError, RuntimeError) as trouble:
        reason = " ".join(str(getattr(trouble, "strerror", None) or trouble).split())
        names = " and ".join(str(path) for path in paths)
        raise BakeFileError(f"{names}: cannot be written ({reason}): choose another folder, or free space") from None


def _check_complete(path: Path) -> None:
    """Raise OSError for an incomplete compressed .blend, because Blender reports success even if the disk was full.

    The file consists of zstd frames. A table of their sizes is at the end: 8 bytes, an entry for each frame, and 9
    bytes: https://github.com/facebook/zstd/blob/dev/contrib/seekable_format/zstd_seekable_compression_format.md
    """
    with path.open("rb") as content:
        end = content.seek(0, os.SEEK_END) - _TABLE_END.size
        content.seek(max(end, 0))
        count, kind, magic = _TABLE_END.unpack(content.read()) if end > 0 else (0, 0, 0)
        first = max(0, end - count * _TABLE_ENTRY.size)
        content.seek(first)
        table = content.read(max(end - first, 0))
    whole = (kind, magic, len(table)) == (0, _TABLE_MAGIC, count * _TABLE_ENTRY.size)
    if not whole or sum(frame for frame, _ in _TABLE_ENTRY.iter_unpack(table)) + 8 + len(table) != end:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
