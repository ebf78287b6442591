"""Limits without the solver: current poses and actions are clamped; an independent checker judges the results."""

import bpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mathutils import Euler, Quaternion
from support import checker, limited, scenes
from support.limited import write_limit

from fabrik_addon.blender.limits.action import Breach, check_action, fix_action
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.rig.armature import RigError
from fabrik_addon.blender.settings.limit_properties import read_limit
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon

pytestmark = pytest.mark.usefixtures("clean_scene")

NAME = "upper_arm.L"
LIMITS = {
    "upper_arm.L": Ball((0.5, 0.8, 0.2, 0.6), (-0.4, 0.6)),
    "forearm.L": Hinge("X", 0.2, 2.0),
    "thigh.L": Polygon(((0.5, 0.2), (0.1, 0.8), (-0.4, 0.1), (-0.1, -0.6)), (-0.3, 0.3)),
    "head": Fixed(),
}


@pytest.fixture
def rig(clean_scene):
    return limited.make_mirrored_rig()


def excess(bone):
    """Degrees that a bone is outside its limit."""
    turns = checker.matrices(limited.quaternion_of(bone)[None])
    return np.degrees(checker.distances(read_limit(bone), turns)[0][0])


class TestClampPose:
    """`fabrik.clamp_pose` rotates bones to the nearest rotation inside."""

    @limited.in_one_scene(60)
    @given(limit=limited.limits, seed=st.integers(0, 1000), mode=st.sampled_from(scenes.MODES))
    def test_every_bone_ends_inside(self, rig, limit, seed, mode):
        bone = rig.pose.bones[NAME]
        bone.rotation_mode = mode
        write_limit(bone, limit)
        limited.turn(bone, np.random.default_rng(seed).normal(size=4))
        bpy.ops.fabrik.clamp_pose(bones=NAME)
        assert excess(bone) < 0.01

    @pytest.mark.parametrize("mode", scenes.MODES)
    def test_rotations_inside_do_not_change(self, rig, mode):
        for seed, (name, limit) in enumerate(LIMITS.items()):
            bone = rig.pose.bones[name]
            bone.rotation_mode = mode
            write_limit(bone, limit)
            limited.turn(bone, checker.random_rotations_inside(limit, np.random.default_rng(seed), 1)[0])
        before = scenes.digest()
        bpy.ops.fabrik.clamp_pose(bones=",".join(LIMITS))
        assert scenes.digest() == before

    def test_the_nearest_rotation_inside_is_chosen(self, rig):
        bone = rig.pose.bones[NAME]
        write_limit(bone, LIMITS[NAME])
        for seed in range(5):
            limited.turn(bone, np.random.default_rng(seed).normal(size=4))
            wanted = checker.clamped(LIMITS[NAME], checker.matrices(limited.quaternion_of(bone)[None]))
            bpy.ops.fabrik.clamp_pose(bones=NAME)
            found = checker.matrices(limited.quaternion_of(bone)[None])
            assert np.allclose(found, wanted, atol=1e-5)

    def test_only_selected_bones(self, rig):
        for name in ("forearm.L", "forearm.R"):
            write_limit(rig.pose.bones[name], Hinge("X", 0.5, 1.0))
        limited.select(rig, ["forearm.L", "head"])
        bpy.ops.fabrik.clamp_pose()
        assert excess(rig.pose.bones["forearm.L"]) < 0.01
        assert excess(rig.pose.bones["forearm.R"]) == pytest.approx(np.degrees(0.5), abs=0.01)

    def test_euler_angles_stay_near_their_previous_values(self, rig):
        bone = rig.pose.bones["forearm.L"]
        bone.rotation_mode = "XYZ"
        write_limit(bone, Hinge("X", -0.5, 0.5))
        bone.rotation_euler = (2 * np.pi + 1.0, 0.0, 0.0)
        bpy.ops.fabrik.clamp_pose(bones="forearm.L")
        assert tuple(bone.rotation_euler) == pytest.approx((2 * np.pi + 0.5, 0.0, 0.0), abs=1e-5)

    @pytest.mark.parametrize("locked", [0, 1, 2])
    def test_locked_angles_stay(self, rig, locked):
        bone = rig.pose.bones[NAME]
        bone.rotation_mode = "YXZ"
        write_limit(bone, Ball((0.5, 0.5, 0.5, 0.5), (-0.4, 0.4)))
        start = [1.2, 1.2, 1.2]
        start[locked] = 0.3
        bone.rotation_euler = start
        bone.lock_rotation[locked] = True
        bpy.ops.fabrik.clamp_pose(bones=NAME)
        assert excess(bone) < 0.01
        assert bone.rotation_euler[locked] == pytest.approx(0.3, abs=1e-6)

    def test_locked_angles_of_a_quaternion(self, rig):
        bone = rig.pose.bones[NAME]
        write_limit(bone, Ball((0.5, 0.5, 0.5, 0.5), (-0.4, 0.4)))
        limited.turn(bone, Euler((1.2, 0.1, 0.2), "XYZ").to_quaternion())
        bone.lock_rotation[1], bone.lock_rotations_4d = True, False
        bpy.ops.fabrik.clamp_pose(bones=NAME)
        assert excess(bone) < 0.01
        assert bone.rotation_quaternion.to_euler("XYZ").y == pytest.approx(0.1, abs=1e-5)

    @pytest.mark.parametrize("locked", [0, 1, 2, 3])
    def test_locked_components_of_a_quaternion(self, rig, locked):
        bone = rig.pose.bones[NAME]
        write_limit(bone, Ball((0.5, 0.5, 0.5, 0.5), (-1.0, 1.0)))
        start = np.array(Euler((0.8, 0.2, 0.7), "XYZ").to_quaternion())
        start[locked] = 1.4 if locked == 0 else 0.05
        start /= np.linalg.norm(start)
        bone.rotation_quaternion = start
        (bone.lock_rotation_w, *bone.lock_rotation), bone.lock_rotations_4d = (np.arange(4) == locked).tolist(), True
        assert excess(bone) > 1.0
        bpy.ops.fabrik.clamp_pose(bones=NAME)
        assert excess(bone) < 0.01
        assert bone.rotation_quaternion[locked] == pytest.approx(start[locked], abs=1e-6)

    @pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "XYZ"])
    @pytest.mark.parametrize("locks", [(True, True, True), (True, False, False)])
    def test_fully_locked_bones_are_reported(self, rig, mode, locks, capfd):
        bone = rig.pose.bones[NAME]
        write_limit(bone, Ball((0.5, 0.5, 0.5, 0.5), (-0.4, 0.4)))
        bone.rotation_mode = mode
        limited.turn(bone, Euler((1.5, 0.0, 0.0), "XYZ").to_quaternion())
        bone.lock_rotation = locks
        before = scenes.digest()
        bpy.ops.fabrik.clamp_pose(bones=NAME)
        assert "Bone 'upper_arm.L' stays outside its limit: its rotation is locked" in "".join(capfd.readouterr())
        assert scenes.digest() == before


def key(bone, rotations, step=1, interpolation="LINEAR"):
    """Key quaternions every few frames, in the bone's rotation mode."""
    names = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    for row, rotation in enumerate(rotations):
        limited.turn(bone, rotation)
        bone.keyframe_insert(names.get(bone.rotation_mode, "rotation_euler"), frame=1 + row * step)
    for curve in keyframes.curves(bone.id_data):
        for point in curve.keyframe_points:
            point.interpolation = interpolation


def breaks(rig, frames):
    """Bone name to (F,) degrees outside its limit, as Blender plays the action."""
    found = {name: [] for name in LIMITS}
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        for name in LIMITS:
            found[name].append(excess(rig.pose.bones[name]))
    return {name: np.array(values) for name, values in found.items()}


@pytest.fixture
def moving_rig(rig, request):
    """Limited bones that swing in and out of their limits, in every rotation mode, with keys on every third frame."""
    modes = ("QUATERNION", "XYZ", "AXIS_ANGLE", "ZYX")
    for seed, (name, limit) in enumerate(LIMITS.items()):
        bone = rig.pose.bones[name]
        bone.rotation_mode = modes[seed]
        write_limit(bone, limit)
        rng = np.random.default_rng(seed)
        center = checker.random_rotations_inside(limit, rng, 1)[0]
        waves = [0.9 * np.sin(0.7 * row + rng.uniform(0, 3, 3)) for row in range(12)]
        key(bone, [Quaternion(center) @ Quaternion(wave, np.linalg.norm(wave)) for wave in waves], 3, "BEZIER")
    return rig


FRAMES = range(1, 35)


class TestCheckAction:
    """The check lists the bones and frames that break limits, and changes nothing."""

    def test_the_check_agrees_with_playback(self, moving_rig):
        shown = breaks(moving_rig, FRAMES)
        found = {breach.bone: breach for breach in check_action(bpy.context, moving_rig, moving_rig.pose.bones)}
        for name, outside in shown.items():
            frames = np.array(FRAMES)[outside > 0.011]
            listed = found[name].frames if name in found else np.array([])
            assert set(frames) <= set(listed)
            assert all(outside[frame - FRAMES[0]] > 0.009 for frame in listed)

    def test_the_excess_is_reported_for_each_frame(self, rig):
        bone = rig.pose.bones["forearm.L"]
        write_limit(bone, Hinge("X", 0.0, 1.0))
        key(bone, [Quaternion((1, 0, 0), angle) for angle in (0.5, 1.5, 2.0, 0.5, -0.2)])
        (breach,) = check_action(bpy.context, rig, rig.pose.bones)
        assert breach.frames.tolist() == [2, 3, 5]
        assert breach.excess == pytest.approx([0.5, 1.0, 0.2], abs=1e-5)
        assert breach.line == "'forearm.L' exceeds its limit on frames 2-3, 5: by 57.3° on frame 3"

    def test_a_violation_on_one_frame_is_reported(self):
        assert Breach("a", np.array([7]), np.array([0.1])).line == "'a' exceeds its limit on frame 7 by 5.7°"

    def test_the_operator_reports_and_changes_nothing(self, moving_rig, capfd):
        before = scenes.digest()
        assert bpy.ops.fabrik.check_action() == {"FINISHED"}
        assert scenes.digest() == before
        printed = "".join(capfd.readouterr())
        assert printed.count("exceeds its limit on frame") == 4
        assert "Bones outside their limits: 4, frames: " in printed

    def test_only_fixing_makes_an_undo_step(self, moving_rig):
        name, scene = moving_rig.name, bpy.context.scene
        last = scene.frame_end
        bpy.ops.ed.undo_push(message="before")
        scene.frame_end = last + 7
        bpy.ops.ed.undo_push(message="changed")
        bpy.ops.fabrik.check_action("EXEC_DEFAULT", True)
        bpy.ops.ed.undo()
        assert bpy.context.scene.frame_end == last
        bpy.ops.fabrik.check_action("EXEC_DEFAULT", True, mend=True)
        rig = bpy.data.objects[name]
        assert check_action(bpy.context, rig, rig.pose.bones) == []
        bpy.ops.ed.undo()
        rig = bpy.data.objects[name]
        assert len(check_action(bpy.context, rig, rig.pose.bones)) == 4

    def test_an_action_inside_its_limits_is_reported_as_valid(self, rig, capfd):
        bone = rig.pose.bones["forearm.L"]
        write_limit(bone, Hinge("X", 0.0, 1.0))
        key(bone, [Quaternion((1, 0, 0), angle) for angle in (0.5, 0.9)])
        bpy.ops.fabrik.check_action()
        action = rig.animation_data.action
        assert f"No limit is exceeded by action {action.name!r}" in "".join(capfd.readouterr())
        bpy.ops.fabrik.limits_from_action(bones="forearm.L")
        assert f"to the rotations in action {action.name!r}" in "".join(capfd.readouterr())
        strip = rig.animation_data.nla_tracks.new().strips.new("Bends", 1, action)
        strip.action_slot, rig.animation_data.action = rig.animation_data.action_slot, None
        bpy.ops.fabrik.check_action()
        assert f"No limit is exceeded by the NLA strips of {rig.name!r}" in "".join(capfd.readouterr())
        bpy.ops.fabrik.limits_from_action(bones="forearm.L")
        assert f"to the rotations in the NLA strips of {rig.name!r}" in "".join(capfd.readouterr())

    def test_strips_of_the_nla_are_checked_as_they_are_played(self, moving_rig):
        """Fixed: strips were ignored: the message was that there is no action."""
        before = {each.bone: each for each in check_action(bpy.context, moving_rig, moving_rig.pose.bones)}
        animation = moving_rig.animation_data
        action, slot = animation.action, animation.action_slot
        animation.action = None
        animation.nla_tracks.new().strips.new("Swings", 101, action).action_slot = slot
        bpy.context.scene.frame_set(3)
        found = {each.bone: each for each in check_action(bpy.context, moving_rig, moving_rig.pose.bones)}
        assert found.keys() == before.keys()
        for name, breach in found.items():
            assert breach.frames.tolist() == (before[name].frames + 100).tolist()
            assert breach.excess == pytest.approx(before[name].excess, abs=1e-4)
        assert bpy.context.scene.frame_current == 3
        with pytest.raises(RigError, match="only has NLA strips: select one"):
            fix_action(bpy.context, moving_rig, moving_rig.pose.bones)
        animation.nla_tracks[0].mute = True
        with pytest.raises(RigError, match="has no action: assign one, or insert keys first"):
            check_action(bpy.context, moving_rig, moving_rig.pose.bones)

    def test_only_selected_bones(self, moving_rig, capfd):
        limited.select(moving_rig, ["forearm.L"])
        bpy.ops.fabrik.check_action()
        assert "Bones outside their limits: 1, frames: " in "".join(capfd.readouterr())

    def test_other_bones_of_the_action_alone_are_refused(self, rig):
        key(rig.pose.bones["head"], [(1, 0, 0, 0)])
        write_limit(rig.pose.bones["forearm.L"], Hinge("X", 0.0, 1.0))
        assert "None of the bones ('forearm.L') is rotated by action" in limited.refusal(bpy.ops.fabrik.check_action)


class TestFixAction:
    """A fixed action keeps the limits on every frame; frames that were inside hardly change."""

    def test_every_frame_is_inside(self, moving_rig):
        mended, left = fix_action(bpy.context, moving_rig, moving_rig.pose.bones)
        assert len(mended) == 4
        assert left == []
        assert max(outside.max() for outside in breaks(moving_rig, FRAMES).values()) < 0.02
        assert check_action(bpy.context, moving_rig, moving_rig.pose.bones) == []

    def test_the_operator(self, moving_rig, capfd):
        bpy.ops.fabrik.check_action(mend=True)
        assert "Fixed bones outside their limits: 4, frames: " in "".join(capfd.readouterr())
        bpy.ops.fabrik.check_action()
        assert "No limit is exceeded by action" in "".join(capfd.readouterr())

    def test_keys_inside_stay_where_they_are(self, rig):
        bone = rig.pose.bones["forearm.L"]
        bone.rotation_mode = "XYZ"
        write_limit(bone, Hinge("X", 0.0, 1.0))
        key(bone, [Quaternion((1, 0, 0), angle) for angle in (0.5, 0.6, 1.5, 0.7, 0.2)], 10)
        fix_action(bpy.context, rig, [bone])
        curve = next(curve for curve in keyframes.curves(rig) if curve.array_index == 0)
        assert keyframes.keys(curve) == pytest.approx(
            np.array([(1, 0.5), (11, 0.6), (21, 1.0), (31, 0.7), (41, 0.2)]), abs=1e-5
        )
        assert {point.interpolation for point in curve.keyframe_points} == {"LINEAR"}

    def test_violations_between_keys_are_fixed(self, rig):
        """Both keys are inside the limit, but halfway between them the elbow is outside."""
        bone = rig.pose.bones["forearm.L"]
        bone.rotation_mode = "XYZ"
        write_limit(bone, Hinge("X", 0.0, 1.0))
        key(bone, [Quaternion((1, 0, 0), 0.9), Quaternion((1, 0, 0), 0.9)], 20, "BEZIER")
        for curve in keyframes.curves(rig):
            first, last = curve.keyframe_points
            first.handle_right_type = last.handle_left_type = "FREE"
            if curve.array_index == 0:
                first.handle_right, last.handle_left = (8.0, 2.0), (14.0, 2.0)
            curve.update()
        fix_action(bpy.context, rig, [bone])
        for frame in range(1, 22):
            bpy.context.scene.frame_set(frame)
            assert excess(bone) < 0.02

    def test_components_without_a_curve_are_keyed_only_if_needed(self, rig):
        """Only X and Y are keyed, and the fixed pose needs Z on some frames. On the other frames, Z does not change."""
        bone = rig.pose.bones[NAME]
        bone.rotation_mode = "XYZ"
        write_limit(bone, Ball((0.3, 0.3, 0.3, 0.3), (-0.2, 0.2)))
        for frame, x in ((1, 0.1), (11, 1.2), (21, 0.1)):
            bone.rotation_euler = (x, 0.8 if frame == 11 else 0.0, 0.1)
            for index in (0, 1):
                bone.keyframe_insert("rotation_euler", index=index, frame=frame)
        fix_action(bpy.context, rig, [bone])
        for frame in range(1, 22):
            bpy.context.scene.frame_set(frame)
            assert excess(bone) < 0.02
            if frame in {1, 21}:
                assert tuple(bone.rotation_euler) == pytest.approx((0.1, 0.0, 0.1), abs=1e-5)

    def test_the_current_frame_and_poses_without_keys_do_not_change(self, moving_rig):
        bpy.context.scene.frame_set(7)
        limited.turn(moving_rig.pose.bones["shin.R"], Quaternion((1, 0, 0), 0.5))
        fix_action(bpy.context, moving_rig, moving_rig.pose.bones)
        assert bpy.context.scene.frame_current == 7
        assert limited.quaternion_of(moving_rig.pose.bones["shin.R"]) == pytest.approx(
            np.array(Quaternion((1, 0, 0), 0.5)), abs=1e-6
        )
        assert max(excess(moving_rig.pose.bones[name]) for name in LIMITS) < 0.02

    def test_a_linked_action_is_refused(self, moving_rig, tmp_path):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        own = limited.override(tmp_path / "source.blend", "Rig")
        limited.select(own, [])
        before = scenes.digest()
        assert "is linked from another file: make a copy of it first" in limited.refusal(
            bpy.ops.fabrik.check_action, mend=True
        )
        assert scenes.digest() == before


class TestChangedCurves:
    """Keys are set on some frames only."""

    @pytest.fixture
    def action(self, rig):
        action = keyframes.new_action(rig, "Test")
        keyframes.write_curves(action, rig, "location", [1, 5, 9], np.zeros((3, 3)), "g")
        for point in (point for curve in keyframes.curves(rig) for point in curve.keyframe_points):
            point.interpolation = "CONSTANT"
        return action

    def test_curves_of_other_bones_do_not_change_between_keys(self, rig, action):
        curve = next(curve for curve in keyframes.curves(rig) if curve.array_index == 1)
        keyframes.insert_keys(curve, np.array([1, 3, 9, 12]), np.array([1.0, 2.0, 3.0, 4.0]))
        found = {curve.array_index: keyframes.keys(curve).tolist() for curve in keyframes.curves(rig)}
        assert found[1] == [[1, 1], [3, 2], [5, 0], [9, 3], [12, 4]]
        assert found[0] == found[2] == [[1, 0], [5, 0], [9, 0]]
        assert {point.interpolation for point in curve.keyframe_points} == {"CONSTANT"}

    def test_keys_are_interpolated_like_the_only_key(self, rig, action):
        keyframes.write_curves(action, rig, "scale", [2.5], np.ones((1, 3)), "other")
        (curve, *_) = [curve for curve in keyframes.curves(rig) if curve.data_path == "scale"]
        curve.keyframe_points[0].interpolation = "CONSTANT"
        keyframes.insert_keys(curve, np.array([2.5, 4]), np.array([1.0, 2.0]))
        assert keyframes.keys(curve).tolist() == [[2.5, 1], [4, 2]]
        assert [point.interpolation for point in curve.keyframe_points] == ["CONSTANT", "CONSTANT"]

    def test_handles_move_with_their_key(self, rig, action):
        curve = next(curve for curve in keyframes.curves(rig) if curve.array_index == 0)
        point = curve.keyframe_points[1]
        point.handle_left_type = point.handle_right_type = "FREE"
        point.handle_left, point.handle_right = (4.0, -0.5), (6.0, 0.25)
        keyframes.insert_keys(curve, np.array([5]), np.array([2.0]))
        assert tuple(curve.keyframe_points[1].handle_left) == (4.0, 1.5)
        assert tuple(curve.keyframe_points[1].handle_right) == (6.0, 2.25)

    def test_without_frames_no_curve_changes(self, rig, action):
        keyframes.insert_keys(keyframes.curves(rig)[0], np.empty(0), np.empty(0))
        assert len(keyframes.curves(rig)[0].keyframe_points) == 3
