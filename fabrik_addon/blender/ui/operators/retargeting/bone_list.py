"""The bone mapping: found, saved and loaded."""

import bpy
from bpy.types import Context, Operator
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ..base import Done, OnJson, OnRig, chosen_path


class FABRIK_OT_match_bones(OnRig, Operator):
    """Map the source's bones to the rig's bones by name"""

    bl_idname = "fabrik.match_bones"
    bl_label = "Map Bones"

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ....retarget.matching import match_bones

        return f"{len(match_bones(context, rig))} bones mapped", []


class FABRIK_OT_save_bone_map(OnJson, Operator, ExportHelper):
    """Save the bone mapping to a JSON file"""

    bl_idname = "fabrik.save_bone_map"
    bl_label = "Save Bone Map"
    bl_options = {"REGISTER"}

    def run(self, _context: Context, rig: bpy.types.Object) -> Done:
        from ....retarget.matching import save_pairs

        return f"{save_pairs(rig, chosen_path(self))} bones saved to {chosen_path(self).name}", []


class FABRIK_OT_load_bone_map(OnJson, Operator, ImportHelper):
    """Load the bone mapping from a JSON file"""

    bl_idname = "fabrik.load_bone_map"
    bl_label = "Load Bone Map"

    def run(self, _context: Context, rig: bpy.types.Object) -> Done:
        from ....retarget.matching import load_pairs

        return f"{load_pairs(rig, chosen_path(self))} bones loaded", []


CLASSES = (FABRIK_OT_match_bones, FABRIK_OT_save_bone_map, FABRIK_OT_load_bone_map)
