"""The Motion tab's third step: the recorded person is made to fit the rig."""

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.rig import rig_settings
from ....settings.why_not import why_no_mapped
from ...operators.calibrate_markers import FABRIK_OT_calibrate_markers
from ..base import AboutRig, MotionTab, draw_lines


class FABRIK_PT_calibration(AboutRig, MotionTab, Panel):
    """How a recorded person is made to fit the rig."""

    bl_label = "Calibration"
    bl_order = 20

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Where markers are on bones."""
        return not why_no_mapped(rig)

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        layout.operator(FABRIK_OT_calibrate_markers.bl_idname, icon="CON_SIZELIKE")
        column = layout.column(align=True)
        for found in rig_settings(rig).capture.calibrated.splitlines():
            draw_lines(column, found, "DOT")


class FABRIK_PT_calibration_ways(AboutRig, MotionTab, Panel):
    """What the person is measured on, and what happens where the rig is of another build."""

    bl_parent_id = "FABRIK_PT_calibration"
    bl_label = "Calibration Options"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        capture = rig_settings(rig).capture
        layout.prop(capture, "proportions")
        floor = layout.column()
        floor.enabled = capture.proportions != "NONE"
        floor.prop(capture, "on_floor")
        layout.prop(capture, "static")
        layout.prop(capture, "use_reference")
        if capture.use_reference:
            frames = layout.column(align=True)
            frames.prop(capture, "reference_start", text="Start")
            frames.prop(capture, "reference_end", text="End")
        layout.prop(capture, "refine")


CLASSES = (FABRIK_PT_calibration, FABRIK_PT_calibration_ways)
