"""Puts rigs in Pose mode, drags their bones, and reads the channels."""

import bpy
import numpy as np
from support import scenes

from fabrik_addon.blender.posing.drag import DragSettings, begin_drag
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.blender.settings.limit_properties import read_limits
from fabrik_addon.core.limits import legal_rotations
from fabrik_addon.core.rotations import angle_between


def active(rig):
    scenes.make_active(rig)
    bpy.ops.object.mode_set(mode="POSE")
    return rig


def person(**options):
    return active(scenes.make_rig(**options))


def world(rig, bone, end="tail"):
    bpy.context.view_layer.update()
    return np.array(rig.matrix_world @ getattr(rig.pose.bones[bone], end))


def drag_by(rig, bone, shift, point="TAIL", **settings):
    """Drag in ten steps; returns the result of the last one."""
    drag = begin_drag(bpy.context, rig, bone, point=point, settings=DragSettings(**settings))
    for share in np.linspace(0.1, 1.0, 10):
        result = drag.step(drag.start + share * np.array(shift))
    drag.finish(bpy.context)
    bpy.context.view_layer.update()
    return result


def channels(rig):
    """The exact channels of every bone."""
    return scenes.digest()["objects"][rig.name]["bones"]


def changed(rig, before):
    now = channels(rig)
    return {bone for bone in before if before[bone] != now[bone]}


def farthest_outside(rig, but=()):
    """The largest angle of a bone outside its limit, in radians; some bones are ignored."""
    tree = read_trees(rig)[0]
    limits = read_limits(rig)
    turns = [
        (tree.rotations[tree.skeleton.index(name)][None], limit) for name, limit in limits.items() if name not in but
    ]
    return max(float(angle_between(turn, legal_rotations(limit, turn)).max()) for turn, limit in turns)


def heads(rig):
    bpy.context.view_layer.update()
    return np.array([bone.matrix for bone in rig.pose.bones])
