"""Motion tab, fourth step: bakes targets or markers to keyframes."""

from typing import Any

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.bake_options import FabrikBakeSettings
from ....settings.rig import rig_settings
from ....settings.unset import seen
from ....settings.why_not import why_no_bake, why_no_mapped, why_no_solve
from ...folded import folded
from ...operators.bake import FABRIK_OT_bake
from ..base import AboutRig, MotionTab, draw_lines


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
        kept = rig_settings(rig)
        layout.operator(FABRIK_OT_bake.bl_idname, icon="REC")
        has_markers = not why_no_mapped(rig)
        for name in ("gaps", "robust", "plant_feet") if has_markers else ():
            layout.prop(kept.capture, name)
        output = folded(layout, "Output", "bake")
        if output is not None:
            draw_output(output, context.scene, rig)
        advanced = folded(layout, "Advanced", "bake")
        if advanced is None:
            return
        if has_markers and not why_no_solve(rig):
            advanced.prop(kept.bake, "source")
        if has_markers:
            advanced.prop(kept.capture, "low_pass")
        draw_fewer(advanced, kept.bake)


def draw_output(layout: UILayout, scene: bpy.types.Scene, rig: bpy.types.Object) -> None:
    """Draw which keys are written, and where."""
    kept = rig_settings(rig)
    _draw_range(layout.column(align=True), scene, kept.bake)
    layout.prop(kept.bake, "action")
    if kept.root != "FIXED":
        layout.prop(kept.bake, "root_motion")
    layout.prop(kept.bake, "key_angle")


def draw_fewer(layout: UILayout, settings: FabrikBakeSettings) -> None:
    """Draw the settings of the frames and bones that get keys."""
    layout.prop(settings, "step")
    layout.prop(settings, "bones")
    layout.prop(settings, "self_collision")


def draw_result(layout: UILayout, rig: bpy.types.Object) -> None:
    """Draw the result of the last bake, line by line."""
    column = layout.column(align=True)
    for line in seen(rig).last_result.splitlines():
        draw_lines(column, line, "BLANK1")


def _draw_range(column: UILayout, scene: bpy.types.Scene, settings: FabrikBakeSettings) -> None:
    """Draw the frames to bake: the take's, the scene's, or custom ones."""
    column.prop(settings, "frame_range")
    if settings.frame_range != "AUTO":
        holder: Any = settings if settings.frame_range == "OWN" else scene
        own = column.column(align=True)
        own.enabled = holder == settings
        own.prop(holder, "frame_start", text="Start")
        own.prop(holder, "frame_end", text="End")


CLASSES = (FABRIK_PT_bake,)
