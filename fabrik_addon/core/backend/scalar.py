"""The backend for a single pose: mathutils, which is written in C. It has the functions of `array`.

For a person with limits, it is 4 times as fast as arrays of one frame.
"""
# ruff: noqa: D103  their docstrings are in `array`

import sys
from collections.abc import Sequence
from math import atan2, cos, floor, sin, sqrt  # noqa: F401  the kernel uses them from here
from typing import Any, Final, cast

import numpy as np
from mathutils import Quaternion, Vector

from ..arrays import TINY, BoolArray, FloatArray, IntArray
from . import Backend

# This module as a backend. The stubs of mathutils require its own classes; a test compares both backends.
BACKEND: Final = cast("Backend", sys.modules[__name__])
absolute = abs


def maximum(first: float, second: float) -> float:
    return second if second > first else first  # noqa: FURB136  max takes twice as long


def minimum(first: float, second: float) -> float:
    return second if second < first else first  # noqa: FURB136


def clamp(value: float, low: float, high: float) -> float:
    return low if value < low else high if value > high else value  # noqa: FURB136


def select(condition: bool, chosen: Any, otherwise: Any) -> Any:
    return chosen if condition else otherwise


def any_of(condition: bool) -> bool:
    return condition


def rotation_between(start: Vector, end: Vector) -> Quaternion:
    if start.length_squared < TINY or end.length_squared < TINY:
        return Quaternion()
    return start.rotation_difference(end)


def point_on_line(anchor: Vector, point: Vector, distance: float) -> Vector:
    line = point - anchor
    if line.length_squared <= TINY:
        line = Vector((1.0, 0.0, 0.0))
    line.length = distance
    return anchor + line


def exp_map(rotation_vector: Vector) -> Quaternion:
    return Quaternion(rotation_vector, rotation_vector.length)


def scalar(array: FloatArray) -> float:
    return float(array[0])


def vector(array: FloatArray) -> Vector:
    return Vector(np.ravel(array).tolist())


def quaternion(array: FloatArray) -> Quaternion:
    return Quaternion(np.ravel(array).tolist())


def quaternions(array: FloatArray) -> list[Quaternion]:
    return [Quaternion(rotation) for rotation in array[0].tolist()]


def stack(values: Sequence[Any], _frames: int = 1) -> FloatArray:
    return np.array([[value[:] for value in values]], dtype=np.float64)


def take(value: Any, _frames: IntArray | BoolArray) -> Any:
    """The value itself, since there is only one frame; `_frames`: (1,)."""
    return value


def put(value: Any, frames: IntArray, part: Any, _count: int = 1) -> Any:
    """The new value if `frames` (N,) contains the only frame, else the old one."""
    return part if len(frames) else value


def frames_where(condition: bool) -> IntArray:
    """The only frame if the condition holds, else none."""
    return np.arange(int(condition))
