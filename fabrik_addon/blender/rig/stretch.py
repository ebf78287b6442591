"""Bones that may stretch (the paper's prismatic joints). The Y scale of a bone is its length factor.

Children of such a bone move with its tail but must not grow, so they do not inherit its scale.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import bpy
import numpy as np
import numpy.typing as npt

from ...core.arrays import FloatArray
from ...core.model.skeleton import scaled_skeleton
from ..settings.limit_properties import LimitPropertyError, read_slides
from .armature import RigError, Tree

_KEEP_SIZE: Final = ("NONE", "NONE_LEGACY")


def solved_slides(rig: bpy.types.Object, bones: Collection[str]) -> dict[str, tuple[float, float]]:
    """The ranges of length factors of bones that may stretch, by name; a locked Y scale does not change.

    Raises RigError naming a child that would grow with its parent; LimitPropertyError for invalid factors.
    """
    slides = {name: slide for name, slide in read_slides(rig, bones).items() if not rig.pose.bones[name].lock_scale[1]}
    for child in _growing_children([rig.pose.bones[name] for name in slides]):
        raise RigError(
            f"Bone {child.name!r} would be scaled by its stretching parent {child.parent.name!r}: set "
            "its Inherit Scale to None"
        )
    return slides


def stretched(rig: bpy.types.Object, tree: Tree, except_for: Collection[str] = ()) -> Tree:
    """A tree with its bones at their current lengths; those in `except_for` keep their rest lengths."""
    factors = current_factors(rig, [name for name in tree.skeleton.names if name not in except_for])
    return Tree(scaled_skeleton(tree.skeleton, factors), tree.rotations, tree.root_location)


def current_factors(rig: bpy.types.Object, bones: Collection[str]) -> dict[str, float]:
    """The current length factors of bones that may stretch, by name."""
    return {name: float(rig.pose.bones[name].scale[1]) for name in read_slides(rig, bones)}


def stretch_scales(factors: npt.ArrayLike) -> FloatArray:
    """(F, 3) the scale of a bone with length factors (F,)."""
    length = np.asarray(factors, dtype=np.float64)
    return np.stack((np.ones_like(length), length, np.ones_like(length)), axis=-1)


def write_stretches(rig: bpy.types.Object, factors: Mapping[str, float]) -> None:
    """Set the length factors of bones, by name, in the current pose."""
    for name, factor in factors.items():
        rig.pose.bones[name].scale = (1.0, factor, 1.0)


def check_children(bones: Sequence[bpy.types.PoseBone]) -> None:
    """Raise LimitPropertyError if children of bones would grow with them and this can't be changed."""
    for child in _growing_children(bones):
        rig: Any = child.id_data
        data = rig.data
        if data.library is not None or data.override_library is not None:
            raise LimitPropertyError(
                f"Bone {child.name!r} would be scaled by its stretching parent, and its armature "
                f"{data.name!r} is linked: set Inherit Scale to None there first"
            )


def keep_size_of_children(bones: Sequence[bpy.types.PoseBone]) -> None:
    """Make the children of bones keep their size when the bones stretch."""
    for child in list(_growing_children(bones)):
        child.bone.inherit_scale = "NONE"


def _growing_children(bones: Sequence[bpy.types.PoseBone]) -> Iterator[bpy.types.PoseBone]:
    """The children that inherit the scale of their parents among the bones."""
    return (child for bone in bones for child in bone.children if child.bone.inherit_scale not in _KEEP_SIZE)
