"""Setting, clearing, copying and mirroring joint limits."""

from collections.abc import Callable, Sequence
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, FloatVectorProperty, IntProperty, StringProperty
from bpy.types import Context, Operator

from ...settings.rig import LIMIT_AXES, LIMIT_TYPES
from ...settings.why_not import why_no_rig
from .asking import can_run, says_why_not

# What is not given keeps what the bone has, so nothing may be left over from the call before.
_ASIDE = {"SKIP_SAVE"}


class OnBones:
    """An operator on some bones of the active armature: a line on what was done, a warning for each thing left."""

    bl_options = {"REGISTER", "UNDO"}
    # What operators have from Blender.
    report: Callable[[set[str], str], None]
    bones: StringProperty(
        name="Bones",
        description="Names of the bones, separated by commas; the selected ones when empty, or the active one",
        options=_ASIDE,
    )

    @classmethod
    def poll(cls, context: Context) -> bool:
        """On an armature that can be changed."""
        return can_run(cls, why_no_rig(context.object))

    @says_why_not
    def execute(self, context: Context) -> set[str]:
        """Do it, or say in one line why not."""
        rig = context.object
        done, left = self.run(context, rig, self.chosen(context, rig))
        for sentence in left:
            self.report({"WARNING"}, sentence)
        self.report({"INFO"}, done)
        return {"FINISHED"}

    def chosen(self, context: Context, rig: bpy.types.Object) -> Sequence[bpy.types.PoseBone]:
        """The bones that it is about."""
        from ...limits.editing import chosen_bones

        return chosen_bones(context, rig, self.bones)

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Do it; a line on what was done, and a sentence for each thing that was left."""
        raise NotImplementedError


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

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Set what is given."""
        from ...limits.editing import set_limits

        return set_limits(bones, **self._given()), []

    def draw(self, context: Context) -> None:
        """Show what was given."""
        self.layout.use_property_split = True
        self.layout.prop(self, "type")
        for name in self._given():
            if name != "type":
                self.layout.prop(self, name)

    def _given(self) -> dict[str, Any]:
        """The keywords given."""
        names = ("type", "cone", "twist", "axis", "low", "high", "window", "slide")
        given = {name: getattr(self, name) for name in names if self.properties.is_property_set(name)}
        if "window" in given:
            from ...limits.editing import numbers_in

            given["window"] = numbers_in(given["window"])
        return given


class FABRIK_OT_clear_limit(OnBones, Operator):
    """Let the selected bones turn freely; on a library override the limit stays, switched off"""

    bl_idname = "fabrik.clear_limit"
    bl_label = "Clear Limit"

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Clear the limits."""
        from ...limits.editing import clear_limits

        return clear_limits(bones), []


class FABRIK_OT_copy_limit(OnBones, Operator):
    """Give the selected bones the limit of the active one"""

    bl_idname = "fabrik.copy_limit"
    bl_label = "Copy Limit to Selected"

    source: StringProperty(
        name="From", description="The bone whose limit is copied; the active one when empty", options=_ASIDE
    )

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Copy the limit."""
        from ...limits.editing import active_bone, chosen_bones, copy_limit
        from ...rig.armature import RigError

        source = chosen_bones(context, rig, self.source)[0] if self.source else active_bone(rig)
        if source is None:
            raise RigError("Pick the bone to copy from in Pose mode first, or give its name")
        return copy_limit(source, bones), []


class FABRIK_OT_mirror_limits(OnBones, Operator):
    """Give the bones of the other side the limits of the selected ones; with both selected, the active side counts"""

    bl_idname = "fabrik.mirror_limits"
    bl_label = "Mirror Limits"

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Mirror the limits."""
        from ...limits.mirror import mirror_limits

        return mirror_limits(rig, bones)


class FABRIK_OT_add_limit_point(OnBones, Operator):
    """Add a corner to the window of a polygon limit, in the middle of its longest edge or where the bone leans now"""

    bl_idname = "fabrik.add_limit_point"
    bl_label = "Add Point"

    from_pose: BoolProperty(name="From Pose", description="Put the corner where the bone leans now", options=_ASIDE)

    def chosen(self, context: Context, rig: bpy.types.Object) -> Sequence[bpy.types.PoseBone]:
        return _one_bone(context, rig, self.bones)

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Add the point."""
        from ...limits.corners import add_point

        return add_point(bones[0], from_pose=self.from_pose), []


class FABRIK_OT_move_limit_point(OnBones, Operator):
    """Move a corner of the window of a polygon limit to where the bone leans now"""

    bl_idname = "fabrik.move_limit_point"
    bl_label = "Move Point Here"

    index: IntProperty(name="Index", description="Place of the corner, from 0", min=0, options=_ASIDE)

    def chosen(self, context: Context, rig: bpy.types.Object) -> Sequence[bpy.types.PoseBone]:
        return _one_bone(context, rig, self.bones)

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Move the point."""
        from ...limits.corners import move_point

        return move_point(bones[0], self.index), []


class FABRIK_OT_remove_limit_point(OnBones, Operator):
    """Remove a corner from the window of a polygon limit"""

    bl_idname = "fabrik.remove_limit_point"
    bl_label = "Remove Point"

    index: IntProperty(name="Index", description="Place of the corner, from 0", min=0, options=_ASIDE)

    def chosen(self, context: Context, rig: bpy.types.Object) -> Sequence[bpy.types.PoseBone]:
        return _one_bone(context, rig, self.bones)

    def run(
        self, context: Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
    ) -> tuple[str, list[str]]:
        """Remove the point."""
        from ...limits.corners import remove_point

        return remove_point(bones[0], self.index), []


def _one_bone(context: Context, rig: bpy.types.Object, names: str) -> Sequence[bpy.types.PoseBone]:
    """The bone named, else the active one."""
    from ...limits.editing import active_bone, chosen_bones

    active = active_bone(rig)
    return chosen_bones(context, rig, names) if names or active is None else [active]


CLASSES = (
    FABRIK_OT_set_limit,
    FABRIK_OT_clear_limit,
    FABRIK_OT_copy_limit,
    FABRIK_OT_mirror_limits,
    FABRIK_OT_add_limit_point,
    FABRIK_OT_move_limit_point,
    FABRIK_OT_remove_limit_point,
)
