"""A ball joint's limit: an ellipse of swings between four angles, and a range of twist."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, pi, sin

import numpy as np
import numpy.typing as npt

from ..arrays import ROUNDING, ROUNDS, SINGLE, FloatArray
from ..backend.array import Quaternion, Scalar
from ..backend.protocol import Backend
from ..errors import LimitError
from ..readers import numbers, shown
from .base import Limit, Range, check_range, spread
from .swing_twist import FULL_TURN, Between, between, clamped, compose_arrays


@dataclass(frozen=True)
class Ball(Limit):
    """A swing limit and a range of twist.

    Args:
        cone: the largest swing of local Y, 0…π radians: one angle, or four toward (+X, +Z, -X, -Z) with ellipses
            between them.
        twist: (min, max) about Y, radians; a range of 2π or more is free.

    Raises:
        LimitError: naming the invalid value.
    """

    cone: float | Sequence[float] = pi
    twist: Range = (-pi, pi)

    def __post_init__(self) -> None:
        cone = numbers(self.cone)
        usable = cone is not None and cone.shape in {(), (1,), (4,)}
        if not (usable and all(0.0 <= angle <= pi + ROUNDING for angle in self.angles)):
            raise LimitError(f"A ball's cone is {shown(self.cone)}: give one angle or four, each from 0 to 180° (pi)")
        check_range("A ball's twist", self.twist)

    @cached_property
    def angles(self) -> tuple[float, ...]:
        """The four largest swings toward (+X, +Z, -X, -Z), radians."""
        cone = np.atleast_1d(np.asarray(self.cone, dtype=float))
        return tuple(np.repeat(cone, 4).tolist() if len(cone) == 1 else cone.tolist())

    @cached_property
    def between(self) -> Between:
        """The ends of the range of twist, and the middle between them, in radians."""
        return between(self.twist)

    @cached_property
    def surely_inside(self) -> float:
        """If x² + z² of a rotation's quaternion is below this, its swing is inside, despite single precision."""
        least = min(self.angles)
        return inf if least >= pi else sin(0.5 * least) ** 2 * (1.0 - SINGLE)

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """Move the swing to the nearest point of the ellipse, and the twist to the nearer end of its range."""
        return clamped(backend, rotation, self._nearest, self.between, self.surely_inside)

    def _nearest(self, backend: Backend, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
        right, front, left, back = self.angles
        return nearest_on_ellipse(
            backend, x, z, backend.select(x >= 0, right, left), backend.select(z >= 0, front, back)
        )

    def sample(self, unit_points: FloatArray) -> FloatArray:
        """(..., 4) swings spread evenly over the ellipse, and twists over the range, from `unit_points` (..., 3)."""
        swings = outline(self.angles, FULL_TURN * unit_points[..., 0]) * np.sqrt(unit_points[..., 1, None])
        return compose_arrays(swings[..., 0], swings[..., 1], spread(self.twist, unit_points[..., 2]))

    def outline(self, count: int) -> FloatArray:
        """(count, 2) swings in radians along the edge of the cone, from +X toward +Z."""
        return outline(self.angles, np.arange(count) * (FULL_TURN / count))


def outline(angles: npt.ArrayLike, azimuth: FloatArray) -> FloatArray:
    """(..., 2) swings (x, z) on the edge of a cone at azimuths (...) from +X toward +Z, radians.

    angles: (4,) half-axes toward +X, +Z, -X, -Z, radians.
    """
    right, front, left, back = np.asarray(angles)
    x, z = np.cos(azimuth), np.sin(azimuth)
    return np.stack([x * np.where(x >= 0.0, right, left), z * np.where(z >= 0.0, front, back)], axis=-1)


def nearest_on_ellipse(backend: Backend, x: Scalar, z: Scalar, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """The point itself if it is inside the ellipse with half-axes a and b, else the nearest point on it.

    A half-axis of zero allows only the other axis.
    """
    outside = (x / backend.maximum(a, ROUNDING)) ** 2 + (z / backend.maximum(b, ROUNDING)) ** 2 > 1.0 + ROUNDING
    if not backend.any_of(outside):
        return x, z
    frames, count = backend.frames_where(outside), np.size(outside)
    far_x, far_z, a, b = (backend.take(value, frames) for value in (x, z, a, b))
    t = ellipse_root(backend, far_x, far_z, a, b)
    near_x, near_z = (
        axis * axis * far / backend.maximum(t + axis * axis, ROUNDING) for far, axis in ((far_x, a), (far_z, b))
    )
    return backend.put(x, frames, near_x, count), backend.put(z, frames, near_z, count)


def ellipse_root(backend: Backend, x: Scalar, z: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """The t for which (a² x / (t + a²), b² z / (t + b²)) is the point of an ellipse nearest to (x, z).

    The paper's Newton iteration (section 4.3) for the root t of (a x / (t + a²))² + (b z / (t + b²))² = 1, which is
    below zero inside. Newton's method is applied to one over the square root of the left side, which increases nearly
    linearly and is concave (Conn, Gould and Toint, *Trust-Region Methods*, 2000, lemma 7.3.1). So few steps are needed,
    and steps that start below the root stay below it. This also works on the axes, and if a half-axis is zero.
    """
    aa, bb, ax, bz = a * a, b * b, a * backend.absolute(x), b * backend.absolute(z)
    t = backend.maximum(ax - aa, bz - bb)
    for _ in range(ROUNDS):
        across, along = backend.maximum(t + aa, ROUNDING), backend.maximum(t + bb, ROUNDING)
        pp, qq = (ax / across) ** 2, (bz / along) ** 2
        excess = backend.sqrt(pp + qq) - 1.0
        t = t + backend.maximum(excess, 0.0) * (pp + qq) / backend.maximum(pp / across + qq / along, ROUNDING)
        # Newton's method converges quadratically: the last step has left about the square of this error.
        if not backend.any_of(excess > SINGLE):
            break
    return t
