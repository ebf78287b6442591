"""The stored values of a bone's limit of any kind, and their conversion to and from the solver's limits.

`KINDS` is the only list of kinds; menu, panel, properties and solver use it. Operators need the list when Blender
starts, so the solver is imported only when a limit is made.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, isfinite, pi, tau
from typing import TYPE_CHECKING, Any, Final

from .. import OnUse

if TYPE_CHECKING:
    from ... import core
    from ...core.limits import Limit
else:
    core = OnUse("..core")

FREE: Final = "FREE"
AXES: Final = ("X", "Y", "Z")
ALL_ROUND: Final = (-pi, pi)
WHOLE_CONE: Final = (pi, pi, pi, pi)
NO_SLIDE: Final = (1.0, 1.0)
# With this value, the mass is derived from the bone's name or size.
OWN_MASS: Final = -1.0

# A range of this size is at least a full turn despite rounding errors.
_WHOLE: Final = tau + 1e-12
# Sliders, curves and overrides use single precision, which rounds pi up.
_ROUNDING: Final = 1e-5

Range = tuple[float, float]


@dataclass(frozen=True)
class LimitSettings:
    """A limit, including the values that only other kinds of limit use.

    Attributes:
        type: one of `KINDS`.
        cone: swings toward +X, +Z, -X, -Z, radians.
        twist: min, max, radians.
        axis: the hinge's axis, "X", "Y" or "Z".
        hinge: min, max, radians.
        window: x0, z0, x1, z1, …, radians; empty if there has been no polygon.
        slide: min and max factor of the bone's length; 1 and 1 if it does not stretch.
        stiffness: the resistance of the bone to rotation, from 0 to 1.
        mass: the bone's share of the body's mass; below 0 to derive it from its name or size.
    """

    type: str = FREE
    cone: tuple[float, ...] = WHOLE_CONE
    twist: Range = ALL_ROUND
    axis: str = "X"
    hinge: Range = ALL_ROUND
    window: tuple[float, ...] = ()
    slide: Range = NO_SLIDE
    stiffness: float = 0.0
    mass: float = OWN_MASS

    def limit(self) -> "Limit | None":
        """The limit for the solver, None for a free bone; raises LimitError for invalid values."""
        if self.type not in KINDS:
            raise core.LimitError(f"The limit type is {self.type!r}: it must be one of {', '.join(KINDS)}")
        return KINDS[self.type].make(self)

    def check(self) -> None:
        """Raise LimitError for invalid values, including those that the kind does not use."""
        for kind in (kind for kind in KINDS if self.window or "window" not in KINDS[kind].fields):
            replace(self, type=kind).limit()
        for field in EXTRA_FIELDS:
            check_extra(field, getattr(self, field))
        self.limit()


@dataclass(frozen=True)
class LimitKind:
    """A kind of limit; its identifier is the name of its class in the core.

    Attributes:
        name, description: label and tooltip in the menu.
        fields: the values of `LimitSettings` that it uses, in the order in which they are shown and checked.
        make: makes the limit from settings.
        values: converts such a limit to settings.
    """

    name: str
    description: str
    fields: tuple[str, ...]
    make: Callable[[Any], Any]
    values: Callable[[Any], dict[str, Any]] = lambda _limit: {}


KINDS: Final[Mapping[str, LimitKind]] = {
    FREE: LimitKind("Free", "No rotation limits", (), lambda _kept: None),
    "BALL": LimitKind(
        "Ball",
        "Limit swing in four directions, and twist to a range",
        ("cone", "twist"),
        lambda kept: core.Ball(kept.cone, kept.twist),
        lambda limit: {"cone": limit.angles, "twist": tuple(limit.twist)},
    ),
    "HINGE": LimitKind(
        "Hinge",
        "Allow rotation about one axis only, within a range",
        ("axis", "hinge"),
        lambda kept: core.Hinge(kept.axis, *kept.hinge),
        lambda limit: {"axis": limit.axis, "hinge": (limit.low, limit.high)},
    ),
    "FIXED": LimitKind("Fixed", "Allow no rotation", (), lambda _kept: core.Fixed()),
    "POLYGON": LimitKind(
        "Polygon",
        "Limit swing to an outline of any shape, and twist to a range",
        ("window", "twist"),
        lambda kept: core.Polygon(points(kept.window), kept.twist),
        lambda limit: {"window": flat(limit.window), "twist": tuple(limit.twist)},
    ),
}
# For Blender's menus: identifier, name, tooltip.
LIMIT_TYPES: Final = tuple((identifier, kind.name, kind.description) for identifier, kind in KINDS.items())
LIMIT_AXES: Final = (
    ("X", "X", "The bone's X axis"),
    ("Y", "Y", "The bone's Y axis, for a pivot joint"),
    ("Z", "Z", "The bone's Z axis"),
)


def settings_of(limit: "Limit | None", settings: LimitSettings | None = None) -> LimitSettings:
    """The settings for a limit, or for None (a free bone); values that it does not use come from `settings`."""
    kind = FREE if limit is None else type(limit).__name__.upper()
    values = {} if limit is None else KINDS[kind].values(limit)
    return replace(settings or LimitSettings(), type=kind, **values)


# Fields stored with a limit of any type, and for a free bone.
EXTRA_FIELDS: Final = ("slide", "stiffness", "mass")


def check_extra(field: str, value: Any) -> None:
    """Raise LimitError for an invalid value of one of `EXTRA_FIELDS`."""
    if field == "slide":
        low, high = value
        if not (0.0 < low <= high and isfinite(high)):
            raise core.LimitError(
                f"The stretch range {low:g} to {high:g} is invalid: give two factors above 0, minimum first"
            )
    elif field == "stiffness" and not 0.0 <= value <= 1.0:
        raise core.LimitError(f"The stiffness is {value:g}: it must be from 0 (none) to 1 (never rotates)")
    elif field == "mass" and not isfinite(value):
        raise core.LimitError(f"The mass is {value:g}: it must be a share of the body's mass, 0 or more")


def points(window: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """The (X, Z) swings of an outline's corners; raises LimitError if one has no Z."""
    if len(window) % 2:
        raise core.LimitError(f"The outline has {len(window)} numbers: give an X and a Z swing for each point")
    return tuple(zip(window[::2], window[1::2], strict=True))


def flat(corners: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Corners (X, Z) as a flat tuple of numbers."""
    return tuple(float(part) for corner in corners for part in corner)


def _choice(value: Any, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise core.LimitError(f"it is {value!r}, but must be one of {', '.join(choices)}")
    return value


def _number(value: Any) -> float:
    """Convert a property to a plain number; raises LimitError for other types."""
    if type(value) not in (float, int):
        raise core.LimitError(f"it is {value!r}, but must be a number")
    return float(value)


def _numbers(value: Any, count: int | None = None) -> tuple[float, ...]:
    """Plain finite numbers from an array property; raises LimitError with the reason if they are invalid."""
    if not isinstance(value, tuple) or (count is not None and len(value) != count):
        raise core.LimitError(f"it is {value!r}, but must be {count or 'several'} numbers")
    if not all(isfinite(number) for number in value):
        raise core.LimitError(f"it is {value!r}, but all numbers must be finite")
    return tuple(map(float, value))


def _cone(value: Any) -> tuple[float, ...]:
    """Four swings, with rounding errors beyond 0 and 180° removed."""
    angles = _numbers(value, 4)
    return tuple(min(max(angle, 0.0), pi) if -_ROUNDING <= angle <= pi + _ROUNDING else angle for angle in angles)


def _range(value: Any) -> Range:
    """Min and max; a range that is a full turn except for rounding becomes a full turn."""
    low, high = _numbers(value, 2)
    nearly_whole = tau - _ROUNDING <= high - low < tau
    return low, low + _WHOLE if nearly_whole else high


def _window(value: Any) -> tuple[float, ...]:
    """An outline's corners; those slightly beyond 180° because of rounding are moved back.

    Raises LimitError if one has no Z.
    """
    sized = ((x, z, hypot(x, z)) for x, z in points(_numbers(value)))
    return flat([(x * pi / size, z * pi / size) if pi < size <= pi + _ROUNDING else (x, z) for x, z, size in sized])


@dataclass(frozen=True)
class LimitField:
    """A value of a limit, and the custom property that stores it.

    Attributes:
        name: the name of the custom property.
        description: the tooltip of the property, and of the operator's argument.
        convert: converts the value of the property, or of the argument, to the value in `LimitSettings`; arrays are
            tuples. Raises LimitError.
        bounds: hard and soft min and max of the slider; None for text.
        subtype: Blender's subtype of a number.
    """

    name: str
    description: str
    convert: Callable[[Any], Any]
    bounds: tuple[float, float, float, float] | None = None
    subtype: str = "ANGLE"


# By field of `LimitSettings`, in the same order.
FIELDS: Final[Mapping[str, LimitField]] = {
    "type": LimitField("fabrik_limit", "Type of joint", lambda value: _choice(value, KINDS)),
    "cone": LimitField(
        "fabrik_cone", "Ball: maximum swing toward the bone's +X, +Z, -X and -Z", _cone, (0.0, pi, 0.0, pi)
    ),
    "twist": LimitField(
        "fabrik_twist", "Ball and polygon: minimum and maximum twist about the bone", _range, (-tau, tau, -pi, pi)
    ),
    "axis": LimitField("fabrik_hinge_axis", "Hinge: the bone's axis of rotation", lambda value: _choice(value, AXES)),
    "hinge": LimitField(
        "fabrik_hinge", "Hinge: minimum and maximum rotation about its axis", _range, (-tau, tau, -pi, pi)
    ),
    "window": LimitField(
        "fabrik_window", "Polygon: alternating X and Z swings of its points", _window, (-pi, pi, -pi, pi)
    ),
    "slide": LimitField(
        "fabrik_slide",
        "Minimum and maximum stretch as factors of the bone's length, used if targets can't be met otherwise; "
        "1 and 1 keep its length",
        lambda value: _numbers(value, 2),
        (0.01, 100.0, 0.5, 2.0),
        "NONE",
    ),
    "stiffness": LimitField(
        "fabrik_stiffness",
        "How strongly the bone keeps its rotation while others rotate. At 0 only its mass counts; at 1 it "
        "never rotates",
        _number,
        (0.0, 1.0, 0.0, 1.0),
        "FACTOR",
    ),
    "mass": LimitField(
        "fabrik_mass",
        "The bone's share of the body's mass; a negative value estimates it from the bone's name or size",
        _number,
        (-1.0, 1.0, -1.0, 0.5),
        "NONE",
    ),
}
# The names of the properties by field.
NAMES: Final = {field: each.name for field, each in FIELDS.items()}
