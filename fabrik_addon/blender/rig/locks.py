"""The effect of locks on a bone's rotation, and the bones that an animator can key.

Generated control rigs have hundreds of bones that constraints and drivers move. These are not solved. A chain of solved
bones ends below a bone that a constraint moves, because this bone may not follow its parents. A bone that is driven,
locked or hidden follows its parent rigidly.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import pi
from typing import Any, Final, TypeAlias

import numpy as np
from bpy.types import Object, PoseBone

from ...core import Hinge
from ...core.arrays import BoolArray, FloatArray
from ..settings.control import moves
from ..settings.limit_values import AXES
from .armature import flags
from .keyframes import ROTATION_CHANNELS, bone_path
from .rotation_modes import from_channels, property_name, to_channels

_FOUR_CHANNELS: Final = ("QUATERNION", "AXIS_ANGLE")
# The order of the Euler angles that Blender locks if a bone's rotation mode has no order.
_LOCK_ORDER: Final = "XYZ"
# Radians. A smaller locked angle counts as zero.
_NO_ANGLE: Final = 1e-4
WithLocks: TypeAlias = Callable[[FloatArray], FloatArray]
_CHAINS: Final = ("IK", "SPLINE_IK")
# Advice in messages about a bone that users cannot move.
OTHERWISE: Final = "drag another, or press Set Up Control Rig"


def is_locked(bone: PoseBone) -> bool:
    """Whether all of a bone's rotation is locked."""
    # Axis and angle can be locked separately. A quaternion is fixed by three locked components.
    if bone.rotation_mode == "AXIS_ANGLE" and bone.lock_rotations_4d and not bone.lock_rotation_w:
        return False
    return all(bone.lock_rotation)


def bones_with_locks(armature: Object) -> set[str]:
    """The bones with any lock on their rotation.

    Most bones have none, so checking only these takes a tenth of the time.
    """
    bones = armature.pose.bones
    return {*_flagged(bones, "lock_rotation", 3), *_flagged(bones, "lock_rotation_w")}


def locked_channels(bone: PoseBone) -> BoolArray:
    """(n,) whether the components of a bone's rotation channel are locked.

    All are False if the channel has four components, but the locks are for Euler angles.
    """
    if bone.rotation_mode not in _FOUR_CHANNELS:
        return np.array(bone.lock_rotation)
    if bone.lock_rotations_4d:
        return np.array([bone.lock_rotation_w, *bone.lock_rotation])
    return np.zeros(4, dtype=bool)


def unlocked_rotation(bone: PoseBone) -> tuple[int, ...]:
    """The components of a bone's rotation channels that may be keyed.

    A quaternion or axis-angle counts as locked if its three axes are; otherwise each component has its own lock. Locks
    that are for Euler angles (`lock_rotations_4d` is off) are ignored.
    """
    if all(bone.lock_rotation):
        return ()
    return tuple(int(part) for part in np.flatnonzero(~locked_channels(bone)))


def unlocked_location(bone: PoseBone) -> tuple[int, ...]:
    """The components of a bone's location that may be keyed."""
    return tuple(axis for axis in range(3) if not bone.lock_location[axis])


def hinge_of_locks(bone: PoseBone) -> Hinge | None:
    """The hinge of a bone with two angles locked at zero, such as an elbow or a knee; None for other bones."""
    free: list[Any] = [axis for axis, locked in zip(AXES, bone.lock_rotation, strict=True) if not locked]
    by_parts = bone.rotation_mode in _FOUR_CHANNELS and bone.lock_rotations_4d
    if len(free) != 1 or (by_parts and (bone.lock_rotation_w or bone.rotation_mode == "AXIS_ANGLE")):
        return None
    # The lockable values for X, Y and Z: Euler angles, or components of a quaternion.
    values = np.array(getattr(bone, property_name(bone.rotation_mode)), dtype=np.float64)
    if by_parts:
        values = values[1:]
    elif bone.rotation_mode in _FOUR_CHANNELS:
        values = to_channels(_LOCK_ORDER, from_channels(bone.rotation_mode, values)[None])[1][0]
    values[AXES.index(free[0])] = 0.0
    return Hinge(free[0], -pi, pi) if np.abs(values).max() < _NO_ANGLE else None


def with_locks(bone: PoseBone, start: FloatArray) -> WithLocks | None:
    """A function that resets locked channels of a rotation (4,) to their values in `start` (4,); None without locks.

    Blender locks either the components of the channels or, if `lock_rotations_4d` is off, Euler angles.
    """
    if not (any(bone.lock_rotation) or bone.lock_rotation_w):
        return None
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
    """Copy the locked Euler angles of `start` (4,) to `rotation` (4,); returns (4,)."""
    held = to_channels(order, start[None])[1][0]
    angles = to_channels(order, rotation[None], previous=held)[1][0]
    return from_channels(order, np.where(locked, held, angles))


def _with_components(start: FloatArray, locked: BoolArray, rotation: FloatArray) -> FloatArray:
    """Copy the locked components of `start` (4,) to `rotation` (4,), and scale the others; returns a unit (4,)."""
    free = np.where(locked, 0.0, rotation if start @ rotation >= 0.0 else -rotation)
    size = np.linalg.norm(free)
    room = np.sqrt(max(0.0, 1.0 - float(np.square(start[locked]).sum())))
    return np.where(locked, start, free * (room / size)) if size > 0.0 else start


def constrained_bones(rig: Object) -> dict[str, str]:
    """The bones that constraints move, with the reason."""
    owned: dict[str, str] = {}
    for bone in rig.pose.bones:
        for constraint in bone.constraints:
            if moves(constraint):
                reason = f"constraint {constraint.name!r} moves it"
                owned.update((each.name, reason) for each in moved_by(bone, constraint))
    return owned


def unkeyable_bones(rig: Object) -> dict[str, str]:
    """The bones that an animator cannot rotate, for reasons other than constraints, with the reason."""
    bones, drivers = rig.pose.bones, rig.animation_data.drivers if rig.animation_data else ()
    driven = {curve.data_path for curve in drivers if not curve.mute}
    locked = [name for name in _flagged(bones, "lock_rotation", 3) if is_locked(bones[name])]
    turned = [
        name
        for name in (bones.keys() if driven else ())
        if any(bone_path(name, channel) in driven for channel in ROTATION_CHANNELS)
    ]
    # A bone is hidden in Pose mode if it is hidden itself, or if all its collections are hidden. Blender 5.0 hides pose
    # bones, older versions the armature's bones.
    has_own = "hide" in PoseBone.bl_rna.properties
    own = _flagged(rig.pose.bones if has_own else rig.data.bones, "hide")
    shown: set[str] = set()
    hidden: set[str] = set()
    for each in rig.data.collections_all:
        (shown if each.is_visible_effectively else hidden).update(each.bones.keys())
    return {
        **dict.fromkeys(_flagged(rig.data.bones, "hide_select"), "it can't be selected"),
        **dict.fromkeys(({*own, *(hidden - shown)}), "it is hidden"),
        **dict.fromkeys(locked, "its rotation is locked"),
        **dict.fromkeys(turned, "a driver rotates it"),
    }


def moved_by(bone: PoseBone, constraint: Any) -> Iterator[PoseBone]:
    """The bones that a constraint of a bone moves: that bone, and the chain if there is one."""
    if constraint.type not in _CHAINS:
        yield bone
        return
    # If IK does not use the bone's tail, its chain begins at the parent. A chain of length zero ends at the root.
    own = getattr(constraint, "use_tail", True)
    chain = [bone, *bone.parent_recursive] if own else list(bone.parent_recursive)
    yield from chain[: constraint.chain_count or len(chain)]


def _flagged(bones: Any, name: str, width: int = 1) -> list[str]:
    return [bone for bone, is_set in zip(bones.keys(), flags(bones, name, width), strict=True) if is_set]
