"""The limit tools on a generated Rigify human: they see the bones as its controls pose them, and write controls."""

import bpy
import numpy as np
import pytest
from support.limited import refusal, select, write_limit
from support.rigify import open_set_up
from support.takes import curves, go_to

from fabrik_addon.blender.control.posed_rig import posed_rig
from fabrik_addon.blender.limits.action import check_action
from fabrik_addon.core import Ball, Hinge, Polygon
from fabrik_addon.core.limits import excess

pytestmark = pytest.mark.usefixtures("clean_scene", "preferences")

FOREARM, SHIN = "ORG-forearm.L", "ORG-shin.L"
NARROW = Hinge("X", np.radians(-6.0), np.radians(6.0))
BENT = np.radians(68.0)


@pytest.fixture
def human():
    return open_set_up("Basic.basic_human")


def off(rig, bone, limit):
    """Degrees that a bone is outside a limit as it is evaluated."""
    bpy.context.view_layer.update()
    for tree in posed_rig(rig).trees():
        if bone in tree.skeleton.names:
            return np.degrees(excess(limit, tree.rotations[tree.skeleton.index(bone)][None])[0])
    raise AssertionError(bone)


def bend_on_fk(rig, control="forearm_fk.L", angle=BENT):
    rig.pose.bones["upper_arm_parent.L"]["IK_FK"] = 1.0
    bone = rig.pose.bones[control]
    bone.rotation_mode = "XYZ"
    bone.rotation_euler = (angle, 0.0, 0.0)
    rig.update_tag()
    bpy.context.view_layer.update()


def test_a_pose_on_fk_is_clamped(human):
    write_limit(human.pose.bones[FOREARM], NARROW)
    bend_on_fk(human)
    assert off(human, FOREARM, NARROW) == pytest.approx(62.0, abs=0.1)
    assert bpy.ops.fabrik.clamp_pose(bones="forearm_fk.L") == {"FINISHED"}
    assert off(human, FOREARM, NARROW) < 0.01
    assert np.degrees(human.pose.bones["forearm_fk.L"].rotation_euler.x) == pytest.approx(6.0, abs=0.1)


def test_a_pose_on_ik_is_clamped_and_stays_on_ik(human):
    human.pose.bones["foot_ik.L"].location = (0.0, -0.3, 0.3)
    limit = Hinge("X", -0.2, 0.6)
    write_limit(human.pose.bones[SHIN], limit)
    assert off(human, SHIN, limit) > 20.0
    assert bpy.ops.fabrik.clamp_pose(bones="shin_fk.L") == {"FINISHED"}
    # Rigify's IK shortens the leg by up to 2 %, so that its knee is bent by less.
    assert off(human, SHIN, limit) < 3.0
    assert human.pose.bones["thigh_parent.L"]["IK_FK"] == 0.0
    assert not any(human.pose.bones["shin_fk.L"].rotation_euler)


def test_a_pose_inside_its_limits_does_not_change(human):
    write_limit(human.pose.bones[FOREARM], NARROW)
    bend_on_fk(human, angle=0.05)
    before = [tuple(bone.matrix_basis.col[0]) for bone in human.pose.bones]
    bpy.ops.fabrik.clamp_pose(bones="forearm_fk.L")
    assert [tuple(bone.matrix_basis.col[0]) for bone in human.pose.bones] == before


def test_constraints_are_added_to_controls(human):
    write_limit(human.pose.bones[FOREARM], NARROW)
    bpy.ops.fabrik.limits_to_constraints(bones="forearm_fk.L")
    assert not [each for each in human.pose.bones[FOREARM].constraints if each.type == "LIMIT_ROTATION"]
    assert [each.type for each in human.pose.bones["forearm_fk.L"].constraints] == ["LIMIT_ROTATION"]
    bend_on_fk(human)
    assert off(human, FOREARM, NARROW) < 0.01


def test_a_limit_point_is_set_from_the_swing_of_the_bone(human):
    polygon = Polygon(((0.1, 0.1), (-0.1, 0.1), (-0.1, -0.1), (0.1, -0.1)))
    write_limit(human.pose.bones["ORG-upper_arm.L"], polygon)
    bend_on_fk(human, "upper_arm_fk.L", 0.7)
    bpy.ops.fabrik.add_limit_point(bones="upper_arm_fk.L", from_pose=True)
    window = np.array(human.pose.bones["ORG-upper_arm.L"]["fabrik_window"]).reshape(-1, 2)
    point = window[np.abs(window - (0.0, 0.7)).max(axis=1).argmin()]
    assert point == pytest.approx((0.0, 0.7), abs=1e-3)
    # Fixed: the rounding of single precision was shown, as -0.0000012 degrees.
    assert str(point[0]) == "0.0"


def keyed(rig):
    """The arm bends from 0 to 68 degrees in 10 frames."""
    for frame, angle in ((1, 0.0), (11, BENT)):
        bend_on_fk(rig, angle=angle)
        rig.pose.bones["forearm_fk.L"].keyframe_insert("rotation_euler", frame=frame)
    go_to(3)
    write_limit(rig.pose.bones[FOREARM], NARROW)


def test_an_action_is_checked_and_fixed(human):
    keyed(human)
    (breach,) = check_action(bpy.context, human, [human.pose.bones[FOREARM]])
    assert breach.frames[-1] == 11
    assert breach.frames[0] > 1
    assert np.degrees(breach.excess.max()) == pytest.approx(62.0, abs=0.1)
    assert bpy.context.scene.frame_current == 3
    assert bpy.ops.fabrik.check_action(bones="forearm_fk.L", mend=True) == {"FINISHED"}
    assert check_action(bpy.context, human, [human.pose.bones[FOREARM]]) == []
    assert {path.split('"')[1] for path, _ in curves(human)} == {"forearm_fk.L"}


def test_limits_are_made_from_the_rotations_of_an_action(human):
    keyed(human)
    select(human, ("forearm_fk.L",), "forearm_fk.L")
    bpy.ops.fabrik.limits_from_action(margin=0.0)
    bone = human.pose.bones[FOREARM]
    assert bone["fabrik_limit"] == "HINGE"
    assert np.degrees(np.array(bone["fabrik_hinge"])) == pytest.approx((0.0, 68.0), abs=0.1)


def test_limits_that_controls_cannot_represent_are_reported(human):
    write_limit(human.pose.bones["ORG-hand.L"], Ball(0.5))
    human.fabrik.control.carriers["ORG-hand.L"].control = ""
    told = refusal(bpy.ops.fabrik.limits_to_constraints, bones="ORG-hand.L")
    assert "Bone 'ORG-hand.L' has no control with the same rotation" in told
