"""A ball joint's limit: an ellipse of swings between four angles, and a range of twist."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, pi, sin

import numpy as np

from ..arrays import FloatArray
from ..backend.protocol import Backend, Quaternion, Scalar
from ..errors import LimitError
from ..readers import numbers, shown
from . import ellipse
from .base import Bounds, Limit, LimitConstraint, Range, check_range, spread
from .leaning import clamped, twist_between, twist_constraints
from .swing_twist import FULL_TURN, compose_arrays, lean_of

# Rounding of π in single precision: a value this much above still counts as π.
_ROUNDING = 1e-9
# Below this share of a bound, a rotation is inside despite single precision.
_SURE = 1.0 - 1e-6


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
        if not (usable and all(0.0 <= angle <= pi + _ROUNDING for angle in self.angles)):
            raise LimitError(f"A ball's cone is {shown(self.cone)}: give one angle or four, each from 0 to 180° (pi)")
        check_range("A ball's twist", self.twist)

    @cached_property
    def angles(self) -> tuple[float, ...]:
        """The four largest swings toward (+X, +Z, -X, -Z), radians."""
        cone = np.atleast_1d(np.asarray(self.cone, dtype=float))
        return tuple(np.repeat(cone, 4).tolist() if len(cone) == 1 else cone.tolist())

    @cached_property
    def bounds(self) -> "_BallBounds":  # type: ignore[override]
        """The four swings, the range of twist, and the region that is certainly inside."""
        least = min(self.angles)
        sure = sin(0.5 * least) ** 2 * _SURE
        low, high, middle = twist_between(self.twist)
        right, front, left, back = self.angles
        return _BallBounds(low, high, middle, right, front, left, back, inf if least >= pi else sure)

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """Move the swing to the nearest point of the ellipse, and the twist to the nearer end of its range."""
        return self.bounds.clamp(backend, rotation)

    def constraints(self, backend: Backend, rotation: Quaternion, within: float = inf) -> list[LimitConstraint]:
        """The ellipse, the axes along which no swing is allowed, and the ends of the twist."""
        return self.bounds.constraints(backend, rotation, within)

    def sample(self, places: FloatArray) -> FloatArray:
        """Swings spread evenly over the ellipse, and twists over the range."""
        leans = ellipse.outline(self.angles, FULL_TURN * places[..., 0]) * np.sqrt(places[..., 1, None])
        return compose_arrays(leans[..., 0], leans[..., 1], spread(self.twist, places[..., 2]))

    def outline(self, count: int) -> FloatArray:
        """(count, 2) swings in radians along the edge of the cone, from +X toward +Z."""
        return ellipse.outline(self.angles, np.arange(count) * (FULL_TURN / count))


@dataclass(frozen=True)
class _BallBounds(Bounds):
    """The range of twist and the four swings of one ball or several.

    Swings with x² + z² below `sure` are certainly inside.
    """

    low: Scalar
    high: Scalar
    middle: Scalar
    right: Scalar
    front: Scalar
    left: Scalar
    back: Scalar
    sure: Scalar

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        return clamped(backend, rotation, self._nearest, (self.low, self.high, self.middle), self.sure)

    def constraints(self, backend: Backend, rotation: Quaternion, within: float = inf) -> list[LimitConstraint]:
        lean = lean_of(backend, rotation)
        constraints = twist_constraints(backend, rotation, lean, (self.low, self.high, self.middle), within)
        (nx, nz), gap = ellipse.side(backend, lean.x, lean.z, *self._half_axes(backend, lean.x, lean.z))
        gap = backend.select(self.sure < inf, gap, inf)
        if backend.any_of(gap <= min(within, FULL_TURN)):
            constraints.append(LimitConstraint(lean.turn_toward(backend, nx, nz), gap))
        axes = ((self.right, 1, 0), (self.front, 0, 1), (self.left, -1, 0), (self.back, 0, -1))
        for angle, sx, sz in axes:
            if backend.any_of(angle == 0.0):
                gap = backend.select(angle == 0.0, -(sx * lean.x + sz * lean.z), inf)
                constraints.append(LimitConstraint(lean.turn_toward(backend, sx, sz), gap))
        return constraints

    def _nearest(self, backend: Backend, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
        return ellipse.nearest_on_ellipse(backend, x, z, *self._half_axes(backend, x, z))

    def _half_axes(self, backend: Backend, x: Scalar, z: Scalar) -> tuple[Scalar, Scalar]:
        return backend.select(x >= 0, self.right, self.left), backend.select(z >= 0, self.front, self.back)
