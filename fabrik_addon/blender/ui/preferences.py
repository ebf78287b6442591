"""The page in Blender's preferences: keys, and the colors of the overlays."""

from bpy.props import FloatVectorProperty
from bpy.types import AddonPreferences, Context

from ...package import PACKAGE
from . import keymap
from .chosen import COLORS
from .folded import folded
from .guide import FABRIK_OT_guide


def _color(name: str, label: str, description: str) -> object:
    return FloatVectorProperty(
        name=label, description=description, subtype="COLOR", size=4, min=0.0, max=1.0, default=COLORS[name]
    )


class FabrikPreferences(AddonPreferences):
    """Preferences for all files."""

    bl_idname = PACKAGE

    met: _color("met", "Met", "Targets that are met")
    missed: _color("missed", "Missed", "Targets and pins that are missed, and by how much")
    pinned: _color("pinned", "Pins", "Pins that are met")
    bend: _color("bend", "Pole Targets", "Pole targets of limbs")
    free: _color("free", "Limits", "Range of rotation of bones")
    binds: _color("binds", "At a Limit", "Limits that currently block a bone's rotation")

    def draw(self, context: Context) -> None:
        """Draw the preferences."""
        layout = self.layout
        layout.operator(FABRIK_OT_guide.bl_idname, icon="HELP")
        layout.label(text="Keys in Pose Mode", icon="KEYINGSET")
        keymap.draw_keys(layout.box(), context)
        colors = folded(layout, "Overlay Colors", "preferences")
        for name in COLORS if colors is not None else ():
            colors.prop(self, name)


CLASSES = (FabrikPreferences,)
