"""Poses in which planted feet do not slide."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ...core import Effector, Options, Skeleton, Solution, Solver, forward_kinematics
from ...core.arrays import IntArray
from ...core.limits.base import Limit
from ..calibrate.offsets import effector_points
from ..clip import FloatArray
from .stances import FeetError, FootPoint, Stance, StandingSettings, drift, faded, find_stances, ground_velocity

# Weight of pinned points relative to the points that hold a leg bone in its pose, and weight of the hips and everything
# above the legs. Feet give way by a three-hundredth of what knees do, and the hips stay.
_PIN_WEIGHT: Final = 300.0
_HIPS_WEIGHT: Final = 1e5
_LEG_WEIGHT: Final = 10.0
# Distance from a bone's head to the points that hold it, as a share of the longest bone's length. It is the same for
# all bones; otherwise toes do all the rotating when feet are pinned: 16 degrees a frame in a walk at 60 Hz, now 12,
# while feet drift by 9 mm instead of 8.
_LEVER: Final = 0.35
# The poses start near their solution.
_OPTIONS: Final = Options(max_sweeps=0, restarts=0, tolerance=1e-6)


@dataclass(frozen=True, eq=False)
class Planted:
    """F poses with planted feet, and the stances."""

    solution: Solution
    stances: tuple[Stance, ...]


def plant_feet(
    solution: Solution,
    points: Sequence[FootPoint],
    rate: float,
    *,
    limits: Mapping[str, Limit] | None = None,
    up: int = 2,
    settings: StandingSettings | None = None,
) -> Planted:
    """Hold every foot point where it is in contact, with transitions before and after; the hips do not move.

    Args:
        solution: F poses.
        points: heels and toes.
        rate: frames a second.
        limits: bone name to limit; they are respected.
        up: index of the axis that points up.
        settings: when a point is in contact, and how long transitions last.

    Raises:
        FeetError: if there are no points.
        SkeletonError: if a bone does not exist.
    """
    settings = settings or StandingSettings()
    if not points:
        raise FeetError("There are no feet to plant: name at least one point on a foot")
    pins = [Effector(point.bone, point.offset, _PIN_WEIGHT) for point in points]
    places = _places(solution, pins)
    ground = ground_velocity(places, rate, up=up, settings=settings)
    carried = (np.arange(len(places)) / rate)[:, None, None] * ground
    places = places - carried
    found = [find_stances(places[:, i], rate, up=up, settings=settings) for i in range(len(points))]
    blend = round(settings.blend * rate)
    held = [_pinned(places[:, i], found[i], blend) for i in range(len(points))]
    planted = _solved(solution, pins, np.stack(held, axis=1) + carried, limits)
    after = _places(planted, pins) - carried
    stances = [
        Stance(point, first, end - 1, drift(places[first:end, i]), drift(after[first:end, i]))
        for i, point in enumerate(points)
        for first, end in found[i]
    ]
    return Planted(planted, tuple(sorted(stances, key=lambda stance: stance.first)))


def _places(solution: Solution, effectors: Sequence[Effector], frames: slice | IntArray = slice(None)) -> FloatArray:
    """(F, E, 3) positions of effectors in the poses of some frames, armature space."""
    skeleton = solution.skeleton
    bones = sorted({bone for effector in effectors for bone in skeleton.path(skeleton.index(effector.bone))})
    part, local = skeleton.part(bones), solution.rotations[frames][:, bones]
    lengths = solution.lengths[frames][:, bones]
    matrices = forward_kinematics(part, local, solution.root_location[frames], lengths)
    return effector_points(part, effectors, matrices)


def _pinned(place: FloatArray, spans: Sequence[tuple[int, int]], blend: int) -> FloatArray:
    """(F, 3) positions at which a point is held; NaN on frames on which it is free."""
    held = np.full_like(place, np.nan)
    shift, total = np.zeros_like(place), np.zeros(len(place))
    for first, end in spans:
        stand = np.median(place[first:end], axis=0)
        frames, share = faded((first, end), blend, len(place))
        nearest = np.clip(frames, first, end - 1)
        shift[frames] += share[:, None] * (stand - place[nearest])
        total[frames] += share
    free = total == 0.0
    held[~free] = place[~free] + shift[~free] / np.maximum(total[~free], 1.0)[:, None]
    return held


def _solved(
    solution: Solution,
    pins: Sequence[Effector],
    targets: FloatArray,
    limits: Mapping[str, Limit] | None,
) -> Solution:
    """The poses nearest to a solution's that have the pins at targets (F, P, 3)."""
    frames = np.flatnonzero(~np.isnan(targets).any(axis=2).all(axis=1))
    if not len(frames):
        return solution
    skeleton = solution.skeleton
    anchors = _anchors(skeleton, pins)
    held = _places(solution, anchors, frames)
    solver = Solver(skeleton, [*pins, *anchors], limits=limits, options=_OPTIONS)
    found = solver.solve(
        np.concatenate([targets[frames], held], axis=1),
        start=solution.rotations[frames],
        start_location=solution.root_location[frames],
    )
    rotations = np.array(solution.rotations)
    rotations[frames] = found.rotations
    return replace(solution, rotations=rotations)


def _anchors(skeleton: Skeleton, pins: Sequence[Effector]) -> list[Effector]:
    """Points that hold the bones from the root to the feet in their pose: two each, beside the bone and along it."""
    feet = {skeleton.index(pin.bone) for pin in pins}
    bones = sorted({bone for foot in feet for bone in skeleton.path(foot)})
    shared, longest = _trunk(skeleton, feet), float(skeleton.lengths[bones].max())
    anchors = []
    for bone in bones:
        length = _LEVER * longest
        weight = _HIPS_WEIGHT if bone in shared else _LEG_WEIGHT
        anchors.append(Effector(skeleton.names[bone], (0.0, length, 0.0), weight))
        anchors.append(Effector(skeleton.names[bone], (length, 0.0, 0.0), weight))
    return anchors


def _trunk(skeleton: Skeleton, feet: Collection[int]) -> set[int]:
    """The root and the bones above the legs: those that move all feet."""
    paths = [skeleton.path(foot) for foot in feet]
    together = set.intersection(*map(set, paths)) if len(paths) > 1 else set()
    # A bone with only one child on the paths to all feet belongs to a leg.
    toward = {bone: {path[path.index(bone) + 1] for path in paths if path[-1] != bone} for bone in together}
    return {0} | {bone for bone, below in toward.items() if len(below) > 1}
