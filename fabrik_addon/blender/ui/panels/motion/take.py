"""The Motion tab's first step: recordings into the scene, and which of them is meant."""

from typing import Any, Final

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from ....capture.takes import imported_takes, is_take, state_of_take
from ....settings.why_not import rig_at_hand, why_no_rig
from ...guide import draw_guide
from ...next_step import next_in_motion
from ...operators.import_markers import FABRIK_OT_import_markers
from ...take_index import TAKE_INDEX
from ...translations import said
from ..base import MotionTab, Rows, draw_lines, draw_names

# What a take's line says at its end, and its icon.
_WORDS: Final = {"STATIC": "Static", "MATCHED": "Matched", "CALIBRATED": "Calibrated", "BAKED": "Baked"}
_ICONS: Final[dict[str, Any]] = {
    "NEW": "DOT",
    "STATIC": "OUTLINER_OB_ARMATURE",
    "MATCHED": "LINKED",
    "CALIBRATED": "CON_SIZELIKE",
    "BAKED": "CHECKMARK",
}


class FABRIK_UL_takes(Rows, UIList):
    """One line a take: its name, and how far it has come on the rig"""

    @staticmethod
    def draw_row(layout: UILayout, take: bpy.types.Collection) -> None:
        rig: Any = rig_at_hand(bpy.context)
        state = state_of_take(rig, take)
        word = said(_WORDS[state]) if state in _WORDS else ""
        draw_names(layout, take.name, word, icon=_ICONS[state], share=0.58)

    def filter_items(self, context: Context, data: Any, name: str) -> tuple[list[int], list[int]]:
        """Of all collections those that hold a recording."""
        return [self.bitflag_filter_item if is_take(each) else 0 for each in getattr(data, name)], []


class FABRIK_PT_take(MotionTab, Panel):
    """What comes next, and the scene's recordings."""

    bl_order = 0
    bl_label = "Takes"

    def draw_header_preset(self, _context: Context) -> None:
        """Draw the way to the guide."""
        draw_guide(self.layout, "markers")

    def draw(self, context: Context) -> None:
        rig = rig_at_hand(context)
        draw_lines(self.layout, next_in_motion(context, rig), "INFO")
        self.layout.operator(FABRIK_OT_import_markers.bl_idname, icon="IMPORT")
        if rig is not None and not why_no_rig(rig) and imported_takes(context.scene):
            self.layout.template_list(
                "FABRIK_UL_takes", "", bpy.data, "collections", rig, TAKE_INDEX, rows=1, maxrows=5
            )


CLASSES = (FABRIK_UL_takes, FABRIK_PT_take)
