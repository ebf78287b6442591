"""The Pose tab's list of targets and pins, and the details of the chosen one."""

from typing import Any

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from ....settings.effector import FabrikEffector
from ....settings.unset import seen
from ....settings.why_not import shared_targets
from ...folded import folded
from ...operators.effectors import (
    FABRIK_OT_order_effectors,
    FABRIK_OT_own_targets,
    FABRIK_OT_remove_effector,
)
from ...operators.posing import FABRIK_OT_snap_targets, FABRIK_OT_solve
from ...overlays.handlers import GOALS_SWITCH
from ...translations import said
from ..base import AboutRig, PoseTab, Rows, chosen_in, draw_lines, draw_name, draw_switch


class FABRIK_UL_effectors(Rows, UIList):
    """One line per target or pin: a switch, its bone, and an icon for its kind"""

    @staticmethod
    def draw_row(layout: UILayout, effector: FabrikEffector) -> None:
        names = draw_switch(layout, effector, active=effector.enabled)
        # Its target is named below the list.
        kind: Any = "PINNED" if effector.kind == "PIN" else "EMPTY_DATA" if effector.target else "ERROR"
        draw_name(names, effector.shown_bone or said("No bone"), "BONE_DATA", boxes=4)
        names.label(text="", icon=kind)


class FABRIK_PT_effectors(AboutRig, PoseTab, Panel):
    """The points of the rig that have targets or are pinned."""

    bl_order = 10
    bl_label = "Targets and Pins"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_header_preset(self, context: Context) -> None:
        """Draw the overlay's switch."""
        self.layout.prop(context.scene, GOALS_SWITCH, text="", icon="OVERLAY")

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        kept = seen(rig)
        if not len(kept.effectors):
            draw_lines(layout, "Select a bone, then pin it or add a target", "INFO")
            return
        row = layout.row()
        row.use_property_split = False
        row.template_list("FABRIK_UL_effectors", "", kept, "effectors", kept, "active_effector", rows=4)
        buttons = row.column(align=True)
        buttons.operator(FABRIK_OT_remove_effector.bl_idname, text="", icon="REMOVE")
        buttons.operator(FABRIK_OT_order_effectors.bl_idname, text="", icon="SORTSIZE")
        if shared_targets(rig):
            draw_lines(layout, "Another rig has the same targets", "INFO")
            layout.operator(FABRIK_OT_own_targets.bl_idname)
        effector = active_effector(rig)
        if effector is not None:
            _draw_effector(layout, rig, effector)
        row = layout.row(align=True)
        row.operator(FABRIK_OT_snap_targets.bl_idname, text="Snap Targets", icon="SNAP_ON")
        row.operator(FABRIK_OT_solve.bl_idname, text="From Rest").start = "REST"


def _draw_effector(layout: UILayout, rig: bpy.types.Object, effector: FabrikEffector) -> None:
    """Draw the target of the chosen target or pin, and below its other settings."""
    if effector.kind == "TARGET":
        layout.prop(effector, "target")
        if effector.target is not None and effector.target.type == "ARMATURE":
            layout.prop_search(effector, "target_bone", effector.target.pose, "bones")
    layout.prop(effector, "hold_rotation")
    layout.prop(effector, "bend_target")
    if effector.bend_target is not None and effector.bend_target.type == "ARMATURE":
        layout.prop_search(effector, "bend_bone", effector.bend_target.pose, "bones")
    advanced = folded(layout, "Advanced", "effectors")
    if advanced is None:
        return
    advanced.prop_search(effector, "bone", rig.pose, "bones")
    advanced.prop(effector, "point")
    if effector.point == "OFFSET":
        advanced.prop(effector, "offset")
    if effector.kind == "PIN":
        advanced.prop(effector, "pin_location")
    advanced.prop(effector, "weight")
    advanced.prop(effector, "priority")


def active_effector(rig: bpy.types.Object) -> FabrikEffector | None:
    """The effector that is chosen in the list."""
    kept = seen(rig)
    found: FabrikEffector | None = chosen_in(kept.effectors, kept.active_effector)
    return found


CLASSES = (FABRIK_UL_effectors, FABRIK_PT_effectors)
