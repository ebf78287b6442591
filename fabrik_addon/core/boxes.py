"""Converts limits to and from boxes: ranges of the angles about X, Y and Z, as in Blender's IK limits and constraints.

If only one axis is free, the limit is a hinge, else a ball, or a polygon if rest is outside. A rotation about X swings
the bone along Z, a rotation about Z swings it along X, and a rotation about Y twists it.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import pi, sqrt, tau
from typing import Any, Final, TypeAlias

import numpy as np

from .arrays import SINGLE, FloatArray
from .channels import to_channels
from .errors import LimitError
from .limits import Ball, Fixed, Hinge, Limit, Polygon, Range, compose_arrays

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
# The same for the angles in an Euler order, which comes first.
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
