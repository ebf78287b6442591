"""Keys posed bones like Blender's own tools: by preferences, keying set and locks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import bpy
import numpy as np
from bpy.types import Context, Object

from ...core.arrays import FloatArray
from ...core.errors import first_few
from . import keyframes
from .pose_writer import PoseKeeper, has_property, read_switch, unlocked

# Values count as equal if they differ by less than this fraction of the value, or by less than this number if the value
# is below 1. The pose hardly changes.
_ROUNDING: Final = 1e-6


def is_auto_keying(context: Context) -> bool:
    """Whether Blender's auto-keying is on."""
    return context.scene.tool_settings.use_keyframe_insert_auto


def key_channels(
    context: Context,
    armature: Object,
    channels: Iterable[tuple[str, str]],
    *,
    automatic: bool,
    before: Mapping[tuple[str, str], Sequence[float]] = MappingProxyType({}),
) -> list[str]:
    """Key (bone, property) pairs on the current frame, except locked components; returns the bones that got a key.

    The other keyed frames of the armature keep their pose: a property without a key there gets one if its value would
    change.

    If there is an active keying set, its properties are keyed instead; automatic keys do so only if the scene is set to
    use the keying set.

    before: former values of properties without curves, by bone and property.

    Raises KeyframeError, naming the bone, if a property of the keying set does not exist. With `automatic` the other
    properties are keyed first; otherwise nothing is keyed.
    """
    channels = list(channels)
    options, kind = _options(context, automatic=automatic), context.scene.tool_settings.keyframe_type
    keying_set = _keying_set(context, automatic=automatic)
    found = list(
        _unlocked(armature, channels)
        if keying_set is None
        else _by_set(context, armature, keying_set, dict.fromkeys(bone for bone, _ in channels))
    )
    missing = [each for each in found if not has_property(armature, each[1])]
    why = [f"Bone {bone!r} has no property {path}: remove it from the keying set" for bone, path, _ in missing]
    if why and not automatic:
        raise keyframes.KeyframeError(why[0])
    found = [each for each in found if each not in missing]
    # Without a frame, Blender would ignore the subframe.
    frame, keyed = context.scene.frame_current_final, dict[str, None]()
    former: dict[tuple[str, int], float | None] = {}
    for bone, path, _ in found:
        values = before.get((bone, path.rpartition(".")[2]))
        # In layers that are combined, Blender keys all components of a quaternion, even locked ones.
        for number in range(len(values or "wxyz")):
            former[path, number] = None if values is None else values[number]
    first = not any(True for _ in keyframes.curves(armature))
    with _other_keys_kept(context, armature, former):
        for bone, path, index in found:
            if armature.keyframe_insert(path, index=index, frame=frame, group=bone, options=options, keytype=kind):
                keyed[bone] = None
        if keyed and first:
            # Over NLA strips, Blender would not play the action that it has just made.
            armature.update_tag(refresh={"TIME"})
    if why:
        raise keyframes.KeyframeError(why[0])
    return list(keyed)


def key_in_steps(context: Context, armature: Object, path: str, before: float | None = None) -> None:
    """Key a number property on the current frame with constant interpolation, unless its curve is locked.

    Its values on the other keyed frames of the armature don't change. before: its former value, if it has no curve.
    """
    curve = keyframes.curves_by_key(keyframes.curves(armature)).get((path, 0))
    if curve is not None and keyframes.is_locked(curve):
        return
    with _other_keys_kept(context, armature, {(path, 0): before}):
        armature.keyframe_insert(path, frame=context.scene.frame_current_final)
        keyframes.make_steps(keyframes.curves_by_key(keyframes.curves(armature))[path, 0])
    keyframes.make_steps(keyframes.curves_by_key(keyframes.curves(armature))[path, 0])


@contextmanager
def _other_keys_kept(
    context: Context, armature: Object, former: Mapping[tuple[str, int], float | None]
) -> Iterator[None]:
    """Keep the pose on the other keyed frames of an armature while the block inserts keys on the current frame.

    Also keeps the current pose of bones that get no key.

    former: by data path and index, the value before the change, for properties without keys; None if it is unknown.
    """
    # The other frames with keys, from the nearest to the farthest.
    frames = np.unique(
        np.concatenate([np.zeros(0), *(keyframes.keys(curve)[:, 0] for curve in keyframes.curves(armature))])
    )
    apart = np.abs(frames - keyframes.action_frame(armature, context.scene.frame_current_final))
    frames = frames[np.argsort(apart)][np.count_nonzero(apart < keyframes.SAME_FRAME) :]
    by_key = keyframes.curves_by_key(keyframes.curves(armature))
    held, new = dict[tuple[str, int], FloatArray](), list[tuple[str, int]]()
    for key, value in former.items() if len(frames) else ():
        curve = by_key.get(key)
        if curve is not None and len(curve.keyframe_points):
            # A curve with modifiers is left out: its values are not those of its keys.
            held |= {} if curve.modifiers else {key: keyframes.values_at(curve, frames)}
        else:
            if value is not None:
                held[key] = np.full(len(frames), value)
            new.append(key)
    held |= _without_effect(context, armature, frames, new)
    keeper = PoseKeeper(context.scene, armature)
    yield
    by_key = keyframes.curves_by_key(keyframes.curves(armature)) if held else {}
    for key, values in held.items() if by_key else ():
        curve, least = by_key.get(key), _ROUNDING * np.maximum(1.0, np.abs(values))
        # Each new key changes the curve between its neighbors.
        for _ in frames if curve is not None else ():
            changed = np.flatnonzero(np.abs(keyframes.values_at(curve, frames) - values) > least)
            for row in changed.tolist():
                if abs(curve.evaluate(frames[row]) - values[row]) > least[row]:
                    curve.keyframe_points.insert(frames[row], values[row])
            if not len(changed):
                break
    # New keys may make Blender evaluate the animation.
    context.view_layer.update()
    keeper.restore()


def _without_effect(
    context: Context, armature: Object, frames: FloatArray, missing: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], FloatArray]:
    """(F,) values of curves that leave the pose of the NLA strips below the action unchanged, by path and index.

    missing: the curves that the action does not have yet. Curves that the strips do not have either are left out.
    """
    animation = armature.animation_data
    below = keyframes.curves_by_key(keyframes.strip_curves(armature) if missing and animation.use_nla else ())
    found = {key: np.zeros(len(frames)) for key in missing if key in below}
    if found and animation.action_blend_type == "REPLACE":
        keeper = PoseKeeper(context.scene, armature)
        for row, own in enumerate(frames.tolist()):
            frame = keyframes.action_frame(armature, own, to_scene=True)
            context.scene.frame_set(int(frame // 1.0), subframe=frame % 1.0)
            for (path, index), values in found.items():
                values[row] = np.ravel(read_switch(armature, path))[index]
        keeper.restore()
        context.view_layer.update()
    elif found and animation.action_blend_type in {"MULTIPLY", "COMBINE"}:
        for (path, index), values in found.items():
            is_factor = path.endswith(".scale") or (path.endswith(".rotation_quaternion") and not index)
            values[:] = is_factor or animation.action_blend_type == "MULTIPLY"
    return found


def locked_note(armature: Object, channels: Iterable[tuple[str, str]], switches: Iterable[str] = ()) -> str:
    """A sentence about the bones whose curves are locked, so that they get no keys; "" if there are none.

    switches: the paths of properties that are keyed as well.
    """
    locked = {curve.data_path for curve in keyframes.curves(armature) if keyframes.is_locked(curve)}
    bones = [bone for bone, channel in channels if keyframes.bone_path(bone, channel) in locked]
    bones = list(
        dict.fromkeys([*bones, *(keyframes.bone_in_path(path) or path for path in switches if path in locked)])
    )
    return f"No keys inserted for {first_few(bones)}: unlock their curves in the Graph Editor" if bones else ""


def why_no_key(context: Context, *, automatic: bool) -> str:
    """The likely reason why changed bones got no key, as a sentence."""
    return "No keys inserted ({}): {}".format(*_reason(context, automatic=automatic))


def unkeyed_note(context: Context, armature: Object, channels: Iterable[tuple[str, str]]) -> str:
    """A sentence about bones that have no curves after auto-keying; "" if there are none.

    Since these bones have no keys, their poses change on all frames.
    """
    keyed = {curve.data_path for curve in keyframes.curves(armature)}
    bones = dict.fromkeys(bone for bone, path, _ in _unlocked(armature, channels) if path not in keyed)
    sentence = "No keys inserted for {} ({}), so their poses change on all frames: {}"
    return sentence.format(first_few(bones), *_reason(context, automatic=True)) if bones else ""


def _reason(context: Context, *, automatic: bool) -> tuple[str, str]:
    """The likely reason why bones got no key, and the remedy."""
    options = _options(context, automatic=automatic)
    if (keying_set := _keying_set(context, automatic=automatic)) is not None:
        return f"{keying_set.bl_label} lacks changed properties", "choose another keying set"
    if "INSERTKEY_REPLACE" in options:
        return "auto keying only replaces keys", "press Keyframe Solved Bones to insert new ones"
    if "INSERTKEY_AVAILABLE" in options:
        return "Only Insert Available is on in the preferences", "switch it off, or key the bones once"
    return "the bones are already at their keyed pose", "pose them first"


def _options(context: Context, *, automatic: bool) -> set[Any]:
    tools, edit = context.scene.tool_settings, context.preferences.edit
    choices = {
        "INSERTKEY_REPLACE": automatic and tools.auto_keying_mode == "REPLACE_KEYS",
        "INSERTKEY_CYCLE_AWARE": tools.use_keyframe_cycle_aware,
        "INSERTKEY_AVAILABLE": automatic and edit.use_keyframe_insert_available,
        "INSERTKEY_NEEDED": edit.use_auto_keyframe_insert_needed if automatic else edit.use_keyframe_insert_needed,
        "INSERTKEY_VISUAL": edit.use_visual_keying,
    }
    return {name for name, chosen in choices.items() if chosen}


def _keying_set(context: Context, *, automatic: bool) -> bpy.types.KeyingSet | None:
    if automatic and not context.scene.tool_settings.use_keyframe_insert_keyingset:
        return None
    return context.scene.keying_sets_all.active


def _unlocked(armature: Object, channels: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, int]]:
    """The unlocked properties of bones: (bone, data path, component or -1 for all).

    Includes locked components of quaternions over NLA strips, because Blender would set them to 0 there.
    """
    animation = armature.animation_data
    is_layer = animation is not None and animation.use_nla and len(keyframes.active_strips(armature)) > 0
    for bone, channel in channels:
        free = unlocked(armature.pose.bones[bone], channel)
        needs_all = is_layer and channel == "rotation_quaternion" and len(free) > 0
        whole = needs_all or len(free) == len(getattr(armature.pose.bones[bone], channel))
        for index in (-1,) if whole else free:
            yield bone, keyframes.bone_path(bone, channel), index


def _by_set(
    context: Context, armature: Object, keying_set: Any, bones: Iterable[str]
) -> Iterator[tuple[str, str, int]]:
    """The channels of a keying set for some bones: (bone, data path, array index or -1 for all)."""
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
