"""Makes an armature with an action from a recorded body, without Blender's importers."""

import bpy
import numpy as np

from ...core.rotations import conjugate, product, quaternion_from_matrix
from ...retarget.files.recorded import Recorded
from ...retarget.motion import RetargetError
from ..capture.clip import scene_rate
from ..capture.import_markers import FASTEST_RATE, LAST_FRAME, Timing, set_rate, widen_range
from ..rig.actions import new_action
from ..rig.keyframes import bone_path, write_curves
from ..rig.pose_writer import in_object_mode


def add_recorded(
    context: bpy.types.Context,
    body: Recorded,
    name: str,
    *,
    timing: Timing = "SET_SCENE_RATE",
    start_frame: int = 1,
    scale: float = 1.0,
) -> bpy.types.Object:
    """Make an armature from a recorded body, with its motion as keys of a new action.

    The active object, its mode and the selection don't change. timing, start_frame, scale: as in `import_clip`. Raises
    RetargetError, with nothing changed, for rates and frames that exceed Blender's limits.
    """
    if not 0.0 < body.rate <= FASTEST_RATE:
        raise RetargetError(f"{name}: the frame rate is {body.rate:g}: it must be above 0 and at most {FASTEST_RATE:g}")
    step = scene_rate(context.scene) / body.rate if timing == "KEEP_TIME" else 1.0
    frames = start_frame + step * body.frames
    if np.abs(frames[[0, -1]]).max() > LAST_FRAME:
        raise RetargetError(f"{name}: it has frames after {LAST_FRAME}, Blender's last frame: import fewer")
    if timing == "SET_SCENE_RATE":
        set_rate(context.scene, body.rate)
    widen_range(context.scene, frames)
    armature = bpy.data.armatures.new(name)
    rig = bpy.data.objects.new(name, armature)
    context.scene.collection.objects.link(rig)
    selected = list(context.selected_objects)
    with in_object_mode(context):
        context.view_layer.objects.active = rig
        bpy.ops.object.mode_set(mode="EDIT")
        for place, bone_name in enumerate(body.names):
            bone = armature.edit_bones.new(bone_name)
            bone.head, bone.tail = (scale * body.heads[place]).tolist(), (scale * body.tails[place]).tolist()
            if body.parents[place] >= 0:
                bone.parent = armature.edit_bones[body.names[body.parents[place]]]
        bpy.ops.object.mode_set(mode="OBJECT")
    for thing in context.view_layer.objects:
        thing.select_set(thing in selected)
    action = new_action(rig, name)
    for place, bone_name in enumerate(body.names):
        # The bone's axes at rest.
        axes = np.array(armature.bones[bone_name].matrix_local, dtype=np.float64)[:3, :3]
        own = quaternion_from_matrix(axes)
        quaternions = product(product(conjugate(own), body.rotations[:, place]), own)
        # Choose signs so that each quaternion is nearest to the previous one.
        flips = np.where((quaternions[1:] * quaternions[:-1]).sum(axis=1) < 0.0, -1.0, 1.0)
        rotations = quaternions * np.append(1.0, np.cumprod(flips))[:, None]
        write_curves(action, rig, bone_path(bone_name, "rotation_quaternion"), frames, rotations, bone_name)
        if body.parents[place] < 0:
            moved = scale * (body.root - body.heads[place]) @ axes
            write_curves(action, rig, bone_path(bone_name, "location"), frames, moved, bone_name)
    return rig
