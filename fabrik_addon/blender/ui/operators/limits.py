"""Operators that set, convert and check the limits of bones."""

from math import radians
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, FloatVectorProperty, IntProperty, StringProperty
from bpy.types import Context, Event, Operator

from ...settings.limit_values import DESCRIPTIONS, EXTRA_FIELDS, LIMIT_AXES, LIMIT_TYPES
from ...settings.why_not import rig_at_hand
from ..translations import ui_message, ui_text
from .base import Bones, Done, OnBones

# Options that are not given don't change the bone. So Blender must not reuse values of the previous call.
_ASIDE = {"SKIP_SAVE"}


class FABRIK_OT_set_limit(OnBones, Operator):
    """Limit the rotation of the selected bones. Options that are not set are kept"""

    bl_idname = "fabrik.set_limit"
    bl_label = "Set Joint Limit"

    type: EnumProperty(name="Type", description=DESCRIPTIONS["type"], items=LIMIT_TYPES, options=_ASIDE)
    cone: FloatVectorProperty(
        name="Swing",
        description=DESCRIPTIONS["cone"],
        size=4,
        unit="ROTATION",
        options=_ASIDE,
    )
    twist: FloatVectorProperty(
        name="Twist",
        description=DESCRIPTIONS["twist"],
        size=2,
        unit="ROTATION",
        options=_ASIDE,
    )
    axis: EnumProperty(name="Axis", description=DESCRIPTIONS["axis"], items=LIMIT_AXES, options=_ASIDE)
    low: FloatProperty(
        name="Min", description="Hinge: minimum rotation about its axis", subtype="ANGLE", options=_ASIDE
    )
    high: FloatProperty(
        name="Max", description="Hinge: maximum rotation about its axis", subtype="ANGLE", options=_ASIDE
    )
    window: StringProperty(
        name="Outline",
        description=f"{DESCRIPTIONS['window']} in radians, separated by commas",
        options=_ASIDE,
    )
    slide: FloatVectorProperty(
        name="Stretch",
        description=DESCRIPTIONS["slide"],
        size=2,
        min=0.01,
        max=100.0,
        default=(1.0, 1.0),
        options=_ASIDE,
    )
    stiffness: FloatProperty(
        name="Stiffness",
        description=DESCRIPTIONS["stiffness"],
        subtype="FACTOR",
        min=0.0,
        max=1.0,
        options=_ASIDE,
    )
    mass: FloatProperty(
        name="Mass",
        description=DESCRIPTIONS["mass"],
        min=-1.0,
        soft_max=0.5,
        options=_ASIDE,
    )

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import set_limits

        return set_limits(bones, **self._given()), []

    def draw(self, context: Context) -> None:
        self.layout.use_property_split = True
        self.layout.prop(self, "type")
        for name in self._given():
            if name != "type":
                self.layout.prop(self, name)

    def _given(self) -> dict[str, Any]:
        """The keywords that were given, with their values."""
        names = ("type", "cone", "twist", "axis", "low", "high", "window", *EXTRA_FIELDS)
        given = self.given(*names)
        if "window" in given:
            from ...limits.editing import numbers_in

            given["window"] = numbers_in(given["window"])
        return given


class FABRIK_OT_clear_limit(OnBones, Operator):
    """Remove the limits of the selected bones. On a library override, they are turned off instead"""

    bl_idname = "fabrik.clear_limit"
    bl_label = "Clear Joint Limit"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import clear_limits

        return clear_limits(bones), []


class FABRIK_OT_copy_limit(OnBones, Operator):
    """Copy the limit of the active bone to the selected bones"""

    bl_idname = "fabrik.copy_limit"
    bl_label = "Copy Limit to Selected"

    source: StringProperty(
        name="From", description="The bone whose limit is copied. Defaults to the active bone", options=_ASIDE
    )

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import copy_limit
        from ...settings.selection import chosen_bone

        return copy_limit(chosen_bone(context, rig, self.source), bones), []


class FABRIK_OT_mirror_limits(OnBones, Operator):
    """Copy the limits of the selected bones to the other side. If both sides are selected, copy from the active side"""

    bl_idname = "fabrik.mirror_limits"
    bl_label = "Mirror Limits"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import mirror_limits

        return mirror_limits(rig, bones)


class _OnPolygon(OnBones):
    """An operator on the outline of one bone's polygon limit."""

    def chosen(self, context: Context, rig: bpy.types.Object) -> Bones:
        """The named bone, else the active bone."""
        from ...settings.selection import chosen_bone

        return [chosen_bone(context, rig, self.bones)]


class FABRIK_OT_add_limit_point(_OnPolygon, Operator):
    """Add a point to the outline of a polygon limit, at the bone's current swing or on the longest edge"""

    bl_idname = "fabrik.add_limit_point"
    bl_label = "Add Limit Point"

    from_pose: BoolProperty(name="From Pose", description="Put the point at the bone's current swing", options=_ASIDE)

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import add_point

        return add_point(bones[0], from_pose=self.from_pose), []


class _OnCorner(_OnPolygon):
    """An operator on one point of the outline."""

    index: IntProperty(name="Index", description="Index of the point, starting at 0", min=0, options=_ASIDE)


class FABRIK_OT_move_limit_point(_OnCorner, Operator):
    """Move a point of a polygon limit to the bone's current swing"""

    bl_idname = "fabrik.move_limit_point"
    bl_label = "Set Limit Point from Pose"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import move_point

        return move_point(bones[0], self.index), []


class FABRIK_OT_remove_limit_point(_OnCorner, Operator):
    """Remove a point from the outline of a polygon limit"""

    bl_idname = "fabrik.remove_limit_point"
    bl_label = "Remove Limit Point"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import remove_point

        return remove_point(bones[0], self.index), []


class FABRIK_OT_limits_from_ik(OnBones, Operator):
    """Convert IK limits, IK locks and local Limit Rotation constraints of the selected bones to joint limits"""

    bl_idname = "fabrik.limits_from_ik"
    bl_label = "Limits from IK and Constraints"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.constraints import limits_from_ik

        return limits_from_ik(bones)


class FABRIK_OT_limits_from_action(OnBones, Operator):
    """Limit the selected bones to their rotations in the action or NLA strips"""

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

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.action import limits_from_action

        return limits_from_action(context, rig, bones, self.margin, self.shape)


class FABRIK_OT_clamp_pose(OnBones, Operator):
    """Rotate the selected bones to the nearest rotation within their limits"""

    bl_idname = "fabrik.clamp_pose"
    bl_label = "Clamp Pose to Limits"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.action import clamp_pose

        return clamp_pose(context, bones)


class FABRIK_OT_check_action(OnBones, Operator):
    """List bones that exceed limits in the action or NLA strips, with frames. Checks all bones if none is selected"""

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
        from ...limits.action import check_action, fix_action, what_plays

        if self.mend:
            found, left = fix_action(context, rig, bones)
        else:
            found = left = check_action(context, rig, bones)
        if not found:
            return f"No limit is exceeded by {what_plays(rig)}", []
        count = len({int(frame) for breach in found for frame in breach.frames})
        what = "Fixed bones outside their limits" if self.mend else "Bones outside their limits"
        return f"{what}: {len(found)}, frames: {count}", [breach.line for breach in left]


class FABRIK_OT_limits_to_constraints(OnBones, Operator):
    """Add Limit Rotation constraints that approximate the limits of the selected bones"""

    bl_idname = "fabrik.limits_to_constraints"
    bl_label = "Limits to Constraints"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.constraints import limits_to_constraints

        return limits_to_constraints(bones)


class FABRIK_OT_limit_preset(OnBones, Operator):
    """Set the limits of human joints. The joints are identified by bone names and the rest pose"""

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
        from ...limits.editing import doubt_of_human

        doubt = "" if self.anyway else doubt_of_human(rig_at_hand(context))
        if doubt:
            self.anyway = True
            manager = context.window_manager
            title, go_on = ui_text("Apply Human Limits to This Rig?"), ui_text("Apply")
            return set(manager.invoke_confirm(self, event, title=title, message=ui_message(doubt), confirm_text=go_on))
        return self.execute(context)

    def chosen(self, context: Context, rig: bpy.types.Object) -> Bones:
        """The named bones, else the selected bones with Only Selected, else all bones."""
        if self.bones or self.only_selected:
            return super().chosen(context, rig)
        return list(rig.pose.bones)

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import apply_preset, described, doubt_of_human
        from ...rig.armature import RigError

        doubt = "" if self.anyway else doubt_of_human(rig)
        if doubt:
            raise RigError(f"{doubt}; turn Force on to apply the limits")
        return described(apply_preset(rig, bones))


CLASSES = (
    FABRIK_OT_set_limit,
    FABRIK_OT_clear_limit,
    FABRIK_OT_copy_limit,
    FABRIK_OT_mirror_limits,
    FABRIK_OT_add_limit_point,
    FABRIK_OT_move_limit_point,
    FABRIK_OT_remove_limit_point,
    FABRIK_OT_limits_from_ik,
    FABRIK_OT_limits_from_action,
    FABRIK_OT_clamp_pose,
    FABRIK_OT_check_action,
    FABRIK_OT_limits_to_constraints,
    FABRIK_OT_limit_preset,
)
