"""Operators that set, convert and check the limits of bones."""

from math import radians
from typing import TYPE_CHECKING, Any

import bpy
from bpy.types import Context, Event, Object, Operator

from ... import OnUse
from ...settings.declare import Bool, Enum, Float, FloatVector, Int, String
from ...settings.limit_values import FIELDS, LIMIT_AXES, LIMIT_TYPES
from ...settings.rig import ASIDE
from ...settings.why_not import rig_at_hand
from ..translations import ui_message, ui_text
from .base import Bones, Done, OnBones, ask_first

if TYPE_CHECKING:
    from ...limits import action, editing
    from ...rig import armature
    from ...settings import selection
else:
    action, editing = map(OnUse, (".limits.action", ".limits.editing"))
    armature, selection = OnUse(".rig.armature"), OnUse(".settings.selection")


def _value(declare: Any, name: str, field: str, **more: Any) -> Any:
    """Declare an argument for a value of a limit. Blender must not reuse it: bones keep values that aren't given."""
    return declare(name, FIELDS[field].description, options=ASIDE, **more)


class FABRIK_OT_set_limit(OnBones, Operator):
    """Limit the rotation of the selected bones. Options that are not set are kept"""

    bl_label = "Set Joint Limit"
    described_by = ("axis", "slide")

    type: _value(Enum, "Type", "type", items=LIMIT_TYPES)
    cone: _value(FloatVector, "Swing", "cone", size=4, unit="ROTATION")
    twist: _value(FloatVector, "Twist", "twist", size=2, unit="ROTATION")
    axis: _value(Enum, "Axis", "axis", items=LIMIT_AXES)
    low: Float("Min", "Hinge: minimum rotation about its axis", subtype="ANGLE", options=ASIDE)
    high: Float("Max", "Hinge: maximum rotation about its axis", subtype="ANGLE", options=ASIDE)
    window: String("Outline", f"{FIELDS['window'].description} in radians, separated by commas", options=ASIDE)
    slide: _value(FloatVector, "Stretch", "slide", size=2, min=0.01, max=100.0, default=(1.0, 1.0))
    stiffness: _value(Float, "Stiffness", "stiffness", subtype="FACTOR", min=0.0, max=1.0)
    mass: _value(Float, "Mass", "mass", min=-1.0, soft_max=0.5)

    def run(self, context: Context, rig: Object) -> Done:
        values = self.given(*FABRIK_OT_set_limit.__annotations__)
        if "window" in values:
            values["window"] = editing.numbers_in(values["window"])
        return editing.set_limits(self.chosen(context, rig), **values), []

    def draw(self, context: Context) -> None:
        self.layout.use_property_split = True
        # The type is always shown, and comes first.
        for name in dict.fromkeys(["type", *self.given(*FABRIK_OT_set_limit.__annotations__)]):
            self.layout.prop(self, name)


class FABRIK_OT_clear_limit(OnBones, Operator):
    """Remove the limits of the selected bones. On a library override, they are turned off instead"""

    bl_label = "Clear Joint Limit"

    def run(self, context: Context, rig: Object) -> Done:
        return editing.clear_limits(self.chosen(context, rig)), []


class FABRIK_OT_copy_limit(OnBones, Operator):
    """Copy the limit of the active bone to the selected bones"""

    bl_label = "Copy Limit to Selected"

    source: String("From", "The bone whose limit is copied. Defaults to the active bone", options=ASIDE)

    def run(self, context: Context, rig: Object) -> Done:
        bones = self.chosen(context, rig)
        return editing.copy_limit(selection.chosen_bone(context, rig, self.source), bones), []


class FABRIK_OT_mirror_limits(OnBones, Operator):
    """Copy the limits of the selected bones to the other side. If both sides are selected, copy from the active side"""

    bl_label = "Mirror Limits"

    def run(self, context: Context, rig: Object) -> Done:
        return editing.mirror_limits(rig, self.chosen(context, rig))


class OnPolygon(OnBones):
    """An operator on the outline of one bone's polygon limit."""

    def chosen(self, context: Context, rig: Object) -> Bones:
        """The named bone, else the active bone."""
        return [selection.chosen_bone(context, rig, self.bones)]


class FABRIK_OT_add_limit_point(OnPolygon, Operator):
    """Add a point to the outline of a polygon limit, at the bone's current swing or on the longest edge"""

    bl_label = "Add Limit Point"

    from_pose: Bool("From Pose", "Put the point at the bone's current swing", options=ASIDE)

    def run(self, context: Context, rig: Object) -> Done:
        return editing.add_point(self.chosen(context, rig)[0], from_pose=self.from_pose), []


class OnCorner(OnPolygon):
    """An operator on one point of the outline."""

    index: Int("Index", "Index of the point, starting at 0", min=0, options=ASIDE)


class FABRIK_OT_move_limit_point(OnCorner, Operator):
    """Move a point of a polygon limit to the bone's current swing"""

    bl_label = "Set Limit Point from Pose"

    def run(self, context: Context, rig: Object) -> Done:
        return editing.move_point(self.chosen(context, rig)[0], self.index), []


class FABRIK_OT_remove_limit_point(OnCorner, Operator):
    """Remove a point from the outline of a polygon limit"""

    bl_label = "Remove Limit Point"

    def run(self, context: Context, rig: Object) -> Done:
        return editing.remove_point(self.chosen(context, rig)[0], self.index), []


class FABRIK_OT_limits_from_ik(OnBones, Operator):
    """Convert IK limits, IK locks and local Limit Rotation constraints of the selected bones to joint limits"""

    bl_label = "Limits from IK and Constraints"

    def run(self, context: Context, rig: Object) -> Done:
        return editing.limits_from_ik(self.chosen(context, rig))


class FABRIK_OT_limits_from_action(OnBones, Operator):
    """Limit the selected bones to their rotations in the action or NLA strips"""

    bl_label = "Limits from Action"

    shape: Enum(
        "Shape",
        "Type of limit",
        items=(
            ("FITTED", "Hinge or Ball", "A hinge if the bone rotates about one axis only, otherwise a ball"),
            ("POLYGON", "Polygon", "The convex outline of all swings, and the range of twist"),
        ),
    )
    margin: Float(
        "Margin",
        "Angle added to each side of the range in the action",
        subtype="ANGLE",
        default=radians(5.0),
        min=0.0,
        soft_max=radians(45.0),
    )

    def run(self, context: Context, rig: Object) -> Done:
        return action.limits_from_action(context, rig, self.chosen(context, rig), self.margin, self.shape)


class FABRIK_OT_clamp_pose(OnBones, Operator):
    """Rotate the selected bones to the nearest rotation within their limits"""

    bl_label = "Clamp Pose to Limits"

    def run(self, context: Context, rig: Object) -> Done:
        return action.clamp_pose(context, self.chosen(context, rig))


class FABRIK_OT_check_action(OnBones, Operator):
    """List bones that exceed limits in the action or NLA strips, and when. Checks all bones if none is selected"""

    bl_label = "Check Action Limits"
    described_by = ("mend",)
    # Checking changes nothing.
    bl_options: Any = {"REGISTER"}

    mend: Bool("Fix Violations", "Insert keys to clamp the animation to the limits")

    def chosen(self, context: Context, rig: Object) -> Bones:
        """The named bones, else the selected bones, else all bones."""
        if self.bones:
            return super().chosen(context, rig)
        return selection.selected_bones(context, rig) or list(rig.pose.bones)

    def run(self, context: Context, rig: Object) -> Done:
        bones = self.chosen(context, rig)
        if self.mend:
            found, left = action.fix_action(context, rig, bones)
            # With this name, "Adjust Last Operation" undoes it.
            bpy.ops.ed.undo_push(message=self.bl_label)
        else:
            found = left = action.check_action(context, rig, bones)
        if not found:
            return f"No limit is exceeded by {action.what_plays(rig)}", []
        count = len({int(frame) for breach in found for frame in breach.frames})
        what = "Fixed bones outside their limits" if self.mend else "Bones outside their limits"
        return f"{what}: {len(found)}, frames: {count}", [breach.line for breach in left]


class FABRIK_OT_limits_to_constraints(OnBones, Operator):
    """Add Limit Rotation constraints that approximate the limits of the selected bones"""

    bl_label = "Limits to Constraints"

    def run(self, context: Context, rig: Object) -> Done:
        return editing.limits_to_constraints(self.chosen(context, rig))


class FABRIK_OT_limit_preset(OnBones, Operator):
    """Set the limits of human joints. The joints are identified by bone names and the rest pose"""

    bl_label = "Apply Human Limits"

    only_selected: Bool("Only Selected", "Change only selected bones", default=False)
    anyway: Bool("Force", "Apply the limits even if the rig does not look human", default=False, options=ASIDE)

    def invoke(self, context: Context, event: Event) -> set[str]:
        """Ask first if the rig does not look like a human."""
        if doubt := "" if self.anyway else editing.doubt_of_human(rig_at_hand(context)):
            self.anyway = True
            return ask_first(self, context, event, ui_text("Apply Human Limits to This Rig?"), ui_message(doubt))
        return self.execute(context)

    def chosen(self, context: Context, rig: Object) -> Bones:
        """The named bones, else the selected bones with Only Selected, else all bones."""
        if self.bones or self.only_selected:
            return super().chosen(context, rig)
        return list(rig.pose.bones)

    def run(self, context: Context, rig: Object) -> Done:
        if doubt := "" if self.anyway else editing.doubt_of_human(rig):
            raise armature.RigError(f"{doubt}; turn Force on to apply the limits")
        return editing.described(editing.apply_preset(rig, self.chosen(context, rig)))


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
