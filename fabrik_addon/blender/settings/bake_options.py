"""The options of bakes, declared once for the rig's settings, the command line and the bake itself."""

from inspect import get_annotations
from typing import Any, Final

from bpy.types import Object, PropertyGroup

from .declare import Bool, Enum, Factor, Float, Int, List, Pointer, String
from .in_use import Moment, overridable, update_live_pose

ACTIONS = (
    (
        "NEW",
        "New",
        "Write to a new action. The current action is kept, and channels that are not baked are copied from it",
    ),
    ("CURRENT", "Current", "Write to the current action and replace its keys in the frame range"),
    ("NLA", "NLA Strip", "Write to a new action in an NLA strip above the current action, which becomes a strip too"),
)
SOURCES = (
    ("AUTO", "Automatic", "Follow the matched markers if there are any, otherwise the targets"),
    ("MARKERS", "Markers", "Follow the matched markers"),
    ("EFFECTORS", "Targets", "Follow the targets"),
)
BAKED_BONES = (
    ("SOLVED", "All Solved", "Key every bone that was rotated to meet the targets"),
    ("MAPPED", "With Marker or Target", "Key only solved bones with a marker, a target or a pin"),
    ("SELECTED", "Selected", "Key only solved bones that are selected"),
)
ROOT_MOTIONS = (
    ("BONE", "Root Bone", "Key the location and rotation of the root bone"),
    ("OBJECT", "Object", "Move the armature object, and rotate the root bone"),
    ("IN_PLACE", "In Place", "Remove travel over the ground. The root bone only rotates and moves up and down"),
)
# Measured on five recordings: feet drift by 2 to 13 mm at most, instead of 7 to 24 mm if they are not planted. The
# markers' RMS errors are 2.5 to 13.4 mm, instead of 2.3 to 13.2. In one recording the largest error, at a toe, grows
# from 29 to 42 mm.
PLANTING = (
    ("AUTO", "Auto", "Plant feet when retargeting. When baking, follow the markers"),
    ("ON", "On", "Plant feet when retargeting and when baking markers"),
    ("OFF", "Off", "Do not plant feet"),
)
# After a bake, moving hands, arms and legs out of the body takes about 20 ms a frame.
SELF_COLLISION = (
    ("AUTO", "Auto", "Keep body parts apart while posing, but not when baking or retargeting"),
    ("ON", "On", "Keep body parts apart when posing, baking and retargeting. Feet stay in place"),
    ("OFF", "Off", "Do not keep body parts apart"),
)
GAPS = (
    ("SOLVE", "Solve Through", "Solve bones from the remaining markers, their limits, and the frames around the gap"),
    ("HOLD", "Hold", "Keep bones without markers in the pose before the gap"),
    ("INTERPOLATE", "Interpolate", "Blend bones without markers from the pose before the gap to the pose after it"),
    ("UNKEYED", "Leave Unkeyed", "Insert no keys for bones without markers during the gap"),
)


@overridable
class KeyOptions:
    """Options of bakes and of retargeting. A mixin for the rig's settings and the settings of a bake."""

    step: Int("Step", "Number of frames between keys", default=1, min=1, soft_max=10)
    action: Enum("Action", "Which action the keyframes are written to", items=ACTIONS)
    bones: Enum("Bones", "Which bones get keys", items=BAKED_BONES)
    root_motion: Enum("Root Motion", "How the motion of a free root is keyed", items=ROOT_MOTIONS)
    key_angle: Float(
        "Simplify",
        "Remove keys, as long as rotations change by no more than this angle, and locations by no "
        "more than this angle times the bone's length. 0 keeps a key on every frame",
        subtype="ANGLE",
        default=0.0,
        min=0.0,
        soft_max=0.1,
    )
    self_collision: Enum(
        "Self-Collision",
        "Keep arms, legs, head and trunk of a human rig from intersecting",
        items=SELF_COLLISION,
        update=update_live_pose,
    )
    plant_feet: Enum("Plant Feet", "Keep feet in place while they are on the floor", items=PLANTING)


@overridable
class BakeOptions:
    """Options for finding the poses of a bake. A mixin like `KeyOptions`."""

    source: Enum("Bake From", "Whether the rig follows markers or targets while baking", items=SOURCES)


@overridable
class MarkerOptions:
    """Options for markers that are missing, swapped or noisy in a bake. A mixin like `KeyOptions`."""

    gaps: Enum("Gaps", "How to pose bones while their markers are not seen", items=GAPS)
    robust: Bool(
        "Ignore Outliers",
        "Ignore outliers, such as swapped or fallen markers. Rotations that the markers don't "
        "determine are taken from neighboring frames",
        default=True,
    )
    low_pass: Float(
        "Low-Pass",
        "Smooth the markers by removing motion above this frequency in Hz; 0 turns smoothing off",
        default=0.0,
        min=0.0,
        soft_max=30.0,
    )


@overridable
class RetargetOptions:
    """Options of retargeting. A mixin for the rig's settings, the operator and the command line."""

    places: Factor(
        "Match Positions",
        "Influence of the source's hand and foot positions; 0 keeps the source's rotations",
        default=1.0,
    )
    hands_in_world: Factor(
        "Hands in World",
        "Influence of the source's hand positions in world space, to keep hands on objects; 0 "
        "scales their distance from the body with the length of the arms",
        default=0.0,
    )
    reference: Int(
        "Rest Frame",
        "The frame on which the source is in the rig's rest pose; -1 uses the source's rest pose, or the "
        "frame most like the rig's rest pose",
        default=-1,
        min=-1,
    )


# All options by name, each with the function that declares it and the function's keywords.
OPTIONS: Final[dict[str, Any]] = {
    name: declared
    for kind in (KeyOptions, BakeOptions, MarkerOptions)
    for name, declared in get_annotations(kind).items()
}
KEY_OPTIONS: Final[dict[str, Any]] = get_annotations(KeyOptions)
RETARGET_OPTIONS: Final[dict[str, Any]] = get_annotations(RetargetOptions)


@overridable
class FabrikBakeSettings(KeyOptions, BakeOptions, PropertyGroup):
    """The settings of bakes and of retargeting, besides those stored with the markers and the source."""


@overridable
class FabrikBonePair(PropertyGroup):
    """A bone of the rig, by its name, and the source bone that it follows."""

    source: String("Source Bone", "The source bone whose rotation this bone follows")
    before: String(
        "Blend From",
        "A second source bone, used if the chains have different numbers of bones. The rotation is a "
        "blend of both source bones",
    )
    share: Factor("Blend Factor", "Blend factor from the bone in Blend From (0) to the source bone (1)", default=1.0)
    enabled: Bool("Enabled", "Retarget this bone", default=True)


@overridable
class FabrikRetarget(RetargetOptions, PropertyGroup):
    """The source of a rig's motion, and how it is retargeted."""

    source: Pointer(
        "Source",
        "The armature whose motion is retargeted",
        type=Object,
        poll=lambda settings, thing: thing.type == "ARMATURE" and thing != settings.id_data,
    )
    # The source bone of each bone of the rig. If the list is empty, bones are mapped automatically.
    pairs: List(type=FabrikBonePair)
    active_pair: Int("Active Bone", "The bone whose details are shown")
    # The source of the last retargeting.
    brought = Moment()
