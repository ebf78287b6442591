"""Motion tab, third step: calibrates the recorded person and the rig."""

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.rig import rig_settings
from ....settings.why_not import why_no_mapped
from ...folded import folded
from ...operators.calibrate_markers import FABRIK_OT_calibrate_markers
from ..base import AboutRig, MotionTab, draw_lines


class FABRIK_PT_calibration(AboutRig, MotionTab, Panel):
    """Settings that fit the rig to a recorded person."""

    bl_label = "Calibration"
    bl_order = 20
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Whether markers are on bones."""
        return not why_no_mapped(rig)

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        layout.operator(FABRIK_OT_calibrate_markers.bl_idname, icon="CON_SIZELIKE")
        column = layout.column(align=True)
        for found in rig_settings(rig).capture.calibrated.splitlines():
            draw_lines(column, found, "DOT")
        capture = rig_settings(rig).capture
        layout.prop(capture, "proportions")
        floor = layout.column()
        floor.enabled = capture.proportions != "NONE"
        floor.prop(capture, "on_floor")
        layout.prop(capture, "static")
        advanced = folded(layout, "Advanced", "calibration")
        if advanced is not None:
            advanced.prop(capture, "reference")
            advanced.prop(capture, "refine")


CLASSES = (FABRIK_PT_calibration,)
