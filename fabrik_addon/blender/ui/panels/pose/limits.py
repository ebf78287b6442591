"""The sidebar's Limits panel: the active bone's limit, and tools."""

import bpy
from bpy.types import Context, Panel, UILayout

from ...operators import limit_tools as tools
from ...overlays.handlers import LIMITS_SWITCH
from ..base import AboutRig, PoseTab


class FABRIK_PT_limits(AboutRig, PoseTab, Panel):
    """How far the active bone may turn."""

    bl_order = 30
    bl_label = "Joint Limits"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_header_preset(self, context: Context) -> None:
        """Draw the overlay's switch."""
        self.layout.prop(context.scene, LIMITS_SWITCH, text="", icon="OVERLAY")

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        from .limit_sliders import draw_active_limit

        draw_active_limit(context, layout, rig)


class FABRIK_PT_limit_tools(AboutRig, PoseTab, Panel):
    """Limits from what there is already, and what they can do besides solving."""

    bl_label = "Limit Tools"
    bl_parent_id = "FABRIK_PT_limits"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_rig(self, _context: Context, layout: UILayout, _rig: bpy.types.Object) -> None:
        layout.operator(tools.FABRIK_OT_limit_preset.bl_idname, icon="OUTLINER_OB_ARMATURE")
        column = layout.column(align=True)
        column.operator(tools.FABRIK_OT_limits_from_ik.bl_idname, text="From IK and Constraints", icon="CON_KINEMATIC")
        column.operator(tools.FABRIK_OT_limits_from_action.bl_idname, text="From Action", icon="ACTION")
        column.operator(tools.FABRIK_OT_limits_to_constraints.bl_idname, text="To Constraints", icon="CONSTRAINT_BONE")
        column = layout.column(align=True)
        column.operator(tools.FABRIK_OT_clamp_pose.bl_idname, text="Clamp Pose", icon="ARMATURE_DATA")
        row = column.row(align=True)
        row.operator(tools.FABRIK_OT_check_action.bl_idname, text="Check Action", icon="VIEWZOOM").mend = False
        row.operator(tools.FABRIK_OT_check_action.bl_idname, text="Fix Violations").mend = True


CLASSES = (FABRIK_PT_limits, FABRIK_PT_limit_tools)
