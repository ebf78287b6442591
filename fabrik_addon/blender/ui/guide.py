"""The button that opens the user guide, in the headers of the tabs and in the preferences."""

from pathlib import Path
from typing import Final

import bpy
from bpy.props import StringProperty
from bpy.types import Context, Operator, UILayout

_MANIFEST: Final = Path(__file__).parents[3] / "blender_manifest.toml"


class FABRIK_OT_guide(Operator):
    """Open the user guide on the extension's website"""

    bl_idname = "fabrik.guide"
    bl_label = "User Guide"

    page: StringProperty(name="Page", description="The page of the guide", default="index")

    def execute(self, _context: Context) -> set[str]:
        """Open the guide."""
        bpy.ops.wm.url_open(url=address_of(self.page))
        return {"FINISHED"}


def address_of(page: str) -> str:
    """The web address of a page of the guide, relative to the website in the manifest."""
    import tomllib  # noqa: PLC0415  Blender's start has no use for it

    website: str = tomllib.loads(_MANIFEST.read_text(encoding="utf-8"))["website"]
    return f"{website}/guide/{page}.html"


def draw_guide(layout: UILayout, page: str) -> None:
    """Draw the button in a panel's header."""
    layout.operator(FABRIK_OT_guide.bl_idname, text="", icon="HELP", emboss=False).page = page


CLASSES = (FABRIK_OT_guide,)
