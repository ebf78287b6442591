"""Joint limits: what each kind is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Literal


@dataclass(frozen=True)
class Ball:
    """A cone of leans and a range of twist; `cone` is one angle or four (toward +X, +Z, -X, -Z), radians."""

    cone: float | Sequence[float] = pi
    twist: tuple[float, float] = (-pi, pi)


@dataclass(frozen=True)
class Hinge:
    """Turns about one local axis only, right-handed, between two angles in radians."""

    axis: Literal["X", "Y", "Z"] = "X"
    low: float = -pi
    high: float = pi


@dataclass(frozen=True)
class Fixed:
    """Does not turn."""


@dataclass(frozen=True)
class Polygon:
    """A simple closed window of (X, Z) leans in radians, three or more, and a range of twist."""

    window: Sequence[tuple[float, float]]
    twist: tuple[float, float] = (-pi, pi)


Limit = Ball | Hinge | Fixed | Polygon
