"""The rigid bodies of a solve as the two passes see them, with points on them where children and effectors are.

A ball joint and the hinges that follow it are treated as one link of variable length: upper arm and forearm, thigh and
shin, or a finger. The link goes from the ball's head to the attachment of the last hinge. Its length depends on one
number from 0 to 1: the angles of all hinges, as the same fraction of their ranges.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import sub

import numpy as np

from ..arrays import SINGLE, FloatArray
from ..backend.array import Backend, Quaternion, Scalar, Vector, many
from ..kernel.bodies import Bodies
from ..kernel.goals import Goals
from ..limits import Hinge, Limit
from ..rotations import quaternion_from_matrix


@dataclass(frozen=True)
class Attachment:
    """A point fixed in a body's frame, with the child bodies and effectors there."""

    offset: Vector
    distance: float
    children: tuple[int, ...]
    effectors: tuple[int, ...]


@dataclass(frozen=True)
class Body:
    """A bone as seen by the two passes; indices are those of `kernel.bodies.Bodies`."""

    parent: int
    inherits_rotation: bool
    head_offset: Vector
    rest_turn: Quaternion
    attachments: tuple[Attachment, ...]
    limit: Limit | None = None

    @property
    def hinge(self) -> Hinge | None:
        """The limit if it allows only one axis."""
        return self.limit if isinstance(self.limit, Hinge) else None


@dataclass(frozen=True)
class SweepPose:
    """Heads and orientations of all bodies in armature space. The passes change them in place."""

    heads: list[Vector]
    orientations: list[Quaternion]

    def point(self, body: int, attachment: Attachment) -> Vector:
        """The position of a body's attachment, armature space."""
        return self.heads[body] + self.orientations[body] @ attachment.offset


def make_links(bodies: Bodies, goals: Goals, limits: Sequence[Limit | None], backend: Backend) -> list[Body]:
    """The bodies for the passes, with their constants as values of the backend."""
    rest_turns = quaternion_from_matrix(bodies.rest_turns).tolist()
    return [
        Body(
            parent=int(bodies.parents[index]),
            inherits_rotation=bool(bodies.inherits[index]),
            head_offset=backend.vector_of(bodies.offsets[index].tolist()),
            rest_turn=backend.quaternion_of(rest_turns[index]),
            attachments=tuple(_attachments(bodies, goals, index, backend)),
            limit=limit,
        )
        for index, limit in enumerate(limits)
    ]


def _attachments(bodies: Bodies, goals: Goals, body: int, backend: Backend) -> Iterator[Attachment]:
    """The attachments of a body; points that coincide share one (the paper's sub-base)."""
    children, effectors = np.flatnonzero(bodies.parents == body).tolist(), np.flatnonzero(goals.on == body).tolist()
    points = [*bodies.offsets[children].tolist(), *goals.offsets[effectors].tolist()]
    # Plain numbers, since arrays take ten times as long for the few points of a body.
    near, groups = SINGLE * bodies.skeleton.size, dict[int, list[int]]()
    for index, point in enumerate(points):
        alike = (place for place, other in enumerate(points) if max(map(abs, map(sub, point, other))) <= near)
        groups.setdefault(next(alike), []).append(index)
    for place, members in sorted(groups.items()):
        at = [index for index in members if index < len(children)]
        ends = [index - len(children) for index in members[len(at) :]]
        point = points[place]
        own = tuple(children[index] for index in at), tuple(effectors[index] for index in ends)
        yield Attachment(backend.vector_of(point), math.hypot(*point), *own)


def only_child(body: Body) -> int | None:
    """The only child of a body without effectors; None if it has none or several."""
    if len(body.attachments) != 1 or body.attachments[0].effectors or len(body.attachments[0].children) != 1:
        return None
    return body.attachments[0].children[0]


def carried_frame(body: Body, pose: SweepPose) -> Quaternion:
    """The frame of a body without its local rotation: its parent's frame times its rest rotation."""
    if body.parent < 0 or not body.inherits_rotation:
        return body.rest_turn
    return pose.orientations[body.parent] @ body.rest_turn


def carried_turn(body: Body, pose: SweepPose, rotation: Quaternion) -> Quaternion:
    """The frame of a body after a local rotation; fast if the rotation is the same on every frame."""
    turn = body.rest_turn @ rotation
    return turn if body.parent < 0 or not body.inherits_rotation else pose.orientations[body.parent] @ turn


def carried_head(body: Body, pose: SweepPose) -> Vector:
    """The head of a body, from the pose of its parent; not for the root."""
    return pose.heads[body.parent] + pose.orientations[body.parent] @ body.head_offset


def place_bodies(bodies: Sequence[Body], local: Sequence[Quaternion], root: Vector) -> SweepPose:
    """Forward kinematics: the bodies' pose from local rotations and the root's head."""
    pose = SweepPose([], [])
    for body, rotation in zip(bodies, local, strict=True):
        pose.heads.append(root if body.parent < 0 else carried_head(body, pose))
        pose.orientations.append(carried_turn(body, pose, rotation))
    return pose


_STEPS = 129


@dataclass(frozen=True)
class HingeLimb:
    """A link: its ball, its hinges in order, their limits, and a table from lengths to fractions of their ranges."""

    ball: int
    hinges: tuple[int, ...]
    lengths: FloatArray
    shares: FloatArray
    limits: tuple[Hinge, ...]

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest length that the hinges' ranges allow."""
        return float(self.lengths[0]), float(self.lengths[-1])

    def end(self, bodies: Sequence[Body]) -> Attachment:
        """The attachment of the last hinge."""
        return bodies[self.hinges[-1]].attachments[0]

    def bend(self, backend: Backend, bodies: Sequence[Body], length: Scalar) -> tuple[list[Quaternion], Vector]:
        """The hinges' local rotations for a length, and the vector along the link in the ball's frame."""
        share = np.interp(length, self.lengths, self.shares)
        rotations = [limit.at_range_share(backend, share) for limit in self.limits]
        return rotations, _span(bodies, self.hinges, rotations)


def find_hinge_limbs(bodies: Sequence[Body]) -> list[HingeLimb]:
    """Every ball joint whose only child is a run of hinges; the backend of `bodies` is `array`."""
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
    """The only child of a body if it is a hinge that changes the length of the limb, thus no pivot; else None."""
    child = only_child(bodies[index])
    if child is None or not bodies[child].inherits_rotation:
        return None
    hinge = bodies[child].hinge
    return None if hinge is None or hinge.rotation_axis == (0.0, 1.0, 0.0) else child


def _make_limb(bodies: Sequence[Body], ball: int, hinges: tuple[int, ...]) -> HingeLimb:
    """A limb with a table of its lengths: from the longest to the shorter of those at the ends of the range."""
    shares = np.linspace(0.0, 1.0, _STEPS)
    limits = tuple(limit for index in hinges if (limit := bodies[index].hinge) is not None)
    rotations = [limit.at_range_share(many, shares) for limit in limits]
    lengths = np.broadcast_to(_span(bodies, hinges, rotations).length, shares.shape)
    top = int(np.argmax(lengths))
    down, up = _falling(lengths[top:]), _falling(lengths[top::-1])
    count, step = (down, 1) if lengths[top + down - 1] <= lengths[top - up + 1] else (up, -1)
    chosen = (top + step * np.arange(count))[::-1]
    return HingeLimb(ball, hinges, lengths[chosen], shares[chosen], limits)


def _falling(values: FloatArray) -> int:
    """The number of values before the first one that is not smaller than the value before it."""
    rises = np.flatnonzero(np.diff(values) >= 0)
    return int(rises[0]) + 1 if len(rises) else len(values)


def _span(bodies: Sequence[Body], hinges: Sequence[int], rotations: Sequence[Quaternion]) -> Vector:
    """The vector from the ball's head to the end of the last hinge, in the ball's frame."""
    span = bodies[hinges[-1]].attachments[0].offset
    for index, turn in zip(reversed(hinges), reversed(rotations), strict=True):
        body = bodies[index]
        span = body.head_offset + (body.rest_turn @ turn) @ span
    return span


@dataclass(frozen=True)
class BendLimb:
    """A run of bodies that ends at an effector, each the only child of the one before it.

    Attributes:
        effector: index of the effector.
        bodies: two or more bodies, base first, that rotate with the limb.
        middle: those of them at whose heads the limb bends.
        end: (3,) the limb's end in the frame of the last body.
    """

    effector: int
    bodies: tuple[int, ...]
    middle: tuple[int, ...]
    end: FloatArray


def find_bend_limbs(bodies: Sequence[Body], hinge_limbs: Sequence[HingeLimb], goals: Goals) -> list[BendLimb]:
    """The limbs that end at effectors; each begins at a sub-base, the root, or the last ball before hinges.

    bodies: parents first. hinge_limbs: their limbs of a ball and hinges. goals: of the same bodies.
    """
    hinges = {limb.ball: limb.hinges for limb in hinge_limbs}
    limbs = []
    for effector in np.argsort(goals.on[: goals.count], kind="stable").tolist():
        holder = int(goals.on[effector])
        first, *others = bodies[holder].attachments
        alone = not others and len(first.effectors) == 1 and not first.children
        # A hand with other children, or with a target rotation, does not belong to the limb.
        run = _run_to(bodies, holder, not alone or effector in goals.oriented, hinges)
        if len(run) > 1:
            middle = tuple(index for index in hinges.get(run[0], ()) if index in run) or run[1:]
            end = bodies[run[-1]].attachments[0].offset
            limbs.append(BendLimb(effector, run, middle, np.array([end.x, end.y, end.z])))
    return limbs


def _run_to(bodies: Sequence[Body], last: int, before: bool, balls: Collection[int]) -> tuple[int, ...]:
    """The bodies from `last` upward while each is an only child; with `before`, from the parent of `last`."""
    run = [] if before else [last]
    parent = bodies[last].parent
    while last not in balls or (before and not run):
        if parent < 0 or only_child(bodies[parent]) != last:
            break
        last, parent = parent, bodies[parent].parent
        run.insert(0, last)
    return tuple(run)


def straight_runs(bodies: Sequence[Body]) -> list[list[int]]:
    """Runs of two or more bodies, each of which has the next one as its only child."""
    runs: list[list[int]] = []
    for index, body in enumerate(bodies):
        if len(body.attachments) != 1 or body.attachments[0].distance == 0:
            continue
        if runs and runs[-1][-1] == body.parent and only_child(bodies[body.parent]) == index:
            runs[-1].append(index)
        else:
            runs.append([index])
    return [run for run in runs if len(run) > 1]
