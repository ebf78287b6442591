"""Clamps many rotations to limits."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from ...core import Skeleton
from ...core.arrays import FloatArray
from ...core.backend import array as many
from ...core.limits.base import Limit
from ...core.rotations import angle_between

# Radians. Smaller changes by a clamp are rounding errors.
_ROUNDING: Final = 1e-9


def legal_rotations(limit: Limit, rotations: npt.ArrayLike) -> FloatArray:
    """(F, 4) rotations within a limit nearest to `rotations` (F, 4), w x y z; rotations inside don't change."""
    given = np.asarray(rotations, dtype=np.float64)
    if not len(given):
        return given
    clamped = many.stack([limit.clamp(many, many.quaternion(given))], len(given))[:, 0]
    return np.where((angle_between(given, clamped) > _ROUNDING)[:, None], clamped, given)


def excess(limit: Limit, rotations: FloatArray) -> FloatArray:
    """(F,) radians by which rotations (F, 4) are outside a limit."""
    return angle_between(rotations, legal_rotations(limit, rotations))


def legal_pose(skeleton: Skeleton, limits: Mapping[str, Limit], rotations: FloatArray) -> FloatArray:
    """Clamp the limited bones of poses (F, J, 4) to their limits; returns (F, J, 4)."""
    legal = np.array(rotations)
    for name, limit in limits.items():
        bone = skeleton.index(name)
        legal[:, bone] = legal_rotations(limit, legal[:, bone])
    return legal
