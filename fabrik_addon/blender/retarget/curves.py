"""Reads an armature's poses from its curves, many frames at once, if nothing else moves it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import bpy
import numpy as np

from ...core.arrays import FloatArray, IntArray
from ...core.rotations import matrix_from_quaternion
from ..goals.places import is_simple, is_still
from ..rig.keyframes import bone_path, channel_values, curves
from ..rig.rotation_modes import from_channels, property_name

# Scales that differ from 1 by less than this count as 1, because importers round.
_UNSCALED: Final = 1e-5
_Curves: TypeAlias = Mapping[str, Sequence[bpy.types.FCurve]]


@dataclass(frozen=True, eq=False)
class PlainPoses:
    """The bones of an armature on F frames, from its curves.

    source: the armature. moved: (F, 4) rotations and (F, 3) locations of each bone, in its own frame.
    """

    source: bpy.types.Object
    moved: Sequence[tuple[FloatArray, FloatArray]] = field(repr=False)

    @classmethod
    def of(cls, source: bpy.types.Object, frames: IntArray) -> "PlainPoses | None":
        """The poses of an armature; None if constraints, drivers, strips or scales affect them."""
        animation, bones = source.animation_data, source.pose.bones
        if not is_still((source, "")) or source.data.pose_position != "POSE" or source.data.animation_data is not None:
            return None
        if animation is not None and len(animation.drivers):
            return None
        if any(len(bone.constraints) or not _inherits_all(bone.bone) for bone in bones):
            return None
        by_path: dict[str, list[bpy.types.FCurve]] = {}
        for curve in curves(source):
            if not is_simple(curve) or curve.data_path.endswith(".rotation_mode"):
                return None
            if len(curve.keyframe_points):
                by_path.setdefault(curve.data_path, []).append(curve)
        if any(np.abs(_values(bone, "scale", by_path, frames) - 1.0).max() > _UNSCALED for bone in bones):
            return None
        return cls(source, [_moved(bones[bone.name], by_path, frames) for bone in source.data.bones])

    def matrices(self, part: slice) -> FloatArray:
        """(F, N, 4, 4) matrices of the bones in armature space on some of the frames."""
        places: dict[str, int] = {}
        posed = np.empty((len(self.moved[0][0][part]), len(self.moved), 4, 4))
        for place, (bone, (turned, shifted)) in enumerate(zip(self.source.data.bones, self.moved, strict=True)):
            places[bone.name] = place
            own = np.tile(np.eye(4), (len(posed), 1, 1))
            own[:, :3, :3], own[:, :3, 3] = matrix_from_quaternion(turned[part]), shifted[part]
            rest = np.array(bone.matrix_local, dtype=np.float64)
            if bone.parent:
                rest = np.linalg.inv(np.array(bone.parent.matrix_local, dtype=np.float64)) @ rest
                posed[:, place] = posed[:, places[bone.parent.name]] @ (rest @ own)
            else:
                posed[:, place] = rest @ own
        return posed


def _moved(bone: bpy.types.PoseBone, by_path: _Curves, frames: IntArray) -> tuple[FloatArray, FloatArray]:
    """(F, 4) rotations and (F, 3) locations of a bone, relative to its rest pose."""
    turned = _values(bone, property_name(bone.rotation_mode), by_path, frames)
    shifted = np.zeros((len(frames), 3)) if bone.bone.use_connect else _values(bone, "location", by_path, frames)
    return from_channels(bone.rotation_mode, turned), shifted


def _values(bone: bpy.types.PoseBone, channel: str, by_path: _Curves, frames: IntArray) -> FloatArray:
    """(F, n) values of a channel; without keys, its current value."""
    return channel_values(getattr(bone, channel), by_path.get(bone_path(bone.name, channel), ()), frames)


def _inherits_all(bone: bpy.types.Bone) -> bool:
    """Whether a bone inherits its parent's transform with the default settings."""
    return bone.use_inherit_rotation and bone.use_local_location and bone.inherit_scale == "FULL"
