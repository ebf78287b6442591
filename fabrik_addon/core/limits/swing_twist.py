"""Decomposes a bone's local rotation into swing and twist.

q = swing · twist. The swing is the shortest arc from Y to q·Y, the twist the remaining rotation about Y. A swing's
chart point is (x, z) = θ · (dx, dz) / √(dx² + dz²), the azimuthal equidistant projection, with θ the angle from Y and d
= q·Y.
"""

from math import pi
from typing import NamedTuple

import numpy as np

from ..arrays import ROUNDING, FloatArray
from ..backend.protocol import Backend, Quaternion, Scalar, Vector

FULL_TURN = 2.0 * pi
# At 180° the twist of a bone is only rounding error. Clamped swings are slightly smaller, so that the twist is right to
# 1e-9.
MOST_LEAN = pi - 1e-6


class Lean(NamedTuple):
    """A swing: the angle from Y, the unit azimuth (ex, ez), and their product, the chart point (x, z)."""

    angle: Scalar
    ex: Scalar
    ez: Scalar
    x: Scalar
    z: Scalar

    def turn_toward(self, backend: Backend, nx: Scalar, nz: Scalar) -> Vector:
        """The gradient g of a swing along the chart direction n = (nx, nz): n · d(x, z) = g · ω for a rotation ω.

        With u the bone's direction, du = ω × u; the chart stretches movement around the azimuth by θ / sin θ. A larger
        swing is a rotation about (ez, 0, -ex), movement around the azimuth one about (cos θ ex, -sin θ, cos θ ez).
        """
        sine, cosine = backend.sin(self.angle), backend.cos(self.angle)
        stretch = self.angle / backend.maximum(sine, ROUNDING)
        outward = nx * self.ex + nz * self.ez
        around = (nz * self.ex - nx * self.ez) * backend.select(self.angle < 1e-6, 1.0, stretch)
        level = around * cosine
        return backend.Vector(
            (outward * self.ez + level * self.ex, -around * sine, level * self.ez - outward * self.ex)
        )


def lean_of(backend: Backend, rotation: Quaternion) -> Lean:
    """The swing of a unit quaternion; exact up to 180°, where its azimuth is the one without twist."""
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
    return Lean(angle, ex, ez, angle * ex, angle * ez)


def short_of_half_a_turn(backend: Backend, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
    """A point of the chart, moved into the circle in which the twist is defined."""
    angle = backend.sqrt(x * x + z * z)
    share = backend.select(angle > MOST_LEAN, MOST_LEAN / backend.maximum(angle, 1.0), 1.0)
    return x * share, z * share


def twist_of(backend: Backend, rotation: Quaternion, middle: Scalar) -> Scalar:
    """The twist in radians, as the angle nearest to `middle`."""
    return nearest_angle(backend, 2.0 * backend.atan2(rotation.y, rotation.w), middle)


def nearest_angle(backend: Backend, angle: Scalar, middle: Scalar) -> Scalar:
    """The same angle plus full turns, nearest to `middle`; so 181° does not become -179°."""
    return angle - FULL_TURN * backend.floor((angle - middle) / FULL_TURN + 0.5)


def turn_twisting(backend: Backend, lean: Lean) -> Vector:
    """How the twist changes with a rotation vector ω: dt = result · ω."""
    above = 1.0 + backend.cos(lean.angle)  # of the bone's direction u: dt = (u + Y) · ω / (1 + u · Y)
    share = 1.0 / backend.maximum(above, 1e-6)
    side = backend.sin(lean.angle) * share
    return backend.Vector((side * lean.ex, above * share, side * lean.ez))


def compose(backend: Backend, x: Scalar, z: Scalar, twist: Scalar) -> Quaternion:
    """The rotation with this swing and twist."""
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
