"""Keys for what a tool has posed, set as Blender's own tools set theirs: by preferences, keying set and locks."""

from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

import bpy

from .actions import KeyframeError, check_action
from .keyframes import bone_path, curves, keys_beside, make_steps
from .locks import unlocked_location, unlocked_rotation


def is_auto_keying(context: bpy.types.Context) -> bool:
    """Whether Blender keys what is changed by hand."""
    return context.scene.tool_settings.use_keyframe_insert_auto


def check_auto_keying(context: bpy.types.Context, armature: bpy.types.Object) -> None:
    """Raise KeyframeError, before anything is changed, where auto-keying is on but can't write to the action."""
    if is_auto_keying(context):
        check_action(armature, new=False)


def key_channels(
    context: bpy.types.Context, armature: bpy.types.Object, channels: Iterable[tuple[str, str]], *, automatic: bool
) -> list[str]:
    """Key (bone, property) pairs on the present frame, but for their locked numbers; the bones that got a key.

    A keying set says instead which properties of the bones get one: the active one, for automatic keys only if the
    scene has them go by it.

    Raises KeyframeError, naming the bone, where Blender won't.
    """
    options, kind = _options(context, automatic=automatic), context.scene.tool_settings.keyframe_type
    keying_set = _keying_set(context, automatic=automatic)
    found = _unlocked(armature, channels)
    if keying_set is not None:
        found = _by_set(context, armature, keying_set, dict.fromkeys(bone for bone, _ in channels))
    keyed: dict[str, None] = {}
    for bone, path, index in found:
        try:
            if armature.keyframe_insert(path, index=index, group=bone, options=options, keytype=kind):
                keyed[bone] = None
        except (RuntimeError, TypeError) as error:
            raise KeyframeError(f"Bone {bone!r} can't be keyed: {error}") from None
    return list(keyed)


def key_in_steps(armature: bpy.types.Object, path: str, frame: float, before: float | None = None) -> None:
    """Key a number, by its path, that is at no time between two values: it stays what it was up to a frame.

    before: what it was. It gets a key on the frame before where the armature has earlier keys, and this number none.
    """
    has_earlier = any(keys_beside(curve, frame)[0] > -inf for curve in curves(armature))
    armature.keyframe_insert(path, frame=frame)
    curve = next(each for each in curves(armature) if each.data_path == path)
    if before is not None and has_earlier and keys_beside(curve, frame)[0] == -inf:
        curve.keyframe_points.insert(frame - 1.0, before)
    make_steps(curve)


def why_no_key(context: bpy.types.Context, *, automatic: bool) -> str:
    """A sentence on why bones that have changed may have got no key."""
    keying_set = _keying_set(context, automatic=automatic)
    if keying_set is not None:
        return f"No key was set, as {keying_set.bl_label} has no property of these bones: choose another keying set"
    if "INSERTKEY_REPLACE" in _options(context, automatic=automatic):
        return "No key was set, as auto-keying only replaces keys: press Key Pose for those that are not there yet"
    if "INSERTKEY_AVAILABLE" in _options(context, automatic=automatic):
        return "No key was set, as Only Insert Available is on in the preferences: switch it off, or key the bones once"
    return "No key was set, as the bones are where their keys have them: pose them first"


def _options(context: bpy.types.Context, *, automatic: bool) -> set[Any]:
    """How keys are to be set, by the scene and the preferences."""
    tools, edit = context.scene.tool_settings, context.preferences.edit
    choices = {
        "INSERTKEY_REPLACE": automatic and tools.auto_keying_mode == "REPLACE_KEYS",
        "INSERTKEY_CYCLE_AWARE": tools.use_keyframe_cycle_aware,
        "INSERTKEY_AVAILABLE": automatic and edit.use_keyframe_insert_available,
        "INSERTKEY_NEEDED": edit.use_auto_keyframe_insert_needed if automatic else edit.use_keyframe_insert_needed,
        "INSERTKEY_VISUAL": edit.use_visual_keying,
    }
    return {name for name, chosen in choices.items() if chosen}


def _keying_set(context: bpy.types.Context, *, automatic: bool) -> bpy.types.KeyingSet | None:
    """The keying set that counts."""
    if automatic and not context.scene.tool_settings.use_keyframe_insert_keyingset:
        return None
    return context.scene.keying_sets_all.active


def _unlocked(armature: bpy.types.Object, channels: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, int]]:
    """(bone, data path, number of it or -1 for all) of properties of bones, but for what is locked."""
    for bone, channel in channels:
        pose_bone = armature.pose.bones[bone]
        if channel == "scale":
            # A bone that stretches is scaled along its length only.
            free: tuple[int, ...] = (1,)
        elif channel == "location":
            free = unlocked_location(pose_bone)
        else:
            free = unlocked_rotation(pose_bone)
        whole = len(free) == len(getattr(pose_bone, channel))
        for index in (-1,) if whole else free:
            yield bone, bone_path(bone, channel), index


def _by_set(
    context: bpy.types.Context, armature: bpy.types.Object, keying_set: Any, bones: Iterable[str]
) -> Iterator[tuple[str, str, int]]:
    """The same of what a keying set has of some bones, be it one of Blender's rules or a list of somebody's own."""
    rule = keying_set.type_info
    for bone in bones:
        if rule is not None:
            keying_set.paths.clear()
            rule.generate(context, keying_set, armature.pose.bones[bone])
        start = armature.pose.bones[bone].path_from_id()
        for each in keying_set.paths:
            if each.id == armature and each.data_path.startswith((f"{start}.", f"{start}[")):
                yield bone, each.data_path, -1 if each.use_entire_array else each.array_index
    if rule is not None:
        keying_set.paths.clear()
