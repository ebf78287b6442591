"""The drag tool in the toolbar of Pose mode."""

import bpy
from bpy.types import Context, UILayout, WorkSpaceTool

from ..settings.rig import rig_settings
from ..settings.why_not import why_no_rig
from .operators.drag import FABRIK_OT_drag


class FABRIK_WT_drag(WorkSpaceTool):
    """Press on a bone and drag it."""

    bl_space_type = "VIEW_3D"
    bl_context_mode = "POSE"
    bl_idname = "fabrik.drag_tool"
    bl_label = "FABRIK Drag"
    bl_description = "Drag a bone, and the rig follows within its limits while pinned bones stay in place"
    bl_icon = "ops.armature.extrude_cursor"
    bl_keymap = (
        (FABRIK_OT_drag.bl_idname, {"type": "LEFTMOUSE", "value": "CLICK_DRAG"}, {"properties": [("pick", True)]}),
    )

    @staticmethod
    def draw_settings(context: Context, layout: UILayout, _tool: WorkSpaceTool) -> None:
        """Draw the settings of drags, in the tool's header."""
        if why_no_rig(context.object):
            return
        kept = rig_settings(context.object)
        settings = kept.drag
        layout.prop(settings, "reach")
        if settings.reach == "BONES":
            layout.prop(settings, "bones")
        layout.prop(kept, "root")


def start() -> None:
    """Add the tool to the toolbar, if there are windows."""
    if not bpy.app.background:
        bpy.utils.register_tool(FABRIK_WT_drag, after={"builtin.transform"}, separator=True)


def stop() -> None:
    """Remove the tool."""
    if not bpy.app.background:
        bpy.utils.unregister_tool(FABRIK_WT_drag)
