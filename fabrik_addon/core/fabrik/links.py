"""The rigid bodies of a solve as seen by the two passes, with points on them where children and effectors are."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import sub

import numpy as np

from ..arrays import SINGLE
from ..backend.array import Quaternion, Vector
from ..backend.protocol import Backend
from ..kernel.bodies import Bodies
from ..kernel.goals import Goals
from ..limits.base import Limit
from ..limits.hinge import Hinge
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

    heads: list[Vector] = field(default_factory=list)
    orientations: list[Quaternion] = field(default_factory=list)

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
            head_offset=backend.Vector(bodies.offsets[index].tolist()),
            rest_turn=backend.Quaternion(rest_turns[index]),
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
        yield Attachment(backend.Vector(point), math.hypot(*point), *own)


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
    """The frame of a body with a local rotation; cheap if the rotation is the same on every frame."""
    turn = body.rest_turn @ rotation
    return turn if body.parent < 0 or not body.inherits_rotation else pose.orientations[body.parent] @ turn


def carried_head(body: Body, pose: SweepPose) -> Vector:
    """The head of a body, from the pose of its parent; not for the root."""
    return pose.heads[body.parent] + pose.orientations[body.parent] @ body.head_offset


def place_bodies(bodies: Sequence[Body], local: Sequence[Quaternion], root: Vector) -> SweepPose:
    """Forward kinematics: the bodies' pose from local rotations and the root's head."""
    pose = SweepPose()
    for body, rotation in zip(bodies, local, strict=True):
        pose.heads.append(root if body.parent < 0 else carried_head(body, pose))
        pose.orientations.append(carried_turn(body, pose, rotation))
    return pose


def attached_effectors(bodies: Sequence[Body]) -> Iterator[tuple[int, int, Attachment]]:
    """Every effector with its body and attachment."""
    for index, body in enumerate(bodies):
        for attachment in body.attachments:
            for effector in attachment.effectors:
                yield effector, index, attachment
