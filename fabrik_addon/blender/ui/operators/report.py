"""The report of the last bake: as a file, and its worst frame."""

from pathlib import Path

import bpy
from bpy.props import StringProperty
from bpy.types import Context, Operator
from bpy_extras.io_utils import ExportHelper

from ...settings.rig import rig_settings
from ...settings.why_not import why_no_rig
from .asking import can_run, says_why_not


def _why_no_report(rig: bpy.types.Object | None) -> str:
    """What keeps a rig from having a report; "" where it has one."""
    reason = why_no_rig(rig)
    if reason or rig is None:
        return reason
    return "" if rig_settings(rig).capture.report is not None else "There is no report: bake the markers first"


class FABRIK_OT_export_report(Operator, ExportHelper):
    """Save the report of the rig's last bake: errors by marker and by frame, gaps, limits"""

    bl_idname = "fabrik.export_report"
    bl_label = "Export Report"

    filename_ext = ".csv"
    filter_glob: StringProperty(default="*.csv", options={"HIDDEN"})

    @classmethod
    def poll(cls, context: Context) -> bool:
        """After a bake."""
        return can_run(cls, _why_no_report(context.object))

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Write the file."""
        from ...bake.report import export_report

        chosen: str = self.filepath  # type: ignore[attr-defined]  # a property of ExportHelper
        path = Path(bpy.path.abspath(chosen))
        export_report(context.object, path)
        self.report({"INFO"}, f"Report saved to {path.name}")
        return {"FINISHED"}


class FABRIK_OT_worst_frame(Operator):
    """Go to the frame that the last bake met least well"""

    bl_idname = "fabrik.worst_frame"
    bl_label = "Worst Frame"
    bl_options = {"REGISTER", "UNDO"}

    marker: StringProperty(
        name="Marker", description="Go to this marker's worst frame instead of the worst of all", options={"SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, context: Context) -> bool:
        """After a bake."""
        return can_run(cls, _why_no_report(context.object))

    def execute(self, context: Context) -> set[str]:
        """Set the frame."""
        capture = rig_settings(context.object).capture
        if self.marker and self.marker not in capture.markers:
            self.report({"ERROR"}, f"There is no marker {self.marker!r} in the list")
            return {"CANCELLED"}
        holder = capture.markers[self.marker] if self.marker else capture
        context.scene.frame_set(holder.worst_frame)
        return {"FINISHED"}


CLASSES = (FABRIK_OT_export_report, FABRIK_OT_worst_frame)
