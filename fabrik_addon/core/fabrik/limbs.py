"""A ball joint and the run of hinges that follows it, seen from outside: one link of variable length.

Upper arm and forearm, thigh and shin, a finger. The link runs from the ball's head to what hangs on the last hinge;
its length follows from one number, the share of their ranges at which all hinges stand.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from ..backend import array
from ..backend.protocol import Backend, Quaternion, Scalar, Vector
from ..limits.base import Limit
from ..model.bodies import Attachment, Body, hung_effectors, only_child

_STEPS = 129
# A hinge about it is a pivot: it bends nothing.
_ALONG = (0.0, 1.0, 0.0)


@dataclass(frozen=True)
class HingeLimb:
    """A link: its ball body, its hinge bodies in order, length by share as a rising table, the hinges' limits."""

    ball: int
    hinges: tuple[int, ...]
    lengths: FloatArray
    shares: FloatArray
    limits: tuple[Limit, ...]

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

    def bend(self, backend: Backend, bodies: Sequence[Body], length: Scalar) -> tuple[list[Quaternion], Vector]:
        """The hinges' local rotations that make a length, and the link's vector in the ball's frame."""
        share = backend.interpolate(length, self.lengths, self.shares)
        rotations = [limit.at_share(backend, share) for limit in self.limits]
        return rotations, _span(bodies, self.hinges, rotations)


def find_hinge_limbs(bodies: Sequence[Body]) -> list[HingeLimb]:
    """Every ball joint on which nothing but a run of hinges hangs; `bodies` are on arrays."""
    limbs = []
    for ball, body in enumerate(bodies):
        if body.limit is not None and body.limit.freedom < 3:
            continue
        hinges: list[int] = []
        child = _only_hinge(bodies, ball)
        while child is not None:
            hinges.append(child)
            child = _only_hinge(bodies, child)
        if hinges and len(bodies[hinges[-1]].attachments) == 1:
            limbs.append(_make_limb(bodies, ball, tuple(hinges)))
    return limbs


def _only_hinge(bodies: Sequence[Body], index: int) -> int | None:
    """The hinge that is all that hangs on a body (a pivot about the bone itself changes no length)."""
    child = only_child(bodies[index])
    if child is None or not bodies[child].inherits_rotation:
        return None
    hinge = bodies[child].hinge
    return None if hinge is None or hinge.turn_axis == _ALONG else child


def _make_limb(bodies: Sequence[Body], ball: int, hinges: tuple[int, ...]) -> HingeLimb:
    """Tabulate a link's length, from its greatest one down the side on which it falls farther."""
    shares = np.linspace(0.0, 1.0, _STEPS)
    limits = tuple(limit for index in hinges if (limit := bodies[index].hinge) is not None)
    rotations = [limit.at_share(array, shares) for limit in limits]
    lengths = np.broadcast_to(_span(bodies, hinges, rotations).length, shares.shape)
    top = int(np.argmax(lengths))
    down, up = _falling(lengths[top:]), _falling(lengths[top::-1])
    count, step = (down, 1) if lengths[top + down - 1] <= lengths[top - up + 1] else (up, -1)
    chosen = (top + step * np.arange(count))[::-1]
    return HingeLimb(ball, hinges, lengths[chosen], shares[chosen], limits)


def _falling(values: FloatArray) -> int:
    """How many values from the first on fall all the way."""
    rises = np.flatnonzero(np.diff(values) >= 0)
    return int(rises[0]) + 1 if len(rises) else len(values)


def _span(bodies: Sequence[Body], hinges: Sequence[int], rotations: Sequence[Quaternion]) -> Vector:
    """From the ball's head to the end of the last hinge, in the ball's frame."""
    span = bodies[hinges[-1]].attachments[0].offset
    for index, turn in zip(reversed(hinges), reversed(rotations), strict=True):
        body = bodies[index]
        span = body.head_offset + (body.rest_turn @ turn) @ span
    return span


@dataclass(frozen=True)
class BendLimb:
    """A run of bodies that ends at an effector, each hanging alone on the one before it.

    Attributes:
        effector: the effector.
        bodies: two or more bodies, base first, that turn with the limb.
        middle: those of them at whose heads the limb bends.
        end: (3,) the point on the last of them at which it ends, in its frame.
        hand: the body after them that keeps its frame, because more hangs on it than the effector or because its frame
            is wanted; None where the limb ends at the effector itself.
    """

    effector: int
    bodies: tuple[int, ...]
    middle: tuple[int, ...]
    end: FloatArray
    hand: int | None


def find_bend_limbs(
    bodies: Sequence[Body], hinge_limbs: Sequence[HingeLimb], count: int, oriented: Collection[int]
) -> list[BendLimb]:
    """The limb of every effector that has one: from its sub-base, the root, or the last ball before a run of hinges.

    Args:
        bodies: parents first.
        hinge_limbs: the limited limbs among them, which begin at a ball.
        count: how many effectors there are, the partners of loops come after them.
        oriented: those that keep the frames of their bodies.
    """
    hinges = {limb.ball: limb.hinges for limb in hinge_limbs}
    limbs = []
    for effector, holder, attachment in hung_effectors(bodies):
        alone = len(bodies[holder].attachments) == len(attachment.effectors) == 1 and not attachment.children
        hand = None if alone and effector not in oriented else holder
        run = _run_to(bodies, holder, hand is not None, hinges)
        if len(run) > 1 and effector < count:
            middle = tuple(index for index in hinges.get(run[0], ()) if index in run) or run[1:]
            limbs.append(BendLimb(effector, run, middle, _array(bodies[run[-1]].attachments[0].offset), hand))
    return limbs


def _run_to(bodies: Sequence[Body], last: int, before: bool, balls: Collection[int]) -> tuple[int, ...]:
    """The bodies up from one, or from the one before it, as long as nothing else hangs on them."""
    run = [] if before else [last]
    parent = bodies[last].parent
    while last not in balls or (before and not run):
        if parent < 0 or only_child(bodies[parent]) != last:
            break
        last, parent = parent, bodies[parent].parent
        run.insert(0, last)
    return tuple(run)


def straight_runs(bodies: Sequence[Body]) -> list[list[int]]:
    """The limbs: runs of two or more bodies, each with one attachment on which just the next one sits."""
    runs: list[list[int]] = []
    for index, body in enumerate(bodies):
        if len(body.attachments) != 1 or body.attachments[0].distance == 0:
            continue
        if runs and runs[-1][-1] == body.parent and only_child(bodies[body.parent]) == index:
            runs[-1].append(index)
        else:
            runs.append([index])
    return [run for run in runs if len(run) > 1]


def _array(offset: Vector) -> FloatArray:
    return np.array([offset.x, offset.y, offset.z], dtype=np.float64)
