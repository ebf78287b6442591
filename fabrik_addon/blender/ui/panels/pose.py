"""The tab for posing rigs. Blender shows its panels in the order of `CLASSES`."""

from typing import Any

from bpy.types import Context, Object, Panel, UILayout, UIList

from ...settings.control import FabrikCarrier, may_be_control_rig
from ...settings.in_use import seen
from ...settings.rig import FabrikEffector, rig_settings
from ...settings.why_not import enabled_effectors, has_motion, rig_at_hand, shared_targets, why_no_rig, why_no_solve
from ..operators.base import folded
from ..overlays.handlers import GOALS_SWITCH, add_missing_handlers
from ..translations import CONTEXT, ui_text
from . import base

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
        is_live, may_be_controls = seen(rig).live, may_be_control_rig(rig)
        if may_be_controls:
            layout.operator("fabrik.use_control_rig", icon="CON_ARMATURE")
        buttons = layout.row(align=True)
        buttons.scale_y = _LARGE
        if rig.mode != "POSE":
            buttons.operator("fabrik.pose_mode", icon="POSE_HLT")
        else:
            buttons.operator("fabrik.drag", icon="VIEW_PAN")
            buttons.operator("fabrik.pin", icon="PINNED")
        add = layout.column()
        add.enabled = rig.data.bones.active is not None
        add.operator("fabrik.add_effector", icon="ADD")
        key, kept = layout.column(), seen(rig)
        key.enabled = kept.key_bones != "POSED" or len(kept.unkeyed) > 0 or len(enabled_effectors(rig)) > 0
        key.operator("fabrik.key_pose", icon="KEY_HLT")
        if is_live or not (why_no_solve(rig) or may_be_controls):
            settings = rig_settings(rig)
            row = layout.row(align=True)
            row.use_property_split = False
            row.prop(settings, "live", toggle=True, icon="PLAY")
            row.operator("fabrik.solve", text="Solve", icon="CON_KINEMATIC").start = "PRESENT"
        if is_live:
            base.draw_lines(layout, settings.live_trouble, "ERROR")
            base.draw_lines(layout, "Live poses don't render: bake first", "INFO")
        if (options := folded(layout, "Options", "drag")) is not None:
            settings = rig_settings(rig)
            options.prop(settings, "root")
            base.draw_reach(options, settings.drag)
            options.prop(settings.drag, "keep_orientation")
            if has_motion(rig):
                options.prop(settings.drag, "spread")
            options.prop(settings, "key_bones")
            if is_live:
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
        effector = base.chosen_in(settings.effectors, settings.active_effector)
        if effector is not None:
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
        row.operator("fabrik.solve", text="From Rest").start = "REST"


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


CLASSES = (
    FABRIK_PT_drag,
    FABRIK_UL_effectors,
    FABRIK_PT_effectors,
    FABRIK_PT_posture,
    FABRIK_UL_carriers,
    FABRIK_PT_control_rig,
)
