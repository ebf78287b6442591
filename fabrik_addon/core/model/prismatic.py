"""Slides (the paper's prismatic joints): bones whose length may vary between two factors of their rest length.

Bones keep the length nearest to rest if the targets can be met with it. Otherwise least squares continues with a column
for each slide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from .effector import Effector
from .skeleton import Skeleton

SlideRange = tuple[float, float]


def nearest_to_rest(ends: SlideRange) -> float:
    """The factor of a range that is nearest to 1."""
    return min(max(1.0, ends[0]), ends[1])


def at_factors(skeleton: Skeleton, factors: Mapping[str, float]) -> Skeleton:
    """The skeleton with some bones at other lengths; their children move along their Y."""
    if all(factor == 1.0 for factor in factors.values()):
        return skeleton
    rest, lengths = np.array(skeleton.rest), np.array(skeleton.lengths)
    for bone, parent in enumerate(skeleton.parents):
        lengths[bone] *= factors.get(skeleton.names[bone], 1.0)
        if parent >= 0:
            offset = np.array(skeleton.head_offset(bone))
            offset[1] *= factors.get(skeleton.names[parent], 1.0)
            rest[bone, :3, 3] = rest[parent, :3, 3] + rest[parent, :3, :3] @ offset
    return Skeleton(skeleton.names, skeleton.parents, rest, lengths, skeleton.inherits_rotation)


def moved_with(effectors: Sequence[Effector], factors: Mapping[str, float]) -> list[Effector]:
    """The effectors, with their points moved along Y with their bones."""
    return [
        effector
        if effector.offset is None or effector.bone not in factors
        else replace(effector, offset=_moved(effector.offset, factors[effector.bone]))
        for effector in effectors
    ]


def _moved(offset: tuple[float, float, float], factor: float) -> tuple[float, float, float]:
    return offset[0], offset[1] * factor, offset[2]
