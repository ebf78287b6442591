"""Rigs with takes: the walking sample person, with keys on every frame or on a few, and the poses."""

from pathlib import Path

import bpy
import numpy as np
from support import walker
from support.dragging import active

from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.rig.armature import root_location_channel
from fabrik_addon.blender.rig.keyframes import bone_path, new_action, write_curves

HUMAN = Path(__file__).parents[2] / "sample_rigs" / "human.blend"


def active_human():
    """The sample person in Pose mode, without a motion."""
    bpy.ops.wm.open_mainfile(filepath=str(HUMAN))
    return active(bpy.data.objects["Rig"])


def walking_human(frames=101, step=1, first=120):
    """The sample person in Pose mode with the true walk keyed on frames 1, 1 + step, ...; auto-keying is on."""
    rig = active_human()
    rows = np.arange(first, first + frames)[::step]
    times = np.arange(1, frames + 1)[::step]
    action = new_action(rig, "Walk")
    for place, bone in enumerate(walker.skeleton().names):
        rig.pose.bones[bone].rotation_mode = "QUATERNION"
        turns = walker.true_rotations()[rows, place]
        write_curves(action, rig, bone_path(bone, "rotation_quaternion"), times, turns, bone)
    root = rig.pose.bones[walker.skeleton().names[0]]
    places = root_location_channel(root, walker.true_matrices()[rows, 0, :3, 3])
    write_curves(action, rig, bone_path(root.name, "location"), times, places, root.name)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    go_to(1)
    return rig


def go_to(frame):
    bpy.context.scene.frame_set(frame)


def curves(rig):
    """(K, 2) keys of every curve."""
    return {(curve.data_path, curve.array_index): keyframes.keys(curve) for curve in keyframes.curves(rig)}


def poses(rig, frames):
    """(F, N, 4, 4) of all bones in armature space; the scene stays on its frame."""
    scene = bpy.context.scene
    before, found = scene.frame_current, []
    for frame in frames:
        go_to(int(frame))
        found.append([bone.matrix.copy() for bone in rig.pose.bones])
    go_to(before)
    return np.array(found)


def accelerations(heads):
    """(F - 2, N) accelerations of points (F, N, 3), per frame squared."""
    return np.linalg.norm(np.diff(heads, 2, axis=0), axis=2)
