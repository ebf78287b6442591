"""The user guide, a click away: in the tabs' headers and in the preferences."""

from typing import Final

import bpy
from bpy.props import StringProperty
from bpy.types import Context, Operator, UILayout

# The manifest's website; the guide is in the project's own files.
WEBSITE: Final = "https://github.com/fabrik-for-blender/fabrik-for-blender"
GUIDE: Final = f"{WEBSITE}/blob/main/docs/guide"


class FABRIK_OT_guide(Operator):
    """Open the user guide in a browser"""

    bl_idname = "fabrik.guide"
    bl_label = "User Guide"

    page: StringProperty(name="Page", description="The page of the guide; its first one when empty")

    def execute(self, _context: Context) -> set[str]:
        """Open it."""
        bpy.ops.wm.url_open(url=f"{GUIDE}/{self.page or 'README.md'}")
        return {"FINISHED"}


def draw_guide(layout: UILayout, page: str) -> None:
    """The button in a panel's header."""
    layout.operator(FABRIK_OT_guide.bl_idname, text="", icon="HELP", emboss=False).page = page


CLASSES = (FABRIK_OT_guide,)
