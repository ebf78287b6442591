"""Motion tab, first step: imports recordings, and chooses one of them."""

from typing import Any, Final

import bpy
from bpy.types import Context, Menu, Panel, UILayout

from ....capture.takes import imported_takes, state_of_take
from ....settings.rig import rig_settings
from ....settings.unset import seen
from ....settings.why_not import mapped_markers, rig_at_hand, why_no_rig
from ...guide import draw_guide
from ...next_step import next_in_motion
from ...operators.import_markers import FABRIK_OT_import_markers
from ...operators.match_markers import FABRIK_OT_follow_take, FABRIK_OT_match_markers
from ...translations import said
from ..base import MotionTab, draw_lines, fitted
from .bake import draw_result
from .match import draw_match

# Pixels for a take's name.
_ROOM: Final = 90.0
# The state of a take as a word, and its icon.
_WORDS: Final = {"STATIC": "Static", "MATCHED": "Matched", "CALIBRATED": "Calibrated", "BAKED": "Baked"}
_ICONS: Final[dict[str, Any]] = {
    "NEW": "DOT",
    "STATIC": "OUTLINER_OB_ARMATURE",
    "MATCHED": "LINKED",
    "CALIBRATED": "CON_SIZELIKE",
    "BAKED": "CHECKMARK",
}


class FABRIK_MT_takes(Menu):
    """The take used by the panels below"""

    bl_idname = "FABRIK_MT_takes"
    bl_label = "Takes"

    def draw(self, context: Context) -> None:
        """Draw one line for each take: its name, and its state on the rig."""
        rig: Any = rig_at_hand(context)
        for take in imported_takes(context.scene):
            state = state_of_take(rig, take)
            word = f" ({said(_WORDS[state])})" if state in _WORDS else ""
            choose = self.layout.operator(
                FABRIK_OT_follow_take.bl_idname, text=f"{take.name}{word}", icon=_ICONS[state], translate=False
            )
            choose.take = take.name


class FABRIK_PT_take(MotionTab, Panel):
    """The next step, and the scene's recordings."""

    bl_order = 0
    bl_label = "Takes"

    def draw_header_preset(self, _context: Context) -> None:
        """Draw the link to the guide."""
        draw_guide(self.layout, "markers")

    def draw(self, context: Context) -> None:
        layout, rig = self.layout, rig_at_hand(context)
        layout.use_property_split = True
        layout.use_property_decorate = False
        sentence, step = next_in_motion(context, rig)
        draw_lines(layout, sentence, "INFO")
        layout.operator(FABRIK_OT_import_markers.bl_idname, icon="IMPORT")
        if rig is None or why_no_rig(rig):
            return
        capture = seen(rig).capture
        if imported_takes(context.scene):
            _draw_take(layout, rig, capture.take)
        elif len(bpy.data.armatures) > 1 and not mapped_markers(rig):
            layout.prop(rig_settings(rig).retarget, "source")
        if step == FABRIK_OT_match_markers.bl_idname:
            draw_match(layout, rig)
        elif step:
            layout.operator(step)
        if capture.report is None:
            draw_result(layout, rig)


def _draw_take(layout: UILayout, rig: bpy.types.Object, take: bpy.types.Collection | None) -> None:
    """Draw the take in use, and its state."""
    row = layout.row()
    if take is None:
        row.menu(FABRIK_MT_takes.bl_idname, text=said("Choose Take"), translate=False)
        return
    state = state_of_take(rig, take)
    row.menu(FABRIK_MT_takes.bl_idname, text=fitted(take.name, _ROOM), icon=_ICONS[state], translate=False)
    if state in _WORDS:
        row.label(text=said(_WORDS[state]), translate=False)


CLASSES = (FABRIK_MT_takes, FABRIK_PT_take)
