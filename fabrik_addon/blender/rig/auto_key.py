"""Keys for what a tool has changed, where Blender's auto-keying asks for them."""

from collections.abc import Iterable
from typing import Any

import bpy

from .keyframes import KeyframeError, check_action


def is_auto_keying(context: bpy.types.Context) -> bool:
    """Whether Blender keys what is changed by hand."""
    return context.scene.tool_settings.use_keyframe_insert_auto


def check_auto_keying(context: bpy.types.Context, armature: bpy.types.Object) -> None:
    """Raise KeyframeError, before anything is changed, where auto-keying is on but can't write to the action."""
    if is_auto_keying(context):
        check_action(armature, new=False)


def auto_key(context: bpy.types.Context, armature: bpy.types.Object, channels: Iterable[tuple[str, str]]) -> int:
    """Key (bone, channel) pairs on the present frame where auto-keying is on; how many got a key.

    Raises KeyframeError, naming the bone, where Blender won't.
    """
    if not is_auto_keying(context):
        return 0
    options = _options(context)
    kind = context.scene.tool_settings.keyframe_type
    count = 0
    for bone, channel in channels:
        try:
            count += armature.pose.bones[bone].keyframe_insert(channel, group=bone, options=options, keytype=kind)
        except RuntimeError as error:
            raise KeyframeError(f"Bone {bone!r} can't be keyed: {error}") from None
    return count


def _options(context: bpy.types.Context) -> set[Any]:
    """How keys are to be set, by the scene and the preferences."""
    tools, edit = context.scene.tool_settings, context.preferences.edit
    choices = {
        "INSERTKEY_REPLACE": tools.auto_keying_mode == "REPLACE_KEYS",
        "INSERTKEY_CYCLE_AWARE": tools.use_keyframe_cycle_aware,
        "INSERTKEY_AVAILABLE": edit.use_keyframe_insert_available,
        "INSERTKEY_NEEDED": edit.use_auto_keyframe_insert_needed,
    }
    return {name for name, chosen in choices.items() if chosen}
