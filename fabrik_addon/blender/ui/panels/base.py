"""Helpers shared by panels: the two tabs, the current rig, and texts that fit."""

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import blf
import bpy
from bpy.types import Context, Object, UILayout

from ...settings.control import may_be_control_rig
from ...settings.in_use import seen
from ...settings.rig import FabrikDragSettings, imported_takes
from ...settings.why_not import mapped_markers, rig_at_hand, why_no_rig
from ..translations import ui_message

# Pixels, measured in Blender 5.2's sidebar at its initial width: the width of a line next to an icon, and of frames,
# tabs and the icon.
_ROOM: Final = 206.0
_MARGINS: Final = 80.0
# Pixels in a list's row: the width of an icon, and the free space around a text (without the scroll bar).
_ICON: Final = 20.0
_PAD: Final = 20.0
# The number of shortened texts that are cached between redraws.
_KEPT: Final = 2048


class PoseTab:
    """A panel in the sidebar's tab for posing rigs."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "FABRIK Pose"
    layout: UILayout
    draw_rig: Callable[[Context, UILayout, Any], None]
    # For the header: a page of the guide, or the name of the scene's property that switches an overlay.
    guide = ""
    switch = ""

    def draw_header_preset(self, context: Context) -> None:
        if self.guide:
            self.layout.operator("wm.url_open", text="", icon="HELP", emboss=False).url = address_of(self.guide)
        if self.switch:
            self.layout.prop(context.scene, self.switch, text="", icon="OVERLAY")

    def draw(self, context: Context) -> None:
        self.layout.use_property_split = True
        self.layout.use_property_decorate = False
        self.draw_rig(context, self.layout, rig_at_hand(context))


class MotionTab(PoseTab):
    """A panel in the sidebar's tab for motion on rigs."""

    bl_category = "FABRIK Motion"


class AboutRig:
    """A panel about the current rig, closed at first; shown only if the rig is editable and has something to show.

    Attributes:
        shows: whether a rig has something to show.
    """

    bl_options: Any = {"DEFAULT_CLOSED"}
    shows: Any = staticmethod(lambda _rig: True)

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Whether the panel can be shown; if not, the tab's first panel shows the reason."""
        rig = rig_at_hand(context)
        return not why_no_rig(rig) and bool(cls.shows(rig))


class Rows:
    """A list in a panel; `draw_row` draws one of its lines."""

    draw_row: Any

    def draw_item(
        self, _context: Context, layout: UILayout, _holder: Any, item: Any, _icon: int, _about: Any, _active: str
    ) -> None:
        """Draw one item for Blender, which checks the number of arguments."""
        layout.use_property_split = False
        self.draw_row(layout, item)


def chosen_in(items: Any, place: int) -> Any:
    """The selected item of a list; None if there is none."""
    return items[place] if 0 <= place < len(items) else None


def draw_target(layout: UILayout, item: Any, target: str, bone: str) -> None:
    """Draw two properties of an item: an object that it follows, and one of its bones if the object is an armature."""
    layout.prop(item, target)
    rig = getattr(item, target)
    if rig is not None and rig.type == "ARMATURE":
        layout.prop_search(item, bone, rig.pose, "bones")


def draw_switch(layout: UILayout, item: Any, *, active: bool) -> UILayout:
    """Draw the switch of a list item; returns the row in which to continue."""
    row = layout.row(align=True)
    row.prop(item, "enabled", text="")
    names = row.row()
    names.active = active
    return names


def draw_lines(layout: UILayout, sentences: str, icon: Any) -> None:
    """Draw the sentences of a text, one per line, in as many lines as they need."""
    # An empty column would leave a gap.
    column = layout.column(align=True) if sentences else layout
    for sentence in sentences.splitlines():
        for index, line in enumerate(short_lines(ui_message(sentence), _room_beside_icon())):
            column.label(text=line, icon="BLANK1" if index else icon, translate=False)


def draw_name(layout: UILayout, name: str, icon: Any, boxes: int, share: float = 1.0) -> None:
    """Draw a name with an icon in a fraction of a list's row, shortened if it is too long.

    boxes: the width of the other items in the row, as a number of icons.
    """
    room = share * (_room_beside_icon() + (1 - boxes) * _ICON) - _PAD
    layout.label(text=fitted(name, room - (0.0 if icon == "NONE" else _ICON)), icon=icon, translate=False)


def fitted(name: str, most: float) -> str:
    """A name shortened to `most` pixels. Its middle is left out, because names usually differ at their ends.

    A prefix such as "mixamorig:" or "DEF-" is cut first, because all bones or markers of one source have the same
    prefix.
    """
    return _fitted(name, most, bpy.context.preferences.ui_styles[0].widget.points)


@lru_cache(maxsize=_KEPT)
def _fitted(name: str, most: float, points: float) -> str:
    blf.size(0, points)
    own = re.sub("^(.*:|(DEF|ORG|MCH)-)", "", name)
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
    """The width for a line next to an icon in the sidebar, in pixels at Blender's resolution scale 1."""
    region: Any = bpy.context.region
    if region is None or region.type != "UI":
        return _ROOM
    return float(region.width / bpy.context.preferences.system.ui_scale) - _MARGINS


@lru_cache(maxsize=1)
def _manifest() -> dict[str, Any]:
    import tomllib  # noqa: PLC0415  not needed when Blender starts

    return tomllib.loads((Path(__file__).parents[3] / "blender_manifest.toml").read_text(encoding="utf-8"))


def address_of(page: str) -> str:
    """The web address of a page of the guide, relative to the website in the manifest."""
    return f"{_manifest()['website']}/guide/{page}.html"


def mail_address() -> str:
    """The address for bug reports. Blender's preferences show the maintainer without it."""
    return str(_manifest()["maintainer"].partition("<")[2].rstrip(">"))


def draw_reach(layout: UILayout, drag: FabrikDragSettings) -> None:
    """Draw which bones follow a dragged bone."""
    layout.prop(drag, "reach")
    if drag.reach == "BONES":
        layout.prop(drag, "bones")


def next_in_pose(rig: Object | None) -> str:
    """The next step in the Pose tab."""
    reason = why_no_rig(rig)
    if reason or rig is None:
        return reason
    settings = seen(rig)
    if may_be_control_rig(rig):
        return "Constraints move the rig's bones: set up a control rig, then drag controls"
    if any(effector.kind == "TARGET" for effector in settings.effectors):
        if not settings.live:
            return "Turn on Live, then move the targets"
        # In Pose mode a click selects only bones.
        in_pose_mode = rig.mode == "POSE"
        return "Leave Pose mode (Ctrl Tab) to move targets" if in_pose_mode else "Move the targets to pose the rig"
    if rig.mode != "POSE":
        return "Enter Pose mode to drag bones"
    if rig.data.bones.active is None:
        return "Press F over a bone and move the mouse"
    return "F drags the bone; pins stay in place" if settings.effectors else "F drags a bone; P pins bones in place"


def next_in_motion(context: Context, rig: Object | None) -> tuple[str, str]:
    """The next step from a recording to keyframes, and its operator; "" for none."""
    takes, reason = imported_takes(context.scene), why_no_rig(rig)
    if rig is not None and not reason:
        capture, source = seen(rig).capture, seen(rig).retarget.source
        if mapped_markers(rig):
            if capture.action is not None:
                return "Baked: see the report below", ""
            if not capture.calibrated:
                return "Calibrate the markers", "fabrik.calibrate_markers"
            return "Bake the take to keyframes", "fabrik.bake"
        if source is not None and seen(rig).retarget.brought == source.name:
            return "Retargeted: see the report below", ""
        if source is not None and (capture.take is None or not takes):
            return "Press Retarget Animation to copy the source's motion to the rig", "fabrik.retarget"
        if takes:
            return "Match the markers to bones", "fabrik.match_markers"
        if len(bpy.data.armatures) > 1:
            return "Import markers, or choose an animated armature as the source in the panel Retarget", ""
    elif takes or (rig is not None and rig.type == "ARMATURE"):
        return reason, ""
    return "Import markers or poses here, or an .fbx armature with File ▸ Import", ""
