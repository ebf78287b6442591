"""Converts IK limits, IK locks and Limit Rotation constraints to joint limits, and joint limits to constraints.

IK limits and constraints are ranges of rotation about the bone's axes. If only one axis is free, the limit is a hinge,
else a ball. A rotation about X swings the bone along Z, a rotation about Z swings it along X, and a rotation about Y
twists it. A constraint made from a limit is a box of Euler angles. For a hinge it equals the limit. Otherwise it is the
smallest box that contains the limit: it allows a little more, and never changes a pose within the limit.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import pi, sqrt, tau
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
from bpy.types import Object, PoseBone

from ...core import Ball, Hinge, LimitError, Polygon
from ...core.arrays import FloatArray
from ...core.errors import bones_of
from ...core.limits import Limit, compose_arrays
from ..control.posed_rig import posed_rig
from ..rig.armature import RigError, check_editable
from ..rig.rotation_modes import to_channels
from ..settings.limit_properties import read_limit, read_settings
from ..settings.limit_values import ALL_ROUND, Cone, LimitSettings, Range
from .editing import write_all

CONSTRAINT_NAME: Final = "FABRIK Limit"

# Radians. A range this close to a full turn gets no constraint.
_NEARLY: Final = 0.1
# If the rotation about Y comes first, the twist affects only the angle about Y.
_ORDERS: Final = ("YXZ", "YZX")
# Beyond this sum of the angles, the other triple for the same rotation may be smaller, and Blender may use it.
_OTHER_ANGLES: Final = 1.5 * pi
# The number of samples along each dimension of a limit, and along its edge.
_PLACES: Final = 32
_EDGE_PLACES: Final = 256
# The ranges about X, Y and Z; None if an axis is free.
Box: TypeAlias = Sequence[Range | None]

_AXES: Final = "xyz"
_CLOSED: Final = (0.0, 0.0)
_NOTHING: Final = 1e-6


class EulerBox(NamedTuple):
    """Ranges of the angles about X, Y and Z in an Euler order; None if an axis is free."""

    order: str
    ranges: tuple[Range | None, Range | None, Range | None]


def limits_to_constraints(bones: Sequence[PoseBone]) -> tuple[str, list[str]]:
    """Add to each bone a constraint that represents its limit; remove it from free bones.

    On a control rig, the FK control of the bone gets the constraint. Returns a line to show, and notes on
    bones without a control that has the same axes. Other constraints do not change. Raises LimitPropertyError or
    RigError with nothing changed.
    """
    rig = cast("Object", bones[0].id_data)
    check_editable(rig)
    posed = posed_rig(rig)
    rows = [(bone.name, posed.limited(bone.name), euler_box(read_limit(bone))) for bone in bones]
    left = [
        f"Bone {name!r} has no control with the same rotation, so its limit gets no constraint"
        for name, holder, box in rows
        if holder is None and any(box.ranges)
    ]
    if left and not any(holder for _, holder, _ in rows):
        raise RigError(left[0])
    limited = [(holder, box) for _, holder, box in rows if holder is not None]
    for holder, box in limited:
        constraint = next(filter(is_own, holder.constraints), None)
        if any(box.ranges):
            _constrain(constraint or holder.constraints.new("LIMIT_ROTATION"), box)
        elif constraint is not None:
            # A constraint from a library can only be muted.
            if rig.override_library is not None and constraint.is_override_data:
                constraint.mute = True
            else:
                holder.constraints.remove(constraint)
    count = sum(any(box.ranges) for _, box in limited)
    return f"Added Limit Rotation constraints to {count} of {bones_of(len(bones))}", left


def is_own(constraint: Any) -> bool:
    """Whether a constraint was made from a limit; Blender adds a number if its name was taken."""
    return constraint.type == "LIMIT_ROTATION" and constraint.name.split(".")[0] == CONSTRAINT_NAME


def euler_box(limit: Limit | None) -> EulerBox:
    """The smallest box that contains a limit; without ranges for a free bone."""
    if limit is None:
        return EulerBox("XYZ", (None, None, None))
    if isinstance(limit, Ball | Polygon):
        boxes = [_box_of_swings(limit, order) for order in _ORDERS]
        sizes = [[tau if ends is None else ends[1] - ends[0] for ends in box.ranges] for box in boxes]
        return boxes[int(np.argmin(np.prod(sizes, axis=1)))]
    ends: dict[str, Range | None] = (
        {limit.axis: (limit.low, limit.high) if limit.bounded else None} if isinstance(limit, Hinge) else {}
    )
    x, y, z = (ends.get(axis, _CLOSED) for axis in "XYZ")
    return EulerBox("YXZ" if "Y" in ends else "XYZ", (x, y, z))


def _box_of_swings(limit: Ball | Polygon, order: str) -> EulerBox:
    """The smallest box of Euler angles that contains a limit, for an Euler order that starts with Y."""
    angles = _angles(order, _rotations(replace(limit, twist=_CLOSED), np.zeros(1)))
    low, high = angles.min(axis=0), angles.max(axis=0)
    low[1], high[1] = low[1] + limit.twist[0], high[1] + limit.twist[1]
    if np.maximum(abs(low), abs(high)).sum() > _OTHER_ANGLES - _NEARLY:
        angles = _angles(order, _rotations(limit, np.linspace(0.0, 1.0, _PLACES)))
        low, high = angles.min(axis=0), angles.max(axis=0)
    # The middle one of three Euler angles is always between -90° and 90°.
    whole = [pi if axis == order[1] else tau for axis in "XYZ"]
    ends = zip(low.tolist(), high.tolist(), whole, strict=True)
    x, y, z = (None if b - a > most - _NEARLY else (a, b) for a, b, most in ends)
    return EulerBox(order, (x, y, z))


def _angles(order: str, rotations: FloatArray) -> FloatArray:
    """(N, 3) Euler angles of rotations (N, 4). Of two triples, chooses the one with the smaller sum, like Blender."""
    return to_channels(order, rotations[None])[1][0]


def _rotations(limit: Ball | Polygon, twists: FloatArray) -> FloatArray:
    """(N, 4) samples of a limit, inside and along its outline, at some twists, given as fractions of its range."""
    edge = limit.outline(_EDGE_PLACES)
    steps = (np.arange(_PLACES) + 0.5) / _PLACES
    found = []
    for share in twists:
        inside = np.stack([*np.meshgrid(steps, steps), np.full((_PLACES, _PLACES), share)], axis=-1)
        twist = limit.twist[0] + share * (limit.twist[1] - limit.twist[0])
        found += [
            limit.sample(inside.reshape(-1, 3)),
            compose_arrays(edge[:, 0], edge[:, 1], np.full(len(edge), twist)),
        ]
    return np.concatenate(found)


def _constrain(constraint: Any, box: EulerBox) -> None:
    if not is_own(constraint):
        constraint.name = CONSTRAINT_NAME
    constraint.owner_space, constraint.euler_order = "LOCAL", box.order
    constraint.use_transform_limit, constraint.use_legacy_behavior = True, False
    constraint.mute, constraint.influence = False, 1.0
    for axis, ends in zip(_AXES, box.ranges, strict=True):
        setattr(constraint, f"use_limit_{axis}", ends is not None)
        if ends is not None:
            setattr(constraint, f"min_{axis}", ends[0])
            setattr(constraint, f"max_{axis}", ends[1])


def limits_from_ik(bones: Sequence[PoseBone]) -> tuple[str, list[str]]:
    """Set the limits of bones from their IK settings and Limit Rotation constraints.

    Returns a line for the user, and sentences about skipped bones. Raises RigError if there is nothing to convert, and
    LimitPropertyError if a limit can't be stored; then nothing is changed.
    """
    found, left = list[tuple[PoseBone, LimitSettings]](), list[str]()
    for bone in bones:
        limited = _ranges(bone, "ik_", "use_ik_limit_")
        locked = [getattr(bone, f"lock_ik_{axis}") for axis in _AXES]
        boxes: list[Box] = [[_CLOSED if lock else ends for lock, ends in zip(locked, limited, strict=True)]]
        for constraint in bone.constraints:
            if constraint.type != "LIMIT_ROTATION" or constraint.mute or not constraint.influence or is_own(constraint):
                continue
            where = f"Constraint {constraint.name!r} of bone {bone.name!r} was skipped"
            if constraint.owner_space != "LOCAL":
                left.append(f"{where}: it is not in local space")
            elif constraint.influence < 1.0:
                left.append(f"{where}: its influence is not 1")
            else:
                # A full turn is not a limit.
                limited = _ranges(constraint, "", "use_limit_")
                whole = tau - _NOTHING
                boxes.append([ends if ends and ends[1] - ends[0] < whole else None for ends in limited])
        try:
            settings = settings_in(([_common([box[axis] for box in boxes]) for axis in range(3)]), read_settings(bone))
        except LimitError as error:
            left.append(f"Bone {bone.name!r} was skipped: {error}")
            continue
        if settings is not None:
            found.append((bone, settings))
    if not found:
        reason = "None of these bones has IK limits, IK locks or a local Limit Rotation constraint: add one first"
        raise RigError("; ".join([reason, *left]))
    write_all([bone for bone, _ in found], [settings for _, settings in found])
    return f"Converted the limits of {len(found)} of {bones_of(len(bones))}", left


def settings_in(box: Box, settings: LimitSettings) -> LimitSettings | None:
    """The limit for ranges about X, Y and Z, None if all are free; raises LimitError if no limit fits them."""
    still = [ends is not None and max(map(abs, ends)) < _NOTHING for ends in box]
    if all(ends is None for ends in box):
        return None
    if all(still):
        return replace(settings, type="FIXED")
    if still.count(False) == 1:
        axis = still.index(False)
        return replace(settings, type="HINGE", axis="XYZ"[axis], hinge=box[axis] or ALL_ROUND)
    twist = box[1] or ALL_ROUND
    low_x, high_x = box[0] or ALL_ROUND
    low_z, high_z = box[2] or ALL_ROUND
    if low_x <= 0.0 <= high_x and low_z <= 0.0 <= high_z:
        right, front, left, back = (min(angle, pi) for angle in (-low_z, high_x, high_z, -low_x))
        cone: Cone = (right, front, left, back)
        return replace(settings, type="BALL", cone=cone, twist=twist)
    low_x, high_x = box[0] or _beside(box[2])
    low_z, high_z = box[2] or _beside(box[0])
    found = replace(
        settings, type="POLYGON", window=((-high_z, low_x, -low_z, low_x, -low_z, high_x, -high_z, high_x)), twist=twist
    )
    found.check()
    return found


def _beside(other: Range | None) -> Range:
    most = sqrt(max(pi**2 - max(map(abs, other or _CLOSED)) ** 2, 0.0))
    return -most, most


def _common(ranges: Sequence[Range | None]) -> Range | None:
    closed = [ends for ends in ranges if ends is not None]
    if not closed:
        return None
    low, high = max(low for low, _ in closed), min(high for _, high in closed)
    if low > high:
        raise LimitError("its IK limits and constraints leave no allowed angle: fix them first")
    return low, high


def _ranges(owner: Any, prefix: str, use: str) -> Box:
    """The ranges about X, Y and Z that a bone or a constraint uses."""
    ends = [sorted((getattr(owner, f"{prefix}min_{axis}"), getattr(owner, f"{prefix}max_{axis}"))) for axis in _AXES]
    used = [getattr(owner, f"{use}{axis}") for axis in _AXES]
    return [(low, high) if limited else None for (low, high), limited in zip(ends, used, strict=True)]
