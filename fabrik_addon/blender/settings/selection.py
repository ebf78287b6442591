"""The bones of an armature that are meant: active, selected, or named."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import bpy

from ...core.errors import FabrikError


def active_bone(rig: bpy.types.Object) -> bpy.types.PoseBone | None:
    """The active pose bone of an armature."""
    active = rig.data.bones.active
    return None if active is None else rig.pose.bones.get(active.name)


def selected_bones(context: bpy.types.Context, rig: bpy.types.Object) -> list[bpy.types.PoseBone]:
    """The selected bones that can be seen; outside Pose mode all that will be selected there."""
    if rig.mode == "POSE":
        return [bone for bone in context.selected_pose_bones or () if bone.id_data == rig]
    return [bone for bone in rig.pose.bones if _is_selected(bone)]


def chosen_bones(context: bpy.types.Context, rig: bpy.types.Object, names: str = "") -> Sequence[bpy.types.PoseBone]:
    """The bones named, "" for the selected ones, or the active one where none is selected.

    names: separated by commas. Raises FabrikError for a name that no bone has, and where nothing is selected.
    """
    if names:
        return [_named(rig, name) for name in ([names] if names in rig.pose.bones else names.split(","))]
    active = active_bone(rig)
    chosen = selected_bones(context, rig) or ([] if active is None else [active])
    if not chosen:
        raise FabrikError(f"No bone of {rig.name!r} is selected: select some in Pose mode first")
    return chosen


def chosen_bone(context: bpy.types.Context, rig: bpy.types.Object, name: str = "") -> bpy.types.PoseBone:
    """The bone named, "" for the active one. Raises FabrikError where there is none."""
    if name:
        return chosen_bones(context, rig, name)[0]
    active = active_bone(rig)
    if active is None:
        raise FabrikError("No bone is active: click one in Pose mode first")
    return active


class SelectionKeeper:
    """Which bones of the armatures in Pose mode are selected, and which bone and object are active, when it is made."""

    def __init__(self, context: bpy.types.Context) -> None:
        self._active = context.view_layer.objects.active
        rigs = {thing for thing in (self._active, *context.objects_in_mode) if thing is not None and thing.pose}
        self._rigs = [(rig, rig.data.bones.active, [_is_selected(bone) for bone in rig.pose.bones]) for rig in rigs]

    def restore(self, context: bpy.types.Context) -> None:
        """Select what was selected; what is gone meanwhile is left out."""
        with suppress(ReferenceError):
            context.view_layer.objects.active = self._active
            for rig, active, selected in self._rigs:
                rig.data.bones.active = active
                for bone, chosen in zip(rig.pose.bones, selected, strict=False):
                    _select(bone, chosen=chosen)


def _is_selected(bone: bpy.types.PoseBone) -> bool:
    # Blender 5.0 keeps the selection with the pose, older ones with the armature.
    return bool(getattr(bone, "select", getattr(bone.bone, "select", False)))


def _select(bone: Any, *, chosen: bool) -> None:
    if hasattr(bone, "select"):
        bone.select = chosen
    else:
        bone.bone.select = bone.bone.select_head = bone.bone.select_tail = chosen


def _named(rig: bpy.types.Object, name: str) -> bpy.types.PoseBone:
    bone: bpy.types.PoseBone | None = rig.pose.bones.get(name) or rig.pose.bones.get(name.strip())
    if bone is None:
        raise FabrikError(f"{rig.name!r} has no bone {name.strip()!r}: choose one that it has")
    return bone
