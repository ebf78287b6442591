"""Setting, clearing, copying and mirroring joint limits."""

from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, FloatVectorProperty, IntProperty, StringProperty
from bpy.types import Context, Operator

from ...settings.limit_values import BESIDE_LIMIT, LIMIT_AXES, LIMIT_TYPES
from .base import Bones, Done, OnBones

# What is not given keeps what the bone has, so nothing may be left over from the call before.
_ASIDE = {"SKIP_SAVE"}


class FABRIK_OT_set_limit(OnBones, Operator):
    """Limit how far the selected bones may turn; what is not given stays as it is"""

    bl_idname = "fabrik.set_limit"
    bl_label = "Set Limit"

    type: EnumProperty(name="Type", description="Kind of joint", items=LIMIT_TYPES, options=_ASIDE)
    cone: FloatVectorProperty(
        name="Cone",
        description="Ball: how far the bone may lean toward its +X, +Z, -X and -Z",
        size=4,
        unit="ROTATION",
        options=_ASIDE,
    )
    twist: FloatVectorProperty(
        name="Twist",
        description="Ball and polygon: lowest and highest twist about the bone",
        size=2,
        unit="ROTATION",
        options=_ASIDE,
    )
    axis: EnumProperty(
        name="Axis", description="Hinge: the bone's axis that it turns about", items=LIMIT_AXES, options=_ASIDE
    )
    low: FloatProperty(name="Low", description="Hinge: lowest turn about its axis", subtype="ANGLE", options=_ASIDE)
    high: FloatProperty(name="High", description="Hinge: highest turn about its axis", subtype="ANGLE", options=_ASIDE)
    window: StringProperty(
        name="Window",
        description="Polygon: X and Z leans of its corners by turns, in radians, separated by commas",
        options=_ASIDE,
    )
    slide: FloatVectorProperty(
        name="Stretch",
        description="Least and greatest length that the bone may stretch to where targets can't be met else, "
        "as factors of its own; 1 and 1: it keeps its length",
        size=2,
        min=0.01,
        max=100.0,
        default=(1.0, 1.0),
        options=_ASIDE,
    )
    stiffness: FloatProperty(
        name="Stiffness",
        description="How much the bone keeps its rotation while others turn: 0 as its mass lets it, 1 wholly",
        subtype="FACTOR",
        min=0.0,
        max=1.0,
        options=_ASIDE,
    )
    mass: FloatProperty(
        name="Mass",
        description="Share of the body's mass that the bone carries; below 0: by its name or its size",
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
        """The keywords given."""
        names = ("type", "cone", "twist", "axis", "low", "high", "window", *BESIDE_LIMIT)
        given = self.given(*names)
        if "window" in given:
            from ...limits.editing import numbers_in

            given["window"] = numbers_in(given["window"])
        return given


class FABRIK_OT_clear_limit(OnBones, Operator):
    """Let the selected bones turn freely; on a library override the limit stays, switched off"""

    bl_idname = "fabrik.clear_limit"
    bl_label = "Clear Limit"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import clear_limits

        return clear_limits(bones), []


class FABRIK_OT_copy_limit(OnBones, Operator):
    """Give the selected bones the limit of the active one"""

    bl_idname = "fabrik.copy_limit"
    bl_label = "Copy Limit to Selected"

    source: StringProperty(
        name="From", description="The bone whose limit is copied; the active one when empty", options=_ASIDE
    )

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.editing import copy_limit
        from ...settings.selection import chosen_bone

        return copy_limit(chosen_bone(context, rig, self.source), bones), []


class FABRIK_OT_mirror_limits(OnBones, Operator):
    """Give the bones of the other side the limits of the selected ones; with both selected, the active side counts"""

    bl_idname = "fabrik.mirror_limits"
    bl_label = "Mirror Limits"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.mirror import mirror_limits

        return mirror_limits(rig, bones)


class _OnPolygon(OnBones):
    """An operator on a corner of one bone's window."""

    def chosen(self, context: Context, rig: bpy.types.Object) -> Bones:
        """The bone named, else the active one."""
        from ...settings.selection import chosen_bone

        return [chosen_bone(context, rig, self.bones)]


class FABRIK_OT_add_limit_point(_OnPolygon, Operator):
    """Add a corner to the window of a polygon limit, in the middle of its longest edge or where the bone leans now"""

    bl_idname = "fabrik.add_limit_point"
    bl_label = "Add Point"

    from_pose: BoolProperty(name="From Pose", description="Put the corner where the bone leans now", options=_ASIDE)

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.corners import add_point

        return add_point(bones[0], from_pose=self.from_pose), []


class _OnCorner(_OnPolygon):
    """An operator on one of its corners."""

    index: IntProperty(name="Index", description="Place of the corner, from 0", min=0, options=_ASIDE)


class FABRIK_OT_move_limit_point(_OnCorner, Operator):
    """Move a corner of the window of a polygon limit to where the bone leans now"""

    bl_idname = "fabrik.move_limit_point"
    bl_label = "Move Point Here"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.corners import move_point

        return move_point(bones[0], self.index), []


class FABRIK_OT_remove_limit_point(_OnCorner, Operator):
    """Remove a corner from the window of a polygon limit"""

    bl_idname = "fabrik.remove_limit_point"
    bl_label = "Remove Point"

    def run_on(self, context: Context, rig: bpy.types.Object, bones: Bones) -> Done:
        from ...limits.corners import remove_point

        return remove_point(bones[0], self.index), []


CLASSES = (
    FABRIK_OT_set_limit,
    FABRIK_OT_clear_limit,
    FABRIK_OT_copy_limit,
    FABRIK_OT_mirror_limits,
    FABRIK_OT_add_limit_point,
    FABRIK_OT_move_limit_point,
    FABRIK_OT_remove_limit_point,
)
