"""The array backend, for many poses at once: like mathutils, with arrays over frames as components.

Vectors and quaternions have the part of mathutils' interface that the kernel uses. A component is a float64 array (F,),
or a plain float if it is the same on every frame. `scalar` is the backend for a single pose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast, overload

import numpy as np

from .. import rotations
from ..arrays import CLOSE, TINY, BoolArray, FloatArray, IntArray

# One number, or one for each frame; the same for booleans.
Scalar: TypeAlias = float | FloatArray
Condition: TypeAlias = bool | BoolArray
Function: TypeAlias = Callable[..., Scalar]
_Value = TypeVar("_Value")


class Vector:
    """A point or direction on every frame."""

    __slots__ = ("x", "y", "z")

    def __init__(self, components: Iterable[Scalar]) -> None:
        self.x, self.y, self.z = components

    def __add__(self, other: Vector) -> Vector:
        return Vector((self.x + other.x, self.y + other.y, self.z + other.z))

    def __sub__(self, other: Vector) -> Vector:
        return Vector((self.x - other.x, self.y - other.y, self.z - other.z))

    def __mul__(self, factor: Scalar) -> Vector:
        return Vector((self.x * factor, self.y * factor, self.z * factor))

    def __neg__(self) -> Vector:
        return Vector((-self.x, -self.y, -self.z))

    def dot(self, other: Vector) -> Scalar:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vector) -> Vector:
        return Vector(
            (
                self.y * other.z - self.z * other.y,
                self.z * other.x - self.x * other.z,
                self.x * other.y - self.y * other.x,
            )
        )

    @property
    def length_squared(self) -> Scalar:
        return self.dot(self)

    @property
    def length(self) -> Scalar:
        return np.sqrt(self.length_squared)


class Quaternion:
    """A rotation on every frame."""

    __slots__ = ("w", "x", "y", "z")

    def __init__(self, components: Iterable[Scalar]) -> None:
        self.w, self.x, self.y, self.z = components

    @overload
    def __matmul__(self, other: Quaternion) -> Quaternion: ...
    @overload
    def __matmul__(self, other: Vector) -> Vector: ...
    def __matmul__(self, other: Any) -> Any:
        return self._turn(other) if isinstance(other, Vector) else self._after(other)

    def _turn(self, point: Vector) -> Vector:
        """The rotated vector p + 2 w v × p + 2 v × (v × p), computed in place."""
        w, x, y, z = self.w, self.x, self.y, self.z
        a, b, c = point.y * z, point.z * x, point.x * y
        a, b, c = point.z * y - a, point.x * z - b, point.y * x - c
        a += a
        b += b
        c += c
        px, py, pz = w * a, w * b, w * c
        px += point.x
        py += point.y
        pz += point.z
        px += y * c - z * b
        py += z * a - x * c
        pz += x * b - y * a
        return Vector((px, py, pz))

    def _after(self, first: Quaternion) -> Quaternion:
        w, x, y, z = self.w, self.x, self.y, self.z
        return Quaternion(
            (
                w * first.w - x * first.x - y * first.y - z * first.z,
                w * first.x + x * first.w + y * first.z - z * first.y,
                w * first.y - x * first.z + y * first.w + z * first.x,
                w * first.z + x * first.y - y * first.x + z * first.w,
            )
        )

    def dot(self, other: Quaternion) -> Scalar:
        return self.w * other.w + self.x * other.x + self.y * other.y + self.z * other.z

    def conjugated(self) -> Quaternion:
        return Quaternion((self.w, -self.x, -self.y, -self.z))

    def normalized(self) -> Quaternion:
        scale = 1.0 / np.sqrt(self.w * self.w + self.x * self.x + self.y * self.y + self.z * self.z)
        return Quaternion((self.w * scale, self.x * scale, self.y * scale, self.z * scale))


def _columns(array: FloatArray) -> list[Scalar]:
    """The n columns of an array (F, n); plain floats if one row is broadcast over the frames."""
    if len(array) and array.strides[0] == 0:
        same: list[Scalar] = array[0].tolist()
        return same
    return list(np.array(array.T, dtype=np.float64, order="C"))


def _for_each_component(change: Callable[..., Any], *values: _Value) -> _Value:
    """The results of a function for the components of vectors or quaternions, or for plain numbers."""
    kind: Any = type(values[0])
    if kind not in (Vector, Quaternion):
        return cast("_Value", change(*values))
    return cast("_Value", kind([change(*[getattr(value, name) for value in values]) for name in kind.__slots__]))


class Backend:
    """The functions of a backend, here for arrays; `scalar` overrides them for one pose."""

    absolute: Function = np.abs
    sqrt: Function = np.sqrt
    sin: Function = np.sin
    cos: Function = np.cos
    atan2: Function = np.arctan2
    floor: Function = np.floor
    maximum: Function = np.maximum
    minimum: Function = np.minimum
    # From components: a vector from three, a quaternion from four.
    vector_of, quaternion_of = Vector, Quaternion

    def clamp(self, value: Scalar, low: Scalar, high: Scalar) -> Scalar:
        """`value`, limited to the range from `low` to `high`."""
        return np.minimum(np.maximum(value, low), high)

    def select(self, condition: Condition, chosen: _Value, otherwise: _Value) -> _Value:
        """`chosen` on frames where the condition holds, `otherwise` on others; both are already computed."""
        return _for_each_component(partial(np.where, condition), chosen, otherwise)

    def any_of(self, condition: Condition) -> bool:
        """Whether the condition holds on at least one frame."""
        return np.count_nonzero(condition) > 0  # takes half the time of `any`

    def rotation_between(self, start: Vector, end: Vector) -> Quaternion:
        """The shortest rotation from one direction to another; the identity if either has no length.

        Antipodal directions rotate about an axis perpendicular to `start`, chosen as in mathutils.
        """
        product = np.sqrt(start.length_squared * end.length_squared)
        axis = start.cross(end)
        cosine = start.dot(end)
        w = product + cosine
        # There |a||b| + a·b loses its precision.
        near = np.flatnonzero(w <= CLOSE * product)
        if len(near):
            ends = (self.stack([self.take(end, near)], len(near))[:, 0] for end in (start, end))
            opposite = self.quaternion(rotations.rotation_between(*ends))
            if len(near) == np.size(w):
                return opposite
            product[near] = w[near] = 1.0
        # The squares of w and of the axis add up to 2 w |a||b|.
        scale = 1.0 / np.sqrt(2.0 * product * w)
        rotation = Quaternion((w * scale, axis.x * scale, axis.y * scale, axis.z * scale))
        return self.put(rotation, near, opposite, len(w)) if len(near) else rotation

    def point_on_line(self, anchor: Vector, point: Vector, distance: Scalar) -> Vector:
        """The point on the line from `anchor` through `point`, at `distance` (FABRIK's basic step)."""
        x, y, z = point.x - anchor.x, point.y - anchor.y, point.z - anchor.z
        square = x * x
        square += y * y
        square += z * z
        if np.minimum.reduce(square, axis=None, initial=1.0) <= TINY:  # takes half the time of `min`
            x = np.where(square > TINY, x, 1.0)
            square = np.where(square > TINY, square, 1.0)
        ratio = distance / np.sqrt(square)
        x *= ratio
        y *= ratio
        z *= ratio
        x += anchor.x
        y += anchor.y
        z += anchor.z
        return Vector((x, y, z))

    def exp_map(self, rotation_vector: Vector) -> Quaternion:
        """The rotation about a vector by the vector's length in radians."""
        half = np.maximum(rotation_vector.length * 0.5, TINY)
        scale = 0.5 * np.sin(half) / half
        return Quaternion(
            (np.cos(half), rotation_vector.x * scale, rotation_vector.y * scale, rotation_vector.z * scale)
        )

    def scalar(self, array: FloatArray) -> Scalar:
        """A number for each frame, from (F,)."""
        return array

    def vector(self, array: FloatArray) -> Vector:
        """A vector for each frame, from (F, 3)."""
        return Vector(_columns(array))

    def quaternion(self, array: FloatArray) -> Quaternion:
        """A quaternion for each frame, from (F, 4)."""
        return Quaternion(_columns(array))

    def quaternions(self, array: FloatArray) -> list[Quaternion]:
        """N quaternions for each frame, from (F, N, 4)."""
        return [self.quaternion(array[:, index]) for index in range(array.shape[1])]

    def stack(self, values: Sequence[Vector] | Sequence[Quaternion], frames: int) -> FloatArray:
        """N vectors or quaternions as one array (F, N, 3 or 4)."""
        stacked = np.empty((frames, len(values), 3 if isinstance(values[0], Vector) else 4))
        self.write(values, stacked, range(len(values)))
        return stacked

    def write(self, values: Sequence[Any], rows: FloatArray, indices: Sequence[int]) -> None:
        """Write N vectors or quaternions into rows (F, M, 3 or 4) at N indices."""
        for index, value in zip(indices, values, strict=True):
            for column, part in enumerate(value.__slots__):
                rows[:, index, column] = getattr(value, part)

    def take(self, value: _Value, frames: IntArray | BoolArray) -> _Value:
        """The part of a value on some frames; `frames` are N indices (N,), or booleans (F,)."""
        return _for_each_component(lambda part: part[frames] if np.ndim(part) else part, value)

    def put(self, value: _Value, frames: IntArray, part: _Value, count: int) -> _Value:
        """A copy of a value in which `frames` (N,) of its `count` frames are replaced by `part`."""
        if len(frames) == count:
            return part

        def replaced(old: Scalar, new: Scalar) -> FloatArray:
            whole = np.array(np.broadcast_to(old, count))
            whole[frames] = new
            return whole

        return _for_each_component(replaced, value, part)

    def frames_where(self, condition: Condition) -> IntArray:
        """The frames on which a condition holds."""
        return np.flatnonzero(condition)


many: Final = Backend()
