"""Joints between bones that are in line: along such a limb no small turn leads anywhere."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from ...core.arrays import FloatArray
from ...core.limits.base import Limit
from ...core.model.skeleton import Skeleton
from ...core.rotations import angle_between, product, quaternion_from_rotation_vector
from ..rig.legal import legal_rotations

# The sine of an angle: knees of people at rest are straight to this. And radians that they are bent by.
_NEARLY_STRAIGHT, _BEND = 0.1, 0.1
# Radians: two bends that limits leave as they are, but for rounding.
_ALIKE: Final = 1e-4


def straight_joints(
    skeleton: Skeleton, limits: Mapping[str, Limit], bones: Iterable[int], frames: FloatArray
) -> dict[int, FloatArray]:
    """(3,) the places of joints that could turn and are straight in a pose of (J, 4, 4) frames, by bone."""
    result = {}
    for bone in bones:
        before = frames[bone, :3, 3] - frames[skeleton.parents[bone], :3, 3]
        along, length = frames[bone, :3, 1], np.linalg.norm(before)
        limit = limits.get(skeleton.names[bone])
        sine = np.linalg.norm(np.cross(before, along))
        if sine <= _NEARLY_STRAIGHT * length and before @ along > 0.0 and (limit is None or limit.freedom):
            result[int(bone)] = frames[bone, :3, 3]
    return result


def with_bent_joints(
    skeleton: Skeleton, limits: Mapping[str, Limit], local_rotations: FloatArray, bones: Sequence[int]
) -> FloatArray:
    """(J, 4) a pose some of whose joints are bent a little: hinges into their range, others about X."""
    turned = np.array(local_rotations)
    for bone in bones:
        limit = limits.get(skeleton.names[bone])
        axis = np.array((1.0, 0.0, 0.0) if limit is None or limit.turn_axis is None else limit.turn_axis)
        both = product(turned[bone], quaternion_from_rotation_vector(np.array([_BEND * axis, -_BEND * axis])))
        legal = both if limit is None else legal_rotations(limit, both)
        way, other = angle_between(legal, turned[bone])
        # Where both are free it is always the same one: rounding would bend left and right otherwise.
        turned[bone] = legal[int(other > way + _ALIKE)]
    return turned
