"""Helpers shared by limits of swing and twist: a cone or outline of swings, and a range of twist."""

from collections.abc import Callable
from math import inf
from typing import TypeAlias

from ..backend.protocol import Backend, Quaternion, Scalar
from .base import LimitConstraint, Range
from .swing_twist import FULL_TURN, Lean, compose, lean_of, short_of_half_a_turn, turn_twisting, twist_of

# The ends of a range of twist, infinite for a full turn or more, and the middle between them.
Twist: TypeAlias = tuple[Scalar, Scalar, Scalar]


def twist_between(ends: Range) -> Twist:
    """The range of twist of one joint."""
    low, high = ends if ends[1] - ends[0] < FULL_TURN else (-inf, inf)
    return low, high, 0.5 * (ends[0] + ends[1])


def clamped(
    backend: Backend,
    rotation: Quaternion,
    nearest: Callable[[Backend, Scalar, Scalar], tuple[Scalar, Scalar]],
    twist: Twist,
    surely_inside: Scalar = -1.0,
) -> Quaternion:
    """The rotation if swing and twist are inside, else the one with the nearest swing and the nearest twist.

    The swing is not computed if x² + z² of all rotations is less than `surely_inside`.
    """
    low, high, middle = twist
    turn = twist_of(backend, rotation, middle)
    bounded = backend.clamp(turn, low, high)
    leaning = backend.square(rotation.x) + backend.square(rotation.z)
    if not backend.any_of(backend.logical_or(leaning > surely_inside, turn != bounded)):
        return rotation
    lean = lean_of(backend, rotation)
    x, z = short_of_half_a_turn(backend, *nearest(backend, lean.x, lean.z))
    kept = backend.logical_and(backend.logical_and(x == lean.x, z == lean.z), turn == bounded)
    moved = backend.frames_where(backend.logical_not(kept))
    if not len(moved):
        return rotation
    inside = compose(backend, *(backend.take(value, moved) for value in (x, z, bounded)))
    return backend.replaced(rotation, moved, inside, backend.count(kept))


def twist_constraints(
    backend: Backend, rotation: Quaternion, lean: Lean, twist: Twist, within: float
) -> list[LimitConstraint]:
    """The ends of a range of twist within `within` radians on at least one frame; none for a full turn."""
    low, high, middle = twist
    turn = twist_of(backend, rotation, middle)
    ends = (1.0, high - turn), (-1.0, turn - low)
    near = [end for end in ends if backend.any_of(end[1] <= min(within, FULL_TURN))]
    if not near:
        return []
    along = turn_twisting(backend, lean)
    return [LimitConstraint(along * side, gap) for side, gap in near]
