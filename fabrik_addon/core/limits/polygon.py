"""A swing limit with any simple outline, and a range of twist."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, pi

import numpy as np

from ..arrays import FloatArray
from ..backend.protocol import Backend, Quaternion
from .base import Limit, LimitConstraint, Range, check_range, spread
from .leaning import Twist, clamped, twist_between, twist_constraints
from .outline import Window
from .swing_twist import compose_arrays, lean_of


@dataclass(frozen=True)
class Polygon(Limit):
    """An outline of swings and a range of twist.

    Args:
        window: a simple closed outline of three or more (X, Z) swings in radians, in either winding; it need not
            contain rest.
        twist: (min, max) about Y, radians; a range of 2π or more is free.

    Raises:
        LimitError: naming the problem with outline or twist.
    """

    window: Sequence[tuple[float, float]]
    twist: Range = (-pi, pi)

    def __post_init__(self) -> None:
        check_range("A polygon's twist", self.twist)
        _ = self.shape

    @cached_property
    def shape(self) -> Window:
        """The outline, checked and prepared."""
        return Window(self.window)

    @cached_property
    def _twist(self) -> Twist:
        return twist_between(self.twist)

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """Move the swing to the nearest point inside the outline, and the twist to the nearer end of its range."""
        return clamped(backend, rotation, self.shape.nearest, self._twist)

    def constraints(self, backend: Backend, rotation: Quaternion, within: float = inf) -> list[LimitConstraint]:
        """The two nearest edges, and the ends of the twist."""
        lean = lean_of(backend, rotation)
        constraints = twist_constraints(backend, rotation, lean, self._twist, within)
        for (nx, nz), gap in self.shape.nearest_sides(backend, lean.x, lean.z):
            if not backend.any_of(gap <= within):
                continue
            constraints.append(LimitConstraint(lean.turn_toward(backend, nx, nz), gap))
        return constraints

    def sample(self, places: FloatArray) -> FloatArray:
        """Swings spread over the outline, and twists over the range."""
        x, z = self.shape.sample(places[..., 0], places[..., 1])
        return compose_arrays(x, z, spread(self.twist, places[..., 2]))

    def outline(self, count: int) -> FloatArray:
        """(N, 2) swings in radians along the outline's edges, as many on each, at least `count` in all."""
        corners = np.array(self.shape.points)
        share = np.linspace(0.0, 1.0, -(-count // len(corners)), endpoint=False)[:, None]
        edges = corners[:, None] + share * (np.roll(corners, -1, axis=0) - corners)[:, None]
        return np.asarray(edges.reshape(-1, 2))
