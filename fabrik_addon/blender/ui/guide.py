"""The user guide, a click away: in the tabs' headers and in the preferences."""

from pathlib import Path

import bpy
from bpy.props import StringProperty
from bpy.types import Context, Operator, UILayout


class FABRIK_OT_guide(Operator):
    """Open the user guide, which comes with the extension, in a browser"""

    bl_idname = "fabrik.guide"
    bl_label = "User Guide"

    page: StringProperty(name="Page", description="The page of the guide", default="README")

    def execute(self, _context: Context) -> set[str]:
        """Open it."""
        from .guide_pages import write_pages  # noqa: PLC0415  Blender's start has no use for it

        folder = Path(bpy.app.tempdir) / "fabrik_guide"
        write_pages(folder)
        bpy.ops.wm.url_open(url=(folder / f"{self.page}.html").as_uri())
        return {"FINISHED"}


def draw_guide(layout: UILayout, page: str) -> None:
    """The button in a panel's header."""
    layout.operator(FABRIK_OT_guide.bl_idname, text="", icon="HELP", emboss=False).page = page


CLASSES = (FABRIK_OT_guide,)
