"""Helpers shared by panels: the two tabs, the current rig, and texts that fit."""

from functools import lru_cache
from typing import Any, Final

import blf
import bpy
from bpy.types import Context, UILayout

from ...settings.why_not import rig_at_hand, why_no_rig
from ..translations import told

# Pixels, measured in Blender 5.2's sidebar at its initial width: the width of a line beside an icon, and of frames,
# tabs and the icon.
_ROOM: Final = 206.0
_MARGINS: Final = 80.0
# Pixels in a list's row, besides its scroll bar: the width of an icon, and the free space around a text.
_ICON: Final = 20.0
_PAD: Final = 18.0
# The number of shortened texts that are cached between redraws, enough for the names of a few rigs.
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
    """A panel about the current rig, shown only if the rig is editable and the panel has something to show."""

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
        """Draw one item for Blender, which checks the number of arguments."""
        layout.use_property_split = False
        self.draw_row(layout, item)

    @staticmethod
    def draw_row(layout: UILayout, item: Any) -> None:
        """Draw one item."""
        raise NotImplementedError


def chosen_in(items: Any, place: int) -> Any:
    """The selected item of a list; None if there is none."""
    return items[place] if 0 <= place < len(items) else None


def draw_switch(layout: UILayout, item: Any, *, active: bool) -> UILayout:
    """Draw the switch of a list item; returns the row in which to continue."""
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

    share: the share of the row for the first name with its icon. boxes: the width in front of the names, in icons.
    """
    split = layout.split(factor=share)
    for part, name, shown in ((share, first, icon), (1.0 - share, second, second_icon)):
        draw_name(split, name, shown, boxes, part)


def draw_name(layout: UILayout, name: str, icon: Any, boxes: int, share: float = 1.0) -> None:
    """Draw a name in a share of a list's row; boxes: the width that is used beside it, in icons."""
    room = share * (_room_beside_icon() - boxes * _ICON) - _PAD
    layout.label(text=fitted(name, room - (0.0 if icon == "NONE" else _ICON)), icon=icon, translate=False)


def fitted(name: str, most: float) -> str:
    """A name shortened to `most` pixels. Its middle is cut, because names usually differ at their ends.

    A prefix before a colon is cut first, because all bones or markers of one source have the same prefix.
    """
    return _fitted(name, most, bpy.context.preferences.ui_styles[0].widget.points)


@lru_cache(maxsize=_KEPT)
def _fitted(name: str, most: float, points: float) -> str:
    blf.size(0, points)
    own = name.rpartition(":")[2]
    shorter = (f"{own[: kept // 2]}…{own[-(kept - kept // 2) :]}" for kept in range(len(own) - 1, 1, -1))
    return next((text for text in (name, own, *shorter) if blf.dimensions(0, text)[0] <= most), "…")


def short_lines(sentence: str, most: float) -> list[str]:
    """A sentence broken between words into lines of at most `most` pixels."""
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
    """The width for a line beside an icon in the sidebar, in pixels at Blender's resolution scale 1."""
    region: Any = bpy.context.region
    if region is None or region.type != "UI":
        return _ROOM
    scale = bpy.context.preferences.system.ui_scale
    return max(float(region.width / scale) - _MARGINS, _ROOM)
