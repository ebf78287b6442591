"""The operator that makes the add-on work through a rig's controls."""

import bpy
from bpy.types import Context, Operator

from .base import Done, OnRig


class FABRIK_OT_use_control_rig(OnRig, Operator):
    """Find the controls that carry this rig's bones, by turning each a little, and pose the rig through them"""

    bl_idname = "fabrik.use_control_rig"
    bl_label = "Use as Control Rig"

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        """Find them."""
        from ...control.set_up import use_control_rig

        return use_control_rig(context, rig)


CLASSES = (FABRIK_OT_use_control_rig,)
