"""The present pose of bones, brought inside their limits."""

from collections.abc import Sequence
from typing import Final, cast

import bpy

from ...core.arrays import FloatArray
from ...core.limits.base import Limit
from ...core.rotations import angle_between
from ..rig.armature import RigError, check_editable
from ..rig.legal import excess, legal_rotations
from ..rig.locks import with_locks
from ..rig.rotation_modes import local_rotation, property_name, to_channels
from ..settings.limit_properties import read_limit

# Radians: what is outside by less is so by the rounding of single precision.
_OUTSIDE: Final = 1e-5
_ATTEMPTS: Final = 100


def clamp_pose(bones: Sequence[bpy.types.PoseBone]) -> tuple[str, list[str]]:
    """Turn those bones that are outside their limits to the nearest rotation inside; locked channels stay as they are.

    Returns a line for people, and sentences on bones that stay outside because of their locks. Raises RigError where
    none has a limit, LimitPropertyError for a limit that makes no sense; nothing is changed then.
    """
    check_editable(cast("bpy.types.Object", bones[0].id_data))
    limits = [(bone, limit) for bone in bones if (limit := read_limit(bone)) is not None]
    if not limits:
        raise RigError("None of these bones has a limit: set one first")
    outside = [(bone, limit) for bone, limit in limits if excess(limit, local_rotation(bone)[None])[0] > _OUTSIDE]
    turned, left = 0, []
    for bone, limit in outside:
        legal = _legal(bone, limit)
        if legal is None:
            left.append(f"Bone {bone.name!r} stays outside its limit: its rotation is locked")
        else:
            _turn(bone, legal)
            turned += 1
    return f"{turned} of {len(limits)} bones were outside their limits and are now inside", left


def _turn(bone: bpy.types.PoseBone, rotation: FloatArray) -> None:
    """Write a rotation (4,), angles counted on from what the channels hold."""
    present = getattr(bone, property_name(bone.rotation_mode))
    name, values = to_channels(bone.rotation_mode, rotation[None], previous=present)
    setattr(bone, name, values[0])


def _legal(bone: bpy.types.PoseBone, limit: Limit) -> FloatArray | None:
    """(4,) a rotation inside the limit, the nearest where nothing is locked; None where locks leave none."""
    rotation = local_rotation(bone)
    kept = with_locks(bone, rotation)
    legal = legal_rotations(limit, rotation[None])[0]
    if kept is None:
        return legal
    # Back and forth between limit and locks, until both hold.
    for _ in range(_ATTEMPTS):
        rotation = kept(legal)
        legal = legal_rotations(limit, rotation[None])[0]
        if angle_between(legal, rotation) <= _OUTSIDE:
            return rotation
    return None
