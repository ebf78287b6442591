"""Feet that stand still: when they do, how far they drift meanwhile, and poses in which they do not.

Heel and toe stand at different times of a step, so each point of a foot is looked at by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from ..core import Effector, Options, Skeleton, Solution, Solver
from ..core.errors import FabrikError
from ..core.limits.kinds import Limit
from .calibrate.offsets import points_on
from .clip import FloatArray, true_spans

# Where a point lies on the floor: below so many percent of its heights in the take.
_FLOOR_PERCENT: Final = 5.0
# Standing ends at more than so many times the speed and the height at which it begins.
_HYSTERESIS: Final = 1.5
# Speeds are those over so many seconds.
_SPEED_OVER: Final = 0.05
# The ground moves when so large a share of low points' velocities is alike; found from about so many of them.
_GROUND_SHARE: Final = 0.3
_GROUND_SAMPLES: Final = 1000
# What pinned points weigh beside one that keeps the pose, and what the hips and all above the legs do.
_PIN_WEIGHT: Final = 300.0
_HIPS_WEIGHT: Final = 1e5
_LEG_WEIGHT: Final = 10.0
_OPTIONS: Final = Options(max_sweeps=0, restarts=0, tolerance=1e-6)


class FeetError(FabrikError):
    """Feet that are not there, or settings that make no sense."""


@dataclass(frozen=True)
class FootPoint:
    """A point that stands on the floor: of a bone, at an offset in its frame; its tail when None."""

    bone: str
    offset: tuple[float, float, float] | None = None


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
                raise FeetError(f"The feet's {name} is {value}: it must be more than 0.")


@dataclass(frozen=True)
class Stance:
    """A point standing from frame first to last, counted from 0; how far it strays from its place, at most."""

    point: FootPoint
    first: int
    last: int
    drift_before: float
    drift_after: float


@dataclass(frozen=True, eq=False)
class Planted:
    """Poses with planted feet: F frames, and what stood when."""

    solution: Solution
    stances: tuple[Stance, ...]


def find_stances(
    points: FloatArray, rate: float, *, up: int = 2, settings: StandingSettings | None = None
) -> list[tuple[int, int]]:
    """Half-open spans of frames in which a point (F, 3) stands: slow and low, NaN where it is not seen.

    Standing begins where it is slower and lower than the settings say, and lasts until it is clearly not. Over moments
    in which the point is not seen it is taken to move evenly.
    rate: frames a second. up: the axis that points up.
    """
    settings = settings or StandingSettings()
    points = _without_gaps(np.asarray(points, dtype=np.float64))
    if len(points) < 2:
        return []
    heights = points[:, up] - np.percentile(points[:, up], _FLOOR_PERCENT)
    speeds = _speeds(points, rate)
    still = (speeds <= settings.speed) & (heights <= settings.height)
    nearly = (speeds <= _HYSTERESIS * settings.speed) & (heights <= _HYSTERESIS * settings.height)
    # A span of near standing counts when it has a frame of true standing.
    spans = [span for span in true_spans(nearly) if still[slice(*span)].any()]
    return [(first, end) for first, end in spans if end - first >= settings.shortest * rate]


def ground_velocity(
    points: FloatArray, rate: float, *, up: int = 2, settings: StandingSettings | None = None
) -> FloatArray:
    """(3,) how the ground moves under points (F, P, 3), units a second: someone on a treadmill stands on its belt.

    That is the velocity which low points have in common; zero where most of them are nearly still, or where they have
    none in common.
    """
    settings = settings or StandingSettings()
    low = []
    for track in np.moveaxis(np.asarray(points, dtype=np.float64), 1, 0):
        place = _without_gaps(track)
        if len(place) > 1:
            heights = place[:, up] - np.percentile(place[:, up], _FLOOR_PERCENT)
            low.append(_velocities(place, rate)[heights <= settings.height])
    velocities = np.concatenate(low) if low else np.zeros((0, 3))
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


def plant_feet(
    solution: Solution,
    points: Sequence[FootPoint],
    rate: float,
    *,
    limits: Mapping[str, Limit] | None = None,
    up: int = 2,
    settings: StandingSettings | None = None,
    spans: Sequence[Sequence[tuple[int, int]]] | None = None,
    ground: FloatArray | None = None,
) -> Planted:
    """The poses with every standing point held where it stands, blended in and out; the hips stay as they are.

    Args:
        solution: F poses.
        points: heels and toes.
        rate: frames a second.
        limits: bone name to limit; they hold.
        up: the axis that points up.
        settings: when a point stands, and over how long planting blends.
        spans: for each point its half-open spans where they are known, as from markers; found when None.
        ground: (3,) velocity of what the feet stand on, units a second; as `ground_velocity` finds it when None.

    Raises:
        FeetError: for no points, or spans that are not one list for each; SkeletonError for a bone that is not there.
    """
    settings = settings or StandingSettings()
    skeleton = solution.skeleton
    if not points:
        raise FeetError("There are no feet to plant: name at least one point on a foot.")
    if spans is not None and len(spans) != len(points):
        raise FeetError(f"There are spans for {len(spans)} points, but {len(points)} points.")
    places = _places(solution, points)
    if ground is None:
        ground = ground_velocity(places, rate, up=up, settings=settings)
    carried = (np.arange(len(places)) / rate)[:, None, None] * np.asarray(ground, dtype=np.float64)
    places = places - carried
    found = spans or [find_stances(places[:, i], rate, up=up, settings=settings) for i in range(len(points))]
    targets = np.stack(
        [_pinned(places[:, i], found[i], round(settings.blend * rate)) for i in range(len(points))], axis=1
    )
    planted = _solved(solution, skeleton, points, targets + carried, limits)
    after = _places(planted, points) - carried
    stances = [
        Stance(point, first, end - 1, _drift(places[first:end, i]), _drift(after[first:end, i]))
        for i, point in enumerate(points)
        for first, end in found[i]
    ]
    return Planted(planted, tuple(sorted(stances, key=lambda stance: stance.first)))


def _without_gaps(points: FloatArray) -> FloatArray:
    """Points (F, 3) on straight lines where they are NaN; nothing where they always are."""
    seen = ~np.isnan(points).any(axis=1)
    frames = np.arange(len(points))
    if not seen.any():
        return points[:0]
    return np.stack([np.interp(frames, frames[seen], points[seen, axis]) for axis in range(3)], axis=1)


def _speeds(points: FloatArray, rate: float) -> FloatArray:
    """(F,) units a second."""
    speeds: FloatArray = np.linalg.norm(_velocities(points, rate), axis=1)
    return speeds


def _velocities(points: FloatArray, rate: float) -> FloatArray:
    """(F, 3) units a second."""
    reach = max(1, round(0.5 * _SPEED_OVER * rate))
    frames = np.arange(len(points))
    before, after = np.maximum(frames - reach, 0), np.minimum(frames + reach, len(points) - 1)
    return np.asarray((points[after] - points[before]) * (rate / np.maximum(after - before, 1))[:, None])


def _places(solution: Solution, points: Sequence[FootPoint]) -> FloatArray:
    """(F, P, 3) where the points are."""
    skeleton = solution.skeleton
    bones = [skeleton.index(point.bone) for point in points]
    offsets = np.array(
        [
            (0.0, skeleton.lengths[bone], 0.0) if point.offset is None else point.offset
            for point, bone in zip(points, bones, strict=True)
        ]
    )
    return points_on(solution.matrices, bones, offsets)


def _pinned(place: FloatArray, spans: Sequence[tuple[int, int]], blend: int) -> FloatArray:
    """(F, 3) where a point is held, NaN on frames on which it is free."""
    held = np.full_like(place, np.nan)
    shift, total = np.zeros_like(place), np.zeros(len(place))
    for first, end in spans:
        stand = np.median(place[first:end], axis=0)
        frames = np.arange(max(first - blend, 0), min(end + blend, len(place)))
        away = np.maximum(np.maximum(first - frames, frames - end + 1), 0) / (blend + 1.0)
        share = (1.0 - away) ** 2 * (1.0 + 2.0 * away)
        nearest = np.clip(frames, first, end - 1)
        shift[frames] += share[:, None] * (stand - place[nearest])
        total[frames] += share
    free = total == 0.0
    held[~free] = place[~free] + shift[~free] / np.maximum(total[~free], 1.0)[:, None]
    return held


def _solved(
    solution: Solution,
    skeleton: Skeleton,
    points: Sequence[FootPoint],
    targets: FloatArray,
    limits: Mapping[str, Limit] | None,
) -> Solution:
    """The poses nearest to those of a solution that have the points at targets (F, P, 3)."""
    frames = np.flatnonzero(~np.isnan(targets).any(axis=2).all(axis=1))
    if not len(frames):
        return solution
    pins = [Effector(point.bone, point.offset, _PIN_WEIGHT) for point in points]
    keepers = _keepers(skeleton, points)
    kept = _kept(solution, keepers, frames)
    solver = Solver(skeleton, [*pins, *keepers], limits=limits, options=_OPTIONS)
    found = solver.solve(
        np.concatenate([targets[frames], kept], axis=1),
        start=solution.rotations[frames],
        start_location=solution.root_location[frames],
    )
    rotations = np.array(solution.rotations)
    rotations[frames] = found.rotations
    return replace(solution, rotations=rotations)


def _keepers(skeleton: Skeleton, points: Sequence[FootPoint]) -> list[Effector]:
    """Points that keep the bones from the root to the feet as they are: two for each, beside its axis and along it."""
    bones = sorted({bone for point in points for bone in skeleton.path(skeleton.index(point.bone))})
    shared = _trunk(skeleton, points)
    keepers = []
    for bone in bones:
        length = float(skeleton.lengths[bone]) or 1e-3
        weight = _HIPS_WEIGHT if bone in shared else _LEG_WEIGHT
        keepers.append(Effector(skeleton.names[bone], (0.0, length, 0.0), weight))
        keepers.append(Effector(skeleton.names[bone], (length, 0.0, 0.0), weight))
    return keepers


def _trunk(skeleton: Skeleton, points: Sequence[FootPoint]) -> set[int]:
    """The root, and the bones above the legs: those that carry all points."""
    paths = [set(skeleton.path(skeleton.index(point.bone))) for point in points]
    together = set.intersection(*paths) if len({point.bone for point in points}) > 1 else set()
    feet = {skeleton.index(point.bone) for point in points}
    return {0} | {bone for bone in together if not _is_leg(skeleton, bone, feet)}


def _is_leg(skeleton: Skeleton, bone: int, feet: set[int]) -> bool:
    """Whether just one limb hangs on a bone: then it is part of it."""
    toward = {path[path.index(bone) + 1] for foot in feet if bone in (path := skeleton.path(foot)) and foot != bone}
    return len(toward) <= 1 and bone != 0


def _kept(solution: Solution, keepers: Sequence[Effector], frames: npt.NDArray[np.intp]) -> FloatArray:
    """(N, K, 3) where the keepers are on some frames."""
    skeleton = solution.skeleton
    bones = [skeleton.index(keeper.bone) for keeper in keepers]
    return points_on(solution.matrices[frames], bones, np.array([keeper.offset for keeper in keepers]))


def _drift(place: FloatArray) -> float:
    """How far a standing point (N, 3) is from its median place, at most."""
    return float(np.linalg.norm(place - np.median(place, axis=0), axis=1).max())
