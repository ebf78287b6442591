"""The options of a bake: declared once for the rig's settings, the operator, the command line and the bake itself."""

from inspect import get_annotations
from typing import Any, Final

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import PropertyGroup

from .overrides import overridable

STARTS = (
    ("REST", "Rest", "Each frame is solved from the rest pose and depends on that frame's targets only"),
    ("PREVIOUS", "Previous Frame", "Each frame is solved from the pose of the frame before it"),
)
ACTIONS = (
    ("NEW", "New", "Write to a new action; the present one is kept, and what is not baked is copied from it"),
    ("CURRENT", "Current", "Write to the present action and replace its keys in the frame range"),
    ("NLA", "NLA Strip", "Write to a new action that is played as an NLA strip, above the present action as a strip"),
)
SOURCES = (
    ("AUTO", "Markers, if Any", "Follow the mapped markers where there are any, else the effectors"),
    ("MARKERS", "Markers", "Follow the mapped markers"),
    ("EFFECTORS", "Effectors", "Follow the effectors' targets"),
)
BAKED_BONES = (
    ("SOLVED", "All Solved", "Key every bone that has been turned to meet the targets"),
    ("MAPPED", "With Markers", "Key only bones that have a marker or an effector themselves"),
    ("SELECTED", "Selected", "Key only those of the solved bones that are selected"),
)
ROOT_MOTIONS = (
    ("BONE", "Root Bone", "The root bone travels"),
    ("OBJECT", "Object", "The armature object travels, and the root bone only turns"),
    ("IN_PLACE", "In Place", "Nothing travels over the ground: the root bone only turns, and goes up and down"),
)
GAPS = (
    ("SOLVE", "Solve Through", "Bones go on by what is still seen, their limits and the time about the gap"),
    ("HOLD", "Hold", "Bones without markers hold the pose before the gap"),
    ("INTERPOLATE", "Interpolate", "Bones without markers go from the pose before the gap to the one after it"),
    ("UNKEYED", "Leave Unkeyed", "Bones without markers get no keys on the frames of the gap"),
)
RANGES: Final = (
    ("AUTO", "Take's", "The frames of the markers; the scene's where effectors are followed"),
    ("SCENE", "Scene's", "The scene's frame range"),
    ("OWN", "Own", "A range for this rig"),
)


@overridable
class KeyOptions:
    """What keys are written. A mixin: of the rig's settings, of the operators, and of what a bake is told."""

    step: IntProperty(name="Step", description="Frames from one key to the next", default=1, min=1, soft_max=10)
    action: EnumProperty(name="Action", description="Where the keyframes are written", items=ACTIONS)
    bones: EnumProperty(name="Bones", description="Which bones get keys", items=BAKED_BONES)
    root_motion: EnumProperty(name="Root Motion", description="What travels where the root is free", items=ROOT_MOTIONS)
    key_angle: FloatProperty(
        name="Fewer Keys",
        description="Leave out keys as long as no bone is turned off by more than this; 0 keeps a key on every frame",
        subtype="ANGLE",
        default=0.0,
        min=0.0,
        soft_max=0.1,
    )
    key_distance: FloatProperty(
        name="Root Tolerance",
        description="Where keys are left out: how far off the root may be at most",
        unit="LENGTH",
        default=0.001,
        min=0.0,
        soft_max=0.1,
        precision=4,
    )


@overridable
class BakeOptions:
    """How the poses of a bake are found. A mixin as well."""

    source: EnumProperty(name="Follow", description="What the rig follows", items=SOURCES)
    start: EnumProperty(name="Start From", description="The pose that each frame is solved from", items=STARTS)
    mend_jumps: BoolProperty(
        name="Mend Jumps",
        description="Solve frames on which a limb jumps, or that failed, again from the frames about them",
    )


@overridable
class MarkerOptions:
    """What a bake does with markers: with those that are away, swapped or noisy, and with feet. A mixin as well."""

    gaps: EnumProperty(name="Gaps", description="What bones do whose markers are not seen", items=GAPS)
    robust: BoolProperty(
        name="Ignore Outliers",
        description="Markers that are far from where the others say, such as swapped or fallen ones, do not count",
        default=True,
    )
    steady: BoolProperty(
        name="Steady",
        description="Bones that the markers leave undecided, such as a spine's, go by the frames before and after",
        default=True,
    )
    low_pass: FloatProperty(
        name="Low-Pass",
        description="Smooth the markers: what changes faster than so many times a second is taken out; 0 leaves them",
        default=0.0,
        min=0.0,
        soft_max=30.0,
    )
    plant_feet: BoolProperty(name="Plant Feet", description="Keep feet in place while they are in contact")
    key_error: BoolProperty(
        name="Key Error",
        description="Key each frame's RMS error as the custom property fabrik_error, to be seen in the Graph Editor",
    )


@overridable
class RetargetOptions:
    """How a motion is brought over. A mixin: of the rig's settings, of the operator, and of the command line."""

    places: FloatProperty(
        name="Places",
        description="At 0 rotations are kept, so the silhouette, at 1 the places of hands and feet, so the contacts",
        subtype="FACTOR",
        default=1.0,
        min=0.0,
        max=1.0,
    )
    hands_in_world: FloatProperty(
        name="Hands in World",
        description="At 0 hands are as far from the body as the source's, by the length of the arms; "
        "at 1 they are at the source's places, so that they keep hold of things",
        subtype="FACTOR",
        default=0.0,
        min=0.0,
        max=1.0,
    )
    contacts: BoolProperty(
        name="Plant Feet",
        description="Keep feet in place while the source's are in contact, and above the floor",
        default=True,
    )
    use_reference: BoolProperty(
        name="Reference Frame",
        description="Compare the rig's rest pose with the source on this frame, not with the source's own rest pose",
    )
    reference: IntProperty(name="Frame", description="The frame on which the source stands as the rig does at rest")


# Every option by name, with the function that declares it and that function's keywords.
OPTIONS: Final[dict[str, Any]] = {
    name: declared
    for kind in (KeyOptions, BakeOptions, MarkerOptions)
    for name, declared in get_annotations(kind).items()
}
RETARGET_OPTIONS: Final[dict[str, Any]] = get_annotations(RetargetOptions)


@overridable
class FabrikBakeSettings(KeyOptions, BakeOptions, PropertyGroup):
    """What the sidebar's Bake button uses, beside what is kept with the markers."""

    frame_range: EnumProperty(name="Range", description="Which frames are baked", items=RANGES)
    frame_start: IntProperty(name="Start", description="First frame to bake", default=1)
    frame_end: IntProperty(name="End", description="Last frame to bake", default=250)


def _is_armature(_settings: PropertyGroup, thing: bpy.types.Object) -> bool:
    return bool(thing.type == "ARMATURE")


@overridable
class FabrikBonePair(PropertyGroup):
    """A bone of the rig, by its name, and what it goes by."""

    source: StringProperty(name="Source Bone", description="The bone of the source that this one turns with")
    before: StringProperty(
        name="Before",
        description="Where chains differ in number, the bone turns with what is between this bone of the source and "
        "the other",
    )
    share: FloatProperty(
        name="Share",
        description="How far from the one bone to the other",
        subtype="FACTOR",
        default=1.0,
        min=0.0,
        max=1.0,
    )
    enabled: BoolProperty(name="Enabled", description="Whether the bone goes by the source", default=True)


@overridable
class FabrikRetarget(RetargetOptions, PropertyGroup):
    """The source of a rig's motion, and how it is brought over."""

    source: PointerProperty(
        name="Source",
        description="The armature whose motion is wanted",
        type=bpy.types.Object,
        poll=_is_armature,
    )
    pairs: CollectionProperty(
        name="Bones",
        description="Which bone goes by which of the source; matched anew where empty",
        type=FabrikBonePair,
    )
    active_pair: IntProperty(name="Active Bone", description="The bone whose details are shown")
    brought: StringProperty(name="Brought Over", description="The source whose motion the rig was last given")
