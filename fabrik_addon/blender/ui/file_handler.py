"""Imports motion capture files that are dropped on the 3D viewport."""

from bpy.types import Context, FileHandler

from .operators.markers import MOTION_SUFFIXES, FABRIK_OT_import_markers


class FABRIK_FH_markers(FileHandler):
    """Imports files of motion capture that are dropped on the 3D viewport"""

    bl_idname = "FABRIK_FH_markers"
    bl_label = "Motion-capture markers"
    bl_import_operator = FABRIK_OT_import_markers.bl_idname
    bl_file_extensions = ";".join(MOTION_SUFFIXES)

    @classmethod
    def poll_drop(cls, context: Context) -> bool:
        """Whether files are dropped on the 3D viewport."""
        return context.area is not None and context.area.type == "VIEW_3D"


CLASSES = (FABRIK_FH_markers,)
