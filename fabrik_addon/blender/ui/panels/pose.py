"""The tab for posing rigs. Blender shows its panels in the order of `CLASSES`."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import bpy
from bpy.types import Context, Object, Panel, PoseBone, UILayout, UIList

from ... import OnUse
from ...posing import live
from ...settings.control import FabrikCarrier, may_be_control_rig
from ...settings.declare import CONTEXT, Factor
from ...settings.in_use import seen
from ...settings.limit_values import AXES, EXTRA_FIELDS, KINDS, NAMES, NO_SLIDE
from ...settings.rig import FabrikEffector, rig_settings
from ...settings.why_not import enabled_effectors, has_motion, rig_at_hand, shared_targets, why_no_rig, why_no_solve
from ..operators.base import folded
from ..overlays.handlers import GOALS_SWITCH, LIMITS_SWITCH, add_missing_handlers
from ..translations import ui_text
from . import base

if TYPE_CHECKING:
    from ...limits import editing
    from ...settings import limit_properties, selection
else:
    editing, limit_properties, selection = map(
        OnUse, (".limits.editing", ".settings.limit_properties", ".settings.selection")
    )

# The scale of the button that new users press first.
_LARGE = 1.6


class FABRIK_PT_drag(base.PoseTab, Panel):
    """The next step, and tools that pose the rig."""

    bl_label = "Drag and Solve"
    guide = "drag"

    def draw_rig(self, context: Context, layout: UILayout, rig: Object | None) -> None:
        base.draw_lines(layout, base.next_in_pose(rig), "INFO")
        if why_no_rig(rig) or rig is None:
            return
        add_missing_handlers(rig)
        kept, may_be_controls = seen(rig), may_be_control_rig(rig)
        if may_be_controls:
            layout.operator("fabrik.use_control_rig", icon="CON_ARMATURE")
        buttons = layout.row(align=True)
        buttons.scale_y = _LARGE
        if rig.mode != "POSE":
            buttons.operator("fabrik.pose_mode", icon="POSE_HLT")
        else:
            buttons.operator("fabrik.drag", text="Drag", icon="VIEW_PAN")
            buttons.operator("fabrik.pin", text="Pin", icon="PINNED")
        add = layout.column()
        add.enabled = rig.data.bones.active is not None
        add.operator("fabrik.add_effector", icon="ADD")
        key = layout.column()
        key.enabled = kept.key_bones != "POSED" or len(kept.unkeyed) > 0 or len(enabled_effectors(rig)) > 0
        key.operator("fabrik.key_pose", icon="KEY_HLT")
        if kept.live or not (why_no_solve(rig) or may_be_controls):
            settings = rig_settings(rig)
            row = layout.row(align=True)
            row.use_property_split = False
            row.prop(settings, "live", toggle=True, icon="PLAY")
            row.operator("fabrik.solve", text="Solve", icon="CON_KINEMATIC").start = "PRESENT"
        if kept.live:
            base.draw_lines(layout, live.trouble_of(rig), "ERROR")
            base.draw_lines(layout, "Live poses don't render: bake first", "INFO")
        if (options := folded(layout, "Options", "drag")) is not None:
            settings = rig_settings(rig)
            options.prop(settings, "root")
            base.draw_reach(options, settings.drag)
            options.prop(settings.drag, "keep_orientation")
            if has_motion(rig):
                options.prop(settings.drag, "spread")
            options.prop(settings, "key_bones")
            if kept.live:
                options.prop(settings, "influence", slider=True)


class FABRIK_UL_effectors(base.Rows, UIList):
    """One line per target or pin: a switch, its bone, and an icon for its kind"""

    @staticmethod
    def draw_row(layout: UILayout, effector: FabrikEffector) -> None:
        names = base.draw_switch(layout, effector, active=effector.enabled)
        # The name of the target is below the list.
        kind: Any = "PINNED" if effector.kind == "PIN" else "EMPTY_DATA" if effector.target else "ERROR"
        base.draw_name(names, effector.shown_bone or ui_text("No bone"), "BONE_DATA", boxes=4)
        names.label(text="", icon=kind)


class FABRIK_PT_effectors(base.AboutRig, base.PoseTab, Panel):
    """The points of the rig that have targets or are pinned."""

    bl_label = "Targets and Pins"
    switch = GOALS_SWITCH

    def draw_rig(self, _context: Context, layout: UILayout, rig: Object) -> None:
        settings = seen(rig)
        if not len(settings.effectors):
            base.draw_lines(layout, "Select a bone, then pin it or add a target", "INFO")
            return
        row = layout.row()
        row.use_property_split = False
        row.template_list("FABRIK_UL_effectors", "", settings, "effectors", settings, "active_effector", rows=4)
        buttons = row.column(align=True)
        buttons.operator("fabrik.remove_effector", text="", icon="REMOVE")
        buttons.operator("fabrik.order_effectors", text="", icon="SORTSIZE")
        if shared_targets(rig):
            base.draw_lines(layout, "Another rig has the same targets", "INFO")
            layout.operator("fabrik.own_targets")
        if (effector := base.chosen_in(settings.effectors, settings.active_effector)) is not None:
            if effector.kind == "TARGET":
                base.draw_target(layout, effector, "target", "target_bone")
            layout.prop(effector, "hold_rotation")
            base.draw_target(layout, effector, "bend_target", "bend_bone")
            if (advanced := folded(layout, "Advanced", "effectors")) is not None:
                advanced.prop_search(effector, "bone", rig.pose, "bones")
                advanced.prop(effector, "point")
                if effector.point == "OFFSET":
                    advanced.prop(effector, "offset")
                if effector.kind == "PIN":
                    advanced.prop(effector, "pin_location")
                advanced.prop(effector, "weight")
                advanced.prop(effector, "priority")
        row = layout.row(align=True)
        row.operator("fabrik.snap_targets", text="Snap Targets", icon="SNAP_ON")
        row.operator("fabrik.solve", text="Solve from Rest").start = "REST"


class FABRIK_PT_posture(base.AboutRig, base.PoseTab, Panel):
    """Settings that choose among all poses that meet the goals, for dragging, live posing and solving."""

    bl_label = "Posture"

    def draw_rig(self, _context: Context, layout: UILayout, rig: Object) -> None:
        settings = rig_settings(rig)
        preferred = layout.row(align=True)
        preferred.prop(settings, "preferred_pose")
        preferred.operator("fabrik.keep_pose", text="", icon="PINNED")
        if settings.preferred_pose == "KEPT" and not settings.kept_pose:
            base.draw_lines(layout, "Store a pose first: press the button on the right", "INFO")
        layout.row().prop(settings, "balance", expand=True)
        layout.prop(settings, "free_limbs_hang")
        layout.row().prop(settings.bake, "self_collision", expand=True)
        floor = layout.row(align=True, heading="Floor", heading_ctxt=CONTEXT)
        floor.prop(settings, "use_floor", text="")
        height = floor.row(align=True)
        height.enabled = settings.use_floor
        height.prop(settings, "floor_height", text="")
        if settings.bake.self_collision != "OFF" and (advanced := folded(layout, "Advanced", "posture")) is not None:
            advanced.prop(settings, "show_capsules")


_ICONS: dict[str, Any] = {"TURNS": "ORIENTATION_GIMBAL", "SWINGS": "ORIENTATION_NORMAL", "HAND": "VIEW_PAN"}


class FABRIK_UL_carriers(base.Rows, UIList):
    """One line per deform bone: its name and its control"""

    @staticmethod
    def draw_row(layout: UILayout, carrier: FabrikCarrier) -> None:
        control = carrier.control or ui_text("Not controlled")
        split = layout.split(factor=0.5)
        base.draw_name(split, carrier.name, "BONE_DATA", boxes=0, share=0.5)
        base.draw_name(split, control, _ICONS[carrier.found], boxes=0, share=0.5)


class FABRIK_PT_control_rig(base.AboutRig, base.PoseTab, Panel):
    """The deform bones and their controls"""

    bl_label = "Control Rig"
    shows = staticmethod(lambda rig: may_be_control_rig(rig) or len(seen(rig).control.carriers) > 0)

    def draw_header(self, context: Context) -> None:
        """Draw the switch, if the rig has controls."""
        setup = rig_settings(rig_at_hand(context)).control
        if len(setup.carriers):
            self.layout.prop(setup, "use", text="")

    def draw_rig(self, _context: Context, layout: UILayout, rig: Object) -> None:
        setup = rig_settings(rig).control
        layout.operator("fabrik.use_control_rig", icon="CON_ARMATURE")
        if not len(setup.carriers):
            return
        layout.active = setup.use
        layout.template_list("FABRIK_UL_carriers", "", setup, "carriers", setup, "active", rows=4)
        carrier = base.chosen_in(setup.carriers, setup.active)
        if carrier is not None:
            layout.prop_search(carrier, "control", rig.pose, "bones")
        if len(setup.switches):
            layout.prop(setup, "limbs")
        if (advanced := folded(layout, "Advanced", "control_rig")) is not None:
            advanced.prop_search(setup, "place", rig.pose, "bones")
            if carrier is not None:
                advanced.prop(carrier, "found", emboss=False)
            if setup.uncarried:
                advanced.prop(setup, "uncarried", emboss=False)


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


# The slider for the stiffness of the active and the selected bones. It stores nothing, but reads and writes their
# stiffness, because Blender draws sliders only for existing properties.
STIFFNESS_SLIDER: Final = "fabrik_stiffness_of_selected"
STIFFNESS: Final = Factor(
    "Stiffness",
    "How strongly the active and selected bones keep their rotation while others rotate. At "
    "0 only their mass counts; at 1 they never rotate",
    get=_stiffness,
    set=_stiffen,
    options=set(),
    override=set(),
)


class FABRIK_PT_limits(base.AboutRig, base.PoseTab, Panel):
    """The limit of the active bone's rotation."""

    bl_label = "Joint Limits"
    switch = LIMITS_SWITCH

    def draw_rig(self, context: Context, layout: UILayout, rig: Object) -> None:
        bone = selection.active_bone(rig)
        if bone is None:
            base.draw_lines(layout, "Click a bone in Pose mode to limit it", "INFO")
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
    # The name of the bone that the sliders change, and of those that the buttons change.
    control, selected = rig.data.bones.active.name, selection.selected_bones(context, rig)
    shown = bone.name if control == bone.name else f"{control} ▸ {bone.name}"
    if bone in selected and len(selected) > 1:
        shown = ui_text("{bone} and {count} more", bone=shown, count=len(selected) - 1)
    layout.label(text=shown, icon="BONE_DATA", translate=False)
    if selected and bone not in selected:
        layout.label(text="The buttons change the selected bones, not this one", icon="INFO")
    reason = limit_properties.why_not_writable(bone)
    base.draw_lines(layout, reason, "INFO")
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
            advanced.operator("fabrik.set_limit", text="Allow Stretch", icon="FULLSCREEN_ENTER").slide = _FIRST_STRETCH
        else:
            _draw_sliders(advanced, bone, "slide", [ui_text(label) for label in _WORDS["slide"]])
        if settings.mass >= 0.0:
            advanced.prop(bone, '["fabrik_mass"]', text=ui_text("Mass"), translate=False)


def _draw_limit(layout: UILayout, bone: PoseBone) -> None:
    settings = limit_properties.read_settings(bone)
    rig: Any = bone.id_data
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
            # For a human's bone, the labels name the anatomical directions of the swings.
            names = editing.swings_of(rig).get(bone.name, ()) if field == "cone" else ()
            named = [f"{ui_text(name)} {label[-2:]}" for name, label in zip(names, _WORDS[field], strict=False)]
            _draw_sliders(layout, bone, field, named or labels)
    try:
        limit_properties.read_limit(bone)
        for field in EXTRA_FIELDS:
            limit_properties.read_extra(rig, [bone.name], field)
    except limit_properties.LimitPropertyError as error:
        base.draw_lines(layout, str(error), "ERROR")


def _draw_window(layout: UILayout, bone: PoseBone, corners: int) -> None:
    column = layout.column(align=True)
    column.use_property_split = False
    for point in range(corners):
        row = column.row(align=True)
        for index, axis in enumerate("XZ", 2 * point):
            row.prop(bone, '["fabrik_window"]', index=index, text=axis, slider=True)
        row.operator("fabrik.move_limit_point", text="", icon="EYEDROPPER").index = point
        row.operator("fabrik.remove_limit_point", text="", icon="REMOVE").index = point
    more = column.row(align=True)
    more.operator("fabrik.add_limit_point", text="Add Point", icon="ADD").from_pose = False
    more.operator("fabrik.add_limit_point", text="From Pose", icon="EYEDROPPER").from_pose = True


def _draw_sliders(layout: UILayout, bone: PoseBone, field: str, labels: Sequence[str]) -> None:
    """Draw sliders for a field of `LimitSettings`; "Free" if the bone does not have its property."""
    column, name = layout.column(align=True), NAMES[field]
    if name not in bone.keys():  # noqa: SIM118  to Blender's type hints a bone holds nothing
        column.label(text=ui_text("{name}: free", name=labels[0]), translate=False)
        return
    for index, label in enumerate(labels):
        column.prop(bone, f'["{name}"]', index=index, text=label, translate=False, slider=True)


CLASSES = (
    FABRIK_PT_drag,
    FABRIK_UL_effectors,
    FABRIK_PT_effectors,
    FABRIK_PT_posture,
    FABRIK_UL_carriers,
    FABRIK_PT_control_rig,
    FABRIK_PT_limits,
)
