"""The stored setup of a control rig: the bones of its body, their controls, and the connections of the controls.

`control/set_up.py` finds them by trying the controls. Users can change all of them.
"""

from collections.abc import Iterable
from typing import Any, Final

from bpy.types import Object, PoseBone, PropertyGroup

from .declare import Bool, Enum, Float, Int, List, String
from .in_use import seen

# Constraints that only restrict poses.
_BOUNDS: Final = ("LIMIT_ROTATION", "LIMIT_LOCATION", "LIMIT_SCALE", "LIMIT_DISTANCE", "MAINTAIN_VOLUME", "COPY_SCALE")

# A bone follows the bone that it copies if the constraint's influence is larger than this.
_HALF: Final = 0.5

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
            "Posing leaves each limb on IK or FK. Baking switches limbs to FK, unless they are pinned on IK, "
            "and keys the IK controls to match"
        ),
    ),
    ("FK", "FK", "Switch limbs to FK when they are posed or baked"),
    ("IK", "IK", "Leave each limb on IK or FK, even when baking"),
)


class FabrikCarrier(PropertyGroup):
    """A deform bone: its name, and its control."""

    control: String(
        "Control",
        "The control that rotates this bone; empty if it only follows its parent",
        update=lambda carrier, _context: setattr(carrier, "found", "HAND"),
    )
    found: Enum("Found", "How the control was found", items=FOUND)
    # The parent deform bone, the path of the switch between IK and FK, and the control that the bone follows on IK.
    parent: String()
    switch: String()
    goes_by: String()
    # The axis about which IK bends this bone ("" if there are several), and its min and max bend in radians.
    hinge: String()
    hinge_low: Float()
    hinge_high: Float()


class FabrikControl(PropertyGroup):
    """A control, its name, and the controls that it follows."""

    # The control that also rotates this control, and another that rotates it by a fraction; "" if there is none.
    turns_with: String()
    shares_turn: String()
    share: Float()
    # The control that this control's head follows.
    moves_with: String()
    # The deform bone to drag instead of the control.
    stands_for: String()
    # The switch of the limb that this control moves on IK, as a path.
    limb: String()


class FabrikSwitch(PropertyGroup):
    """A number that switches a limb from IK to FK; its name is its path from the armature object.

    It is a custom property, or the influence of a limb's IK if the rig has no other.
    """

    # The path of the number, if it switches several limbs. Their names are this path with different endings.
    shared: String()
    fk: Float()
    ik: Float()
    # Whether the rig has no FK for the limb. Whether IK stretches the limb and this can't be turned off.
    only_ik: Bool()
    stretches: Bool()

    @property
    def path(self) -> str:
        """The path of the number from the armature object."""
        return str(self.shared or self.name)


class FabrikAlong(PropertyGroup):
    """A property that is set together with a limb's switch, such as IK Stretch; its name is its path."""

    # The path of the limb's switch.
    switch: String()
    fk: Float()
    ik: Float()


class FabrikControlRig(PropertyGroup):
    """The control rig data of a rig. Without carriers, the rig is not a control rig."""

    carriers: List(type=FabrikCarrier)
    controls: List(type=FabrikControl)
    switches: List(type=FabrikSwitch)
    along: List(type=FabrikAlong)
    active: Int()
    place: String("Root Control", "The control that moves the whole rig")
    uncarried: String("Uncontrolled", "Deform bones that no control rotates, separated by commas")
    limbs: Enum("Limbs on IK", "Whether limbs stay on IK when they are posed or baked", items=LIMBS)
    use: Bool("Control Rig", "Pose the deform bones by writing to the rig's controls", default=True)


CLASSES = (FabrikCarrier, FabrikControl, FabrikSwitch, FabrikAlong, FabrikControlRig)


def control_rig(rig: Object) -> FabrikControlRig | None:
    """The control rig data of a rig; None if it is not a control rig, or not used as one."""
    setup: FabrikControlRig = seen(rig).control
    return setup if setup.use and len(setup.carriers) else None


def solved_bone(rig: Object, bone: str) -> str:
    """The solved bone that a bone belongs to: for a control of a control rig, the deform bone that it represents.

    A mechanism bone belongs to the solved bone of the bone that it copies, or else to that of its parent. If no solved
    bone is found, returns the bone itself.
    """
    setup, bones, found, tried = control_rig(rig), rig.pose.bones, bone, {""}
    while setup is not None and found in bones and found not in setup.carriers:
        tried.add(found)
        here, control = bones[found], setup.controls.get(found)
        leaders = [control.stands_for] if control is not None else []
        leaders.append(copied(here))
        leaders += [here.parent.name] if here.parent is not None else []
        found = next((name for name in leaders if name in bones), "")
        if found in tried:
            return bone
    return found


def copied(bone: PoseBone) -> str:
    """The bone of the rig whose transforms a bone copies now; "" for none. The last such constraint counts."""
    every: Iterable[Any] = reversed(bone.constraints)
    full = (each for each in every if each.type == "COPY_TRANSFORMS" and each.influence > _HALF and moves(each))
    return next((str(each.subtarget) for each in full if each.target == bone.id_data), "")


def solved_parents(rig: Object) -> dict[str, str]:
    """The solved bones (all bones, or the body of a control rig), each with its parent's name or ""."""
    setup = control_rig(rig)
    if setup is None:
        return {bone.name: above.name if (above := bone.parent) else "" for bone in rig.data.bones}
    return {row.name: row.parent for row in setup.carriers}


def moves(constraint: Any) -> bool:
    """Whether a constraint is active and does more than restrict."""
    at_work = not constraint.mute and constraint.influence > 0.0 and constraint.is_valid
    return bool(at_work and constraint.type not in _BOUNDS)


def may_be_control_rig(rig: Object) -> bool:
    """Whether constraints move bones of a rig that is not set up as a control rig."""
    setup: FabrikControlRig = seen(rig).control
    return not len(setup.carriers) and any(moves(each) for bone in rig.pose.bones for each in bone.constraints)
