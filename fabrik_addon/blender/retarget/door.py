"""Retargets from a source given by its name or its file, for the operator and the command line."""

import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import addon_utils
import bpy
import numpy as np

from ...core.rotations import conjugate, product, quaternion_from_matrix
from ...markers.files.suffixes import POSE_SUFFIXES
from ...retarget.files.any_file import read_recorded
from ...retarget.files.bvh import checked_bvh
from ...retarget.files.recorded import Recorded
from ...retarget.goals import RetargetSettings
from ...retarget.motion import RetargetError
from ...retarget.pairs import Pair
from ..bake.bake import Steps
from ..bake.jobs import BakeSettings
from ..capture.import_markers import FASTEST_RATE, LAST_FRAME, Timing, set_rate, widen_range
from ..capture.matching import scene_rate
from ..rig.keyframes import bone_path, curves, new_action, write_curves
from ..rig.pose_writer import in_object_mode
from .retarget import check_source, checked_pairs, retarget_object_steps


def add_recorded(
    context: bpy.types.Context,
    body: Recorded,
    name: str,
    *,
    timing: Timing = "SET_SCENE_RATE",
    start_frame: int = 1,
    scale: float = 1.0,
) -> bpy.types.Object:
    """Make an armature from a recorded body, with its motion as keys of a new action.

    The active object, its mode and the selection don't change. timing, start_frame, scale: as in `import_clip`. Raises
    RetargetError, with nothing changed, for rates and frames that exceed Blender's limits.
    """
    if not 0.0 < body.rate <= FASTEST_RATE:
        raise RetargetError(f"{name}: the frame rate is {body.rate:g}: it must be above 0 and at most {FASTEST_RATE:g}")
    step = scene_rate(context.scene) / body.rate if timing == "KEEP_TIME" else 1.0
    frames = start_frame + step * body.frames
    if np.abs(frames[[0, -1]]).max() > LAST_FRAME:
        raise RetargetError(f"{name}: it has frames after {LAST_FRAME}, Blender's last frame: import fewer")
    if timing == "SET_SCENE_RATE":
        set_rate(context.scene, body.rate)
    widen_range(context.scene, frames)
    armature = bpy.data.armatures.new(name)
    rig = bpy.data.objects.new(name, armature)
    context.scene.collection.objects.link(rig)
    with in_object_mode(context):
        context.view_layer.objects.active = rig
        bpy.ops.object.mode_set(mode="EDIT")
        for place, bone_name in enumerate(body.names):
            bone = armature.edit_bones.new(bone_name)
            bone.head, bone.tail = (scale * body.heads[place]).tolist(), (scale * body.tails[place]).tolist()
            if body.parents[place] >= 0:
                bone.parent = armature.edit_bones[body.names[body.parents[place]]]
        bpy.ops.object.mode_set(mode="OBJECT")
    action = new_action(rig, name)
    for place, bone_name in enumerate(body.names):
        # The bone's axes at rest.
        axes = np.array(armature.bones[bone_name].matrix_local, dtype=np.float64)[:3, :3]
        own = quaternion_from_matrix(axes)
        quaternions = product(product(conjugate(own), body.rotations[:, place]), own)
        # Choose signs so that each quaternion is nearest to the previous one.
        flips = np.where((quaternions[1:] * quaternions[:-1]).sum(axis=1) < 0.0, -1.0, 1.0)
        rotations = quaternions * np.append(1.0, np.cumprod(flips))[:, None]
        write_curves(action, rig, bone_path(bone_name, "rotation_quaternion"), frames, rotations, bone_name)
        if body.parents[place] < 0:
            moved = scale * (body.root - body.heads[place]) @ axes
            write_curves(action, rig, bone_path(bone_name, "location"), frames, moved, bone_name)
    return rig


_log = logging.getLogger(__name__)
# How files are read: the add-on ("" for Blender itself), the operator, and its arguments.
_USD: Final = ("", "wm.usd_import", {"set_frame_range": False})
_IMPORTERS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    ".bvh": ("io_anim_bvh", "import_anim.bvh", {"update_scene_fps": True}),
    ".fbx": ("io_scene_fbx", "import_scene.fbx", {}),
    ".glb": ("io_scene_gltf2", "import_scene.gltf", {}),
    ".gltf": ("io_scene_gltf2", "import_scene.gltf", {}),
    **dict.fromkeys((".usd", ".usda", ".usdc", ".usdz"), _USD),
}


def retarget_from(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    source: bpy.types.Object | str | None,
    frames: Sequence[int | None],
    how: Mapping[str, Any],
    bake: Mapping[str, Any],
    pairs: Sequence[Pair] = (),
    up_axis: str | None = None,
    rate: float | None = None,
) -> Steps:
    """Retarget the motion of an armature or a file to a rig, in small steps.

    frames: the first and the last frame, None for the source's frames. how: values of `RetargetOptions`. bake: values
    of `BakeSettings`. pairs: the pairs of bones; empty to find them. up_axis, rate: for files of poses, as in
    `read_recorded`; the rate for .bvh too. Objects that are imported from a file are removed afterwards.
    """
    path = Path(source) if isinstance(source, str) and is_file(source) else None
    with nullcontext(check_source(source, rig)) if path is None else imported(context, path, up_axis, rate) as armature:
        animated = armature.animation_data is not None or armature.parent is not None or len(armature.constraints)
        if not animated and not any(len(bone.constraints) for bone in armature.pose.bones):
            raise RetargetError(f"{armature.name!r} has no animation: choose an animated armature")
        own = source_range(armature, context.scene)
        first, last = (every if given is None else given for given, every in zip(frames, own, strict=True))
        baked, given = BakeSettings(first, last, **bake), checked_pairs(pairs, rig, armature)
        reference = None
        if how["reference"] >= 0:
            if not first <= how["reference"] <= last:
                raise RetargetError(
                    f"The reference frame {how['reference']} is not in the range {first} to {last}: choose one inside"
                )
            reference = int(np.abs(baked.frames - how["reference"]).argmin())
        settings = RetargetSettings(how["places"], how["hands_in_world"], baked.plant_feet != "OFF", reference)
        return (yield from retarget_object_steps(context, rig, armature, baked, settings, given))


@contextmanager
def imported(
    context: bpy.types.Context, path: Path, up_axis: str | None = None, rate: float | None = None
) -> Iterator[bpy.types.Object]:
    """Import a file and yield its armature; remove it after the block.

    On success the scene keeps the file's rate. Raises RetargetError if there is no armature.
    """
    scene, render, before = context.scene, context.scene.render, set(bpy.data.user_map())
    scene_rate, span = (render.fps, render.fps_base), (scene.frame_start, scene.frame_end)
    brought: set[bpy.types.ID] = set()
    try:
        try:
            with in_object_mode(context):
                if is_recorded(path):
                    body = read_recorded(path, up_axis, rate)
                    for note in body.notes:
                        _log.warning("%s: %s", path.name, note)
                    add_recorded(context, body, path.stem)
                elif path.suffix.lower() == ".bvh" and path.is_file():
                    _import_bvh(path, rate)
                else:
                    _import(path)
        finally:
            scene.frame_start, scene.frame_end = span
            brought = set(bpy.data.user_map()) - before
        yield _armature_of(brought, path)
    except BaseException:
        render.fps, render.fps_base = scene_rate
        raise
    finally:
        bpy.data.batch_remove(brought)


def _import_bvh(path: Path, rate: float | None) -> None:
    """Import a BVH file, or a corrected copy of it; raises RetargetError if it can't be read."""
    try:
        content = path.read_bytes()
        checked = checked_bvh(content, rate).encode()
    except OSError as trouble:
        raise RetargetError(f"{path.name}: cannot be read ({trouble.strerror}): choose another") from None
    except RetargetError as trouble:
        raise RetargetError(f"{path.name}: {trouble}") from None
    # Blender's importer leaves its file open, so that Windows can't remove it yet.
    with tempfile.TemporaryDirectory(dir=bpy.app.tempdir, ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(checked)
        _import(copy)


def _import(path: Path) -> None:
    """Import a file into the scene; raises RetargetError if Blender can't."""
    if not path.is_file():
        raise RetargetError(f"{path}: there is no such file: choose another")
    addon, name, choices = _IMPORTERS[path.suffix.lower()]
    if addon:
        addon_utils.enable(addon)
    group, operator = name.split(".")
    try:
        getattr(getattr(bpy.ops, group), operator)(filepath=str(path), **choices)
    except (RuntimeError, AttributeError) as trouble:
        # Some builds of Blender have no USD importer.
        # If an importer fails, Blender passes on the whole traceback of Python.
        lines = [line for line in str(trouble).splitlines() if line.strip() and not line.startswith("Location:")]
        why = lines[-1].removeprefix("Error: ").strip()
        if why == "KeyboardInterrupt":
            # Stop all takes after Ctrl-C; an error would stop only this one.
            raise KeyboardInterrupt from None
        raise RetargetError(f"{path.name}: cannot be read ({why}): export it again") from None


def _armature_of(brought: Iterable[bpy.types.ID], path: Path) -> bpy.types.Object:
    """The armature in the imported objects, preferably an animated one; it gets the file's name."""
    things = [thing for thing in brought if isinstance(thing, bpy.types.Object) and thing.type == "ARMATURE"]
    things = [thing for thing in things if len(thing.data.bones)]
    if not things:
        raise RetargetError(f"{path.name}: no armature with bones found: choose another file")
    armature = min(things, key=lambda thing: (not curves(thing), thing.name))
    armature.name = path.stem
    return armature


def source_range(source: bpy.types.Object, scene: bpy.types.Scene) -> tuple[int, int]:
    """The first and the last whole frame of a source's keys; the scene's range if it has no keys."""
    keyed = [curve.keyframe_points for curve in curves(source) if len(curve.keyframe_points)]
    if not keyed:
        return scene.frame_start, scene.frame_end
    return round(min(points[0].co[0] for points in keyed)), round(max(points[-1].co[0] for points in keyed))


def is_file(source: str) -> bool:
    """Whether a source is the name of a file that can be read, by its suffix."""
    return Path(source).suffix.lower() in _IMPORTERS or is_recorded(Path(source))


def is_recorded(path: Path) -> bool:
    """Whether one of our own readers reads a file, by its suffix."""
    return path.suffix.lower() in POSE_SUFFIXES
