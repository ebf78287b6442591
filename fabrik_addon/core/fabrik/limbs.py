"""A ball joint and the run of hinges that follows it, seen from outside: one link of variable length.

Upper arm and forearm, thigh and shin, a finger. The link runs from the ball's head to what hangs on the last hinge;
its length follows from one number, the share of their ranges at which all hinges stand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from types import ModuleType

import numpy as np

from ..arrays import FloatArray, Quaternion, Scalar, Vector
from ..backend import array as many
from ..limits.kinds import Fixed, Hinge
from ..model.bodies import Attachment, Body

_STEPS = 129


@dataclass(frozen=True)
class Link:
    """A link: its ball body, its hinge bodies in order, length by share as a rising table, the hinges' ranges."""

    ball: int
    hinges: tuple[int, ...]
    lengths: FloatArray
    shares: FloatArray
    ranges: tuple[tuple[Hinge, float, float], ...]

    @property
    def shortest(self) -> float:
        """The least length that the hinges' ranges allow."""
        return float(self.lengths[0])

    @property
    def longest(self) -> float:
        """The greatest length that the hinges' ranges allow."""
        return float(self.lengths[-1])

    def end(self, bodies: Sequence[Body]) -> Attachment:
        """What hangs on the last hinge."""
        return bodies[self.hinges[-1]].attachments[0]

    def bend(self, numbers: ModuleType, bodies: Sequence[Body], length: Scalar) -> tuple[list[Quaternion], Vector]:
        """The hinges' local rotations that make a length, and the link's vector in the ball's frame."""
        share = numbers.interpolate(length, self.lengths, self.shares)
        turns = [hinge.turned(numbers, low + (high - low) * share) for hinge, low, high in self.ranges]
        return turns, _span(bodies, self.hinges, turns)


def find_links(bodies: Sequence[Body]) -> list[Link]:
    """Every ball joint on which nothing but a run of hinges hangs; `bodies` are those of `many`."""
    links = []
    for ball, body in enumerate(bodies):
        if isinstance(body.limit, Hinge | Fixed):
            continue
        hinges: list[int] = []
        child = _only_hinge(bodies, ball)
        while child is not None:
            hinges.append(child)
            child = _only_hinge(bodies, child)
        if hinges and len(bodies[hinges[-1]].attachments) == 1:
            links.append(_make_link(bodies, ball, tuple(hinges)))
    return links


def _only_hinge(bodies: Sequence[Body], index: int) -> int | None:
    """The hinge that is all that hangs on a body (a pivot about the bone itself changes no length)."""
    attachments = bodies[index].attachments
    if len(attachments) != 1 or attachments[0].effectors or len(attachments[0].children) != 1:
        return None
    child = attachments[0].children[0]
    limit = bodies[child].limit
    usable = isinstance(limit, Hinge) and limit.axis != "Y" and bodies[child].inherits_rotation
    return child if usable else None


def _make_link(bodies: Sequence[Body], ball: int, hinges: tuple[int, ...]) -> Link:
    """Tabulate a link's length, from its greatest one down the side on which it falls farther."""
    shares = np.linspace(0.0, 1.0, _STEPS)
    ranges = _ranges(bodies, hinges)
    turns = [hinge.turned(many, low + (high - low) * shares) for hinge, low, high in ranges]
    lengths = np.broadcast_to(_span(bodies, hinges, turns).length, shares.shape)
    top = int(np.argmax(lengths))
    down, up = _falling(lengths[top:]), _falling(lengths[top::-1])
    count, step = (down, 1) if lengths[top + down - 1] <= lengths[top - up + 1] else (up, -1)
    chosen = (top + step * np.arange(count))[::-1]
    return Link(ball, hinges, lengths[chosen], shares[chosen], ranges)


def _falling(values: FloatArray) -> int:
    """How many values from the first on fall all the way."""
    rises = np.flatnonzero(np.diff(values) >= 0)
    return int(rises[0]) + 1 if len(rises) else len(values)


def _ranges(bodies: Sequence[Body], hinges: Sequence[int]) -> tuple[tuple[Hinge, float, float], ...]:
    """Each hinge and the ends of its range; half a turn either way where it is free."""
    result = []
    for index in hinges:
        limit = bodies[index].limit
        assert isinstance(limit, Hinge)
        result.append((limit, limit.low, limit.high) if limit.bounded else (limit, -pi, pi))
    return tuple(result)


def _span(bodies: Sequence[Body], hinges: Sequence[int], turns: Sequence[Quaternion]) -> Vector:
    """From the ball's head to the end of the last hinge, in the ball's frame."""
    span = bodies[hinges[-1]].attachments[0].offset
    for index, turn in zip(reversed(hinges), reversed(turns), strict=True):
        body = bodies[index]
        span = body.head_offset + (body.rest_turn @ turn) @ span
    return span
