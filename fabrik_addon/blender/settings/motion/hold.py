"""What is kept of one hold: a bone that stays where it is from one frame to another."""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, PointerProperty, StringProperty
from bpy.types import PropertyGroup

from ..effector import POINTS
from ..overrides import overridable


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
    changed: StringProperty(name="Changed", description="What it has changed of the keys, to be taken back")
