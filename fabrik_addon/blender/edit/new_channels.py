"""Converts new poses to the channels that have keys, of the bones themselves or of a control rig's controls."""

from dataclasses import dataclass

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import angle_between
from ..control.model import Stands
from ..control.posed_rig import posed_rig
from ..rig.rotation_modes import from_channels
from .take import Motion, Take

# Radians, and units of a location. Smaller changes keep their keys.
LEAST_TURN = 1e-6
LEAST_MOVE = 1e-6


@dataclass(frozen=True)
class Turned:
    """A keyed bone whose rotation changes: (F, 4) before and after, and its channel's values (F, 3 or 4)."""

    bone: bpy.types.PoseBone
    before: FloatArray
    after: FloatArray
    channel: FloatArray


@dataclass(frozen=True)
class NewChannels:
    """The changes over F frames: bones that rotate, and the root's location, from (F, 3) to (F, 3); None if unchanged.

    unkeyed: the names of controls that would rotate too, but have no keys.
    """

    turned: list[Turned]
    place: bpy.types.PoseBone | None
    moved: FloatArray
    unkeyed: tuple[str, ...] = ()


def new_channels(
    armature: bpy.types.Object, take: Take, old: Motion, rotations: FloatArray, roots: FloatArray
) -> NewChannels:
    """Convert new (F, J, 4) local rotations and (F, 3) root heads to changes of a motion's channels."""
    bones = armature.pose.bones
    own = {name: from_channels(bones[name].rotation_mode, held) for name, held in old.channels.items()}
    over = Stands(old.stands, own, old.location)
    poses = (old.rotations, old.roots), (rotations, roots)
    after, shift, unkeyed = posed_rig(armature).edited(old.skeleton, *poses, over)
    found = []
    for name, turned in after.items():
        if angle_between(own[name], turned).max() > LEAST_TURN:
            found.append(Turned(bones[name], own[name], turned, old.channels[name]))
    stays = not shift.size or np.abs(shift).max() <= LEAST_MOVE
    return NewChannels(found, None if stays else bones[take.place], old.location + shift, unkeyed)
