"""Retargets the motion of an armature or a file: the list of bone pairs, reading the source, and the poses."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import addon_utils
import bpy
import numpy as np
from bpy.types import Context, Object, Scene

from ..core import Effector
from ..core.arrays import FloatArray, IntArray
from ..core.channels import to_channels
from ..core.rotations import conjugate, matrix_from_quaternion, product, quaternion_from_matrix
from ..human.naming_schemes import match
from ..markers.doubts import listed
from ..markers.files import POSE_SUFFIXES
from ..markers.signals import Timing
from ..markers.steps import finish, within
from ..retarget.files import read_recorded
from ..retarget.goals import RetargetSettings
from ..retarget.motion import Motion, Recorded, RetargetError
from ..retarget.pairs import Pair, check_bone_map, find_pairs, read_bone_map, two_bodies_error, write_bone_map
from ..retarget.take import retarget_steps
from .bake.bake import BakedTree, BakeSettings, FindSteps, Steps, check_root_motion, keyed_steps, timed
from .capture.import_markers import all_or_nothing, check_times, set_rate, widen_range
from .capture.matching import scene_rate
from .control.posed_rig import posed_rig
from .goals.places import is_simple, is_still, sample_steps
from .goals.problem import rig_problem, root_mode
from .rig.armature import Tree, check_rig, check_unscaled, floats, nearest_rotations, object_scale
from .rig.keyframes import RigCurves, bone_path, curves, new_action, write_curves
from .rig.pose_writer import in_object_mode, set_mode
from .settings.in_use import add_item
from .settings.motion import TAKE_DOUBTS
from .settings.rig import rig_settings

# The importer for each suffix: its add-on ("" for Blender itself), its operator, and the arguments.
_USD: Final = ("", "wm.usd_import", {"set_frame_range": False})
_IMPORTERS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    ".fbx": ("io_scene_fbx", "import_scene.fbx", {}),
    ".glb": ("io_scene_gltf2", "import_scene.gltf", {}),
    ".gltf": ("io_scene_gltf2", "import_scene.gltf", {}),
    **dict.fromkeys((".usd", ".usda", ".usdc", ".usdz"), _USD),
}
# Scales that differ from 1 by less than this count as 1, because importers round them.
_UNSCALED: Final = 1e-5


def plain_poses(source: Object, frames: IntArray) -> list[tuple[FloatArray, FloatArray]] | None:
    """(F, 4) rotations and (F, 3) locations of each bone of an armature, relative to rest, from its curves.

    Returns None if constraints, drivers, strips or scales affect them. frames: (F,).
    """
    animation, bones = source.animation_data, source.pose.bones
    if not is_still((source, "")) or source.data.pose_position != "POSE" or source.data.animation_data is not None:
        return None
    if animation is not None and len(animation.drivers):
        return None
    if any(len(bone.constraints) for bone in bones) or not all(
        bone.use_inherit_rotation and bone.use_local_location and bone.inherit_scale == "FULL"
        for bone in source.data.bones
    ):
        return None
    every = curves(source)
    if not all(is_simple(curve) and not curve.data_path.endswith(".rotation_mode") for curve in every):
        return None
    read, moved = RigCurves(source, every), []
    if any(np.abs(read.values(bone.name, frames, "scale") - 1.0).max() > _UNSCALED for bone in bones):
        return None
    for bone in source.data.bones:
        shift = np.zeros((len(frames), 3)) if bone.use_connect else read.values(bone.name, frames, "location")
        moved.append((read.rotations(bone.name, frames), shift))
    return moved


def _matrices(source: Object, moved: Sequence[tuple[FloatArray, FloatArray]], part: slice) -> FloatArray:
    """(F, N, 4, 4) matrices of the bones in armature space on some frames, from the result of `plain_poses`."""
    places: dict[str, int] = {}
    posed = np.empty((len(moved[0][0][part]), len(moved), 4, 4))
    for index, (bone, (turned, shifted)) in enumerate(zip(source.data.bones, moved, strict=True)):
        places[bone.name] = index
        own = np.tile(np.eye(4), (len(posed), 1, 1))
        own[:, :3, :3], own[:, :3, 3] = matrix_from_quaternion(turned[part]), shifted[part]
        rest = np.array(bone.matrix_local, dtype=np.float64)
        if bone.parent:
            rest = np.linalg.inv(np.array(bone.parent.matrix_local, dtype=np.float64)) @ rest
            posed[:, index] = posed[:, places[bone.parent.name]] @ (rest @ own)
        else:
            posed[:, index] = rest @ own
    return posed


# Number of frames between two checks of the Esc key. The first number is for frames that Blender evaluates, the second
# for frames that are read from curves.
_EVALUATED: Final = 20
_READ: Final = 500


# Steps that sample a source's motion in world space on frames (F,).
Sample = Callable[[IntArray], Generator[float, None, Motion]]


def sample_source(context: Context, source: Object, frames: IntArray) -> Generator[float, None, Motion]:
    """Sample the motion of an armature object in world space on frames (F,); yields progress.

    Reads the curves if nothing else moves the source; otherwise evaluates the scene on each frame.
    """
    bones = source.data.bones
    heads, rotations = np.empty((len(frames), len(bones), 3)), np.empty((len(frames), len(bones), 4))
    worlds, plain = np.empty((len(frames), 4, 4)), plain_poses(source, frames)
    at_once = _EVALUATED if plain is None else _READ
    rows = {bone.name: row for row, bone in enumerate(source.pose.bones)}
    order = [rows[bone.name] for bone in bones]
    for first in range(0, len(frames), at_once):
        part = slice(first, first + at_once)
        if plain is None:
            poses = np.empty((len(frames[part]), len(bones), 4, 4))
            for row, frame in enumerate(frames[part].tolist(), first):
                context.scene.frame_set(frame)
                evaluated = source.evaluated_get(context.evaluated_depsgraph_get())
                # Blender passes matrices column by column.
                poses[row - first] = floats(evaluated.pose.bones, "matrix", 16).reshape(-1, 4, 4).swapaxes(1, 2)[order]
                worlds[row] = evaluated.matrix_world
        else:
            poses, worlds[part] = _matrices(source, plain, part), source.matrix_world
        matrices = worlds[part, None] @ poses
        axes = matrices[..., :3, :3] / np.linalg.norm(matrices[..., :3, :3], axis=-2, keepdims=True)
        heads[part], rotations[part] = matrices[..., :3, 3], quaternion_from_matrix(axes)
        yield min(1.0, part.stop / len(frames))
    lost = np.flatnonzero(~np.isfinite(heads).all(axis=(1, 2)) | ~np.isfinite(rotations).all(axis=(1, 2)))
    if len(lost):
        raise RetargetError(f"{source.name!r} has an invalid position on frame {frames[lost[0]]}: fix its keys")
    rest = worlds[0] @ np.array([bone.matrix_local for bone in bones])
    rest[:, :3, :3] = nearest_rotations(rest[:, :3, :3])
    names = tuple(bone.name for bone in bones)
    parents = np.array([names.index(bone.parent.name) if bone.parent else -1 for bone in bones])
    sizes = float(object_scale(worlds[0])) * np.array([bone.length for bone in bones])
    origin, rate = worlds[0, :3, 3], scene_rate(context.scene)
    heading = float(np.arctan2(worlds[0, 1, 0], worlds[0, 0, 0]))
    return Motion(source.name, names, parents, sizes, rest, rotations, heads, origin, rate, heading)


def _sample_recorded(body: Recorded, name: str, usual_rate: float, frames: IntArray) -> Generator[float, None, Motion]:
    """Sample the motion of a recorded body, whose first frame is frame 1; usual_rate: for a body without a rate."""
    yield 0.0
    motion = body.at(frames - 1).motion(name)
    return replace(motion, rate=motion.rate or usual_rate)


def check_source(source: Object | str | None, rig: Object) -> Object:
    """Return the source; raises RetargetError if the rig cannot follow it."""
    if source is None or source == "":
        raise RetargetError("There is no source: choose the armature to retarget from")
    if isinstance(source, str):
        raise RetargetError(f"No armature or file is named {source!r}: choose the source again")
    if source.type != "ARMATURE":
        raise RetargetError(f"The source {source.name!r} is not an armature: choose one")
    if source == rig:
        raise RetargetError(f"{rig.name!r} is the rig itself: choose another armature as the source")
    check_rig(source)
    if source.data.pose_position == "REST":
        raise RetargetError(f"{source.name!r} is in rest position: switch it to pose position")
    return source


_SAMPLING_ENDS: Final = 0.3


def _found_steps(
    context: Context,
    rig: Object,
    settings: BakeSettings,
    seconds: dict[str, float],
    *,
    sample: Sample,
    how: RetargetSettings,
    pairs: Sequence[Pair] | None,
) -> FindSteps:
    """Find the rig's poses and its world matrices in small steps. pairs: the pairs of bones; None to find them."""
    tree = body_of(rig, pairs)
    names, posed = tree.skeleton.names, posed_rig(rig)
    owned = {**posed.frozen, **posed.owned}
    held = {name: owned[name] for name in names if name in owned}
    check_unscaled(rig, names)
    # The source determines the root's position, like a pin.
    free = posed.may_move(names[0]) and root_mode(rig, pinned=True) != "FIXED"
    bones = [bone for bone, name in enumerate(names) if name not in held]
    problem = rig_problem(posed, tree, [Effector(names[0])], bones, free_root=free, baked=True, held=held)
    check_root_motion(rig, settings.root_motion, [problem])
    with timed(seconds, "sample"):
        motion = yield from within(0.0, 0.5 * _SAMPLING_ENDS, sample(settings.frames))
        placing = sample_steps(context.scene, (), [(rig, "")], settings.frames)
        _, placed = yield from within(0.5 * _SAMPLING_ENDS, _SAMPLING_ENDS, placing)
    with timed(seconds, "solve"):
        steps = retarget_steps(motion, tree.skeleton, how, limits=problem.all_limits, pairs=pairs)
        found = yield from within(_SAMPLING_ENDS, 1.0, steps)
    reference, solution = found.reference, found.solution
    row = reference.frame
    at = "the source's rest pose" if row is None else f"the source on frame {settings.frames[row]}"
    baked = BakedTree(
        replace(problem, names=tuple(each.bone for each in found.effectors), effectors=found.effectors),
        tuple(pair.bone for pair in found.pairs if pair.bone not in held),
        solution,
        object_scale(placed[:, 0]),
        stances=found.stances,
        turned_off={pair.bone: found.turned_off[:, index] for index, pair in enumerate(found.pairs)},
        notes=(f"Reference: {at}, {reference.pose}",),
        doubts=found.doubts,
    )
    return (baked,), placed[:, 0]


def body_of(rig: Object, pairs: Sequence[Pair] | None = None) -> Tree:
    """The tree of bones with the hips, or with the first bone of the pairs. All heads are at rest.

    Raises RetargetError if several trees have hips and there are no pairs.
    """
    trees = sorted(posed_rig(rig).trees(at_rest=True), key=lambda tree: -len(tree.skeleton))
    if pairs:
        return next((tree for tree in trees if pairs[0].bone in tree.skeleton.names), trees[0])
    known: list[tuple[str, Tree]] = []
    for tree in trees:
        roles = match(tree.skeleton.names)
        hips = [name for name, role in roles.items() if role.part == "hips"]
        if hips and any(role.part == "thigh" for role in roles.values()):
            known.append((hips[0], tree))
    if len(known) > 1:
        raise two_bodies_error(known[0][0], known[1][0])
    return known[0][1] if known else trees[0]


def match_bones(context: Context, rig: Object) -> tuple[Pair, ...]:
    """Fill the rig's list with pairs matched by name; raises RetargetError for an invalid source or without a match."""
    source = check_source(rig_settings(rig).retarget.source, rig)
    motion = finish(sample_source(context, source, np.array([context.scene.frame_current])))
    pairs = find_pairs(motion, body_of(rig).skeleton)
    set_pairs(rig, pairs)
    return pairs


def set_pairs(rig: Object, pairs: Iterable[Pair]) -> None:
    """Replace the rig's list of pairs."""
    settings = rig_settings(rig).retarget
    settings.pairs.clear()
    for pair in pairs:
        add_item(settings.pairs, name=pair.bone, source=pair.source, before=pair.before, share=pair.share)
    settings.active_pair = 0


def pairs_of(rig: Object) -> list[Pair]:
    """The enabled pairs of the rig's list."""
    listed = rig_settings(rig).retarget.pairs
    return [Pair(one.name, one.source, one.before, one.share) for one in listed if one.enabled and one.source]


def save_pairs(rig: Object, path: str | os.PathLike[str]) -> int:
    """Write the list to a file; returns the number of its bones."""
    pairs = pairs_of(rig)
    if not pairs:
        raise RetargetError(f"{rig.name!r} has no mapped bones: press Map Bones first")
    write_bone_map(path, pairs)
    return len(pairs)


def load_pairs(rig: Object, path: str | os.PathLike[str]) -> int:
    """Read the list from a file; returns the number of its bones. Raises MapError if it names an unknown bone."""
    pairs = read_bone_map(path)
    source = rig_settings(rig).retarget.source
    named = [name for pair in pairs for name in (pair.source, pair.before)]
    check_bone_map(pairs, rig.data.bones.keys(), named if source is None else source.data.bones.keys())
    set_pairs(rig, pairs)
    return len(pairs)


def add_recorded(
    context: Context,
    body: Recorded,
    name: str,
    *,
    timing: Timing = "SET_SCENE_RATE",
    start_frame: int = 1,
    scale: float = 1.0,
) -> Object:
    """Make an armature from a recorded body, with its motion as keys of a new action.

    The active object, its mode and the selection don't change. timing, start_frame, scale: as in `import_clip`. Raises
    ImportMarkersError, with nothing changed, for rates and frames that exceed Blender's limits.
    """
    # A single pose may have no rate.
    rate = body.rate or scene_rate(context.scene)
    step = scene_rate(context.scene) / rate if timing == "KEEP_TIME" else 1.0
    frames = start_frame + step * body.frames
    check_times(name, rate, frames)
    with in_object_mode(context):
        if timing == "SET_SCENE_RATE":
            set_rate(context.scene, rate)
        widen_range(context.scene, frames)
        armature = bpy.data.armatures.new(name)
        rig = bpy.data.objects.new(name, armature)
        context.scene.collection.objects.link(rig)
        rig[TAKE_DOUBTS] = "\n".join(body.doubts)
        set_mode(context, "EDIT", rig)
        made = [armature.edit_bones.new(bone_name) for bone_name in body.names]
        for index, (bone, parent) in enumerate(zip(made, body.parents.tolist(), strict=True)):
            bone.head, bone.tail = (scale * body.heads[index]).tolist(), (scale * body.tails[index]).tolist()
            bone.parent = made[parent] if parent >= 0 else None
        # Blender shortens long names, and changes those that occur twice.
        names = [bone.name for bone in made]
    action, shifted = new_action(rig, name), {0: body.root, **body.shifted}
    for index, bone_name in enumerate(names):
        rest_axes = np.array(armature.bones[bone_name].matrix_local, dtype=np.float64)[:3, :3]
        own = quaternion_from_matrix(rest_axes)
        values = to_channels("QUATERNION", product(product(conjugate(own), body.rotations[:, index]), own))
        write_curves(action, rig, bone_path(bone_name, "rotation_quaternion"), frames, values, bone_name)
        if index in shifted:
            parent = body.parents[index]
            distance = body.heads[index] - (body.heads[parent] if parent >= 0 else 0.0)
            moved = scale * (shifted[index] - distance) @ rest_axes
            write_curves(action, rig, bone_path(bone_name, "location"), frames, moved, bone_name)
    return rig


def retarget_from(
    context: Context,
    rig: Object,
    source: Object | str | None,
    frames: Sequence[int | None],
    how: Mapping[str, Any],
    bake: Mapping[str, Any],
    pairs: Sequence[Pair] = (),
    up_axis: str | None = None,
    rate: float | None = None,
    notes: Sequence[str] = (),
) -> Steps:
    """Retarget the motion of an armature or a file to a rig, in small steps.

    frames: the first and the last frame, None for the source's frames. how: values of `RetargetOptions`. bake: values
    of `BakeSettings`. pairs: the pairs of bones; empty to find them. up_axis, rate: for our own readers, as in
    `read_recorded`. notes: for the report. Objects that are imported from a file are removed afterwards.
    """
    path = Path(source) if isinstance(source, str) and is_file(source) else None
    with ExitStack() as until_done:
        doubts, rate_of_file = tuple[str, ...](), 0.0
        if path is not None and path.suffix.lower() in POSE_SUFFIXES:
            body, name = read_recorded(path, up_axis, rate), path.stem
            notes, doubts, rate_of_file = (*notes, *body.notes), body.doubts, body.rate
            check_times(path.name, rate_of_file or scene_rate(context.scene), 1.0 + body.frames)
            own, bones = tuple((1 + body.frames[[0, -1]]).tolist()), list(body.names)
            sample: Sample = partial(_sample_recorded, body, name, scene_rate(context.scene))
        else:
            if path is None:
                armature = check_source(source, rig)
                doubts = tuple(armature.get(TAKE_DOUBTS, "").splitlines())
            else:
                armature, doubts = until_done.enter_context(imported(context, path))
            name, own, bones = armature.name, _keyed_range(context.scene, armature), armature.data.bones.keys()
            sample = partial(sample_source, context, armature)
        first, last = (every if given is None else given for given, every in zip(frames, own, strict=True))
        baked = BakeSettings(first, last, **bake)
        check_bone_map(pairs, rig.data.bones.keys(), bones)
        reference = None
        if how["reference"] >= 0:
            if not first <= how["reference"] <= last:
                raise RetargetError(
                    f"Rest Frame {how['reference']} is not in the range {first} to {last}: choose a frame inside it"
                )
            reference = int(np.abs(baked.frames - how["reference"]).argmin())
        settings = RetargetSettings(how["places"], how["hands_in_world"], baked.plant_feet != "OFF", reference)
        find = partial(_found_steps, sample=sample, how=settings, pairs=pairs or None)
        result = yield from keyed_steps(context, rig, baked, find, name, notes, doubts)
        if rate_of_file:
            set_rate(context.scene, rate_of_file)
        rig_settings(rig).retarget.brought = name
        return result


def _keyed_range(scene: Scene, armature: Object) -> tuple[int, int]:
    """The first and the last frame of an armature's keys, or the scene's; raises RetargetError without animation."""
    animated = armature.animation_data is not None or armature.parent is not None or len(armature.constraints)
    if not animated and not any(len(bone.constraints) for bone in armature.pose.bones):
        raise RetargetError(f"{armature.name!r} has no animation: choose an animated armature")
    keyed = [curve.keyframe_points for curve in curves(armature) if len(curve.keyframe_points)]
    if not keyed:
        return scene.frame_start, scene.frame_end
    return round(min(points[0].co[0] for points in keyed)), round(max(points[-1].co[0] for points in keyed))


@contextmanager
def imported(context: Context, path: Path) -> Iterator[tuple[Object, tuple[str, ...]]]:
    """Import a file with Blender, and yield its armature and its doubts; remove the armature after the block.

    On success the scene keeps the file's rate. Raises RetargetError if there is no armature.
    """
    scene, doubts = context.scene, tuple[str, ...]()
    span = scene.frame_start, scene.frame_end
    with all_or_nothing(context) as additions:
        with in_object_mode(context):
            _import(path)
        scene.frame_start, scene.frame_end = span
        brought = additions()
        things = [each for each in brought if isinstance(each, Object) and each.type == "ARMATURE" and each.data.bones]
        if not things:
            raise RetargetError(f"{path.name}: no armature with bones found: choose another file")
        # Prefer an armature with keys.
        armature, *others = sorted(things, key=lambda thing: (not curves(thing), thing.name))
        roles = {each.name: match(each.data.bones.keys()) for each in (armature, *others) if each.animation_data}
        people = [name for name, own in roles.items() if {"hips", "thigh"} <= {role.part for role in own.values()}]
        if unused := people[1:]:
            doubts = (f"Used only {armature.name!r}, not {listed(unused)}: export each person to a file of its own",)
        armature.name = path.stem
        yield armature, doubts
        bpy.data.batch_remove(brought)


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
        # Some builds of Blender have no USD importer. If an importer fails, Blender reports Python's whole traceback.
        lines = [line for line in str(trouble).splitlines() if line.strip() and not line.startswith("Location:")]
        why = lines[-1].removeprefix("Error: ").strip()
        if why == "KeyboardInterrupt":
            # Ctrl-C must stop all takes. An error would stop only this one.
            raise KeyboardInterrupt from None
        raise RetargetError(f"{path.name}: cannot be read ({why}): export it again") from None


def is_file(source: str) -> bool:
    """Whether a source is the name of a file that can be read, by its suffix."""
    return Path(source).suffix.lower() in (*_IMPORTERS, *POSE_SUFFIXES)
