"""Data stored on an armature object, `Object.fabrik`: its effectors, its root and bake settings.

This is the only state of the add-on. It is saved with the file, and can be changed on a library override.
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
from .in_use import noting
from .live import live_switched, solved_anew
from .markers import CLASSES as MARKER_CLASSES
from .markers import FabrikCapture
from .moment import Moment
from .motion import FabrikHold
from .overrides import overridable
from .posture import FabrikStoredBone, PostureSettings

# The numbers are stored in files; the first two are older than the others.
ROOTS = (
    ("AUTO", "Automatic", "The root bone moves if anything is pinned, or when it is dragged itself", 2),
    ("FIXED", "Pinned", "The root bone rotates, but its head stays in place", 0),
    ("FREE", "Free", "The root bone moves and rotates, so the whole rig follows the targets", 1),
    ("FOLLOW", "Follow", "Like Free, but while nothing is pinned, a dragged bone pulls the rig along like a rope", 3),
)
KEY_BONES = (
    ("POSED", "Posed", "Bones that were dragged since their last key, and bones posed by targets"),
    ("WHOLE", "Whole Body", "All bones that can be keyed. On a control rig, the controls that pose its deform bones"),
    ("SELECTED", "Selected", "The selected bones"),
)
REACHES = (
    ("WHOLE", "Whole Rig", "All bones up to the root follow a dragged bone"),
    ("PIN", "To Pin", "Bones up to the nearest pinned bone follow"),
    ("BONES", "Bones", "A fixed number of bones follow, including the dragged bone"),
)
SPREADS = (
    ("MARKERS", "Markers", "Fade out at the previous and next timeline markers, if there are any"),
    ("CONTACTS", "Contacts", "Fade out at the previous and next foot contact changes, if there are any"),
    (
        "LAYER",
        "New Layer",
        "Put drags on an NLA track above the recording, which is kept. The track's influence blends the edits",
    ),
)


# Neither a script's arguments nor the end of a drag are reused by the operator's next call.
ASIDE: Final = {"SKIP_SAVE"}


@overridable
class DragOptions:
    """How bones are dragged. A mixin of the rig's settings and of the operator."""

    reach: EnumProperty(
        name="Chain Length", description="Which bones follow a dragged bone", items=REACHES, options=ASIDE
    )
    bones: IntProperty(
        name="Bones",
        description="Number of bones that follow, including the dragged bone",
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
        description="Number of frames before and after the current frame over which a drag of animated bones "
        "fades out; 0 changes only this frame. A planted foot moves together with its contact "
        "inside this range. Requires Auto Keying",
        min=0,
        soft_max=120,
        options=ASIDE,
    )
    spread_to: EnumProperty(
        name="Spread To",
        description="Where the effect of a drag over time ends, and whether it goes to a layer",
        items=SPREADS,
        options={"ENUM_FLAG", *ASIDE},
    )


class FabrikDragSettings(DragOptions, PropertyGroup):
    """How bones are dragged, unless the operator has other arguments."""


@overridable
class FabrikRig(PostureSettings, PropertyGroup):
    """All data of the add-on on one armature object."""

    effectors: CollectionProperty(name="Effectors", description="The targets and pins of this rig", type=FabrikEffector)
    active_effector: IntProperty(name="Active Effector", description="The target or pin whose settings are shown")
    root: EnumProperty(
        name="Root",
        description="How the root bone moves when bones are dragged, solved or baked",
        items=ROOTS,
        default="AUTO",
        update=solved_anew,
    )
    bake: PointerProperty(name="Bake", description="Settings of the Bake panel", type=FabrikBakeSettings)
    capture: PointerProperty(name="Capture", description="The rig's markers", type=FabrikCapture)
    retarget: PointerProperty(
        name="Retarget", description="Settings for retargeting another armature's motion", type=FabrikRetarget
    )
    key_bones: EnumProperty(
        name="Key Bones", description="Bones that Keyframe Solved Bones inserts keys for", items=KEY_BONES
    )
    unkeyed: CollectionProperty(
        name="Unkeyed", description="Last keyed transforms of bones that were dragged since", type=FabrikStoredBone
    )
    drag: PointerProperty(name="Drag", description="Settings for dragging bones", type=FabrikDragSettings)
    control: PointerProperty(name="Control Rig", description="The rig's controls", type=FabrikControlRig)
    holds: CollectionProperty(
        name="Holds", description="Bones that are held in place over a range of frames", type=FabrikHold
    )
    show_trails: BoolProperty(
        name="Trails",
        description="Show the paths of the selected bones' tails, with keys as dots. Drag a point to edit "
        "the bone on that frame",
        update=noting("motion"),
    )
    trail_frames: IntProperty(
        name="Trail Frames",
        description="Number of frames before and after the current frame",
        default=60,
        min=1,
        soft_max=250,
    )
    live: BoolProperty(
        name="Live",
        description="Solve the rig whenever a target moves or the frame changes. Bake before rendering",
        update=live_switched,
    )
    influence: FloatProperty(
        name="Influence",
        description="Blend from the keyed pose (0) to the targets (1). Bones without keys blend from the "
        "pose when Live was switched on",
        subtype="FACTOR",
        default=1.0,
        min=0.0,
        max=1.0,
        update=solved_anew,
    )
    stored_pose: CollectionProperty(
        name="Stored Pose", description="The pose when live was switched on", type=FabrikStoredBone
    )
    # Why live posing fails, and how well the last bake met its targets, in short lines.
    live_trouble = Moment()
    last_result = Moment(per_take=True)


def rig_settings(rig: bpy.types.Object) -> FabrikRig:
    """The add-on's data on an armature object."""
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
    FabrikRig,
)
