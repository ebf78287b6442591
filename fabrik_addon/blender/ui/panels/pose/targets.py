"""The Pose tab's list of targets and pins, and the details of the one that is chosen."""

from typing import Any

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from ....settings.effector import FabrikEffector
from ....settings.unset import seen
from ....settings.why_not import shared_targets
from ...operators.effectors import (
    FABRIK_OT_add_effector,
    FABRIK_OT_order_effectors,
    FABRIK_OT_own_targets,
    FABRIK_OT_remove_effector,
)
from ...overlays.handlers import GOALS_SWITCH
from ...translations import said
from ..base import AboutRig, PoseTab, Rows, chosen_in, draw_lines, draw_name, draw_switch


class FABRIK_UL_effectors(Rows, UIList):
    """One line an effector: on or off, its bone, and by an icon whether it has a target or is pinned"""

    @staticmethod
    def draw_row(layout: UILayout, effector: FabrikEffector) -> None:
        names = draw_switch(layout, effector, active=effector.enabled)
        # What it goes to is named below the list.
        kind: Any = "PINNED" if effector.kind == "PIN" else "EMPTY_DATA" if effector.target else "ERROR"
        draw_name(names, effector.shown_bone or said("No bone"), "BONE_DATA", boxes=4)
        names.label(text="", icon=kind)


class FABRIK_PT_effectors(AboutRig, PoseTab, Panel):
    """The points of the rig that reach for targets or are pinned."""

    bl_order = 10
    bl_label = "Targets and Pins"

    def draw_header_preset(self, context: Context) -> None:
        """Draw the overlay's switch."""
        self.layout.prop(context.scene, GOALS_SWITCH, text="", icon="OVERLAY")

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        kept = seen(rig)
        if rig.data.bones.active is None and not len(kept.effectors):
            draw_lines(layout, "Select a bone, then add a target", "INFO")
            return
        row = layout.row()
        row.use_property_split = False
        if len(kept.effectors):
            row.template_list("FABRIK_UL_effectors", "", kept, "effectors", kept, "active_effector", rows=4)
            buttons = row.column(align=True)
            buttons.operator(FABRIK_OT_remove_effector.bl_idname, text="", icon="REMOVE")
            buttons.operator(FABRIK_OT_order_effectors.bl_idname, text="", icon="SORTSIZE")
        add = layout.row(align=True)
        add.enabled = rig.data.bones.active is not None
        add.operator(FABRIK_OT_add_effector.bl_idname, text="Add Target", icon="ADD")
        if shared_targets(rig):
            draw_lines(layout, "Another rig has the same targets", "INFO")
            layout.operator(FABRIK_OT_own_targets.bl_idname)
        effector = active_effector(rig)
        if effector is not None and effector.kind == "TARGET":
            layout.prop(effector, "target")
            if effector.target is not None and effector.target.type == "ARMATURE":
                layout.prop_search(effector, "target_bone", effector.target.pose, "bones")


class AboutEffector(AboutRig):
    """A folded panel about the effector that is chosen in the list."""

    bl_parent_id = "FABRIK_PT_effectors"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Where one is chosen."""
        return active_effector(rig) is not None


class FABRIK_PT_effector_point(AboutEffector, PoseTab, Panel):
    """Which point of which bone the active effector is."""

    bl_label = "Effector"

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        effector: Any = active_effector(rig)
        layout.prop(effector, "name")
        layout.prop_search(effector, "bone", rig.pose, "bones")
        layout.prop(effector, "point")
        if effector.point == "OFFSET":
            layout.prop(effector, "offset")
        layout.prop(effector, "kind")
        if effector.kind == "PIN":
            layout.prop(effector, "pin_location")


class FABRIK_PT_effector_ways(AboutEffector, PoseTab, Panel):
    """What the active effector does besides getting there."""

    bl_label = "Pole, Rotation, Priority"

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        effector: Any = active_effector(rig)
        bend = layout.column()
        bend.prop(effector, "bend_target")
        if effector.bend_target is not None and effector.bend_target.type == "ARMATURE":
            bend.prop_search(effector, "bend_bone", effector.bend_target.pose, "bones")
        turning = "hold_rotation" if effector.kind == "PIN" else "use_rotation"
        turn = layout.column()
        turn.prop(effector, turning)
        weight = turn.column()
        weight.enabled = getattr(effector, turning)
        weight.prop(effector, "rotation_weight")
        layout.prop(effector, "weight")
        layout.prop(effector, "priority")


def active_effector(rig: bpy.types.Object) -> FabrikEffector | None:
    """The one that is chosen in the list."""
    kept = seen(rig)
    found: FabrikEffector | None = chosen_in(kept.effectors, kept.active_effector)
    return found


CLASSES = (FABRIK_UL_effectors, FABRIK_PT_effectors, FABRIK_PT_effector_point, FABRIK_PT_effector_ways)
