"""Pose tab, first panel: the next step, dragging and pinning, the root, and posing by targets."""

import bpy
from bpy.types import Context, Panel, UILayout

from ....settings.control import may_be_control_rig
from ....settings.rig import FabrikRig, rig_settings
from ....settings.unset import seen
from ....settings.why_not import has_motion, rig_at_hand, why_no_rig, why_no_solve
from ...folded import folded
from ...guide import draw_guide
from ...next_step import next_in_pose
from ...operators import posing
from ...operators.drag import FABRIK_OT_drag
from ...operators.effectors import FABRIK_OT_add_effector, FABRIK_OT_pin
from ...overlays.handlers import catch_up
from ..base import PoseTab, draw_lines

# Scale of the button that a new user presses first.
_LARGE = 1.6


class FABRIK_PT_drag(PoseTab, Panel):
    """The next step, and tools that pose the rig."""

    bl_order = 0
    bl_label = "Drag and Solve"

    def draw_header_preset(self, _context: Context) -> None:
        """Draw the link to the guide."""
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
        if (not why_no_solve(rig) and not may_be_control_rig(rig)) or seen(rig).live:
            _draw_live(self.layout, rig_settings(rig))
        options = folded(self.layout, "Options", "drag")
        if options is not None:
            _draw_options(options, rig)


def _draw_drag(layout: UILayout, rig: bpy.types.Object) -> None:
    """Draw Drag, Pin, Add Target and keys, or the button that enters Pose mode."""
    if may_be_control_rig(rig):
        layout.operator(posing.FABRIK_OT_use_control_rig.bl_idname, icon="CON_ARMATURE")
    buttons = layout.row(align=True)
    buttons.scale_y = _LARGE
    if rig.mode != "POSE":
        buttons.operator(posing.FABRIK_OT_pose_mode.bl_idname, icon="POSE_HLT")
    else:
        buttons.operator(FABRIK_OT_drag.bl_idname, icon="VIEW_PAN")
        buttons.operator(FABRIK_OT_pin.bl_idname, icon="PINNED")
    add = layout.column()
    add.enabled = rig.data.bones.active is not None
    add.operator(FABRIK_OT_add_effector.bl_idname, icon="ADD")
    layout.operator(posing.FABRIK_OT_key_pose.bl_idname, icon="KEY_HLT")


def _draw_live(layout: UILayout, kept: FabrikRig) -> None:
    """Draw the buttons that pose with targets, live or once."""
    row = layout.row(align=True)
    row.use_property_split = False
    row.prop(kept, "live", toggle=True, icon="PLAY")
    row.operator(posing.FABRIK_OT_solve.bl_idname, text="Solve", icon="CON_KINEMATIC").start = "PRESENT"
    if kept.live:
        draw_lines(layout, kept.live_trouble, "ERROR")
        draw_lines(layout, "Not rendered: bake first", "INFO")


def _draw_options(layout: UILayout, rig: bpy.types.Object) -> None:
    """Draw how the rest of the rig moves, and which bones get keys."""
    kept = rig_settings(rig)
    layout.prop(kept, "root")
    layout.prop(kept.drag, "reach")
    if kept.drag.reach == "BONES":
        layout.prop(kept.drag, "bones")
    layout.prop(kept.drag, "keep_orientation")
    if has_motion(rig):
        layout.prop(kept.drag, "spread")
    layout.prop(kept, "key_bones")
    if kept.live:
        layout.prop(kept, "influence", slider=True)


CLASSES = (FABRIK_PT_drag,)
