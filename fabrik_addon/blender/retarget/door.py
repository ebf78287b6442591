"""What the operator and the command line call: a source by its name or its file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import addon_utils
import bpy

from ...retarget.goals import RetargetSettings
from ...retarget.motion import RetargetError
from ...retarget.pairs import Pair
from ..bake.bake import Steps
from ..bake.settings import BakeSettings
from ..rig.keyframes import curves
from .matching import checked_pairs
from .retarget import retarget_object_steps
from .source import check_source

# The add-on that a file is read by, where it is one; and the operator.
_IMPORTERS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    ".bvh": ("io_anim_bvh", "import_anim.bvh", {"update_scene_fps": True}),
    ".fbx": ("io_scene_fbx", "import_scene.fbx", {}),
    ".glb": ("io_scene_gltf2", "import_scene.gltf", {}),
    ".gltf": ("io_scene_gltf2", "import_scene.gltf", {}),
}


def retarget_from(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    source: bpy.types.Object | str | None,
    frames: Sequence[int | None],
    how: Mapping[str, Any],
    bake: Mapping[str, Any],
    pairs: Sequence[Pair] = (),
) -> Steps:
    """Bring the motion of an armature or a file onto a rig, in small steps.

    frames: the first and the last, None for the source's. how: values of `RetargetOptions`. bake: those of
    `BakeSettings`. pairs: which bone goes by which; found where there are none. What is imported of a file is gone
    afterwards.
    """
    before = set(bpy.data.objects)
    selected, active = list(context.selected_objects), context.view_layer.objects.active
    is_imported = isinstance(source, str) and is_file(source)
    try:
        if is_imported:
            source = import_source(context, Path(str(source)))
        checked = check_source(source, rig)
        check_animated(checked)
        first, last = (
            own if given is None else given
            for given, own in zip(frames, source_range(checked, context.scene), strict=True)
        )
        reference = how["reference"] - first if how["use_reference"] else None
        settings = RetargetSettings(how["places"], how["hands_in_world"], how["contacts"], reference)
        baked, given = BakeSettings(first, last, **bake), checked_pairs(pairs, rig, checked)
        return (yield from retarget_object_steps(context, rig, checked, baked, settings, given))
    finally:
        if is_imported:
            _remove(set(bpy.data.objects) - before)
            for thing in selected:
                thing.select_set(True)
            context.view_layer.objects.active = active


def _remove(things: set[bpy.types.Object]) -> None:
    """Take objects out of the file, with their actions and data."""
    for thing in things:
        data, animation = thing.data, thing.animation_data
        unwanted = [data, animation.action if animation is not None else None]
        bpy.data.objects.remove(thing)
        bpy.data.batch_remove([each for each in unwanted if each is not None and not each.users])


def check_animated(source: bpy.types.Object) -> None:
    """Raise RetargetError where nothing moves a source: neither keys nor drivers, constraints, strips or a parent."""
    animated = source.animation_data is not None or source.parent is not None or len(source.constraints)
    if not animated and not any(len(bone.constraints) for bone in source.pose.bones):
        raise RetargetError(f"{source.name!r} has no animation: choose an armature that moves")


def source_range(source: bpy.types.Object, scene: bpy.types.Scene) -> tuple[int, int]:
    """The first and the last whole frame of a source's keys; the scene's where it has none of its own."""
    keyed = [curve.keyframe_points for curve in curves(source) if len(curve.keyframe_points)]
    if not keyed:
        return scene.frame_start, scene.frame_end
    return round(min(points[0].co[0] for points in keyed)), round(max(points[-1].co[0] for points in keyed))


def is_file(source: str) -> bool:
    """Whether a source is named as a file that can be read."""
    return Path(source).suffix.lower() in _IMPORTERS


def import_source(context: bpy.types.Context, path: Path) -> bpy.types.Object:
    """The armature of a file, imported; raises RetargetError where there is none."""
    if path.suffix.lower() not in _IMPORTERS:
        raise RetargetError(f"{path.name} can't be read: choose a file of {', '.join(_IMPORTERS)}")
    if not path.is_file():
        raise RetargetError(f"{path}: there is no such file: choose another")
    addon, name, choices = _IMPORTERS[path.suffix.lower()]
    addon_utils.enable(addon)
    before = set(context.scene.objects)
    group, operator = name.split(".")
    try:
        getattr(getattr(bpy.ops, group), operator)(filepath=str(path), **choices)
    except RuntimeError as trouble:
        raise RetargetError(
            f"{path.name}: cannot be read ({' '.join(str(trouble).split())}): export it again"
        ) from None
    found = [thing for thing in context.scene.objects if thing not in before and thing.type == "ARMATURE"]
    if not found:
        raise RetargetError(f"{path.name}: there is no armature in it: choose another file")
    return found[0]
