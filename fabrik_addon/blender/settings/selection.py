"""Finds the bones of an armature to work on: active, selected, or named; and data-blocks by their names."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

from bpy.types import ID, Context, Object, PoseBone

from ...core.errors import FabrikError
from .control import control_rig, solved_bone

_Thing = TypeVar("_Thing", bound=ID)


def clicked_bone(rig: Object) -> PoseBone:
    """The active pose bone of an armature, which may be a control. Raises FabrikError if there is none."""
    active = rig.data.bones.active
    if active is None or active.name not in rig.pose.bones:
        raise FabrikError("No bone is active: click one in Pose mode first")
    return rig.pose.bones[active.name]


def active_bone(rig: Object) -> PoseBone | None:
    """The active pose bone of an armature; for a control, the deform bone that it represents."""
    with suppress(FabrikError):
        return _meant(rig, [clicked_bone(rig)])[0]
    return None


def selected_bones(context: Context, rig: Object) -> list[PoseBone]:
    """The visible selected bones; outside Pose mode all selected bones. Deform bones replace controls."""
    return _meant(rig, _selected(context, rig))


def picked_bones(context: Context, rig: Object) -> list[PoseBone]:
    """The selected bones, including controls. Raises FabrikError if none is selected."""
    found = _selected(context, rig)
    if not found:
        raise FabrikError(f"No bone of {rig.name!r} is selected: select some in Pose mode first")
    return found


def _selected(context: Context, rig: Object) -> list[PoseBone]:
    if rig.mode == "POSE":
        return [bone for bone in context.selected_pose_bones or () if bone.id_data == rig]
    return [bone for bone in rig.pose.bones if _is_selected(bone)]


def chosen_bones(context: Context, rig: Object, names: str = "") -> Sequence[PoseBone]:
    """The named bones; "" for the selected bones, or else the active bone. Deform bones replace controls.

    names: bone names separated by commas. Raises FabrikError for an unknown name, or if nothing is selected.
    """
    if names:
        return _meant(rig, named_bones(rig, names))
    if (active := active_bone(rig)) is not None:
        return selected_bones(context, rig) or [active]
    return _meant(rig, picked_bones(context, rig))


def named_bones(rig: Object, names: str) -> list[PoseBone]:
    """The bones with names separated by commas, including controls. Raises FabrikError for an unknown name."""
    found = []
    for name in [names] if names in rig.pose.bones else names.split(","):
        bone: PoseBone | None = rig.pose.bones.get(name) or rig.pose.bones.get(name.strip())
        if bone is None:
            raise FabrikError(f"{rig.name!r} has no bone {name.strip()!r}: choose one that it has")
        found.append(bone)
    return found


def chosen_bone(context: Context, rig: Object, name: str) -> PoseBone:
    """The named bone; "" for the active one. Raises FabrikError if there is none."""
    return chosen_bones(context, rig, name)[0] if name else _meant(rig, [clicked_bone(rig)])[0]


def named(things: Iterable[_Thing], name: str, kind: str) -> _Thing | None:
    """The data-block with a name, preferably a local one; None for the name "".

    kind: the kind of data-block, for messages. Raises FabrikError if no data-block has this name.
    """
    of_name = sorted((thing for thing in things if thing.name == name), key=lambda thing: thing.library is not None)
    if name and not of_name:
        raise FabrikError(f"There is no {kind} {name!r}: choose another")
    return of_name[0] if name else None


class SelectionKeeper:
    """Stores the selected bones of the armatures in Pose mode, and the active bone and object."""

    def __init__(self, context: Context) -> None:
        self._active = context.view_layer.objects.active
        rigs = {thing for thing in (self._active, *context.objects_in_mode) if thing is not None and thing.pose}
        self._rigs = [(rig, rig.data.bones.active, [_is_selected(bone) for bone in rig.pose.bones]) for rig in rigs]

    def restore(self, context: Context) -> None:
        """Restore the selection; bones and objects that no longer exist are skipped."""
        with suppress(ReferenceError):
            context.view_layer.objects.active = self._active
            for rig, active, selected in self._rigs:
                rig.data.bones.active = active
                for bone, chosen in zip(rig.pose.bones, selected, strict=False):
                    if hasattr(bone, "select"):
                        bone.select = chosen
                    else:
                        bone.bone.select = bone.bone.select_head = bone.bone.select_tail = chosen


def _is_selected(bone: PoseBone) -> bool:
    # Blender 5.0 stores the selection on pose bones, older versions on the armature.
    return bool(getattr(bone, "select", getattr(bone.bone, "select", False)))


def _meant(rig: Object, bones: Sequence[PoseBone]) -> list[PoseBone]:
    """The bones, without duplicates; deform bones replace controls."""
    setup = control_rig(rig)
    if setup is None:
        return list(bones)
    names = {bone.name: solved_bone(rig, bone.name) for bone in bones}
    meant = [name if name in setup.carriers else own for own, name in names.items()]
    return [rig.pose.bones[name] for name in dict.fromkeys(meant)]
