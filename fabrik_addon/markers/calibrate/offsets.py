"""Markers on bones: their positions, their Jacobian, and offsets measured from poses."""

from collections.abc import Mapping, Sequence

import numpy as np

from ...core import Effector, Skeleton
from ...core.arrays import times
from ...core.limits.base import Limit
from ...core.model.bodies import effector_offset, participants
from ..clip import BoolArray, FloatArray
from ..mapping.marker_map import MappedMarker
from ..robust import weighted_location

# Samples farther off than this many times the usual distance get almost no weight.
_OUTLYING = 3.0


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
) -> tuple[FloatArray, BoolArray]:
    """(M, 3) offsets from F poses and the markers' positions (F, M, 3), and (M,) whether a marker was ever seen.

    Samples far from the others are ignored. matrices: (F, J, 4, 4) of the bones. known: (M, 3) offsets that are kept
    for markers never seen.
    """
    frames = matrices[:, list(bones)]
    local = times(np.swapaxes(frames[..., :3, :3], -1, -2), positions - frames[..., :3, 3])
    middle, seen = weighted_location(local, _OUTLYING)
    return np.where(seen[:, None], middle, known), seen
