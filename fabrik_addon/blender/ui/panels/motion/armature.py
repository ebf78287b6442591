"""Motion tab: motion from another armature."""

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from ....settings.bake_options import FabrikBonePair, FabrikRetarget
from ....settings.control import may_be_control_rig
from ....settings.rig import rig_settings
from ...folded import folded
from ...operators.posing import FABRIK_OT_use_control_rig
from ...operators.retargeting.bone_list import (
    FABRIK_OT_load_bone_map,
    FABRIK_OT_match_bones,
    FABRIK_OT_save_bone_map,
)
from ...operators.retargeting.retarget import FABRIK_OT_retarget
from ..base import AboutRig, MotionTab, Rows, chosen_in, draw_lines, draw_names, draw_switch
from .bake import draw_fewer, draw_output


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
        kept = rig_settings(rig).retarget
        layout.prop(kept, "source")
        if kept.source is None:
            return
        layout.prop(kept, "places")
        layout.prop(kept, "contacts")
        if may_be_control_rig(rig):
            draw_lines(layout, "Constraints move the rig's bones: set up a control rig first", "ERROR")
            layout.operator(FABRIK_OT_use_control_rig.bl_idname, icon="CON_ARMATURE")
        layout.operator(FABRIK_OT_retarget.bl_idname, icon="ARMATURE_DATA")
        mapping = folded(layout, "Bone Mapping", "retarget")
        if mapping is not None:
            _draw_pairs(mapping, kept)
        output = folded(layout, "Output", "retarget")
        if output is not None:
            draw_output(output, context.scene, rig)
        advanced = folded(layout, "Advanced", "retarget")
        if advanced is not None:
            _draw_advanced(advanced, kept)
            draw_fewer(advanced, rig_settings(rig).bake)


def _draw_pairs(layout: UILayout, kept: FabrikRetarget) -> None:
    """Draw the bone mapping: for each of the source's bones, the bone that follows it."""
    buttons = layout.row(align=True)
    buttons.operator(FABRIK_OT_match_bones.bl_idname, icon="VIEWZOOM")
    buttons.operator(FABRIK_OT_load_bone_map.bl_idname, text="", icon="FILE_FOLDER")
    buttons.operator(FABRIK_OT_save_bone_map.bl_idname, text="", icon="FILE_TICK")
    if not kept.pairs:
        return
    row = layout.row()
    row.use_property_split = False
    row.template_list("FABRIK_UL_bone_pairs", "", kept, "pairs", kept, "active_pair", rows=6)
    pair = chosen_in(kept.pairs, kept.active_pair)
    if pair is not None:
        layout.prop_search(pair, "source", kept.source.data, "bones")


def _draw_advanced(layout: UILayout, kept: FabrikRetarget) -> None:
    """Draw rarely used settings."""
    layout.prop(kept, "hands_in_world")
    layout.prop(kept, "use_reference")
    if kept.use_reference:
        layout.prop(kept, "reference")
    pair = chosen_in(kept.pairs, kept.active_pair)
    if pair is not None and pair.before:
        layout.prop_search(pair, "before", kept.source.data, "bones")
        layout.prop(pair, "share")


CLASSES = (FABRIK_UL_bone_pairs, FABRIK_PT_from_armature)
