"""What is kept on an armature object, `Object.fabrik`: its effectors, its root and how it is baked.

The only state of the add-on. It is saved with the file, and can be changed on a library override.
"""

from collections.abc import Callable
from typing import Any, Final

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

from .markers import CLASSES as MARKER_CLASSES
from .markers import FabrikCapture

OVERRIDABLE = {"LIBRARY_OVERRIDABLE"}

POINTS = (
    ("TAIL", "Tail", "The bone's tail goes to the target"),
    ("HEAD", "Head", "The bone's head goes to the target"),
    ("OFFSET", "Offset", "A point fixed on the bone goes to the target"),
)
ROOTS = (
    ("FIXED", "Pinned", "The root bone turns but its head stays where it is"),
    ("FREE", "Free", "The root bone moves as well, so the whole rig follows the targets"),
)
KINDS = (
    ("TARGET", "Target", "The point reaches for an object"),
    ("PIN", "Pin", "The point is held at a place in the armature's own space"),
)
REACHES = (
    ("WHOLE", "Whole Rig", "All bones up to the root follow"),
    ("PIN", "To Pin", "Bones up to the nearest pinned one follow"),
    ("BONES", "Bones", "A number of bones follow, the dragged one included"),
)
DRAG_ROOTS = (
    ("FIXED", "Pinned", "The root bone turns but its head stays where it is"),
    ("FREE", "Free", "The root bone moves where that suits pins and dragged bone best"),
    ("FOLLOW", "Follow", "The root bone is pulled along, as by a rope"),
)
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
LIMIT_TYPES = (
    ("FREE", "Free", "Turns without limits"),
    ("BALL", "Ball", "Leans within a cone of four angles, and twists within a range"),
    ("HINGE", "Hinge", "Turns about one axis only, within a range"),
    ("FIXED", "Fixed", "Does not turn"),
    ("POLYGON", "Polygon", "Leans within a window of any outline, and twists within a range"),
)
LIMIT_AXES = (
    ("X", "X", "The bone's X axis"),
    ("Y", "Y", "Along the bone, like a pivot"),
    ("Z", "Z", "The bone's Z axis"),
)


# Called with each armature whose live posing is switched on or off; who poses it puts itself in here.
LIVE_LISTENERS: Final[list[Callable[[bpy.types.Object], None]]] = []


def live_switched(kept: "FabrikRig", _context: bpy.types.Context) -> None:
    """Blender calls this where live is switched on or off."""
    rig: Any = kept.id_data
    for listener in LIVE_LISTENERS:
        listener(rig)


def solved_anew(group: PropertyGroup, _context: bpy.types.Context) -> None:
    """Blender calls this where something that a live rig's pose depends on has been changed."""
    rig: Any = group.id_data
    if rig_settings(rig).live:
        rig.update_tag(refresh={"OBJECT"})


class FabrikEffector(PropertyGroup):
    """A point on a bone, and the object that it is to reach or the place where it is held."""

    kind: EnumProperty(
        name="Kind", description="What the point goes to", items=KINDS, update=solved_anew, override=OVERRIDABLE
    )
    bone: StringProperty(
        name="Bone", description="The bone that is to reach the target", update=solved_anew, override=OVERRIDABLE
    )
    point: EnumProperty(
        name="Point",
        description="Which point of the bone is to reach the target",
        items=POINTS,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    offset: FloatVectorProperty(
        name="Offset",
        description="The point in the bone's own axes, measured from its head",
        subtype="XYZ",
        unit="LENGTH",
        precision=4,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    target: PointerProperty(
        name="Target",
        description="The object to reach",
        type=bpy.types.Object,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    target_bone: StringProperty(
        name="Target Bone",
        description="Where the target is an armature: its bone whose head is to be reached. "
        "A bone of this rig itself comes to meet the effector where it can: both sides give way",
        update=solved_anew,
        override=OVERRIDABLE,
    )
    pin_location: FloatVectorProperty(
        name="Pin Location",
        description="Where the point is held, in the armature's own space",
        subtype="XYZ",
        unit="LENGTH",
        precision=4,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    pin_rotation: FloatVectorProperty(
        name="Pin Rotation",
        description="How the bone is held where its rotation is pinned too, in the armature's own space",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
        update=solved_anew,
        override=OVERRIDABLE,
    )
    hold_rotation: BoolProperty(
        name="Hold Rotation",
        description="Hold the bone's rotation as well as its place",
        update=solved_anew,
        override=OVERRIDABLE,
    )
    weight: FloatProperty(
        name="Weight",
        description="How much this target counts where not all can be reached",
        default=1.0,
        min=0.0,
        soft_max=10.0,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    enabled: BoolProperty(
        name="Enabled",
        description="Whether solving and baking heed this effector",
        default=True,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    use_rotation: BoolProperty(
        name="Take Rotation",
        description="Turn the bone as its target is turned as well",
        update=solved_anew,
        override=OVERRIDABLE,
    )
    rotation_weight: FloatProperty(
        name="Rotation Weight",
        description="How much the rotation counts beside the place where not both can be had",
        default=1.0,
        min=0.0,
        soft_max=10.0,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    priority: IntProperty(
        name="Priority",
        description="Lower numbers are met first, and higher ones give way where not all can be met",
        min=0,
        soft_max=5,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    bend_target: PointerProperty(
        name="Bend Target",
        description="The object that the middle of the limb bends toward; without one it bends as now",
        type=bpy.types.Object,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    bend_bone: StringProperty(
        name="Bend Bone",
        description="Where the bend target is another armature: its bone whose head the limb bends toward",
        update=solved_anew,
        override=OVERRIDABLE,
    )


class FabrikBakeSettings(PropertyGroup):
    """What the sidebar's Bake button uses."""

    use_scene_range: BoolProperty(
        name="Scene Range", description="Bake the scene's frame range", default=True, override=OVERRIDABLE
    )
    frame_start: IntProperty(name="Start", description="First frame to bake", default=1, override=OVERRIDABLE)
    frame_end: IntProperty(name="End", description="Last frame to bake", default=250, override=OVERRIDABLE)
    step: IntProperty(
        name="Step", description="Frames from one key to the next", default=1, min=1, soft_max=10, override=OVERRIDABLE
    )
    start: EnumProperty(
        name="Start From", description="The pose that each frame is solved from", items=STARTS, override=OVERRIDABLE
    )
    action: EnumProperty(
        name="Action", description="Where the keyframes are written", items=ACTIONS, override=OVERRIDABLE
    )
    mend_jumps: BoolProperty(
        name="Mend Jumps",
        description="Solve frames on which a limb jumps, or that failed, again from the frames about them",
        override=OVERRIDABLE,
    )
    source: EnumProperty(name="Follow", description="What the rig follows", items=SOURCES, override=OVERRIDABLE)
    bones: EnumProperty(name="Bones", description="Which bones get keys", items=BAKED_BONES, override=OVERRIDABLE)
    root_motion: EnumProperty(
        name="Root Motion",
        description="What travels where the root is free",
        items=ROOT_MOTIONS,
        override=OVERRIDABLE,
    )
    key_angle: FloatProperty(
        name="Fewer Keys",
        description="Leave out keys as long as no bone is turned off by more than this; 0 keeps a key on every frame",
        subtype="ANGLE",
        default=0.0,
        min=0.0,
        soft_max=0.1,
        override=OVERRIDABLE,
    )
    key_distance: FloatProperty(
        name="Root Tolerance",
        description="Where keys are left out: how far off the root may be at most",
        unit="LENGTH",
        default=0.001,
        min=0.0,
        soft_max=0.1,
        precision=4,
        override=OVERRIDABLE,
    )


class FabrikDragSettings(PropertyGroup):
    """How bones are dragged."""

    reach: EnumProperty(
        name="Chain Length",
        description="How far up the rig follows a dragged bone",
        items=REACHES,
        override=OVERRIDABLE,
    )
    bones: IntProperty(
        name="Bones",
        description="How many bones follow, the dragged one included",
        default=3,
        min=1,
        soft_max=20,
        override=OVERRIDABLE,
    )
    root: EnumProperty(
        name="Root",
        description="What the root bone does while another one is dragged",
        items=DRAG_ROOTS,
        override=OVERRIDABLE,
    )


class FabrikStoredBone(PropertyGroup):
    """How a bone stood when live was switched on; its name is the bone's."""

    rotation: FloatVectorProperty(
        name="Rotation",
        description="Its local rotation",
        size=4,
        subtype="QUATERNION",
        default=(1.0, 0.0, 0.0, 0.0),
        override=OVERRIDABLE,
    )
    location: FloatVectorProperty(
        name="Location", description="What its location channels held", subtype="XYZ", override=OVERRIDABLE
    )


class FabrikRig(PropertyGroup):
    """All that the add-on keeps on one armature object."""

    effectors: CollectionProperty(
        name="Effectors",
        description="The points of this rig that reach for targets",
        type=FabrikEffector,
        override={"LIBRARY_OVERRIDABLE", "USE_INSERTION"},
    )
    active_effector: IntProperty(
        name="Active Effector", description="The effector whose details are shown", override=OVERRIDABLE
    )
    root: EnumProperty(
        name="Root",
        description="Whether solving may move the root bone",
        items=ROOTS,
        update=solved_anew,
        override=OVERRIDABLE,
    )
    bake: PointerProperty(
        name="Bake", description="What the Bake button uses", type=FabrikBakeSettings, override=OVERRIDABLE
    )
    capture: PointerProperty(name="Capture", description="The rig's markers", type=FabrikCapture, override=OVERRIDABLE)
    drag: PointerProperty(
        name="Drag", description="How bones are dragged", type=FabrikDragSettings, override=OVERRIDABLE
    )
    live: BoolProperty(
        name="Live",
        description="Pose the rig at once whenever a target moves or the frame changes; renders need a bake",
        update=live_switched,
        override=OVERRIDABLE,
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
        override=OVERRIDABLE,
    )
    stored_pose: CollectionProperty(
        name="Stored Pose",
        description="The pose when live was switched on",
        type=FabrikStoredBone,
        override={"LIBRARY_OVERRIDABLE", "USE_INSERTION"},
    )
    live_trouble: StringProperty(
        name="Live Trouble", description="What keeps live from posing the rig", override=OVERRIDABLE
    )
    last_result: StringProperty(
        name="Last Result", description="How well the last bake met its targets, in short lines", override=OVERRIDABLE
    )


def rig_settings(rig: bpy.types.Object) -> FabrikRig:
    """What the add-on keeps on an armature object."""
    kept: FabrikRig = rig.fabrik  # type: ignore[attr-defined]  # Blender adds it when the add-on is registered
    return kept


CLASSES = (
    *MARKER_CLASSES,
    FabrikEffector,
    FabrikBakeSettings,
    FabrikDragSettings,
    FabrikStoredBone,
    FabrikRig,
)
