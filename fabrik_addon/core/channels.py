"""Converts between quaternions and rotation channels (quaternions, axis-angle, Euler angles), without jumps.

Everything is computed in double precision from the quaternion itself, since single-precision conversions near gimbal
lock have errors of several degrees. Quaternions are (w, x, y, z); angles are in radians.

Also converts limits to and from boxes: ranges of the angles about X, Y and Z, as in Blender's IK limits and
constraints. If only one axis is free, the limit is a hinge, else a ball, or a polygon if rest is outside. A rotation
about X swings the bone along Z, a rotation about Z swings it along X, and a rotation about Y twists it.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import pi, sqrt, tau
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from .arrays import ROUNDING, SINGLE, BoolArray, FloatArray, IntArray, lengths, running_signs, wrapped
from .errors import LimitError
from .limits import Ball, Fixed, Hinge, Limit, Polygon, Range, compose_arrays
from .rotations import IDENTITY, angle_between, matrix_from_quaternion, product


def channel_count(rotation_mode: str) -> int:
    """The number of channels in a rotation mode: 3 for Euler angles, else 4."""
    return 3 if sorted(rotation_mode) == ["X", "Y", "Z"] else 4


def to_channels(rotation_mode: str, quaternions: npt.ArrayLike, previous: npt.ArrayLike | None = None) -> FloatArray:
    """Channel values on successive frames, each as close as possible to the values on the previous frame.

    Args:
        rotation_mode: "QUATERNION", "AXIS_ANGLE" or an Euler order such as "XYZ".
        quaternions: (F, ..., 4) of any length but zero; middle axes are for independent rotations, such as bones.
        previous: (..., n) the channel values before the first frame; None for the rest pose.

    Returns:
        (F, ..., n): axis-angle with the angle first, Euler angles as X, Y, Z. A quaternion stays in its neighbor's
        hemisphere; angles continue beyond 180°.
    """
    unit = np.asarray(quaternions, dtype=np.float64)
    unit = unit / np.linalg.norm(unit, axis=-1, keepdims=True)
    before = None if previous is None else np.asarray(previous, dtype=np.float64)
    if rotation_mode == "QUATERNION":
        return np.asarray(unit * running_signs(unit, IDENTITY if before is None else before))
    if rotation_mode == "AXIS_ANGLE":
        # (F, ..., 4) angle and axis; without rotation the former axis is kept.
        half_sine = np.linalg.norm(unit[..., 1:], axis=-1, keepdims=True)
        angle = 2.0 * np.arctan2(half_sine, unit[..., :1])
        has_axis = half_sine > ROUNDING
        axis = unit[..., 1:] / np.where(has_axis, half_sine, 1.0)
        if before is None:
            # Begin with the axis of the first rotation, or local Y if nothing rotates.
            found = np.take_along_axis(axis, np.argmax(has_axis, axis=0)[None], axis=0)[0]
            first = np.where(has_axis.any(axis=0), found, np.array((0.0, 1.0, 0.0)))
        else:
            first = _unit_or(before[..., 1:], (0.0, 1.0, 0.0))
        axis = _carried_on(axis, has_axis, first)
        signs = running_signs(axis, first)
        start = np.zeros((*unit.shape[1:-1], 1)) if before is None else before[..., :1]
        return np.concatenate((_unwrapped(angle * signs, start), axis * signs), axis=-1)
    order = _axes(rotation_mode)
    start = np.zeros((*unit.shape[1:-1], 3)) if before is None else before
    angles = _euler(order, matrix_from_quaternion(unit), start)
    other = angles + np.pi
    other[..., order[1]] = np.pi - angles[..., order[1]]
    earlier = np.concatenate((np.broadcast_to(start, angles.shape[1:])[None], angles[:-1]))
    # Two triples of angles give the same rotation, and the step to the next frame is equally long from both. So a frame
    # has the other triple if the number of changes between the two up to that frame is odd.
    change = np.abs(wrapped(other - earlier)).sum(axis=-1) < np.abs(wrapped(angles - earlier)).sum(axis=-1)
    on_other = np.cumsum(change, axis=0) % 2 == 1
    return _unwrapped(np.where(on_other[..., None], other, angles), start)


def from_channels(rotation_mode: str, values: npt.ArrayLike) -> FloatArray:
    """(..., 4) unit quaternions from channel values (..., n), as Blender reads them."""
    channels = np.asarray(values, dtype=np.float64)
    if rotation_mode == "QUATERNION":
        return _unit_or(channels, (0.0, 1.0, 0.0, 0.0))  # Blender reads four zeros as 180° about X.
    if rotation_mode == "AXIS_ANGLE":
        axis = _unit_or(channels[..., 1:], (0.0, 0.0, 0.0))
        half = np.where(axis.any(axis=-1), 0.5 * channels[..., 0], 0.0)[..., None]
        return np.concatenate((np.cos(half), np.sin(half) * axis), axis=-1)
    found: FloatArray = np.array(IDENTITY)
    for order_axis in _axes(rotation_mode):
        turn = np.zeros((*channels.shape[:-1], 4))
        half = 0.5 * channels[..., order_axis]
        turn[..., 0], turn[..., order_axis + 1] = np.cos(half), np.sin(half)
        found = product(turn, found)
    return found


def needed_keys(values: FloatArray, most: float, rotation_mode: str = "") -> IntArray:
    """(K,) indices of the keys that linear interpolation needs, out of F keys, so that no error exceeds `most`.

    Keeps the first key, the last, and the worst of each interval with too large an error. Processes all intervals at
    once until no error is too large (Douglas and Peucker 1973).

    values: (F, n) on successive frames, without jumps. rotation_mode: the mode of rotation channels, whose errors are
    angles in radians; "" for locations, whose errors are distances.
    """
    exact = from_channels(rotation_mode, values) if rotation_mode else values
    kept, open_frames = np.unique([0, len(values) - 1]), np.arange(len(values))
    while len(open_frames):
        interpolated = np.stack([np.interp(open_frames, kept, column[kept]) for column in values.T], axis=1)
        if rotation_mode:
            errors = angle_between(from_channels(rotation_mode, interpolated), exact[open_frames])
        else:
            errors = lengths(interpolated - exact[open_frames])
        stretch = np.searchsorted(kept, open_frames, side="right")
        first_of_each = np.flatnonzero(np.diff(stretch, prepend=-1))
        counts = np.diff(first_of_each, append=len(stretch))
        largest = np.repeat(np.maximum.reduceat(errors, first_of_each), counts)
        kept = np.union1d(kept, open_frames[(largest > most) & (errors == largest)])
        open_frames = np.setdiff1d(open_frames[largest > most], kept, assume_unique=True)
    return kept


def _axes(rotation_mode: str) -> list[int]:
    return ["XYZ".index(axis) for axis in rotation_mode]


def _euler(order: Sequence[int], matrices: FloatArray, start: FloatArray) -> FloatArray:
    """(F, ..., 3) angles, the middle one from -90° to 90°; at gimbal lock the last axis keeps its angle."""
    first, middle, last = order
    sign = 1.0 if (middle - first) % 3 == 1 else -1.0
    across, along = sign * matrices[..., middle, first], matrices[..., first, first]
    # If the cosine of the middle angle is 0, the first and the last angle rotate about the same axis.
    free = (np.hypot(across, along) > SINGLE)[..., None]
    last_angle = _carried_on(np.arctan2(across, along)[..., None], free, start[..., last : last + 1])[..., 0]
    angles = np.empty(matrices.shape[:-1])
    angles[..., last] = last_angle
    # This cosine can be negative, unlike one from a square root. So near gimbal lock, where the last angle is kept, the
    # error is at most the distance from gimbal lock.
    cosine = np.cos(last_angle) * along + np.sin(last_angle) * across
    angles[..., middle] = np.arctan2(-sign * matrices[..., last, first], cosine)
    # Compute the first angle from the last one, so that their sum is exact even if neither of the angles is.
    row = np.cos(last_angle)[..., None] * matrices[..., middle, :]
    row = row - sign * np.sin(last_angle)[..., None] * matrices[..., first, :]
    angles[..., first] = np.arctan2(-sign * row[..., last], row[..., middle])
    return angles


def _carried_on(values: FloatArray, valid: BoolArray, start: FloatArray) -> FloatArray:
    """Replace rows of values (F, ..., n) if not `valid` (F, ..., 1), by the last valid row or `start` (..., n)."""
    if valid.all():
        return values
    rows = np.arange(len(values)).reshape((-1,) + (1,) * (values.ndim - 1))
    source = np.maximum.accumulate(np.where(valid, rows, -1), axis=0)
    carried = np.take_along_axis(values, np.maximum(source, 0), axis=0)
    return np.where(source < 0, start, carried)


def _unwrapped(angles: FloatArray, start: FloatArray) -> FloatArray:
    """(F, ..., n) angles plus full turns: each is within 180° of the previous angle, and the first one of `start`."""
    joined = np.concatenate((np.broadcast_to(start, angles.shape[1:])[None], angles))
    return np.unwrap(joined, axis=0)[1:]


def _unit_or(vectors: FloatArray, fallback: tuple[float, ...]) -> FloatArray:
    """(..., n) vectors of length 1; `fallback` if the length is zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.where(length > 0.0, vectors / np.where(length > 0.0, length, 1.0), np.array(fallback))


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
# An Euler order, and the ranges of its angles.
EulerBox: TypeAlias = tuple[str, Box]

_CLOSED: Final = (0.0, 0.0)
_ALL_ROUND: Final = (-pi, pi)


def euler_box(limit: Limit | None) -> EulerBox:
    """The smallest box that contains a limit; without ranges for a free bone."""
    if limit is None:
        return "XYZ", [None] * 3
    if isinstance(limit, Ball | Polygon):
        boxes = [_box_of_swings(limit, order) for order in _ORDERS]
        sizes = [[tau if ends is None else ends[1] - ends[0] for ends in ranges] for _, ranges in boxes]
        return boxes[int(np.argmin(np.prod(sizes, axis=1)))]
    ends: dict[str, Range | None] = (
        {limit.axis: (limit.low, limit.high) if limit.bounded else None} if isinstance(limit, Hinge) else {}
    )
    return "YXZ" if "Y" in ends else "XYZ", [ends.get(axis, _CLOSED) for axis in "XYZ"]


def _box_of_swings(limit: Ball | Polygon, order: str) -> EulerBox:
    """The smallest box of Euler angles that contains a limit, for an Euler order that starts with Y."""
    # Of two triples for a rotation, Blender uses the one with the smaller sum, like `to_channels`.
    angles = to_channels(order, _rotations(replace(limit, twist=_CLOSED), np.zeros(1))[None])[0]
    low, high = angles.min(axis=0), angles.max(axis=0)
    low[1], high[1] = low[1] + limit.twist[0], high[1] + limit.twist[1]
    if np.maximum(abs(low), abs(high)).sum() > _OTHER_ANGLES - _NEARLY:
        angles = to_channels(order, _rotations(limit, np.linspace(0.0, 1.0, _PLACES))[None])[0]
        low, high = angles.min(axis=0), angles.max(axis=0)
    # The middle one of three Euler angles is always between -90° and 90°.
    whole = [pi if axis == order[1] else tau for axis in "XYZ"]
    ends = zip(low.tolist(), high.tolist(), whole, strict=True)
    return order, [None if b - a > most - _NEARLY else (a, b) for a, b, most in ends]


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


def limit_in(boxes: Sequence[Box]) -> Limit | None:
    """The limit for the rotations in all boxes, None if all axes are free; raises LimitError if no limit fits them."""
    box = [_common([each[axis] for each in boxes]) for axis in range(3)]
    still = [ends is not None and max(map(abs, ends)) < SINGLE for ends in box]
    if all(ends is None for ends in box):
        return None
    if all(still):
        return Fixed()
    if still.count(False) == 1:
        place = still.index(False)
        axis: Any = "XYZ"[place]
        return Hinge(axis, *(box[place] or _ALL_ROUND))
    twist = box[1] or _ALL_ROUND
    low_x, high_x = box[0] or _ALL_ROUND
    low_z, high_z = box[2] or _ALL_ROUND
    if low_x <= 0.0 <= high_x and low_z <= 0.0 <= high_z:
        right, front, left, back = (min(angle, pi) for angle in (-low_z, high_x, high_z, -low_x))
        return Ball((right, front, left, back), twist)
    low_x, high_x = box[0] or _beside(box[2])
    low_z, high_z = box[2] or _beside(box[0])
    return Polygon([(-high_z, low_x), (-low_z, low_x), (-low_z, high_x), (-high_z, high_x)], twist)


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
