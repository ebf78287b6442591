"""The tab for motion on rigs. Its panels are in the order of the steps."""

from typing import Any, Final

import bpy
from bpy.types import Context, Menu, Object, Panel, Scene, UILayout, UIList

from ...settings.declare import CONTEXT, FloatVector
from ...settings.in_use import seen
from ...settings.motion import FabrikBakeSettings, FabrikBonePair, FabrikMarker
from ...settings.rig import imported_takes, rig_settings, state_of_take
from ...settings.why_not import has_motion, is_played, mapped_markers, rig_at_hand, why_no_rig, why_no_solve
from ..operators.base import folded
from ..translations import ui_text
from . import base

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
        rig: Any = rig_at_hand(context)
        for take in imported_takes(context.scene):
            state = state_of_take(rig, take)
            text = f"{take.name} ({ui_text(_WORDS[state])})" if state in _WORDS else take.name
            choose = self.layout.operator("fabrik.follow_take", text=text, icon=_TAKE_ICONS[state], translate=False)
            choose.take = take.name


class FABRIK_PT_take(base.MotionTab, Panel):
    """The next step, and the scene's recordings."""

    bl_label = "Takes"
    guide = "markers"

    def draw_rig(self, context: Context, layout: UILayout, rig: Object | None) -> None:
        sentence, step = base.next_in_motion(context, rig)
        base.draw_lines(layout, sentence, "INFO")
        layout.operator("fabrik.import_markers", icon="IMPORT")
        if rig is None or why_no_rig(rig):
            return
        capture = seen(rig).capture
        if imported_takes(context.scene):
            row, take = layout.row(), capture.take
            state = "NEW" if take is None else state_of_take(rig, take)
            # Blender leaves out the middle of a menu's name that is too long.
            name = ui_text("Choose Take") if take is None else take.name
            row.menu("FABRIK_MT_takes", text=name, icon=_TAKE_ICONS[state], translate=False)
            if state in _WORDS:
                row.label(text=ui_text(_WORDS[state]), translate=False)
        if step:
            layout.operator(step)
        if capture.report is None:
            base.draw_lines(layout, capture.last_result, "BLANK1")
            base.draw_lines(layout, capture.doubts, "ERROR")


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


class FABRIK_UL_markers(base.Rows, UIList):
    """One line per marker: a switch, its state, its bone, and after a bake the size of its error"""

    @staticmethod
    def draw_row(layout: UILayout, marker: FabrikMarker) -> None:
        state = marker.state
        names = base.draw_switch(layout, marker, active=state not in ("OFF", "FREE"))
        names.alert = state in ("GONE", "BAD")
        bone = f"{marker.bone}?" if marker.is_guess else marker.bone or "–"
        icon = "QUESTION" if marker.is_guess and state == "READY" else _MARKER_ICONS[state]
        split = names.split(factor=0.45)
        base.draw_name(split, marker.name, icon, boxes=1, share=0.45)
        base.draw_name(split, bone, "NONE", boxes=1, share=0.55)


class FABRIK_PT_marker_list(base.AboutRig, base.MotionTab, Panel):
    """The mapping of markers to bones: the bone of each marker."""

    bl_label = "Marker Mapping"
    shows = staticmethod(lambda rig: len(seen(rig).capture.markers) > 0 or imported_takes(bpy.context.scene))

    def draw_rig(self, _context: Context, layout: UILayout, rig: Object) -> None:
        capture = rig_settings(rig).capture
        buttons = layout.row(align=True)
        buttons.operator("fabrik.match_markers", icon="VIEWZOOM")
        if not capture.markers:
            return
        buttons.operator("fabrik.load_marker_map", text="", icon="FILE_FOLDER")
        buttons.operator("fabrik.save_marker_map", text="", icon="FILE_TICK")
        if any(not marker.bone for marker in capture.markers) and any(marker.bone for marker in capture.markers):
            layout.operator("fabrik.match_markers", text="Guess Unmatched", icon="QUESTION").keep = True
        row = layout.row()
        row.use_property_split = False
        row.template_list("FABRIK_UL_markers", "", capture, "markers", capture, "active_marker", rows=3, maxrows=3)
        marker = base.chosen_in(capture.markers, capture.active_marker)
        if marker is not None:
            bone = layout.row(align=True)
            bone.prop_search(marker, "bone", rig.pose, "bones")
            bone.operator("fabrik.marker_bone", text="", icon="EYEDROPPER")
            if marker.is_guess:
                guess = ui_text("Guessed: moves {far:.0f} mm on this bone", far=1000.0 * marker.guess)
                base.draw_lines(layout, guess, "QUESTION")
        if marker is not None and (advanced := folded(layout, "Advanced", "marker_list")) is not None:
            base.draw_target(advanced, marker, "target", "target_bone")
            advanced.prop(marker, "point")
            if marker.point == "OFFSET":
                advanced.prop(marker, "offset")
            advanced.prop(marker, "weight")


class FABRIK_PT_calibration(base.AboutRig, base.MotionTab, Panel):
    """Settings that fit the rig to a recorded person."""

    bl_label = "Calibration"
    shows = staticmethod(mapped_markers)

    def draw_rig(self, _context: Context, layout: UILayout, rig: Object) -> None:
        layout.operator("fabrik.calibrate_markers", icon="CON_SIZELIKE")
        capture = rig_settings(rig).capture
        base.draw_lines(layout, capture.calibrated, "DOT")
        layout.prop(capture, "proportions")
        layout.prop(capture, "static")
        if (advanced := folded(layout, "Advanced", "calibration")) is not None:
            advanced.prop(capture, "reference")
            advanced.prop(capture, "refine")
            floor = advanced.column()
            floor.enabled = capture.proportions != "NONE"
            floor.prop(capture, "on_floor")


class FABRIK_PT_bake(base.AboutRig, base.MotionTab, Panel):
    """Bake moving targets to keyframes."""

    bl_label = "Bake"
    shows = staticmethod(lambda rig: mapped_markers(rig) or not why_no_solve(rig))

    def draw_rig(self, context: Context, layout: UILayout, rig: Object) -> None:
        settings = rig_settings(rig)
        layout.operator("fabrik.bake", icon="REC")
        has_markers = mapped_markers(rig)
        if has_markers:
            layout.prop(settings.capture, "gaps")
            layout.prop(settings.capture, "robust")
            layout.row().prop(settings.bake, "plant_feet", expand=True)
        draw_output(layout, context.scene, rig, "bake")
        if (advanced := folded(layout, "Advanced", "bake")) is not None:
            if has_markers and not why_no_solve(rig):
                advanced.prop(settings.bake, "source")
            if has_markers:
                advanced.prop(settings.capture, "low_pass")
            draw_fewer(advanced, settings.bake)


def draw_output(layout: UILayout, scene: Scene, rig: Object, of: str) -> None:
    """Draw the sub-panel *Output* of the panel `of`: the frames, the action and the keys."""
    if (output := folded(layout, "Output", of)) is not None:
        settings = rig_settings(rig)
        output.prop(scene, "use_preview_range", text="Preview Range", text_ctxt=CONTEXT)
        if scene.use_preview_range:
            ends = output.column(align=True)
            ends.prop(scene, "frame_preview_start", text="Start")
            ends.prop(scene, "frame_preview_end", text="End")
        output.prop(settings.bake, "action")
        if settings.root != "FIXED":
            output.prop(settings.bake, "root_motion")
        output.prop(settings.bake, "key_angle")


def draw_fewer(layout: UILayout, settings: FabrikBakeSettings) -> None:
    """Draw the settings of the frames and bones that get keys."""
    layout.prop(settings, "step")
    layout.prop(settings, "bones")
    layout.row().prop(settings, "self_collision", expand=True)


class FABRIK_PT_marker_report(base.AboutRig, base.MotionTab, Panel):
    """The report of the last bake from markers."""

    bl_label = "Report"
    bl_options = set()
    shows = staticmethod(lambda rig: seen(rig).capture.report is not None)

    def draw_header_preset(self, context: Context) -> None:
        """Draw the switch that shows lines from markers to their bones."""
        self.layout.prop(rig_settings(rig_at_hand(context)).capture, "show_errors", text="", icon="OVERLAY")

    def draw_rig(self, _context: Context, layout: UILayout, rig: Object) -> None:
        capture = seen(rig).capture
        base.draw_lines(layout, capture.last_result, "BLANK1")
        base.draw_lines(layout, capture.doubts, "ERROR")
        row = layout.row(align=True)
        row.operator("fabrik.worst_frame", text="Worst Frame", icon="PREV_KEYFRAME")
        row.operator("fabrik.export_report", text="Export", icon="EXPORT")
        column = layout.column(align=True)
        marker = base.chosen_in(capture.markers, capture.active_marker)
        if marker is None:
            return
        if marker.error < 0.0:
            base.draw_lines(column, ui_text("{marker}: not seen, or not on a bone", marker=marker.name), "DOT")
            return
        figures = {"marker": marker.name, "rms": 1000.0 * marker.error, "worst": 1000.0 * marker.worst}
        row = column.row()
        base.draw_lines(row, ui_text("{marker}: {rms:.1f} mm, worst {worst:.0f} mm", **figures), "DOT")
        row.operator("fabrik.worst_frame", text="", icon="FRAME_NEXT").marker = marker.name
        base.draw_lines(column, ui_text("Seen on {share:.0f} % of the frames", share=marker.coverage), "BLANK1")


class FABRIK_UL_bone_pairs(base.Rows, UIList):
    """One line per bone: a switch, the rig's bone and the source's bone"""

    @staticmethod
    def draw_row(layout: UILayout, pair: FabrikBonePair) -> None:
        split = base.draw_switch(layout, pair, active=pair.enabled).split(factor=0.55)
        base.draw_name(split, pair.name, "NONE", boxes=1, share=0.55)
        base.draw_name(split, pair.source or "–", "NONE", boxes=1, share=0.45)


class FABRIK_PT_from_armature(base.AboutRig, base.MotionTab, Panel):
    """Retarget another armature's motion to the rig."""

    bl_label = "Retarget"
    shows = staticmethod(lambda _rig: len(bpy.data.armatures) > 1)

    def draw_rig(self, context: Context, layout: UILayout, rig: Object) -> None:
        settings = rig_settings(rig).retarget
        layout.prop(settings, "source")
        if settings.source is None:
            return
        layout.prop(settings, "places")
        layout.row().prop(rig_settings(rig).bake, "plant_feet", expand=True)
        layout.operator("fabrik.retarget", icon="ARMATURE_DATA")
        pair = base.chosen_in(settings.pairs, settings.active_pair)
        if (mapping := folded(layout, "Bone Mapping", "retarget")) is not None:
            buttons = mapping.row(align=True)
            buttons.operator("fabrik.match_bones", icon="VIEWZOOM")
            buttons.operator("fabrik.load_bone_map", text="", icon="FILE_FOLDER")
            buttons.operator("fabrik.save_bone_map", text="", icon="FILE_TICK")
            if settings.pairs:
                row = mapping.row()
                row.use_property_split = False
                row.template_list("FABRIK_UL_bone_pairs", "", settings, "pairs", settings, "active_pair", rows=6)
            if pair is not None:
                mapping.prop_search(pair, "source", settings.source.data, "bones")
        draw_output(layout, context.scene, rig, "retarget")
        if (advanced := folded(layout, "Advanced", "retarget")) is not None:
            advanced.prop(settings, "hands_in_world")
            advanced.prop(settings, "reference")
            if pair is not None and pair.before:
                advanced.prop_search(pair, "before", settings.source.data, "bones")
                advanced.prop(pair, "share")
            draw_fewer(advanced, rig_settings(rig).bake)


def _layers(rig: Any) -> list[tuple[Any, Any]]:
    """The NLA tracks of edits, each with a list of the first key of its influence; empty if there is none."""
    tracks = rig.animation_data.nla_tracks if rig.animation_data else ()
    strips = [(track, strip) for track in tracks for strip in track.strips if strip.blend_type == "COMBINE"]
    curves = [(track, strip.fcurves.find("influence")) for track, strip in strips]
    return [(track, curve.keyframe_points[:1] if curve else []) for track, curve in curves]


def _influences(rig: Any) -> list[float]:
    return ([keys[0].co[1] if keys else 1.0 for _, keys in _layers(rig)] + [1.0] * _MOST)[:_MOST]


def _set_influences(rig: Any, influences: list[float]) -> None:
    for (_track, keys), influence in zip(_layers(rig), influences, strict=False):
        for key in keys:
            key.co[1] = influence
    rig.update_tag(refresh={"TIME"})


# One slider for each layer sets the first key of its influence, since the value of a key has no range.
_MOST: Final = 32
INFLUENCES_OF_LAYERS: Final = "fabrik_influences_of_layers"
INFLUENCES: Final = FloatVector(
    "Influence",
    "How strongly this layer changes the original motion",
    size=_MOST,
    min=0.0,
    max=1.0,
    get=_influences,
    set=_set_influences,
    options=set(),
    override=set(),
)


class FABRIK_PT_edit(base.AboutRig, base.MotionTab, Panel):
    """Trails of the rig's motion, holds, and the spread of drags."""

    bl_label = "Motion Editing"
    shows = staticmethod(has_motion)

    def draw_rig(self, context: Context, layout: UILayout, rig: Object) -> None:
        settings = rig_settings(rig)
        column = layout.column(align=True)
        column.prop(settings.drag, "spread")
        if settings.drag.spread:
            column.prop(settings.drag, "spread_to", expand=True)
            # A drag over time changes keys. Without auto-keying it changes only one frame.
            column.prop(context.scene.tool_settings, "use_keyframe_insert_auto", text="Auto Keying", text_ctxt=CONTEXT)
        layers = layout.column(align=True)
        for number, (track, keys) in enumerate(_layers(rig)):
            row = layers.row(align=True)
            row.prop(track, "mute", text=track.name, icon="HIDE_ON" if track.mute else "HIDE_OFF", emboss=False)
            if keys and number < _MOST:
                row.prop(rig, INFLUENCES_OF_LAYERS, index=number, text="", slider=True)
        layout.prop(settings, "show_trails")
        if settings.show_trails and is_played(rig):
            layout.operator("fabrik.work_out_trails", icon="FILE_REFRESH")
        holds = layout.column(align=True)
        holds.operator("fabrik.add_hold", icon="PINNED")
        holds.operator("fabrik.hold_contacts", icon="CON_FLOOR")
        for number, hold in enumerate(settings.holds):
            row = holds.row(align=True)
            row.label(text=hold.name, icon="DOT", translate=False)
            row.operator("fabrik.remove_hold", text="", icon="X").index = number
        if (advanced := folded(layout, "Advanced", "edit")) is not None:
            advanced.prop(settings, "trail_frames")


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
