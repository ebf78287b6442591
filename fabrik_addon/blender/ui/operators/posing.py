"""Operators that add, remove and order targets, pin bones, pose the current frame, and key it."""

from inspect import get_annotations
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty
from bpy.types import Context, Operator

from ...settings.rig import ASIDE, POINTS, FabrikRig, rig_settings
from ...settings.why_not import named, of_a_rig, why_no_own_targets, why_no_solve
from .base import Bones, Done, OnBones, OnRig, bones_of, keyword

_PINNING = (
    ("TOGGLE", "Toggle", "Unpin the bones if all of them are pinned, otherwise pin them"),
    ("PIN", "Pin", "Hold the bones at their current positions"),
    ("UNPIN", "Unpin", "Remove the pins of the bones"),
)
_ACTIVE = keyword(get_annotations(FabrikRig)["active_effector"])


@of_a_rig
def _why_no_effector(rig: bpy.types.Object) -> str:
    """Why an object has no target or pin, and what to do; "" if it has one."""
    return "" if len(rig_settings(rig).effectors) else f"{rig.name!r} has no target or pin: add one first"


class FABRIK_OT_add_effector(OnRig, Operator):
    """Make the active bone reach for a target. By default, add an empty at the bone's tail or head"""

    bl_idname = "fabrik.add_effector"
    bl_label = "Add Target"

    bone: StringProperty(
        name="Bone", description="The bone that reaches for the target. Defaults to the active bone", options=ASIDE
    )
    point: EnumProperty(name="Point", description="The point on the bone that reaches for the target", items=POINTS[:2])
    target: StringProperty(name="Target", description="The object to reach. Defaults to a new empty", options=ASIDE)
    target_bone: StringProperty(
        name="Target Bone",
        description="If the target is an armature, the bone whose head is the target",
        options=ASIDE,
    )

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...goals.effectors import add_effector
        from ...settings.selection import clicked_bone

        bone = self.bone or clicked_bone(rig).name
        target = named(bpy.data.objects, self.target, "object")
        effector = add_effector(context, rig, bone, point=self.point, target=target, target_bone=self.target_bone)
        return f"{bone!r} now reaches for {effector.target.name!r}", []


class FABRIK_OT_own_targets(OnRig, Operator):
    """Copy targets that the rig shares with another rig, for example after it was duplicated"""

    bl_idname = "fabrik.own_targets"
    bl_label = "Make Targets Single-User"
    why_not = staticmethod(why_no_own_targets)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...goals.effectors import own_targets

        return f"{rig.name!r} now has {len(own_targets(rig))} targets of its own", []


class FABRIK_OT_remove_effector(OnRig, Operator):
    """Remove the active target or pin from the list. The target object is kept"""

    bl_idname = "fabrik.remove_effector"
    bl_label = "Remove Target or Pin"
    why_not = staticmethod(_why_no_effector)

    index: _ACTIVE

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...goals.effectors import remove_effector

        name = remove_effector(rig, self.given("index").get("index", rig_settings(rig).active_effector))
        return f"Removed {name!r}", []


class FABRIK_OT_order_effectors(OnRig, Operator):
    """Set the priorities of a human rig's targets by bone name: feet first, then hands, trunk and head"""

    bl_idname = "fabrik.order_effectors"
    bl_label = "Set Human Priorities"
    why_not = staticmethod(_why_no_effector)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...goals.effectors import order_effectors

        return order_effectors(rig)


class FABRIK_OT_pin(OnBones, Operator):
    """Hold the selected bones in place while others are dragged, or unpin them"""

    bl_idname = "fabrik.pin"
    bl_label = "Pin Bones"

    action: EnumProperty(name="Action", description="Whether to pin or unpin the bones", items=_PINNING)
    point: EnumProperty(
        name="Point", description="The end of the bone that is held if its rotation is not", items=POINTS[:2]
    )
    hold_rotation: BoolProperty(
        name="Hold Rotation", description="Hold the rotation of the bones as well as their position", default=True
    )

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...goals.effectors import is_pinned, pin_bones, unpin_bones
        from ...rig.armature import check_editable

        rigs: Any = dict.fromkeys(bone.id_data for bone in bones)
        by_rig = {each: [bone.name for bone in bones if bone.id_data == each] for each in rigs}
        pinned = all(is_pinned(each, name) for each, names in by_rig.items() for name in names)
        if self.action == "UNPIN" or (self.action == "TOGGLE" and pinned):
            count = sum(unpin_bones(each, names) for each, names in by_rig.items())
            return f"Unpinned {count} of {bones_of(len(bones))}", []
        context.view_layer.update()
        for each in by_rig:
            check_editable(each)
        for each, names in by_rig.items():
            pin_bones(each, names, point=self.point, hold_rotation=self.hold_rotation)
        return f"Pinned {bones_of(len(bones))}", []

    def chosen(self, context: Context, rig: bpy.types.Object) -> Bones:
        """The named bones, else the selected bones of all armatures in Pose mode, else the active; with controls."""
        from ...settings.selection import named_bones

        if self.bones:
            return named_bones(rig, self.bones)
        selected = [] if context.mode != "POSE" else context.selected_pose_bones
        return selected or super().chosen(context, rig)


STARTS = (
    ("PRESENT", "Current Pose", "Find the pose nearest to the current pose that meets the targets"),
    ("REST", "Rest", "Start from the rest pose, so that the result depends only on the targets"),
)
_KEY_BONES = keyword(get_annotations(FabrikRig)["key_bones"])


class FABRIK_OT_pose_mode(OnRig, Operator):
    """Make the rig active and enter Pose mode to drag bones"""

    bl_idname = "fabrik.pose_mode"
    bl_label = "Enter Pose Mode"

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        if context.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        context.view_layer.objects.active = rig
        rig.select_set(True)
        bpy.ops.object.mode_set(mode="POSE")
        return f"{rig.name!r} is now active in Pose mode", []


class FABRIK_OT_solve(OnRig, Operator):
    """Pose the rig so that its bones reach their targets on the current frame"""

    bl_idname = "fabrik.solve"
    bl_label = "Solve IK"
    why_not = staticmethod(why_no_solve)

    start: EnumProperty(name="Start From", description="The pose from which to solve", items=STARTS)

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...posing.solve import solve_frame

        result = solve_frame(context, rig, self.start)
        return result.line, result.left_alone


class FABRIK_OT_key_pose(OnRig, Operator):
    """Insert keys on the current frame for bones posed since their last key, the whole body, or selected bones"""

    bl_idname = "fabrik.key_pose"
    bl_label = "Keyframe Solved Bones"

    bones: _KEY_BONES

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...posing.key_pose import key_pose

        keyed = key_pose(context, rig, self.given("bones").get("bones", rig_settings(rig).key_bones))
        return f"Keyed {len(keyed)} bones on frame {context.scene.frame_current}", []


class FABRIK_OT_snap_targets(OnRig, Operator):
    """Move targets, pole targets and pins to the current pose, so that solving continues from it without a jump"""

    bl_idname = "fabrik.snap_targets"
    bl_label = "Snap Targets to Pose"
    why_not = staticmethod(why_no_solve)

    clamp: BoolProperty(
        name="Clamp Pose",
        description="First clamp bones that exceed their limits, because solving would clamp them too",
        options=ASIDE,
    )

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...posing.snap_targets import snap_targets

        count, stays = snap_targets(context, rig, clamp=self.clamp)
        return f"Snapped {count} targets to the pose", stays


class FABRIK_OT_keep_pose(OnRig, Operator):
    """Store the current pose as the preferred pose. The rig stays close to it while it meets its targets"""

    bl_idname = "fabrik.keep_pose"
    bl_label = "Store Preferred Pose"

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...posing.stored_pose import keep_pose

        return keep_pose(rig), []


class FABRIK_OT_use_control_rig(OnRig, Operator):
    """Find the controls that move this rig's deform bones, by rotating each one slightly, and pose the rig with them"""

    bl_idname = "fabrik.use_control_rig"
    bl_label = "Set Up Control Rig"

    def run(self, context: Context, rig: bpy.types.Object) -> Done:
        from ...control.set_up import use_control_rig

        return use_control_rig(context, rig)


CLASSES = (
    FABRIK_OT_add_effector,
    FABRIK_OT_own_targets,
    FABRIK_OT_remove_effector,
    FABRIK_OT_order_effectors,
    FABRIK_OT_pin,
    FABRIK_OT_pose_mode,
    FABRIK_OT_use_control_rig,
    FABRIK_OT_solve,
    FABRIK_OT_key_pose,
    FABRIK_OT_snap_targets,
    FABRIK_OT_keep_pose,
)
