"""Settings of markers, calibration, bakes and retargeting, stored on an armature object.

Options are declared once for the rig's settings, the arguments of operators, and the command line. Markers are objects
or bones of the scene, such as imported empties. Each may be attached to a point on a bone of the rig.
"""

from inspect import get_annotations
from typing import Any, Final

from bpy.types import Action, Collection, Object, PropertyGroup, Text

from ...markers.files import LAYOUTS
from .declare import Bool, Enum, Factor, Float, Int, IntVector, List, Place, Pointer, String
from .in_use import note_use, poses_live_rigs, update_live_pose

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
# In five recordings, planted feet drift by at most 2 to 13 mm, others by 7 to 24 mm. The markers' RMS errors are up to
# 0.2 mm larger.
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


class BakeOptions:
    """Options for finding the poses of a bake. A mixin like `KeyOptions`."""

    source: Enum("Bake From", "Whether the rig follows markers or targets while baking", items=SOURCES)


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
KEY_OPTIONS: Final[dict[str, Any]] = get_annotations(KeyOptions)
OPTIONS: Final[dict[str, Any]] = KEY_OPTIONS | get_annotations(BakeOptions) | get_annotations(MarkerOptions)
RETARGET_OPTIONS: Final[dict[str, Any]] = get_annotations(RetargetOptions)


class FabrikBakeSettings(KeyOptions, BakeOptions, PropertyGroup):
    """The settings of bakes and of retargeting, except those stored with the markers and the source."""


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
    active_pair: Int()
    # The source of the last retargeting.
    brought: String()


# The custom property of an imported empty: the marker's name in its file.
MARKER_NAME: Final = "fabrik_marker"
# Custom properties of a collection of markers: whether the recording is a static trial (the person stands still), the
# scene's frames per second when the markers were imported, and the warnings about the recording, one per line. Imported
# armatures have the warnings too.
TAKE_STATIC: Final = "fabrik_static"
TAKE_RATE: Final = "fabrik_rate"
TAKE_DOUBTS: Final = "fabrik_doubts"

# Errors of a marker in meters that count as fair, and as bad.
FAIR: Final = 0.02
BAD: Final = 0.05
POINTS: Final = (
    ("TAIL", "Tail", "Use the bone's tail"),
    ("HEAD", "Head", "Use the bone's head"),
    ("OFFSET", "Offset", "Use a fixed point on the bone"),
)
PROPORTIONS: Final = (
    ("LIMBS", "Per Limb", "Solve the motion with the recorded length of each limb"),
    ("UNIFORM", "Uniform Scale", "Scale the recording uniformly to the size of the rig"),
    ("REST", "Fit Rig", "Change the rig's rest pose to the recorded person's proportions and size"),
    ("NONE", "As Recorded", "Keep the size of the recording"),
)


class CalibrationOptions:
    """The options of calibration; a mixin for the rig's settings and the command line."""

    proportions: Enum("Proportions", "How to fit a person to a rig of different proportions", items=PROPORTIONS)
    refine: Bool(
        "Refine", "After calibrating, use the whole take to improve the marker positions on their bones", default=True
    )
    on_floor: Bool(
        "Feet on the Floor", "Move the markers vertically so that the feet are on the rig's floor", default=True
    )
    reference: IntVector(
        "Reference", "First and last frame to calibrate from. If both are 0, the stillest frames are used", size=2
    )


CALIBRATION_OPTIONS: Final[dict[str, Any]] = get_annotations(CalibrationOptions)


@poses_live_rigs
class PointOnBone:
    """A point on a bone of the rig, and its weight. A mixin for markers, and for targets and pins."""

    bone: String("Bone", "The bone that the point is on")
    point: Enum("Point", "Position of the point on its bone", items=POINTS)
    offset: Place("Offset", "Position of the point relative to the bone's head, in the bone's local axes")
    weight: Float(
        "Weight",
        "Influence relative to other markers or targets, if not all can be met",
        default=1.0,
        min=0.0,
        soft_max=10.0,
    )
    enabled: Bool("Enabled", "Use this item for solving, calibration and baking", default=True)


class FabrikMarker(PointOnBone, PropertyGroup):
    """A marker, and its point on a bone. It is followed like a target that only has a position."""

    kind, bend_target, bend_bone, hold_rotation, priority, may_stretch = "TARGET", None, "", False, 0, False
    target: Pointer("Marker", "The object that follows the recorded marker", type=Object, update=note_use)
    target_bone: String(
        "Marker Bone", "If the markers are bones of another armature, the bone whose head is the marker"
    )
    # The distance that the marker moves on its bone, if the bone was guessed from motion; else negative.
    guess: Float(default=-1.0)
    # Results of the last bake: the marker's RMS distance from its point in world meters (negative before the first
    # bake), the largest distance and its frame, and the percentage of frames on which the marker was visible.
    error: Float(default=-1.0)
    worst: Float()
    worst_frame: Int()
    coverage: Float()

    @property
    def state(self) -> str:
        """One of GONE (no object or bone), FREE (not assigned), OFF, READY (not baked yet), GOOD, FAIR and BAD."""
        rig: Any = self.id_data
        if self.target is None or (self.bone and self.bone not in rig.data.bones):
            return "GONE"
        if not self.bone:
            return "FREE"
        if not self.enabled or self.weight == 0.0:
            return "OFF"
        if self.error < 0.0:
            return "READY"
        return "GOOD" if self.error < FAIR else "FAIR" if self.error < BAD else "BAD"

    @property
    def is_guess(self) -> bool:
        """Whether the marker's bone is a guess."""
        return bool(self.bone) and self.guess >= 0.0

    @property
    def is_certain(self) -> bool:
        """Whether the marker has a bone, and the bone is not a guess."""
        return bool(self.bone) and self.guess < 0.0


class FabrikFactor(PropertyGroup):
    """The length of a bone of the recorded person, divided by that of the rig's bone of this name."""

    factor: Float(default=1.0)


class OfATake:
    """A rig's data about a take. A mixin for the take that it follows, and for the others."""

    markers: List(type=FabrikMarker)
    active_marker: Int()
    # The marker set used to match the markers.
    preset: String()
    # The bones whose length differs between the recorded person and the rig.
    factors: List(type=FabrikFactor)
    # The results of the last calibration, one per line; "" if the markers' positions have not been calibrated.
    calibrated: String()
    # The warnings of the last calibration, and of the last match or bake, one per line.
    calibration_doubts: String()
    doubts: String()
    # The errors of the last bake in short lines, the frame with the largest error, the report of that bake, and its
    # action if it followed the markers.
    last_result: String()
    worst_frame: Int()
    report: Pointer(type=Text)
    action: Pointer(type=Action)


class FabrikTake(OfATake, PropertyGroup):
    """A take on a rig. While the rig follows it, its data is in `FabrikCapture`."""

    # The collection of the take's markers, empty if they were selected one by one.
    collection: Pointer(type=Collection)


class FabrikCapture(OfATake, CalibrationOptions, MarkerOptions, PropertyGroup):
    """The markers of a rig, with the options of calibration and bakes."""

    # The collection of the markers, or the armature whose bones are the markers.
    take: Pointer(type=Collection)
    take_armature: Pointer(type=Object, poll=lambda _self, thing: thing.type == "ARMATURE")
    takes: List(type=FabrikTake)
    static: Pointer(
        "Static Take",
        "A recording of the same person standing still, used for calibration. Defaults to the take itself",
        type=Collection,
    )
    show_errors: Bool("Show Errors", "Draw a line from each marker to its point on the bone", update=note_use)


_UNITS = (
    ("AUTO", "From File", "Use the units given in the file"),
    ("mm", "Millimeters", "Read positions in this unit, regardless of the file's units"),
    ("cm", "Centimeters", "Read positions in this unit, regardless of the file's units"),
    ("m", "Meters", "Read positions in this unit, regardless of the file's units"),
    ("in", "Inches", "Read positions in this unit, regardless of the file's units"),
    ("ft", "Feet", "Read positions in this unit, regardless of the file's units"),
)
_UP_AXES = (
    ("AUTO", "From File", "Use the axis given in the file, or detect it from the markers"),
    ("Y", "Y", "The file's Y axis points up"),
    ("Z", "Z", "The file's Z axis points up"),
)
_LAYOUTS = (
    ("AUTO", "Automatic", "Detect the layout from the names in the file, or from the number of points and the limbs"),
    *((key, title, "Read unnamed points in this order") for key, title in LAYOUTS.items()),
)


class ImportOptions:
    """Options of an import; a mixin for the operator."""

    units: Enum("Units", "Units of the positions in the file", items=_UNITS)
    up_axis: Enum("Up Axis", "Which axis of the file points up", items=_UP_AXES)
    keypoints: Enum("Layout", "Order of keypoints that are not named in the file", items=_LAYOUTS)
    start_frame: Int("Start Frame", "Scene frame of the first sample", default=1)


IMPORT_OPTIONS: Final[dict[str, Any]] = get_annotations(ImportOptions)

CLASSES = (FabrikMarker, FabrikFactor, FabrikTake, FabrikCapture, FabrikBakeSettings, FabrikBonePair, FabrikRetarget)
