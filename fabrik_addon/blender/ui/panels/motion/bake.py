"""The Motion tab's fourth step: targets or markers become keyframes."""

from typing import Any

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.bake_options import FabrikBakeSettings
from ....settings.rig import rig_settings
from ....settings.why_not import why_no_bake, why_no_mapped, why_no_solve
from ...operators.bake import FABRIK_OT_bake
from ..base import AboutRig, MotionTab, draw_lines


class FABRIK_PT_bake(AboutRig, MotionTab, Panel):
    """From targets that move to keyframes."""

    bl_order = 30
    bl_label = "Bake"

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Where markers are on bones, or targets to be followed."""
        return not why_no_bake(rig)

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        if not why_no_mapped(rig) and not why_no_solve(rig):
            layout.prop(rig_settings(rig).bake, "source")
        layout.operator(FABRIK_OT_bake.bl_idname, icon="REC")
        if rig_settings(rig).capture.report is None:
            draw_result(layout, rig)


class FABRIK_PT_marker_bake(AboutRig, MotionTab, Panel):
    """What a bake does with gaps, noise and feet."""

    bl_parent_id = "FABRIK_PT_bake"
    bl_label = "Cleanup"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Where markers are on bones."""
        return not why_no_mapped(rig)

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        capture = rig_settings(rig).capture
        for name in ("gaps", "robust", "steady", "low_pass", "plant_feet", "key_error"):
            layout.prop(capture, name)


class FABRIK_PT_bake_options(AboutRig, MotionTab, Panel):
    """Which keys a bake writes, and where to."""

    bl_parent_id = "FABRIK_PT_bake"
    bl_label = "Output"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        draw_output(layout, context.scene, rig)
        kept = rig_settings(rig).bake
        layout.prop(kept, "start")
        if kept.start == "REST":
            layout.prop(kept, "mend_jumps")


def draw_output(layout: UILayout, scene: bpy.types.Scene, rig: bpy.types.Object) -> None:
    """Which keys are written, and where to."""
    kept = rig_settings(rig)
    _draw_range(layout.column(align=True), scene, kept.bake)
    layout.prop(kept.bake, "action")
    layout.prop(kept.bake, "step")
    layout.prop(kept.bake, "bones")
    if kept.root != "FIXED":
        layout.prop(kept.bake, "root_motion")
    layout.prop(kept.bake, "key_angle")
    if kept.bake.key_angle > 0.0:
        layout.prop(kept.bake, "key_distance")


def draw_result(layout: UILayout, rig: bpy.types.Object) -> None:
    """How the last bake went, a line each."""
    column = layout.column(align=True)
    for line in rig_settings(rig).last_result.splitlines():
        draw_lines(column, line, "BLANK1")


def _draw_range(column: UILayout, scene: bpy.types.Scene, settings: FabrikBakeSettings) -> None:
    """The frames to bake: the take's, the scene's, or its own."""
    column.prop(settings, "frame_range")
    if settings.frame_range != "AUTO":
        holder: Any = settings if settings.frame_range == "OWN" else scene
        own = column.column(align=True)
        own.enabled = holder == settings
        own.prop(holder, "frame_start", text="Start")
        own.prop(holder, "frame_end", text="End")


CLASSES = (FABRIK_PT_bake, FABRIK_PT_marker_bake, FABRIK_PT_bake_options)
