"""Baking: checks what Blender evaluates from the keys."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector
from support import scenes

from fabrik_addon.blender.bake.bake import BakeError, BakeSettings, bake, bake_steps
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.settings.motion import CALIBRATION_OPTIONS, KEY_OPTIONS, OPTIONS, RETARGET_OPTIONS
from fabrik_addon.core import Status
from fabrik_addon.core.errors import FabrikError
from fabrik_addon.core.rotations import angle_between

pytestmark = pytest.mark.usefixtures("clean_scene")

FRAMES = 12
HEIGHT = scenes.HEIGHT


def run(rig, first=1, last=FRAMES, **options):
    return bake(bpy.context, rig, frame_start=first, frame_end=last, **options)


def save_and_open(path):
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))


def assert_agrees(result, rig, height=HEIGHT):
    """Blender's tails of every bone are those of the solution, on every frame."""
    for tree in result.trees:
        names = tree.problem.tree.skeleton.names
        for row, frame in enumerate(result.frames):
            shown = scenes.evaluated_tails(rig, names, int(frame))
            assert np.abs(shown - tree.solution.tails[row]).max() < 1e-4 * height


def keyed_paths(owner):
    return {curve.data_path for curve in keyframes.curves(owner)}


def keyed_frames(owner, path):
    found = [keyframes.keys(curve)[:, 0] for curve in keyframes.curves(owner) if curve.data_path == path]
    return np.concatenate(found).tolist()


class TestSavedFile:
    """The saved file contains the solved poses."""

    @pytest.mark.parametrize(("root", "travel"), [("FIXED", 0.0), ("FREE", 1.5)])
    @pytest.mark.parametrize("mode", ["QUATERNION", "MIXED"])
    def test_solved_tails_agree_with_blender(self, tmp_path, root, travel, mode):
        rig, _ = scenes.walking_rig(FRAMES, seed=3, mode=mode, travel=travel)
        rig.fabrik.root = root
        result = run(rig)
        assert result.report.total.max < 2e-3 * HEIGHT
        save_and_open(tmp_path / "baked.blend")
        assert_agrees(result, bpy.data.objects["Rig"])

    @pytest.mark.parametrize("scale", [0.01, 100.0])
    def test_solved_tails_agree_on_a_scaled_rig(self, tmp_path, scale):
        rig, _ = scenes.walking_rig(FRAMES, seed=4, scale=scale)
        result = run(rig)
        save_and_open(tmp_path / "baked.blend")
        assert_agrees(result, bpy.data.objects["Rig"])
        assert result.report.total.max < 2e-3 * HEIGHT * scale

    def test_solved_tails_agree_with_hidden_markers(self, tmp_path):
        hidden = [(slice(3, 7), 1), (slice(0, 3), 2), (slice(9, 12), 3), (5, slice(None))]
        rig, _ = scenes.walking_rig(FRAMES, seed=5, hidden=hidden)
        result = run(rig)
        save_and_open(tmp_path / "baked.blend")
        assert_agrees(result, bpy.data.objects["Rig"])

    def test_a_saved_rig_can_be_baked_again(self, tmp_path):
        rig, _ = scenes.walking_rig(FRAMES, seed=6)
        first = run(rig)
        save_and_open(tmp_path / "baked.blend")
        again = run(bpy.data.objects["Rig"])
        assert np.allclose(again.report.errors, first.report.errors, atol=1e-6)


class TestReport:
    """The errors reported are the distances that Blender shows."""

    def test_errors_are_the_distances_in_the_world(self):
        rig, positions = scenes.walking_rig(FRAMES, seed=7, scale=3.0, hidden=[(slice(2, 5), 4)])
        positions[:, 1] += 5.0
        far = scenes.import_positions(positions[:, 1:2], ["far"])["far"]
        rig.fabrik.effectors[1].target, rig.fabrik.effectors[1].name = far, "far"
        report = run(rig).report
        assert list(report.markers) == ["head", "far", "forearm.R", "shin.L", "shin.R"]
        bones = ["head", "forearm.L", "forearm.R", "shin.L", "shin.R"]
        for row in range(FRAMES):
            tails = scenes.evaluated_tails(rig, bones, row + 1)
            world = [rig.matrix_world @ Vector(tail) for tail in tails]
            wanted = np.linalg.norm(np.array(world) - positions[row], axis=1)
            assert np.allclose(report.errors[row], wanted, atol=3e-3, equal_nan=True)
        assert np.isnan(report.errors[2:5, 4]).all()

    def test_results_and_warnings_are_saved(self, tmp_path):
        """Fixed: the panel Report of a file that the command line had baked showed neither."""
        rig, _ = scenes.walking_rig(FRAMES, seed=8)
        result = run(rig)
        rig.fabrik.capture.doubts = "A warning"
        save_and_open(tmp_path / "baked.blend")
        kept = bpy.data.objects["Rig"].fabrik.capture
        assert kept.last_result.splitlines() == list(result.lines)
        assert kept.doubts == "A warning"

    def test_the_result_has_a_line_and_timings(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=8)
        result = run(rig)
        total = result.report.total
        assert result.line.startswith(f"11 bones, {FRAMES} frames: RMS {1000 * total.rms:.1f} mm, worst ")
        assert rig.fabrik.capture.last_result.splitlines() == list(result.lines)
        assert all(line in result.line for line in result.lines)
        assert set(result.timings) == {"sample", "solve", "write"}

    def test_status_is_the_worst_of_the_trees(self):
        rows = [("a", "", (0, 0, 0), (0, 0, 1)), ("b", "", (1, 0, 0), (1, 0, 1))]
        rig = scenes.make_rig(rows)
        scenes.aim(rig, "a", scenes.empty_at((0, 0.6, 0.8), "near"))
        scenes.aim(rig, "b", scenes.empty_at((9, 0, 0), "far"))
        result = run(rig, last=3)
        assert len(result.trees) == 2
        assert set(result.report.status) == {Status.UNREACHABLE}
        assert_agrees(result, rig)


class TestWhatIsKeyed:
    """Only the solved bones are keyed, on the requested frames; everything else is unchanged."""

    def test_only_solved_bones_get_keys(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=9)
        for effector in rig.fabrik.effectors:
            effector.enabled = effector.bone == "forearm.L"
        result = run(rig)
        solved = {"hips", "spine", "upper_arm.L", "forearm.L"}
        assert set(result.trees[0].bones) == solved
        assert keyed_paths(rig) == {f'pose.bones["{bone}"].rotation_quaternion' for bone in solved}

    def test_a_bone_whose_marker_is_never_seen_is_not_keyed(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=9, hidden=[(slice(None), 1)])
        # A perfectly straight limb, which the solver bends first.
        rig.pose.bones["forearm.L"].matrix = rig.pose.bones["upper_arm.L"].matrix @ Matrix.Translation(
            (0.0, rig.data.bones["upper_arm.L"].length, 0.0)
        )
        bpy.context.view_layer.update()
        result = run(rig)
        assert not {"upper_arm.L", "forearm.L"} & set(result.trees[0].bones)
        assert_agrees(result, rig)
        assert result.report.per_marker()[1].coverage == 0.0

    def test_frames_and_step(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=10)
        assert run(rig, 2, 11, step=4).frames.tolist() == [2, 6, 10]
        assert set(keyed_frames(rig, 'pose.bones["head"].rotation_quaternion')) == {2, 6, 10}

    def test_rotation_modes_stay(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=10, mode="MIXED")
        before = [bone.rotation_mode for bone in rig.pose.bones]
        run(rig)
        assert [bone.rotation_mode for bone in rig.pose.bones] == before

    def test_a_free_root_is_keyed_along_its_motion(self):
        rig, positions = scenes.walking_rig(FRAMES, seed=11, travel=2.0)
        rig.fabrik.root = "FREE"
        result = run(rig)
        assert 'pose.bones["hips"].location' in keyed_paths(rig)
        moved = np.linalg.norm(result.trees[0].solution.root_location[-1] - result.trees[0].solution.root_location[0])
        assert moved == pytest.approx(np.linalg.norm(positions[-1] - positions[0], axis=1).mean(), rel=0.05)

    def test_a_new_action_keeps_curves_that_are_not_baked_and_the_old_action(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=12)
        rig.fabrik.effectors[4].enabled = False
        toe = rig.pose.bones["shin.R"]
        for frame, turn in ((1, 0.0), (FRAMES, 0.7)):
            toe.rotation_quaternion = (1.0, turn, 0.0, 0.0)
            toe.keyframe_insert("rotation_quaternion", frame=frame)
            rig.pose.bones["head"].keyframe_insert("rotation_quaternion", frame=frame + 50)
        old = rig.animation_data.action
        before = scenes.digest()["actions"][old.name]
        run(rig, action_name="Walk")
        assert rig.animation_data.action.name == "Walk"
        after = scenes.digest()["actions"]["Walk"]
        path = 'pose.bones["shin.R"].rotation_quaternion'
        assert {key: keys for key, keys in after.items() if key[0] == path} == {
            key: keys for key, keys in before.items() if key[0] == path
        }
        assert max(keyed_frames(rig, 'pose.bones["head"].rotation_quaternion')) == FRAMES
        # The old action is still there, as it was, and is saved with the file.
        assert old.use_fake_user
        rig.animation_data.action = old
        if hasattr(rig.animation_data, "action_slot"):
            rig.animation_data.action_slot = old.slots[0]
        assert scenes.digest()["actions"][old.name] == before

    def test_current_action_keeps_keys_outside_the_range(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=13)
        head = rig.pose.bones["head"]
        for frame in (-20, 5, 40):
            head.keyframe_insert("rotation_quaternion", frame=frame)
        action = rig.animation_data.action
        run(rig, action="CURRENT")
        assert rig.animation_data.action == action
        times = sorted(set(keyed_frames(rig, 'pose.bones["head"].rotation_quaternion')))
        assert times == [-20.0, *map(float, range(1, FRAMES + 1)), 40.0]

    def test_object_motion_is_compensated_and_kept(self):
        """The targets do not move while the armature object is moved past them."""
        rig = scenes.make_rig()
        scenes.aim(rig, "forearm.L", scenes.empty_at((0.5, -0.2, 1.3)))
        carrier = scenes.empty_at((0, 0, 0), "Carrier")
        for frame, x in ((1, 0.0), (FRAMES, 0.2)):
            carrier.location.x = x
            carrier.keyframe_insert("location", frame=frame)
        rig.parent = carrier
        result = run(rig)
        assert result.report.total.max < 1e-3
        for frame in (1, 6, FRAMES):
            tail = scenes.evaluated_tails(rig, ["forearm.L"], frame)[0]
            assert (rig.matrix_world @ Vector(tail) - Vector((0.5, -0.2, 1.3))).length < 1e-3

    def test_pinned_root_stays_on_its_keys(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=14, travel=0.5)
        hips = rig.pose.bones["hips"]
        move = hips.bone.matrix_local.to_3x3().transposed() @ Vector((0.1, -0.5, 0.05))
        for frame, share in ((1, 0.0), (FRAMES, 1.0)):
            hips.location = share * move
            hips.keyframe_insert("location", frame=frame)
        for curve in keyframes.curves(rig):
            for key in curve.keyframe_points:
                key.interpolation = "LINEAR"
        result = run(rig)
        assert result.report.total.max < 2e-3 * HEIGHT
        assert_agrees(result, rig)


class TestLeftAsBefore:
    """Frame, mode, selection and poses without keys are restored."""

    @pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
    def test_frame_mode_and_selection_are_restored(self, mode):
        rig, _ = scenes.walking_rig(FRAMES, seed=15)
        bpy.ops.object.mode_set(mode=mode)
        bpy.context.scene.frame_set(7, subframe=0.25)
        state = {key: scenes.digest()[key] for key in ("scene", "rate", "active", "collections")}
        chosen = [thing.name for thing in bpy.context.selected_objects]
        run(rig)
        assert {key: scenes.digest()[key] for key in state} == state
        assert [thing.name for thing in bpy.context.selected_objects] == chosen

    def test_poses_without_keys(self):
        """An unsolved bone, posed by hand over its keys, keeps that pose although other frames were evaluated."""
        rig, _ = scenes.walking_rig(FRAMES, seed=16)
        rig.fabrik.effectors[4].enabled = False
        shin = rig.pose.bones["shin.R"]
        shin.keyframe_insert("rotation_quaternion", frame=1)
        bpy.context.scene.frame_set(7)
        shin.rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
        run(rig)
        assert np.allclose(shin.rotation_quaternion, (0.8, 0.6, 0.0, 0.0))

    def test_the_current_frame_shows_the_result(self):
        rig, positions = scenes.walking_rig(FRAMES, seed=17)
        bpy.context.scene.frame_set(7)
        run(rig)
        bpy.context.view_layer.update()
        tail = rig.matrix_world @ rig.pose.bones["head"].tail
        assert np.allclose(tail, positions[6, 0], atol=2e-3 * HEIGHT)

    def test_one_undo_step(self):
        scenes.walking_rig(FRAMES, seed=18)
        bpy.ops.ed.undo_push(message="before")
        before = scenes.digest()
        bpy.ops.fabrik.bake("EXEC_DEFAULT", True, frame_start=1, frame_end=FRAMES)
        assert scenes.digest() != before
        bpy.ops.ed.undo()
        assert scenes.digest() == before


class TestGaps:
    """Bakes with markers that are not seen on some frames."""

    def test_a_hidden_limb_is_interpolated_between_the_poses_around(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=19, hidden=[(slice(4, 8), 1)])
        (tree,) = run(rig).trees
        solution = tree.solution
        bone = solution.skeleton.index("forearm.L")
        rotations = solution.rotations[:, bone]
        steps = angle_between(rotations[1:], rotations[:-1])
        seen = np.delete(steps, slice(3, 8))
        assert steps[3:8].max() <= 1.5 * seen.max()
        assert steps[3:8].min() > 0.0
        assert np.isnan(solution.errors[4:8, 1]).all()

    def test_visible_targets_are_met_while_others_are_hidden(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=19, hidden=[(slice(4, 8), 1)])
        assert run(rig).report.total.max < 2e-3 * HEIGHT

    def test_the_pose_is_held_before_and_after_the_markers_are_seen(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=20, hidden=[(slice(0, 3), slice(None)), (slice(9, 12), slice(None))])
        (tree,) = run(rig).trees
        solution = tree.solution
        assert np.allclose(solution.tails[:3], solution.tails[3])
        assert np.allclose(solution.tails[9:], solution.tails[8])
        assert set(solution.status[[0, 1, 2, 9, 10, 11]]) == {Status.UNSEEN}


class TestStopping:
    """Esc at any moment leaves everything as it was."""

    @pytest.mark.parametrize("after", range(1, 4))
    def test_stopped_between_steps(self, after):
        rig, _ = scenes.walking_rig(FRAMES, seed=21)
        rig.keyframe_insert("location", frame=1)
        bpy.context.scene.frame_set(5)
        rig.pose.bones["head"].rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
        before = scenes.digest()
        steps = bake_steps(bpy.context, rig, BakeSettings(1, FRAMES))
        for _ in range(after):
            next(steps)
        steps.close()
        assert scenes.digest() == before

    def test_progress_rises_to_the_end(self):
        rig, _ = scenes.walking_rig(50, seed=21)
        shares = list(bake_steps(bpy.context, rig, BakeSettings(1, 50)))
        assert shares == sorted(shares)
        assert 0.0 < shares[0] <= shares[-1] <= 1.0
        assert len(shares) >= 3


def without_effectors(rig):
    rig.fabrik.effectors.clear()


def renamed_bone(rig):
    rig.data.bones["shin.L"].name = "calf.L"


def deleted_target(rig):
    bpy.data.objects.remove(rig.fabrik.effectors[2].target)


def scaled_bone(rig):
    rig.pose.bones["spine"].scale = (1.1, 1.1, 1.1)


def squashed_object(rig):
    rig.scale = (1.0, 2.0, 1.0)
    bpy.context.view_layer.update()


def sliding_bone(rig):
    thigh = rig.pose.bones["thigh.L"]
    for frame, x in ((1, 0.0), (FRAMES, 0.1)):
        thigh.location.x = x
        thigh.keyframe_insert("location", frame=frame)


def unseen_everywhere(rig):
    nothing = scenes.import_positions(np.full((FRAMES, 1, 3), np.nan), ["nothing"])["nothing"]
    for effector in rig.fabrik.effectors:
        effector.target = nothing


def tweaked_strip(rig):
    rig.pose.bones["head"].keyframe_insert("rotation_quaternion", frame=1)
    strip = rig.animation_data.nla_tracks.new().strips.new("strip", 1, rig.animation_data.action)
    rig.animation_data.action = None
    strip.select = True
    rig.animation_data.nla_tracks[0].select = True
    rig.animation_data.use_tweak_mode = True


class TestWrongInput:
    """Wrong input gives one clear line that names the problem, and changes nothing."""

    TROUBLES = (
        (without_effectors, "'Rig' has no target: select a bone in Pose mode and add one"),
        (renamed_bone, "Target 'shin.L': 'Rig' has no bone 'shin.L' (was it renamed?): choose it again"),
        (deleted_target, "Target 'forearm.R' has no object (was it deleted?): choose one"),
        (scaled_bone, "Bone 'spine' is scaled"),
        (squashed_object, "Object 'Rig' is scaled non-uniformly"),
        (sliding_bone, "Bone 'thigh.L' has an animated location in frames 1-12"),
        (unseen_everywhere, "No marker is seen in frames 1-12: choose others"),
        (tweaked_strip, "'Rig' has an NLA strip in tweak mode"),
    )

    @pytest.mark.parametrize(("spoil", "sentence"), TROUBLES, ids=[spoil.__name__ for spoil, _ in TROUBLES])
    def test_function(self, spoil, sentence):
        rig, _ = scenes.walking_rig(FRAMES, seed=22)
        spoil(rig)
        bpy.context.scene.frame_set(4)
        before = scenes.digest()
        with pytest.raises(FabrikError) as wrong:
            run(rig)
        assert str(wrong.value).startswith(sentence)
        assert "\n" not in str(wrong.value)
        assert scenes.digest() == before

    @pytest.mark.parametrize(("spoil", "sentence"), TROUBLES, ids=[spoil.__name__ for spoil, _ in TROUBLES])
    def test_operator(self, spoil, sentence):
        rig, _ = scenes.walking_rig(FRAMES, seed=22)
        spoil(rig)
        before = scenes.digest()
        with pytest.raises(RuntimeError) as wrong:
            bpy.ops.fabrik.bake(frame_start=1, frame_end=FRAMES)
        assert sentence in str(wrong.value)
        assert len(str(wrong.value).strip().splitlines()) == 1
        assert scenes.digest() == before

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"first": 5, "last": 4}, r"The last frame \(4\) is before the first \(5\)"),
            ({"step": 0}, "step is 0: it must be 1 or more"),
            ({"action": "OLD"}, "action is 'OLD': it must be one of NEW, CURRENT, NLA"),
            ({"start": "PREVIOUS"}, "A bake has no option 'start'"),
        ],
    )
    def test_settings(self, options, sentence):
        rig, _ = scenes.walking_rig(FRAMES, seed=22)
        before = scenes.digest()
        with pytest.raises(BakeError, match=sentence):
            run(rig, **options)
        assert scenes.digest() == before

    def test_an_object_that_is_not_an_armature(self):
        with pytest.raises(FabrikError, match="Select an armature"):
            run(scenes.empty_at((0, 0, 0)))

    def test_linked_armature(self, tmp_path):
        scenes.walking_rig(FRAMES, seed=23)
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        with bpy.data.libraries.load(str(tmp_path / "rig.blend"), link=True) as (_, wanted):
            wanted.objects = ["Rig"]
        rig = bpy.data.objects["Rig"]
        bpy.context.scene.collection.objects.link(rig)
        before = scenes.digest()
        with pytest.raises(FabrikError, match="'Rig' is linked from another file: make a library override of it first"):
            run(rig)
        assert scenes.digest() == before


class TestOperator:
    """The operator uses its arguments, and the sidebar's settings for those that are missing."""

    def test_settings_of_the_rig_are_used(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=24)
        rig.fabrik.bake.step = 4
        scene = bpy.context.scene
        scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end = True, 2, 10
        assert bpy.ops.fabrik.bake() == {"FINISHED"}
        assert set(keyed_frames(rig, 'pose.bones["head"].rotation_quaternion')) == {2, 6, 10}

    def test_scene_range_is_the_default(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=24)
        bpy.context.scene.frame_start, bpy.context.scene.frame_end = 3, 8
        bpy.ops.fabrik.bake()
        assert set(keyed_frames(rig, 'pose.bones["head"].rotation_quaternion')) == set(range(3, 9))

    def test_the_range_of_the_take_is_baked(self):
        """Importing widens the scene's range and never narrows it; beyond the take, poses would only be frozen."""
        rig, _ = scenes.walking_rig(FRAMES, seed=24)
        for effector in rig.fabrik.effectors:
            marker = rig.fabrik.capture.markers.add()
            marker.name, marker.target, marker.bone = effector.name, effector.target, effector.bone
        bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 250
        bpy.ops.fabrik.bake()
        assert set(keyed_frames(rig, 'pose.bones["head"].rotation_quaternion')) == set(range(1, FRAMES + 1))
        scene = bpy.context.scene
        scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end = True, 1, FRAMES + 5
        bpy.ops.fabrik.bake()
        assert set(keyed_frames(rig, 'pose.bones["head"].rotation_quaternion')) == set(range(1, FRAMES + 6))

    @pytest.mark.parametrize(
        ("operator", "options"),
        [("bake", OPTIONS), ("retarget", KEY_OPTIONS | RETARGET_OPTIONS), ("calibrate_markers", CALIBRATION_OPTIONS)],
    )
    def test_every_setting_is_a_keyword(self, operator, options):
        assert options.keys() <= set(getattr(bpy.ops.fabrik, operator).get_rna_type().properties.keys())

    def test_a_keyword_applies_to_one_call(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=24)
        marker = rig.fabrik.capture.markers.add()
        marker.name, marker.target, marker.bone = "top", rig.fabrik.effectors["head"].target, "head"
        bpy.ops.fabrik.bake(frame_end=3, source="EFFECTORS")
        assert rig.fabrik.capture.report is None
        bpy.ops.fabrik.bake(frame_end=3)
        assert "marker,top" in rig.fabrik.capture.report.as_string()
        assert rig.fabrik.bake.source == "AUTO"

    def test_keywords_override_settings(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=24)
        rig.fabrik.bake.action = "CURRENT"
        scene = bpy.context.scene
        scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end = True, 2, 10
        bpy.ops.fabrik.bake(frame_start=1, frame_end=3, action_name="Mine", step=2, action="NEW")
        assert set(keyed_frames(rig, 'pose.bones["head"].rotation_quaternion')) == {1, 3}
        assert rig.animation_data.action.name == "Mine"
        assert (rig.fabrik.bake.step, rig.fabrik.bake.action) == (1, "CURRENT")

    def test_without_a_window_invoke_bakes_at_once(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=24)
        assert bpy.ops.fabrik.bake("INVOKE_DEFAULT", frame_start=1, frame_end=3) == {"FINISHED"}
        assert rig.animation_data.action is not None

    def test_constraints_that_change_the_result_are_named(self):
        rig, _ = scenes.walking_rig(FRAMES, seed=25)
        rig.pose.bones["forearm.L"].constraints.new("LIMIT_ROTATION")
        (warning,) = run(rig).report.doubts
        assert warning == "Bone 'forearm.L' has constraints that change the baked motion: Limit Rotation"


def test_live_rigs_that_carry_targets_are_posed_during_sampling():
    """Live posing pauses only for the baked rig, whose target is a bone of another live rig."""
    leader = scenes.place(scenes.make_rig(name="Leader"), location=(0.1, 0.0, 0.0), turn=0.0)
    ball = scenes.empty_at((0.7, 0.0, 1.4), "Ball")
    for frame, place in ((1, (0.75, 0.0, 1.4)), (FRAMES, (0.4, -0.4, 1.1))):
        ball.location = place
        ball.keyframe_insert("location", frame=frame)
    scenes.aim(leader, "forearm.L", ball)
    rig = scenes.place(scenes.make_rig(name="Rig"), location=(0.0, 0.0, 0.0), turn=0.0)
    scenes.aim(rig, "forearm.L", leader, target_bone="forearm.L")
    leader.fabrik.live = rig.fabrik.live = True
    scene = bpy.context.scene
    try:
        wanted = []
        for frame in range(1, FRAMES + 1):
            scene.frame_set(frame)
            bpy.context.view_layer.update()
            wanted.append(leader.matrix_world @ leader.pose.bones["forearm.L"].head)
        assert np.ptp(np.array(wanted), axis=0).max() > 0.05
        result = run(rig)
        assert leader.fabrik.live
        assert rig.fabrik.live
    finally:
        leader.fabrik.live = rig.fabrik.live = False
    (tree,) = result.trees
    place = tree.solution.skeleton.index("forearm.L")
    tails = [rig.matrix_world @ Vector(tail) for tail in tree.solution.tails[:, place]]
    np.testing.assert_allclose(tails, wanted, atol=2e-3)
