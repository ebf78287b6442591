"""Scales bones to the recorded person's limb lengths."""

import numpy as np

from ...core import Skeleton
from ..clip import FloatArray


def with_factors(skeleton: Skeleton, factors: FloatArray) -> Skeleton:
    """The skeleton with each bone, and everything fixed to it, scaled by factors (J,); rest rotations stay.

    The root's height above the armature's origin is scaled like the distance from the root to the lowest bone.
    """
    rest = np.array(skeleton.rest)
    rest[0, :3, 3] *= height_factor(skeleton, factors)
    for bone, parent in enumerate(skeleton.parents):
        if parent >= 0:
            turn = rest[parent, :3, :3]
            rest[bone, :3, 3] = rest[parent, :3, 3] + turn @ (factors[parent] * skeleton.head_offset(bone))
    return Skeleton(skeleton.names, skeleton.parents, rest, skeleton.lengths * factors, skeleton.inherits_rotation)


def height_factor(skeleton: Skeleton, factors: FloatArray) -> float:
    """The factor on the distance from the root's head to the end of the lowest bone; factors: (J,)."""
    ends = skeleton.rest[:, 2, 3] + skeleton.rest[:, 2, 1] * skeleton.lengths
    path = skeleton.path(int(np.argmin(ends)))
    steps = [float(np.linalg.norm(skeleton.head_offset(bone))) for bone in path[1:]]
    steps.append(float(skeleton.lengths[path[-1]]))
    longer = sum(step * float(factors[bone]) for bone, step in zip(path, steps, strict=True))
    return longer / sum(steps) if sum(steps) > 0.0 else 1.0
