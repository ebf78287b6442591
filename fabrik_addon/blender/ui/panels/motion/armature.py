"""The Motion tab's other way: motion from another armature."""

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from ....settings.bake_options import FabrikBonePair
from ....settings.control import may_be_control_rig
from ....settings.rig import rig_settings
from ....settings.unset import seen
from ...operators.posing import FABRIK_OT_use_control_rig
from ...operators.retargeting.bone_list import (
    FABRIK_OT_load_bone_map,
    FABRIK_OT_match_bones,
    FABRIK_OT_save_bone_map,
)
from ...operators.retargeting.retarget import FABRIK_OT_retarget
from ..base import AboutRig, MotionTab, Rows, chosen_in, draw_lines, draw_names, draw_switch
from .bake import draw_output, draw_result


class FABRIK_UL_bone_pairs(Rows, UIList):
    """One line a bone: on or off, the rig's bone and the source's"""

    @staticmethod
    def draw_row(layout: UILayout, pair: FabrikBonePair) -> None:
        names = draw_switch(layout, pair, active=pair.enabled)
        draw_names(names, pair.name, pair.source or "–", icon="BONE_DATA", share=0.55, boxes=1)


class FABRIK_PT_from_armature(AboutRig, MotionTab, Panel):
    """Another armature's motion onto the rig."""

    bl_label = "Retarget"
    bl_order = 50

    @classmethod
    def shows(cls, _rig: bpy.types.Object) -> bool:
        """Where there is another armature."""
        return len(bpy.data.armatures) > 1

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        kept = rig_settings(rig).retarget
        layout.prop(kept, "source")
        if kept.source is None:
            return
        column = layout.column(align=True)
        column.prop(kept, "places")
        column.prop(kept, "hands_in_world")
        layout.prop(kept, "contacts")
        layout.prop(kept, "use_reference")
        if kept.use_reference:
            layout.prop(kept, "reference")
        if may_be_control_rig(rig):
            draw_lines(layout, "Constraints move its bones: set up a control rig first", "ERROR")
            layout.operator(FABRIK_OT_use_control_rig.bl_idname, icon="CON_ARMATURE")
        layout.operator(FABRIK_OT_retarget.bl_idname, icon="ARMATURE_DATA")
        if rig_settings(rig).capture.report is None:
            draw_result(layout, rig)


class FABRIK_PT_bone_pairs(AboutRig, MotionTab, Panel):
    """Which bone goes by which."""

    bl_parent_id = "FABRIK_PT_from_armature"
    bl_label = "Bone Mapping"

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """Where there is a source."""
        return seen(rig).retarget.source is not None

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        kept = rig_settings(rig).retarget
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
        if pair is not None and kept.source is not None:
            layout.prop_search(pair, "source", kept.source.data, "bones")
            if pair.before:
                layout.prop_search(pair, "before", kept.source.data, "bones")
                layout.prop(pair, "share")


class FABRIK_PT_retarget_output(AboutRig, MotionTab, Panel):
    """Which keys a retarget writes, and where to: the settings of a bake"""

    bl_parent_id = "FABRIK_PT_from_armature"
    bl_label = "Output"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def shows(cls, rig: bpy.types.Object) -> bool:
        """If there is a source."""
        return seen(rig).retarget.source is not None

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        draw_output(layout, context.scene, rig)


CLASSES = (FABRIK_UL_bone_pairs, FABRIK_PT_from_armature, FABRIK_PT_bone_pairs, FABRIK_PT_retarget_output)
