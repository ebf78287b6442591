"""Two other people than the sample person, limited by the human preset: Rigify's meta-rig and a Mixamo skeleton."""

from dataclasses import replace

import addon_utils
import bpy
from mathutils import Vector
from support import humans

from fabrik_addon.blender.limits.editing import apply_preset

# Names of the paths' bones on the meta-rig; only those of the left side, since the right ones follow from them.
METARIG = {"hips": "spine", "upper_chest": "spine.003", "head": "spine.006"}
MIXAMO = {
    "hips": "mixamorig:Hips", "upper_chest": "mixamorig:Spine1", "head": "mixamorig:Head",
    "hand.L": "mixamorig:LeftHand", "foot.L": "mixamorig:LeftFoot", "foot.R": "mixamorig:RightFoot",
    "thigh.L": "mixamorig:LeftUpLeg",
}  # fmt: skip


def open_metarig():
    """Rigify's human meta-rig, which comes with Blender: bent elbows, a face, palms."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    addon_utils.enable("rigify", default_set=True)
    bpy.ops.object.armature_human_metarig_add()
    return _ready(bpy.context.object)


def open_mixamo():
    """A person in a T pose, limbs straight, with the names and the rolls of a Mixamo character."""
    return _ready(built(humans.named(humans.human(arms=0.0), humans.mixamo)))


def built(rows):
    """An armature of bones as in `support.humans`, alone in the scene, in Object mode."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for row in rows:
        bone = rig.data.edit_bones.new(row.name)
        bone.head, bone.tail = row.head.tolist(), row.tail.tolist()
        bone.align_roll(Vector(row.axes[:, 2].tolist()))
        bone.parent = rig.data.edit_bones.get(row.parent)
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def _ready(rig):
    """Limit the rig, and switch to Pose mode and to quaternions."""
    apply_preset(rig, list(rig.pose.bones))
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    return rig


RIGS = {"Rigify's meta-rig": (open_metarig, METARIG), "Mixamo": (open_mixamo, MIXAMO)}


def named(path, names):
    """A path with a rig's bone names."""
    return replace(
        path, bone=names.get(path.bone, path.bone), pinned=tuple(names.get(each, each) for each in path.pinned)
    )
