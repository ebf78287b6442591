"""The extension's page in Blender's preferences, with the guide and the keys."""

from bpy.types import AddonPreferences, Context

from ...package import PACKAGE
from . import keymap
from .guide import FABRIK_OT_guide


class FabrikPreferences(AddonPreferences):
    """The extension's preferences."""

    bl_idname = PACKAGE

    def draw(self, context: Context) -> None:
        """Draw the preferences."""
        layout = self.layout
        layout.operator(FABRIK_OT_guide.bl_idname, icon="HELP")
        layout.label(text="Keys in Pose Mode", icon="KEYINGSET")
        keymap.draw_keys(layout.box(), context)


CLASSES = (FabrikPreferences,)
