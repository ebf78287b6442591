"""The page in Blender's preferences: keys, the overlays' colours, and what rigs begin with."""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatVectorProperty
from bpy.types import AddonPreferences, Context, UILayout

from ...package import PACKAGE
from ..settings.posture import BALANCES
from . import keymap
from .chosen import COLORS
from .guide import FABRIK_OT_guide


def _color(name: str, label: str, description: str) -> object:
    return FloatVectorProperty(
        name=label, description=description, subtype="COLOR", size=4, min=0.0, max=1.0, default=COLORS[name]
    )


class FabrikPreferences(AddonPreferences):
    """What holds for all files."""

    bl_idname = PACKAGE

    met: _color("met", "Met", "Targets that are met")
    missed: _color("missed", "Missed", "Targets and pins that are missed, and by how much")
    pinned: _color("pinned", "Pins", "Pins that are met")
    bend: _color("bend", "Pole Targets", "Pole targets of limbs")
    free: _color("free", "Limits", "Range of rotation of bones")
    binds: _color("binds", "At a Limit", "Limits that currently block a bone's rotation")
    balance: EnumProperty(
        name="Balance", description="Balance setting that a rig gets with its first pin or target", items=BALANCES
    )
    use_floor: BoolProperty(
        name="Floor", description="Turn on a floor at height 0 when a rig gets its first pin or target"
    )

    def draw(self, context: Context) -> None:
        """Draw all of it."""
        layout = self.layout
        layout.operator(FABRIK_OT_guide.bl_idname, icon="HELP")
        layout.label(text="Keys in Pose Mode", icon="KEYINGSET")
        keymap.draw_keys(layout.box(), context)
        columns = layout.row()
        _draw_colors(self, columns.column())
        start = columns.column()
        start.use_property_split = True
        start.label(text="Defaults for New Rigs", icon="ARMATURE_DATA")
        start.row().prop(self, "balance", expand=True)
        start.prop(self, "use_floor")


def _draw_colors(chosen: bpy.types.AddonPreferences, column: UILayout) -> None:
    column.use_property_split = True
    column.label(text="Overlay Colors", icon="COLOR")
    for name in COLORS:
        column.prop(chosen, name)


CLASSES = (FabrikPreferences,)
