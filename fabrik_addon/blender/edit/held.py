"""What stays while a motion is edited: pins and feet, on the way that they go in the take."""

from collections.abc import Iterator, Sequence

import bpy

from ...core import Effector
from ...human.naming_schemes import match
from ..goals.effectors import core_effector
from ..goals.pins import pins
from ..rig.spaces import BONE_HEAD, bone_offset
from ..settings.rig import rig_settings

_LEG = frozenset({"thigh", "shin", "foot", "toe"})


def held_effectors(armature: bpy.types.Object, names: Sequence[str], dragged: set[str]) -> Iterator[Effector]:
    """The points that stay on their way: pins, holds, a human's feet; none of what is dragged, or of its leg.

    names: those of the bones that are solved.
    """
    roles = match(names)
    legs = {roles[bone].side for bone in dragged if bone in roles and roles[bone].part in _LEG}
    pinned = [pin for pin in pins(armature) if pin.bone not in dragged]
    for pin in pinned:
        offset = bone_offset(armature.pose.bones[pin.bone], pin.point, pin.offset)
        found = core_effector(pin)
        yield Effector(found.bone, offset, found.weight, found.rotation_weight)
    taken = {pin.bone for pin in pinned} | dragged
    for hold in rig_settings(armature).holds:
        bone: bpy.types.PoseBone | None = armature.pose.bones.get(hold.bone)
        if bone is not None and hold.bone not in taken and not (hold.bone in roles and roles[hold.bone].side in legs):
            taken.add(hold.bone)
            yield Effector(hold.bone, bone_offset(bone, hold.point), rotation_weight=float(hold.hold_rotation))
    for name, role in roles.items():
        if role.part == "foot" and role.side not in legs and name not in taken:
            yield Effector(name, BONE_HEAD, rotation_weight=1.0)
