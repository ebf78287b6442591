"""Pose tab: the panel of settings that choose one of all poses that meet the goals."""

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.rig import rig_settings
from ...folded import folded
from ...operators.posing import FABRIK_OT_keep_pose
from ...translations import CONTEXT
from ..base import AboutRig, PoseTab, draw_lines


class FABRIK_PT_posture(AboutRig, PoseTab, Panel):
    """Settings that choose among all poses that meet the goals, for dragging, live posing and solving."""

    bl_order = 20
    bl_label = "Posture"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        kept = rig_settings(rig)
        preferred = layout.row(align=True)
        preferred.prop(kept, "preferred_pose")
        preferred.operator(FABRIK_OT_keep_pose.bl_idname, text="", icon="PINNED")
        if kept.preferred_pose == "KEPT" and not kept.kept_pose:
            draw_lines(layout, "Store a pose with the pin button", "INFO")
        layout.row().prop(kept, "balance", expand=True)
        layout.prop(kept, "free_limbs_hang")
        layout.prop(kept, "use_self_collision")
        floor = layout.row(align=True, heading="Floor", heading_ctxt=CONTEXT)
        floor.prop(kept, "use_floor", text="")
        height = floor.row(align=True)
        height.enabled = kept.use_floor
        height.prop(kept, "floor_height", text="")
        advanced = folded(layout, "Advanced", "posture") if kept.use_self_collision else None
        if advanced is not None:
            advanced.prop(kept, "show_capsules")


CLASSES = (FABRIK_PT_posture,)
