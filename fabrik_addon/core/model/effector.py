"""Effectors: points of bones that have targets."""

from dataclasses import dataclass


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
