"""The Pose tab's first panel: what comes next, dragging and pinning, the root, and posing by targets."""

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.control import may_be_control_rig
from ....settings.rig import FabrikRig, rig_settings
from ....settings.unset import seen
from ....settings.why_not import has_motion, rig_at_hand, why_no_rig, why_no_solve
from ...guide import draw_guide
from ...next_step import next_in_pose
from ...operators import posing
from ...operators.drag import FABRIK_OT_drag
from ...operators.effectors import FABRIK_OT_pin
from ...overlays.handlers import catch_up
from ..base import PoseTab, draw_lines

# What a new user is to press first is as large as that beside Blender's buttons.
_LARGE = 1.6


class FABRIK_PT_drag(PoseTab, Panel):
    """What comes next, and what poses the rig."""

    bl_order = 0
    bl_label = "Drag and Solve"

    def draw_header_preset(self, _context: Context) -> None:
        """Draw the way to the guide."""
        draw_guide(self.layout, "drag")

    def draw(self, context: Context) -> None:
        rig = rig_at_hand(context)
        draw_lines(self.layout, next_in_pose(rig), "INFO")
        if why_no_rig(rig) or rig is None:
            return
        catch_up(rig)
        self.layout.use_property_split = True
        self.layout.use_property_decorate = False
        _draw_drag(self.layout, rig)
        if not why_no_solve(rig) or seen(rig).live:
            _draw_targets(self.layout, rig_settings(rig))


def _draw_drag(layout: UILayout, rig: bpy.types.Object) -> None:
    """Drag and Pin, or the way to them, and what the rest of the rig does."""
    kept = rig_settings(rig)
    if may_be_control_rig(rig):
        layout.operator(posing.FABRIK_OT_use_control_rig.bl_idname, icon="CON_ARMATURE")
    buttons = layout.row(align=True)
    buttons.scale_y = _LARGE
    if rig.mode != "POSE":
        buttons.operator(posing.FABRIK_OT_pose_mode.bl_idname, icon="POSE_HLT")
    else:
        buttons.operator(FABRIK_OT_drag.bl_idname, icon="VIEW_PAN")
        buttons.operator(FABRIK_OT_pin.bl_idname, icon="PINNED")
    keys = layout.column(align=True)
    keys.use_property_split = False
    keys.operator(posing.FABRIK_OT_key_pose.bl_idname, icon="KEY_HLT")
    keys.prop(kept, "key_bones", text="")
    layout.prop(kept, "root")
    layout.prop(kept.drag, "reach")
    if kept.drag.reach == "BONES":
        layout.prop(kept.drag, "bones")
    layout.prop(kept.drag, "keep_orientation")
    if has_motion(rig):
        layout.prop(kept.drag, "spread")
        if kept.drag.spread:
            layout.prop(kept.drag, "falloff")


def _draw_targets(layout: UILayout, kept: FabrikRig) -> None:
    """Posing by targets: at once or on demand."""
    live = layout.column(align=True)
    switch = live.row()
    switch.use_property_split = False
    switch.prop(kept, "live", toggle=True, icon="PLAY")
    if kept.live:
        live.prop(kept, "influence", slider=True)
        draw_lines(layout, kept.live_trouble, "ERROR")
        draw_lines(layout, "Not rendered: bake first", "INFO")
    starts = layout.row(align=True)
    starts.operator(posing.FABRIK_OT_solve.bl_idname, text="Solve", icon="CON_KINEMATIC").start = "PRESENT"
    starts.operator(posing.FABRIK_OT_solve.bl_idname, text="From Rest").start = "REST"
    layout.operator(posing.FABRIK_OT_snap_targets.bl_idname, text="Snap Targets", icon="SNAP_ON")


CLASSES = (FABRIK_PT_drag,)
