"""The backend for a single pose: mathutils, which is written in C. It overrides the functions of `array`.

For a person with limits, it is 4 times as fast as arrays of one frame.
"""
# ruff: noqa: D102  their docstrings are in `array`

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from mathutils import Quaternion, Vector

from ..arrays import TINY, BoolArray, FloatArray, IntArray
from .array import Backend


class OnePose(Backend):
    """The functions for one pose: numbers are floats, vectors and quaternions those of mathutils."""

    absolute = abs
    sqrt = math.sqrt
    sin = math.sin
    cos = math.cos
    atan2 = math.atan2
    floor = math.floor
    vector_of: Any = Vector
    quaternion_of: Any = Quaternion

    def maximum(self, first: Any, second: Any) -> Any:
        return second if second > first else first  # noqa: FURB136  max takes twice as long

    def minimum(self, first: Any, second: Any) -> Any:
        return second if second < first else first  # noqa: FURB136

    def clamp(self, value: Any, low: Any, high: Any) -> Any:
        return low if value < low else high if value > high else value  # noqa: FURB136

    def select(self, condition: Any, chosen: Any, otherwise: Any) -> Any:
        return chosen if condition else otherwise

    def any_of(self, condition: Any) -> bool:
        return bool(condition)

    def rotation_between(self, start: Any, end: Any) -> Any:
        if start.length_squared < TINY or end.length_squared < TINY:
            return Quaternion()
        return start.rotation_difference(end)

    def point_on_line(self, anchor: Any, point: Any, distance: Any) -> Any:
        line = point - anchor
        if line.length_squared <= TINY:
            line = Vector((1.0, 0.0, 0.0))
        line.length = distance
        return anchor + line

    def exp_map(self, rotation_vector: Any) -> Any:
        return Quaternion(rotation_vector, rotation_vector.length)

    def scalar(self, array: FloatArray) -> Any:
        return float(array[0])

    def vector(self, array: FloatArray) -> Any:
        return Vector(np.ravel(array).tolist())

    def quaternion(self, array: FloatArray) -> Any:
        return Quaternion(np.ravel(array).tolist())

    def quaternions(self, array: FloatArray) -> Any:
        return [Quaternion(rotation) for rotation in array[0].tolist()]

    def stack(self, values: Sequence[Any], _frames: int = 1) -> FloatArray:
        return np.array([[value[:] for value in values]], dtype=np.float64)

    def take(self, value: Any, _frames: IntArray | BoolArray) -> Any:
        """The value itself, since there is only one frame; `_frames`: (1,)."""
        return value

    def put(self, value: Any, frames: IntArray, part: Any, _count: int = 1) -> Any:
        """The new value if `frames` (N,) contains the only frame, else the old one."""
        return part if len(frames) else value

    def frames_where(self, condition: Any) -> IntArray:
        """The only frame if the condition holds, else none."""
        return np.arange(int(condition))


one: Final = OnePose()
