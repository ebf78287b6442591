"""Holding bones where they are, over frames."""

from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty
from bpy.types import Context, Event, Operator

from ....settings.effector import POINTS
from ....settings.rig import rig_settings
from ....settings.why_not import named, of_a_rig
from ..base import Done, OnRig

# Frames that a hold is long where nothing else is said.
_LENGTH = 20


@of_a_rig
def _why_no_hold(rig: bpy.types.Object) -> str:
    """What keeps an object from having a hold, and what to do; "" where it has one."""
    return "" if len(rig_settings(rig).holds) else f"{rig.name!r} has no hold: add one first"


class FABRIK_OT_add_hold(OnRig, Operator):
    """Keep a hand or a foot where it is from one frame to another: its keys are changed, with the limits kept"""

    bl_idname = "fabrik.add_hold"
    bl_label = "Hold"

    bone: StringProperty(name="Bone", description="The bone to hold; the active one when empty", options={"SKIP_SAVE"})
    point: EnumProperty(name="Point", description="Which of its ends stays where it is", items=POINTS[:2])
    hold_rotation: BoolProperty(name="Hold Rotation", description="Hold its rotation as well", default=True)
    first: IntProperty(name="First", description="The frame from which it is held; this one unless given")
    last: IntProperty(name="Last", description="The frame to which it is held")
    ease: IntProperty(
        name="Ease", description="Frames over which it comes there before and leaves after", default=10, min=0
    )
    target: StringProperty(name="Object", description="What it stays with; the world when there is no name")
    target_bone: StringProperty(name="Bone of the Object", description="The bone of that armature that it stays with")

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Ask for the frames: from this one on, unless they are given."""
        given = self.given("first", "last")
        self.first = given.get("first", context.scene.frame_current)
        self.last = given.get("last", self.first + _LENGTH)
        asked: Any = context.window_manager.invoke_props_dialog(self)
        return asked

    def draw(self, context: Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        for name in ("first", "last", "ease", "point", "hold_rotation"):
            layout.prop(self, name)
        layout.prop_search(self, "target", context.scene, "objects")
        # Of two of a name Blender has the file's own first among its data, as `run` will, but not in a scene.
        target: bpy.types.Object | None = bpy.data.objects.get(self.target)
        if target is not None and target.type == "ARMATURE":
            layout.prop_search(self, "target_bone", target.data, "bones")

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ....edit.holds import HoldSettings, add_hold
        from ....settings.selection import clicked_bone

        bone = self.bone or clicked_bone(rig).name
        target = named(bpy.data.objects, self.target, "object")
        settings = HoldSettings(self.point, self.hold_rotation, self.ease, target, self.target_bone)
        missed = add_hold(context, rig, bone, (self.first, self.last), settings)
        return f"{bone!r} is held from frame {self.first} to {self.last}", [missed] if missed else []


class FABRIK_OT_remove_hold(OnRig, Operator):
    """Put the keys back that the hold has replaced; keys that were set or changed since stay"""

    bl_idname = "fabrik.remove_hold"
    bl_label = "Remove Hold"
    why_not = staticmethod(_why_no_hold)

    index: IntProperty(name="Number", description="Which of the holds, from 0", min=0)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ....edit.holds import remove_hold

        name, left = remove_hold(context, rig, self.index)
        return f"Removed hold {name!r}", [left] if left else []


class FABRIK_OT_hold_contacts(OnRig, Operator):
    """Hold the feet while they are in contact with the floor. Holds that this has made before are removed first"""

    bl_idname = "fabrik.hold_contacts"
    bl_label = "Hold Standing Feet"

    ease: IntProperty(
        name="Ease",
        description="Frames at most over which a foot comes to its place and leaves it; half a second unless given",
        min=1,
        soft_max=120,
    )

    def invoke(self, context: Context, _event: Event) -> set[str]:
        """Ask before the keys change."""
        if not self.given("ease"):
            self.ease = max(1, round(0.5 * context.scene.render.fps / context.scene.render.fps_base))
        asked: Any = context.window_manager.invoke_props_dialog(self)
        return asked

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ....edit.holds import hold_feet

        said = hold_feet(context, rig, self.given("ease").get("ease"))
        return f"Holds added: {len(said)}", list(filter(None, said))


CLASSES = (FABRIK_OT_add_hold, FABRIK_OT_remove_hold, FABRIK_OT_hold_contacts)
