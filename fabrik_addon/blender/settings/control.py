"""The stored set-up of a control rig: the bones of its body, their controls, and how those are connected.

`control/set_up.py` finds them by trying the controls. Users can change all of them.
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

from .in_use import seen
from .overrides import overridable

# Constraints that only restrict what an animator does.
_BOUNDS: Final = ("LIMIT_ROTATION", "LIMIT_LOCATION", "LIMIT_SCALE", "LIMIT_DISTANCE", "MAINTAIN_VOLUME", "COPY_SCALE")

FOUND: tuple[tuple[str, str, str], ...] = (
    ("TURNS", "Rotates", "Rotating the control rotates the bone by the same amount"),
    ("SWINGS", "Swings", "Rotating the control swings the bone by the same amount; the rig sets its twist"),
    ("HAND", "Manual", "The control was chosen manually"),
)


LIMBS: tuple[tuple[str, str, str], ...] = (
    (
        "AUTO",
        "Automatic",
        (
            "Posing keeps each limb on IK or FK. Baking switches limbs to FK, except pinned limbs on IK, and keys the "
            "IK controls to match"
        ),
    ),
    ("FK", "FK", "Switch limbs to FK when they are posed or baked"),
    ("IK", "IK", "Keep each limb on IK or FK, also when baking"),
)


def _chosen_by_hand(carrier: "FabrikCarrier", _context: Context) -> None:
    carrier.found = "HAND"


@overridable
class FabrikCarrier(PropertyGroup):
    """A bone of the body, its name, and its control."""

    control: StringProperty(
        name="Control",
        description="The control that rotates this bone; empty if it only follows its parent",
        update=_chosen_by_hand,
    )
    parent: StringProperty(name="Parent", description="The parent deform bone; empty for a root")
    found: EnumProperty(name="Found", description="How the control was found", items=FOUND)
    switch: StringProperty(name="Switch", description="The custom property that switches this bone from IK to FK")
    goes_by: StringProperty(name="IK Control", description="The control that this bone follows while its limb is on IK")
    hinge: StringProperty(
        name="Hinge", description="The axis about which IK bends this bone; empty if there are several"
    )
    hinge_low: FloatProperty(name="Min", description="Minimum bend by the limb's IK", subtype="ANGLE")
    hinge_high: FloatProperty(name="Max", description="Maximum bend by the limb's IK", subtype="ANGLE")


@overridable
class FabrikControl(PropertyGroup):
    """A control, its name, and the controls that it follows."""

    turns_with: StringProperty(
        name="Rotates With", description="The control that also rotates this one; empty if there is none"
    )
    shares_turn: StringProperty(name="Shares Rotation", description="A second control that partly rotates this one")
    share: FloatProperty(name="Share", description="Fraction of the second control's rotation", subtype="FACTOR")
    moves_with: StringProperty(name="Moves With", description="The control that this control's head follows")
    stands_for: StringProperty(name="Deform Bone", description="The deform bone that is dragged instead of the control")
    limb: StringProperty(name="Limb", description="The IK/FK switch of the limb that this control moves on IK")


@overridable
class FabrikSwitch(PropertyGroup):
    """A number that switches a limb from IK to FK; its name is its path from the armature object.

    It is a custom property, or the influence of a limb's IK if the rig has no other.
    """

    fk: FloatProperty(name="FK", description="Value of the switch for FK")
    ik: FloatProperty(name="IK", description="Value of the switch for IK")
    only_ik: BoolProperty(name="IK Only", description="The rig has no FK for this limb, so it is always on IK")
    stretches: BoolProperty(
        name="Stretches", description="The limb's IK stretches its bones, and stretching can't be turned off"
    )


@overridable
class FabrikAlong(PropertyGroup):
    """A property that is set together with a limb's switch, such as IK Stretch; its name is its path."""

    switch: StringProperty(name="Switch", description="The path of the property that switches its limb from IK to FK")
    fk: FloatProperty(name="FK", description="Value of the switch for FK")
    ik: FloatProperty(name="IK", description="Value while the limb is on IK")


@overridable
class FabrikControlRig(PropertyGroup):
    """The rig as a control rig; not one as long as it has no carriers."""

    carriers: CollectionProperty(name="Deform Bones", description="The deform bones of the rig", type=FabrikCarrier)
    controls: CollectionProperty(name="Controls", description="The controls of the rig", type=FabrikControl)
    switches: CollectionProperty(
        name="Switches", description="The properties that switch limbs between IK and FK", type=FabrikSwitch
    )
    along: CollectionProperty(
        name="Also Set", description="Properties that are set together with the limbs' switches", type=FabrikAlong
    )
    active: IntProperty(name="Active Bone", description="The deform bone whose details are shown")
    place: StringProperty(name="Root Control", description="The control that moves the whole rig")
    uncarried: StringProperty(
        name="Uncontrolled", description="Deform bones that no control rotates, separated by commas"
    )
    limbs: EnumProperty(
        name="Limbs on IK", description="Whether limbs stay on IK when they are posed or baked", items=LIMBS
    )
    use: BoolProperty(
        name="Control Rig", description="Pose the deform bones by writing to the rig's controls", default=True
    )


CLASSES = (FabrikCarrier, FabrikControl, FabrikSwitch, FabrikAlong, FabrikControlRig)


def control_rig(rig: bpy.types.Object) -> FabrikControlRig | None:
    """The control rig data of a rig; None if it is not a control rig, or not used as one."""
    kept: FabrikControlRig = seen(rig).control
    return kept if kept.use and len(kept.carriers) else None


def solved_bone(rig: bpy.types.Object, bone: str) -> str:
    """The solved bone for a given one: on a control rig, the one that a control represents."""
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
    """The solved bones, all of them or those of a control rig's body, with their parents' names or ""."""
    kept = control_rig(rig)
    if kept is None:
        return {bone.name: bone.parent.name if bone.parent else "" for bone in rig.data.bones}
    return {row.name: row.parent for row in kept.carriers}


def moves(constraint: Any) -> bool:
    """Whether a constraint is active and does more than restrict."""
    at_work = not constraint.mute and constraint.influence > 0.0 and constraint.is_valid
    return bool(at_work and constraint.type not in _BOUNDS)


def may_be_control_rig(rig: bpy.types.Object) -> bool:
    """Whether constraints move bones of a rig that is not set up as a control rig yet."""
    kept: FabrikControlRig = seen(rig).control
    return not len(kept.carriers) and any(moves(each) for bone in rig.pose.bones for each in bone.constraints)
