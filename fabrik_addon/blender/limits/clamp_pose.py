"""The present pose of bones, brought inside their limits."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

import bpy

from ...core.arrays import FloatArray
from ...core.limits.base import Limit
from ...core.rotations import angle_between
from ..control.body import locks_on, read_trees
from ..control.writer import ControlWriter
from ..rig.armature import RigError, check_editable
from ..rig.legal import excess, legal_rotations
from ..rig.rotation_modes import local_rotation, property_name, to_channels
from ..settings.control import control_rig
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
    if control_rig(rig) is None:
        turned, left = [], []
        for name, limit in limits.items():
            bone = rig.pose.bones[name]
            legal = _legal(rig, name, local_rotation(bone), limit)
            if isinstance(legal, str):
                left.append(legal)
            elif legal is not None:
                _turn(bone, legal)
                turned.append(name)
    else:
        context.view_layer.update()
        turned, left, _ = clamp_body(context, rig, limits)
    return f"{len(turned)} of {len(limits)} bones were clamped to their limits", left


def clamp_body(
    context: bpy.types.Context, rig: bpy.types.Object, limits: Mapping[str, Limit]
) -> tuple[list[str], list[str], dict[tuple[str, str], tuple[float, ...]]]:
    """Bring bones of a control rig's body inside limits by their names, as `clamp_pose`.

    Returns the bones that were outside, sentences on those that stay there, and by control and channel what those held
    before that have changed.
    """
    kept = control_rig(rig)
    assert kept is not None
    turned: list[str] = []
    left: list[str] = []
    changed: dict[tuple[str, str], tuple[float, ...]] = {}
    for tree in read_trees(rig):
        rotations, rows = tree.rotations.copy(), []
        for row, name in enumerate(tree.skeleton.names):
            legal = _legal(rig, name, rotations[row], limits[name]) if name in limits else None
            if isinstance(legal, str):
                left.append(legal)
            elif legal is not None:
                rotations[row] = legal
                rows.append(row)
        if rows:
            writer = ControlWriter(context.view_layer.update, rig, kept, tree.skeleton, rows)
            writer.write(rotations, tree.root_location)
            left += writer.settle()
            changed |= writer.changed()
            turned += [tree.skeleton.names[row] for row in rows]
    return turned, left, changed


def _turn(bone: bpy.types.PoseBone, rotation: FloatArray) -> None:
    """Write a rotation (4,), angles counted on from what the channels hold."""
    present = getattr(bone, property_name(bone.rotation_mode))
    name, values = to_channels(bone.rotation_mode, rotation[None], previous=present)
    setattr(bone, name, values[0])


def _legal(rig: bpy.types.Object, name: str, rotation: FloatArray, limit: Limit) -> FloatArray | str | None:
    """(4,) the nearest rotation inside a limit that locks allow.

    None for one that is inside, a sentence where locks leave none.
    """
    if excess(limit, rotation[None])[0] <= _OUTSIDE:
        return None
    kept = locks_on(rig, name, rotation)
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
