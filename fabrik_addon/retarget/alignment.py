"""Aligns two bodies (pose, axes, size, floor, directions of limbs), and transfers rotations from one to the other.

Each bone gets the rotation of its source bones, both relative to the poses in which the bodies are compared: the
rig's rest pose, and the source's or the frame on which the source is most similar to the rig. In some files the rest
pose is no pose of a body: all limbs may be along one axis.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..core import Skeleton, forward_kinematics
from ..core.arrays import ROUNDING, FloatArray, IntArray, evenly_spread, lengths, times
from ..core.rotations import (
    IDENTITY,
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    rotation_between,
    slerp,
)
from ..human.naming_schemes import LEG
from ..human.rest_body import ALONG, FLAT_FOOT, BodyAxes, RestBody, RestBone, degrees_between, length, square, unit
from .motion import Motion, RetargetError
from .pairs import Pair, above, depth

# Parts whose directions are compared to choose a reference pose, beyond the trunk and the line of the shoulders.
_KEPT: Final = ("chest", "neck", "thigh", "shin", "foot")
# Weight of the bend of arms, and of their angle forward or back: in a T or an A pose both are zero. With 0, upper arms
# are up to 80 degrees off.
_ARMS_COUNT: Final = 0.3
# Degrees: the largest RMS difference from the rig's rest pose with which a source's rest pose is used. It is up to 8
# for T poses, and 85 or more for poses with all limbs along one axis.
_LIKE: Final = 30.0
# Number of frames that are compared.
_LOOKED_AT: Final = 100
# Z is up if the source's trunk points along it on this fraction of the frames.
_STANDS: Final = 0.1
# Degrees: a trunk tilted by more is not upright.
MAX_TILT: Final = 30.0
# Degrees: a leg is bent if a part of it is tilted by more.
_STANDING: Final = 35.0
# For each pose of the arms, the largest angle in degrees between arms and straight down.
_ARM_POSES: Final = (
    (25.0, "its arms hanging"),
    (65.0, "its arms in an A pose"),
    (115.0, "its arms in a T pose"),
    (180.0, "its arms raised"),
)
# Parts that may mark the top of the trunk.
_TOPS: Final = ("neck", "head", "upper_arm", "shoulder", "chest")
_UP: Final = np.array([0.0, 0.0, 1.0])
# People face in this direction after import into Blender, unless the file gives another one.
_FORWARD: Final = np.array([0.0, -1.0, 0.0])
# Parts whose direction at rest depends on the pose, such as a T or an A pose. A trunk's curve and a foot's slope belong
# to the body's shape instead.
_POSED: Final = frozenset({"upper_arm", "forearm", "hand", "finger", "palm", "thigh", "shin"})
# The rest pose determines the floor if planted ankles of the take are as high as at rest, to within this fraction of
# the legs' length.
_SAME_FLOOR: Final = 0.1
# The height of planted ankles is this percentile of their heights in the take.
_STANDING_PERCENT: Final = 5.0
# Meters from hip to ankle of an adult; the thresholds of foot contacts are for this length.
USUAL_LEG: Final = 0.85
# Joints of the same body may differ by this fraction of a rig's size.
_ALIKE: Final = 1e-4


@dataclass(frozen=True, eq=False)
class Reference:
    """The pose of the source that is compared with the rig at rest.

    axes: in its world, up and the direction that corresponds to the rig's forward. frame: counted from 0; None: the
    rest pose.
    """

    body: RestBody
    axes: BodyAxes
    frame: int | None

    @property
    def trunk_tilt(self) -> float:
        """Degrees between the trunk and up."""
        return float(degrees_between(_trunk(self.body), self.axes.up))

    @property
    def pose(self) -> str:
        """The pose in words, for messages."""
        if self.trunk_tilt > MAX_TILT:
            return f"leaning by {self.trunk_tilt:.0f}°"
        below, arms = (
            [
                float(degrees_between(self.body.direction(name), -self.axes.up))
                for part in parts
                for name in self.body.named(part)
            ]
            for parts in (("thigh", "shin"), ("upper_arm",))
        )
        stance = "standing upright" if max(below, default=0.0) <= _STANDING else "upright with bent legs"
        if not arms:
            return stance
        raised = float(np.mean(arms))
        return f"{stance}, {next(words for most, words in _ARM_POSES if raised <= most)}"


@dataclass(frozen=True, eq=False)
class Alignment:
    """The mapping from the source's world space to the rig's armature space.

    Attributes:
        turn: (4,) the rotation, a unit quaternion; axes: (3, 3) the same as a matrix.
        scale: rig's units for one meter of the source's movement.
        source_origin, target_origin: (3,) points that correspond: below the body, at the height of planted ankles.
        corrections: by bone of the rig, (4,) the rotation of its limb from its direction at rest to that of the source,
            armature space.
    """

    turn: FloatArray
    axes: FloatArray
    scale: float
    source_origin: FloatArray
    target_origin: FloatArray
    corrections: dict[str, FloatArray]

    def to_rig(self, points: FloatArray) -> FloatArray:
        """Map points (..., 3) from the source's world space to the rig's armature space."""
        return np.asarray(self.target_origin + self.scale * (points - self.source_origin) @ self.axes.T)


def find_reference(motion: Motion, rest: RestBody, target: RestBody, frame: int | None) -> Reference:
    """The rest pose if it is similar to that of the rig, else the frame on which the source is most similar to the rig.

    rest: the source's. frame: use this frame instead, counted from 0. Raises RetargetError if either is not a body.
    """
    if target.axes is None:
        raise RetargetError(
            "The rig's hips, head, or left and right bones are not known, so its up and forward directions are "
            "unknown: map these bones"
        )
    wanted = _directions(target, facing(target, target.axes.up))
    at_rest = rest.axes if frame is None else None
    if at_rest is not None and _differences(rest, at_rest.up, wanted) > _LIKE:
        at_rest = None
    if at_rest is not None and at_rest.up @ _UP > ALONG:
        return Reference(rest, at_rest, None)
    frames = evenly_spread(len(motion), _LOOKED_AT)
    bodies = rest.posed(motion.bones_at(frames))
    up = _up_of(bodies)
    if at_rest is not None:
        # Some files have a rest pose with Y up, and a motion with Z up.
        stood = rest if up @ _UP < ALONG else rest.posed(_rotated(rest, rotation_between(at_rest.up, _UP)))
        assert stood.axes is not None
        return Reference(stood, stood.axes, None)
    if frame is None:
        frame = int(frames[_differences(bodies, up, wanted).argmin()])
    body, forward = rest.posed(motion.bones_at(frame)), _FORWARD
    if body.axes is None:
        raise RetargetError(
            f"{motion.name!r}: its hips, head, or left and right bones are not known, so its up and forward "
            "directions are unknown: map these bones"
        )
    if abs(up @ forward) > 0.0:
        forward = _nearest_axis(facing(body, up)[:, 0])
    axes = BodyAxes(up, forward, np.cross(up, forward), np.zeros(3))
    return Reference(body, axes, frame)


def _up_of(bodies: RestBody) -> FloatArray:
    """(3,) up in the world of a source, from its body as posed on some frames.

    This is the axis along which most bodies point, because on a single frame the source may be lying. If someone lies
    on most frames but stands on a few, it is Z.
    """
    if bodies.axes is None:
        return _UP
    ups, hips, feet = bodies.axes.up, bodies.head_of("thigh"), bodies.head_of("foot")
    if hips is not None and feet is not None:
        stands = (ups @ _UP > ALONG) & (unit(feet - hips) @ _UP < -ALONG)
        if stands.mean() >= _STANDS:
            return _UP
    return _nearest_axis(ups.sum(axis=0))


def _nearest_axis(direction: FloatArray) -> FloatArray:
    """(3,) the coordinate axis nearest to a direction."""
    axis = int(np.argmax(np.abs(direction)))
    return np.asarray(np.sign(direction[axis]) * np.eye(3)[axis])


def _rotated(body: RestBody, turn: FloatArray) -> dict[str, RestBone]:
    """The bones of a body rotated as a whole about the origin; turn: (4,)."""
    matrix = matrix_from_quaternion(turn)
    return {name: replace(bone, head=matrix @ bone.head, axes=matrix @ bone.axes) for name, bone in body.bones.items()}


def _differences(body: RestBody, up: FloatArray, other: Mapping[tuple[str, str], FloatArray]) -> FloatArray:
    """(...) RMS degrees between a body's poses and a rig at rest. up: (3,) of the body; other: of `_directions`."""
    if body.axes is None:
        return np.array(180.0)
    axes = facing(body, up)
    own = _directions(body, axes)
    # The degrees by which each compared angle differs from its usual value, with the weight of the angle.
    off = [(1.0, degrees_between(own[key], other[key])) for key in own if key in other]
    for side in ("L", "R"):
        arm = [body.direction(name) for part in ("upper_arm", "forearm") for name in body.named(part, side)[:1]]
        if len(arm) == 2:
            off += [(_ARMS_COUNT, degrees_between(arm[0], axes[..., 0]) - 90.0), (_ARMS_COUNT, degrees_between(*arm))]
    weights, angles = zip(*off, strict=True)
    return np.asarray(np.sqrt(np.average(np.square(angles), axis=0, weights=weights)))


def _directions(body: RestBody, axes: FloatArray) -> dict[tuple[str, str], FloatArray]:
    """(..., 3) the direction of each part in the body's own axes (..., 3, 3), by part and side."""
    found = {(role.part, role.side): body.direction(name) for name, role in body.roles.items() if role.part in _KEPT}
    found["trunk", ""] = _trunk(body)
    if (lengths(shoulders := body.across("upper_arm")) > ROUNDING).all():
        found["shoulders", ""] = unit(shoulders)
    return {key: times(np.swapaxes(axes, -1, -2), direction) for key, direction in found.items()}


def _trunk(body: RestBody) -> FloatArray:
    """(..., 3) the direction from the hip joints to the neck of a body that has axes; up for a body of legs."""
    low, high = body.first_of("thigh", "hips"), body.first_of(*_TOPS)
    assert low is not None
    assert body.axes is not None
    return body.axes.up if high is None else unit(high - low)


def facing(body: RestBody, up: FloatArray) -> FloatArray:
    """(..., 3, 3) forward, left and up of a body as columns; left is along the line between its hip joints.

    The axes of the body must be known. up: (3,).
    """
    assert body.axes is not None
    left = square(body.across("thigh"), up)
    for other in (np.cross(up, body.axes.forward), body.axes.left):
        left = np.where(lengths(left)[..., None] > ROUNDING, left, other)
    left = unit(left)
    return np.asarray(np.stack([np.cross(left, up), left, np.broadcast_to(up, left.shape)], axis=-1))


def align(motion: Motion, reference: Reference, target: RestBody, pairs: Sequence[Pair]) -> Alignment:
    """Align a source, in its reference pose, with a rig at rest."""
    source = reference.body
    assert target.axes is not None
    axes = target.axes.columns @ reference.axes.columns.T
    leg = leg_length(source)
    up = reference.axes.up
    standing = _lowest_ankle(source, up)
    feet = [list(motion.names).index(name) for name in source.named("foot")]
    if feet:
        taken = float(np.percentile((motion.heads[:, feet] @ up).min(axis=1), _STANDING_PERCENT))
        # On a reference frame the body may be off the floor.
        at_rest = reference.frame is None and abs(taken - standing) <= _SAME_FLOOR * leg
        standing = standing if at_rest else taken
    # A limb's rotation from rig to source adds to that of the limb above it.
    corrections: dict[str, FloatArray] = {}
    hips, chest = (
        quaternion_from_matrix(axes @ _trunk_frame(source, part) @ _trunk_frame(target, part).T)
        for part in ("thigh", "upper_arm")
    )
    for pair in sorted(pairs, key=lambda pair: depth(target, pair.bone)):
        correction = _base(reference, target, axes, pair.bone, hips, chest)
        if target.roles[pair.bone].part in _POSED:
            above_it = (bone for bone in above(target.bones, pair.bone) if bone in corrections)
            if (carrier := next(above_it, None)) is not None and target.roles[carrier].part in _POSED:
                correction = corrections[carrier]
            own = matrix_from_quaternion(correction) @ target.direction(pair.bone)
            wanted = axes @ source.direction(pair.source)
            correction = product(rotation_between(own[None], wanted[None])[0], correction)
        corrections[pair.bone] = correction
    source_origin = motion.origin - (motion.origin @ up) * up + standing * up
    target_origin = _lowest_ankle(target, target.axes.up) * target.axes.up
    scale = leg_length(target) / leg
    return Alignment(quaternion_from_matrix(axes), axes, scale, source_origin, target_origin, corrections)


def _base(
    reference: Reference, target: RestBody, axes: FloatArray, bone: str, hips: FloatArray, chest: FloatArray
) -> FloatArray:
    """(4,) the rotation from a part of the rig at rest to the source's, armature space, without rotations of limbs.

    hips, chest: (4,) these rotations of both ends of the trunk.

    A rest pose is rotated as a whole. On a frame of the take, hips, shoulders and feet face different directions, so
    each has its own rotation. Rotations of the spine are interpolated between those of hips and shoulders.
    """
    source, role = reference.body, target.roles[bone]
    assert source.axes is not None
    assert target.axes is not None
    if reference.frame is None:
        return quaternion_from_matrix(axes @ source.axes.columns @ target.axes.columns.T)
    if role.part in LEG:
        ups = (reference.axes.up, target.axes.up)
        feet = [_foot_frame(body, role.side, up) for body, up in zip((source, target), ups, strict=True)]
        if feet[0] is not None and feet[1] is not None:
            return quaternion_from_matrix(axes @ feet[0] @ feet[1].T)
    if role.part in {"hips", "root", "rigid", *LEG}:
        return hips
    if role.part not in {"spine", "chest"}:
        return chest
    low, high = target.head_of("thigh"), target.head_of("upper_arm")
    if low is None or high is None:
        return hips
    up, joint = _trunk(target), target.bones[bone]
    height = (0.5 * (joint.head + joint.tail) - low) @ up
    share = np.clip(height / max(float((high - low) @ up), ROUNDING), 0.0, 1.0)
    return np.asarray(slerp(hips[None], chest[None], share[None])[0])


def _trunk_frame(body: RestBody, part: str) -> FloatArray:
    """(3, 3) forward, left and up of a trunk as columns; left is along the line between both sides of a part."""
    up, line = _trunk(body), body.across(part)
    if length(line) < ROUNDING:
        return facing(body, up)
    left = unit(line)
    up = unit(square(up, left))
    return np.asarray(np.stack([np.cross(left, up), left, up], axis=1))


def _foot_frame(body: RestBody, side: str, up: FloatArray) -> FloatArray | None:
    """(3, 3) ahead, left and up as columns; ahead is the horizontal direction of a foot. None if it is unknown."""
    feet = body.named("foot", side)
    if not feet or length(ahead := square(body.direction(feet[0]), up)) < FLAT_FOOT:
        return None
    ahead = unit(ahead)
    return np.asarray(np.stack([ahead, np.cross(up, ahead), up], axis=1))


def _lowest_ankle(body: RestBody, up: FloatArray) -> float:
    """The height of the lowest ankle along `up`, in the body's units; 0 without feet."""
    return min((float(body.bones[name].head @ up) for name in body.named("foot")), default=0.0)


def leg_length(body: RestBody) -> float:
    """The length of a body's legs from hip to ankle; that of its trunk if it has no legs."""
    for parts in (("thigh", "shin", "foot"), ("hips", "head"), ("hips", "neck"), ("spine", "neck")):
        spans = [span for side in ("L", "R", "") if (span := limb_length(body, parts, side)) > 0.0]
        if spans:
            return float(np.mean(spans))
    raise RetargetError("There are neither legs nor a trunk, so the size is unknown: map the bones of the legs")


def limb_length(body: RestBody, parts: Sequence[str], side: str | None) -> float:
    """The length along the heads of some parts; 0 if the body lacks one of them. side: None for any."""
    joints = [joint for part in parts if (joint := body.head_of(part, side)) is not None]
    return path_length(joints) if len(joints) == len(parts) else 0.0


def path_length(points: Sequence[FloatArray] | FloatArray) -> float:
    """The length of the path along points (3,)."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def is_same_body(source: RestBody, target: RestBody, pairs: Sequence[Pair], alignment: Alignment) -> bool:
    """Whether a rig is the source's body at any size: all joints at corresponding positions at rest."""
    if any(pair.before for pair in pairs):
        return False
    own = np.array([target.bones[pair.bone].head for pair in pairs])
    other = alignment.scale * np.array([source.bones[pair.source].head for pair in pairs]) @ alignment.axes.T
    off = (own - own[0]) - (other - other[0])
    return bool(np.abs(off).max() <= _ALIKE * np.ptp(own, axis=0).max())


class Transfer:
    """Transfers the rotations of a source to a tree of bones; prepared once for many frames.

    hips: the bone of the skeleton that follows the source's location, which is the midpoint of its hip joints.
    """

    def __init__(
        self,
        motion: Motion,
        source: RestBody,
        skeleton: Skeleton,
        target: RestBody,
        pairs: Sequence[Pair],
        alignment: Alignment,
    ) -> None:
        self.skeleton, self.alignment, self.motion = skeleton, alignment, motion
        indices = {name: index for index, name in enumerate(motion.names)}
        rest = quaternion_from_matrix(skeleton.rest[:, :3, :3])
        self._from_carrier = conjugate(quaternion_from_matrix(skeleton.rest_turns))
        # For each bone: its source bones, each with the rotation of the rig's bone at rest in the source bone's frame.
        self._pairs: dict[int, list[tuple[int, FloatArray]]] = {}
        self._shares: dict[int, float] = {}
        for pair in pairs:
            bone = skeleton.index(pair.bone)
            own = product(alignment.corrections[pair.bone], rest[bone])
            self._shares[bone], self._pairs[bone] = pair.share, []
            for name in [pair.before, pair.source] if pair.before else [pair.source]:
                theirs = product(alignment.turn, quaternion_from_matrix(source.bones[name].axes))
                self._pairs[bone].append((indices[name], product(conjugate(theirs), own)))
        self.hips = skeleton.index(target.named("hips")[0])
        own_joints, joints = (body.named("thigh") or body.named("hips") for body in (target, source))
        hips = skeleton.rest[self.hips]
        middle = np.mean([target.bones[name].head for name in own_joints], axis=0)
        self._middle = hips[:3, :3].T @ (middle - hips[:3, 3])
        self._joints: IntArray = np.array([indices[name] for name in joints])

    def poses(self, frames: slice) -> tuple[FloatArray, FloatArray]:
        """(F, J, 4) local rotations and (F, 3) the root's head, armature space, on some frames."""
        motion, skeleton = self.motion, self.skeleton
        count = len(motion.heads[frames])
        world: list[FloatArray] = []
        local = np.empty((count, len(skeleton), 4))
        for bone, parent in enumerate(skeleton.parents):
            carried = world[parent] if parent >= 0 and skeleton.inherits_rotation[bone] else None
            if bone in self._pairs:
                turned = self.turned(bone, frames)
                within = turned if carried is None else product(conjugate(carried), turned)
                local[:, bone] = product(self._from_carrier[bone], within)
            else:
                own = np.broadcast_to(conjugate(self._from_carrier[bone]), (count, 4))
                turned = own if carried is None else product(carried, own)
                local[:, bone] = IDENTITY
            world.append(turned)
        # The root is placed so that the hip joints coincide with those of the source.
        wanted = self.alignment.to_rig(motion.heads[frames][:, self._joints].mean(axis=1))
        path = skeleton.path(self.hips)
        matrices = forward_kinematics(skeleton.part(path), local[:, path])[:, -1]
        reached = matrices[:, :3, 3] + matrices[:, :3, :3] @ self._middle
        return local, np.asarray(skeleton.rest[0, :3, 3] + wanted - reached)

    def carried(self, local: FloatArray) -> list[FloatArray]:
        """For each bone, its (F, 4) rotations in armature space; local: (F, J, 4) local rotations."""
        world: list[FloatArray] = []
        for bone, parent in enumerate(self.skeleton.parents):
            own = product(conjugate(self._from_carrier[bone]), local[:, bone])
            world.append(product(world[parent], own) if self.skeleton.inherits_rotation[bone] and parent >= 0 else own)
        return world

    def turned(self, bone: int, frames: slice) -> FloatArray:
        """(F, 4) a bone's transferred rotation in armature space."""
        rotations, turn = self.motion.rotations, self.alignment.turn
        ends = [product(product(turn, rotations[frames, index]), own) for index, own in self._pairs[bone]]
        return ends[0] if len(ends) == 1 else slerp(ends[0], ends[1], np.full(len(ends[0]), self._shares[bone]))
