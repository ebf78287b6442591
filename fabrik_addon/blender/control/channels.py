"""The channels of a control: its location and rotation, in any rotation mode."""

from collections.abc import Iterable
from typing import Any

import bpy
import numpy as np

from ...core.arrays import BoolArray, FloatArray
from ...core.rotations import product, quaternion_from_rotation_vector
from ..rig.locks import locked_channels
from ..rig.rotation_modes import from_channels, property_name, to_channels


def free_channels(bone: bpy.types.PoseBone) -> BoolArray:
    """(6,) the axes along and about which a control is not locked."""
    return ~np.array([*bone.lock_location, *bone.lock_rotation])


def adds_up(bone: bpy.types.PoseBone) -> bool:
    """Whether constraints add to a bone's own channels instead of replacing them.

    They do for a tail that follows or a curling finger, and for a control with a custom shape whose parent can be
    switched. Among the bones moved by an IK below them, they do for the controls that rotate the limb, and not for the
    bones of the mesh.
    """
    if not bone.constraints and bone.bone.use_deform:
        return False
    carries = ("CHILD_OF", "ARMATURE") if bone.custom_shape else ()
    constraints: Iterable[Any] = bone.constraints
    return all(
        each.type in carries or (each.type == "COPY_ROTATION" and each.mix_mode != "REPLACE") for each in constraints
    )


def add_to_channels(bone: bpy.types.PoseBone, steps: FloatArray) -> None:
    """Move and rotate a control by (6,): lengths along, and radians about, the axes of its channels."""
    if steps[:3].any():
        bone.location = (np.array(bone.location) + steps[:3]).tolist()
    if not steps[3:].any():
        return
    mode, channel = bone.rotation_mode, property_name(bone.rotation_mode)
    before = np.array(getattr(bone, channel), dtype=np.float64)
    turned = product(from_channels(mode, before), quaternion_from_rotation_vector(steps[3:]))
    values = to_channels(mode, turned[None], previous=before)[1][0]
    setattr(bone, channel, np.where(locked_channels(bone), before, values).tolist())
