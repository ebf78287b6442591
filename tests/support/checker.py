"""An independent judge of limited poses: matrices and plain numpy, none of the core's code.

Rotation matrices are split into swing and twist, outlines of limits are followed point by point, and poses are computed
bone by bone. Angles in radians unless a name ends in `_deg`.
"""

from dataclasses import dataclass

import numpy as np

from fabrik_addon.core import Ball, Fixed, Hinge, Polygon

AXES = {"X": 0, "Y": 1, "Z": 2}
CORNERS = 64
ZOOMS = 9


@dataclass(frozen=True)
class Verdict:
    """The limit violations and lengths of a solution's F frames and J bones."""

    break_deg: np.ndarray
    slack: np.ndarray
    stretch: float
    points: np.ndarray


def judge(skeleton, limits, effectors, solution):
    """The verdict on a solution of F frames."""
    turns = matrices(solution.rotations)
    shape = turns.shape[:2]
    break_deg, slack = np.zeros(shape), np.full(shape, np.inf)
    for name, limit in limits.items():
        bone = skeleton.index(name)
        outside, inside = distances(limit, turns[:, bone])
        break_deg[:, bone], slack[:, bone] = np.degrees(outside), inside
    frames, heads = placed(skeleton, turns, solution.root_location)
    tails = heads + frames[..., 1] * skeleton.lengths[:, None]
    stretch = max(
        np.abs(np.linalg.norm(solution.tails - solution.heads, axis=-1) - skeleton.lengths).max(),
        np.abs(np.linalg.norm(solution.rotations, axis=-1) - 1.0).max() * skeleton.lengths.sum(),
        np.abs(solution.heads - heads).max(),
        np.abs(solution.tails - tails).max(),
    )
    return Verdict(break_deg, slack, stretch, effector_points(skeleton, effectors, frames, heads))


def matrices(quaternions):
    """(..., 3, 3) rotation matrices of (..., 4) quaternions w x y z of any length: v → q v q⁻¹ on the three axes."""
    q = quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True)
    w, v = q[..., :1], q[..., 1:]
    columns = []
    for axis in np.eye(3):
        doubled = 2.0 * np.cross(v, axis)
        columns.append(axis + w * doubled + np.cross(v, doubled))
    return np.stack(columns, axis=-1)


def about(axis, angle):
    """(..., 3, 3) rotations about a unit axis (..., 3) by angles (...): Rodrigues' formula."""
    cross = np.zeros((*np.shape(angle), 3, 3))
    x, y, z = np.moveaxis(np.broadcast_to(axis, (*np.shape(angle), 3)), -1, 0)
    cross[..., 0, 1], cross[..., 0, 2], cross[..., 1, 2] = -z, y, -x
    cross -= np.swapaxes(cross, -1, -2)
    sine, cosine = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    return np.eye(3) + sine * cross + (1.0 - cosine) * (cross @ cross)


def size_of_turn(turns):
    """(...) radians by which matrices rotate."""
    skew = turns - np.swapaxes(turns, -1, -2)
    sine = np.sqrt((skew**2).sum(axis=(-1, -2)) / 2.0)
    return np.arctan2(sine, np.trace(turns, axis1=-2, axis2=-1) - 1.0)


def lean_and_twist(turns):
    """(..., 2) swings on the chart and (...) twists of (..., 3, 3) local rotations."""
    x, y, z = np.moveaxis(turns[..., :, 1], -1, 0)
    aside = np.hypot(x, z)
    angle = np.arctan2(aside, y)
    azimuth = np.where(
        aside[..., None] > 1e-300, np.stack([x, z], -1) / np.maximum(aside, 1e-300)[..., None], [1.0, 0.0]
    )
    lean = azimuth * angle[..., None]
    rest = np.swapaxes(swing(lean), -1, -2) @ turns
    return lean, np.arctan2(rest[..., 0, 2] - rest[..., 2, 0], rest[..., 0, 0] + rest[..., 2, 2])


def swing(lean):
    """(..., 3, 3) the shortest rotations that swing Y to chart points (..., 2)."""
    angle = np.linalg.norm(lean, axis=-1)
    axis = np.stack([lean[..., 1], np.zeros_like(angle), -lean[..., 0]], axis=-1)
    return about(np.where(angle[..., None] > 0, axis / np.maximum(angle, 1e-300)[..., None], [1.0, 0.0, 0.0]), angle)


def composed(lean, twist):
    """(..., 3, 3) the rotations with swings (..., 2) and twists (...)."""
    return swing(lean) @ about(np.array([0.0, 1.0, 0.0]), twist)


def distances(limit, turns):
    """Radians outside a limit (zero inside) and to its nearest side, for (..., 3, 3) local rotations."""
    if isinstance(limit, Fixed):
        return size_of_turn(turns), np.zeros(turns.shape[:-2])
    if isinstance(limit, Hinge):
        axis = AXES[limit.axis]
        i, j = (axis + 1) % 3, (axis + 2) % 3
        angle = np.arctan2(turns[..., j, i] - turns[..., i, j], turns[..., i, i] + turns[..., j, j])
        off_axis = size_of_turn(about(np.eye(3)[axis], -angle) @ turns)
        outside, slack = range_distances(angle, limit.low, limit.high)
        return np.hypot(off_axis, outside), slack
    lean, twist = lean_and_twist(turns)
    twist_outside, twist_slack = range_distances(twist, *limit.twist)
    lean_outside, lean_slack = window_distances(limit, lean)
    return np.hypot(lean_outside, twist_outside), np.minimum(lean_slack, twist_slack)


def range_distances(angle, low, high):
    """How far angles are outside a range on the circle, and how far from its nearer end (infinite without ends)."""
    if high - low >= 2.0 * np.pi:
        return np.zeros_like(angle), np.full_like(angle, np.inf)
    past_low = np.mod(angle - low, 2.0 * np.pi)
    inside = past_low <= high - low
    gap = np.minimum(np.mod(angle - high, 2.0 * np.pi), 2.0 * np.pi - past_low)
    ends = np.minimum(np.minimum(past_low, 2.0 * np.pi - past_low), np.minimum(abs(past_low - (high - low)), gap))
    return np.where(inside, 0.0, gap), ends


def window_distances(limit, lean):
    """Distances of swings (..., 2) outside the outline of a ball or polygon, and distances to the outline."""
    if isinstance(limit, Ball) and min(limit.angles) >= np.pi:
        return np.zeros(lean.shape[:-1]), np.full(lean.shape[:-1], np.inf)
    flat = lean.reshape(-1, 2)
    edge = np.linalg.norm(nearest_on_outline(limit, flat) - flat, axis=1).reshape(lean.shape[:-1])
    return np.where(holds(limit, lean), 0.0, edge), edge


def holds(limit, lean):
    """Whether swings (..., 2) are inside the outline of a ball or polygon."""
    x, z = lean[..., 0], lean[..., 1]
    if isinstance(limit, Polygon):
        return np.abs(winding(np.array(limit.window, dtype=float), lean)) > 0.5
    right, front, left, back = limit.angles
    a, b = np.where(x >= 0, right, left), np.where(z >= 0, front, back)
    with np.errstate(divide="ignore", invalid="ignore"):
        across = np.where(x == 0, 0.0, (x / a) ** 2)
        along = np.where(z == 0, 0.0, (z / b) ** 2)
    return across + along <= 1.0


def winding(corners, points):
    """(...) winding numbers of an outline (N, 2) about points (..., 2), from the angles of its edges."""
    arms = corners - points[..., None, :]
    following = np.roll(arms, -1, axis=-2)
    cross = arms[..., 0] * following[..., 1] - arms[..., 1] * following[..., 0]
    return np.arctan2(cross, (arms * following).sum(axis=-1)).sum(axis=-1) / (2.0 * np.pi)


def outline(limit, side, share):
    """(..., 2) points of an outline: at shares (...) of the lengths of sides (...)."""
    if isinstance(limit, Polygon):
        corners = np.array(limit.window, dtype=float)
        start, end = corners[side % len(corners)], corners[(side + 1) % len(corners)]
        return start + share[..., None] * (end - start)
    right, front, left, back = limit.angles
    angle = (side + share) * np.pi / 2
    across, along = np.array([right, -left, -left, right])[side], np.array([front, front, -back, -back])[side]
    return np.stack([across * np.abs(np.cos(angle)), along * np.abs(np.sin(angle))], axis=-1)


def nearest_on_outline(limit, leans):
    """(N, 2) the outline's nearest points to swings (N, 2): on each side the best of many samples, then refined."""
    sides = np.arange(len(limit.window) if isinstance(limit, Polygon) else 4)
    step = 1.0 / CORNERS
    share = np.broadcast_to(np.arange(CORNERS + 1) * step, (len(leans), len(sides), CORNERS + 1))
    for zoom in range(ZOOMS + 1):
        points = outline(limit, sides[:, None], share)
        best = np.linalg.norm(points - leans[:, None, None], axis=-1).argmin(axis=-1)[..., None]
        if zoom < ZOOMS:
            share = np.clip(np.take_along_axis(share, best, axis=-1) + np.linspace(-step, step, 17), 0.0, 1.0)
            step /= 8.0
    nearest = np.take_along_axis(points, best[..., None], axis=2)[:, :, 0]
    side = np.linalg.norm(nearest - leans[:, None], axis=-1).argmin(axis=-1)
    return nearest[np.arange(len(leans)), side]


def placed(skeleton, turns, root_location):
    """(F, J, 3, 3) frames and (F, J, 3) heads of a pose, computed bone by bone."""
    frames, heads = np.empty_like(turns), np.empty(turns.shape[:-1])
    for bone, parent in enumerate(skeleton.parents):
        own = skeleton.rest[bone, :3, :3]
        if parent < 0:
            frames[:, bone], heads[:, bone] = own @ turns[:, bone], root_location
            continue
        rest = skeleton.rest[parent]
        offset = np.linalg.inv(rest) @ skeleton.rest[bone, :, 3]
        heads[:, bone] = heads[:, parent] + frames[:, parent] @ offset[:3]
        carried = frames[:, parent] @ rest[:3, :3].T @ own if skeleton.inherits_rotation[bone] else own
        frames[:, bone] = carried @ turns[:, bone]
    return frames, heads


def effector_points(skeleton, effectors, frames, heads):
    """(F, E, 3) positions of effectors."""
    columns = []
    for effector in effectors:
        bone = skeleton.index(effector.bone)
        offset = (0.0, skeleton.lengths[bone], 0.0) if effector.offset is None else effector.offset
        columns.append(heads[:, bone] + frames[:, bone] @ np.array(offset))
    return np.stack(columns, axis=1)


def clamped(limit, turns):
    """(N, 3, 3) the nearest rotations inside a limit: nearest swing on the chart, nearest twist; by brute force."""
    if isinstance(limit, Fixed):
        return np.broadcast_to(np.eye(3), turns.shape)
    if isinstance(limit, Hinge):
        axis = AXES[limit.axis]
        i, j = (axis + 1) % 3, (axis + 2) % 3
        angle = np.arctan2(turns[..., j, i] - turns[..., i, j], turns[..., i, i] + turns[..., j, j])
        return about(np.eye(3)[axis], into_range(angle, limit.low, limit.high))
    lean, twist = lean_and_twist(turns)
    inside = holds(limit, lean)[..., None]
    return composed(np.where(inside, lean, nearest_on_outline(limit, lean)), into_range(twist, *limit.twist))


def into_range(angle, low, high):
    """Angles; for those outside the range, its end that is nearer on the circle."""
    if high - low >= 2.0 * np.pi:
        return angle
    past_low = np.mod(angle - low, 2.0 * np.pi)
    to_high, to_low = past_low - (high - low), 2.0 * np.pi - past_low
    return np.where(past_low <= high - low, low + past_low, np.where(to_high < to_low, high, low))


def random_rotations_inside(limit, rng, count):
    """(count, 4) quaternions spread evenly over a limit: swings by area on the chart, twists and angles by size."""
    if isinstance(limit, Fixed):
        return np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    if isinstance(limit, Hinge):
        half = rng.uniform(limit.low, limit.high, count) / 2
        return np.column_stack([np.cos(half), np.sin(half)[:, None] * np.eye(3)[AXES[limit.axis]]])
    lean = _random_leans(limit, rng, count)
    angle = np.linalg.norm(lean, axis=1)
    scale = np.sinc(angle / (2 * np.pi)) / 2
    half = rng.uniform(*limit.twist, count) / 2
    w, x, z = np.cos(angle / 2), lean[:, 1] * scale, -lean[:, 0] * scale
    c, s = np.cos(half), np.sin(half)
    return np.column_stack([w * c, x * c - z * s, w * s, z * c + x * s])


def _random_leans(limit, rng, count):
    """(count, 2) swings inside the outline, by rejection sampling."""
    if isinstance(limit, Polygon):
        low, high = np.min(limit.window, axis=0), np.max(limit.window, axis=0)
    else:
        low, high = -np.array(limit.angles[2:]), np.array(limit.angles[:2])
    found = np.empty((0, 2))
    while len(found) < count:
        more = rng.uniform(low, high, (4 * count, 2))
        found = np.concatenate([found, more[holds(limit, more)]])
    return found[:count]


def steepest(skeleton, limits, effectors, solution, targets, turn=1e-3):
    """(F,) how much closer rotating a single joint inside its limit could bring the effectors, at most."""
    turns = matrices(solution.rotations)
    weights = np.where(np.isnan(targets).any(axis=2), 0.0, [effector.weight for effector in effectors])

    def look(turns):
        frames, heads = placed(skeleton, turns, solution.root_location)
        points = effector_points(skeleton, effectors, frames, heads)
        return (weights * ((points - np.nan_to_num(targets)) ** 2).sum(axis=2)).sum(axis=1), points, heads

    cost, points, heads = look(turns)
    paths = [skeleton.path(skeleton.index(effector.bone)) for effector in effectors]
    result = np.zeros(len(cost))
    for bone in sorted(set().union(*paths)):
        moved = weights * [bone in path for path in paths]
        lever = np.sqrt((moved * ((points - heads[:, bone, None]) ** 2).sum(axis=2)).sum(axis=1))
        limit = limits.get(skeleton.names[bone])
        for axis in np.concatenate([np.eye(3), -np.eye(3)]):
            trial = turns.copy()
            trial[:, bone] = about(axis, np.full(len(cost), turn)) @ turns[:, bone]
            if limit is not None:
                trial[:, bone] = clamped(limit, trial[:, bone])
            gain = (cost - look(trial)[0]) / (2.0 * turn * np.sqrt(cost) * lever + 1e-300)
            result = np.maximum(result, gain)
    return result
