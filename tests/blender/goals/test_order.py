"""The preset that orders a human rig's effectors."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import scenes

from fabrik_addon.blender.goals.effectors import pin_bones

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def rig():
    made = scenes.make_rig()
    for bone in ("head", "forearm.L", "forearm.R", "shin.L"):
        scenes.aim(made, bone, scenes.empty_at(made.pose.bones[bone].tail, bone))
    pin_bones(made, ["shin.R"])
    scenes.make_active(made)
    return made


def priorities(rig):
    return {effector.bone: effector.priority for effector in rig.fabrik.effectors}


def test_feet_come_before_hands_and_hands_before_the_head(rig):
    assert bpy.ops.fabrik.order_effectors() == {"FINISHED"}
    assert priorities(rig) == {"head": 2, "forearm.L": 1, "forearm.R": 1, "shin.L": 0, "shin.R": 0}


def test_the_trunk_comes_before_the_head(rig):
    scenes.aim(rig, "hips", scenes.empty_at((0, 0, 1)))
    bpy.ops.fabrik.order_effectors()
    assert priorities(rig) == {"head": 3, "hips": 2, "forearm.L": 1, "forearm.R": 1, "shin.L": 0, "shin.R": 0}


@pytest.mark.parametrize(
    ("feet", "hands", "head"),
    [
        (("mixamorig:LeftFoot", "mixamorig:RightFoot"), ("mixamorig:LeftHand",), "mixamorig:Head"),
        (("foot_l", "foot_r"), ("hand_l", "hand_r"), "head"),
        (("foot.L", "toe.R"), ("hand.L", "f_index.01.R"), "head"),
    ],
)
def test_all_naming_schemes_get_the_same_order(feet, hands, head):
    bones = [*feet, *hands, head]
    rig = scenes.make_rig([(bone, "", (place, 0, 0), (place, 0, 1)) for place, bone in enumerate(bones)])
    for bone in reversed(bones):
        scenes.aim(rig, bone, scenes.empty_at((0, 0, 0)))
    scenes.make_active(rig)
    bpy.ops.fabrik.order_effectors()
    assert priorities(rig) == {**dict.fromkeys(feet, 0), **dict.fromkeys(hands, 1), head: 2}


def test_bones_with_unknown_names_keep_their_priority(rig):
    rig.data.bones["head"].name = "antenna"
    rig.fabrik.effectors[0].bone, rig.fabrik.effectors[0].priority = "antenna", 7
    bpy.ops.fabrik.order_effectors()
    assert priorities(rig) == {"antenna": 7, "forearm.L": 1, "forearm.R": 1, "shin.L": 0, "shin.R": 0}


def test_unknown_names_are_reported():
    rig = scenes.make_rig([("a", "", (0, 0, 0), (0, 0, 1))])
    scenes.make_active(rig)
    assert not bpy.ops.fabrik.order_effectors.poll()
    scenes.aim(rig, "a", scenes.empty_at((0, 0, 1)))
    with pytest.raises(RuntimeError, match="on a bone with a known name"):
        bpy.ops.fabrik.order_effectors()


def test_feet_stay_if_hands_cannot_reach(rig):
    bpy.ops.fabrik.order_effectors()
    rig.fabrik.root = "FREE"
    rig.fabrik.effectors["forearm.L"].target.location += Vector((1.0, 0.0, 1.0))
    bpy.ops.fabrik.solve()
    bpy.context.view_layer.update()
    foot = np.array(rig.pose.bones["shin.L"].tail)
    assert foot == pytest.approx(np.array(rig.fabrik.effectors["shin.L"].target.location), abs=0.01)
