"""Pins: bones that are held in place while others are dragged. They are stored among the rig's effectors."""

from collections.abc import Collection, Sequence

import bpy

from ..rig.armature import RigError, check_bones, check_editable
from ..rig.spaces import armature_point
from ..settings.control import solved_bone
from ..settings.effector import FabrikEffector
from ..settings.rig import rig_settings
from .effectors import remove_effector


def pins(armature: bpy.types.Object) -> list[FabrikEffector]:
    """The active pins: enabled, with a weight. Raises RigError if the bone of one does not exist."""
    held = [each for each in rig_settings(armature).effectors if each.kind == "PIN" and each.enabled and each.weight]
    for pin in held:
        if pin.bone not in armature.pose.bones:
            raise RigError(f"Pin {pin.name!r}: {armature.name!r} has no bone {pin.bone!r} (was it renamed?): remove it")
    return held


def is_pinned(armature: bpy.types.Object, bone: str) -> bool:
    """Whether a bone has a pin, enabled or not."""
    return bool(_pins_of(armature, bone))


def pin_bones(
    armature: bpy.types.Object, bones: Sequence[str], *, point: str = "TAIL", hold_rotation: bool = True
) -> None:
    """Pin bones in their current pose; an existing pin is replaced.

    Args:
        armature: the rig, in its current pose.
        bones: their names.
        point: "TAIL" or "HEAD": which end of a bone is held if its rotation is not.
        hold_rotation: whether the bone's rotation is held too.

    Raises:
        RigError: before anything is changed, for a bone that does not exist or a rig that can't be changed.
    """
    check_editable(armature)
    check_bones(armature, *bones)
    chosen = {solved_bone(armature, name): name for name in reversed(bones)}
    bones = list(dict.fromkeys(solved_bone(armature, name) for name in bones))
    unpin_bones(armature, bones)
    kept = rig_settings(armature)
    for name in bones:
        pin = kept.effectors.add()
        pin.name, pin.bone = f"{chosen[name]} pin", name
        pin.control = chosen[name] if chosen[name] != name else ""
        pin.point, pin.hold_rotation = point, hold_rotation
        set_pin(pin, armature.pose.bones[name])
        kept.active_effector = len(kept.effectors) - 1


def unpin_bones(armature: bpy.types.Object, bones: Sequence[str]) -> int:
    """Remove the pins of bones; returns how many there were."""
    places = [place for bone in bones for place in _pins_of(armature, bone)]
    for place in sorted(places, reverse=True):
        remove_effector(armature, place)
    return len(places)


def set_pin(pin: FabrikEffector, bone: bpy.types.PoseBone) -> None:
    """Move a pin to its bone's current pose."""
    pin.pin_location = armature_point(bone, pin.point, pin.offset)
    pin.pin_rotation = bone.matrix.to_quaternion()


def take_pins_along(armature: bpy.types.Object, bones: Collection[str]) -> None:
    """Move the pins of posed bones to their current poses."""
    for pin in rig_settings(armature).effectors:
        if pin.kind == "PIN" and pin.bone in bones:
            set_pin(pin, armature.pose.bones[pin.bone])


def _pins_of(armature: bpy.types.Object, bone: str) -> list[int]:
    """The indices of a bone's pins in the list."""
    effectors = rig_settings(armature).effectors
    solved = solved_bone(armature, bone)
    return [place for place, each in enumerate(effectors) if each.kind == "PIN" and each.bone in {bone, solved}]
