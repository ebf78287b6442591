"""The limits of a human's joints, in one go."""

from collections.abc import Sequence

import bpy
from bpy.props import BoolProperty
from bpy.types import Context, Operator

from .limits import OnBones


class FABRIK_OT_limit_preset(OnBones, Operator):
    """Limit the bones of a human as the joints of a human are, told by their names and their rest pose"""

    bl_idname = "fabrik.limit_preset"
    bl_label = "Human Preset"

    only_selected: BoolProperty(
        name="Only Selected", description="Leave bones that are not selected as they are", default=False
    )

    def chosen(self, context: Context, rig: bpy.types.Object) -> Sequence[bpy.types.PoseBone]:
        if self.bones or self.only_selected:
            return super().chosen(context, rig)
        return list(rig.pose.bones)

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Set the limits."""
        from ...limits.preset import apply_preset, described

        return described(apply_preset(rig, bones))


CLASSES = (FABRIK_OT_limit_preset,)
