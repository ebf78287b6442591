"""Finds when feet are in contact (a point of a foot is slow and low), and how fast the ground moves.

Heel and toe are in contact at different times of a step, so each point of a foot has its own stances.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ...core.arrays import IntArray, smoothstep
from ...core.errors import FabrikError
from ..clip import FloatArray, true_spans

# The floor is this percentile of a point's heights in the take.
_FLOOR_PERCENT: Final = 5.0
# Contact ends at this many times the speed and height at which it begins, so that noise near the threshold does not end
# it. The factor was chosen by hand.
_HYSTERESIS: Final = 1.5
# Speeds are measured over this many seconds: 1 mm of marker noise then gives 2 cm/s.
_SPEED_OVER: Final = 0.05
# The ground moves if at least this share of low points' velocities agree, out of at least this many. (A foot is in
# contact for 60 % of a step, heel and toe at different times.)
_GROUND_SHARE: Final = 0.3
_GROUND_SAMPLES: Final = 1000


class FeetError(FabrikError):
    """Missing feet, or invalid settings."""


@dataclass(frozen=True)
class FootPoint:
    """A point of a bone that can touch the floor: an offset in the bone's frame, or its tail if None."""

    bone: str
    offset: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Stance:
    """A span of contact, from frame first to last, counted from 0.

    drift: the largest distance of the point from its median position.
    """

    point: FootPoint
    first: int
    last: int
    drift_before: float
    drift_after: float


@dataclass(frozen=True)
class StandingSettings:
    """Thresholds for the contact of a foot point with the floor.

    Attributes:
        speed: the point is slower than this, units a second.
        height: it is less than this above its lowest position.
        shortest: seconds; shorter contacts are ignored.
        blend: seconds of transition before and after a contact.

    Raises FeetError for a value that is not more than zero (blend may be zero).
    """

    speed: float = 0.12
    height: float = 0.05
    shortest: float = 0.1
    blend: float = 0.1

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("speed", "height", "shortest", "blend"):
            value = getattr(self, name)
            if not (np.isfinite(value) and (value > 0.0 or (name == "blend" and value == 0.0))):
                raise FeetError(f"The feet's {name} is {value}: it must be more than 0")


def find_stances(
    points: FloatArray, rate: float, *, up: int = 2, settings: StandingSettings | None = None
) -> list[tuple[int, int]]:
    """Half-open spans of frames in which a point (F, 3) is in contact: slow and low.

    Contact begins when it is slower and lower than the settings, and lasts until it clearly is not. rate: frames a
    second. up: index of the up axis.
    """
    settings = settings or StandingSettings()
    if len(points) < 2:
        return []
    heights = points[:, up] - np.percentile(points[:, up], _FLOOR_PERCENT)
    speeds = np.linalg.norm(_velocities(points, rate), axis=1)
    still = (speeds <= settings.speed) & (heights <= settings.height)
    nearly = (speeds <= _HYSTERESIS * settings.speed) & (heights <= _HYSTERESIS * settings.height)
    # A span near the thresholds counts if at least one of its frames is within them.
    spans = [span for span in true_spans(nearly) if still[slice(*span)].any()]
    return [(first, end) for first, end in spans if end - first >= settings.shortest * rate]


def drift(place: FloatArray) -> float:
    """The largest distance of a planted point (N, 3) from its median position."""
    return float(np.linalg.norm(place - np.median(place, axis=0), axis=1).max())


def faded(span: tuple[int, int], blend: int, count: int) -> tuple[IntArray, FloatArray]:
    """The frames on which a half-open span blends in and out, and its weight on each, 0 to 1.

    blend: frames of transition before and after the span. count: frames of the take.
    """
    first, end = span
    frames = np.arange(max(first - blend, 0), min(end + blend, count))
    away = np.maximum(np.maximum(first - frames, frames - end + 1), 0) / (blend + 1.0)
    return frames, smoothstep(1.0 - away)


def ground_velocity(
    points: FloatArray, rate: float, *, up: int = 2, settings: StandingSettings | None = None
) -> FloatArray:
    """(3,) velocity of the ground under points (F, P, 3), units a second, such as a treadmill's belt.

    This is the velocity that low points have in common; zero if most of them are nearly still, or if they differ.
    """
    settings = settings or StandingSettings()
    low = []
    for place in np.moveaxis(points, 1, 0):
        heights = place[:, up] - np.percentile(place[:, up], _FLOOR_PERCENT)
        low.append(_velocities(place, rate)[heights <= settings.height])
    velocities = np.concatenate(low)
    velocities = velocities[:: 1 + len(velocities) // _GROUND_SAMPLES]
    velocities[:, up] = 0.0
    return _common(velocities, settings.speed)


def _common(velocities: FloatArray, speed: float) -> FloatArray:
    """(3,) the velocity that most of velocities (N, 3) share to within `speed`; zero if fewer than that or too few."""
    if not len(velocities):
        return np.zeros(3)
    near = np.linalg.norm(velocities[:, None] - velocities, axis=2) <= speed
    ground = np.median(velocities[near[int(np.argmax(near.sum(axis=1)))]], axis=0)
    moves = near.mean(axis=1).max() >= _GROUND_SHARE and np.linalg.norm(ground) > speed
    return np.asarray(ground if moves else np.zeros(3))


def _velocities(points: FloatArray, rate: float) -> FloatArray:
    """(F, 3) units a second, of points (F, 3)."""
    beside = max(1, round(0.5 * _SPEED_OVER * rate))
    frames = np.arange(len(points))
    before, after = np.maximum(frames - beside, 0), np.minimum(frames + beside, len(points) - 1)
    return np.asarray((points[after] - points[before]) * (rate / np.maximum(after - before, 1))[:, None])
