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
    point: EnumProperty(name="Point", description="Which of its ends stays where it is", items=POINTS[:2])
    hold_rotation: BoolProperty(name="Hold Rotation", description="Whether its rotation is held too", default=True)
    first: FloatProperty(name="First", description="The frame from which it is held")
    last: FloatProperty(name="Last", description="The frame to which it is held")
    ease: FloatProperty(name="Ease", description="Frames over which it comes to its place before and leaves it after")
    target: PointerProperty(name="Object", description="What it stays with; empty: the world", type=bpy.types.Object)
    target_bone: StringProperty(name="Bone of the Object", description="The bone of that armature that it stays with")
    is_contact: BoolProperty(name="Contact", description="Whether it is one of a foot's contacts that were found")
    replaced: PointerProperty(
        name="Replaced Keys",
        description="The keys as they were before and after, so that they can be put back",
        type=bpy.types.Action,
    )


@overridable
class FabrikMotionView(PropertyGroup):
    """Trails and ghosts."""

    show_trails: BoolProperty(
        name="Trails",
        description="Show the way of the selected bones' tails over the frames, with their keys as dots. "
        "A point of it can be dragged like the bone on that frame",
        update=noting("motion"),
    )
    trail_frames: IntProperty(
        name="Frames", description="So many frames before and after this one", default=60, min=1, soft_max=250
    )
    show_ghosts: BoolProperty(
        name="Ghosts",
        description="Show the pose some frames before and after, as thin bones",
        update=noting("motion"),
    )
    ghost_count: IntProperty(
        name="Count", description="So many ghosts before, and as many after", default=3, min=1, soft_max=20
    )
    ghost_step: IntProperty(name="Step", description="Frames from one to the next", default=5, min=1, soft_max=50)
    # Okabe and Ito's orange and blue: people who can't tell red from green can tell them apart.
    color_before: FloatVectorProperty(
        name="Before", description="What was before", subtype="COLOR", min=0.0, max=1.0, default=(0.90, 0.62, 0.0)
    )
    color_after: FloatVectorProperty(
        name="After", description="What comes after", subtype="COLOR", min=0.0, max=1.0, default=(0.34, 0.71, 0.91)
    )
