"""Adding, removing and ordering effectors."""

import bpy
from bpy.props import EnumProperty, IntProperty, StringProperty
from bpy.types import Context, Operator

from ...settings.rig import POINTS, rig_settings
from ...settings.why_not import why_no_rig
from .asking import can_run, says_why_not


class FABRIK_OT_add_effector(Operator):
    """Let a point of the active bone reach for a target, a new empty at that point unless one is named"""

    bl_idname = "fabrik.add_effector"
    bl_label = "Add Effector"
    bl_options = {"REGISTER", "UNDO"}

    bone: StringProperty(name="Bone", description="The bone that is to reach the target; the active one when empty")
    point: EnumProperty(name="Point", description="Which point of the bone is to reach the target", items=POINTS[:2])
    target: StringProperty(name="Target", description="The object to reach; a new empty when there is no name")
    target_bone: StringProperty(
        name="Target Bone", description="Where the target is another armature: its bone whose head is to be reached"
    )

    @classmethod
    def poll(cls, context: Context) -> bool:
        """On an armature that can be changed."""
        return can_run(cls, why_no_rig(context.object))

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Add the effector."""
        from ...goals.effectors import add_effector

        rig = context.object
        bone = self.bone or _active_bone(rig)
        target = _object(self.target)
        effector = add_effector(context, rig, bone, point=self.point, target=target, target_bone=self.target_bone)
        self.report({"INFO"}, f"{bone!r} now reaches for {effector.target.name!r}")
        return {"FINISHED"}


class FABRIK_OT_remove_effector(Operator):
    """Remove an effector; its target object stays"""

    bl_idname = "fabrik.remove_effector"
    bl_label = "Remove Effector"
    bl_options = {"REGISTER", "UNDO"}

    index: IntProperty(
        name="Index", description="Place of the effector in the list; the active one when negative", default=-1, min=-1
    )

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Where there is an effector on an armature that can be changed."""
        reason = why_no_rig(context.object)
        if not reason and not len(rig_settings(context.object).effectors):
            reason = f"{context.object.name!r} has no effector to remove"
        return can_run(cls, reason)

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Remove the effector."""
        from ...goals.effectors import remove_effector

        kept = rig_settings(context.object)
        name = remove_effector(context.object, kept.active_effector if self.index < 0 else self.index)
        self.report({"INFO"}, f"Removed effector {name!r}")
        return {"FINISHED"}


class FABRIK_OT_order_effectors(Operator):
    """Order the effectors of a human rig by its bones' names: feet are met first, then hands, trunk and head"""

    bl_idname = "fabrik.order_effectors"
    bl_label = "Order Human Effectors"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: Context) -> bool:
        """Where there is an effector on an armature that can be changed."""
        reason = why_no_rig(context.object)
        if not reason and not len(rig_settings(context.object).effectors):
            reason = f"{context.object.name!r} has no effector to order: add some first"
        return can_run(cls, reason)

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Order them, or say in one line why not."""
        from ...goals.order import order_effectors

        done, left = order_effectors(context.object)
        for sentence in left:
            self.report({"WARNING"}, sentence)
        self.report({"INFO"}, done)
        return {"FINISHED"}


def _active_bone(rig: bpy.types.Object) -> str:
    """The name of the active bone; raises RigError where there is none."""
    from ...rig.armature import RigError

    active = rig.data.bones.active
    if active is None:
        raise RigError("Pick a bone in Pose mode first, or give its name")
    name: str = active.name
    return name


def _object(name: str) -> bpy.types.Object | None:
    """The object of that name, None for no name; raises RigError where there is none."""
    from ...rig.armature import RigError

    if not name:
        return None
    if name not in bpy.data.objects:
        raise RigError(f"There is no object {name!r}")
    return bpy.data.objects[name]


CLASSES = (FABRIK_OT_add_effector, FABRIK_OT_remove_effector, FABRIK_OT_order_effectors)
