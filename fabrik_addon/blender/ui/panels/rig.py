"""The sidebar's FABRIK tab. Panels draw and never compute."""

from typing import Any

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from ...settings.bake_options import FabrikBakeSettings
from ...settings.effector import FabrikEffector
from ...settings.rig import FabrikRig, rig_settings
from ...settings.why_not import why_no_rig, why_no_solve
from ..operators.bake import FABRIK_OT_bake
from ..operators.drag import FABRIK_OT_drag
from ..operators.effectors import (
    FABRIK_OT_add_effector,
    FABRIK_OT_order_effectors,
    FABRIK_OT_pin,
    FABRIK_OT_remove_effector,
)
from ..operators.import_markers import FABRIK_OT_import_markers
from ..operators.posing import FABRIK_OT_keep_pose, FABRIK_OT_key_pose, FABRIK_OT_snap_targets, FABRIK_OT_solve
from ..overlays.handlers import GOALS_SWITCH


class FABRIK_UL_effectors(UIList):
    """One line an effector: on or off, its bone, its target or that it is pinned"""

    def draw_item(
        self,
        _context: Context,
        layout: UILayout,
        _data: FabrikRig,
        effector: FabrikEffector,
        _icon: int,
        _active_data: FabrikRig,
        _active_property: str,
    ) -> None:
        """Draw one effector."""
        row = layout.row(align=True)
        row.use_property_split = False
        row.prop(effector, "enabled", text="")
        names = row.row()
        names.active = effector.enabled
        names.label(text=effector.bone or "No bone", icon="BONE_DATA")
        if effector.kind == "PIN":
            names.label(text="Pinned", icon="PINNED")
        else:
            names.label(text=effector.target.name if effector.target else "No target", icon="EMPTY_DATA")


class InSidebar:
    """A panel in the FABRIK tab of the 3D viewport's sidebar."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "FABRIK"
    layout: UILayout


class AboutRig(InSidebar):
    """A panel about the active armature, there only while one can be worked on."""

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Where nothing is against it; `FABRIK_PT_no_rig` says what is."""
        return not why_no_rig(context.object)

    def draw(self, context: Context) -> None:
        """Draw the rig's settings."""
        self.layout.use_property_split = True
        self.layout.use_property_decorate = False
        self.draw_rig(context, self.layout, context.object)

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw what the panel is for."""
        raise NotImplementedError


class FABRIK_PT_no_rig(InSidebar, Panel):
    """What to do first, where there is no armature to work on."""

    bl_idname = "FABRIK_PT_no_rig"
    bl_order = 0
    bl_label = "No Rig"
    bl_options = {"HIDE_HEADER"}

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Where something keeps the other panels away."""
        return bool(why_no_rig(context.object))

    def draw(self, context: Context) -> None:
        """Draw the reason."""
        draw_lines(self.layout, why_no_rig(context.object), "INFO")


class FABRIK_PT_effectors(AboutRig, Panel):
    """The points of the rig that reach for targets or are pinned."""

    bl_idname = "FABRIK_PT_effectors"
    bl_order = 0
    bl_label = "Effectors"

    def draw_header_preset(self, context: Context) -> None:
        """Draw the overlay's switch."""
        self.layout.prop(context.scene, GOALS_SWITCH, text="", icon="OVERLAY")

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the list and the active effector's details."""
        kept = rig_settings(rig)
        active_bone = rig.data.bones.active
        row = layout.row()
        row.use_property_split = False
        row.template_list("FABRIK_UL_effectors", "", kept, "effectors", kept, "active_effector", rows=4)
        buttons = row.column(align=True)
        add = buttons.column(align=True)
        add.enabled = active_bone is not None
        add.operator(FABRIK_OT_add_effector.bl_idname, text="", icon="ADD")
        add.operator(FABRIK_OT_pin.bl_idname, text="", icon="PINNED")
        buttons.operator(FABRIK_OT_remove_effector.bl_idname, text="", icon="REMOVE")
        buttons.operator(FABRIK_OT_order_effectors.bl_idname, text="", icon="SORTSIZE")
        if active_bone is None:
            layout.label(text="Pick a bone in Pose mode, then Add", icon="INFO")
        elif not kept.effectors:
            layout.label(text=f"Add a target for {active_bone.name}, or pin it", icon="INFO")
        if 0 <= kept.active_effector < len(kept.effectors):
            _draw_effector(layout.column(), rig, kept.effectors[kept.active_effector])


class FABRIK_PT_effector_ways(AboutRig, Panel):
    """What the active effector does besides getting there."""

    bl_idname = "FABRIK_PT_effector_ways"
    bl_label = "Bend, Rotation, Priority"
    bl_parent_id = "FABRIK_PT_effectors"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_rig(self, _context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw them, or what to do first."""
        kept = rig_settings(rig)
        if not 0 <= kept.active_effector < len(kept.effectors):
            layout.label(text="Add an effector first", icon="INFO")
            return
        effector = kept.effectors[kept.active_effector]
        bend = layout.column()
        bend.prop(effector, "bend_target")
        if effector.bend_target is not None and effector.bend_target.type == "ARMATURE":
            bend.prop_search(effector, "bend_bone", effector.bend_target.pose, "bones")
        turning = "hold_rotation" if effector.kind == "PIN" else "use_rotation"
        turn = layout.column()
        turn.prop(effector, turning)
        weight = turn.column()
        weight.enabled = getattr(effector, turning)
        weight.prop(effector, "rotation_weight")
        layout.prop(effector, "weight")
        layout.prop(effector, "priority")


class FABRIK_PT_solve(AboutRig, Panel):
    """Posing the present frame, at once or on demand, and keys."""

    bl_idname = "FABRIK_PT_solve"
    bl_order = 1
    bl_label = "Pose"

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw live, the buttons, and why they are greyed where they are."""
        kept = rig_settings(rig)
        reason = why_no_solve(rig)
        draw_lines(layout, reason, "INFO")
        _draw_live(layout, kept, enabled=not reason or kept.live)
        column = layout.column()
        column.enabled = not reason
        column.prop(kept, "root")
        starts = column.row(align=True)
        starts.operator(FABRIK_OT_solve.bl_idname, text="Solve", icon="CON_KINEMATIC").start = "PRESENT"
        starts.operator(FABRIK_OT_solve.bl_idname, text="From Rest").start = "REST"
        keys = column.column(align=True)
        keys.operator(FABRIK_OT_key_pose.bl_idname, icon="KEY_HLT")
        keys.operator(FABRIK_OT_snap_targets.bl_idname, icon="SNAP_ON")


class FABRIK_PT_drag(AboutRig, Panel):
    """How bones are dragged."""

    bl_idname = "FABRIK_PT_drag"
    bl_label = "Drag"
    bl_parent_id = "FABRIK_PT_solve"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the button and its settings."""
        settings = rig_settings(rig).drag
        if context.mode != "POSE":
            layout.label(text="Bones are dragged in Pose mode", icon="INFO")
        layout.operator(FABRIK_OT_drag.bl_idname, text="Drag Active Bone", icon="VIEW_PAN")
        layout.prop(settings, "reach")
        bones = layout.column()
        bones.enabled = settings.reach == "BONES"
        bones.prop(settings, "bones")


class FABRIK_PT_posture(AboutRig, Panel):
    """Which of all poses that meet the goals: what dragging, live posing and solving share."""

    bl_idname = "FABRIK_PT_posture"
    bl_label = "Posture"
    bl_parent_id = "FABRIK_PT_solve"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the preferred pose, balance and floor."""
        kept = rig_settings(rig)
        preferred = layout.row(align=True)
        preferred.prop(kept, "preferred_pose")
        preferred.operator(FABRIK_OT_keep_pose.bl_idname, text="", icon="PINNED")
        if kept.preferred_pose == "KEPT" and not kept.kept_pose:
            layout.label(text="No pose is kept yet", icon="INFO")
        layout.row().prop(kept, "balance", expand=True)
        floor = layout.row(align=True, heading="Floor")
        floor.prop(kept, "use_floor", text="")
        height = floor.row(align=True)
        height.enabled = kept.use_floor
        height.prop(kept, "floor_height", text="")


class FABRIK_PT_markers(InSidebar, Panel):
    """Motion-capture markers."""

    bl_idname = "FABRIK_PT_markers"
    bl_order = 3
    bl_label = "Markers"

    def draw(self, _context: Context) -> None:
        """Draw the import button."""
        self.layout.operator(FABRIK_OT_import_markers.bl_idname, text="Import Markers", icon="IMPORT")


class FABRIK_PT_bake(AboutRig, Panel):
    """From targets that move to keyframes."""

    bl_idname = "FABRIK_PT_bake"
    bl_order = 4
    bl_label = "Bake"

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the range, the button and how the last bake went."""
        kept = rig_settings(rig)
        settings = kept.bake
        _draw_range(layout.column(align=True), context.scene, settings)
        layout.prop(settings, "start")
        mending = layout.column()
        mending.active = settings.start == "REST"
        mending.prop(settings, "mend_jumps")
        layout.prop(settings, "action")
        layout.operator(FABRIK_OT_bake.bl_idname, text="Bake", icon="REC")
        for line in kept.last_result.splitlines():
            layout.label(text=line)


def _draw_effector(column: UILayout, rig: bpy.types.Object, effector: FabrikEffector) -> None:
    """The details of one effector."""
    column.prop(effector, "name")
    column.prop_search(effector, "bone", rig.pose, "bones")
    column.prop(effector, "point")
    if effector.point == "OFFSET":
        column.prop(effector, "offset")
    column.prop(effector, "kind")
    if effector.kind == "PIN":
        column.prop(effector, "pin_location")
        return
    column.prop(effector, "target")
    if effector.target is not None and effector.target.type == "ARMATURE":
        column.prop_search(effector, "target_bone", effector.target.pose, "bones")


def _draw_live(layout: UILayout, kept: FabrikRig, *, enabled: bool) -> None:
    """The switch, how far it goes, what keeps it from working, and that renders don't have it."""
    column = layout.column(align=True)
    column.enabled = enabled
    switch = column.row()
    switch.use_property_split = False
    switch.prop(kept, "live", toggle=True, icon="PLAY")
    share = column.column()
    share.enabled = kept.live
    share.prop(kept, "influence", slider=True)
    if kept.live:
        draw_lines(layout, kept.live_trouble, "ERROR")
        layout.label(text="Off in renders: bake first", icon="INFO")


def draw_lines(layout: UILayout, sentence: str, icon: Any) -> None:
    """A sentence, in as many lines as it takes."""
    for line in short_lines(sentence):
        layout.label(text=line, icon=icon)
        icon = "BLANK1"


def _draw_range(column: UILayout, scene: bpy.types.Scene, settings: FabrikBakeSettings) -> None:
    """The frames to bake: the take's, the scene's, or its own."""
    column.prop(settings, "frame_range")
    if settings.frame_range != "AUTO":
        holder: Any = settings if settings.frame_range == "OWN" else scene
        own = column.column(align=True)
        own.enabled = holder == settings
        own.prop(holder, "frame_start", text="Start")
        own.prop(holder, "frame_end", text="End")
    column.prop(settings, "step")


def short_lines(sentence: str, most: int = 40) -> list[str]:
    """A sentence in lines that fit beside an icon into the sidebar, as wide as Blender makes it at first."""
    lines: list[str] = []
    for word in sentence.split():
        if lines and len(lines[-1]) + len(word) < most:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


CLASSES = (
    FABRIK_UL_effectors,
    FABRIK_PT_no_rig,
    FABRIK_PT_effectors,
    FABRIK_PT_effector_ways,
    FABRIK_PT_solve,
    FABRIK_PT_drag,
    FABRIK_PT_posture,
    FABRIK_PT_markers,
    FABRIK_PT_bake,
)
