"""The Motion tab's last step: how well the take is met."""

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.markers import FabrikMarker
from ....settings.rig import rig_settings
from ...operators.report import FABRIK_OT_export_report, FABRIK_OT_worst_frame
from ..base import AboutRig, MotionTab, draw_lines
from .bake import draw_result


class FABRIK_PT_marker_report(AboutRig, MotionTab, Panel):
    """How well the last bake met the markers."""

    bl_idname = "FABRIK_PT_marker_report"
    bl_label = "Report"
    bl_order = 40

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Where markers were baked."""
        return rig_settings(rig).capture.report is not None

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the figures of all markers and of the active one, and where to go from there."""
        capture = rig_settings(rig).capture
        draw_result(layout, rig)
        for doubt in capture.doubts.splitlines():
            draw_lines(layout, doubt, "ERROR")
        if 0 <= capture.active_marker < len(capture.markers):
            _draw_figures(layout, capture.markers[capture.active_marker])
        layout.prop(capture, "show_errors")
        row = layout.row(align=True)
        row.operator(FABRIK_OT_worst_frame.bl_idname, icon="PREV_KEYFRAME")
        row.operator(FABRIK_OT_export_report.bl_idname, text="Export", icon="EXPORT")


def _draw_figures(layout: UILayout, marker: FabrikMarker) -> None:
    """How well one marker was met."""
    column = layout.column(align=True)
    if marker.error < 0.0:
        draw_lines(column, f"{marker.name}: not seen, or not on a bone", "DOT")
        return
    row = column.row()
    row.label(text=f"{marker.name}: {1000.0 * marker.error:.1f} mm, worst {1000.0 * marker.worst:.0f}", icon="DOT")
    row.operator(FABRIK_OT_worst_frame.bl_idname, text="", icon="FRAME_NEXT").marker = marker.name
    column.label(text=f"Seen on {marker.coverage:.0f} % of the frames", icon="BLANK1")


CLASSES = (FABRIK_PT_marker_report,)
