"""The order in which a human's effectors are met: feet before hands before trunk before head, by the bones' names."""

from types import MappingProxyType
from typing import Final

import bpy

from ...human.naming_schemes import match
from ..rig.armature import RigError
from ..settings.rig import rig_settings

_GROUPS: Final = (
    ("feet", ("thigh", "shin", "foot", "toe")),
    ("hands", ("shoulder", "upper_arm", "forearm", "hand", "palm", "finger")),
    ("trunk", ("hips", "spine", "chest")),
    ("head", ("neck", "head")),
)
_GROUP_OF: Final = MappingProxyType({part: group for group, parts in _GROUPS for part in parts})


def order_effectors(rig: bpy.types.Object) -> tuple[str, list[str]]:
    """Give the effectors of a human rig, pins among them, their priorities by the part of the body that they are on.

    Returns a line for people, and a sentence on those that stay as they are since their bones' names say nothing.
    Raises RigError, with nothing changed, where that is all of them.
    """
    effectors = list(rig_settings(rig).effectors)
    roles = match(bone.name for bone in rig.pose.bones)
    groups = {
        place: _GROUP_OF[roles[effector.bone].part]
        for place, effector in enumerate(effectors)
        if effector.bone in roles and roles[effector.bone].part in _GROUP_OF
    }
    if not groups:
        raise RigError(f"No effector of {rig.name!r} is on a bone with a known name: set priorities by hand")
    order = [group for group, _ in _GROUPS if group in groups.values()]
    for place, group in groups.items():
        effectors[place].priority = order.index(group)
    left = [effector.name for place, effector in enumerate(effectors) if place not in groups]
    alone = [f"Not changed, because their bone names are unknown: {', '.join(map(repr, left))}"] if left else []
    return f"{len(groups)} effectors have priorities in this order: {', '.join(order)}", alone
