"""The sidebar's FABRIK tab. Panels draw and never compute."""

from typing import Any

import bpy
from bpy.types import Context, Panel, UILayout, UIList

from .effectors import why_no_rig
from .operators.bake import FABRIK_OT_bake
from .operators.effectors import FABRIK_OT_add_effector, FABRIK_OT_remove_effector
from .operators.import_markers import FABRIK_OT_import_markers
from .operators.solve import FABRIK_OT_solve
from .settings import FabrikBakeSettings, FabrikEffector, FabrikRig, rig_settings


class FABRIK_UL_effectors(UIList):
    """One line an effector: on or off, its bone, its target"""

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
        names.label(text=effector.target.name if effector.target else "No target", icon="EMPTY_DATA")


class InSidebar:
    """A panel in the FABRIK tab of the 3D viewport's sidebar."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "FABRIK"
    layout: UILayout


class AboutRig(InSidebar):
    """A panel about the active armature; without one it says what to do."""

    def draw(self, context: Context) -> None:
        """Draw the rig's settings."""
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        reason = why_no_rig(context.object)
        if reason:
            layout.label(text=reason, icon="INFO")
        else:
            self.draw_rig(context, layout, context.object)

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw what the panel is for."""
        raise NotImplementedError


class FABRIK_PT_effectors(AboutRig, Panel):
    """The points of the rig that reach for targets."""

    bl_idname = "FABRIK_PT_effectors"
    bl_order = 0
    bl_label = "Effectors"

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the list and the active effector's details."""
        kept = rig_settings(rig)
        active_bone = rig.data.bones.active
        row = layout.row()
        row.use_property_split = False
        row.template_list("FABRIK_UL_effectors", "", kept, "effectors", kept, "active_effector", rows=3)
        buttons = row.column(align=True)
        add = buttons.row()
        add.enabled = active_bone is not None
        add.operator(FABRIK_OT_add_effector.bl_idname, text="", icon="ADD")
        buttons.operator(FABRIK_OT_remove_effector.bl_idname, text="", icon="REMOVE")
        if active_bone is None:
            layout.label(text="Pick a bone in Pose mode, then Add", icon="INFO")
        elif not kept.effectors:
            layout.label(text=f"Add an effector for {active_bone.name}", icon="INFO")
        if 0 <= kept.active_effector < len(kept.effectors):
            _draw_effector(layout.column(), rig, kept.effectors[kept.active_effector])


class FABRIK_PT_solve(AboutRig, Panel):
    """Posing the present frame."""

    bl_idname = "FABRIK_PT_solve"
    bl_order = 2
    bl_label = "Solve"

    def draw_rig(self, context: Context, layout: UILayout, rig: bpy.types.Object) -> None:
        """Draw the root's mode and the button."""
        row = layout.row()
        row.prop(rig_settings(rig), "root", expand=True)
        starts = layout.row(align=True)
        starts.operator(FABRIK_OT_solve.bl_idname, text="Solve", icon="CON_KINEMATIC").start = "PRESENT"
        starts.operator(FABRIK_OT_solve.bl_idname, text="From Rest").start = "REST"


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
    column.prop(effector, "target")
    if effector.target is not None and effector.target.type == "ARMATURE":
        column.prop_search(effector, "target_bone", effector.target.pose, "bones")
    column.prop(effector, "weight")


def _draw_range(column: UILayout, scene: bpy.types.Scene, settings: FabrikBakeSettings) -> None:
    """The frames to bake: the scene's, or its own."""
    column.prop(settings, "use_scene_range")
    holder: Any = scene if settings.use_scene_range else settings
    own = column.column(align=True)
    own.enabled = not settings.use_scene_range
    own.prop(holder, "frame_start", text="Start")
    own.prop(holder, "frame_end", text="End")
    column.prop(settings, "step")


CLASSES = (FABRIK_UL_effectors, FABRIK_PT_effectors, FABRIK_PT_solve, FABRIK_PT_markers, FABRIK_PT_bake)
