"""Motion tab, last step: how well the take was met."""

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.markers import FabrikMarker
from ....settings.rig import rig_settings
from ....settings.unset import seen
from ....settings.why_not import rig_at_hand
from ...operators.report import FABRIK_OT_export_report, FABRIK_OT_worst_frame
from ...translations import said
from ..base import AboutRig, MotionTab, draw_lines
from .bake import draw_result
from .match import active_marker


class FABRIK_PT_marker_report(AboutRig, MotionTab, Panel):
    """The report of the last bake from markers."""

    bl_label = "Report"
    bl_order = 40

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Whether markers were baked."""
        return seen(rig).capture.report is not None

    def draw_header_preset(self, context: Context) -> None:
        """Draw the switch of the lines from markers to their bones."""
        self.layout.prop(rig_settings(rig_at_hand(context)).capture, "show_errors", text="", icon="OVERLAY")

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        draw_result(layout, rig)
        for doubt in rig_settings(rig).capture.doubts.splitlines():
            draw_lines(layout, doubt, "ERROR")
        row = layout.row(align=True)
        row.operator(FABRIK_OT_worst_frame.bl_idname, text="Worst Frame", icon="PREV_KEYFRAME")
        row.operator(FABRIK_OT_export_report.bl_idname, text="Export", icon="EXPORT")
        marker = active_marker(rig)
        if marker is not None:
            _draw_figures(layout, marker)


def _draw_figures(layout: UILayout, marker: FabrikMarker) -> None:
    """Draw how well one marker was met."""
    column = layout.column(align=True)
    if marker.error < 0.0:
        draw_lines(column, said("{marker}: not seen, or not on a bone", marker=marker.name), "DOT")
        return
    figures = {"marker": marker.name, "rms": 1000.0 * marker.error, "worst": 1000.0 * marker.worst}
    row = column.row()
    row.label(text=said("{marker}: {rms:.1f} mm, worst {worst:.0f}", **figures), icon="DOT", translate=False)
    row.operator(FABRIK_OT_worst_frame.bl_idname, text="", icon="FRAME_NEXT").marker = marker.name
    column.label(
        text=said("Seen on {share:.0f} % of the frames", share=marker.coverage), icon="BLANK1", translate=False
    )


CLASSES = (FABRIK_PT_marker_report,)
