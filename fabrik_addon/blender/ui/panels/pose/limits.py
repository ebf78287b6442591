"""The Pose tab's panel of joint limits: the active bone's limit, and tools."""

import bpy
from bpy.types import Context, Panel, UILayout

from ...folded import folded
from ...operators import limit_tools as tools
from ...overlays.handlers import LIMITS_SWITCH
from ..base import AboutRig, PoseTab


class FABRIK_PT_limits(AboutRig, PoseTab, Panel):
    """The limit of the active bone's rotation."""

    bl_order = 30
    bl_label = "Joint Limits"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_header_preset(self, context: Context) -> None:
        """Draw the overlay's switch."""
        self.layout.prop(context.scene, LIMITS_SWITCH, text="", icon="OVERLAY")

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        from .limit_sliders import draw_active_limit

        draw_active_limit(context, layout, rig)
        layout.operator(tools.FABRIK_OT_limit_preset.bl_idname, icon="OUTLINER_OB_ARMATURE")
        more = folded(layout, "Limit Tools", "limits")
        if more is None:
            return
        column = more.column(align=True)
        column.operator(tools.FABRIK_OT_limits_from_ik.bl_idname, text="From IK and Constraints", icon="CON_KINEMATIC")
        column.operator(tools.FABRIK_OT_limits_from_action.bl_idname, text="From Action", icon="ACTION")
        column.operator(tools.FABRIK_OT_limits_to_constraints.bl_idname, text="To Constraints", icon="CONSTRAINT_BONE")
        column = more.column(align=True)
        column.operator(tools.FABRIK_OT_clamp_pose.bl_idname, text="Clamp Pose", icon="ARMATURE_DATA")
        row = column.row(align=True)
        row.operator(tools.FABRIK_OT_check_action.bl_idname, text="Check Action", icon="VIEWZOOM").mend = False
        row.operator(tools.FABRIK_OT_check_action.bl_idname, text="Fix Violations").mend = True


CLASSES = (FABRIK_PT_limits,)
