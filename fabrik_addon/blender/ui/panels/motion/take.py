"""The Motion tab's first step: recordings into the scene, and which of them is meant."""

from typing import Any, Final

import bpy
from bpy.types import Context, Panel, UIList

from ....capture.takes import imported_takes, is_take, state_of_take
from ....settings.why_not import rig_at_hand, why_no_rig
from ...guide import draw_guide
from ...next_step import next_in_motion
from ...operators.import_markers import FABRIK_OT_import_markers
from ...take_index import TAKE_INDEX
from ..base import MotionTab, draw_lines

# What a take's line says at its end, and its icon.
_STATES: Final[dict[str, tuple[str, Any]]] = {
    "NEW": ("", "DOT"),
    "STATIC": ("Static", "OUTLINER_OB_ARMATURE"),
    "MATCHED": ("Matched", "LINKED"),
    "CALIBRATED": ("Calibrated", "CON_SIZELIKE"),
    "BAKED": ("Baked", "CHECKMARK"),
}


class FABRIK_UL_takes(UIList):
    """One line a take: its name, and how far it has come on the rig"""

    def draw_item(
        self,
        context: Context,
        layout: bpy.types.UILayout,
        _data: bpy.types.BlendData,
        take: bpy.types.Collection,
        _icon: int,
        _active_data: bpy.types.Scene,
        _active_property: str,
    ) -> None:
        """Draw one take."""
        rig: Any = rig_at_hand(context)
        word, icon = _STATES[state_of_take(rig, take)]
        split = layout.split(factor=0.66)
        split.label(text=take.name, icon=icon)
        split.label(text=word)

    def filter_items(self, context: Context, data: Any, name: str) -> tuple[list[int], list[int]]:
        """Of all collections those that hold a recording."""
        return [self.bitflag_filter_item if is_take(each) else 0 for each in getattr(data, name)], []


class FABRIK_PT_take(MotionTab, Panel):
    """What comes next, and the scene's recordings."""

    bl_idname = "FABRIK_PT_take"
    bl_order = 0
    bl_label = "Import"

    def draw_header_preset(self, _context: Context) -> None:
        """Draw the way to the guide."""
        draw_guide(self.layout, "motion.md")

    def draw(self, context: Context) -> None:
        """Draw the next step, the button, and the takes."""
        rig = rig_at_hand(context)
        draw_lines(self.layout, next_in_motion(context, rig), "INFO")
        self.layout.operator(FABRIK_OT_import_markers.bl_idname, icon="IMPORT")
        if rig is not None and not why_no_rig(rig) and imported_takes(context.scene):
            self.layout.template_list(
                "FABRIK_UL_takes", "", bpy.data, "collections", context.scene, TAKE_INDEX, rows=2, maxrows=5
            )


CLASSES = (FABRIK_UL_takes, FABRIK_PT_take)
