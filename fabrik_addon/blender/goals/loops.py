"""Closed loops: effectors whose target is on a solved bone of the same rig, so that both sides move.

A target on bones that do not rotate is like any other; see `goals.gather_goals`.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import bpy

from ...core import Effector
from ...core.model.skeleton import Skeleton
from ..rig import keyframes
from ..rig.spaces import BONE_HEAD


class Partner(NamedTuple):
    """The other side of a loop: a point in the frame of a bone of the same rig."""

    bone: str
    offset: tuple[float, float, float]


def carrying_bone(rig: bpy.types.Object, holder: bpy.types.Object, bone: str) -> str:
    """The bone of the rig that is a target, or to which a target is parented; "" if there is none."""
    if holder == rig:
        return bone
    return holder.parent_bone if holder.parent == rig and holder.parent_type == "BONE" else ""


def partner_of(rig: bpy.types.Object, holder: bpy.types.Object, bone: str) -> Partner | None:
    """The point of a rig's bone that a target is fixed to; None if it is not fixed to a bone."""
    carrier = carrying_bone(rig, holder, bone)
    if not carrier or carrier not in rig.pose.bones:
        return None
    if holder == rig:
        return Partner(carrier, BONE_HEAD)
    if bone or holder.constraints or rig.data.bones[carrier].use_relative_parent or _is_animated(holder):
        return None
    place = (holder.matrix_parent_inverse @ holder.matrix_basis).translation
    return Partner(carrier, (place.x, place.y + rig.data.bones[carrier].length, place.z))


def _is_animated(holder: bpy.types.Object) -> bool:
    animation = holder.animation_data
    return animation is not None and bool(
        animation.nla_tracks or len(animation.drivers) or any(True for _ in keyframes.curves(holder))
    )


def close_loops(
    skeleton: Skeleton, effectors: Sequence[Effector], partners: Sequence[Partner | None], held: Collection[str]
) -> list[Effector]:
    """The effectors, with those closed into loops whose partners' bones rotate too.

    Closing a loop may let bones rotate that move the target of another.
    """
    closed = list(effectors)
    for _ in closed:
        turned = {bone for effector in closed for bone in turning_bones(skeleton, effector)}
        turned = {bone for bone in turned if skeleton.names[bone] not in held}
        chased = [
            (index, partner)
            for index, partner in enumerate(partners)
            if partner is not None
            and closed[index].target_bone is None
            and partner.bone in skeleton.names
            and turned.intersection(skeleton.path(skeleton.index(partner.bone)))
        ]
        for index, partner in chased:
            closed[index] = replace(closed[index], target_bone=partner.bone, target_offset=partner.offset)
        if not chased:
            break
    return closed


def turning_bones(skeleton: Skeleton, effector: Effector) -> set[int]:
    """The bones, as indices in the skeleton, whose rotation moves an effector.

    For a loop, one side relative to the other.
    """
    own = _path(skeleton, effector.bone, effector.offset, takes_rotation=effector.rotation_weight > 0.0)
    if effector.target_bone is None:
        return own
    return own ^ _path(skeleton, effector.target_bone, effector.target_offset, takes_rotation=False)


def _path(skeleton: Skeleton, name: str, offset: Sequence[float] | None, *, takes_rotation: bool) -> set[int]:
    """The bones that move a point of a bone, or, with `takes_rotation`, rotate the bone."""
    bone = skeleton.index(name)
    point = (0.0, float(skeleton.lengths[bone]), 0.0) if offset is None else offset
    path = [int(each) for each in skeleton.path(bone)]
    return set(path if takes_rotation or any(point) else path[:-1])
