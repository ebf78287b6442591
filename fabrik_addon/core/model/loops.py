"""Closed loops: effectors whose target is a point on another bone of the same skeleton, so that both sides give way.

Every such effector has a partner, a point on the other bone that hangs on its body as effectors do. What is to vanish
is the arm from one to the other. In a sweep both are to come to the middle between them.
"""

from collections.abc import Sequence

from .effector import Effector


def loops_of(effectors: Sequence[Effector]) -> tuple[int, ...]:
    """(K,) the effectors that close loops."""
    return tuple(index for index, effector in enumerate(effectors) if effector.target_bone is not None)


def with_partners(effectors: Sequence[Effector]) -> list[Effector]:
    """E effectors, and after them the K partners of those that close loops, in the same order."""
    partners = [
        Effector(effector.target_bone, effector.target_offset, effector.weight)
        for effector in effectors
        if effector.target_bone is not None
    ]
    return [*effectors, *partners]
