"""The points that keep their paths while a motion is edited, such as pins and feet; and the floor."""

from collections.abc import Iterator, Sequence

import bpy
import numpy as np

from ...core import Effector
from ...core.arrays import FloatArray
from ...core.kernel.bounds import Floor
from ...core.model.skeleton import Skeleton
from ...human.naming_schemes import match
from ..goals.effectors import core_effector, pins
from ..rig.spaces import BONE_HEAD, bone_offset
from ..settings.rig import rig_settings

_LEG = frozenset({"thigh", "shin", "foot", "toe"})


def held_effectors(armature: bpy.types.Object, names: Sequence[str], dragged: set[str]) -> Iterator[Effector]:
    """The points that keep their paths: pins, holds and a human's feet, except on the dragged bone or its leg.

    names: the solved bones.
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


def room_above(floor: Floor, skeleton: Skeleton, posed: FloatArray, bone: str) -> FloatArray:
    """(F,) distance by which a bone may go down until it or a child is on the floor; infinite for most bones.

    posed: (F, J, 4, 4) in armature space. Bones that are below the floor in their own pose go no deeper.
    """
    own = skeleton.index(bone)
    near = {own, *np.flatnonzero(skeleton.parents == own).tolist()}
    points = [(skeleton.index(name), point) for name, point in floor.points if name in skeleton.names]
    places = [posed[:, body] @ (*point, 1.0) for body, point in points if body in near]
    if not places:
        return np.full(len(posed), np.inf)
    heights = np.array(places)[..., :3] @ np.array(floor.normal) - floor.height
    return np.asarray(np.maximum(heights.min(axis=0), 0.0))


def above_the_floor(floor: Floor, shifts: FloatArray, room: FloatArray) -> FloatArray:
    """(F, 3) shifts of a bone that go down by at most `room`, (F,)."""
    normal = np.array(floor.normal)
    return shifts + np.maximum(-shifts @ normal - room, 0.0)[:, None] * normal
