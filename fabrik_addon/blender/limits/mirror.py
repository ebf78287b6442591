"""Mirrors limits from one side of the body to the other.

The rest frame of the opposite bone is the mirror image of the original one with one axis flipped, so that it is
right-handed. It is local X if the roll is mirrored too. The two rest frames give the mirrored swings and rotations.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import cos, radians
from typing import Final, TypeAlias, cast

import bpy
import numpy as np

from ...core.arrays import IntArray
from ..rig.armature import RigError
from ..settings.limit_properties import has_limit, read_limit, read_settings
from ..settings.limit_values import Cone, LimitSettings, Range, flat
from ..settings.selection import active_bone
from .editing import write_all

_Pair: TypeAlias = tuple[bpy.types.PoseBone, bpy.types.PoseBone]

_PLANE: Final = (0, 2)
# Toward +X, +Z, -X and -Z, in the order of the angles of a cone.
_WAYS: Final = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])
# Axes count as mirrored if they are within 10° of the mirror image's axes.
_NEAR: Final = cos(radians(10.0))


def mirror_limits(rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]) -> tuple[str, list[str]]:
    """Copy the limits of bones to the other side, and free bones whose counterparts are free.

    Returns a line for the user, and sentences about skipped bones. Raises RigError or LimitPropertyError, with nothing
    changed, if no bone has another side, if a limit is invalid or can't be stored, or if both bones of a pair are given
    and the active bone does not determine the direction.
    """
    pairs = _pairs(rig, bones)
    if not pairs:
        names = ", ".join(repr(bone.name) for bone in bones)
        raise RigError(f"No bone on the other side found for {names}: names such as 'arm.L' and 'arm.R' are needed")
    axes = {bone.name: _mirrored_axes(bone, other) for bone, other in pairs}
    left = [
        f"The axes of {other.name!r} don't mirror those of {bone.name!r}: give it the mirrored roll first"
        for bone, other in pairs
        if axes[bone.name] is None
    ]
    wanted = [(other, _settings(bone, axes[bone.name])) for bone, other in pairs if axes[bone.name] is not None]
    if not wanted:
        raise RigError(left[0])
    write_all([other for other, _ in wanted], [settings for _, settings in wanted])
    paired = {bone.name for pair in pairs for bone in pair}
    left += [f"{bone.name!r} has no bone on the other side" for bone in bones if bone.name not in paired]
    return f"Mirrored the limits of {len(wanted)} {'bone' if len(wanted) == 1 else 'bones'}", left


def opposite_bone(rig: bpy.types.Object, bone: bpy.types.PoseBone) -> bpy.types.PoseBone | None:
    """The bone with the mirrored name by Blender's rules, even with a prefix such as `mixamorig:`; None if missing."""
    prefix, colon, name = bone.name.rpartition(":")
    for flipped in (bpy.utils.flip_name(bone.name), prefix + colon + bpy.utils.flip_name(name)):
        if flipped != bone.name and flipped in rig.pose.bones:
            return rig.pose.bones[flipped]
    return None


def _pairs(rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]) -> list[_Pair]:
    """The bones with their counterparts; if both of a pair are given, the one on the active bone's side comes first."""
    given = {bone.name for bone in bones}
    pairs = [(bone, other) for bone in bones if (other := opposite_bone(rig, bone)) is not None]
    active = active_bone(rig)
    side = 0.0 if active is None or opposite_bone(rig, active) is None else _place(active)
    for bone, other in pairs:
        if other.name in given and not side:
            raise RigError(f"Both {bone.name!r} and {other.name!r} are selected: make the one to copy from active")
    return [(bone, other) for bone, other in pairs if other.name not in given or _place(bone) * side > 0.0]


def _place(bone: bpy.types.PoseBone) -> float:
    """The X coordinate of a bone's middle in armature space: positive on one side, negative on the other."""
    return float(bone.bone.head_local.x + bone.bone.tail_local.x)


def _mirrored_axes(bone: bpy.types.PoseBone, other: bpy.types.PoseBone) -> IntArray | None:
    """(2, 2) the mirror images of the bone's X and Z in the counterpart's axes; None if they are not aligned."""
    rest, other_rest = (np.array(each.bone.matrix_local)[:3, :3] for each in (bone, other))
    images = other_rest.T @ np.diag((-1.0, 1.0, 1.0)) @ rest
    plane = images[np.ix_(_PLANE, _PLANE)]
    near = images[1, 1] >= _NEAR and (np.abs(plane).max(axis=0) >= _NEAR).all()
    return np.rint(plane).astype(np.int64) if near else None


def _settings(bone: bpy.types.PoseBone, axes: IntArray | None) -> LimitSettings | None:
    """The mirror image of a bone's limit; None if the bone has none."""
    settings = read_settings(bone)
    if axes is None or not (has_limit(bone) or settings != LimitSettings()):
        return None
    read_limit(bone)
    # The mirror images of the four directions, in the other bone's frame.
    images = _WAYS @ axes.T
    cone = [settings.cone[int(np.argmax(images @ way))] for way in _WAYS]
    axis, sign = _turning(settings.axis, axes)
    return replace(
        settings,
        cone=cast("Cone", tuple(cone)),
        twist=_signed(settings.twist, -1),
        axis=axis,
        hinge=_signed(settings.hinge, sign),
        # Reversed, so that the outline keeps its orientation.
        window=flat((np.reshape(settings.window, (-1, 2))[::-1] @ axes.T).tolist()),
    )


def _turning(axis: str, axes: IntArray) -> tuple[str, int]:
    """The mirrored rotation axis and its sign, because a reflection reverses rotations."""
    if axis == "Y":
        return axis, -1
    image = axes[:, "XZ".index(axis)]
    place = int(np.argmax(np.abs(image)))
    return "XZ"[place], -int(image[place])


def _signed(ends: Range, sign: int) -> Range:
    low, high = ends
    return (low, high) if sign > 0 else (0.0 - high, 0.0 - low)
