"""What stays while a motion is edited: pins and feet, on the way that they go in the take."""

from collections.abc import Iterator

import bpy

from ...core import Effector
from ...human.naming_schemes import match
from ..goals.effectors import core_effector
from ..goals.pins import pins
from ..rig.spaces import BONE_HEAD, bone_offset

_LEG = frozenset({"thigh", "shin", "foot", "toe"})


def held_effectors(armature: bpy.types.Object, dragged: set[str]) -> Iterator[Effector]:
    """The points that stay on their way: pins, and a human's feet; not those of bones, or of legs, that are dragged."""
    roles = match(armature.pose.bones.keys())
    legs = {roles[bone].side for bone in dragged if bone in roles and roles[bone].part in _LEG}
    pinned = [pin for pin in pins(armature) if pin.bone not in dragged]
    for pin in pinned:
        offset = bone_offset(armature.pose.bones[pin.bone], pin.point, pin.offset)
        found = core_effector(pin)
        yield Effector(found.bone, offset, found.weight, found.rotation_weight)
    taken = {pin.bone for pin in pinned} | dragged
    for name, role in roles.items():
        if role.part == "foot" and role.side not in legs and name not in taken:
            yield Effector(name, BONE_HEAD, rotation_weight=1.0)
