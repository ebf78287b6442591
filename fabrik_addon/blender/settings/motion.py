"""Data stored on a rig for editing its motion: holds."""

import bpy
from bpy.props import (
    BoolProperty,
    EnumProperty,
    FloatProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import PropertyGroup

from .effector import POINTS
from .overrides import overridable


@overridable
class FabrikHold(PropertyGroup):
    """A bone held in place, in the world or relative to an object, from one frame to another.

    Its keys contain the hold.
    """

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
