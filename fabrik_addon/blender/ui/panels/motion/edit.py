"""Motion tab: what is shown of a take while it is edited."""

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.rig import rig_settings
from ....settings.why_not import has_motion
from ...folded import folded
from ...operators.editing.holds import FABRIK_OT_add_hold, FABRIK_OT_hold_contacts, FABRIK_OT_remove_hold
from ...operators.editing.trails import FABRIK_OT_work_out_trails, has_to_be_played
from ..base import AboutRig, MotionTab


class FABRIK_PT_edit(AboutRig, MotionTab, Panel):
    """Trails of the rig's motion, holds, and how far drags spread."""

    bl_label = "Motion Editing"
    bl_order = 60
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Whether the rig has an action or NLA strips."""
        return has_motion(rig)

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        kept = rig_settings(rig)
        column = layout.column(align=True)
        column.prop(kept.drag, "spread")
        if kept.drag.spread:
            column.prop(kept.drag, "spread_to", expand=True)
            # A drag over time changes keys; without auto-keying it changes one frame only.
            column.prop(context.scene.tool_settings, "use_keyframe_insert_auto", text="Auto Keying", icon="REC")
        _draw_layers(layout, rig)
        layout.prop(kept, "show_trails")
        if kept.show_trails and has_to_be_played(rig):
            layout.operator(FABRIK_OT_work_out_trails.bl_idname, icon="FILE_REFRESH")
        _draw_holds(layout, rig)
        advanced = folded(layout, "Advanced", "edit")
        if advanced is not None:
            advanced.prop(kept, "trail_frames")


def _draw_layers(layout: UILayout, rig: bpy.types.Object) -> None:
    """Draw the layers of edits, each with its switch and its influence."""
    column = layout.column(align=True)
    for track in rig.animation_data.nla_tracks:
        for strip in (strip for strip in track.strips if strip.blend_type == "COMBINE"):
            row = column.row(align=True)
            row.prop(track, "mute", text=track.name, icon="HIDE_ON" if track.mute else "HIDE_OFF", emboss=False)
            for curve in strip.fcurves:
                if curve.data_path == "influence" and len(curve.keyframe_points):
                    row.prop(curve.keyframe_points[0], "co", index=1, text="", slider=True)


def _draw_holds(layout: UILayout, rig: bpy.types.Object) -> None:
    """Draw the holds, and the buttons that add some."""
    column = layout.column(align=True)
    column.operator(FABRIK_OT_add_hold.bl_idname, icon="PINNED")
    column.operator(FABRIK_OT_hold_contacts.bl_idname, icon="CON_FLOOR")
    for number, hold in enumerate(rig_settings(rig).holds):
        row = column.row(align=True)
        row.label(text=hold.name, icon="DOT", translate=False)
        row.operator(FABRIK_OT_remove_hold.bl_idname, text="", icon="X").index = number


CLASSES = (FABRIK_PT_edit,)
