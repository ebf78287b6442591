"""Decomposes a bone's local rotation into swing and twist.

q = swing · twist. The swing is the shortest arc from Y to q·Y, the twist the remaining rotation about Y. A swing's
chart point is (x, z) = θ · (dx, dz) / √(dx² + dz²), the azimuthal equidistant projection, with θ the angle from Y and d
= q·Y.
"""

from collections.abc import Callable
from math import inf, pi
from typing import NamedTuple, TypeAlias

import numpy as np

from ..arrays import ROUNDING, SINGLE, FloatArray
from ..backend.array import Quaternion, Scalar
from ..backend.protocol import Backend
from .base import Range

FULL_TURN = 2.0 * pi
# At 180° the twist of a bone is only rounding error. Clamped swings are slightly smaller, so that the twist is right to
# 1e-9.
MAX_SWING = pi - SINGLE
# The ends of a range of angles, infinite for a full turn or more, and the middle between them.
Between: TypeAlias = tuple[float, float, float]


class Swing(NamedTuple):
    """A swing: the angle from Y, the unit azimuth (ex, ez), and their product, the chart point (x, z)."""

    angle: Scalar
    ex: Scalar
    ez: Scalar
    x: Scalar
    z: Scalar


def swing_of(backend: Backend, rotation: Quaternion) -> Swing:
    """The swing of a unit quaternion, exact up to 180°. There, its azimuth is that of the rotation without twist."""
    w, x, y, z = rotation.w, rotation.x, rotation.y, rotation.z
    upright, leaning = backend.sqrt(w * w + y * y), backend.sqrt(x * x + z * z)
    if backend.any_of(backend.minimum(upright, leaning) <= ROUNDING):
        scale = 1.0 / backend.maximum(upright, ROUNDING)
        clear = upright > ROUNDING
        cosine, sine = backend.select(clear, w * scale, 1.0), backend.select(clear, y * scale, 0.0)
        size = 1.0 / backend.maximum(leaning, ROUNDING)
        ex = backend.select(leaning > ROUNDING, (x * sine - z * cosine) * size, 1.0)
        ez = backend.select(leaning > ROUNDING, (x * cosine + z * sine) * size, 0.0)
    else:
        size = 1.0 / (upright * leaning)
        ex, ez = (x * y - z * w) * size, (x * w + z * y) * size
    angle = 2.0 * backend.atan2(leaning, upright)
    return Swing(angle, ex, ez, angle * ex, angle * ez)


def below_half_turn(backend: Backend, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
    """A point of the chart, moved into the circle of swings below 180°, in which the twist is defined."""
    angle = backend.sqrt(x * x + z * z)
    share = backend.select(angle > MAX_SWING, MAX_SWING / backend.maximum(angle, 1.0), 1.0)
    return x * share, z * share


def twist_of(backend: Backend, rotation: Quaternion, middle: Scalar) -> Scalar:
    """The twist in radians, as the angle nearest to `middle`."""
    return nearest_angle(backend, 2.0 * backend.atan2(rotation.y, rotation.w), middle)


def nearest_angle(backend: Backend, angle: Scalar, middle: Scalar) -> Scalar:
    """The same angle plus full turns, nearest to `middle`; so 181° does not become -179°."""
    return angle - FULL_TURN * backend.floor((angle - middle) / FULL_TURN + 0.5)


def compose(backend: Backend, x: Scalar, z: Scalar, twist: Scalar) -> Quaternion:
    """The rotation with a given swing and twist."""
    zero = x * 0.0
    swing = backend.exp_map(backend.Vector((z, zero, -x)))
    return swing @ backend.exp_map(backend.Vector((zero, twist, zero)))


def compose_arrays(x: FloatArray, z: FloatArray, twist: FloatArray) -> FloatArray:
    """(..., 4) rotations with swings x, z and twists (...), radians."""
    half = np.hypot(x, z) / 2.0
    scale = np.sinc(half / pi) / 2.0
    c, s = np.cos(twist / 2.0), np.sin(twist / 2.0)
    w, sx, sz = np.cos(half), z * scale, -x * scale
    return np.stack([w * c, sx * c - sz * s, w * s, sz * c + sx * s], axis=-1)


def between(ends: Range) -> Between:
    """The ends of a range of angles, and its middle."""
    low, high = ends if ends[1] - ends[0] < FULL_TURN else (-inf, inf)
    return low, high, 0.5 * (ends[0] + ends[1])


def clamped(
    backend: Backend,
    rotation: Quaternion,
    nearest: Callable[[Backend, Scalar, Scalar], tuple[Scalar, Scalar]],
    twist: Between,
    surely_inside: Scalar = -1.0,
) -> Quaternion:
    """The rotation itself if swing and twist are inside, else the rotation with the nearest swing and twist.

    The swing is not computed if x² + z² of all rotations is less than `surely_inside`.
    """
    low, high, middle = twist
    turn = twist_of(backend, rotation, middle)
    bounded = backend.clamp(turn, low, high)
    leaning = rotation.x**2 + rotation.z**2
    if not backend.any_of((leaning > surely_inside) | (turn != bounded)):
        return rotation
    lean = swing_of(backend, rotation)
    x, z = below_half_turn(backend, *nearest(backend, lean.x, lean.z))
    outside = (x != lean.x) | (z != lean.z) | (turn != bounded)
    moved = backend.frames_where(outside)
    if not len(moved):
        return rotation
    inside = compose(backend, *(backend.take(value, moved) for value in (x, z, bounded)))
    return backend.put(rotation, moved, inside, np.size(outside))
