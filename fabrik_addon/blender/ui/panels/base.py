"""Helpers shared by panels: the two tabs, the current rig, and texts that fit."""

from functools import lru_cache
from typing import Any, Final

import blf
import bpy
from bpy.types import Context, UILayout

from ...settings.why_not import rig_at_hand, why_no_rig
from ..translations import told

# Measured on pictures of Blender 5.2's sidebar at its initial width: the space for a line beside an icon, and that of
# frames, tabs and the icon.
_ROOM: Final = 206.0
_MARGINS: Final = 80.0
# For a list's row, besides its scroll bar: the width of an icon, and the free space around a text.
_ICON: Final = 20.0
_PAD: Final = 18.0
# Number of shortened texts cached between redraws: the names of a few rigs.
_KEPT: Final = 2048


class PoseTab:
    """A panel in the sidebar's tab for posing rigs."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "FABRIK Pose"
    layout: UILayout


class MotionTab:
    """A panel in the sidebar's tab for motion on rigs."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "FABRIK Motion"
    layout: UILayout


class AboutRig:
    """A panel about the current rig, shown only if the rig can be used and has the panel's subject."""

    layout: UILayout

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Whether the panel can be shown; if not, the tab's first panel shows the reason."""
        rig = rig_at_hand(context)
        return not why_no_rig(rig) and cls.shows(rig)

    @classmethod
    def shows(cls, _rig: bpy.types.Object) -> bool:
        """Whether a rig has something to show in the panel."""
        return True

    def draw(self, context: Context) -> None:
        """Draw the rig's settings."""
        self.layout.use_property_split = True
        self.layout.use_property_decorate = False
        self.draw_rig(context, self.layout, rig_at_hand(context))

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the panel's contents."""
        raise NotImplementedError


class Rows:
    """A list in a panel; `draw_row` draws one of its lines."""

    def draw_item(
        self,
        _context: Context,
        layout: UILayout,
        _data: Any,
        item: Any,
        _icon: int,
        _active_data: Any,
        _active_property: str,
    ) -> None:
        """Called by Blender, which checks the number of arguments."""
        layout.use_property_split = False
        self.draw_row(layout, item)

    @staticmethod
    def draw_row(layout: UILayout, item: Any) -> None:
        """Draw one item."""
        raise NotImplementedError


def chosen_in(items: Any, place: int) -> Any:
    """The chosen item of a list; None if there is none."""
    return items[place] if 0 <= place < len(items) else None


def draw_switch(layout: UILayout, item: Any, *, active: bool) -> UILayout:
    """Draw the switch of an item in a list; returns the row for what follows."""
    row = layout.row(align=True)
    row.prop(item, "enabled", text="")
    names = row.row()
    names.active = active
    return names


def draw_lines(layout: UILayout, sentence: str, icon: Any) -> None:
    """Draw a sentence, in as many lines as it needs."""
    column = layout.column(align=True)
    for line in short_lines(told(sentence), _room_beside_icon()):
        column.label(text=line, icon=icon, translate=False)
        icon = "BLANK1"


def draw_names(
    layout: UILayout,
    first: str,
    second: str,
    *,
    icon: Any,
    second_icon: Any = "NONE",
    share: float = 0.5,
    boxes: int = 0,
) -> None:
    """Draw two names beside each other in a list's row, shortened if they are too long.

    share: of the row, for the first with its icon. boxes: the width in icons of what precedes them.
    """
    split = layout.split(factor=share)
    for part, name, shown in ((share, first, icon), (1.0 - share, second, second_icon)):
        draw_name(split, name, shown, boxes, part)


def draw_name(layout: UILayout, name: str, icon: Any, boxes: int, share: float = 1.0) -> None:
    """Draw a name in a share of a list's row; boxes: the width in icons of what is beside it."""
    room = share * (_room_beside_icon() - boxes * _ICON) - _PAD
    layout.label(text=fitted(name, room - (0.0 if icon == "NONE" else _ICON)), icon=icon, translate=False)


def fitted(name: str, most: float) -> str:
    """A name, at most `most` pixels wide as drawn: its middle is cut, since its ends distinguish it.

    A part before a colon is the same for all bones or markers of one origin, and is cut first.
    """
    return _fitted(name, most, bpy.context.preferences.ui_styles[0].widget.points)


@lru_cache(maxsize=_KEPT)
def _fitted(name: str, most: float, points: float) -> str:
    blf.size(0, points)
    own = name.rpartition(":")[2]
    shorter = (f"{own[: kept // 2]}…{own[-(kept - kept // 2) :]}" for kept in range(len(own) - 1, 1, -1))
    return next((text for text in (name, own, *shorter) if blf.dimensions(0, text)[0] <= most), "…")


def short_lines(sentence: str, most: float) -> list[str]:
    """A sentence in lines of at most `most` pixels as drawn, broken between words."""
    blf.size(0, bpy.context.preferences.ui_styles[0].widget.points)
    lines: list[str] = []
    for word in sentence.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and blf.dimensions(0, longer)[0] <= most:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _room_beside_icon() -> float:
    """Pixels, at Blender's scale 1, for a line beside an icon in the sidebar at its initial width."""
    region: Any = bpy.context.region
    if region is None or region.type != "UI":
        return _ROOM
    scale = bpy.context.preferences.system.ui_scale
    return max(float(region.width / scale) - _MARGINS, _ROOM)
