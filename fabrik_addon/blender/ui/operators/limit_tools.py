"""Sets limits from existing data or for humans, and applies limits to poses and actions."""

from math import radians
from typing import TYPE_CHECKING

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty
from bpy.types import Context, Event, Operator

from ...settings.why_not import rig_at_hand
from ..translations import said, told
from .base import Bones, Done, OnBones

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...limits.check_action import Breach


class FABRIK_OT_limits_from_ik(OnBones, Operator):
    """Convert IK limits, IK locks and local Limit Rotation constraints of the selected bones to joint limits"""

    bl_idname = "fabrik.limits_from_ik"
    bl_label = "Limits from IK and Constraints"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.constraints import limits_from_ik

        return limits_from_ik(bones)


class FABRIK_OT_limits_from_action(OnBones, Operator):
    """Limit the selected bones to the rotations in the current action"""

    bl_idname = "fabrik.limits_from_action"
    bl_label = "Limits from Action"

    shape: EnumProperty(
        name="Shape",
        description="Type of limit",
        items=(
            ("FITTED", "Hinge or Ball", "A hinge if the bone rotates about one axis only, otherwise a ball"),
            ("POLYGON", "Polygon", "The convex outline of all swings, and the range of twist"),
        ),
    )
    margin: FloatProperty(
        name="Margin",
        description="Angle added to each side of the range in the action",
        subtype="ANGLE",
        default=radians(5.0),
        min=0.0,
        soft_max=radians(45.0),
    )
    hinge_tolerance: FloatProperty(
        name="Hinge Tolerance",
        description="Maximum rotation off a single axis for a hinge",
        subtype="ANGLE",
        default=radians(3.0),
        min=0.0,
        soft_max=radians(20.0),
    )

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.from_action import limits_from_action

        return limits_from_action(context, rig, bones, self.margin, self.hinge_tolerance, self.shape)


class FABRIK_OT_clamp_pose(OnBones, Operator):
    """Rotate the selected bones to the nearest rotation within their limits"""

    bl_idname = "fabrik.clamp_pose"
    bl_label = "Clamp Pose to Limits"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.check_action import clamp_pose

        return clamp_pose(context, bones)


class FABRIK_OT_check_action(OnBones, Operator):
    """List bones and frames of the current action that exceed limits. Checks all bones if none is selected"""

    bl_idname = "fabrik.check_action"
    bl_label = "Check Action Limits"

    mend: BoolProperty(name="Fix Violations", description="Insert keys to clamp the animation to the limits")

    def chosen(self, context: Context, rig: bpy.types.Object) -> Bones:
        """The named bones, else the selected bones, else all bones."""
        from ...settings.selection import selected_bones

        if self.bones:
            return super().chosen(context, rig)
        return selected_bones(context, rig) or list(rig.pose.bones)

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.check_action import check_action, mend_action

        if not self.mend:
            found = check_action(context, rig, bones)
            return _summary(found, "exceed their limits"), [breach.line for breach in found]
        mended, left = mend_action(context, rig, bones)
        return _summary(mended, "exceeded their limits and were fixed"), [breach.line for breach in left]


class FABRIK_OT_limits_to_constraints(OnBones, Operator):
    """Add Limit Rotation constraints that approximate the limits of the selected bones"""

    bl_idname = "fabrik.limits_to_constraints"
    bl_label = "Limits to Constraints"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.constraints import limits_to_constraints

        return limits_to_constraints(bones)


class FABRIK_OT_limit_preset(OnBones, Operator):
    """Set the limits of human joints on a human rig, identified by bone names and rest pose"""

    bl_idname = "fabrik.limit_preset"
    bl_label = "Apply Human Limits"

    only_selected: BoolProperty(name="Only Selected", description="Change only selected bones", default=False)
    anyway: BoolProperty(
        name="Force",
        description="Apply the limits even if the rig does not look human",
        default=False,
        options={"SKIP_SAVE"},
    )

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Ask first if the rig does not look like a human."""
        from ...limits.preset import doubt_of_human

        doubt = "" if self.anyway else doubt_of_human(rig_at_hand(context))
        if doubt:
            self.anyway = True
            manager = context.window_manager
            title, go_on = said("Apply Human Limits to This Rig?"), said("Apply")
            return set(manager.invoke_confirm(self, event, title=title, message=told(doubt), confirm_text=go_on))
        return self.execute(context)

    def chosen(self, context: Context, rig: bpy.types.Object) -> Bones:
        """The named bones, else the selected bones with Only Selected, else all bones."""
        if self.bones or self.only_selected:
            return super().chosen(context, rig)
        return list(rig.pose.bones)

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.preset import apply_preset, described, doubt_of_human
        from ...rig.armature import RigError

        doubt = "" if self.anyway else doubt_of_human(rig)
        if doubt:
            raise RigError(f"{doubt}; turn Force on to apply the limits")
        return described(apply_preset(rig, bones))


def _summary(found: "Sequence[Breach]", what: str) -> str:
    """The numbers of bones and frames in words."""
    if not found:
        return "The action is within all limits"
    frames = {int(frame) for breach in found for frame in breach.frames}
    return f"{len(found)} bones on {len(frames)} frames {what}"


CLASSES = (
    FABRIK_OT_limits_from_ik,
    FABRIK_OT_limits_from_action,
    FABRIK_OT_clamp_pose,
    FABRIK_OT_check_action,
    FABRIK_OT_limits_to_constraints,
    FABRIK_OT_limit_preset,
)
