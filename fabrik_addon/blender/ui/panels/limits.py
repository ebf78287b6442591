"""The panel for the limit of the active bone: sliders for its custom properties, and buttons that change it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import bpy
from bpy.types import Context, Object, Panel, PoseBone, UILayout

from ...first_use import OnUse
from ...settings.declare import Factor
from ...settings.limit_values import AXES, EXTRA_FIELDS, KINDS, NO_SLIDE
from ..operators.base import folded
from ..overlays.handlers import LIMITS_SWITCH
from ..translations import CONTEXT, ui_text
from .base import AboutRig, PoseTab, draw_lines

if TYPE_CHECKING:
    from ...limits import editing
    from ...settings import limit_properties, selection
else:
    editing, limit_properties, selection = map(
        OnUse, (".limits.editing", ".settings.limit_properties", ".settings.selection")
    )

# Min and max length factors of a new stretch.
_FIRST_STRETCH: Final = (1.0, 1.5)
# The sliders' labels, and the names of directions of a human's swings.
_WORDS: Final = {
    "cone": ("Swing +X", "+Z", "-X", "-Z"),
    "twist": ("Twist Min", "Max"),
    "hinge": ("Rotation Min", "Max"),
    "slide": ("Stretch Min", "Max"),
    "directions": ("Forward", "Back", "Left", "Right", "Up", "Down"),
}


def _stiffness(rig: Object) -> float:
    """The active bone's stiffness; 0 if it has none or an invalid one."""
    bone = selection.active_bone(rig) if rig.pose else None
    return min(max(limit_properties.read_settings(bone).stiffness, 0.0), 1.0) if bone else 0.0


def _stiffen(rig: Object, stiffness: float) -> None:
    """Set the stiffness of the active bone and the selected ones, except bones that can't store it."""
    if not rig.pose:
        return
    bones = *selection.selected_bones(bpy.context, rig), selection.active_bone(rig)
    for bone in {bone.name: bone for bone in bones if bone}.values():
        # The panel shows why the active bone can't store it.
        with suppress(limit_properties.LimitPropertyError):
            limit_properties.write_settings(bone, replace(limit_properties.read_settings(bone), stiffness=stiffness))


# A property of objects, the slider for the stiffness of the active and the selected bones. Blender draws sliders only
# for existing properties, which these bones may not have yet. This property stores nothing: it reads and writes the
# stiffness of the bones.
STIFFNESS_SLIDER: Final = "fabrik_stiffness_of_selected"
STIFFNESS: Final = Factor(
    "Stiffness",
    "How strongly the active and selected bones keep their rotation while others rotate; 0 "
    "depends only on their mass, 1 never rotates",
    get=_stiffness,
    set=_stiffen,
    options=set(),
    translation_context=CONTEXT,
)


class FABRIK_PT_limits(AboutRig, PoseTab, Panel):
    """The limit of the active bone's rotation."""

    bl_label = "Joint Limits"
    switch = LIMITS_SWITCH

    def draw_rig(self, context: Context, layout: UILayout, rig: Object) -> None:
        bone = selection.active_bone(rig)
        if bone is None:
            draw_lines(layout, "Click a bone in Pose mode to limit it", "INFO")
        else:
            _draw_active(context, layout, rig, bone)
        layout.operator("fabrik.limit_preset", icon="OUTLINER_OB_ARMATURE")
        if (more := folded(layout, "Limit Tools", "limits")) is not None:
            column = more.column(align=True)
            column.operator("fabrik.limits_from_ik", text="From IK and Constraints", icon="CON_KINEMATIC")
            column.operator("fabrik.limits_from_action", text="From Action", icon="ACTION")
            column.operator("fabrik.limits_to_constraints", text="To Constraints", icon="CONSTRAINT_BONE")
            column = more.column(align=True)
            column.operator("fabrik.clamp_pose", text="Clamp Pose", icon="ARMATURE_DATA")
            row = column.row(align=True)
            row.operator("fabrik.check_action", text="Check Action", icon="VIEWZOOM").mend = False
            row.operator("fabrik.check_action", text="Fix Violations").mend = True


def _draw_active(context: Context, layout: UILayout, rig: Object, bone: PoseBone) -> None:
    """Draw the limit of a rig's active bone, and the buttons that change it."""
    # The name of the bone that the sliders change, and of those that the buttons change.
    control, selected = rig.data.bones.active.name, selection.selected_bones(context, rig)
    shown = bone.name if control == bone.name else f"{control} ▸ {bone.name}"
    if bone in selected and len(selected) > 1:
        shown = ui_text("{bone} and {count} more", bone=shown, count=len(selected) - 1)
    layout.label(text=shown, icon="BONE_DATA", translate=False)
    if selected and bone not in selected:
        layout.label(text="The buttons change the selected bones, not this one", icon="INFO")
    reason = limit_properties.why_not_writable(bone)
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
        settings = limit_properties.read_settings(bone)
        if settings.slide == NO_SLIDE:
            stretch = advanced.operator("fabrik.set_limit", text="Allow Stretch", icon="FULLSCREEN_ENTER")
            stretch.slide = _FIRST_STRETCH
        else:
            _draw_sliders(advanced, bone, "slide", [ui_text(label) for label in _WORDS["slide"]])
        if settings.mass >= 0.0:
            advanced.prop(bone, f'["{limit_properties.MASS}"]', text=ui_text("Mass"), translate=False)


def _draw_limit(layout: UILayout, bone: PoseBone) -> None:
    """Draw the type, its sliders, and errors in their values."""
    settings = limit_properties.read_settings(bone)
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
            # For a human's bone, the labels name the anatomical directions of the swings.
            names = editing.swings_of(editing.rest_key(rig)).get(bone.name, ()) if field == "cone" else ()
            named = [f"{ui_text(name)} {label[-2:]}" for name, label in zip(names, _WORDS[field], strict=False)]
            _draw_sliders(layout, bone, field, named or labels)
    try:
        limit_properties.read_limit(bone)
        for field in EXTRA_FIELDS:
            limit_properties.read_extra_field(bone, field)
    except limit_properties.LimitPropertyError as error:
        draw_lines(layout, str(error), "ERROR")


def _draw_window(layout: UILayout, bone: PoseBone, corners: int) -> None:
    """Draw the swings of each corner, and buttons to move, remove and add corners."""
    column = layout.column(align=True)
    column.use_property_split = False
    for point in range(corners):
        row = column.row(align=True)
        for index, axis in enumerate("XZ", 2 * point):
            row.prop(bone, f'["{limit_properties.WINDOW}"]', index=index, text=axis, slider=True)
        row.operator("fabrik.move_limit_point", text="", icon="EYEDROPPER").index = point
        row.operator("fabrik.remove_limit_point", text="", icon="REMOVE").index = point
    more = column.row(align=True)
    more.operator("fabrik.add_limit_point", text="Add Point", icon="ADD").from_pose = False
    more.operator("fabrik.add_limit_point", text="From Pose", icon="EYEDROPPER").from_pose = True


def _draw_sliders(layout: UILayout, bone: PoseBone, field: str, labels: Sequence[str]) -> None:
    """Draw sliders for a field of `LimitSettings`; "Free" if the bone does not have its property."""
    column, name = layout.column(align=True), limit_properties.NAMES[field]
    if name not in bone.keys():  # noqa: SIM118  to Blender's type hints a bone holds nothing
        column.label(text=ui_text("{name}: free", name=labels[0]), translate=False)
        return
    for index, label in enumerate(labels):
        column.prop(bone, f'["{name}"]', index=index, text=label, translate=False, slider=True)


CLASSES = (FABRIK_PT_limits,)
