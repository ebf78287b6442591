"""Draws the limit of a bone in its panel: sliders for its custom properties, and buttons that change it.

This is not in the panel's module, because Blender registers panels at start, and limits need the solver's code.
"""

from collections.abc import Sequence
from typing import Any, Final

from bpy.types import Context, Object, PoseBone, UILayout

from ...limits.editing import rest_key, swings_of
from ...settings.limit_properties import (
    CONE,
    HINGE,
    MASS,
    SLIDE,
    TWIST,
    WINDOW,
    LimitPropertyError,
    read_extra_field,
    read_limit,
    read_settings,
    why_not_writable,
)
from ...settings.limit_values import AXES, EXTRA_FIELDS, KINDS, NO_SLIDE
from ...settings.selection import active_bone, selected_bones
from ..operators.base import folded
from ..stiffness_slider import STIFFNESS_SLIDER
from ..translations import ui_text
from .base import draw_lines

# Min and max length factors of a new stretch.
FIRST_STRETCH = (1.0, 1.5)
# The properties with sliders, the sliders' labels, and the names of directions of a human's swings.
_PROPERTIES: Final = {"cone": CONE, "twist": TWIST, "hinge": HINGE}
_WORDS: Final = {
    "cone": ("Swing +X", "+Z", "-X", "-Z"),
    "twist": ("Twist Min", "Max"),
    "hinge": ("Rotation Min", "Max"),
    "slide": ("Stretch Min", "Max"),
    "directions": ("Forward", "Back", "Left", "Right", "Up", "Down"),
}


def draw_active_limit(context: Context, layout: UILayout, rig: Object) -> None:
    """Draw the limit of a rig's active bone, or a hint about what to do first."""
    bone = active_bone(rig)
    if bone is None:
        draw_lines(layout, "Click a bone in Pose mode to limit it", "INFO")
        return
    # The name of the bone that the sliders change, and of those that the buttons change.
    control, selected = rig.data.bones.active.name, selected_bones(context, rig)
    shown = bone.name if control == bone.name else f"{control} ▸ {bone.name}"
    if bone in selected and len(selected) > 1:
        shown = ui_text("{bone} and {count} more", bone=shown, count=len(selected) - 1)
    layout.label(text=shown, icon="BONE_DATA", translate=False)
    if selected and bone not in selected:
        layout.label(text="The buttons change the selected bones, not this one", icon="INFO")
    reason = why_not_writable(bone)
    draw_lines(layout, reason, "INFO")
    body = layout.column()
    body.enabled = not reason
    _draw_limit(body, bone)
    body.prop(rig, STIFFNESS_SLIDER, slider=True)
    row = body.row(align=True)
    row.use_property_split = False
    row.operator("fabrik.copy_limit", text="To Selected", icon="PASTEDOWN")
    row.operator("fabrik.mirror_limits", text="Mirror", icon="MOD_MIRROR")
    row.operator("fabrik.clear_limit", text="", icon="X")
    if (advanced := folded(layout, "Advanced", "limits")) is not None:
        advanced.enabled = not reason
        settings = read_settings(bone)
        if settings.slide == NO_SLIDE:
            advanced.operator("fabrik.set_limit", text="Allow Stretch", icon="FULLSCREEN_ENTER").slide = FIRST_STRETCH
        else:
            _draw_sliders(advanced, bone, SLIDE, [ui_text(label) for label in _WORDS["slide"]])
        if settings.mass >= 0.0:
            advanced.prop(bone, f'["{MASS}"]', text=ui_text("Mass"), translate=False)


def _draw_limit(layout: UILayout, bone: PoseBone) -> None:
    """Draw the type, its sliders, and errors in their values."""
    settings = read_settings(bone)
    kind = KINDS[settings.type]
    row = layout.row()
    row.use_property_split = False
    row.operator_menu_enum("fabrik.set_limit", "type", text=kind.name)
    for field in kind.fields:
        if field == "axis":
            row = layout.row(align=True)
            row.use_property_split = False
            for axis in AXES:
                row.operator("fabrik.set_limit", text=axis, depress=settings.axis == axis).axis = axis
        elif field == "window":
            _draw_window(layout, bone, len(settings.window) // 2)
        else:
            labels = [ui_text(label) for label in _WORDS[field]]
            rig: Any = bone.id_data
            # The swings of a human's bone have the names of their directions.
            names = swings_of(rest_key(rig)).get(bone.name, ()) if field == "cone" else ()
            named = [f"{ui_text(name)} {label[-2:]}" for name, label in zip(names, _WORDS[field], strict=False)]
            _draw_sliders(layout, bone, _PROPERTIES[field], named or labels)
    try:
        read_limit(bone)
        for field in EXTRA_FIELDS:
            read_extra_field(bone, field)
    except LimitPropertyError as error:
        draw_lines(layout, str(error), "ERROR")


def _draw_window(layout: UILayout, bone: PoseBone, corners: int) -> None:
    """Draw the swings of each corner, and buttons to move, remove and add corners."""
    column = layout.column(align=True)
    column.use_property_split = False
    for point in range(corners):
        row = column.row(align=True)
        row.prop(bone, f'["{WINDOW}"]', index=2 * point, text="X", slider=True)
        row.prop(bone, f'["{WINDOW}"]', index=2 * point + 1, text="Z", slider=True)
        row.operator("fabrik.move_limit_point", text="", icon="EYEDROPPER").index = point
        row.operator("fabrik.remove_limit_point", text="", icon="REMOVE").index = point
    more = column.row(align=True)
    more.operator("fabrik.add_limit_point", text="Add Point", icon="ADD").from_pose = False
    more.operator("fabrik.add_limit_point", text="From Pose", icon="EYEDROPPER").from_pose = True


def _draw_sliders(layout: UILayout, bone: PoseBone, name: str, labels: Sequence[str]) -> None:
    """Draw sliders for a property; "Free" if the bone does not have it."""
    column = layout.column(align=True)
    if name not in bone.keys():  # noqa: SIM118  to Blender's type hints a bone holds nothing
        column.label(text=ui_text("{name}: free", name=labels[0]), translate=False)
        return
    for index, label in enumerate(labels):
        column.prop(bone, f'["{name}"]', index=index, text=label, translate=False, slider=True)
