"""Whether the body found goes where it is posed to: each control is turned farther, and what differs is left out."""

from collections.abc import Iterator, Sequence
from typing import Final

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import product, quaternion_from_rotation_vector
from ..rig.armature import Tree
from ..settings.control import FabrikCarrier, FabrikControlRig
from .dependents import batches
from .posed_rig import ControlRig
from .trials import TRIED_AXIS
from .writer import ControlWriter

# Radians: far enough for what is not rigid to show.
_TURN: Final = 0.4


def leave_out_unruly(
    context: bpy.types.Context, rig: bpy.types.Object, kept: FabrikControlRig, after: dict[str, int]
) -> None:
    """Take bones from the body, at rest and on FK, until all go where they are posed to when any of them is turned."""
    doubted = {row.name for row in kept.carriers}
    while doubted:
        blamed, doubted = _unruly(context, rig, kept, after, doubted)
        # What was chosen by hand stays, right or not.
        blamed = {name for name in blamed if kept.carriers[name].found != "HAND"}
        if not blamed:
            break
        for name in blamed:
            # What hung on it hangs on something else from now on.
            doubted |= {row.name for row in kept.carriers if row.parent == name} | set(_above(kept, name))
            # Take a bone from the body: what hangs on it hangs on what it hung on.
            parent, control = kept.carriers[name].parent, kept.carriers[name].control
            if control != kept.place:
                _let_go(kept, control)
            rows: Sequence[FabrikCarrier] = kept.carriers
            for row in rows:
                if row.parent == name:
                    row.parent = parent
            for each in kept.controls:
                if each.stands_for == name:
                    each.stands_for = parent
            kept.carriers.remove(kept.carriers.find(name))
        doubted -= blamed


def _unruly(
    context: bpy.types.Context,
    rig: bpy.types.Object,
    kept: FabrikControlRig,
    after: dict[str, int],
    doubted: set[str],
) -> tuple[set[str], set[str]]:
    """Of some bones those that should not be in the body, and those that are to be tried once more without them."""
    blamed: set[str] = set()
    again: set[str] = set()
    places = {bone.name: place for place, bone in enumerate(rig.pose.bones)}
    context.view_layer.update()
    for tree in ControlRig(rig, kept).trees():
        by_control = {kept.carriers[name].control: name for name in tree.skeleton.names if name in doubted}
        writer = ControlWriter(context.view_layer.update, rig, kept, tree.skeleton)
        for batch in batches([each for each in by_control if each in places], after):
            turned = [by_control[control] for control in batch]
            writer.write(_turned(rig, kept, tree, turned), tree.root_location)
            context.view_layer.update()
            off = [each.bone for each in writer.deviations()]
            for control in batch:
                mine = [name for name in off if after[control] >> places[name] & 1]
                found = set(_to_blame(kept, by_control[control], mine))
                blamed |= found
                again |= {by_control[control]} if found else set()
            writer.take_back()
        context.view_layer.update()
    return blamed, again


def _to_blame(kept: FabrikControlRig, turned: str, off: Sequence[str]) -> Iterator[str]:
    """Of a bone that was turned and those that then were off the ones that do not belong in the body."""
    limbs = any(kept.carriers[name].switch for name in off)
    if turned in off or limbs or any(turned not in _above(kept, name) for name in off):
        # What moves a limb along in ways of its own is given up for the limb.
        yield turned
    else:
        # What hangs on another one that is off may be right without that.
        yield from (name for name in off if not set(off) & set(_above(kept, name)))


def _above(kept: FabrikControlRig, name: str) -> list[str]:
    """The bones of the body that a bone hangs on."""
    found = []
    while name := kept.carriers[name].parent:
        found.append(name)
    return found


def _let_go(kept: FabrikControlRig, control: str) -> None:
    """What goes with a control that is no longer written goes with what that one goes with."""
    if control not in kept.controls:
        return
    left = kept.controls[control]
    for row in kept.controls:
        if row.moves_with == control:
            row.moves_with = left.moves_with
        if row.shares_turn == control:
            row.shares_turn = left.turns_with
        if row.turns_with == control:
            row.turns_with = left.turns_with
            if not row.shares_turn:
                row.shares_turn, row.share = left.shares_turn, left.share


def _turned(rig: bpy.types.Object, kept: FabrikControlRig, tree: Tree, bones: Sequence[str]) -> FloatArray:
    """(J, 4) local rotations with some bones turned as their controls' locks let them."""
    rotations = tree.rotations.copy()
    for name in bones:
        row = tree.skeleton.index(name)
        control = rig.pose.bones[kept.carriers[name].control]
        free = np.array(TRIED_AXIS)
        free[np.array(control.lock_rotation)] = 0.0
        # About the control's axes, in the bone's own.
        axes = np.array((rig.pose.bones[name].matrix.inverted() @ control.matrix).to_3x3(), dtype=np.float64)
        turn = quaternion_from_rotation_vector(axes @ free * (_TURN / np.linalg.norm(free)))
        rotations[row] = product(rotations[row], turn)
    return rotations
