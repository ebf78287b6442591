"""Slides (the paper's prismatic joints): bones whose length may lie between two factors of their length at rest.

Bones keep the length that is nearest to rest for as long as the targets can be met with it. Where they cannot, the
finish goes on with one more column for each slide; a slide at its end that is pushed outward is locked there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, FloatArray
from .bodies import Body, hung_effectors
from .effector import Effector
from .skeleton import Skeleton

SlideRange = tuple[float, float]
_AT_END = 1e-9


def nearest_to_rest(ends: SlideRange) -> float:
    """The factor in a range that changes the least."""
    return min(max(1.0, ends[0]), ends[1])


def at_factors(skeleton: Skeleton, factors: Mapping[str, float]) -> Skeleton:
    """The skeleton with some bones at other lengths: what sits on them has moved along their Y."""
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
    """Effectors whose points have moved along Y with the bones that they sit on."""
    return [
        effector
        if effector.offset is None or effector.bone not in factors
        else replace(effector, offset=_moved(effector.offset, factors[effector.bone]))
        for effector in effectors
    ]


def _moved(offset: tuple[float, float, float], factor: float) -> tuple[float, float, float]:
    return offset[0], offset[1] * factor, offset[2]


@dataclass(frozen=True)
class Slides:
    """S bodies that slide.

    Attributes:
        bodies: (S,) indices.
        low, high: (S,) factors of the lengths that the bodies are built with.
    """

    bodies: tuple[int, ...]
    low: FloatArray
    high: FloatArray

    def locked(self, factors: FloatArray, force: FloatArray) -> BoolArray:
        """(F, S) which slides stand at an end and are pushed outward; factors and force (F, S)."""
        return np.asarray(
            ((factors <= self.low + _AT_END) & (force <= 0.0)) | ((factors >= self.high - _AT_END) & (force >= 0.0))
        )

    def clamp(self, factors: FloatArray) -> FloatArray:
        """(F, S) factors inside their ranges."""
        return np.clip(factors, self.low, self.high)


def find_slides(bodies: Sequence[Body], skeleton: Skeleton, ranges: Mapping[str, SlideRange]) -> Slides:
    """The bodies that slide, each with its range beside the length nearest to rest."""
    found = [index for index, body in enumerate(bodies) if skeleton.names[body.bone] in ranges]
    ends = np.array([ranges[skeleton.names[bodies[index].bone]] for index in found]).reshape(-1, 2)
    start = np.array([nearest_to_rest((low, high)) for low, high in ends])
    return Slides(tuple(found), ends[:, 0] / start, ends[:, 1] / start)


def slide_levers(bodies: Sequence[Body], count: int, slides: Sequence[int]) -> FloatArray:
    """(E, S) how far along a sliding body's Y an effector is carried: of its own point, or of the head on the way."""
    levers = np.zeros((count, len(slides)))
    for effector, holder, attachment in hung_effectors(bodies):
        index, along = holder, attachment.offset.y
        while index >= 0:
            if index in slides:
                levers[effector, list(slides).index(index)] = along
            index, along = bodies[index].parent, bodies[index].head_offset.y
    return levers
