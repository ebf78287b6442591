"""Plants feet: finds the floor, points under the feet and their contacts, and holds the points in place."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from ..core import Effector, Options, Skeleton, Solution, Solver, forward_kinematics
from ..core.arrays import FloatArray, IntArray, smoothstep
from ..core.limits import Limit
from ..core.model.effector import PosePrior, effector_offset
from ..human.naming_schemes import Role, match
from ..human.rest_body import Point, RestBody, bones_of, soles_of
from .calibrate.size import effector_points, points_on
from .clip import true_spans

# A point's height on the floor is this percentile of its heights.
_FLOOR_PERCENT: Final = 5.0
# Contact ends when speed or height exceeds its threshold by this factor. With 1, noise would end it. Chosen by trial.
_HYSTERESIS: Final = 1.5
# Speeds are measured over this many seconds: 1 mm of marker noise then gives 2 cm/s.
_SPEED_OVER: Final = 0.05
# The ground counts as moving if at least this fraction of the velocities of low points agree, and at least this number.
_GROUND_SHARE: Final = 0.3
_GROUND_SAMPLES: Final = 1000


@dataclass(frozen=True)
class Stance:
    """A span of contact of a foot's point, from frame first to last, counted from 0.

    drift: the largest distance of the point from its median position.
    """

    point: Effector
    first: int
    last: int
    drift_before: float
    drift_after: float


@dataclass(frozen=True)
class StandingSettings:
    """Thresholds for the contact of a foot point with the floor.

    Attributes:
        speed: the point is slower than this, units per second.
        height: it is less than this above its lowest position.
        shortest: seconds; shorter contacts are ignored.
        blend: seconds of transition before and after a contact.
    """

    speed: float = 0.12
    height: float = 0.05
    shortest: float = 0.1
    blend: float = 0.1

    @classmethod
    def at_size(cls, size: float) -> "StandingSettings":
        """The usual thresholds for a body that is `size` times as large."""
        return cls(speed=cls.speed * size, height=cls.height * size)


_USUAL: Final = StandingSettings()


def find_stances(
    points: FloatArray, rate: float, *, up: int = 2, settings: StandingSettings = _USUAL
) -> list[tuple[int, int]]:
    """Half-open spans of frames in which a point (F, 3) is in contact: slow and low.

    Contact begins when the point's speed and height are below the settings, and ends when one of them is clearly above.
    rate: frames per second. up: index of the up axis.
    """
    if len(points) < 2:
        return []
    heights = points[:, up] - np.percentile(points[:, up], _FLOOR_PERCENT)
    speeds = np.linalg.norm(_velocities(points, rate), axis=1)
    still = (speeds <= settings.speed) & (heights <= settings.height)
    nearly = (speeds <= _HYSTERESIS * settings.speed) & (heights <= _HYSTERESIS * settings.height)
    # A span within the wider thresholds counts if at least one frame is within the narrower ones.
    spans = [span for span in true_spans(nearly) if still[slice(*span)].any()]
    return [(first, end) for first, end in spans if end - first >= settings.shortest * rate]


def drift(positions: FloatArray) -> float:
    """The largest distance of a planted point (N, 3) from its median position."""
    return float(np.linalg.norm(positions - np.median(positions, axis=0), axis=1).max())


def faded(span: tuple[int, int], blend: int, count: int) -> tuple[IntArray, FloatArray]:
    """The frames on which a half-open span blends in and out, and its weight on each, 0 to 1.

    blend: frames of transition before and after the span. count: frames of the take.
    """
    first, end = span
    frames = np.arange(max(first - blend, 0), min(end + blend, count))
    away = np.maximum(np.maximum(first - frames, frames - end + 1), 0) / (blend + 1.0)
    return frames, smoothstep(1.0 - away)


def ground_velocity(points: FloatArray, rate: float, *, up: int = 2, settings: StandingSettings = _USUAL) -> FloatArray:
    """(3,) velocity of the ground under points (F, P, 3), units per second, such as that of a treadmill's belt.

    It is the common velocity of low points, or zero if most of them are nearly still or have different velocities.
    """
    low = []
    for positions in np.moveaxis(points, 1, 0):
        heights = positions[:, up] - np.percentile(positions[:, up], _FLOOR_PERCENT)
        low.append(_velocities(positions, rate)[heights <= settings.height])
    velocities = np.concatenate(low)
    velocities = velocities[:: 1 + len(velocities) // _GROUND_SAMPLES]
    velocities[:, up] = 0.0
    if not len(velocities):
        return np.zeros(3)
    near = np.linalg.norm(velocities[:, None] - velocities, axis=2) <= settings.speed
    ground = np.median(velocities[near[int(np.argmax(near.sum(axis=1)))]], axis=0)
    moves = near.mean(axis=1).max() >= _GROUND_SHARE and np.linalg.norm(ground) > settings.speed
    return np.asarray(ground if moves else np.zeros(3))


def _velocities(points: FloatArray, rate: float) -> FloatArray:
    """(F, 3) velocities of points (F, 3), units per second."""
    beside = max(1, round(0.5 * _SPEED_OVER * rate))
    frames = np.arange(len(points))
    before, after = np.maximum(frames - beside, 0), np.minimum(frames + beside, len(points) - 1)
    return np.asarray((points[after] - points[before]) * (rate / np.maximum(after - before, 1))[:, None])


FOOT_PARTS: Final = ("foot", "toe")
# A foot with at least this many markers has some at heel and toes.
_ENOUGH: Final = 2


def foot_points(skeleton: Skeleton, effectors: Sequence[Effector], up: int) -> Iterator[Effector]:
    """Heel and toe of each foot: its rearmost and foremost markers, or the ends of its bones.

    Empty if no bone is named as a foot. up: index of armature space's up axis.
    """
    roles = match(skeleton.names)
    for side in ("L", "R"):
        bones = [name for name, role in roles.items() if role.part in FOOT_PARTS and role.side == side]
        marked = [(each.bone, each.offset) for each in effectors if each.bone in bones and each.offset is not None]
        if bones and len(marked) < _ENOUGH:
            yield Effector(bones[0], (0.0, 0.0, 0.0))
            yield Effector(bones[-1])
        elif bones:
            # Forward coordinate of each marker: along the foot, in the floor plane.
            along = np.delete(skeleton.rest[skeleton.index(bones[0]), :3, 1], up)
            positions = [skeleton.rest[skeleton.index(bone)] @ (*offset, 1.0) for bone, offset in marked]
            order = np.argsort([np.delete(point[:3], up) @ along for point in positions])
            for end in (order[0], order[-1]):
                yield Effector(*marked[int(end)])


# The floor is this percentile of a sole's heights. Even in a run, feet are in contact on 30 % of the frames. A sole
# that is lower on few frames is only rolling.
_STANDING: Final = 20.0
# The lowest step of stairs is touched on few frames. So this percentile is used if it is lower than the other one by
# more than a fraction of the body's size (10 cm on a person).
_LOWEST: Final = 4.0
_STEP: Final = 0.04
# A foot is in the air if it stays higher than the other by more than this fraction of the body's size (5 cm).
_LIFTED: Final = 0.02


def lift_off_floor(poses: Solution) -> FloatArray:
    """(3,) translation along the body's up axis that moves the soles in F poses to the floor of the rest pose.

    In armature space, the rig's units; zero if no bones are known to be feet.
    """
    skeleton = poses.skeleton
    body = RestBody(bones_of(skeleton.names, skeleton.parents, skeleton.rest, skeleton.lengths))
    feet = soles_of(body).values()
    if body.axes is None or not feet:
        return np.zeros(3)
    up = body.axes.up
    floor = min(float(_heights(skeleton, skeleton.rest[None], sole, up).min()) for sole in feet)
    lows = [_heights(skeleton, poses.matrices, sole, up).min(axis=1) for sole in feet]
    lowest, heights = np.percentile(lows, [_LOWEST, _STANDING], axis=1)
    if (heights - lowest).max() > _STEP * skeleton.size:
        heights = lowest
    standing = heights <= heights.min() + _LIFTED * skeleton.size
    return np.asarray((floor - heights[standing].mean()) * up)


def _heights(skeleton: Skeleton, matrices: FloatArray, sole: tuple[Point, ...], up: FloatArray) -> FloatArray:
    """(F, C) heights of a sole's C corners along `up`; matrices: (F, J, 4, 4) of the bones; both in armature space."""
    bones = [skeleton.index(bone) for bone, _ in sole]
    return np.asarray(points_on(matrices, bones, np.array([point for _, point in sole])) @ up)


# Weights of pinned points, of a squared radian of the legs' bones, and of a squared radian of the bones above (lengths
# are relative to the longest bone). With 1 for legs, planted feet drift by up to 12 mm. With 0.3, they jitter.
_PIN_WEIGHT: Final = 300.0
_LEG_WEIGHT: Final = 0.4
_HIPS_WEIGHT: Final = 1e5
# No sweeps or restarts: the poses start near their solution.
_OPTIONS: Final = Options(max_sweeps=0, restarts=0, tolerance=1e-6)


def plant_feet(
    solution: Solution,
    points: Sequence[Effector],
    rate: float,
    *,
    limits: Mapping[str, Limit] | None = None,
    up: int = 2,
    settings: StandingSettings = _USUAL,
) -> tuple[Solution, tuple[Stance, ...]]:
    """Hold every foot point in place during its contacts, with transitions before and after; the hips do not move.

    Returns the poses, and the contacts.

    Args:
        solution: F poses.
        points: heels and toes, at least one.
        rate: frames per second.
        limits: bone name to limit; they are respected.
        up: index of the axis that points up.
        settings: the thresholds for contact, and the length of transitions.

    Raises:
        SkeletonError: if a bone does not exist.
    """
    pins = [replace(point, weight=_PIN_WEIGHT) for point in points]
    positions = point_positions(solution, pins)
    ground = ground_velocity(positions, rate, up=up, settings=settings)
    carried = (np.arange(len(positions)) / rate)[:, None, None] * ground
    positions = positions - carried
    found = [find_stances(positions[:, i], rate, up=up, settings=settings) for i in range(len(points))]
    blend = round(settings.blend * rate)
    held = [_pinned(positions[:, i], found[i], blend) for i in range(len(points))]
    planted = _solved(solution, pins, np.stack(held, axis=1) + carried, limits)
    after = point_positions(planted, pins) - carried
    stances = [
        Stance(point, first, end - 1, drift(positions[first:end, i]), drift(after[first:end, i]))
        for i, point in enumerate(points)
        for first, end in found[i]
    ]
    return planted, tuple(sorted(stances, key=lambda stance: stance.first))


def point_positions(solution: Solution, effectors: Sequence[Effector]) -> FloatArray:
    """(F, E, 3) positions of effectors in the poses, armature space."""
    skeleton = solution.skeleton
    bones = sorted({bone for effector in effectors for bone in skeleton.path(skeleton.index(effector.bone))})
    part, local, lengths = skeleton.part(bones), solution.rotations[:, bones], solution.lengths[:, bones]
    return effector_points(part, effectors, forward_kinematics(part, local, solution.root_location, lengths))


def head_positions(solution: Solution, bones: Iterable[str]) -> dict[str, FloatArray]:
    """(F, 3) positions of the heads of some bones, by their names, armature space."""
    heads = [Effector(name, (0.0, 0.0, 0.0)) for name in bones]
    points = np.moveaxis(point_positions(solution, heads), 1, 0)
    return {head.bone: point for head, point in zip(heads, points, strict=True)}


def _pinned(positions: FloatArray, spans: Sequence[tuple[int, int]], blend: int) -> FloatArray:
    """(F, 3) positions at which a point is held; NaN on frames on which it is free."""
    held = np.full_like(positions, np.nan)
    shift, total = np.zeros_like(positions), np.zeros(len(positions))
    for first, end in spans:
        stand = np.median(positions[first:end], axis=0)
        frames, share = faded((first, end), blend, len(positions))
        nearest = np.clip(frames, first, end - 1)
        shift[frames] += share[:, None] * (stand - positions[nearest])
        total[frames] += share
    free = total == 0.0
    held[~free] = positions[~free] + shift[~free] / np.maximum(total[~free], 1.0)[:, None]
    return held


def _solved(
    solution: Solution,
    pins: Sequence[Effector],
    targets: FloatArray,
    limits: Mapping[str, Limit] | None,
) -> Solution:
    """Poses with the pins at targets (F, P, 3), as close as possible to those of `solution`."""
    frames = np.flatnonzero(~np.isnan(targets).any(axis=2).all(axis=1))
    if not len(frames):
        return solution
    skeleton = solution.skeleton
    paths = [skeleton.path(foot) for foot in {skeleton.index(pin.bone) for pin in pins}]
    # The bones above the legs move all feet. On the paths to the feet, a bone with only one child belongs to a leg.
    together = set.intersection(*map(set, paths)) if len(paths) > 1 else set()
    toward = {bone: {path[path.index(bone) + 1] for path in paths if path[-1] != bone} for bone in together}
    trunk = [0, *(bone for bone, below in toward.items() if len(below) > 1)]
    moving = sorted(set().union(*paths))
    weights = np.zeros(len(skeleton))
    weights[moving], weights[trunk] = _LEG_WEIGHT, _HIPS_WEIGHT
    weights *= float(skeleton.lengths[moving].max()) ** 2
    rotations = np.array(solution.rotations)
    start, heads, prior = rotations[frames], solution.root_location[frames], PosePrior(rotations[frames], weights)
    solver = Solver(skeleton, pins, limits=limits, options=_OPTIONS)
    rotations[frames] = solver.solve(targets[frames], start=start, start_location=heads, prior=prior).rotations
    return replace(solution, rotations=rotations)


# Meters. A contact ends when a point of the foot is more than this above or below its height in the middle of the
# contact. Markers have 1 to 2 mm of noise. When the heel leaves the floor in the sample walk, it rises by 5 mm within
# 0.03 s.
_LIFT = 0.005


class PointContact(NamedTuple):
    """A contact with the floor: a bone's end, "HEAD" or "TAIL", and the first and last frame."""

    bone: str
    point: str
    first: float
    last: float


class Contact(NamedTuple):
    """A foot's contact with the floor: the foot's bone, the first and last frame, and the contacts of ankle and ball.

    The ankle is in contact while the foot is flat, and the ball for longer. The tip of the toes leaves last, because
    toes may bend.
    """

    bone: str
    first: float
    last: float
    point_contacts: tuple[PointContact, ...]


def find_contacts(skeleton: Skeleton, posed: FloatArray, frames: FloatArray, rate: float) -> list[Contact]:
    """The contacts of the feet, sorted by foot; empty if no bone is a foot.

    posed: (F, J, 4, 4) in world space, on evenly spaced frames (F,). rate: frames per second.
    """
    points, roles, step = list(foot_points(skeleton, (), 2)), match(skeleton.names), float(frames[1] - frames[0])
    found: dict[str, list[PointContact]] = {}
    heights: dict[tuple[str, str], FloatArray] = {}
    # The distance between the ball, where the toe begins, and the ankle is constant. The tip of the toe moves.
    balls = [Effector(each.bone, (0.0, 0.0, 0.0)) for each in points if roles[each.bone].part == "toe"]
    for point in points + balls:
        matrices, tip = posed[:, skeleton.index(point.bone)], "TAIL" if point.offset is None else "HEAD"
        places = (matrices @ np.append(effector_offset(skeleton, point), 1.0))[:, :3]
        heights[point.bone, tip] = places[:, 2]
        found.setdefault(foot_of(roles, point.bone), []).extend(
            PointContact(point.bone, tip, float(frames[first]), float(frames[end - 1]))
            for first, end in find_stances(places, rate / step)
        )
    contacts = []
    for foot, every in found.items():
        # Contacts of points that overlap, or follow each other directly, are one contact.
        groups: list[list[PointContact]] = []
        for stand in sorted(every, key=lambda each: each.first):
            if groups and stand.first <= max(each.last for each in groups[-1]) + step:
                groups[-1].append(stand)
            else:
                groups.append([stand])
        contacts += [_contact(foot, point_contacts, frames, heights) for point_contacts in groups]
    return contacts


def foot_of(roles: Mapping[str, Role], bone: str) -> str:
    """The foot that a foot or toe bone belongs to, by the roles of the bones; "" for other bones."""
    if bone not in roles or roles[bone].part not in FOOT_PARTS:
        return ""
    feet = (name for name, role in roles.items() if role.part == "foot" and role.side == roles[bone].side)
    return next(feet, bone)


def span_of_contact(contacts: Iterable[Contact], foot: str, frame: float) -> tuple[float, float]:
    """The first and last frame of the contact at a frame; the frame itself if there is no contact."""
    spans = ((each.first, each.last) for each in contacts if each.bone == foot and each.first <= frame <= each.last)
    return next(spans, (frame, frame))


def _contact(
    foot: str, point_contacts: list[PointContact], frames: FloatArray, heights: Mapping[tuple[str, str], FloatArray]
) -> Contact:
    """Combine the contacts of a foot's points to a contact of the foot.

    heights: (F,) height of each point, by bone and end.
    """
    points, ends = [], dict.fromkeys(each[:2] for each in point_contacts)
    for point in [each for each in ends if each[0] == foot or each[1] == "HEAD" or (each[0], "HEAD") not in ends]:
        own = [each for each in point_contacts if each[:2] == point]
        rows = np.flatnonzero((frames >= own[0].first) & (frames <= max(each.last for each in own)))
        level = heights[point][rows]
        down = rows[np.abs(level - np.median(level)) < _LIFT]
        points.append(PointContact(*point, float(frames[down[0]]), float(frames[down[-1]])))
    # The ankle moves while the foot rolls over its heel. It is planted once the ball is down.
    flat = max(each.first for each in points)
    rolled = [each._replace(first=flat) if each[:2] == (foot, "HEAD") else each for each in points]
    points = [each for each in rolled if each.first < each.last] or points
    return Contact(foot, point_contacts[0].first, max(each.last for each in point_contacts), tuple(points))
