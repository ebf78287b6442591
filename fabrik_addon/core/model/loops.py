"""Closed loops: effectors whose target is a point on another bone of the same skeleton, so that both sides move.

Every such effector has a partner, a point fixed to the body of the other bone. The vector between the two should
vanish. In a sweep both go to the midpoint between them.
"""

from collections.abc import Sequence

from .effector import Effector


def loops_of(effectors: Sequence[Effector]) -> tuple[int, ...]:
    """(K,) indices of the effectors that close loops."""
    return tuple(index for index, effector in enumerate(effectors) if effector.target_bone is not None)


def with_partners(effectors: Sequence[Effector]) -> list[Effector]:
    """The E effectors, followed by the K partners of those that close loops, in the same order."""
    partners = [
        Effector(effector.target_bone, effector.target_offset, effector.weight)
        for effector in effectors
        if effector.target_bone is not None
    ]
    return [*effectors, *partners]
