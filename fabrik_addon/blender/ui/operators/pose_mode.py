"""Into Pose mode with the rig at hand."""

import bpy
from bpy.types import Context, Operator

from .base import Done, OnRig


class FABRIK_OT_pose_mode(OnRig, Operator):
    """Make the rig active and enter Pose mode, where bones are dragged"""

    bl_idname = "fabrik.pose_mode"
    bl_label = "Pose Mode"

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        if context.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        context.view_layer.objects.active = rig
        rig.select_set(True)
        bpy.ops.object.mode_set(mode="POSE")
        return f"{rig.name!r} is posed now", []


CLASSES = (FABRIK_OT_pose_mode,)
