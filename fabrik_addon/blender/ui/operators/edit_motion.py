"""Operators that edit and show motion."""

from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty
from bpy.types import Context, Event, Operator

from ...settings.control import control_rig
from ...settings.in_use import seen
from ...settings.rig import POINTS, rig_settings
from ...settings.why_not import named, of_a_rig
from ..overlays.later import shown_motion
from .base import Done, OnRig, folded

# The default length of a hold in frames.
_LENGTH = 20


@of_a_rig
def _why_no_hold(rig: bpy.types.Object) -> str:
    """Why an object has no hold, and what to do; "" if it has one."""
    return "" if len(rig_settings(rig).holds) else f"{rig.name!r} has no hold: add one first"


class FABRIK_OT_add_hold(OnRig, Operator):
    """Keep a hand or foot in place over a range of frames by changing keys within the joint limits"""

    bl_idname = "fabrik.add_hold"
    bl_label = "Add Hold"

    bone: StringProperty(
        name="Bone", description="The bone to hold. Defaults to the active bone", options={"SKIP_SAVE"}
    )
    point: EnumProperty(name="Point", description="The end of the bone that is held", items=POINTS[:2])
    hold_rotation: BoolProperty(name="Hold Rotation", description="Hold the rotation as well", default=True)
    first: IntProperty(name="First", description="First frame of the hold. Defaults to the current frame")
    last: IntProperty(name="Last", description="Last frame of the hold")
    ease: IntProperty(name="Ease", description="Frames to ease in and out of the hold", default=10, min=0)
    target: StringProperty(name="Object", description="The object that the bone stays with. Defaults to world space")
    target_bone: StringProperty(name="Object's Bone", description="If the object is an armature, the bone to stay with")

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Show a dialog for the frames; by default the hold starts at the current frame."""
        given = self.given("first", "last")
        self.first = given.get("first", context.scene.frame_current)
        self.last = given.get("last", self.first + _LENGTH)
        asked: Any = context.window_manager.invoke_props_dialog(self)
        return asked

    def draw(self, context: Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        for name in ("first", "last", "ease"):
            layout.prop(self, name)
        layout.prop_search(self, "target", context.scene, "objects")
        # If two objects have the same name, `bpy.data` prefers the local one, like `run`. Scenes do not.
        target: bpy.types.Object | None = bpy.data.objects.get(self.target)
        if target is not None and target.type == "ARMATURE":
            layout.prop_search(self, "target_bone", target.data, "bones")
        advanced = folded(layout, "Advanced", "hold")
        if advanced is not None:
            advanced.prop(self, "point")
            advanced.prop(self, "hold_rotation")

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...edit.holds import HoldSettings, add_hold
        from ...settings.selection import clicked_bone

        bone = self.bone or clicked_bone(rig).name
        target = named(bpy.data.objects, self.target, "object")
        settings = HoldSettings(self.point, self.hold_rotation, self.ease, target, self.target_bone)
        missed = add_hold(context, rig, bone, (self.first, self.last), settings)
        return f"{bone!r} is now held from frame {self.first} to {self.last}", [missed] if missed else []


class FABRIK_OT_remove_hold(OnRig, Operator):
    """Restore the keys that the hold replaced. Keys changed since then are kept"""

    bl_idname = "fabrik.remove_hold"
    bl_label = "Remove Hold"
    why_not = staticmethod(_why_no_hold)

    index: IntProperty(name="Number", description="Index of the hold, starting at 0", min=0)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...edit.holds import remove_hold

        name, left = remove_hold(context, rig, self.index)
        return f"Removed hold {name!r}", [left] if left else []


class FABRIK_OT_hold_contacts(OnRig, Operator):
    """Hold the feet while they are in contact with the floor. Replaces holds that this operator added before"""

    bl_idname = "fabrik.hold_contacts"
    bl_label = "Hold Planted Feet"

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Ask for confirmation before keys are changed."""
        asked: Any = context.window_manager.invoke_props_dialog(self)
        return asked

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...edit.holds import hold_feet

        said = hold_feet(context, rig)
        return f"Holds added: {len(said)}", list(filter(None, said))


def has_to_be_played(rig: bpy.types.Object) -> bool:
    """Whether strips or controls move a rig, so that curves alone don't give its bones' positions."""
    animation = rig.animation_data
    return animation is not None and (animation.action is None or control_rig(rig) is not None)


def play_again(context: Context, spread: int) -> None:
    """Update trails after a drag that changed other frames, if Blender must play the frames for them."""
    rig = shown_motion(context) if spread else None
    if rig is not None and has_to_be_played(rig):
        from ..overlays.motion import update_trails

        update_trails(context, rig)


@of_a_rig
def _why_no_trails(rig: bpy.types.Object) -> str:
    """Why an object's trails can't be updated, and what to do; "" if they can."""
    return "" if seen(rig).show_trails else f"No trails of {rig.name!r} are shown: turn on Trails first"


class FABRIK_OT_work_out_trails(OnRig, Operator):
    """Recalculate trails of control rigs and NLA strips by playing the frames"""

    bl_idname = "fabrik.work_out_trails"
    bl_label = "Update Trails"
    why_not = staticmethod(_why_no_trails)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...rig.armature import RigError
        from ..overlays.motion import update_trails

        if not update_trails(context, rig):
            raise RigError(f"{rig.name!r} has no keys, so nothing moves: bake or key a motion first")
        return f"Updated the trails of {rig.name!r}", []


CLASSES = (
    FABRIK_OT_add_hold,
    FABRIK_OT_remove_hold,
    FABRIK_OT_hold_contacts,
    FABRIK_OT_work_out_trails,
)
