"""The points of bones that are to reach targets."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effector:
    """A point of a bone that is to reach a target.

    Attributes:
        bone: the bone's name.
        offset: the point in the bone's frame; None is its tail (0, length, 0).
        weight: how much this target counts beside the others, more than zero.
        rotation_weight: how much the target's rotation counts, 0 to 1. At 1 a radian counts as much as a tenth of the
            path length from the root, and a sweep gives the bone its rotation outright; below that a share of it.
        priority: 0 is met first; where not all can be met, effectors with a higher number give way.
        target_bone: the target is a point on this bone of the same skeleton (a closed loop): both sides give way. The
            effector's entry among the targets does not count, and may be NaN.
        target_offset: that point in the frame of `target_bone`; None is its tail.
    """

    bone: str
    offset: tuple[float, float, float] | None = None
    weight: float = 1.0
    rotation_weight: float = 0.0
    priority: int = 0
    target_bone: str | None = None
    target_offset: tuple[float, float, float] | None = None
