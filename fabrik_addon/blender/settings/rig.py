"""The settings of a rig: effectors, holds, live posing and posture, and the groups of all other settings.

The state of each recording on a rig is stored too: matched, calibrated, baked.
"""

from collections.abc import Callable
from inspect import get_annotations
from typing import Any, Final

import bpy
from bpy.types import Action, Context, Object, PropertyGroup, Scene

from . import control, motion
from .declare import Bool, Enum, Factor, Float, FloatVector, Int, Length, List, Place, Pointer, Quaternion, String
from .in_use import add_item, note_use, poses_live_rigs, seen, update_live_pose, values_of

# Functions that are called with an armature whose Live setting changes. The module for live posing adds its own.
LIVE_LISTENERS: Final[list[Callable[[Object], None]]] = []


def live_switched(settings: PropertyGroup, _context: Context) -> None:
    """Handle a change of the Live setting."""
    rig: Any = settings.id_data
    for listener in LIVE_LISTENERS:
        listener(rig)


@poses_live_rigs
class FabrikEffector(motion.PointOnBone, PropertyGroup):
    """A point on a bone, and its target object or the location at which it is pinned."""

    # Whether bones may stretch to reach it.
    may_stretch = True
    control: String()  # on a control rig, the control that the user chose for the bone
    target: Pointer("Target", "The object to reach", type=Object)
    target_bone: String(
        "Target Bone",
        "If the target is an armature, the bone whose head is the target. If it is a bone of "
        "this rig, both bones move toward each other",
    )
    pin_location: Place("Pin Location", "Position of the pin in armature space")
    pin_rotation: Quaternion()  # in armature space
    hold_rotation: Bool("Rotation", "Match the rotation of the target or pin as well as its position")
    priority: Int(
        "Priority",
        "Targets with lower numbers are met first. Higher numbers give way if not all can be met",
        min=0,
        soft_max=5,
    )
    bend_target: Pointer(
        "Pole Target",
        "The object that the middle of the limb points to. If empty, the limb keeps its bend direction",
        type=Object,
    )
    bend_bone: String("Pole Bone", "If the pole target is an armature, the bone whose head the limb points to")
    # A pin's point (3,) and its bone's rotation matrix (9,), armature space, when FABRIK last posed the rig.
    seen: FloatVector(size=12, update=None)

    @property
    def kind(self) -> str:
        """The kind: "PIN" if the point is held at its pinned location, "TARGET" if it has a target object."""
        return "PIN" if self.target is None and self.is_property_set("pin_location") else "TARGET"

    @property
    def shown_bone(self) -> str:
        """The bone that the user chose: a control, or the bone itself."""
        rig: Any = self.id_data
        return str(self.control if self.control in rig.pose.bones else self.bone)


class FabrikHold(PropertyGroup):
    """A bone held in place, in the world or relative to an object, from one frame to another.

    The effect of the hold is in the keys of the action.
    """

    bone: String()
    # The end of the bone that is held, "TAIL" or "HEAD", and whether its rotation is held too.
    point: String(default="TAIL")
    hold_rotation: Bool(default=True)
    first: Float()
    last: Float()
    # Whether the hold was created from a detected foot contact.
    is_contact: Bool()
    # The keys before and after the hold, used to restore them.
    replaced: Pointer(type=Action)


PREFERRED_POSES = (
    ("START", "Start", "The pose at the start of a drag, or the current pose when Live is on"),
    ("REST", "Rest", "The rest pose"),
    ("KEPT", "Stored", "The pose stored with the button on the right"),
)
BALANCES = (
    (
        "AUTO",
        "Auto",
        (
            "Keep the center of mass over pinned feet and other pins at the same height. If a higher pin "
            "supports the body, the body may lean"
        ),
    ),
    ("ON", "On", "Keep the center of mass over the pinned feet if the targets allow it"),
    ("OFF", "Off", "Do not keep the center of mass over the feet"),
)


class FabrikStoredBone(PropertyGroup):
    """The stored pose of a bone, or the stored value of a switch; its name is the bone's name or the switch's path."""

    # The local rotation, and the location channels.
    rotation: Quaternion()
    location: FloatVector(subtype="XYZ")
    # The value of a switch, or 1 for an IK control that holds a limb.
    value: Float()


@poses_live_rigs
class PostureSettings:
    """Settings of dragging, live posing and solving, apart from targets. A mixin for the rig's settings."""

    preferred_pose: Enum(
        "Preferred Pose", "The pose that the rig stays close to while it meets its targets", items=PREFERRED_POSES
    )
    kept_pose: List(type=FabrikStoredBone)
    balance: Enum("Balance", "Keep the center of mass over the supporting feet", items=BALANCES)
    free_limbs_hang: Bool(
        "Free Limbs Hang",
        "When the whole rig is dragged, let arms, legs and head hang if they are not dragged or "
        "pinned, instead of following the trunk rigidly",
        default=True,
    )
    use_floor: Bool(
        "Floor",
        "Keep the whole body, including its skin, above the floor. On a rig that is not human, this "
        "applies only to feet, hands and knees",
    )
    show_capsules: Bool("Show Capsules", "Draw the capsules used by Self-Collision", update=note_use)
    floor_height: Length("Floor Height", "Height of the floor on the world's Z axis")


# The data on an armature object, `Object.fabrik`, is the add-on's only state. It is saved with the file, and can be
# changed on a library override.

# Files store these numbers, so they must not change.
ROOTS = (
    ("AUTO", "Automatic", "The root bone moves if anything is pinned, or when it is dragged itself", 2),
    ("FIXED", "Pinned", "The root bone rotates, but its head stays in place", 0),
    ("FREE", "Free", "The root bone moves and rotates, so the whole rig follows the targets", 1),
    (
        "FOLLOW",
        "Follow",
        "Like Free, but while nothing is pinned, a dragged bone pulls the rig along as if on a rope",
        3,
    ),
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
    ("MARKERS", "Timeline Markers", "Fade out at the previous and next timeline markers, if there are any"),
    ("CONTACTS", "Contacts", ("Fade out at the previous and next start or end of a foot contact, if there are any")),
    (
        "LAYER",
        "New Layer",
        "Put drags on an NLA track above the original action, which is kept. The track's influence blends the edits",
    ),
)

# For arguments that the operator's next call must not reuse, such as a script's or the end of a drag.
ASIDE: Final = {"SKIP_SAVE"}


class FabrikDragSettings(PropertyGroup):
    """The settings for dragging bones."""

    reach: Enum("Chain Length", "Which bones follow a dragged bone", items=REACHES)
    bones: Int("Bones", "Number of bones that follow, including the dragged bone", default=3, min=1, soft_max=20)
    keep_orientation: Bool(
        "Keep Orientation",
        "A dragged foot or head keeps its orientation, like an IK control; press R to rotate it",
        default=True,
        options=ASIDE,
    )
    spread: Int(
        "Spread",
        "Number of frames before and after the current frame over which a drag fades out; 0 "
        "changes only the current frame. A planted foot is moved during its whole contact. "
        "Requires Auto Keying",
        min=0,
        soft_max=120,
        options=ASIDE,
    )
    spread_to: Enum(
        "Spread To",
        "The frames at which a drag fades out, and whether it goes to a new layer",
        items=SPREADS,
        options={"ENUM_FLAG"},
    )


class FabrikRig(PostureSettings, PropertyGroup):
    """All data of the add-on on one armature object."""

    effectors: List(type=FabrikEffector)
    active_effector: Int("Active Target or Pin", "The target or pin whose settings are shown")
    root: Enum(
        "Root",
        "How the root bone moves when bones are dragged, solved or baked",
        items=ROOTS,
        default="AUTO",
        update=update_live_pose,
    )
    bake: Pointer(type=motion.FabrikBakeSettings)
    capture: Pointer(type=motion.FabrikCapture)
    retarget: Pointer(type=motion.FabrikRetarget)
    key_bones: Enum("Bones to Key", "Bones that get keys from Keyframe Solved Bones", items=KEY_BONES)
    unkeyed: List(type=FabrikStoredBone)  # the last keyed transforms of bones that were dragged since
    drag: Pointer(type=FabrikDragSettings)
    control: Pointer(type=control.FabrikControlRig)
    holds: List(type=FabrikHold)
    show_trails: Bool(
        "Trails",
        "Show the paths of the selected bones' tails, with keys as dots. Drag a point to edit the bone on that frame",
        update=note_use,
    )
    trail_frames: Int(
        "Trail Frames", "Number of frames before and after the current frame", default=60, min=1, soft_max=250
    )
    live: Bool(
        "Live",
        "Solve the rig whenever a target moves or the frame changes. Bake before rendering",
        update=live_switched,
    )
    influence: Factor(
        "Influence",
        "Blend from the keyed pose (0) to the targets (1). Bones without keys blend from the "
        "pose when Live was switched on",
        default=1.0,
        update=update_live_pose,
    )
    stored_pose: List(type=FabrikStoredBone)  # the pose when Live was switched on


def rig_settings(rig: Object) -> FabrikRig:
    """The add-on's data on an armature object."""
    settings: FabrikRig = rig.fabrik  # type: ignore[attr-defined]  # Blender adds it when the add-on is registered
    return settings


CLASSES = (
    *motion.CLASSES,
    *control.CLASSES,
    FabrikEffector,
    FabrikDragSettings,
    FabrikStoredBone,
    FabrikHold,
    FabrikRig,
)


def imported_takes(scene: Scene) -> list[bpy.types.Collection]:
    """The collections of a scene with imported recordings, in the order of their import."""
    return [each for each in scene.collection.children_recursive if each.get(motion.TAKE_STATIC) is not None]


def take_name(rig: Object) -> str:
    """The name of the recording of a rig's markers; "" if they were selected one by one."""
    capture = seen(rig).capture
    take = capture.take or capture.take_armature
    return "" if take is None else take.name


def _record_of(rig: Object, collection: bpy.types.Collection | None) -> motion.FabrikTake | None:
    return next((each for each in seen(rig).capture.takes if each.collection == collection), None)


def follow_take(rig: Object, take: bpy.types.Collection | Object | None) -> None:
    """Switch a rig to another take, or to an armature whose bones are markers: its data replaces the current data.

    The current data is stored until the rig is switched back.
    """
    capture = rig_settings(rig).capture
    if take == (capture.take or capture.take_armature):
        return
    if len(capture.markers) or capture.report is not None:
        _copy(rig, to_record=True)
    is_armature = isinstance(take, Object)
    capture.take, capture.take_armature = None if is_armature else take, take if is_armature else None
    rig_settings(rig).retarget.brought = ""
    _copy(rig, to_record=False)


def _copy(rig: Object, *, to_record: bool) -> None:
    """Copy the data about the rig's current take to its record, or back; makes the record if there is none."""
    capture = rig_settings(rig).capture
    record = _record_of(rig, capture.take) or capture.takes.add()
    record.collection, record.name = capture.take, take_name(rig)
    source, target = (capture, record) if to_record else (record, capture)
    for name in get_annotations(motion.OfATake):
        value: Any = getattr(source, name)
        if hasattr(value, "add"):
            rows = getattr(target, name)
            rows.clear()
            for each in value:
                add_item(rows, **values_of(each))
        else:
            setattr(target, name, value)


def state_of_take(rig: Object, collection: bpy.types.Collection) -> str:
    """The state of a take on a rig: "BAKED", "CALIBRATED", "MATCHED", "STATIC" or "NEW"."""
    capture = seen(rig).capture
    own = capture if capture.take == collection else _record_of(rig, collection)
    if own is not None and own.action is not None:
        return "BAKED"
    if own is not None and any(marker.bone for marker in own.markers):
        return "CALIBRATED" if own.calibrated else "MATCHED"
    return "STATIC" if collection.get(motion.TAKE_STATIC) else "NEW"
