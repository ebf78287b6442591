"""Where markers sit on their bones: guesses from a mapping, and what recorded poses say."""

from collections.abc import Sequence

import numpy as np

from ...core import Effector, Skeleton
from ...core.arrays import times
from ...core.model.bodies import effector_offset
from ..clip import BoolArray, FloatArray
from ..mapping.marker_map import MappedMarker
from ..robust import weighted_location

# Beyond this many times their usual distance samples hardly count.
_OUTLYING = 3.0


def guessed_offsets(skeleton: Skeleton, mapping: Sequence[MappedMarker]) -> FloatArray:
    """(M, 3) the mapped points in their bones' frames."""
    offsets = np.zeros((len(mapping), 3))
    for place, entry in enumerate(mapping):
        if entry.offset is not None:
            offsets[place] = entry.offset
        elif entry.point == "TAIL":
            offsets[place, 1] = skeleton.lengths[skeleton.index(entry.bone)]
    return offsets


def bones_of(skeleton: Skeleton, mapping: Sequence[MappedMarker]) -> list[int]:
    """M places of the markers' bones."""
    return [skeleton.index(entry.bone) for entry in mapping]


def make_effectors(mapping: Sequence[MappedMarker], offsets: FloatArray) -> tuple[Effector, ...]:
    """An effector for each marker."""
    places = [(float(x), float(y), float(z)) for x, y, z in offsets]
    return tuple(Effector(entry.bone, place, entry.weight) for entry, place in zip(mapping, places, strict=True))


def points_on(matrices: FloatArray, bones: Sequence[int], offsets: FloatArray) -> FloatArray:
    """(F, M, 3) where points with (M, 3) offsets are when bones stand at matrices (F, J, 4, 4)."""
    frames = matrices[:, list(bones)]
    return np.asarray(frames[..., :3, 3] + times(frames[..., :3, :3], offsets))


def effector_points(skeleton: Skeleton, effectors: Sequence[Effector], matrices: FloatArray) -> FloatArray:
    """(F, M, 3) where effectors are when the bones stand at matrices (F, J, 4, 4)."""
    bones = [skeleton.index(effector.bone) for effector in effectors]
    return points_on(matrices, bones, np.array([effector_offset(skeleton, effector) for effector in effectors]))


def seen_from_bones(matrices: FloatArray, bones: Sequence[int], positions: FloatArray) -> FloatArray:
    """(F, M, 3) positions (F, M, 3) in the frames of the markers' bones."""
    frames = matrices[:, list(bones)]
    away = positions - frames[..., :3, 3]
    return times(np.swapaxes(frames[..., :3, :3], -1, -2), away)


def measured_offsets(
    matrices: FloatArray,
    bones: Sequence[int],
    positions: FloatArray,
    known: FloatArray,
) -> tuple[FloatArray, BoolArray]:
    """(M, 3) offsets that F poses and the positions of the markers say, and (M,) whether a marker was seen at all.

    Samples far from the others do not count. known: (M, 3) offsets that are kept where a marker is never seen.
    """
    local = seen_from_bones(matrices, bones, positions)
    middle, seen = weighted_location(local, _OUTLYING)
    return np.where(seen[:, None], middle, known), seen
