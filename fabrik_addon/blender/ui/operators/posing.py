"""Operators that enter Pose mode, pose the current frame, and set keys and targets from poses."""

from inspect import get_annotations

import bpy
from bpy.props import BoolProperty, EnumProperty
from bpy.types import Context, Operator

from ...settings.rig import ASIDE, FabrikRig, rig_settings
from ...settings.why_not import why_no_solve
from .base import Done, OnRig, keyword

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
        from ....core.errors import bones_of
        from ...posing.key_pose import key_pose

        keyed = key_pose(context, rig, self.given("bones").get("bones", rig_settings(rig).key_bones))
        return f"Keyed {bones_of(len(keyed))} on frame {context.scene.frame_current}", []


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
        return f"Targets snapped to the pose: {count}", stays


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
    FABRIK_OT_pose_mode,
    FABRIK_OT_use_control_rig,
    FABRIK_OT_solve,
    FABRIK_OT_key_pose,
    FABRIK_OT_snap_targets,
    FABRIK_OT_keep_pose,
)
