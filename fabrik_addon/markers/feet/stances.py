"""When feet stand: where a point of a foot is slow and low, and how what it stands on moves.

Heel and toe stand at different times of a step, so each point of a foot is looked at by itself.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ...core.arrays import IntArray, smoothstep
from ...core.errors import FabrikError
from ..clip import FloatArray, true_spans

# A point lies on the floor below so many percent of its heights in the take.
_FLOOR_PERCENT: Final = 5.0
# Standing ends at more than so many times the speed and the height at which it begins: chosen, so that noise at the
# threshold does not end it.
_HYSTERESIS: Final = 1.5
# Speeds are those over so many seconds: markers' noise of 1 mm is then 2 cm/s.
_SPEED_OVER: Final = 0.05
# The ground moves when so large a share of low points' velocities is alike (a foot stands for 60 % of a step, and on
# its heel and toe at different times); found from about so many of them.
_GROUND_SHARE: Final = 0.3
_GROUND_SAMPLES: Final = 1000


class FeetError(FabrikError):
    """Feet that are not there, or settings that make no sense."""


@dataclass(frozen=True)
class FootPoint:
    """A point that stands on the floor: of a bone, at an offset in its frame; its tail when None."""

    bone: str
    offset: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Stance:
    """A point standing from frame first to last, counted from 0; how far it strays from its place, at most."""

    point: FootPoint
    first: int
    last: int
    drift_before: float
    drift_after: float


@dataclass(frozen=True)
class StandingSettings:
    """When a point stands.

    Attributes:
        speed: slower than this, units a second.
        height: lower than this over its lowest place.
        shortest: seconds; shorter standing does not count.
        blend: seconds over which planting begins before and ends after standing.

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
    """Half-open spans of frames in which a point (F, 3) stands: slow and low.

    Standing begins where it is slower and lower than the settings say, and lasts until it is clearly not.
    rate: frames a second. up: the axis that points up.
    """
    settings = settings or StandingSettings()
    if len(points) < 2:
        return []
    heights = points[:, up] - np.percentile(points[:, up], _FLOOR_PERCENT)
    speeds = np.linalg.norm(_velocities(points, rate), axis=1)
    still = (speeds <= settings.speed) & (heights <= settings.height)
    nearly = (speeds <= _HYSTERESIS * settings.speed) & (heights <= _HYSTERESIS * settings.height)
    # A span of near standing counts when it has a frame of true standing.
    spans = [span for span in true_spans(nearly) if still[slice(*span)].any()]
    return [(first, end) for first, end in spans if end - first >= settings.shortest * rate]


def drift(place: FloatArray) -> float:
    """How far a standing point (N, 3) is from its median place, at most."""
    return float(np.linalg.norm(place - np.median(place, axis=0), axis=1).max())


def faded(span: tuple[int, int], blend: int, count: int) -> tuple[IntArray, FloatArray]:
    """The frames, of so many, over which planting in a half-open span fades in and out, and its share on each, 0 to 1.

    blend: frames before and after the span.
    """
    first, end = span
    frames = np.arange(max(first - blend, 0), min(end + blend, count))
    away = np.maximum(np.maximum(first - frames, frames - end + 1), 0) / (blend + 1.0)
    return frames, smoothstep(1.0 - away)


def ground_velocity(
    points: FloatArray, rate: float, *, up: int = 2, settings: StandingSettings | None = None
) -> FloatArray:
    """(3,) how the ground moves under points (F, P, 3), units a second: someone on a treadmill stands on its belt.

    That is the velocity which low points have in common; zero where most of them are nearly still, or where they have
    none in common.
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
    """(3,) what most of the velocities (N, 3) are alike to within `speed`; zero for less than that, or for too few."""
    if not len(velocities):
        return np.zeros(3)
    near = np.linalg.norm(velocities[:, None] - velocities, axis=2) <= speed
    ground = np.median(velocities[near[int(np.argmax(near.sum(axis=1)))]], axis=0)
    moves = near.mean(axis=1).max() >= _GROUND_SHARE and np.linalg.norm(ground) > speed
    return np.asarray(ground if moves else np.zeros(3))


def _velocities(points: FloatArray, rate: float) -> FloatArray:
    """(F, 3) units a second."""
    beside = max(1, round(0.5 * _SPEED_OVER * rate))
    frames = np.arange(len(points))
    before, after = np.maximum(frames - beside, 0), np.minimum(frames + beside, len(points) - 1)
    return np.asarray((points[after] - points[before]) * (rate / np.maximum(after - before, 1))[:, None])
