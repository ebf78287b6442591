"""Pinning and unpinning bones."""

from collections.abc import Sequence

import bpy
from bpy.props import BoolProperty, EnumProperty
from bpy.types import Context, Operator

from ...settings.rig import POINTS
from .limits import OnBones

_ACTIONS = (
    ("TOGGLE", "Toggle", "Unpin the bones if all of them are pinned, else pin them"),
    ("PIN", "Pin", "Hold the bones where they are now"),
    ("UNPIN", "Unpin", "Let the bones go"),
)


class FABRIK_OT_pin(OnBones, Operator):
    """Hold the selected bones where they are while others are dragged, or let them go"""

    bl_idname = "fabrik.pin"
    bl_label = "Pin"

    action: EnumProperty(name="Action", description="What to do with the bones", items=_ACTIONS)
    point: EnumProperty(name="Point", description="Which end is held where the rotation is not", items=POINTS[:2])
    hold_rotation: BoolProperty(
        name="Hold Rotation", description="Hold the bones' rotation as well as their place", default=True
    )

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Pin or unpin."""
        from ...goals.pins import is_pinned, pin_bones, unpin_bones

        names = [bone.name for bone in bones]
        unpin = self.action == "UNPIN" or (self.action == "TOGGLE" and all(is_pinned(rig, name) for name in names))
        if unpin:
            return f"Unpinned {unpin_bones(rig, names)} of {_count(len(names))}", []
        context.view_layer.update()
        pin_bones(rig, names, point=self.point, hold_rotation=self.hold_rotation)
        return f"Pinned {_count(len(names))}", []


def _count(number: int) -> str:
    return f"{number} {'bone' if number == 1 else 'bones'}"


CLASSES = (FABRIK_OT_pin,)
