"""How bones are rotated: by their channels, or, for the body of a control rig, as its controls pose them."""

from collections.abc import Sequence
from typing import NamedTuple

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ...core.rotations import angle_between
from ..control.posed_rig import posed_rig
from ..rig.armature import RigError
from ..rig.keyframes import curves, keys
from ..rig.pose_keeper import PoseKeeper
from .action_rotations import rotation_curves, whole_frames

# Radians: matrices are in single precision. A bone that rotates by less over an action does not rotate.
_STILL = 1e-4


class Rotations(NamedTuple):
    """(F, 4) local rotations of a bone, w x y z, on (F,) frames."""

    bone: bpy.types.PoseBone
    frames: FloatArray
    rotations: FloatArray


def rotations_of_action(
    context: bpy.types.Context, rig: bpy.types.Object, bones: Sequence[bpy.types.PoseBone]
) -> list[Rotations]:
    """How the rig's action rotates those of some bones that it rotates, on whole frames from its first to its last key.

    Frames with keys between whole ones count too, unless the rig is a control rig, which is played for this.
    Raises RigError where there is no action, or where it rotates none of them.
    """
    posed, names = posed_rig(rig), [bone.name for bone in bones]
    if posed.by_channels:
        found = []
        for each in rotation_curves(rig, list(bones)):
            frames = np.union1d(each.times, whole_frames(each.times))
            found.append(Rotations(each.bone, frames, each.rotations(frames)))
        return found
    times = [keys(curve)[:, 0] for curve in curves(rig) if len(curve.keyframe_points)]
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
        raise RigError(f"Action {rig.animation_data.action.name!r} doesn't rotate any of the bones: select others")
    return moving
