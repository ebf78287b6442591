"""Converts between quaternions and rotation channels (quaternions, axis-angle, Euler angles), without jumps.

Everything is computed in double precision from the quaternion itself, since single-precision conversions near gimbal
lock have errors of several degrees. Quaternions are (w, x, y, z); angles are in radians.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from .arrays import ROUNDING, BoolArray, FloatArray, IntArray, lengths, running_signs, wrapped
from .rotations import IDENTITY, angle_between, matrix_from_quaternion, product

# Below this cosine of the middle angle, the first and third Euler angles rotate about the same axis.
_GIMBAL_COSINE: Final = 1e-7


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
    free = (np.hypot(across, along) > _GIMBAL_COSINE)[..., None]
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
