"""What is kept of one effector: a point on a bone, and what it goes to."""

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
from mathutils import Vector

from .live import poses_live_rigs, solved_anew
from .overrides import overridable

POINTS = (
    ("TAIL", "Tail", "Move the bone's tail to the target"),
    ("HEAD", "Head", "Move the bone's head to the target"),
    ("OFFSET", "Offset", "Move a fixed point on the bone to the target"),
)
KINDS = (
    ("TARGET", "Target", "Reach for an object"),
    ("PIN", "Pin", "Hold the point at a position in armature space"),
)


def _kind_switched(effector: "FabrikEffector", context: bpy.types.Context) -> None:
    """Blender calls this where the kind is chosen: a pin holds its point where it is now."""
    rig: Any = effector.id_data
    bone = rig.pose.bones.get(effector.bone) if rig.pose is not None else None
    if effector.kind == "PIN" and bone is not None:
        own = Vector(effector.offset) if effector.point == "OFFSET" else Vector()
        effector.pin_location = bone.tail if effector.point == "TAIL" else bone.matrix @ own
        effector.pin_rotation = bone.matrix.to_quaternion()
    solved_anew(effector, context)


@overridable
@poses_live_rigs
class FabrikEffector(PropertyGroup):
    """A point on a bone, and the object that it is to reach or the place where it is held."""

    kind: EnumProperty(
        name="Kind",
        description="Whether the effector reaches for a target or is pinned",
        items=KINDS,
        update=_kind_switched,
    )
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
        description="Rotation of the pinned bone in armature space, used if its rotation is pinned too",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
    )
    hold_rotation: BoolProperty(name="Hold Rotation", description="Hold the bone's rotation as well as its position")
    weight: FloatProperty(
        name="Weight",
        description="Influence of this target if not all targets can be reached",
        default=1.0,
        min=0.0,
        soft_max=10.0,
    )
    enabled: BoolProperty(name="Enabled", description="Use this effector for solving and baking", default=True)
    use_rotation: BoolProperty(name="Copy Rotation", description="Match the rotation of the target as well")
    rotation_weight: FloatProperty(
        name="Rotation Weight",
        description="Influence of the rotation relative to the position if both can't be met",
        default=1.0,
        min=0.0,
        soft_max=10.0,
    )
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
    def shown_bone(self) -> str:
        """The bone that people chose: a control, or the bone itself."""
        rig: Any = self.id_data
        return str(self.control if self.control in rig.pose.bones else self.bone)
