"""Selections are restored."""

import bpy
import pytest
from support import limited, scenes

from fabrik_addon.blender.settings.selection import SelectionKeeper, selected_bones

pytestmark = pytest.mark.usefixtures("clean_scene")


def state(rigs):
    return (
        bpy.context.view_layer.objects.active,
        [rig.data.bones.active for rig in rigs],
        [[bone.name for bone in selected_bones(bpy.context, rig)] for rig in rigs],
    )


def test_selected_and_active_bones_of_all_posed_armatures_are_restored():
    rigs = [scenes.make_rig(name="One"), scenes.make_rig(name="Two")]
    for rig in rigs:
        rig.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    limited.select(rigs[1], ["head", "spine"], active="head")
    before = state(rigs)
    assert before[2][1]
    keeper = SelectionKeeper(bpy.context)
    bpy.ops.pose.select_all(action="INVERT")
    bpy.context.view_layer.objects.active = rigs[0]
    rigs[0].data.bones.active = rigs[0].data.bones["spine"]
    rigs[1].data.bones.active = None
    assert state(rigs) != before
    keeper.restore(bpy.context)
    assert state(rigs) == before


def test_a_deleted_rig_is_ignored():
    rig = scenes.make_rig()
    bpy.ops.object.mode_set(mode="POSE")
    keeper = SelectionKeeper(bpy.context)
    bpy.data.objects.remove(rig)
    keeper.restore(bpy.context)
