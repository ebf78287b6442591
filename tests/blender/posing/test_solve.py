"""Posing the current frame: the resulting positions in Blender, and what does not change."""

import bpy
import numpy as np
import pytest
from support import scenes

from fabrik_addon.blender.goals.effectors import pin_bones
from fabrik_addon.blender.posing.solve import solve_frame

pytestmark = pytest.mark.usefixtures("clean_scene")


def reaching_rig(seed, *, mode="QUATERNION", scale=1.0, move=(0.0, 0.0, 0.0)):
    """A person whose targets are at its ends in a random pose, so that all can be met."""
    rig = scenes.place(scenes.make_rig(mode=mode), scale=scale)
    turns, _ = scenes.smooth_motion(rig, 1, seed)
    points = scenes.record(rig, scenes.tail_points(rig), turns, [move])[0]
    for bone, point in zip(scenes.ENDS, points, strict=True):
        scenes.aim(rig, bone, scenes.empty_at(point, f"{bone} target"))
    scenes.make_active(rig)
    return rig


def distances(rig):
    """World distances from effectors to targets, as Blender evaluates them."""
    bpy.context.view_layer.update()
    return np.array([distance(rig, effector) for effector in rig.fabrik.effectors])


def distance(rig, effector):
    end = rig.matrix_world @ rig.pose.bones[effector.bone].tail
    return (end - effector.target.matrix_world.translation).length


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_targets_are_met_in_any_rotation_mode_and_scale(seed, scale):
    rig = reaching_rig(seed, mode="MIXED", scale=scale)
    assert bpy.ops.fabrik.solve() == {"FINISHED"}
    assert distances(rig).max() < 1e-3 * scenes.HEIGHT * scale


def test_the_root_stays_unless_it_is_free():
    move = (0.3, -0.4, 0.1)
    rig = reaching_rig(1, move=move)
    bpy.ops.fabrik.solve()
    assert tuple(rig.pose.bones["hips"].location) == (0.0, 0.0, 0.0)
    assert distances(rig).max() > 0.05
    rig.fabrik.root = "FREE"
    bpy.ops.fabrik.solve()
    assert distances(rig).max() < 1e-3 * scenes.HEIGHT
    assert rig.pose.bones["hips"].location.length > 0.1


def test_errors_are_world_meters():
    rig = scenes.place(scenes.make_rig(), scale=2.0)
    scenes.aim(rig, "forearm.L", scenes.empty_at((50.0, 0.0, 0.0)))
    result = solve_frame(bpy.context, rig)
    assert np.allclose(result.errors, distances(rig), atol=1e-3)
    assert result.line == f"0 of 1 targets met, worst {result.errors[0]:.1f} m: out of reach"


def test_the_reason_for_a_missed_target_is_shown_again_and_in_other_units():
    """Solved again, the pose and the message do not change."""
    rig = scenes.make_rig()
    scenes.aim(rig, "forearm.L", scenes.empty_at((1.0, 0.0, 3.0)))
    scenes.make_active(rig)
    bpy.ops.object.mode_set(mode="POSE")
    pin_bones(rig, ("shin.R",))
    bpy.context.scene.unit_settings.system = "IMPERIAL"
    lines = [solve_frame(bpy.context, rig).line for _ in range(2)]
    assert lines[0] == lines[1]
    assert lines[0].endswith("': shin.R is pinned")


def test_the_line_counts_met_and_visible_targets():
    rig = reaching_rig(2)
    assert solve_frame(bpy.context, rig).line.startswith("5 of 5 targets met, worst 0 m")
    hidden = scenes.import_positions(np.full((3, 1, 3), np.nan), ["hidden"])["hidden"]
    scenes.aim(rig, "spine", hidden)
    assert solve_frame(bpy.context, rig).line.endswith("m, 1 not seen")


def test_the_reason_for_a_missed_target_is_shown_beside_a_target_that_is_not_seen():
    """Fixed: the error of the unseen target is not a number, so the reason was lost."""
    rig = scenes.make_rig()
    scenes.aim(rig, "forearm.L", scenes.empty_at((50.0, 0.0, 0.0)))
    scenes.aim(rig, "head", scenes.import_positions(np.full((3, 1, 3), np.nan), ["hidden"])["hidden"])
    assert solve_frame(bpy.context, rig).line.endswith("m: out of reach, 1 not seen")


def test_without_a_visible_target_the_pose_does_not_change():
    rig = scenes.make_rig()
    scenes.aim(rig, "head", scenes.import_positions(np.full((3, 1, 3), np.nan), ["hidden"])["hidden"])
    scenes.pose(rig, scenes.smooth_motion(rig, 1, 3)[0][0])
    before = scenes.digest()
    assert solve_frame(bpy.context, rig).line == "No target is seen on this frame: the pose was not changed"
    assert scenes.digest() == before


def test_bones_outside_the_chain_do_not_change():
    rig = scenes.make_rig(mode="MIXED")
    scenes.pose(rig, scenes.smooth_motion(rig, 1, 4)[0][0])
    rig.pose.bones["thigh.L"].rotation_axis_angle = (7.0, 0.1, 0.2, 0.3)
    rig.pose.bones["shin.R"].rotation_quaternion = (2.0, 0.3, 0.4, 0.5)
    scenes.aim(rig, "forearm.L", scenes.empty_at((0.3, 0.4, 1.2)))
    before = scenes.digest()["objects"]["Rig"]["bones"]
    solve_frame(bpy.context, rig)
    after = scenes.digest()["objects"]["Rig"]["bones"]
    assert {bone for bone in before if before[bone] != after[bone]} == {"hips", "spine", "upper_arm.L", "forearm.L"}


def test_from_rest_the_pose_before_does_not_matter():
    rig = reaching_rig(5)
    poses = []
    for seed in (6, 7):
        scenes.pose(rig, scenes.smooth_motion(rig, 1, seed)[0][0])
        bpy.ops.fabrik.solve(start="REST")
        bpy.context.view_layer.update()
        poses.append(np.array([bone.matrix for bone in rig.pose.bones if bone.name in scenes.ENDS]))
    assert np.allclose(poses[0], poses[1], atol=1e-5)


def test_solving_again_does_not_move_a_solved_pose():
    rig = reaching_rig(8)
    bpy.ops.fabrik.solve()
    bpy.context.view_layer.update()
    before = np.array([bone.matrix for bone in rig.pose.bones])
    bpy.ops.fabrik.solve()
    bpy.context.view_layer.update()
    assert np.allclose(np.array([bone.matrix for bone in rig.pose.bones]), before, atol=1e-3)


def test_targets_moved_by_hand_over_their_keys_are_used():
    rig = reaching_rig(9)
    ball = rig.fabrik.effectors[0].target
    ball.keyframe_insert("location", frame=1)
    ball.location.z -= 0.05
    bpy.ops.fabrik.solve()
    assert distances(rig)[0] < 1e-3 * scenes.HEIGHT


def test_target_can_be_a_bone_of_another_rig():
    rig = scenes.make_rig()
    other = scenes.place(scenes.make_rig([("tip", "", (0.2, 0.3, 1.1), (0.2, 0.3, 1.4))], "Other"), (0.1, 0, 0), 0.2)
    scenes.aim(rig, "forearm.L", other, target_bone="tip")
    solve_frame(bpy.context, rig)
    bpy.context.view_layer.update()
    assert (rig.pose.bones["forearm.L"].tail - other.matrix_world @ other.pose.bones["tip"].head).length < 1e-3


def test_other_points_on_bones_reach_targets():
    rig = scenes.make_rig()
    ball = scenes.empty_at((0.3, 0.3, 1.3))
    effector = scenes.aim(rig, "forearm.L", ball, point="HEAD")
    solve_frame(bpy.context, rig)
    bpy.context.view_layer.update()
    assert (rig.pose.bones["forearm.L"].head - ball.location).length < 1e-3
    effector.point, effector.offset = "OFFSET", (0.03, 0.1, -0.02)
    solve_frame(bpy.context, rig)
    bpy.context.view_layer.update()
    assert (rig.pose.bones["forearm.L"].matrix @ effector.offset - ball.location).length < 1e-3


def test_a_scaled_bone_that_no_effector_needs_changes_nothing():
    rig = reaching_rig(10)
    for effector in list(rig.fabrik.effectors):
        effector.enabled = effector.bone != "shin.L"
    rig.pose.bones["shin.L"].scale = (1.0, 2.0, 1.0)
    assert solve_frame(bpy.context, rig).met == len(scenes.ENDS) - 1
    assert distances(rig)[[name != "shin.L" for name in scenes.ENDS]].max() < 1e-3 * scenes.HEIGHT


def test_errors_of_solving_name_the_problem_and_change_nothing():
    rig = reaching_rig(10)
    rig.pose.bones["shin.L"].scale = (1.0, 2.0, 1.0)
    before = scenes.digest()
    with pytest.raises(RuntimeError, match=r"'shin\.L'"):
        bpy.ops.fabrik.solve()
    assert scenes.digest() == before
