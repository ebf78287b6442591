"""Bones that may stretch (the paper's prismatic joints): their length is the Y scale of the bone.

What sits on such a bone moves along with its length but is not to grow: its children don't inherit its scale. Or, by
choice, nothing is scaled and the children move by their location.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import bpy
import numpy as np
import numpy.typing as npt

from ...core.arrays import FloatArray
from ...core.model.prismatic import SlideRange, at_factors
from ...core.model.skeleton import Skeleton
from ..settings.limit_properties import LimitPropertyError, read_slides
from ..settings.rig import rig_settings
from .armature import RigError, Tree

_KEEP_SIZE: Final = ("NONE", "NONE_LEGACY")
# Armature units: a child that sits by no more along its parent does not move with its length.
_NO_OFFSET: Final = 1e-6


@dataclass(frozen=True)
class StretchChannel:
    """What shows a length: (F, 3) values of a bone's "scale" or "location", and which of the three count."""

    bone: str
    channel: str
    values: FloatArray
    components: tuple[int, ...]


def solved_slides(
    rig: bpy.types.Object, bones: Collection[str], reaching: Collection[str] = ()
) -> dict[str, SlideRange]:
    """Those of some bones that may stretch, with the factors between which they may; a locked Y scale stays.

    reaching: bones with effectors, which can't stretch by moving their children.
    Raises RigError naming a child that would grow with its parent, or is connected where it is to move along it;
    LimitPropertyError for factors that make no sense.
    """
    if _by_location(rig):
        return _moving_slides(rig, [name for name in bones if name not in reaching])
    slides = {name: slide for name, slide in read_slides(rig, bones).items() if not rig.pose.bones[name].lock_scale[1]}
    for child in _growing_children([rig.pose.bones[name] for name in slides]):
        raise RigError(
            f"Bone {child.name!r} would grow with its parent {child.parent.name!r}, which may stretch: "
            "set its Inherit Scale to None"
        )
    return slides


def stretched(rig: bpy.types.Object, tree: Tree, except_for: Collection[str] = ()) -> Tree:
    """A tree with its bones as long as they are at present, but for some."""
    factors = present_factors(rig, [name for name in tree.skeleton.names if name not in except_for])
    skeleton = at_factors(tree.skeleton, factors)
    if _by_location(rig):
        # The bones themselves are as long as ever.
        skeleton = Skeleton(
            skeleton.names, skeleton.parents, skeleton.rest, tree.skeleton.lengths, skeleton.inherits_rotation
        )
    return Tree(skeleton, tree.rotations, tree.root_location)


def present_factors(rig: bpy.types.Object, bones: Collection[str]) -> dict[str, float]:
    """By what the length of bones is multiplied at present, of those that may stretch."""
    factor = _location_factor if _by_location(rig) else _scale_factor
    return {name: factor(rig.pose.bones[name]) for name in read_slides(rig, bones)}


def tail_factors(rig: bpy.types.Object, bones: Collection[str]) -> dict[str, float]:
    """Those of them whose own tails move along: not where they stretch by moving their children."""
    return {} if _by_location(rig) else present_factors(rig, bones)


def stretch_channels(rig: bpy.types.Object, bone: str, factors: npt.ArrayLike) -> list[StretchChannel]:
    """What shows that a bone is longer by (F,) factors."""
    wanted, pose_bone = np.asarray(factors, dtype=np.float64), rig.pose.bones[bone]
    if not _by_location(rig):
        values = np.ones((len(wanted), 3))
        values[:, 1] = wanted
        return [StretchChannel(bone, "scale", values, (1,))]
    return [
        StretchChannel(child.name, "location", _locations(child, wanted), (0, 1, 2)) for child in pose_bone.children
    ]


def write_stretches(rig: bpy.types.Object, factors: Mapping[str, float]) -> None:
    """Show the length of bones, by name, in the present pose."""
    for name, factor in factors.items():
        for shown in stretch_channels(rig, name, [factor]):
            setattr(rig.pose.bones[shown.bone], shown.channel, shown.values[0])


def _by_location(rig: bpy.types.Object) -> bool:
    return rig_settings(rig).stretch_as == "LOCATION"


def _scale_factor(bone: bpy.types.PoseBone) -> float:
    return float(bone.scale[1])


def _location_factor(bone: bpy.types.PoseBone) -> float:
    """How much longer a bone is, by the child that sits farthest along it; 1 where none does."""
    far = max(bone.children, key=lambda child: abs(_along(child)), default=None)
    if far is None or abs(_along(far)) < _NO_OFFSET:
        return 1.0
    move = _axes(far) @ np.array(far.location)
    return 1.0 + float(move @ _y_axis(far)) / _along(far)


def _locations(child: bpy.types.PoseBone, factors: FloatArray) -> FloatArray:
    """(F, 3) the location of a child whose parent is longer by (F,) factors; across the parent it stays."""
    axes, y_axis = _axes(child), _y_axis(child)
    move = axes @ np.array(child.location)
    across = move - y_axis * (move @ y_axis)
    return (across + np.outer((factors - 1.0) * _along(child), y_axis)) @ np.linalg.inv(axes).T


def _along(child: bpy.types.PoseBone) -> float:
    """How far along its parent a bone sits at rest."""
    offset = np.array(child.bone.head_local) - np.array(child.bone.parent.head_local)
    return float(offset @ _y_axis(child))


def _y_axis(child: bpy.types.PoseBone) -> FloatArray:
    """(3,) along the parent of a bone at rest."""
    return np.array(child.bone.parent.matrix_local)[:3, 1]


def _axes(child: bpy.types.PoseBone) -> FloatArray:
    """(3, 3) the axes at rest that a bone's location is in."""
    holder = child.bone if child.bone.use_local_location else child.bone.parent
    return np.array(holder.matrix_local)[:3, :3]


def _moving_slides(rig: bpy.types.Object, bones: Collection[str]) -> dict[str, SlideRange]:
    """Those of some bones that may stretch by moving their children."""
    slides = read_slides(rig, bones)
    slides = {name: slide for name, slide in slides.items() if rig.pose.bones[name].children}
    for child in (child for name in slides for child in rig.pose.bones[name].children):
        if child.bone.use_connect:
            raise RigError(
                f"Bone {child.name!r} is connected to {child.parent.name!r}, which may stretch, so it can't move along "
                "it: disconnect it in Edit mode, or stretch as Y Scale"
            )
    return slides


def check_children(bones: Sequence[bpy.types.PoseBone]) -> None:
    """Raise LimitPropertyError where the children of bones would grow with them and can't be kept from it."""
    for child in _growing_children(bones):
        rig: Any = child.id_data
        data = rig.data
        if data.library is not None or data.override_library is not None:
            raise LimitPropertyError(
                f"Bone {child.name!r} would grow with its parent, and its armature {data.name!r} is linked: "
                "set its Inherit Scale to None there first"
            )


def keep_size_of_children(bones: Sequence[bpy.types.PoseBone]) -> None:
    """Let the children of bones keep their size when those stretch."""
    for child in list(_growing_children(bones)):
        child.bone.inherit_scale = "NONE"


def _growing_children(bones: Sequence[bpy.types.PoseBone]) -> Iterator[bpy.types.PoseBone]:
    """The children of bones that inherit their scale."""
    return (child for bone in bones for child in bone.children if child.bone.inherit_scale not in _KEEP_SIZE)
