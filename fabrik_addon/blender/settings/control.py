"""What is kept of a control rig: the bones of its body, the controls that carry them, and how those hang together.

Found by trying (`control/set_up.py`); all of it can be changed by hand.
"""

from typing import Any, Final

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    IntProperty,
    StringProperty,
)
from bpy.types import Context, PropertyGroup

from .overrides import overridable
from .unset import seen

# Constraints that turn and move nothing, or only keep what an animator does within bounds.
_BOUNDS: Final = ("LIMIT_ROTATION", "LIMIT_LOCATION", "LIMIT_SCALE", "LIMIT_DISTANCE", "MAINTAIN_VOLUME", "COPY_SCALE")

FOUND: tuple[tuple[str, str, str], ...] = (
    ("TURNS", "Turns it", "Turning the control by a little turned the bone by as much"),
    ("SWINGS", "Swings it", "Turning the control swung the bone by as much; its twist the rig makes itself"),
    ("HAND", "By hand", "The control was chosen by hand"),
)


LIMBS: tuple[tuple[str, str, str], ...] = (
    (
        "AUTO",
        "Automatic",
        "Each limb stays on IK or FK when it is posed. Bakes put limbs on FK, except limbs on IK that have a pin",
    ),
    ("FK", "FK", "Limbs on IK go to FK when they are posed, and in bakes"),
    ("IK", "IK", "Each limb stays on IK or FK, in bakes too"),
)


def _chosen_by_hand(carrier: "FabrikCarrier", _context: Context) -> None:
    carrier.found = "HAND"


@overridable
class FabrikCarrier(PropertyGroup):
    """A bone of the body, its name, and the control that carries it."""

    control: StringProperty(
        name="Control", description="The control that turns this bone; none: it rides along", update=_chosen_by_hand
    )
    parent: StringProperty(name="Parent", description="The bone of the body that this one hangs on; none: it is a root")
    found: EnumProperty(name="Found", description="How the control was found", items=FOUND)
    switch: StringProperty(name="Switch", description="The custom property that hands this bone from IK to FK")
    goes_by: StringProperty(name="IK Control", description="The control that this bone goes with on IK")
    hinge: StringProperty(name="Hinge", description="The bone's axis that its limb's IK bends it about; none: several")
    hinge_low: FloatProperty(name="Low", description="How far its limb's IK bends it one way", subtype="ANGLE")
    hinge_high: FloatProperty(name="High", description="How far its limb's IK bends it the other way", subtype="ANGLE")


@overridable
class FabrikControl(PropertyGroup):
    """A control, its name, and what it goes with when others are turned."""

    turns_with: StringProperty(name="Turns With", description="The control that turns this one along, none: nothing")
    shares_turn: StringProperty(name="Shares Turn", description="A second control, that turns this one by a share")
    share: FloatProperty(name="Share", description="How much of the second one's turn", subtype="FACTOR")
    moves_with: StringProperty(name="Moves With", description="The control that this one's head is fixed to")
    stands_for: StringProperty(name="Stands For", description="The bone of the body that is dragged in its place")
    limb: StringProperty(name="Limb", description="The switch of the limb that it places while that is on IK")


@overridable
class FabrikSwitch(PropertyGroup):
    """A number that hands a limb from IK to FK; its name is its path from the armature object.

    That is a custom property, or the influence of a limb's IK where the rig has no other.
    """

    fk: FloatProperty(name="FK", description="Its value with the limb on FK")
    ik: FloatProperty(name="IK", description="Its value with the limb on IK")
    only_ik: BoolProperty(name="Only IK", description="The rig has no FK for the limb: it is placed on IK at all times")
    stretches: BoolProperty(
        name="Stretches", description="The limb's IK makes its bones longer or shorter, and can't be kept from it"
    )


@overridable
class FabrikAlong(PropertyGroup):
    """A number that is set along with a limb's switch, such as a bone's IK Stretch; its name is its path."""

    switch: StringProperty(name="Switch", description="The path of what hands its limb from IK to FK")
    fk: FloatProperty(name="FK", description="Its value with the limb on FK")
    ik: FloatProperty(name="IK", description="Its value while the limb is placed on IK")


@overridable
class FabrikControlRig(PropertyGroup):
    """The rig as a control rig; it is none while no bone is carried."""

    carriers: CollectionProperty(name="Body", description="The bones of the body", type=FabrikCarrier)
    controls: CollectionProperty(name="Controls", description="The controls of the rig", type=FabrikControl)
    switches: CollectionProperty(name="Switches", description="What hands limbs from IK to FK", type=FabrikSwitch)
    along: CollectionProperty(name="Set Along", description="What is set along with limbs' switches", type=FabrikAlong)
    active: IntProperty(name="Active Bone", description="The bone of the body that is shown")
    place: StringProperty(name="Place", description="The control that moves the whole body")
    uncarried: StringProperty(
        name="Ride Along", description="Bones of the mesh that no control turns, separated by commas"
    )
    limbs: EnumProperty(name="Limbs on IK", description="Whether limbs on IK stay on IK", items=LIMBS)
    use: BoolProperty(name="Control Rig", description="Pose the body and write its controls", default=True)


CLASSES = (FabrikCarrier, FabrikControl, FabrikSwitch, FabrikAlong, FabrikControlRig)


def control_rig(rig: bpy.types.Object) -> FabrikControlRig | None:
    """What is kept of a rig as a control rig; None where it is none, or is not to be used as one."""
    kept: FabrikControlRig = seen(rig).control
    return kept if kept.use and len(kept.carriers) else None


def solved_bone(rig: bpy.types.Object, bone: str) -> str:
    """The bone that is solved where a bone is meant: of a control rig the one that a control stands for."""
    kept = control_rig(rig)
    while kept is not None and bone in rig.pose.bones and bone not in kept.carriers:
        control = kept.controls.get(bone)
        if control is not None and control.stands_for:
            found: str = control.stands_for
            return found
        parent = rig.pose.bones[bone].parent
        if parent is None:
            break
        bone = parent.name
    return bone


def solved_parents(rig: bpy.types.Object) -> dict[str, str]:
    """The bones that are solved, all of them or those of a control rig's body, with their parents' names or ""."""
    kept = control_rig(rig)
    if kept is None:
        return {bone.name: bone.parent.name if bone.parent else "" for bone in rig.data.bones}
    return {row.name: row.parent for row in kept.carriers}


def moves(constraint: Any) -> bool:
    """Whether a constraint is at work and does more than to keep within bounds."""
    at_work = not constraint.mute and constraint.influence > 0.0 and constraint.is_valid
    return bool(at_work and constraint.type not in _BOUNDS)


def may_be_control_rig(rig: bpy.types.Object) -> bool:
    """Whether constraints move bones of a rig, and nobody has looked yet for the controls that carry them."""
    kept: FabrikControlRig = seen(rig).control
    return not len(kept.carriers) and any(moves(each) for bone in rig.pose.bones for each in bone.constraints)
