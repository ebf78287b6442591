"""The Motion tab's panel of what is seen of a take while it is edited."""

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.rig import rig_settings
from ...operators.editing.holds import FABRIK_OT_add_hold, FABRIK_OT_hold_contacts, FABRIK_OT_remove_hold
from ..base import AboutRig, MotionTab


class FABRIK_PT_edit(AboutRig, MotionTab, Panel):
    """Trails and ghosts of the rig's motion, and how far drags spread."""

    bl_idname = "FABRIK_PT_edit"
    bl_label = "Edit"
    bl_order = 50

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Where there is an action."""
        return rig.animation_data is not None and rig.animation_data.action is not None

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the switches."""
        kept = rig_settings(rig)
        column = layout.column(align=True)
        column.prop(kept.drag, "spread")
        if kept.drag.spread:
            column.prop(kept.drag, "falloff")
        _draw_switch(layout, kept.view, "show_trails", "trail_frames")
        _draw_switch(layout, kept.view, "show_ghosts", "ghost_count", "ghost_step")
        if kept.view.show_trails or kept.view.show_ghosts:
            row = layout.row(heading="Colors")
            row.prop(kept.view, "color_before", text="")
            row.prop(kept.view, "color_after", text="")
        _draw_holds(layout, rig)


def _draw_holds(layout: UILayout, rig: bpy.types.Object) -> None:
    """The holds, and what adds some."""
    column = layout.column(align=True)
    column.operator(FABRIK_OT_add_hold.bl_idname, icon="PINNED")
    column.operator(FABRIK_OT_hold_contacts.bl_idname, icon="CON_FLOOR")
    for number, hold in enumerate(rig_settings(rig).holds):
        row = column.row(align=True)
        row.label(text=hold.name, icon="DOT")
        row.operator(FABRIK_OT_remove_hold.bl_idname, text="", icon="X").index = number


def _draw_switch(layout: UILayout, view: bpy.types.PropertyGroup, switch: str, *details: str) -> None:
    """A switch, and what says more of it while it is on."""
    column = layout.column(align=True)
    column.prop(view, switch)
    if getattr(view, switch):
        for name in details:
            column.prop(view, name)


CLASSES = (FABRIK_PT_edit,)
