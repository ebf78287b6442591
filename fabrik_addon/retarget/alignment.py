"""How two bodies stand to each other at rest: axes, size, the floor, and the ways that their limbs go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core.arrays import FloatArray
from ..core.rotations import matrix_from_quaternion, product, quaternion_from_matrix, rotation_between
from ..human.rest_body import BodyAxes, RestBody
from .motion import Motion, RetargetError
from .pairs import Pair, above, depth
from .reference import Reference

# Parts whose direction at rest is part of the pose, a T or an A; a trunk's curve and a foot's slope are its shape.
_POSED: Final = frozenset({"upper_arm", "forearm", "hand", "finger", "palm", "thigh", "shin"})
# Where the standing ankles of a take are no farther from those at rest, of the legs' length, rest tells the floor.
_SAME_FLOOR: Final = 0.1
# Ankles are on the floor below so many percent of their heights in the take.
_STANDING_PERCENT: Final = 5.0
# Share of a rig's size by which joints of the same body may be off.
_ALIKE: Final = 1e-4


@dataclass(frozen=True, eq=False)
class Alignment:
    """From the source's world space to the rig's armature space.

    Attributes:
        turn: (4,) the rotation; axes: (3, 3) the same as a matrix.
        scale: rig's units to a metre of the source's travel.
        source_origin, target_origin: (3,) points that correspond: below the body, at the height of standing ankles.
        corrections: by bone of the rig, (4,) what turns its limb, in armature space, from its rest to the source's.
    """

    turn: FloatArray
    axes: FloatArray
    scale: float
    source_origin: FloatArray
    target_origin: FloatArray
    corrections: dict[str, FloatArray]

    def place(self, points: FloatArray) -> FloatArray:
        """(..., 3) where points of the source's world are for the rig."""
        return np.asarray(self.target_origin + self.scale * (points - self.source_origin) @ self.axes.T)


def align(motion: Motion, reference: Reference, target: RestBody, pairs: Sequence[Pair]) -> Alignment:
    """How a source, in its reference pose, stands to a rig at rest; raises RetargetError where a body is not one."""
    source = reference.body
    if source.axes is None or target.axes is None:
        raise RetargetError(
            "The rig has no hips, head and both sides by which up and forward are told: say by a map which are"
        )
    axes = _frame(target.axes) @ _frame(reference.axes).T
    # On a frame of the take the source may face anywhere.
    base = quaternion_from_matrix(axes @ _frame(source.axes) @ _frame(target.axes).T)
    leg = leg_length(source)
    scale = leg_length(target) / leg
    up, own_up = source.axes.up, target.axes.up
    standing = _standing(motion, source, leg)
    origin = motion.origin - (motion.origin @ up) * up + standing * up
    below = _lowest_ankle(target) * own_up
    return Alignment(
        quaternion_from_matrix(axes), axes, scale, origin, below, _corrections(source, target, pairs, axes, base)
    )


def _frame(axes: BodyAxes) -> FloatArray:
    """(3, 3) forward, left and up as columns."""
    return np.stack([axes.forward, axes.left, axes.up], axis=1)


def leg_length(body: RestBody) -> float:
    """The length of a body's legs from hip to ankle; of its trunk where it has none."""
    for parts in (("thigh", "shin", "foot"), ("hips", "head"), ("hips", "neck"), ("spine", "neck")):
        ways = [[body.head_of(part, side) for part in parts] for side in ("L", "R", "")]
        whole = [[joint for joint in way if joint is not None] for way in ways]
        spans = [path_length(way) for way in whole if len(way) == len(parts)]
        if spans and np.mean(spans) > 0.0:
            return float(np.mean(spans))
    raise RetargetError(
        "There are neither legs nor a trunk by which the size is told: say by a map which bones are legs"
    )


def path_length(points: Sequence[FloatArray] | FloatArray) -> float:
    """The length of the way along points (3,)."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def _lowest_ankle(body: RestBody) -> float:
    assert body.axes is not None
    heights = [float(body.bones[name].head @ body.axes.up) for name in body.named("foot")]
    return min(heights, default=0.0)


def _standing(motion: Motion, source: RestBody, leg: float) -> float:
    """How far up the ankles are of a source that stands."""
    assert source.axes is not None
    feet = [list(motion.names).index(name) for name in source.named("foot")]
    if not feet:
        return 0.0
    rest = _lowest_ankle(source)
    taken = float(np.percentile((motion.heads[:, feet] @ source.axes.up).min(axis=1), _STANDING_PERCENT))
    return rest if abs(taken - rest) <= _SAME_FLOOR * leg else taken


def _corrections(
    source: RestBody, target: RestBody, pairs: Sequence[Pair], axes: FloatArray, base: FloatArray
) -> dict[str, FloatArray]:
    """What turns each limb of the rig from its rest to the source's; each goes on from the one before it.

    base: (4,) what turns the whole body.
    """
    found: dict[str, FloatArray] = {}
    for pair in sorted(pairs, key=lambda pair: depth(target, pair.bone)):
        found[pair.bone] = base
        if target.roles[pair.bone].part not in _POSED:
            continue
        carried = next((found[bone] for bone in above(target.bones, pair.bone) if bone in found), base)
        own = matrix_from_quaternion(carried) @ target.direction(pair.bone)
        wanted = axes @ source.direction(pair.source)
        found[pair.bone] = product(rotation_between(own[None], wanted[None])[0], carried)
    return found


def is_alike(source: RestBody, target: RestBody, pairs: Sequence[Pair], alignment: Alignment) -> bool:
    """Whether a rig is the source's body again, of whatever size: all joints at corresponding places at rest."""
    if any(pair.before for pair in pairs):
        return False
    own = np.array([target.bones[pair.bone].head for pair in pairs])
    other = alignment.scale * np.array([source.bones[pair.source].head for pair in pairs]) @ alignment.axes.T
    off = (own - own[0]) - (other - other[0])
    return bool(np.abs(off).max() <= _ALIKE * np.ptp(own, axis=0).max())
