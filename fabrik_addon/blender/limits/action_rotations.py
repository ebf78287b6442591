"""What an armature's present action does with the rotation of its bones."""

from collections import defaultdict
from dataclasses import dataclass, field

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ..rig.armature import RigError
from ..rig.keyframes import bone_path, channel_values, curves, keys
from ..rig.rotation_modes import channel_count, from_channels, property_name


@dataclass(frozen=True)
class BoneCurves:
    """The rotation curves of a bone in its rotation mode, by component; what has none stays as it is now."""

    bone: bpy.types.PoseBone
    curves: dict[int, bpy.types.FCurve] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The data path of the rotation channels."""
        return bone_path(self.bone.name, self.channel)

    @property
    def channel(self) -> str:
        """The name of the rotation property."""
        return property_name(self.bone.rotation_mode)

    @property
    def times(self) -> FloatArray:
        """(K,) frames on which any of the curves has a key, in order."""
        return np.unique(np.concatenate([keys(curve)[:, 0] for curve in self.curves.values()]))

    def values(self, frames: FloatArray) -> FloatArray:
        """(F, n) what the channels hold."""
        return channel_values(getattr(self.bone, self.channel), self.curves.values(), frames)

    def rotations(self, frames: FloatArray) -> FloatArray:
        """(F, 4) local rotations, w x y z."""
        return from_channels(self.bone.rotation_mode, self.values(frames))

    @property
    def missing(self) -> list[int]:
        """Components without a curve."""
        return [index for index in range(channel_count(self.bone.rotation_mode)) if index not in self.curves]


def rotation_curves(rig: bpy.types.Object, bones: list[bpy.types.PoseBone]) -> list[BoneCurves]:
    """The curves of those of the bones that the present action turns.

    Raises RigError where there is no action, or where it turns none of them.
    """
    animation = rig.animation_data
    if animation is None or animation.action is None:
        raise RigError(f"{rig.name!r} has no action: assign one first")
    by_path: dict[str, dict[int, bpy.types.FCurve]] = defaultdict(dict)
    for curve in curves(rig):
        if not curve.mute and len(curve.keyframe_points):
            by_path[curve.data_path][curve.array_index] = curve
    every = [BoneCurves(bone) for bone in bones]
    found = [BoneCurves(each.bone, by_path[each.path]) for each in every if each.path in by_path]
    if not found:
        names = ", ".join(repr(bone.name) for bone in bones[:3]) + (", …" if len(bones) > 3 else "")
        raise RigError(f"Action {animation.action.name!r} doesn't rotate any of the bones ({names}): select others")
    return found


def whole_frames(times: FloatArray) -> FloatArray:
    """(F,) all whole frames from the first to the last of some times."""
    return np.arange(np.floor(times.min()), np.ceil(times.max()) + 1.0)
