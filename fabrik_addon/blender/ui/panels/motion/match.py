"""Motion tab, second step: maps markers to bones."""

from typing import Any, Final

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from ....capture.takes import imported_takes
from ....settings.markers import FabrikMarker
from ....settings.rig import rig_settings
from ....settings.unset import seen
from ...folded import folded
from ...marker_state import marker_state
from ...operators import match_markers as matching
from ...translations import said
from ..base import AboutRig, MotionTab, Rows, chosen_in, draw_lines, draw_names, draw_switch

# Distinguished by shape; the report shows errors in figures.
_ICONS: Final[dict[str, Any]] = {
    "GONE": "UNLINKED",
    "FREE": "QUESTION",
    "OFF": "HIDE_ON",
    "READY": "DOT",
    "GOOD": "CHECKMARK",
    "FAIR": "ERROR",
    "BAD": "CANCEL",
}


class FABRIK_UL_markers(Rows, UIList):
    """One line a marker: on or off, how it is, its bone; after a bake whether it was met well, fairly or badly"""

    @staticmethod
    def draw_row(layout: UILayout, marker: FabrikMarker) -> None:
        state = marker_state(marker.id_data, marker)
        names = draw_switch(layout, marker, active=state not in ("OFF", "FREE"))
        names.alert = state in ("GONE", "BAD")
        bone = f"{marker.bone}?" if marker.is_guess else marker.bone or "–"
        icon = "QUESTION" if marker.is_guess and state == "READY" else _ICONS[state]
        draw_names(names, marker.name, bone, icon=icon, share=0.45, boxes=1)


class FABRIK_PT_marker_list(AboutRig, MotionTab, Panel):
    """The bone of each marker."""

    bl_label = "Marker Mapping"
    bl_order = 10
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Whether there is a recording."""
        return len(seen(rig).capture.markers) > 0 or len(imported_takes(bpy.context.scene)) > 0

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        capture = rig_settings(rig).capture
        buttons = layout.row(align=True)
        draw_match(buttons, rig)
        if not capture.markers:
            return
        buttons.operator(matching.FABRIK_OT_load_marker_map.bl_idname, text="", icon="FILE_FOLDER")
        buttons.operator(matching.FABRIK_OT_save_marker_map.bl_idname, text="", icon="FILE_TICK")
        if any(not marker.bone for marker in capture.markers) and any(marker.bone for marker in capture.markers):
            again = layout.operator(matching.FABRIK_OT_match_markers.bl_idname, text="Guess Unmapped", icon="QUESTION")
            again.keep = True
        row = layout.row()
        row.use_property_split = False
        row.template_list("FABRIK_UL_markers", "", capture, "markers", capture, "active_marker", rows=3, maxrows=3)
        marker = active_marker(rig)
        if marker is not None:
            _draw_bone(layout, rig, marker)
        for doubt in capture.doubts.splitlines() if capture.report is None else ():
            draw_lines(layout, doubt, "ERROR")
        advanced = folded(layout, "Advanced", "marker_list") if marker is not None else None
        if advanced is not None:
            _draw_advanced(advanced, marker)


def draw_match(layout: UILayout, rig: bpy.types.Object) -> None:
    """The button that matches the markers of the take in use."""
    take = seen(rig).capture.take
    match = layout.operator(matching.FABRIK_OT_match_markers.bl_idname, icon="VIEWZOOM")
    match.take = take.name if take is not None else ""


def _draw_advanced(layout: UILayout, marker: FabrikMarker) -> None:
    """Draw the chosen marker and its position on its bone."""
    layout.prop(marker, "target")
    if marker.target is not None and marker.target.type == "ARMATURE":
        layout.prop_search(marker, "target_bone", marker.target.pose, "bones")
    layout.prop(marker, "point")
    if marker.point == "OFFSET":
        layout.prop(marker, "offset")
    layout.prop(marker, "weight")


def active_marker(rig: bpy.types.Object) -> Any:
    """The marker that is chosen in the list; None if there is none."""
    capture = seen(rig).capture
    return chosen_in(capture.markers, capture.active_marker)


def _draw_bone(layout: UILayout, rig: bpy.types.Object, marker: FabrikMarker) -> None:
    """Draw the bone of a marker, and whether it is a guess."""
    bone = layout.row(align=True)
    bone.prop_search(marker, "bone", rig.pose, "bones")
    bone.operator(matching.FABRIK_OT_marker_bone.bl_idname, text="", icon="EYEDROPPER")
    if marker.is_guess:
        draw_lines(layout, said("Guessed: moves {far:.0f} mm on this bone", far=1000.0 * marker.guess), "QUESTION")


CLASSES = (FABRIK_UL_markers, FABRIK_PT_marker_list)
