"""What new poses make of the channels that have keys: those of the bones themselves, or of a control rig's controls."""

from dataclasses import dataclass

import bpy
import numpy as np

from ...core import forward_kinematics
from ...core.arrays import FloatArray
from ...core.rotations import angle_between, conjugate, product
from ..control.model import ControlModel, Stands
from ..rig.armature import root_location_channel
from ..rig.rotation_modes import from_channels
from ..settings.control import FabrikControlRig, control_rig
from .take import Motion, Take

# Radians, and units of a location: what is turned or moved by less keeps its keys.
LEAST_TURN = 1e-6
LEAST_MOVE = 1e-6


@dataclass(frozen=True)
class Turned:
    """A bone with keys whose rotation changes: (F, 4) before and after, and what its channel holds, (F, 3 or 4)."""

    bone: bpy.types.PoseBone
    before: FloatArray
    after: FloatArray
    channel: FloatArray


@dataclass(frozen=True)
class NewChannels:
    """What changes over F frames: the bones that turn, and what moves the root, from (F, 3) to (F, 3); None: nothing.

    unkeyed: the names of controls that would turn as well, but have no keys.
    """

    turned: list[Turned]
    place: bpy.types.PoseBone | None
    moved: FloatArray
    unkeyed: tuple[str, ...] = ()


def new_channels(
    armature: bpy.types.Object, take: Take, old: Motion, rotations: FloatArray, roots: FloatArray
) -> NewChannels:
    """What (F, J, 4) new local rotations and (F, 3) roots make of a motion's channels."""
    kept, bones = control_rig(armature), armature.pose.bones
    if kept is None:
        shift = root_location_channel(bones[take.place], roots) - root_location_channel(bones[take.place], old.roots)
        after = {name: rotations[:, old.skeleton.index(name)] for name in old.channels}
        unkeyed: tuple[str, ...] = ()
    else:
        after, shift, unkeyed = _of_controls(armature, kept, old, rotations, roots)
    found = []
    for name, turned in after.items():
        before = from_channels(bones[name].rotation_mode, old.channels[name])
        if angle_between(before, turned).max() > LEAST_TURN:
            found.append(Turned(bones[name], before, turned, old.channels[name]))
    stays = not shift.size or np.abs(shift).max() <= LEAST_MOVE
    return NewChannels(found, None if stays else bones[take.place], old.location + shift, unkeyed)


def _of_controls(
    armature: bpy.types.Object, kept: FabrikControlRig, old: Motion, rotations: FloatArray, roots: FloatArray
) -> tuple[dict[str, FloatArray], FloatArray, tuple[str, ...]]:
    """(F, 4) rotations of controls with keys, how far what moves the body goes, and the controls without keys.

    A control turns, in its own frame, from where it is by what lies between where the body's old and its new pose have
    it: what is rounded in both leaves keys as they are.
    """
    moves = not kept.carriers[old.skeleton.names[0]].parent
    own = {name: from_channels(armature.pose.bones[name].rotation_mode, held) for name, held in old.channels.items()}
    over = Stands(old.stands, own, old.location)
    model = ControlModel(armature, kept, old.skeleton, moves=moves, over=over)
    before, after = (
        model.pose(forward_kinematics(old.skeleton, *each)) for each in ((old.rotations, old.roots), (rotations, roots))
    )
    found, unkeyed = {}, []
    for row, name in enumerate(model.controls):
        turn = product(conjugate(before.rotations[:, row]), after.rotations[:, row])
        if name in own:
            found[name] = product(own[name], turn)
        elif angle_between(before.rotations[:, row], after.rotations[:, row]).max() > 1e-4:
            unkeyed.append(name)
    no_shift = np.zeros_like(old.location)
    shift = no_shift if before.place is None or after.place is None else after.place - before.place
    return found, shift, tuple(unkeyed)
