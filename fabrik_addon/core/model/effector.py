"""Effectors: points of bones that have targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Effector:
    """A point of a bone that has a target.

    Attributes:
        bone: the bone's name.
        offset: the point in the bone's frame; None is its tail (0, length, 0).
        weight: the weight of this target relative to the others, more than zero.
        rotation_weight: the weight of the target's rotation, 0 to 1. At 1 a radian counts as much as a tenth of the
            path length from the root, and a sweep applies the whole rotation; below that a share of it.
        priority: 0 is met first; if not all targets can be met, effectors with a higher number give way.
        target_bone: the target is a point on this bone of the same skeleton (a closed loop); both sides move. The
            effector's entry among the targets is ignored, and may be NaN.
        target_offset: that point in the frame of `target_bone`; None is its tail.
    """

    bone: str
    offset: tuple[float, float, float] | None = None
    weight: float = 1.0
    rotation_weight: float = 0.0
    priority: int = 0
    target_bone: str | None = None
    target_offset: tuple[float, float, float] | None = None


def loops_of(effectors: Sequence[Effector]) -> tuple[int, ...]:
    """(K,) indices of the effectors that close loops."""
    return tuple(index for index, effector in enumerate(effectors) if effector.target_bone is not None)


def with_partners(effectors: Sequence[Effector]) -> list[Effector]:
    """The E effectors, followed by the K partners of those that close loops, in the same order.

    A partner is a point fixed to the target bone. The vector between the two should vanish; in a sweep both go to the
    midpoint between them.
    """
    partners = [
        Effector(effector.target_bone, effector.target_offset, effector.weight)
        for effector in effectors
        if effector.target_bone is not None
    ]
    return [*effectors, *partners]


def with_factors_applied(effectors: Sequence[Effector], factors: Mapping[str, float]) -> list[Effector]:
    """The effectors of stretched bones: each point is moved along Y by its bone's length factor."""

    def moved(effector: Effector) -> Effector:
        if effector.offset is None or effector.bone not in factors:
            return effector
        x, y, z = effector.offset
        return replace(effector, offset=(x, y * factors[effector.bone], z))

    return [moved(effector) for effector in effectors]
