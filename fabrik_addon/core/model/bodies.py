"""The rigid bodies of a solve: each bone between the root and an effector, with its attachments."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import SINGLE, BoolArray, FloatArray
from ..backend.protocol import Backend, Quaternion, Vector
from ..limits.base import Limit
from ..limits.hinge import Hinge
from ..rotations import quaternion_from_matrix
from .effector import Effector
from .skeleton import Skeleton


@dataclass(frozen=True)
class Attachment:
    """A point fixed in a body's frame, with the child bodies and effectors there."""

    offset: Vector
    distance: float
    children: tuple[int, ...]
    effectors: tuple[int, ...]


@dataclass(frozen=True)
class Body:
    """A bone as seen by the two passes; indices point into the list of bodies, parents first."""

    bone: int
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


def participants(skeleton: Skeleton, effectors: Sequence[Effector]) -> list[int]:
    """Bones between the root and some effector, parents first."""
    wanted: set[int] = set()
    for effector in effectors:
        bone = skeleton.index(effector.bone)
        while bone >= 0 and bone not in wanted:
            wanted.add(bone)
            bone = int(skeleton.parents[bone])
    return sorted(wanted)


def effector_offset(skeleton: Skeleton, effector: Effector) -> FloatArray:
    """(3,) the effector's point in its bone's frame."""
    if effector.offset is None:
        return np.array([0.0, skeleton.lengths[skeleton.index(effector.bone)], 0.0])
    return np.array(effector.offset, dtype=np.float64)


@dataclass(frozen=True)
class Reaches:
    """How far each of E effectors can be from the root's head, whatever the rotations.

    Attributes:
        far: (E,) the sum of the path's lengths; infinite for an effector that closes a loop.
        near: (E,) the longest length minus all others, at least zero.
        tolerance_lengths: (E,) the lengths of which tolerances are fractions: `far`, at least the root bone's length.
    """

    far: FloatArray
    near: FloatArray
    tolerance_lengths: FloatArray

    def misses(self, distances: FloatArray, seen: BoolArray) -> BoolArray:
        """(F,) whether a visible target is out of its effector's reach; distances and seen: (F, E)."""
        outside = seen & ((distances > self.far) | (distances < self.near))
        return np.asarray(outside.any(axis=1))


def path_reaches(skeleton: Skeleton, effectors: Sequence[Effector]) -> Reaches:
    """The reach of every effector; infinite for an effector that closes a loop."""
    # For the path from the root's head to each bone's head: the sum and the largest of the distances between joints.
    sums, longest = np.zeros(len(skeleton)), np.zeros(len(skeleton))
    for bone, parent in enumerate(skeleton.parents):
        if parent >= 0:
            step = math.hypot(*skeleton.head_offset(bone))
            sums[bone], longest[bone] = sums[parent] + step, max(longest[parent], step)
    bones = [skeleton.index(effector.bone) for effector in effectors]
    ends = np.array([math.hypot(*effector_offset(skeleton, effector)) for effector in effectors])
    far = sums[bones] + ends
    near = np.maximum(2.0 * np.maximum(longest[bones], ends) - far, 0.0)
    closed = np.array([effector.target_bone is not None for effector in effectors])
    lengths = np.maximum(far, skeleton.lengths[0])
    # Tolerances need a positive length: an effector on the head of a root without length uses the longest bone.
    lengths = np.where(lengths > 0.0, lengths, skeleton.lengths.max() or 1.0)
    return Reaches(np.where(closed, np.inf, far), np.where(closed, 0.0, near), lengths)


def build_bodies(
    skeleton: Skeleton, effectors: Sequence[Effector], limits: Mapping[str, Limit], backend: Backend
) -> list[Body]:
    """The bodies of a solve, with their constants as values of the backend."""
    bones = participants(skeleton, effectors)
    index_of = {bone: index for index, bone in enumerate(bones)}
    children: dict[int, list[int]] = {bone: [] for bone in bones}
    for bone in bones[1:]:
        children[int(skeleton.parents[bone])].append(bone)
    ends: dict[int, list[int]] = {bone: [] for bone in bones}
    for place, effector in enumerate(effectors):
        ends[skeleton.index(effector.bone)].append(place)
    rest_turns = quaternion_from_matrix(np.stack([skeleton.rest_turn(bone) for bone in bones])).tolist()
    return [
        Body(
            bone=bone,
            parent=index_of.get(int(skeleton.parents[bone]), -1),
            inherits_rotation=bool(skeleton.inherits_rotation[bone]),
            head_offset=backend.Vector(skeleton.head_offset(bone).tolist()),
            rest_turn=backend.Quaternion(rest_turns[index]),
            attachments=_attachments(
                skeleton,
                [(skeleton.head_offset(child), index_of[child]) for child in children[bone]],
                [(effector_offset(skeleton, effectors[place]), place) for place in ends[bone]],
                backend,
            ),
            limit=limits.get(skeleton.names[bone]),
        )
        for index, bone in enumerate(bones)
    ]


def _attachments(
    skeleton: Skeleton,
    children: Sequence[tuple[FloatArray, int]],
    ends: Sequence[tuple[FloatArray, int]],
    backend: Backend,
) -> tuple[Attachment, ...]:
    """The attachments of a bone; points that coincide share one (the paper's sub-base).

    children: points in the bone's frame, each with the index of the child's body. ends: points in the bone's frame,
    each with the index of its effector.
    """
    points: list[tuple[FloatArray, list[int], list[int]]] = []

    def members(offset: FloatArray) -> tuple[list[int], list[int]]:
        for point, bodies, effectors in points:
            if np.abs(point - offset).max() <= SINGLE * skeleton.size:
                return bodies, effectors
        points.append((offset, [], []))
        return points[-1][1], points[-1][2]

    for offset, index in children:
        members(offset)[0].append(index)
    for offset, index in ends:
        members(offset)[1].append(index)
    return tuple(
        Attachment(backend.Vector(offset.tolist()), math.hypot(*offset), tuple(bodies), tuple(effectors))
        for offset, bodies, effectors in points
    )


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
