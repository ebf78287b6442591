"""The present pose of bones, brought inside their limits."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.limits.base import Limit
from ...core.rotations import angle_between
from ..control.posed_rig import Changed, PosedRig, posed_rig
from ..rig.armature import RigError, check_editable
from ..rig.legal import excess, legal_rotations
from ..settings.limit_properties import read_limit

# Radians: what is outside by less is so by the rounding of single precision.
_OUTSIDE: Final = 1e-5
_ATTEMPTS: Final = 100


def clamp_pose(context: bpy.types.Context, bones: Sequence[bpy.types.PoseBone]) -> tuple[str, list[str]]:
    """Rotate bones that are outside their limits to the nearest rotation inside; locked channels stay as they are.

    The body of a control rig is posed by its controls. Returns a line for people, and sentences on bones that stay
    outside. Raises RigError where none has a limit, LimitPropertyError for a limit that makes no sense; nothing is
    changed then.
    """
    rig = cast("bpy.types.Object", bones[0].id_data)
    check_editable(rig)
    limits = {bone.name: limit for bone in bones if (limit := read_limit(bone)) is not None}
    if not limits:
        raise RigError("None of these bones has a limit: set one first")
    context.view_layer.update()
    turned, left, _ = clamp_bones(context, rig, limits)
    return f"{len(turned)} of {len(limits)} bones were clamped to their limits", left


def clamp_bones(
    context: bpy.types.Context, rig: bpy.types.Object, limits: Mapping[str, Limit]
) -> tuple[list[str], list[str], Changed]:
    """Bring bones inside limits by their names, as `clamp_pose`.

    Returns the bones that were outside, sentences on those that stay there, and by control and channel what those held
    before that have changed.
    """
    posed = posed_rig(rig)
    legal = {name: _legal(posed, name, rotation, limits[name]) for name, rotation in posed.local(limits).items()}
    turning = {name: found for name, found in legal.items() if isinstance(found, np.ndarray)}
    left = [found for found in legal.values() if isinstance(found, str)]
    off, changed = posed.turn(context, turning)
    return list(turning), left + off, changed


def _legal(posed: PosedRig, name: str, rotation: FloatArray, limit: Limit) -> FloatArray | str | None:
    """(4,) the nearest rotation inside a limit that locks allow.

    None for one that is inside, a sentence where locks leave none.
    """
    if excess(limit, rotation[None])[0] <= _OUTSIDE:
        return None
    kept = posed.lock(name, rotation)
    legal = legal_rotations(limit, rotation[None])[0]
    if kept is None:
        return legal
    # Back and forth between limit and locks, until both hold.
    for _ in range(_ATTEMPTS):
        rotation = kept(legal)
        legal = legal_rotations(limit, rotation[None])[0]
        if angle_between(legal, rotation) <= _OUTSIDE:
            return rotation
    return f"Bone {name!r} stays outside its limit: its rotation is locked"
