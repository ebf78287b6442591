"""What limits of lean and twist share: a cone of leans, or a window of them, and a range of twist."""

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from ..backend.numbers import Numbers, Quaternion, Scalar
from .base import Range, Wall
from .swing_twist import FULL_TURN, Lean, compose, lean_of, turn_twisting, twist_of

# The ends of a range of twist, infinite where it is a whole turn or more, and the middle between them.
Twist: TypeAlias = tuple[Scalar, Scalar, Scalar]


def twist_between(ends: Range) -> Twist:
    """The twist of one joint."""
    low, high = ends if ends[1] - ends[0] < FULL_TURN else (-inf, inf)
    return low, high, 0.5 * (ends[0] + ends[1])


def clamped(
    numbers: Numbers,
    rotation: Quaternion,
    nearest: Callable[[Numbers, Scalar, Scalar], tuple[Scalar, Scalar]],
    twist: Twist,
    surely_inside: Scalar = -1.0,
) -> Quaternion:
    """The rotation where lean and twist are inside, else the one with the nearest lean and the nearest twist.

    A lean need not be worked out where x² + z² of all rotations is less than `surely_inside`.
    """
    low, high, middle = twist
    turn = twist_of(numbers, rotation, middle)
    bounded = numbers.clamp(turn, low, high)
    leaning = numbers.square(rotation.x) + numbers.square(rotation.z)
    if not numbers.any_of(numbers.logical_or(leaning > surely_inside, turn != bounded)):
        return rotation
    lean = lean_of(numbers, rotation)
    x, z = nearest(numbers, lean.x, lean.z)
    kept = numbers.logical_and(numbers.logical_and(x == lean.x, z == lean.z), turn == bounded)
    moved = numbers.frames_where(numbers.logical_not(kept))
    if not len(moved):
        return rotation
    inside = compose(numbers, *(numbers.take(value, moved) for value in (x, z, bounded)))
    return numbers.replaced(rotation, moved, inside, numbers.count(kept))


def twist_walls(numbers: Numbers, rotation: Quaternion, lean: Lean, twist: Twist, within: float) -> list[Wall]:
    """The ends of a range of twist that are no farther on some frame; none where it is a whole turn."""
    low, high, middle = twist
    turn = twist_of(numbers, rotation, middle)
    ends = (1.0, high - turn), (-1.0, turn - low)
    near = [end for end in ends if numbers.any_of(end[1] <= min(within, FULL_TURN))]
    if not near:
        return []
    along = turn_twisting(numbers, lean)
    return [Wall(along * side, slack) for side, slack in near]
