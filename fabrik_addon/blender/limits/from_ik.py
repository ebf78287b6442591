"""Makes limits from a bone's Blender settings: its IK limits and locks, and Limit Rotation constraints.

All of these are ranges of rotation about the bone's own axes. If only one axis is free, that is a hinge, else a ball: a
rotation about X swings the bone along Z, one about Z along X, one about Y twists it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import pi, sqrt
from typing import Any, Final, TypeAlias

import bpy

from ...core import LimitError
from ..rig.armature import RigError
from ..settings.limit_properties import read_settings
from ..settings.limit_values import ALL_ROUND, Cone, LimitSettings, Range
from .editing import write_all
from .to_constraints import is_own

# The ranges about X, Y and Z, None for a free axis.
Box: TypeAlias = Sequence[Range | None]

_AXES: Final = "xyz"
_CLOSED: Final = (0.0, 0.0)
_FULL_TURN: Final = 2.0 * pi
_NOTHING: Final = 1e-6


def limits_from_ik(bones: Sequence[bpy.types.PoseBone]) -> tuple[str, list[str]]:
    """Set the limits that correspond to the bones' IK settings and Limit Rotation constraints together.

    Returns a line to show, and notes on what was skipped. Raises RigError if there is nothing to convert and
    LimitPropertyError if a limit cannot be stored; nothing is changed then.
    """
    found: list[tuple[bpy.types.PoseBone, LimitSettings]] = []
    left = [sentence for bone in bones for sentence in _left_constraints(bone)]
    for bone in bones:
        try:
            boxes = [_ik_box(bone), *(_constraint_box(constraint) for constraint in _local_constraints(bone))]
            settings = settings_in(([_common([box[axis] for box in boxes]) for axis in range(3)]), read_settings(bone))
        except LimitError as error:
            left.append(f"Bone {bone.name!r} was skipped: {error}")
            continue
        if settings is not None:
            found.append((bone, settings))
    if not found:
        reason = "None of these bones has IK limits, IK locks or a Limit Rotation constraint in local space"
        raise RigError("; ".join([reason, *left]))
    write_all([bone for bone, _ in found], [settings for _, settings in found])
    return f"Converted the limits of {len(found)} of {len(bones)} bones", left


def settings_in(box: Box, kept: LimitSettings) -> LimitSettings | None:
    """The limit for ranges about X, Y and Z, None if all are free; raises LimitError if there is no such limit."""
    still = [ends is not None and max(map(abs, ends)) < _NOTHING for ends in box]
    if all(ends is None for ends in box):
        return None
    if all(still):
        return replace(kept, type="FIXED")
    if still.count(False) == 1:
        axis = still.index(False)
        return replace(kept, type="HINGE", axis="XYZ"[axis], hinge=box[axis] or ALL_ROUND)
    twist = box[1] or ALL_ROUND
    low_x, high_x = box[0] or ALL_ROUND
    low_z, high_z = box[2] or ALL_ROUND
    if low_x <= 0.0 <= high_x and low_z <= 0.0 <= high_z:
        right, front, left, back = (min(angle, pi) for angle in (-low_z, high_x, high_z, -low_x))
        cone: Cone = (right, front, left, back)
        return replace(kept, type="BALL", cone=cone, twist=twist)
    about_x = box[0]
    about_z = box[2]
    low_x, high_x = about_x or _beside(about_z)
    low_z, high_z = about_z or _beside(about_x)
    found = replace(
        kept, type="POLYGON", window=((-high_z, low_x, -low_z, low_x, -low_z, high_x, -high_z, high_x)), twist=twist
    )
    found.check()
    return found


def _beside(other: Range | None) -> Range:
    most = sqrt(max(pi**2 - max(map(abs, other or _CLOSED)) ** 2, 0.0))
    return -most, most


def _common(ranges: Sequence[Range | None]) -> Range | None:
    """The intersection of several ranges."""
    closed = [ends for ends in ranges if ends is not None]
    if not closed:
        return None
    low, high = max(low for low, _ in closed), min(high for _, high in closed)
    if low > high:
        raise LimitError("its IK limits and constraints leave no allowed angle: fix them first")
    return low, high


def _ik_box(bone: Any) -> Box:
    """The ranges of Blender's own IK."""
    limited = _ranges(bone, "ik_", "use_ik_limit_")
    return [_CLOSED if getattr(bone, f"lock_ik_{axis}") else ends for axis, ends in zip(_AXES, limited, strict=True)]


def _constraint_box(constraint: Any) -> Box:
    """The ranges of a Limit Rotation constraint; a full turn is no limit."""
    limited = _ranges(constraint, "", "use_limit_")
    return [ends if ends and ends[1] - ends[0] < _FULL_TURN - _NOTHING else None for ends in limited]


def _ranges(owner: Any, prefix: str, use: str) -> Box:
    """The ranges about X, Y and Z that a bone or a constraint uses."""
    ends = [sorted((getattr(owner, f"{prefix}min_{axis}"), getattr(owner, f"{prefix}max_{axis}"))) for axis in _AXES]
    used = [getattr(owner, f"{use}{axis}") for axis in _AXES]
    return [(low, high) if limited else None for (low, high), limited in zip(ends, used, strict=True)]


def _active_constraints(bone: bpy.types.PoseBone) -> Iterator[Any]:
    """The active Limit Rotation constraints, without the one made from our limit."""
    for constraint in bone.constraints:
        counts = not constraint.mute and constraint.influence > 0.0 and not is_own(constraint)
        if constraint.type == "LIMIT_ROTATION" and counts:
            yield constraint


def _local_constraints(bone: bpy.types.PoseBone) -> list[Any]:
    return [each for each in _active_constraints(bone) if each.owner_space == "LOCAL" and each.influence == 1.0]


def _left_constraints(bone: bpy.types.PoseBone) -> Iterator[str]:
    """A note on each constraint that is not converted."""
    for constraint in _active_constraints(bone):
        where = f"Constraint {constraint.name!r} of bone {bone.name!r} was skipped"
        if constraint.owner_space != "LOCAL":
            yield f"{where}: it is not in local space"
        elif constraint.influence < 1.0:
            yield f"{where}: its influence is not 1"
