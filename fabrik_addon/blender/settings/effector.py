"""The stored data of one effector: a point on a bone, and its target."""

from typing import Any

import bpy
from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import PropertyGroup

from .live import poses_live_rigs
from .overrides import overridable

POINTS = (
    ("TAIL", "Tail", "Use the bone's tail"),
    ("HEAD", "Head", "Use the bone's head"),
    ("OFFSET", "Offset", "Use a fixed point on the bone"),
)


@overridable
@poses_live_rigs
class FabrikEffector(PropertyGroup):
    """A point on a bone, and its target object or the location at which it is pinned."""

    bone: StringProperty(name="Bone", description="The bone that reaches for the target")
    control: StringProperty(name="Control", description="On a control rig, the control chosen for the bone")
    point: EnumProperty(name="Point", description="The point on the bone that reaches for the target", items=POINTS)
    offset: FloatVectorProperty(
        name="Offset",
        description="Position of the point relative to the bone's head, in the bone's local axes",
        subtype="XYZ",
        unit="LENGTH",
        precision=4,
    )
    target: PointerProperty(name="Target", description="The object to reach", type=bpy.types.Object)
    target_bone: StringProperty(
        name="Target Bone",
        description="If the target is an armature, the bone whose head is the target. If it is a bone of "
        "this rig, both bones move toward each other",
    )
    pin_location: FloatVectorProperty(
        name="Pin Location",
        description="Position of the pin in armature space",
        subtype="XYZ",
        unit="LENGTH",
        precision=4,
    )
    pin_rotation: FloatVectorProperty(
        name="Pin Rotation",
        description="Rotation of the pinned bone in armature space",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
    )
    hold_rotation: BoolProperty(
        name="Rotation", description="Match the rotation of the target or pin as well as its position"
    )
    weight: FloatProperty(
        name="Weight",
        description="Influence of this target if not all targets can be reached",
        default=1.0,
        min=0.0,
        soft_max=10.0,
    )
    enabled: BoolProperty(name="Enabled", description="Use this target or pin for solving and baking", default=True)
    priority: IntProperty(
        name="Priority",
        description="Targets with lower numbers are met first. Higher numbers give way if not all can be met",
        min=0,
        soft_max=5,
    )
    bend_target: PointerProperty(
        name="Pole Target",
        description="The object that the middle of the limb points to. If empty, the limb keeps its bend direction",
        type=bpy.types.Object,
    )
    bend_bone: StringProperty(
        name="Pole Bone",
        description="If the pole target is an armature, the bone whose head the limb points to",
    )

    @property
    def kind(self) -> str:
        """Either "PIN", if the point is held where it was pinned, or "TARGET", if it has a target object."""
        return "PIN" if self.target is None and self.is_property_set("pin_location") else "TARGET"

    @property
    def shown_bone(self) -> str:
        """The bone that the user chose: a control, or the bone itself."""
        rig: Any = self.id_data
        return str(self.control if self.control in rig.pose.bones else self.bone)
