"""The present pose of bones, brought inside their limits."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

import bpy
import numpy as np

from ..core.arrays import BoolArray, FloatArray
from ..core.limits import Limit
from .legal import angles_between, legal_rotations
from .limit_properties import read_limit
from .rig import RigError, check_editable
from .rotation_modes import from_channels, property_name, to_channels

# Radians: what is outside by less is so by the rounding of single precision.
_OUTSIDE: Final = 1e-5
_ATTEMPTS: Final = 100
_FOUR_CHANNELS: Final = ("QUATERNION", "AXIS_ANGLE")
# The order of the Euler angles that Blender locks where a bone is turned by others than those.
_LOCK_ORDER: Final = "XYZ"
_WithLocks: TypeAlias = Callable[[FloatArray], FloatArray]


def clamp_pose(bones: Sequence[bpy.types.PoseBone]) -> tuple[str, list[str]]:
    """Turn those bones that are outside their limits to the nearest rotation inside; locked channels stay as they are.

    Returns a line for people, and sentences on bones that stay outside because of their locks. Raises RigError where
    none has a limit, LimitPropertyError for a limit that makes no sense; nothing is changed then.
    """
    check_editable(cast("bpy.types.Object", bones[0].id_data))
    limits = [(bone, limit) for bone in bones if (limit := read_limit(bone)) is not None]
    if not limits:
        raise RigError("None of these bones has a limit: set one first")
    outside = [(bone, limit) for bone, limit in limits if _excess(limit, _rotation(bone)) > _OUTSIDE]
    turned, left = 0, []
    for bone, limit in outside:
        legal = _legal(bone, limit)
        if legal is None:
            left.append(f"Bone {bone.name!r} stays outside its limit: its rotation is locked")
        else:
            _turn(bone, legal)
            turned += 1
    return f"{turned} of {len(limits)} bones were outside their limits and are now inside", left


def _excess(limit: Limit, rotation: FloatArray) -> float:
    """Radians that a rotation (4,) is outside of a limit."""
    return float(angles_between(rotation, legal_rotations(limit, rotation[None])[0]))


def _rotation(bone: bpy.types.PoseBone) -> FloatArray:
    """(4,) the local rotation that the channels hold."""
    return from_channels(bone.rotation_mode, getattr(bone, property_name(bone.rotation_mode)))


def _turn(bone: bpy.types.PoseBone, rotation: FloatArray) -> None:
    """Write a rotation (4,), angles counted on from what the channels hold."""
    present = getattr(bone, property_name(bone.rotation_mode))
    name, values = to_channels(bone.rotation_mode, rotation[None], previous=present)
    setattr(bone, name, values[0])


def _legal(bone: bpy.types.PoseBone, limit: Limit) -> FloatArray | None:
    """(4,) a rotation inside the limit, the nearest where nothing is locked; None where locks leave none."""
    rotation = _rotation(bone)
    with_locks = _locks(bone, rotation)
    legal = legal_rotations(limit, rotation[None])[0]
    if with_locks is None:
        return legal
    # Back and forth between limit and locks, until both hold.
    for _ in range(_ATTEMPTS):
        rotation = with_locks(legal)
        legal = legal_rotations(limit, rotation[None])[0]
        if angles_between(legal, rotation) <= _OUTSIDE:
            return rotation
    return None


def _locks(bone: bpy.types.PoseBone, start: FloatArray) -> _WithLocks | None:
    """What changes a rotation (4,) into one like it whose locked channels are as at the start; None without locks.

    Blender locks either the components of the channels or, where `lock_rotations_4d` is off, Euler angles.
    """
    angles = np.array(bone.lock_rotation)
    if bone.rotation_mode not in _FOUR_CHANNELS:
        return partial(_with_angles, start, angles, bone.rotation_mode) if angles.any() else None
    if not bone.lock_rotations_4d:
        return partial(_with_angles, start, angles, _LOCK_ORDER) if angles.any() else None
    parts = np.array([bone.lock_rotation_w, *angles])
    if bone.rotation_mode == "AXIS_ANGLE":
        parts[:] = parts.any()
    return partial(_with_components, start, parts) if parts.any() else None


def _with_angles(start: FloatArray, locked: BoolArray, order: str, rotation: FloatArray) -> FloatArray:
    """(4,) the rotation with some of its Euler angles as at the start."""
    held = to_channels(order, start[None])[1][0]
    angles = to_channels(order, rotation[None], previous=held)[1][0]
    return from_channels(order, np.where(locked, held, angles))


def _with_components(start: FloatArray, locked: BoolArray, rotation: FloatArray) -> FloatArray:
    """(4,) the rotation with some of its components as at the start, and the others scaled to go with them."""
    free = np.where(locked, 0.0, rotation if start @ rotation >= 0.0 else -rotation)
    size = np.linalg.norm(free)
    room = np.sqrt(max(0.0, 1.0 - float(np.square(start[locked]).sum())))
    return np.where(locked, start, free * (room / size)) if size > 0.0 else start
