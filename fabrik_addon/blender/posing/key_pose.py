"""Keys for what solving has posed, and for nothing else."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...core.arrays import FloatArray
from ..control.body import bones_on_ik, placing_controls, read_trees
from ..control.switches import switches_to_key
from ..goals.effectors import check_effectors
from ..goals.goals import gather_goals
from ..goals.root import moves_root
from ..rig import keyframes
from ..rig.actions import check_action
from ..rig.armature import RigError, check_editable
from ..rig.keyframes import bone_path
from ..rig.keying import key_channels, key_in_steps, why_no_key
from ..rig.rotation_modes import from_channels, property_name, to_channels
from ..settings.control import control_rig


def key_pose(context: bpy.types.Context, rig: bpy.types.Object) -> list[str]:
    """Insert keys on the present frame for the bones that the effectors move, as they are posed; returns their names.

    Raises a FabrikError, with nothing keyed, where the rig can't be solved, its action can't be written, or the active
    keying set has none of those bones.
    """
    check_effectors(context.scene, rig)
    check_editable(rig)
    check_action(rig, new=False)
    trees = gather_goals(rig, read_trees(rig))
    kept, bones = control_rig(rig), [bone for goals in trees for bone in goals.bone_names]
    moved = [goals.tree.skeleton.names[0] for goals in trees if moves_root(rig, goals)]
    if kept is not None:
        on_ik, placing = bones_on_ik(rig), placing_controls(rig, bones)
        # What moves the body is turned with it, where it carries what is solved.
        moved = [*(kept.place for _ in moved[:1]), *placing]
        bones = [*(kept.carriers[bone].control for bone in bones if bone not in on_ik), *moved]
    frame = context.scene.frame_current_final
    channels = [(bone, _beside_its_keys(rig, rig.pose.bones[bone], frame)) for bone in bones if bone in rig.pose.bones]
    channels += [(bone, "scale") for goals in trees for bone in goals.slides]
    channels += [(bone, "location") for bone in moved]
    keyed = key_channels(context, rig, channels, automatic=False)
    if not keyed:
        raise RigError(why_no_key(context, automatic=False))
    for path in switches_to_key(rig):
        key_in_steps(rig, path, frame)
    return keyed


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
