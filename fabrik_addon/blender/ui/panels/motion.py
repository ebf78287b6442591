"""The tab for motion on rigs. Its panels are in the order of the steps."""

from typing import Any, Final

import bpy
from bpy.types import Context, Menu, Panel, UILayout, UIList

from ...capture.takes import imported_takes, state_of_take
from ...settings.bake_options import FabrikBakeSettings, FabrikBonePair, FabrikRetarget
from ...settings.control import may_be_control_rig
from ...settings.in_use import seen
from ...settings.markers import FabrikMarker
from ...settings.rig import rig_settings
from ...settings.why_not import (
    has_motion,
    mapped_markers,
    rig_at_hand,
    why_no_bake,
    why_no_mapped,
    why_no_rig,
    why_no_solve,
)
from ..operators.base import folded
from ..operators.motion import (
    has_to_be_played,
)
from ..translations import ui_text
from .base import (
    AboutRig,
    MotionTab,
    Rows,
    chosen_in,
    draw_guide,
    draw_lines,
    draw_names,
    draw_switch,
    fitted,
    next_in_motion,
)

# Pixels for a take's name.
_ROOM: Final = 90.0
# The state of a take as a word, and its icon.
_WORDS: Final = {"STATIC": "Static", "MATCHED": "Matched", "CALIBRATED": "Calibrated", "BAKED": "Baked"}
_TAKE_ICONS: Final[dict[str, Any]] = {
    "NEW": "DOT",
    "STATIC": "OUTLINER_OB_ARMATURE",
    "MATCHED": "LINKED",
    "CALIBRATED": "CON_SIZELIKE",
    "BAKED": "CHECKMARK",
}


class FABRIK_MT_takes(Menu):
    """The take used by the panels below"""

    bl_idname = "FABRIK_MT_takes"
    bl_label = "Takes"

    def draw(self, context: Context) -> None:
        """Draw one line for each take: its name, and its state on the rig."""
        rig: Any = rig_at_hand(context)
        for take in imported_takes(context.scene):
            state = state_of_take(rig, take)
            word = f" ({ui_text(_WORDS[state])})" if state in _WORDS else ""
            choose = self.layout.operator(
                "fabrik.follow_take", text=f"{take.name}{word}", icon=_TAKE_ICONS[state], translate=False
            )
            choose.take = take.name


class FABRIK_PT_take(MotionTab, Panel):
    """The next step, and the scene's recordings."""

    bl_order = 0
    bl_label = "Takes"

    def draw_header_preset(self, _context: Context) -> None:
        """Draw the link to the guide."""
        draw_guide(self.layout, "markers")

    def draw(self, context: Context) -> None:
        layout, rig = self.layout, rig_at_hand(context)
        layout.use_property_split = True
        layout.use_property_decorate = False
        sentence, step = next_in_motion(context, rig)
        draw_lines(layout, sentence, "INFO")
        layout.operator("fabrik.import_markers", icon="IMPORT")
        if rig is None or why_no_rig(rig):
            return
        capture = seen(rig).capture
        if imported_takes(context.scene):
            _draw_take(layout, rig, capture.take)
        elif len(bpy.data.armatures) > 1 and not mapped_markers(rig):
            layout.prop(rig_settings(rig).retarget, "source")
        if step == "fabrik.match_markers":
            draw_match(layout, rig)
        elif step:
            layout.operator(step)
        if capture.report is None:
            draw_result(layout, rig)


def _draw_take(layout: UILayout, rig: bpy.types.Object, take: bpy.types.Collection | None) -> None:
    """Draw the take in use, and its state."""
    row = layout.row()
    if take is None:
        row.menu("FABRIK_MT_takes", text=ui_text("Choose Take"), translate=False)
        return
    state = state_of_take(rig, take)
    row.menu("FABRIK_MT_takes", text=fitted(take.name, _ROOM), icon=_TAKE_ICONS[state], translate=False)
    if state in _WORDS:
        row.label(text=ui_text(_WORDS[state]), translate=False)


# The icons differ in shape. The report shows the errors as numbers.
_MARKER_ICONS: Final[dict[str, Any]] = {
    "GONE": "UNLINKED",
    "FREE": "QUESTION",
    "OFF": "HIDE_ON",
    "READY": "DOT",
    "GOOD": "CHECKMARK",
    "FAIR": "ERROR",
    "BAD": "CANCEL",
}


class FABRIK_UL_markers(Rows, UIList):
    """One line per marker: a switch, its state, its bone, and after a bake the size of its error"""

    @staticmethod
    def draw_row(layout: UILayout, marker: FabrikMarker) -> None:
        state = marker.state
        names = draw_switch(layout, marker, active=state not in ("OFF", "FREE"))
        names.alert = state in ("GONE", "BAD")
        bone = f"{marker.bone}?" if marker.is_guess else marker.bone or "–"
        icon = "QUESTION" if marker.is_guess and state == "READY" else _MARKER_ICONS[state]
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
        buttons.operator("fabrik.load_marker_map", text="", icon="FILE_FOLDER")
        buttons.operator("fabrik.save_marker_map", text="", icon="FILE_TICK")
        if any(not marker.bone for marker in capture.markers) and any(marker.bone for marker in capture.markers):
            again = layout.operator("fabrik.match_markers", text="Guess Unmatched", icon="QUESTION")
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
            _draw_advanced_marker(advanced, marker)


def draw_match(layout: UILayout, rig: bpy.types.Object) -> None:
    """Draw the button that matches the markers of the current take."""
    take = seen(rig).capture.take
    match = layout.operator("fabrik.match_markers", icon="VIEWZOOM")
    match.take = take.name if take is not None else ""


def _draw_advanced_marker(layout: UILayout, marker: FabrikMarker) -> None:
    """Draw the chosen marker and its position on its bone."""
    layout.prop(marker, "target")
    if marker.target is not None and marker.target.type == "ARMATURE":
        layout.prop_search(marker, "target_bone", marker.target.pose, "bones")
    layout.prop(marker, "point")
    if marker.point == "OFFSET":
        layout.prop(marker, "offset")
    layout.prop(marker, "weight")


def active_marker(rig: bpy.types.Object) -> Any:
    """The marker that is selected in the list; None if there is none."""
    capture = seen(rig).capture
    return chosen_in(capture.markers, capture.active_marker)


def _draw_bone(layout: UILayout, rig: bpy.types.Object, marker: FabrikMarker) -> None:
    """Draw the bone of a marker, and whether it is a guess."""
    bone = layout.row(align=True)
    bone.prop_search(marker, "bone", rig.pose, "bones")
    bone.operator("fabrik.marker_bone", text="", icon="EYEDROPPER")
    if marker.is_guess:
        draw_lines(layout, ui_text("Guessed: moves {far:.0f} mm on this bone", far=1000.0 * marker.guess), "QUESTION")


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
        layout.operator("fabrik.calibrate_markers", icon="CON_SIZELIKE")
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


class FABRIK_PT_bake(AboutRig, MotionTab, Panel):
    """Bake moving targets to keyframes."""

    bl_order = 30
    bl_label = "Bake"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Whether markers are on bones, or there are targets to follow."""
        return not why_no_bake(rig)

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        settings = rig_settings(rig)
        layout.operator("fabrik.bake", icon="REC")
        has_markers = not why_no_mapped(rig)
        if has_markers:
            layout.prop(settings.capture, "gaps")
            layout.prop(settings.capture, "robust")
            layout.row().prop(settings.bake, "plant_feet", expand=True)
        output = folded(layout, "Output", "bake")
        if output is not None:
            draw_output(output, context.scene, rig)
        advanced = folded(layout, "Advanced", "bake")
        if advanced is None:
            return
        if has_markers and not why_no_solve(rig):
            advanced.prop(settings.bake, "source")
        if has_markers:
            advanced.prop(settings.capture, "low_pass")
        draw_fewer(advanced, settings.bake)


def draw_output(layout: UILayout, scene: bpy.types.Scene, rig: bpy.types.Object) -> None:
    """Draw the settings of the keys to write, and of their action."""
    settings = rig_settings(rig)
    layout.prop(scene, "use_preview_range", text="Preview Range")
    if scene.use_preview_range:
        ends = layout.column(align=True)
        ends.prop(scene, "frame_preview_start", text="Start")
        ends.prop(scene, "frame_preview_end", text="End")
    layout.prop(settings.bake, "action")
    if settings.root != "FIXED":
        layout.prop(settings.bake, "root_motion")
    layout.prop(settings.bake, "key_angle")


def draw_fewer(layout: UILayout, settings: FabrikBakeSettings) -> None:
    """Draw the settings of the frames and bones that get keys."""
    layout.prop(settings, "step")
    layout.prop(settings, "bones")
    layout.row().prop(settings, "self_collision", expand=True)


def draw_result(layout: UILayout, rig: bpy.types.Object) -> None:
    """Draw the result of the last bake, line by line."""
    column = layout.column(align=True)
    for line in seen(rig).last_result.splitlines():
        draw_lines(column, line, "BLANK1")


class FABRIK_PT_marker_report(AboutRig, MotionTab, Panel):
    """The report of the last bake from markers."""

    bl_label = "Report"
    bl_order = 40

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Whether markers were baked."""
        return seen(rig).capture.report is not None

    def draw_header_preset(self, context: Context) -> None:
        """Draw the switch that shows lines from markers to their bones."""
        self.layout.prop(rig_settings(rig_at_hand(context)).capture, "show_errors", text="", icon="OVERLAY")

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        draw_result(layout, rig)
        for doubt in rig_settings(rig).capture.doubts.splitlines():
            draw_lines(layout, doubt, "ERROR")
        row = layout.row(align=True)
        row.operator("fabrik.worst_frame", text="Worst Frame", icon="PREV_KEYFRAME")
        row.operator("fabrik.export_report", text="Export", icon="EXPORT")
        marker = active_marker(rig)
        if marker is not None:
            _draw_figures(layout, marker)


def _draw_figures(layout: UILayout, marker: FabrikMarker) -> None:
    """Draw the errors of one marker."""
    column = layout.column(align=True)
    if marker.error < 0.0:
        draw_lines(column, ui_text("{marker}: not seen, or not on a bone", marker=marker.name), "DOT")
        return
    figures = {"marker": marker.name, "rms": 1000.0 * marker.error, "worst": 1000.0 * marker.worst}
    row = column.row()
    row.label(text=ui_text("{marker}: {rms:.1f} mm, worst {worst:.0f} mm", **figures), icon="DOT", translate=False)
    row.operator("fabrik.worst_frame", text="", icon="FRAME_NEXT").marker = marker.name
    column.label(
        text=ui_text("Seen on {share:.0f} % of the frames", share=marker.coverage), icon="BLANK1", translate=False
    )


class FABRIK_UL_bone_pairs(Rows, UIList):
    """One line per bone: a switch, the rig's bone and the source's bone"""

    @staticmethod
    def draw_row(layout: UILayout, pair: FabrikBonePair) -> None:
        names = draw_switch(layout, pair, active=pair.enabled)
        draw_names(names, pair.name, pair.source or "–", icon="BONE_DATA", share=0.55, boxes=1)


class FABRIK_PT_from_armature(AboutRig, MotionTab, Panel):
    """Retarget another armature's motion to the rig."""

    bl_label = "Retarget"
    bl_order = 50
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def shows(cls, _rig: bpy.types.Object) -> bool:
        """Whether there is another armature."""
        return len(bpy.data.armatures) > 1

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        settings = rig_settings(rig).retarget
        layout.prop(settings, "source")
        if settings.source is None:
            return
        layout.prop(settings, "places")
        layout.row().prop(rig_settings(rig).bake, "plant_feet", expand=True)
        if may_be_control_rig(rig):
            draw_lines(layout, "Constraints move the rig's bones: set up a control rig first", "ERROR")
            layout.operator("fabrik.use_control_rig", icon="CON_ARMATURE")
        layout.operator("fabrik.retarget", icon="ARMATURE_DATA")
        mapping = folded(layout, "Bone Mapping", "retarget")
        if mapping is not None:
            _draw_pairs(mapping, settings)
        output = folded(layout, "Output", "retarget")
        if output is not None:
            draw_output(output, context.scene, rig)
        advanced = folded(layout, "Advanced", "retarget")
        if advanced is not None:
            _draw_advanced_pair(advanced, settings)
            draw_fewer(advanced, rig_settings(rig).bake)


def _draw_pairs(layout: UILayout, settings: FabrikRetarget) -> None:
    """Draw the bone mapping: for each of the source's bones, the bone that follows it."""
    buttons = layout.row(align=True)
    buttons.operator("fabrik.match_bones", icon="VIEWZOOM")
    buttons.operator("fabrik.load_bone_map", text="", icon="FILE_FOLDER")
    buttons.operator("fabrik.save_bone_map", text="", icon="FILE_TICK")
    if not settings.pairs:
        return
    row = layout.row()
    row.use_property_split = False
    row.template_list("FABRIK_UL_bone_pairs", "", settings, "pairs", settings, "active_pair", rows=6)
    pair = chosen_in(settings.pairs, settings.active_pair)
    if pair is not None:
        layout.prop_search(pair, "source", settings.source.data, "bones")


def _draw_advanced_pair(layout: UILayout, settings: FabrikRetarget) -> None:
    """Draw rarely used settings of the chosen pair of bones."""
    layout.prop(settings, "hands_in_world")
    layout.prop(settings, "reference")
    pair = chosen_in(settings.pairs, settings.active_pair)
    if pair is not None and pair.before:
        layout.prop_search(pair, "before", settings.source.data, "bones")
        layout.prop(pair, "share")


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
        settings = rig_settings(rig)
        column = layout.column(align=True)
        column.prop(settings.drag, "spread")
        if settings.drag.spread:
            column.prop(settings.drag, "spread_to", expand=True)
            # A drag over time changes keys. Without auto-keying it changes only one frame.
            column.prop(context.scene.tool_settings, "use_keyframe_insert_auto", text="Auto Keying", icon="REC")
        _draw_layers(layout, rig)
        layout.prop(settings, "show_trails")
        if settings.show_trails and has_to_be_played(rig):
            layout.operator("fabrik.work_out_trails", icon="FILE_REFRESH")
        _draw_holds(layout, rig)
        advanced = folded(layout, "Advanced", "edit")
        if advanced is not None:
            advanced.prop(settings, "trail_frames")


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
    column.operator("fabrik.add_hold", icon="PINNED")
    column.operator("fabrik.hold_contacts", icon="CON_FLOOR")
    for number, hold in enumerate(rig_settings(rig).holds):
        row = column.row(align=True)
        row.label(text=hold.name, icon="DOT", translate=False)
        row.operator("fabrik.remove_hold", text="", icon="X").index = number


CLASSES = (
    FABRIK_MT_takes,
    FABRIK_PT_take,
    FABRIK_UL_markers,
    FABRIK_PT_marker_list,
    FABRIK_PT_calibration,
    FABRIK_PT_bake,
    FABRIK_PT_marker_report,
    FABRIK_UL_bone_pairs,
    FABRIK_PT_from_armature,
    FABRIK_PT_edit,
)
