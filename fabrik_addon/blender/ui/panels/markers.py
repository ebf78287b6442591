"""The sidebar's panels below Markers: which marker is on which bone, how they are calibrated and baked, the report."""

from typing import Any, Final

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from ...settings.markers import FabrikCapture, FabrikMarker
from ...settings.rig import rig_settings
from ..marker_state import marker_state
from ..operators import match_markers as matching
from ..operators.calibrate_markers import FABRIK_OT_calibrate_markers
from ..operators.report import FABRIK_OT_export_report, FABRIK_OT_worst_frame
from .rig import AboutRig, short_lines

# Colours and, for those who can't tell these apart, figures beside them.
_ICONS: Final[dict[str, Any]] = {
    "GONE": "ERROR",
    "FREE": "QUESTION",
    "OFF": "HIDE_ON",
    "READY": "DOT",
    "GOOD": "COLLECTION_COLOR_05",
    "FAIR": "COLLECTION_COLOR_03",
    "BAD": "COLLECTION_COLOR_01",
}


class FABRIK_UL_markers(UIList):
    """One line a marker: on or off, how it is, its bone, its error after a bake"""

    def draw_item(
        self,
        _context: Context,
        layout: UILayout,
        data: FabrikCapture,
        marker: FabrikMarker,
        _icon: int,
        _active_data: FabrikCapture,
        _active_property: str,
    ) -> None:
        """Draw one marker."""
        state = marker_state(data.id_data, marker)
        row = layout.row(align=True)
        row.use_property_split = False
        row.prop(marker, "enabled", text="")
        names = row.row()
        names.active = state not in ("OFF", "FREE")
        names.alert = state == "GONE"
        split = names.split(factor=0.4)
        split.label(text=marker.name, icon=_ICONS[state])
        right = split.split(factor=0.62)
        right.label(text=f"{marker.bone}?" if marker.bone and marker.guess >= 0.0 else marker.bone or "–")
        right.label(text=f"{1000.0 * marker.error:.0f} mm" if marker.error >= 0.0 and marker.bone else "")


class FABRIK_PT_marker_list(AboutRig, Panel):
    """Which marker is on which bone."""

    bl_idname = "FABRIK_PT_marker_list"
    bl_parent_id = "FABRIK_PT_markers"
    bl_label = "Bones"
    bl_order = 0

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the buttons, the list and the details of its active marker."""
        capture = rig_settings(rig).capture
        buttons = layout.row(align=True)
        buttons.operator(matching.FABRIK_OT_match_markers.bl_idname, icon="VIEWZOOM")
        buttons.operator(matching.FABRIK_OT_load_marker_map.bl_idname, text="", icon="FILE_FOLDER")
        buttons.operator(matching.FABRIK_OT_save_marker_map.bl_idname, text="", icon="FILE_TICK")
        if not capture.markers:
            layout.label(text="Import markers, then match them", icon="INFO")
            return
        if any(not marker.bone for marker in capture.markers) and any(marker.bone for marker in capture.markers):
            again = layout.operator(matching.FABRIK_OT_match_markers.bl_idname, text="Guess the Rest", icon="QUESTION")
            again.keep = True
        row = layout.row()
        row.use_property_split = False
        row.template_list("FABRIK_UL_markers", "", capture, "markers", capture, "active_marker", rows=6)
        if 0 <= capture.active_marker < len(capture.markers):
            _draw_marker(layout.column(), rig, capture.markers[capture.active_marker])


class FABRIK_PT_calibration(AboutRig, Panel):
    """How a recorded person is made to fit the rig."""

    bl_idname = "FABRIK_PT_calibration"
    bl_parent_id = "FABRIK_PT_markers"
    bl_label = "Calibration"
    bl_order = 1

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw what to measure on, and the button."""
        capture = rig_settings(rig).capture
        layout.prop(capture, "proportions")
        layout.prop(capture, "static")
        layout.prop(capture, "use_reference")
        frames = layout.column(align=True)
        frames.enabled = capture.use_reference
        frames.prop(capture, "reference_start", text="Start")
        frames.prop(capture, "reference_end", text="End")
        layout.prop(capture, "refine")
        layout.operator(FABRIK_OT_calibrate_markers.bl_idname, icon="CON_SIZELIKE")
        column = layout.column(align=True)
        for found in capture.calibrated.splitlines():
            for line in short_lines(found):
                column.label(text=line)


class FABRIK_PT_marker_bake(AboutRig, Panel):
    """What a bake does with gaps, noise and feet."""

    bl_idname = "FABRIK_PT_marker_bake"
    bl_parent_id = "FABRIK_PT_markers"
    bl_label = "Gaps, Noise and Feet"
    bl_options = {"DEFAULT_CLOSED"}
    bl_order = 2

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the choices."""
        capture = rig_settings(rig).capture
        for name in ("gaps", "robust", "steady", "low_pass", "plant_feet", "key_error"):
            layout.prop(capture, name)


class FABRIK_PT_marker_report(AboutRig, Panel):
    """How well the last bake met the markers."""

    bl_idname = "FABRIK_PT_marker_report"
    bl_parent_id = "FABRIK_PT_markers"
    bl_label = "Report"
    bl_order = 3

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the figures of all markers and of the active one, and where to go from there."""
        kept = rig_settings(rig)
        capture = kept.capture
        layout.prop(capture, "show_errors")
        if capture.report is None:
            layout.label(text="Bake to see how well it fits", icon="INFO")
            return
        column = layout.column(align=True)
        for line in kept.last_result.splitlines():
            column.label(text=line)
        _draw_doubts(layout, capture)
        if 0 <= capture.active_marker < len(capture.markers):
            _draw_figures(layout, capture.markers[capture.active_marker])
        row = layout.row(align=True)
        row.operator(FABRIK_OT_worst_frame.bl_idname, icon="PREV_KEYFRAME")
        row.operator(FABRIK_OT_export_report.bl_idname, text="Export", icon="EXPORT")


class FABRIK_PT_bake_options(AboutRig, Panel):
    """Which keys a bake writes."""

    bl_idname = "FABRIK_PT_bake_options"
    bl_parent_id = "FABRIK_PT_bake"
    bl_label = "Keys"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the choices."""
        kept = rig_settings(rig)
        layout.prop(kept.bake, "source")
        layout.prop(kept.bake, "bones")
        motion = layout.column()
        motion.enabled = kept.root != "FIXED"
        motion.prop(kept.bake, "root_motion")
        layout.prop(kept.bake, "key_angle")
        tolerance = layout.column()
        tolerance.enabled = kept.bake.key_angle > 0.0
        tolerance.prop(kept.bake, "key_distance")


def _draw_marker(column: UILayout, rig: bpy.types.Object, marker: FabrikMarker) -> None:
    """The details of one marker."""
    column.prop(marker, "target")
    if marker.target is not None and marker.target.type == "ARMATURE":
        column.prop_search(marker, "target_bone", marker.target.pose, "bones")
    bone = column.row(align=True)
    bone.prop_search(marker, "bone", rig.pose, "bones")
    bone.operator(matching.FABRIK_OT_marker_bone.bl_idname, text="", icon="EYEDROPPER")
    if marker.bone and marker.guess >= 0.0:
        column.label(text=f"A guess: moves {1000.0 * marker.guess:.0f} mm on this bone", icon="QUESTION")
    column.prop(marker, "point")
    if marker.point == "OFFSET":
        column.prop(marker, "offset")
    column.prop(marker, "weight")


def _draw_doubts(layout: UILayout, capture: FabrikCapture) -> None:
    """What may be wrong with the last match or bake."""
    for doubt in capture.doubts.splitlines():
        column = layout.column(align=True)
        for place, line in enumerate(short_lines(doubt)):
            column.label(text=line, icon="BLANK1" if place else "ERROR")


def _draw_figures(layout: UILayout, marker: FabrikMarker) -> None:
    """How well one marker was met."""
    if marker.error < 0.0:
        layout.label(text=f"{marker.name}: not seen, or not on a bone")
        return
    text = f"{marker.name}: RMS {1000.0 * marker.error:.1f}, worst {1000.0 * marker.worst:.1f} mm"
    row = layout.row()
    row.label(text=text)
    row.operator(FABRIK_OT_worst_frame.bl_idname, text="", icon="FRAME_NEXT").marker = marker.name
    layout.label(text=f"Seen on {marker.coverage:.0f} % of the frames")


CLASSES = (
    FABRIK_UL_markers,
    FABRIK_PT_marker_list,
    FABRIK_PT_calibration,
    FABRIK_PT_marker_bake,
    FABRIK_PT_marker_report,
    FABRIK_PT_bake_options,
)
