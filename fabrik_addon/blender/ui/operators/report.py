"""The report of the last bake: as a file, and its worst frame."""

import bpy
from bpy.props import StringProperty
from bpy.types import Context, Operator
from bpy_extras.io_utils import ExportHelper

from ...settings.rig import rig_settings
from ...settings.why_not import of_a_rig
from .base import Done, OnRig, chosen_path


@of_a_rig
def _why_no_report(rig: bpy.types.Object) -> str:
    """Why a rig has no report; "" if it has one."""
    return "" if rig_settings(rig).capture.report is not None else "There is no report: bake the markers first"


class FABRIK_OT_export_report(OnRig, Operator, ExportHelper):
    """Save the report of the rig's last bake: errors per marker and frame, gaps and limits"""

    bl_idname = "fabrik.export_report"
    bl_label = "Export Bake Report"
    bl_options = {"REGISTER"}
    why_not = staticmethod(_why_no_report)

    filename_ext = ".csv"
    filter_glob: StringProperty(default="*.csv", options={"HIDDEN"})

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...bake.report import export_report

        path = chosen_path(self)
        export_report(rig, path)
        return f"Report saved to {path.name}", []


class FABRIK_OT_worst_frame(OnRig, Operator):
    """Go to the frame with the largest error in the last bake"""

    bl_idname = "fabrik.worst_frame"
    bl_label = "Go to Worst Frame"
    why_not = staticmethod(_why_no_report)

    marker: StringProperty(
        name="Marker",
        description="Go to the worst frame of this marker instead of the whole rig",
        options={"SKIP_SAVE"},
    )

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...rig.armature import RigError

        capture = rig_settings(rig).capture
        if self.marker and self.marker not in capture.markers:
            raise RigError(f"Marker {self.marker!r} is not in the list: choose another")
        frame = (capture.markers[self.marker] if self.marker else capture).worst_frame
        context.scene.frame_set(frame)
        return f"Frame {frame}", []


CLASSES = (FABRIK_OT_export_report, FABRIK_OT_worst_frame)
