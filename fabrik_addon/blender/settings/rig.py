"""What is kept on an armature object, `Object.fabrik`: its effectors, its root and how it is baked.

The only state of the add-on. It is saved with the file, and can be changed on a library override.
"""

from typing import Final

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    PointerProperty,
)
from bpy.types import PropertyGroup

from .bake_options import FabrikBakeSettings, FabrikBonePair, FabrikRetarget
from .control import CLASSES as CONTROL_CLASSES
from .control import FabrikControlRig
from .effector import FabrikEffector
from .live import live_switched, solved_anew
from .markers import CLASSES as MARKER_CLASSES
from .markers import FabrikCapture
from .moment import Moment
from .motion import FabrikHold, FabrikMotionView
from .overrides import overridable
from .posture import FabrikStoredBone, PostureSettings

# The numbers are what files hold: those of the first two are older than the others.
ROOTS = (
    ("AUTO", "Automatic", "The root bone moves once anything is pinned, and when it is dragged itself", 2),
    ("FIXED", "Pinned", "The root bone turns but its head stays where it is", 0),
    ("FREE", "Free", "The root bone moves as well, so the whole rig follows the targets", 1),
    ("FOLLOW", "Follow", "As Free; while nothing is pinned, a dragged bone pulls it along as by a rope", 3),
)
KEY_BONES = (
    ("POSED", "Posed", "The bones that drags have changed since their last key, and those that the targets pose"),
    ("WHOLE", "Whole Body", "All bones that can be keyed; of a control rig the controls that pose its body"),
    ("SELECTED", "Selected", "The selected bones"),
)
REACHES = (
    ("WHOLE", "Whole Rig", "All bones up to the root follow"),
    ("PIN", "To Pin", "Bones up to the nearest pinned one follow"),
    ("BONES", "Bones", "A number of bones follow, the dragged one included"),
)
SPREADS = (
    ("FRAMES", "Frames", "So many frames before and after"),
    ("MARKERS", "Markers", "At the timeline's markers before and after; where there is none, so many frames away"),
    ("CONTACTS", "Contacts", "Where a foot comes down or leaves next; where none does, so many frames away"),
)
FALLOFFS = (
    ("SMOOTH", "Smooth", "With as little jerk as can be"),
    ("SHARP", "Sharp", "Narrow about this frame"),
    ("FLAT", "Flat", "All of it over the inner half of the frames"),
)


# Neither what a script gave nor where a drag ended counts for the operator's next call.
ASIDE: Final = {"SKIP_SAVE"}


@overridable
class DragOptions:
    """How bones are dragged. A mixin: of the rig's settings, and of the operator."""

    reach: EnumProperty(
        name="Chain Length", description="How far up the rig follows a dragged bone", items=REACHES, options=ASIDE
    )
    bones: IntProperty(
        name="Bones",
        description="How many bones follow, the dragged one included",
        default=3,
        min=1,
        soft_max=20,
        options=ASIDE,
    )
    keep_orientation: BoolProperty(
        name="Keep Orientation",
        description="A dragged foot or head keeps its orientation, as an IK control does; press R to rotate it",
        default=True,
        options=ASIDE,
    )
    spread: IntProperty(
        name="Spread",
        description="Over how many frames before and after this one a drag of animated bones fades out; 0: this frame "
        "only. A foot that stands takes its contact along, as far as it is inside these frames. It changes keys, so "
        "Auto Keying has to be on",
        min=0,
        soft_max=120,
        options=ASIDE,
    )
    spread_to: EnumProperty(
        name="Spread To", description="Where a drag over time fades out", items=SPREADS, options=ASIDE
    )
    falloff: EnumProperty(
        name="Falloff", description="How a drag fades out over its frames", items=FALLOFFS, options=ASIDE
    )
    layer: BoolProperty(
        name="As Layer",
        description="Put each drag over time on an NLA track of its own, so that the recording stays as it is "
        "and the layer's influence blends it",
        options=ASIDE,
    )


class FabrikDragSettings(DragOptions, PropertyGroup):
    """How bones are dragged, unless the operator is told otherwise."""


@overridable
class FabrikRig(PostureSettings, PropertyGroup):
    """All that the add-on keeps on one armature object."""

    effectors: CollectionProperty(
        name="Effectors", description="The points of this rig that reach for targets", type=FabrikEffector
    )
    active_effector: IntProperty(name="Active Effector", description="The effector whose details are shown")
    root: EnumProperty(
        name="Root",
        description="Whether the root bone moves when bones are dragged, and in solving, live posing and bakes",
        items=ROOTS,
        default="AUTO",
        update=solved_anew,
    )
    bake: PointerProperty(name="Bake", description="What the Bake button uses", type=FabrikBakeSettings)
    capture: PointerProperty(name="Capture", description="The rig's markers", type=FabrikCapture)
    retarget: PointerProperty(
        name="Retarget", description="What another armature's motion is brought over by", type=FabrikRetarget
    )
    key_bones: EnumProperty(name="Key Bones", description="Which bones Key Pose inserts keys for", items=KEY_BONES)
    unkeyed: CollectionProperty(
        name="Unkeyed", description="How bones were that have been dragged since their last key", type=FabrikStoredBone
    )
    drag: PointerProperty(name="Drag", description="How bones are dragged", type=FabrikDragSettings)
    control: PointerProperty(name="Control Rig", description="The rig's controls", type=FabrikControlRig)
    holds: CollectionProperty(
        name="Holds", description="Bones that stay where they are over some frames", type=FabrikHold
    )
    view: PointerProperty(name="Motion View", description="What is shown of the motion", type=FabrikMotionView)
    live: BoolProperty(
        name="Live",
        description="Pose the rig at once whenever a target moves or the frame changes; renders need a bake",
        update=live_switched,
    )
    influence: FloatProperty(
        name="Influence",
        description="How far live goes from the keyed pose (0) to the targets (1); "
        "for bones without keys, from the pose they had when it was switched on",
        subtype="FACTOR",
        default=1.0,
        min=0.0,
        max=1.0,
        update=solved_anew,
    )
    stored_pose: CollectionProperty(
        name="Stored Pose", description="The pose when live was switched on", type=FabrikStoredBone
    )
    # What keeps live from posing the rig, and how well the last bake met its targets, in short lines.
    live_trouble = Moment()
    last_result = Moment(per_take=True)


def rig_settings(rig: bpy.types.Object) -> FabrikRig:
    """What the add-on keeps on an armature object."""
    kept: FabrikRig = rig.fabrik  # type: ignore[attr-defined]  # Blender adds it when the add-on is registered
    return kept


CLASSES = (
    *MARKER_CLASSES,
    *CONTROL_CLASSES,
    FabrikEffector,
    FabrikBakeSettings,
    FabrikDragSettings,
    FabrikStoredBone,
    FabrikBonePair,
    FabrikRetarget,
    FabrikHold,
    FabrikMotionView,
    FabrikRig,
)
