"""How two bodies correspond: the pose in which they are compared, axes, size, the floor, and the directions of limbs.

They are compared in the source's rest pose, or on the frame on which the source is most like the rig: some files' rest
poses are none that a body can stand in, such as one with all limbs along one axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core.arrays import FloatArray
from ..core.rotations import matrix_from_quaternion, product, quaternion_from_matrix, rotation_between
from ..human.rest_body import BodyAxes, RestBody, square
from .motion import Motion, RetargetError
from .pairs import Pair, above, depth

# Parts whose directions are compared to choose a reference pose: those that keep their shape when poses are
# transferred, and thighs. Arms are aligned afterwards: of 40 frames of which one is a standing pose, three of four rigs
# chose that one with arms compared as well, all four without; and a rest pose with the arms up is as good as a T.
_KEPT: Final = ("spine", "chest", "neck", "thigh", "foot")
# A rest pose is used if these are at most this many degrees from the rig's on average: those of a rest pose with all
# limbs along one axis are 77 off.
_LIKE: Final = 40.0
# How many frames are looked at.
_LOOKED_AT: Final = 100
# Where Blender's importers let people look whose files say nothing else.
_FORWARD: Final = np.array([0.0, -1.0, 0.0])
# Parts whose direction at rest is part of the pose, a T or an A; a trunk's curve and a foot's slope are its shape.
_POSED: Final = frozenset({"upper_arm", "forearm", "hand", "finger", "palm", "thigh", "shin"})
# The rest pose determines the floor if the standing ankles of a take are no farther from those at rest, of the legs'
# length.
_SAME_FLOOR: Final = 0.1
# Ankles are on the floor below this percentile of their heights in the take.
_STANDING_PERCENT: Final = 5.0
# Share of a rig's size by which joints of the same body may be off.
_ALIKE: Final = 1e-4


@dataclass(frozen=True, eq=False)
class Reference:
    """The source in the pose in which it is compared.

    axes: its world's up, and the forward that corresponds to the rig's forward.
    """

    body: RestBody
    axes: BodyAxes


@dataclass(frozen=True, eq=False)
class Alignment:
    """From the source's world space to the rig's armature space.

    Attributes:
        turn: (4,) the rotation; axes: (3, 3) the same as a matrix.
        scale: rig's units to a meter of the source's travel.
        source_origin, target_origin: (3,) points that correspond: below the body, at the height of standing ankles.
        corrections: by bone of the rig, (4,) the rotation of its limb, in armature space, from its rest to the
            source's.
    """

    turn: FloatArray
    axes: FloatArray
    scale: float
    source_origin: FloatArray
    target_origin: FloatArray
    corrections: dict[str, FloatArray]

    def place(self, points: FloatArray) -> FloatArray:
        """(..., 3) points of the source's world in the rig's armature space."""
        return np.asarray(self.target_origin + self.scale * (points - self.source_origin) @ self.axes.T)


def find_reference(motion: Motion, rest: RestBody, target: RestBody, frame: int | None) -> Reference:
    """The rest pose if it is like the rig's, else the frame that is most like it.

    rest: the source's. frame: use this one instead, counted from 0. Raises RetargetError if the source has no body.
    """
    if frame is None and rest.axes is not None and _difference(rest, target) <= _LIKE:
        return Reference(rest, rest.axes)
    frames = [frame] if frame is not None else np.unique(np.linspace(0, len(motion) - 1, _LOOKED_AT).astype(int))
    bodies = [RestBody(motion.bones_at(int(each)), rest.roles) for each in frames]
    body = min(bodies, key=lambda body: _difference(body, target))
    if body.axes is None:
        raise RetargetError(
            f"{motion.name!r}: without hips, a head and both sides there is no telling up and forward: "
            "say by a map which these are"
        )
    up, forward = _nearest_axis(body.axes.up), _FORWARD
    if abs(up @ forward) > 0.0:
        forward = _nearest_axis(square(body.axes.forward, up))
    return Reference(body, BodyAxes(up, forward, np.cross(up, forward), body.axes.middle))


def _nearest_axis(direction: FloatArray) -> FloatArray:
    """(3,) the axis of space that is nearest to a direction."""
    axis = int(np.argmax(np.abs(direction)))
    return np.asarray(np.sign(direction[axis]) * np.eye(3)[axis])


def _difference(body: RestBody, target: RestBody) -> float:
    """Degrees between the directions of two bodies' parts, as seen from the bodies, on average."""
    seen: list[dict[tuple[str, str], FloatArray]] = []
    for each in (body, target):
        if each.axes is None:
            return 180.0
        axes, roles = _frame(each.axes), each.roles.items()
        seen.append({(r.part, r.side): each.direction(name) @ axes for name, r in roles if r.part in _KEPT})
    both = seen[0].keys() & seen[1].keys()
    angles = [np.degrees(np.arccos(np.clip(seen[0][key] @ seen[1][key], -1.0, 1.0))) for key in both]
    return float(np.mean(angles)) if angles else 180.0


def align(motion: Motion, reference: Reference, target: RestBody, pairs: Sequence[Pair]) -> Alignment:
    """How a source, in its reference pose, corresponds to a rig at rest; raises RetargetError for what is no body."""
    source = reference.body
    if source.axes is None or target.axes is None:
        raise RetargetError(
            "The rig has no hips, head and both sides by which up and forward are told: say by a map which are"
        )
    axes = _frame(target.axes) @ _frame(reference.axes).T
    leg = leg_length(source)
    up = source.axes.up
    # The height of the source's ankles when it stands.
    standing = _lowest_ankle(source)
    feet = [list(motion.names).index(name) for name in source.named("foot")]
    if feet:
        taken = float(np.percentile((motion.heads[:, feet] @ up).min(axis=1), _STANDING_PERCENT))
        standing = standing if abs(taken - standing) <= _SAME_FLOOR * leg else taken
    # The rotation of each limb of the rig from its rest to the source's continues that of the limb above it. The whole
    # body is rotated first: on a frame of the take the source may face anywhere.
    base = quaternion_from_matrix(axes @ _frame(source.axes) @ _frame(target.axes).T)
    corrections: dict[str, FloatArray] = {}
    for pair in sorted(pairs, key=lambda pair: depth(target, pair.bone)):
        corrections[pair.bone] = base
        if target.roles[pair.bone].part in _POSED:
            carrying = (corrections[bone] for bone in above(target.bones, pair.bone) if bone in corrections)
            carried = next(carrying, base)
            own = matrix_from_quaternion(carried) @ target.direction(pair.bone)
            wanted = axes @ source.direction(pair.source)
            corrections[pair.bone] = product(rotation_between(own[None], wanted[None])[0], carried)
    return Alignment(
        quaternion_from_matrix(axes),
        axes,
        leg_length(target) / leg,
        motion.origin - (motion.origin @ up) * up + standing * up,
        _lowest_ankle(target) * target.axes.up,
        corrections,
    )


def _frame(axes: BodyAxes) -> FloatArray:
    """(3, 3) forward, left and up as columns."""
    return np.stack([axes.forward, axes.left, axes.up], axis=1)


def _lowest_ankle(body: RestBody) -> float:
    """How far up the lowest ankle is; 0 without feet."""
    assert body.axes is not None
    return min((float(body.bones[name].head @ body.axes.up) for name in body.named("foot")), default=0.0)


def leg_length(body: RestBody) -> float:
    """The length of a body's legs from hip to ankle; of its trunk if it has none."""
    for parts in (("thigh", "shin", "foot"), ("hips", "head"), ("hips", "neck"), ("spine", "neck")):
        spans = []
        for side in ("L", "R", ""):
            joints = [joint for part in parts if (joint := body.head_of(part, side)) is not None]
            if len(joints) == len(parts):
                spans.append(path_length(joints))
        if spans and np.mean(spans) > 0.0:
            return float(np.mean(spans))
    raise RetargetError(
        "There are neither legs nor a trunk by which the size is told: say by a map which bones are legs"
    )


def path_length(points: Sequence[FloatArray] | FloatArray) -> float:
    """The length of the path along points (3,)."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def is_alike(source: RestBody, target: RestBody, pairs: Sequence[Pair], alignment: Alignment) -> bool:
    """Whether a rig is the source's body again, of whatever size: all joints at corresponding locations at rest."""
    if any(pair.before for pair in pairs):
        return False
    own = np.array([target.bones[pair.bone].head for pair in pairs])
    other = alignment.scale * np.array([source.bones[pair.source].head for pair in pairs]) @ alignment.axes.T
    off = (own - own[0]) - (other - other[0])
    return bool(np.abs(off).max() <= _ALIKE * np.ptp(own, axis=0).max())
