"""The panel of control rigs: the bones of the body and their controls."""

from typing import Any

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from ....settings.control import FabrikCarrier, may_be_control_rig
from ....settings.rig import rig_settings
from ....settings.unset import seen
from ....settings.why_not import rig_at_hand
from ...folded import folded
from ...operators.posing import FABRIK_OT_use_control_rig
from ...translations import said
from ..base import AboutRig, PoseTab, Rows, chosen_in, draw_names

_ICONS: dict[str, Any] = {"TURNS": "ORIENTATION_GIMBAL", "SWINGS": "ORIENTATION_NORMAL", "HAND": "VIEW_PAN"}


class FABRIK_UL_carriers(Rows, UIList):
    """One line per deform bone: its name and its control"""

    @staticmethod
    def draw_row(layout: UILayout, carrier: FabrikCarrier) -> None:
        control = carrier.control or said("Not controlled")
        draw_names(layout, carrier.name, control, icon="BONE_DATA", second_icon=_ICONS[carrier.found])


class FABRIK_PT_control_rig(AboutRig, PoseTab, Panel):
    """The deform bones and their controls"""

    bl_order = 25
    bl_label = "Control Rig"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Whether the rig has controls, or may have some."""
        return may_be_control_rig(rig) or len(seen(rig).control.carriers) > 0

    def draw_header(self, context: Context) -> None:
        """Draw the switch, if there is something to switch."""
        kept = rig_settings(rig_at_hand(context)).control
        if len(kept.carriers):
            self.layout.prop(kept, "use", text="")

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        kept = rig_settings(rig).control
        layout.operator(FABRIK_OT_use_control_rig.bl_idname, icon="CON_ARMATURE")
        if not len(kept.carriers):
            return
        layout.active = kept.use
        layout.template_list("FABRIK_UL_carriers", "", kept, "carriers", kept, "active", rows=4)
        carrier = chosen_in(kept.carriers, kept.active)
        if carrier is not None:
            layout.prop_search(carrier, "control", rig.pose, "bones")
        if len(kept.switches):
            layout.prop(kept, "limbs")
        advanced = folded(layout, "Advanced", "control_rig")
        if advanced is None:
            return
        advanced.prop_search(kept, "place", rig.pose, "bones")
        if carrier is not None:
            advanced.prop(carrier, "found", emboss=False)
        if kept.uncarried:
            advanced.prop(kept, "uncarried", emboss=False)


CLASSES = (FABRIK_UL_carriers, FABRIK_PT_control_rig)
