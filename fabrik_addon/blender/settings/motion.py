"""What is kept on a rig of how its motion is edited and shown: holds, trails and ghosts."""

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

from .effector import POINTS
from .in_use import noting
from .overrides import overridable


@overridable
class FabrikHold(PropertyGroup):
    """A bone that stays where it is, in the world or with an object, from one frame to another; it is in the keys."""

    bone: StringProperty(name="Bone", description="The bone that is held")
    point: EnumProperty(name="Point", description="The end of the bone that is held", items=POINTS[:2])
    hold_rotation: BoolProperty(name="Hold Rotation", description="Whether the rotation is held too", default=True)
    first: FloatProperty(name="First", description="First frame of the hold")
    last: FloatProperty(name="Last", description="Last frame of the hold")
    ease: FloatProperty(name="Ease", description="Number of frames to ease in and out of the hold")
    target: PointerProperty(
        name="Object",
        description="The object that the bone stays with. If empty, it stays in world space",
        type=bpy.types.Object,
    )
    target_bone: StringProperty(
        name="Bone of the Object", description="The bone of that armature that the bone stays with"
    )
    is_contact: BoolProperty(name="Contact", description="Whether the hold was created from a detected foot contact")
    replaced: PointerProperty(
        name="Replaced Keys",
        description="The keys before and after the hold, used to restore them",
        type=bpy.types.Action,
    )


@overridable
class FabrikMotionView(PropertyGroup):
    """Trails and ghosts."""

    show_trails: BoolProperty(
        name="Trails",
        description="Show the paths of the selected bones' tails, with keys as dots. Drag a point to edit "
        "the bone on that frame",
        update=noting("motion"),
    )
    trail_frames: IntProperty(
        name="Frames",
        description="Number of frames before and after the current frame",
        default=60,
        min=1,
        soft_max=250,
    )
    show_ghosts: BoolProperty(
        name="Ghosts",
        description="Show poses before and after the current frame as thin bones",
        update=noting("motion"),
    )
    ghost_count: IntProperty(
        name="Count", description="Number of ghosts on each side of the current frame", default=3, min=1, soft_max=20
    )
    ghost_step: IntProperty(name="Step", description="Number of frames between ghosts", default=5, min=1, soft_max=50)
    # Okabe and Ito's orange and blue: people who can't tell red from green can tell them apart.
    color_before: FloatVectorProperty(
        name="Before",
        description="Color of earlier poses and paths",
        subtype="COLOR",
        min=0.0,
        max=1.0,
        default=(0.90, 0.62, 0.0),
    )
    color_after: FloatVectorProperty(
        name="After",
        description="Color of later poses and paths",
        subtype="COLOR",
        min=0.0,
        max=1.0,
        default=(0.34, 0.71, 0.91),
    )
