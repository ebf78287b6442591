"""From a rig's file and a marker file to a file with keyframes, without a window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np
from mathutils import Vector

from ..core.arrays import FloatArray
from ..core.errors import FabrikError
from ..markers.calibration import rigid_pairs, uniform_scale
from ..markers.clip import Clip, to_z_up
from ..markers.mapping import MappedMarker, check_map, read_map
from ..markers.resample import retimed
from ..markers.trc import read_trc
from .bake import BakeResult, BakeSettings, run_bake
from .effectors import object_scale
from .import_markers import MARKER_NAME, Timing, import_clip
from .rig import check_editable, check_rig
from .settings import rig_settings


class BakeFileError(FabrikError):
    """A file that cannot be baked or written; the sentence names it."""


@dataclass(frozen=True)
class BakeFileRequest:
    """What to bake onto what.

    rig, markers, mapping: files to read. output: the .blend to write. report: the CSV to write, or None.
    armature: name of the armature object, "" for the only one. frame_range: first and last frame, None for all that
    the recording has. up_axis, units: None to take them from the markers. scale: factor on marker positions, None to
    measure it on the rig. The rest is as in `import_clip` and `bake`.
    """

    rig: Path
    markers: Path
    mapping: Path
    output: Path
    report: Path | None = None
    armature: str = ""
    start_frame: int = 1
    frame_range: tuple[int, int] | None = None
    step: int = 1
    timing: Timing = "SET_SCENE_RATE"
    up_axis: str | None = None
    units: str | None = None
    scale: float | None = 1.0
    root: str = "FREE"
    start: str = "REST"
    action_name: str = ""


@dataclass(frozen=True)
class BakeFileResult:
    """What was baked: the recording, the factor its positions were given, and how well the bake went."""

    clip: Clip
    scale: float
    bake: BakeResult


def bake_file(request: BakeFileRequest) -> BakeFileResult:
    """Open the rig, import the markers, make their effectors, bake and save.

    The effectors that the rig has are replaced by those of the map, so that the saved file can be baked again by hand.
    Raises a FabrikError, with no file written, when anything is wrong.
    """
    _check_paths(request)
    clip = read_trc(request.markers, units=request.units, up_axis=request.up_axis)
    entries = read_map(request.mapping)
    _open(request.rig)
    context = bpy.context
    rig = _find_armature(context.scene, request.armature)
    check_rig(rig)
    check_editable(rig)
    check_map(entries, clip.names, rig.data.bones.keys())
    scale = _measured_scale(rig, entries, clip) if request.scale is None else request.scale
    markers = import_clip(context, clip, timing=request.timing, start_frame=request.start_frame, scale=scale)
    by_name = {empty[MARKER_NAME]: empty for empty in markers.objects}
    set_effectors(rig, entries, by_name)
    rig_settings(rig).root = request.root
    first, last = request.frame_range or _recorded_range(context.scene, clip, request)
    settings = BakeSettings(first, last, request.step, request.start, action_name=request.action_name)
    result = run_bake(context, rig, settings)
    _show_range(context.scene, first, last)
    _write(request, result)
    return BakeFileResult(clip, scale, result)


def set_effectors(
    rig: bpy.types.Object, entries: Sequence[MappedMarker], targets: Mapping[str, bpy.types.Object]
) -> None:
    """Replace the rig's effectors by those of a marker map; `targets` are the markers' objects by name."""
    kept = rig_settings(rig)
    kept.effectors.clear()
    metre = 1.0 / _scale_of(rig)
    for entry in entries:
        effector = kept.effectors.add()
        effector.name, effector.bone, effector.point = entry.marker, entry.bone, entry.point
        effector.target, effector.weight = targets[entry.marker], entry.weight
        if entry.offset is not None:
            effector.offset = [value * metre for value in entry.offset]
    kept.active_effector = 0


def _check_paths(request: BakeFileRequest) -> None:
    """Raise BakeFileError, naming the file, for what cannot be read or written."""
    if not request.rig.is_file():
        raise BakeFileError(f"{request.rig}: there is no such file")
    written = [path for path in (request.output, request.report) if path is not None]
    for path in written:
        if path.is_dir():
            raise BakeFileError(f"{path}: cannot be written, there is a folder of that name")
        if not path.parent.is_dir():
            raise BakeFileError(f"{path}: cannot be written, there is no folder {path.parent}")


def _open(path: Path) -> None:
    """Open a .blend; raises BakeFileError where Blender cannot."""
    try:
        bpy.ops.wm.open_mainfile(filepath=str(path.resolve()), load_ui=False)
    except RuntimeError:
        raise BakeFileError(f"{path}: not a file that this Blender ({bpy.app.version_string}) can open") from None


def _find_armature(scene: bpy.types.Scene, name: str) -> bpy.types.Object:
    """The armature of that name in the scene, or the only one; raises BakeFileError where that is not clear."""
    armatures = {found.name: found for found in scene.objects if found.type == "ARMATURE"}
    listed = ", ".join(repr(found) for found in armatures)
    if not armatures:
        raise BakeFileError(f"There is no armature in scene {scene.name!r}.")
    if name and name not in armatures:
        raise BakeFileError(f"There is no armature {name!r} in scene {scene.name!r}, but {listed}.")
    if not name and len(armatures) > 1:
        raise BakeFileError(f"There are several armatures, {listed}: say which by --armature.")
    return armatures[name] if name else next(iter(armatures.values()))


def _scale_of(rig: bpy.types.Object) -> float:
    """World metres to one unit of the armature."""
    return float(object_scale(np.array(rig.matrix_world)))


def _measured_scale(rig: bpy.types.Object, entries: Sequence[MappedMarker], clip: Clip) -> float:
    """The factor that makes the recorded person as large as the rig."""
    bones = rig.data.bones
    parents = {bone.name: bone.parent.name if bone.parent else None for bone in bones}
    connected = [bone.name for bone in bones if bone.use_connect]
    points = np.array([_rest_point(rig, entry) for entry in entries])
    columns = [clip.names.index(entry.marker) for entry in entries]
    return uniform_scale(points, rigid_pairs(entries, parents, connected), to_z_up(clip).positions[:, columns])


def _rest_point(rig: bpy.types.Object, entry: MappedMarker) -> FloatArray:
    """(3,) where a mapped point is at rest, metres from the armature's origin."""
    bone = rig.data.bones[entry.bone]
    scale = _scale_of(rig)
    if entry.offset is not None:
        return np.array(bone.matrix_local @ (Vector(entry.offset) / scale)) * scale
    return np.array(bone.head_local if entry.point == "HEAD" else bone.tail_local) * scale


def _recorded_range(scene: bpy.types.Scene, clip: Clip, request: BakeFileRequest) -> tuple[int, int]:
    """First and last frame of the recording in the scene."""
    rate = scene.render.fps / scene.render.fps_base
    count = retimed(clip, rate, request.timing).frame_count
    return request.start_frame, request.start_frame + count - 1


def _show_range(scene: bpy.types.Scene, first: int, last: int) -> None:
    """Let the saved file play what was baked, from its first frame."""
    scene.frame_start, scene.frame_end = first, last
    scene.frame_set(first)


def _write(request: BakeFileRequest, result: BakeResult) -> None:
    """Write the report and the .blend, or neither."""
    if request.report is not None:
        result.report.write_csv(request.report)
    try:
        bpy.ops.wm.save_as_mainfile(filepath=str(request.output.resolve()), compress=True)
    except RuntimeError as trouble:
        if request.report is not None:
            request.report.unlink()
        reason = " ".join(str(trouble).split())
        raise BakeFileError(f"{request.output}: cannot be written ({reason})") from None
