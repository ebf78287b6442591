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
    ("TAIL", "Tail", "The bone's tail goes to the target"),
    ("HEAD", "Head", "The bone's head goes to the target"),
    ("OFFSET", "Offset", "A point fixed on the bone goes to the target"),
)
KINDS = (
    ("TARGET", "Target", "The point reaches for an object"),
    ("PIN", "Pin", "The point is held at a place in the armature's own space"),
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

    kind: EnumProperty(name="Kind", description="What the point goes to", items=KINDS, update=_kind_switched)
    bone: StringProperty(name="Bone", description="The bone that is to reach the target")
    control: StringProperty(name="Control", description="The control that was chosen for the bone, on a control rig")
    point: EnumProperty(name="Point", description="Which point of the bone is to reach the target", items=POINTS)
    offset: FloatVectorProperty(
        name="Offset",
        description="The point in the bone's own axes, measured from its head",
        subtype="XYZ",
        unit="LENGTH",
        precision=4,
    )
    target: PointerProperty(name="Target", description="The object to reach", type=bpy.types.Object)
    target_bone: StringProperty(
        name="Target Bone",
        description="Where the target is an armature: its bone whose head is to be reached. "
        "A bone of this rig itself comes to meet the effector where it can: both sides give way",
    )
    pin_location: FloatVectorProperty(
        name="Pin Location",
        description="Where the point is held, in the armature's own space",
        subtype="XYZ",
        unit="LENGTH",
        precision=4,
    )
    pin_rotation: FloatVectorProperty(
        name="Pin Rotation",
        description="How the bone is held where its rotation is pinned too, in the armature's own space",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
    )
    hold_rotation: BoolProperty(name="Hold Rotation", description="Hold the bone's rotation as well as its place")
    weight: FloatProperty(
        name="Weight",
        description="How much this target counts where not all can be reached",
        default=1.0,
        min=0.0,
        soft_max=10.0,
    )
    enabled: BoolProperty(name="Enabled", description="Whether solving and baking heed this effector", default=True)
    use_rotation: BoolProperty(name="Take Rotation", description="Turn the bone as its target is turned as well")
    rotation_weight: FloatProperty(
        name="Rotation Weight",
        description="How much the rotation counts beside the place where not both can be had",
        default=1.0,
        min=0.0,
        soft_max=10.0,
    )
    priority: IntProperty(
        name="Priority",
        description="Lower numbers are met first, and higher ones give way where not all can be met",
        min=0,
        soft_max=5,
    )
    bend_target: PointerProperty(
        name="Bend Target",
        description="The object that the middle of the limb bends toward; without one it bends as now",
        type=bpy.types.Object,
    )
    bend_bone: StringProperty(
        name="Bend Bone",
        description="Where the bend target is another armature: its bone whose head the limb bends toward",
    )

    @property
    def shown_bone(self) -> str:
        """The bone that people chose: a control, or the bone itself."""
        rig: Any = self.id_data
        return str(self.control if self.control in rig.pose.bones else self.bone)
