"""What is kept of one bone's limit, whatever its type: plain values, on their way to the solver or from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import hypot, isfinite, pi
from typing import Any, Final, cast

from ...core import Ball, Fixed, Hinge, LimitError, Polygon
from ...core.limits.kinds import Limit

FREE: Final = "FREE"
TYPES: Final = (FREE, "BALL", "HINGE", "FIXED", "POLYGON")
AXES: Final = ("X", "Y", "Z")
ALL_ROUND: Final = (-pi, pi)
WHOLE_CONE: Final = (pi, pi, pi, pi)
NO_SLIDE: Final = (1.0, 1.0)

_FULL_TURN: Final = 2.0 * pi
# A range of this size is at least a full turn, however it is rounded when it is measured.
_WHOLE: Final = _FULL_TURN + 1e-12
# Sliders, curves and overrides hold single precision, in which pi is a little more than pi.
_ROUNDING: Final = 1e-5

Range = tuple[float, float]
Cone = tuple[float, float, float, float]


@dataclass(frozen=True)
class LimitSettings:
    """A limit with the values that another type of limit would use.

    Attributes:
        type: one of `TYPES`.
        cone: leans toward +X, +Z, -X, -Z.
        twist: low, high.
        axis: the hinge's, "X", "Y" or "Z".
        hinge: low, high.
        window: x0, z0, x1, z1, …; empty where there has been no polygon.
        slide: least and greatest factor of the bone's length; 1 and 1 where it keeps it.
    """

    type: str = FREE
    cone: Cone = WHOLE_CONE
    twist: Range = ALL_ROUND
    axis: str = "X"
    hinge: Range = ALL_ROUND
    window: tuple[float, ...] = ()
    slide: Range = NO_SLIDE

    def limit(self) -> Limit | None:
        """The limit for the solver, None where there is none; raises LimitError for what makes no sense."""
        makers: dict[str, Callable[[], Limit | None]] = {
            FREE: lambda: None,
            "BALL": lambda: Ball(self.cone, self.twist),
            "HINGE": lambda: Hinge(cast("Any", self.axis), *self.hinge),
            "FIXED": Fixed,
            "POLYGON": lambda: Polygon(points(self.window), self.twist),
        }
        if self.type not in makers:
            raise LimitError(f"The limit is {self.type!r}: it must be one of {', '.join(TYPES)}.")
        return makers[self.type]()

    def check(self) -> None:
        """Raise LimitError for what makes no sense, in what the type doesn't use as well."""
        Ball(self.cone, self.twist)
        Hinge(cast("Any", self.axis), *self.hinge)
        if self.window:
            Polygon(points(self.window))
        check_slide(self.slide)
        self.limit()


def check_slide(slide: Range) -> None:
    """Raise LimitError for factors that no bone can have."""
    low, high = slide
    if not (0.0 < low <= high and isfinite(high)):
        raise LimitError(f"A bone can't stretch from {low:g} to {high:g}: two factors above 0, the lower one first.")


def settings_of(limit: Limit | None, kept: LimitSettings | None = None) -> LimitSettings:
    """The settings for a limit, None for a free bone; the values that it doesn't use are as `kept`."""
    values = dict(vars(kept or LimitSettings()))
    if limit is None:
        values["type"] = FREE
    elif isinstance(limit, Ball):
        values |= {"type": "BALL", "cone": limit.angles, "twist": tuple(limit.twist)}
    elif isinstance(limit, Hinge):
        values |= {"type": "HINGE", "axis": limit.axis, "hinge": (limit.low, limit.high)}
    elif isinstance(limit, Polygon):
        corners = tuple(float(part) for point in limit.window for part in point)
        values |= {"type": "POLYGON", "window": corners, "twist": tuple(limit.twist)}
    else:
        values["type"] = "FIXED"
    return LimitSettings(**values)


def points(window: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """The (X, Z) leans of a window's corners; raises LimitError where one has no Z."""
    if len(window) % 2:
        raise LimitError(f"A window has {len(window)} numbers: each point needs an X and a Z lean.")
    return tuple(zip(window[::2], window[1::2], strict=True))


def as_cone(angles: Sequence[float]) -> Cone:
    """Four leans, without what rounding has added to half a turn or taken from none."""
    near = [-_ROUNDING <= angle <= pi + _ROUNDING for angle in angles]
    return cast("Cone", tuple(min(max(a, 0.0), pi) if close else a for a, close in zip(angles, near, strict=True)))


def as_range(ends: Sequence[float]) -> Range:
    """Low and high; a range that only rounding keeps from being a whole turn is one."""
    low, high = ends
    nearly_whole = _FULL_TURN - _ROUNDING <= high - low < _FULL_TURN
    return low, low + _WHOLE if nearly_whole else high


def as_window(numbers: Sequence[float]) -> tuple[float, ...]:
    """A window's corners, those brought back that rounding has put just beyond half a turn.

    Raises LimitError where one has no Z.
    """
    return tuple(part for point in points(numbers) for part in _within_reach(point))


def _within_reach(point: tuple[float, float]) -> tuple[float, float]:
    size = hypot(*point)
    return (point[0] * pi / size, point[1] * pi / size) if pi < size <= pi + _ROUNDING else point
