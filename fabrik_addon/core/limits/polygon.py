"""A window of leans of any simple outline, and a range of twist."""

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
    """A window of leans and a range of twist.

    Args:
        window: a simple closed outline of three or more (X, Z) leans in radians, either winding, rest inside or not.
        twist: (low, high) about Y; a range of 2π or more is free.

    Raises:
        LimitError: naming what is wrong with the window or the twist.
    """

    window: Sequence[tuple[float, float]]
    twist: Range = (-pi, pi)

    def __post_init__(self) -> None:
        check_range("A polygon's twist", self.twist)
        _ = self.shape

    @cached_property
    def shape(self) -> Window:
        """The window, checked and ready to be asked."""
        return Window(self.window)

    @cached_property
    def _twist(self) -> Twist:
        return twist_between(self.twist)

    def clamp(self, backend: Backend, rotation: Quaternion) -> Quaternion:
        """Lean to the nearest point of the window, twist to the nearer end of its range."""
        return clamped(backend, rotation, self.shape.nearest, self._twist)

    def constraints(self, backend: Backend, rotation: Quaternion, within: float = inf) -> list[LimitConstraint]:
        """The two nearest edges, the ends of the twist."""
        lean = lean_of(backend, rotation)
        constraints = twist_constraints(backend, rotation, lean, self._twist, within)
        for (nx, nz), gap in self.shape.nearest_sides(backend, lean.x, lean.z):
            if not backend.any_of(gap <= within):
                continue
            constraints.append(LimitConstraint(lean.turn_toward(backend, nx, nz), gap))
        return constraints

    def sample(self, places: FloatArray) -> FloatArray:
        """Leans spread over the window, twists over the range."""
        x, z = self.shape.sample(places[..., 0], places[..., 1])
        return compose_arrays(x, z, spread(self.twist, places[..., 2]))

    def outline(self, count: int) -> FloatArray:
        """(N, 2) leans along the window's edges, as many on each, at least `count` in all."""
        corners = np.array(self.shape.points)
        share = np.linspace(0.0, 1.0, -(-count // len(corners)), endpoint=False)[:, None]
        edges = corners[:, None] + share * (np.roll(corners, -1, axis=0) - corners)[:, None]
        return np.asarray(edges.reshape(-1, 2))
