"""Keys for what solving has posed, and for nothing else."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ..goals.effectors import check_effectors
from ..goals.goals import gather_goals
from ..rig import keyframes
from ..rig.animated import bone_path
from ..rig.armature import RigError, check_editable, read_trees
from ..rig.rotation_modes import from_channels, property_name, to_channels
from .solve_frame import moves_root


def key_pose(context: bpy.types.Context, rig: bpy.types.Object) -> list[str]:
    """Insert keys on the present frame for the bones that the effectors move, as they are posed; returns their names.

    Raises a FabrikError, with nothing keyed, where the rig can't be solved or its action can't be written.
    """
    check_effectors(context.scene, rig)
    check_editable(rig)
    keyframes.check_action(rig, new=False)
    trees = gather_goals(rig, read_trees(rig))
    bones = [bone for goals in trees for bone in goals.bone_names]
    roots = [goals.tree.skeleton.names[0] for goals in trees if moves_root(rig, goals)]
    for bone in bones:
        channel = _beside_its_keys(rig, rig.pose.bones[bone], context.scene.frame_current_final)
        _insert(rig, bone, channel)
    for bone in (bone for goals in trees for bone in goals.slides):
        _insert(rig, bone, "scale", 1)
    for bone in roots:
        _insert(rig, bone, "location")
    return bones


def _insert(rig: bpy.types.Object, bone: str, channel: str, index: int = -1) -> None:
    """Key a channel as Blender does, by the user's preferences; raises RigError where it won't."""
    try:
        rig.pose.bones[bone].keyframe_insert(channel, index=index, group=bone)
    except RuntimeError as error:
        raise RigError(f"Bone {bone!r} can't be keyed: {error}") from None


def _beside_its_keys(rig: bpy.types.Object, bone: bpy.types.PoseBone, frame: float) -> str:
    """Bring a bone's channels, its rotation unchanged, as near to its present keys as can be; returns their name.

    Else what is between two keys could turn the long way round.
    """
    channel = property_name(bone.rotation_mode)
    present = np.array(getattr(bone, channel), dtype=np.float64)
    keyed = _keyed_values(rig, bone_path(bone.name, channel), present, frame)
    if keyed is not None:
        rotation = from_channels(bone.rotation_mode, present)
        setattr(bone, channel, to_channels(bone.rotation_mode, rotation[None], previous=keyed)[1][0])
    return channel


def _keyed_values(rig: bpy.types.Object, path: str, present: FloatArray, frame: float) -> FloatArray | None:
    """What the curves of a channel say on a frame; None without curves."""
    found: Sequence[bpy.types.FCurve] = [curve for curve in keyframes.curves(rig) if curve.data_path == path]
    if not found:
        return None
    values = present.copy()
    for curve in found:
        values[curve.array_index] = curve.evaluate(frame)
    return values
