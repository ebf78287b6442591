"""Markers on bones (positions, Jacobian, offsets measured from poses), and the performer's size and proportions."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from ...core import Effector, Skeleton
from ...core.arrays import FloatArray, lengths, times
from ...core.errors import FabrikError
from ...core.limits import Limit
from ...core.model.effector import effector_offset, participants
from ..mapping.marker_map import MappedMarker
from ..signals import medians


def guessed_offsets(skeleton: Skeleton, mapping: Sequence[MappedMarker]) -> FloatArray:
    """(M, 3) offsets of the mapped points in their bones' frames."""
    offsets = np.zeros((len(mapping), 3))
    for index, entry in enumerate(mapping):
        if entry.offset is not None:
            offsets[index] = entry.offset
        elif entry.point == "TAIL":
            offsets[index, 1] = skeleton.lengths[skeleton.index(entry.bone)]
    return offsets


def bones_of(skeleton: Skeleton, mapping: Sequence[MappedMarker]) -> list[int]:
    """Bone indices of the M markers."""
    return [skeleton.index(entry.bone) for entry in mapping]


def make_effectors(mapping: Sequence[MappedMarker], offsets: FloatArray) -> tuple[Effector, ...]:
    """One effector for each marker, at offsets (M, 3) in their bones' frames."""
    points = [(float(x), float(y), float(z)) for x, y, z in offsets]
    return tuple(Effector(entry.bone, point, entry.weight) for entry, point in zip(mapping, points, strict=True))


def points_on(matrices: FloatArray, bones: Sequence[int], offsets: FloatArray) -> FloatArray:
    """(F, M, 3) positions in armature space of points at offsets (M, 3) on M bones.

    matrices: (F, J, 4, 4) of all bones.
    """
    frames = matrices[:, list(bones)]
    return np.asarray(frames[..., :3, 3] + times(frames[..., :3, :3], offsets))


def effector_points(skeleton: Skeleton, effectors: Sequence[Effector], matrices: FloatArray) -> FloatArray:
    """(F, M, 3) effector positions in armature space; matrices: (F, J, 4, 4) of the bones."""
    bones = [skeleton.index(effector.bone) for effector in effectors]
    return points_on(matrices, bones, np.array([effector_offset(skeleton, effector) for effector in effectors]))


def joint_columns(
    skeleton: Skeleton,
    effectors: Sequence[Effector],
    limits: Mapping[str, Limit],
    matrices: FloatArray,
    points: FloatArray,
) -> FloatArray:
    """(F, M, 3, D) Jacobian of effectors at points (F, M, 3), with bones at matrices (F, J, 4, 4), armature space.

    Its D columns: a rotation vector in armature space for each bone that moves effectors, then the root's location. A
    hinge can only rotate about its axis.
    """
    bodies = participants(skeleton, effectors)
    column, heads = {bone: index for index, bone in enumerate(bodies)}, matrices[..., :3, 3]
    arms = np.zeros((*points.shape[:2], len(bodies), 3))
    for marker, effector in enumerate(effectors):
        end = points[:, marker]
        for bone in reversed(skeleton.path(skeleton.index(effector.bone))):
            arms[:, marker, column[bone]] = end - heads[:, bone]
            if not skeleton.inherits_rotation[bone]:
                end = heads[:, bone]
    columns = np.zeros((*points.shape, len(bodies) + 1, 3))
    # The columns of the matrix that maps ω to ω × arm.
    x, y, z = np.moveaxis(arms, -1, 0)
    columns[:, :, 0, :-1, 1], columns[:, :, 0, :-1, 2] = z, -y
    columns[:, :, 1, :-1, 0], columns[:, :, 1, :-1, 2] = -z, x
    columns[:, :, 2, :-1, 0], columns[:, :, 2, :-1, 1] = y, -x
    columns[..., -1, :] = np.eye(3)
    for index, bone in enumerate(bodies):
        limit = limits.get(skeleton.names[bone])
        if limit is not None and limit.freedom < 3:
            # A hinge's axis stays in place while the bone rotates about it, so the posed bone shows the axis.
            axis = matrices[:, bone, :3, :3] @ np.array(limit.rotation_axis or (0.0, 0.0, 0.0))
            own = columns[..., index, :]
            columns[..., index, :] = (own @ axis[:, None, :, None]) * axis[:, None, None, :]
    return columns.reshape(*points.shape, -1)


def measured_offsets(
    matrices: FloatArray, bones: Sequence[int], positions: FloatArray, known: FloatArray
) -> FloatArray:
    """(M, 3) median offsets in F poses of markers at positions (F, M, 3); `known` (M, 3) for markers never seen.

    matrices: (F, J, 4, 4) of the bones.
    """
    frames = matrices[:, list(bones)]
    usual = medians(times(np.swapaxes(frames[..., :3, :3], -1, -2), positions - frames[..., :3, 3]))
    return np.where(np.isnan(usual), known, usual)


def with_factors(skeleton: Skeleton, factors: FloatArray) -> Skeleton:
    """The skeleton with each bone, and everything fixed to it, scaled by factors (J,); rest rotations stay.

    The root's height above the armature's origin is scaled like the distance from the root to the lowest bone.
    """
    rest = np.array(skeleton.rest)
    rest[0, :3, 3] *= height_factor(skeleton, factors)
    for bone, parent in enumerate(skeleton.parents):
        if parent >= 0:
            turn = rest[parent, :3, :3]
            rest[bone, :3, 3] = rest[parent, :3, 3] + turn @ (factors[parent] * skeleton.head_offsets[bone])
    return Skeleton(skeleton.names, skeleton.parents, rest, skeleton.lengths * factors, skeleton.inherits_rotation)


def height_factor(skeleton: Skeleton, factors: FloatArray) -> float:
    """The factor by which length factors (J,) change the path from the root's head to the end of the lowest bone."""
    ends = skeleton.rest[:, 2, 3] + skeleton.rest[:, 2, 1] * skeleton.lengths
    path = skeleton.path(int(np.argmin(ends)))
    steps = [float(np.linalg.norm(skeleton.head_offsets[bone])) for bone in path[1:]]
    steps.append(float(skeleton.lengths[path[-1]]))
    longer = sum(step * float(factors[bone]) for bone, step in zip(path, steps, strict=True))
    return longer / sum(steps) if sum(steps) > 0.0 else 1.0


# Pairs shorter than this fraction of the longest pair are not used: their noise is too large.
_SHORTEST_SHARE: Final = 1e-3
# A point is at a joint within this fraction of the length of the bone above it.
_CONNECTED: Final = 1e-3


class CalibrationError(FabrikError):
    """A recording that cannot be used to calibrate a rig, or invalid calibration settings."""


def rigid_pairs(skeleton: Skeleton, bones: Sequence[int], points: FloatArray) -> list[tuple[int, int]]:
    """Pairs of points (M, 3) whose distance is the same in every pose, as indices.

    Both points of such a pair are fixed to the same bone. A point at a joint is fixed to both bones that meet there.
    bones: indices of the points' M bones. points: at rest, armature space.
    """
    parents, on = skeleton.parents, []
    reach = _CONNECTED * skeleton.lengths[parents]
    for bone, point in zip(bones, points, strict=True):
        joints = np.flatnonzero(lengths(skeleton.rest[:, :3, 3] - point) <= reach)
        meeting = [{int(joint), int(parents[joint])} for joint in joints]
        on.append({bone}.union(*(both for both in meeting if bone in both)) - {-1})
    return [(i, j) for i, j in combinations(range(len(points)), 2) if on[i] & on[j]]


def first_scale(
    skeleton: Skeleton, entries: Sequence[MappedMarker], offsets: FloatArray, positions: FloatArray
) -> float:
    """The approximate size of a rig, divided by that of a recording.

    It is measured from distances that are the same in every pose. If there are none, the markers' extent at rest is
    compared with their extent on the frame that shows the most markers. offsets: (M, 3) of the mapped points in their
    bones' frames. positions: (F, M, 3), any unit. Raises CalibrationError if all markers are at one point.
    """
    bones = bones_of(skeleton, entries)
    points = points_on(skeleton.rest[None], bones, offsets)[0]
    if (scale := uniform_scale(points, rigid_pairs(skeleton, bones, points), positions)) is not None:
        return scale
    seen = ~np.isnan(positions).any(axis=2)
    frame = int(np.argmax(seen.sum(axis=1)))
    parts = points[seen[frame]], positions[frame][seen[frame]]
    spreads = [float(np.linalg.norm(np.std(part, axis=0))) if len(part) > 1 else 0.0 for part in parts]
    if min(spreads) <= 0.0:
        raise CalibrationError("All visible markers are at one point: match more markers, on several bones")
    return spreads[0] / spreads[1]


def uniform_scale(rest_points: FloatArray, pairs: Sequence[tuple[int, int]], positions: FloatArray) -> float | None:
    """The factor from marker distances to rig distances; None if no pair can be measured.

    Each pair gives the median over the frames on which both its markers are seen. The result is the median of the
    pairs, weighted by length.

    rest_points: (M, 3) the mapped points on the rig at rest. positions: (F, M, 3) of the same markers, NaN where not
    seen. pairs: from ``rigid_pairs``.
    """
    apart = [float(np.linalg.norm(rest_points[i] - rest_points[j])) for i, j in pairs]
    shortest, ratios = _SHORTEST_SHARE * max(apart, default=0.0), []
    for (i, j), length in zip(pairs, apart, strict=True):
        distances = lengths(positions[:, i] - positions[:, j])
        distances = distances[np.isfinite(distances)]
        if length > shortest and len(distances) and np.median(distances) > 0.0:
            ratios.append((length / float(np.median(distances)), length))
    if not ratios:
        return None
    # Weighted median; on a tie, the mean of the two middle values.
    values = np.array(sorted(ratios, key=lambda ratio: ratio[0]))
    heights = np.cumsum(values[:, 1])
    slack = 1e-12 * heights[-1]
    low, high = (int(np.searchsorted(heights, 0.5 * heights[-1] + side * slack)) for side in (-1.0, 1.0))
    return float(0.5 * (values[low, 0] + values[high, 0]))
