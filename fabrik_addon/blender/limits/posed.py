"""The rotations of bones over an action, from curves, or evaluated by Blender for controls and NLA strips."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import angle_between
from ..control.posed_rig import posed_rig
from ..rig.actions import active_strips, is_layered
from ..rig.armature import RigError
from ..rig.keyframes import bone_path, channel_values, curves, curves_by_path, keys
from ..rig.pose_writer import PoseKeeper
from ..rig.rotation_modes import channel_count, from_channels, property_name

# Radians. A bone that rotates by less over an action is considered still, because matrices have single precision.
_STILL = 1e-4


@dataclass(frozen=True)
class BoneCurves:
    """The rotation curves of a bone in its rotation mode, by component. Components without a curve keep their value."""

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
        """(K,) frames with a key on any of the curves, in order."""
        return np.unique(np.concatenate([keys(curve)[:, 0] for curve in self.curves.values()]))

    def values(self, frames: FloatArray) -> FloatArray:
        """(F, n) values of the channels on frames (F,)."""
        return channel_values(getattr(self.bone, self.channel), self.curves.values(), frames)

    def rotations(self, frames: FloatArray) -> FloatArray:
        """(F, 4) local rotations, w x y z, on frames (F,)."""
        return from_channels(self.bone.rotation_mode, self.values(frames))

    @property
    def missing(self) -> list[int]:
        """Components without a curve."""
        return [index for index in range(channel_count(self.bone.rotation_mode)) if index not in self.curves]


def rotation_curves(rig: bpy.types.Object, bones: list[bpy.types.PoseBone]) -> list[BoneCurves]:
    """The curves of the bones that the current action rotates.

    Raises RigError if there is no action, or if it rotates none of the bones.
    """
    animation = rig.animation_data
    if animation is None or animation.action is None:
        raise RigError(f"{rig.name!r} has no action: assign one first")
    by_path = curves_by_path(curves(rig))
    every = {each.path: each for each in map(BoneCurves, bones) if each.path in by_path}
    found = [
        BoneCurves(each.bone, {curve.array_index: curve for curve in by_path[path]}) for path, each in every.items()
    ]
    if not found:
        names = ", ".join(repr(bone.name) for bone in bones[:3]) + (", …" if len(bones) > 3 else "")
        raise RigError(f"Action {animation.action.name!r} doesn't rotate any of the bones ({names}): select others")
    return found


def whole_frames(times: FloatArray) -> FloatArray:
    """(F,) all whole frames from the first to the last of the times (K,)."""
    return np.arange(np.floor(times.min()), np.ceil(times.max()) + 1.0)


class Rotations(NamedTuple):
    """(F, 4) local rotations of a bone, w x y z, on frames (F,)."""

    bone: bpy.types.PoseBone
    frames: FloatArray
    rotations: FloatArray


def rotations_of_action(
    context: bpy.types.Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
) -> list[Rotations]:
    """The rotations of bones in the rig's action, on whole frames from its first to its last key.

    Without an action, returns the combined result of the NLA strips. Subframes with keys are included, except for
    strips and control rigs, which Blender evaluates frame by frame. Raises RigError if there is nothing to play, or if
    it rotates none of the bones.
    """
    posed, names = posed_rig(rig), [bone.name for bone in bones]
    strips = [] if not is_layered(rig) else active_strips(rig)
    if posed.by_channels and not strips:
        found = []
        for each in rotation_curves(rig, list(bones)):
            frames = np.union1d(each.times, whole_frames(each.times))
            found.append(Rotations(each.bone, frames, each.rotations(frames)))
        return found
    times = [np.array([strip.frame_start, strip.frame_end]) for strip in strips]
    times += [keys(curve)[:, 0] for curve in curves(rig) if len(curve.keyframe_points)]
    if not times:
        raise RigError(f"{rig.name!r} has no action: assign one first")
    frames, keeper = whole_frames(np.concatenate(times)), PoseKeeper(context.scene, rig)
    try:
        poses = []
        for frame in frames.tolist():
            context.scene.frame_set(int(frame))
            poses.append(posed.local(names))
    finally:
        keeper.restore()
        context.view_layer.update()
    every = [Rotations(bone, frames, np.array([pose[bone.name] for pose in poses])) for bone in bones]
    moving = [each for each in every if angle_between(each.rotations, each.rotations[:1]).max() > _STILL]
    if not moving:
        if strips:
            raise RigError(f"The NLA strips of {rig.name!r} don't rotate any of the bones: select others")
        raise RigError(f"Action {rig.animation_data.action.name!r} doesn't rotate any of the bones: select others")
    return moving
