"""What is kept on an armature object about its markers, `Object.fabrik.capture`: which is where, and how they are used.

Markers are objects or bones of the scene, such as imported empties; each may be fixed to a point on a bone of the rig.
"""

from typing import Final

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)
from bpy.types import PropertyGroup

from .bake_options import MarkerOptions
from .in_use import noting
from .moment import Moment
from .overrides import overridable

# Custom properties of each imported empty: the marker's name in its file, and the frames from one sample to the next.
MARKER_NAME: Final = "fabrik_marker"
MARKER_STEP: Final = "fabrik_marker_step"
# Those of a collection of them: whether somebody stands in it, as for a static trial; that it was there when some rig
# was matched.
TAKE_STATIC: Final = "fabrik_static"
# The frames a second that the scene played when it was imported.
TAKE_RATE: Final = "fabrik_rate"
TAKE_SEEN: Final = "fabrik_seen"

POINTS: Final = (
    ("TAIL", "Tail", "The marker is at the bone's tail"),
    ("HEAD", "Head", "The marker is at the bone's head"),
    ("OFFSET", "Offset", "The marker is at a point fixed on the bone"),
)
PROPORTIONS: Final = (
    ("LIMBS", "Each Limb", "Each limb has the length that was recorded while the motion is worked out"),
    ("UNIFORM", "One Scale", "The recording is made as large as the rig, by one factor"),
    ("REST", "Fit the Rig", "The rig's rest pose takes on the recorded person's build and size"),
    ("NONE", "As Recorded", "The recording keeps its size"),
)


@overridable
class FabrikMarker(PropertyGroup):
    """A marker, and the point of a bone that it is fixed to."""

    target: PointerProperty(
        name="Marker",
        description="The object that moves as the marker did",
        type=bpy.types.Object,
        update=noting("markers"),
    )
    target_bone: StringProperty(
        name="Marker Bone",
        description="Where the markers are bones of another armature: the one whose head is the marker",
    )
    bone: StringProperty(name="Bone", description="The bone that the marker is fixed to")
    point: EnumProperty(name="Point", description="Where on its bone the marker is", items=POINTS)
    offset: FloatVectorProperty(
        name="Offset",
        description="The marker's place in the bone's own axes, measured from its head",
        subtype="XYZ",
        unit="LENGTH",
        precision=4,
    )
    weight: FloatProperty(
        name="Weight", description="How much this marker counts beside the others", default=1.0, min=0.0, soft_max=10.0
    )
    enabled: BoolProperty(name="Enabled", description="Whether baking heeds this marker", default=True)
    guess: FloatProperty(
        name="Guess",
        description="Where the bone is a guess by motion: how much the marker moves about on it; negative where not",
        default=-1.0,
        unit="LENGTH",
        precision=4,
    )
    error: FloatProperty(
        name="Error",
        description="Distance from the marker to its point on the bone in the last bake, RMS; negative before a bake",
        default=-1.0,
        unit="LENGTH",
        precision=4,
    )
    worst: FloatProperty(name="Worst", description="The farthest that it was off in the last bake", unit="LENGTH")
    worst_frame: IntProperty(name="Worst Frame", description="The frame on which it was farthest off")
    coverage: FloatProperty(
        name="Seen",
        description="Share of the frames of the last bake on which it was seen",
        subtype="PERCENTAGE",
        min=0.0,
        max=100.0,
    )

    @property
    def is_guess(self) -> bool:
        """Whether it is on a bone that is a guess."""
        return bool(self.bone) and self.guess >= 0.0

    @property
    def is_certain(self) -> bool:
        """Whether it is on a bone that is no guess."""
        return bool(self.bone) and self.guess < 0.0


@overridable
class FabrikFactor(PropertyGroup):
    """How much longer than the rig's a bone of the recorded person is; its name is the bone's."""

    factor: FloatProperty(name="Factor", description="The person's length over the rig's", default=1.0)


@overridable
class OfATake:
    """What a rig has of one take. A mixin: for the take that it follows, and for what it keeps of others."""

    markers: CollectionProperty(name="Markers", description="The markers that this rig follows", type=FabrikMarker)
    active_marker: IntProperty(name="Active Marker", description="The marker whose details are shown")
    preset: StringProperty(name="Preset", description="The set of labels that the markers were matched with")
    factors: CollectionProperty(
        name="Proportions",
        description="The recorded person's bones where they are not as long as the rig's",
        type=FabrikFactor,
    )
    calibrated: StringProperty(name="Calibrated", description="What the last calibration found, a line each")
    worst_frame: IntProperty(name="Worst Frame", description="The frame of the last bake that was met least well")
    report: PointerProperty(name="Report", description="The report of the last bake, as text", type=bpy.types.Text)


@overridable
class FabrikOtherTake(OfATake, PropertyGroup):
    """What a rig keeps of a take while it follows another one."""


@overridable
class FabrikTake(PropertyGroup):
    """How far a rig has come with a take."""

    collection: PointerProperty(
        name="Take",
        description="The collection of its markers; none where they were picked one by one",
        type=bpy.types.Collection,
    )
    calibrated: BoolProperty(name="Calibrated", description="Whether the markers' places were measured")
    action: PointerProperty(
        name="Action", description="The action that the take was last baked to", type=bpy.types.Action
    )
    kept: PointerProperty(
        name="Kept", description="Its markers and their report while another take is followed", type=FabrikOtherTake
    )


@overridable
class FabrikCapture(OfATake, MarkerOptions, PropertyGroup):
    """The markers of a rig, and how they are calibrated and baked."""

    take: PointerProperty(name="Take", description="The collection of the markers", type=bpy.types.Collection)
    take_armature: PointerProperty(
        name="Marker Armature",
        description="Where the markers are bones, as another importer makes them: their armature",
        type=bpy.types.Object,
        poll=lambda _self, thing: thing.type == "ARMATURE",
    )
    takes: CollectionProperty(name="Takes", description="How far the rig has come with each take", type=FabrikTake)
    static: PointerProperty(
        name="Static Take",
        description="A recording of the same person standing, to calibrate from; the take itself when empty",
        type=bpy.types.Collection,
    )
    use_reference: BoolProperty(
        name="Choose Reference",
        description="Calibrate from a range of frames; otherwise those on which most markers are seen",
    )
    reference_start: IntProperty(name="Reference Start", description="First frame to calibrate from", default=1)
    reference_end: IntProperty(name="Reference End", description="Last frame to calibrate from", default=1)
    proportions: EnumProperty(
        name="Proportions", description="How a recorded person of another build meets the rig", items=PROPORTIONS
    )
    refine: BoolProperty(
        name="Refine",
        description="After the reference, improve the markers' places on their bones over the whole take",
        default=True,
    )
    on_floor: BoolProperty(
        name="Feet on the Floor",
        description="Move the markers up or down so that the feet stand on the floor that the rig stands on",
        default=True,
    )
    # What may be wrong with the last calibration, and with the last match or bake, a line each.
    calibration_doubts = Moment(per_take=True)
    doubts = Moment(per_take=True)
    show_errors: BoolProperty(
        name="Show Errors",
        description="Draw a line from each marker to its point on the bone",
        update=noting("errors"),
    )


CLASSES = (FabrikMarker, FabrikFactor, FabrikOtherTake, FabrikTake, FabrikCapture)
