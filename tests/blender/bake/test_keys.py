"""The keys of a bake: strips, root motion, fewer keys, locks, chosen bones."""

import bpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import scenes

from fabrik_addon.blender.bake.bake import BakeError, bake
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.rig.keyframes import KeyframeError
from fabrik_addon.core.channels import from_channels, needed_keys, to_channels
from fabrik_addon.core.errors import FabrikError
from fabrik_addon.core.rotations import angle_between

pytestmark = pytest.mark.usefixtures("clean_scene")

FRAMES = 12


def run(rig, **options):
    return bake(bpy.context, rig, frame_start=1, frame_end=FRAMES, **options)


def paths(owner):
    return {curve.data_path for curve in keyframes.curves(owner)}


def world_tails(rig, frame):
    """(N, 3) world positions of the tails, as Blender evaluates them."""
    tails = scenes.evaluated_tails(rig, rig.pose.bones.keys(), frame)
    matrix = np.array(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world)
    return tails @ matrix[:3, :3].T + matrix[:3, 3]


def all_tails(rig):
    return np.array([world_tails(rig, frame) for frame in range(1, FRAMES + 1)])


def traveller(seed=3, **where):
    rig, _ = scenes.walking_rig(FRAMES, seed=seed, travel=1.5, **where)
    rig.fabrik.root = "FREE"
    return rig


class TestFewerKeys:
    """Removed keys can be interpolated within the tolerance."""

    @settings(max_examples=40)
    @given(st.sampled_from(scenes.MODES), st.floats(0.001, 0.3), st.integers(1, 80), st.integers(0, 999))
    def test_rotations(self, mode, angle, frames, seed):
        rng = np.random.default_rng(seed)
        steps = np.cumsum(rng.normal(size=(frames, 4)) * 0.1, axis=0) + rng.normal(size=4)
        values = to_channels(mode, steps / np.linalg.norm(steps, axis=1, keepdims=True))
        kept = needed_keys(values, angle, mode)
        between = np.stack([np.interp(np.arange(frames), kept, column[kept]) for column in values.T], axis=1)
        off = angle_between(from_channels(mode, between), from_channels(mode, values))
        assert off.max() <= angle + 1e-9
        assert {0, frames - 1} <= set(kept)

    @settings(max_examples=40)
    @given(st.floats(0.001, 0.3), st.integers(1, 80), st.integers(0, 999))
    def test_locations(self, distance, frames, seed):
        values = np.cumsum(np.random.default_rng(seed).normal(size=(frames, 3)) * 0.1, axis=0)
        kept = needed_keys(values, distance)
        between = np.stack([np.interp(np.arange(frames), kept, column[kept]) for column in values.T], axis=1)
        assert np.linalg.norm(between - values, axis=1).max() <= distance + 1e-9

    def test_bones_that_do_not_move_have_two_keys(self):
        assert needed_keys(np.ones((50, 3)), 1e-6).tolist() == [0, 49]

    def test_zero_keeps_all_keys_that_bend_the_curve(self):
        values = np.stack([np.arange(20.0) ** 2] * 3, axis=1)
        assert len(needed_keys(values, 0.0)) == 20

    def test_a_bake_with_reduced_keys_is_near_one_with_all_keys(self):
        rig = traveller()
        run(rig)
        every, keys = all_tails(rig), sum(len(curve.keyframe_points) for curve in keyframes.curves(rig))
        run(rig, key_angle=0.02)
        assert sum(len(curve.keyframe_points) for curve in keyframes.curves(rig)) < keys
        # At most five bones in a row are off, each by at most the angle times the length below it, and the root by at
        # most the angle times its length.
        most = 0.02 * (5 * scenes.HEIGHT / 2 + rig.data.bones["hips"].length)
        assert np.linalg.norm(all_tails(rig) - every, axis=2).max() < most


class TestRootMotion:
    """Root motion is keyed on the root bone, on the object, or nowhere."""

    def test_object_motion_looks_the_same_in_the_world(self):
        rig = traveller()
        run(rig)
        wanted = all_tails(rig)
        run(rig, root_motion="OBJECT")
        assert np.abs(all_tails(rig) - wanted).max() < 1e-3
        assert "location" in paths(rig)
        bpy.context.scene.frame_set(7)
        assert np.allclose(rig.pose.bones["hips"].location, 0.0, atol=1e-5)

    def test_baking_to_the_object_again_gives_the_same(self):
        rig = traveller(seed=4, scale=0.5)
        run(rig, root_motion="OBJECT")
        wanted = all_tails(rig)
        run(rig, root_motion="OBJECT")
        assert np.abs(all_tails(rig) - wanted).max() < 1e-3

    def test_in_place_keeps_height_and_loses_travel(self):
        rig = traveller()
        run(rig)
        free = all_tails(rig)
        run(rig, root_motion="IN_PLACE")
        standing = all_tails(rig)
        assert np.allclose(standing[..., 2], free[..., 2], atol=1e-4)
        hips = [bone.name for bone in rig.pose.bones].index("hips")
        rest = rig.matrix_world @ rig.data.bones["hips"].head_local
        bpy.context.scene.frame_set(9)
        head = rig.matrix_world @ rig.pose.bones["hips"].head
        assert np.allclose(head.xy, rest.xy, atol=1e-4)
        assert np.ptp(free[:, hips, :2], axis=0).max() > 0.5

    def test_an_object_on_a_parent_is_refused(self):
        rig = traveller()
        rig.parent = scenes.empty_at((0, 0, 0), "Carrier")
        before = scenes.digest()
        with pytest.raises(BakeError, match="'Rig' is moved by a parent"):
            run(rig, root_motion="OBJECT")
        assert scenes.digest() == before


class TestStrips:
    """A bake as an NLA strip."""

    def test_a_strip_plays_the_same_motion_as_an_action(self):
        rig = traveller(seed=5)
        run(rig)
        wanted = all_tails(rig)
        rig.animation_data_clear()
        run(rig, action="NLA", action_name="Take 1")
        assert rig.animation_data.action is None
        (track,) = rig.animation_data.nla_tracks
        (strip,) = track.strips
        assert (track.name, strip.action.name) == ("Take 1", "Take 1")
        assert (strip.frame_start, strip.frame_end) == (1, FRAMES)
        assert np.abs(all_tails(rig) - wanted).max() < 1e-4

    def test_the_current_action_becomes_a_strip_below(self):
        rig = traveller(seed=5)
        rig.pose.bones["head"].keyframe_insert("scale", frame=3)
        old = rig.animation_data.action
        run(rig, action="NLA")
        tracks = rig.animation_data.nla_tracks
        assert [track.strips[0].action.name for track in tracks] == [old.name, "Rig FABRIK"]
        assert rig.animation_data.action is None

    def test_a_bake_is_saved_with_the_file(self, tmp_path):
        rig = traveller(seed=6)
        run(rig, action="NLA")
        wanted = all_tails(rig)
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "strip.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "strip.blend"))
        assert np.abs(all_tails(bpy.data.objects["Rig"]) - wanted).max() < 1e-5


def select(rig, *names):
    for bone in rig.pose.bones:
        holder = bone if hasattr(bone, "select") else bone.bone
        holder.select = bone.name in names


class TestWhichBones:
    """Only the requested bones are keyed, and no locked channels."""

    def test_only_selected_bones_get_keys(self):
        rig = traveller()
        select(rig, "head", "forearm.L", "shin.R")
        run(rig, bones="SELECTED")
        keyed = {"head", "forearm.L", "shin.R"}
        assert paths(rig) == {f'pose.bones["{bone}"].rotation_quaternion' for bone in keyed}

    def test_none_selected_is_refused(self):
        rig = traveller()
        select(rig)
        before = scenes.digest()
        with pytest.raises(FabrikError, match="None of the solved bones is selected"):
            run(rig, bones="SELECTED")
        assert scenes.digest() == before

    def test_only_bones_with_a_marker_or_target_get_keys(self):
        rig = traveller()
        run(rig, bones="MAPPED")
        assert paths(rig) == {
            'pose.bones["hips"].location',
            *(f'pose.bones["{bone}"].rotation_quaternion' for bone in scenes.ENDS),
        }

    @pytest.mark.parametrize(
        ("mode", "locks", "keyed"),
        [
            ("XYZ", {"lock_rotation": (True, False, True)}, {1}),
            ("XYZ", {"lock_rotation": (True, True, True)}, set()),
            ("QUATERNION", {"lock_rotation": (True, True, True)}, set()),
            ("QUATERNION", {"lock_rotation": (True, False, False), "lock_rotations_4d": False}, {0, 1, 2, 3}),
            ("QUATERNION", {"lock_rotation": (True, False, False), "lock_rotations_4d": True}, {0, 2, 3}),
        ],
    )
    def test_locked_channels_get_no_keys(self, mode, locks, keyed):
        rig, _ = scenes.walking_rig(FRAMES, seed=9, mode=mode)
        head = rig.pose.bones["head"]
        for name, value in locks.items():
            setattr(head, name, value)
        run(rig)
        found = {curve.array_index for curve in keyframes.curves(rig) if '"head"' in curve.data_path}
        assert found == keyed

    def test_locked_root_location(self):
        rig = traveller()
        rig.pose.bones["hips"].lock_location = (False, True, False)
        run(rig)
        found = {curve.array_index for curve in keyframes.curves(rig) if curve.data_path.endswith("location")}
        assert found == {0, 2}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"source": "NOTHING"}, "source is 'NOTHING': it must be one of AUTO, MARKERS, EFFECTORS"),
        ({"bones": "NO"}, "bones is 'NO'"),
        ({"root_motion": "NO"}, "root_motion is 'NO'"),
        ({"key_angle": -1.0}, "key_angle is -1.0: it must be 0 or more"),
        ({"key_angle": float("nan")}, "key_angle is nan"),
        ({"source": "MARKERS"}, "'Rig' has no matched markers: match its markers to bones first"),
    ],
)
def test_invalid_settings_are_refused(options, sentence):
    rig = traveller()
    before = scenes.digest()
    with pytest.raises(FabrikError, match=sentence):
        run(rig, **options)
    assert scenes.digest() == before


class TestCurrentAction:
    """Other curves of the action, and users of the action, do not change."""

    def test_locked_curves_stay_and_are_named(self):
        rig = traveller()
        run(rig)
        action = rig.animation_data.action
        for curve in keyframes.curves(rig):
            curve.lock = curve.data_path == keyframes.bone_path("spine", "rotation_quaternion")
            curve.group.lock = curve.group.name == "head"
            for key in curve.keyframe_points:
                key.co_ui[1] += 0.25
        before = {(each.data_path, each.array_index): keyframes.keys(each) for each in keyframes.curves(rig)}
        result = run(rig, action="CURRENT")
        assert rig.animation_data.action == action
        for curve in keyframes.curves(rig):
            same = np.array_equal(keyframes.keys(curve), before[curve.data_path, curve.array_index])
            assert same == (curve.group.name in {"spine", "head"})
        (said,) = [warning for warning in result.report.doubts if "Locked" in warning]
        assert said == f"Locked curves of action {action.name!r} were not changed: spine, head"

    def test_a_slot_that_moves_another_rig_is_not_written(self):
        rig = traveller()
        run(rig)
        other = scenes.make_rig(name="Other")
        other.animation_data_create().action = rig.animation_data.action
        other.animation_data.action_slot = rig.animation_data.action_slot
        scenes.make_active(rig)
        before = scenes.digest()
        with pytest.raises(KeyframeError, match="also animates 'Other' with the same slot: make it single-user"):
            run(rig, action="CURRENT")
        assert scenes.digest() == before
        run(rig)
        assert other.animation_data.action != rig.animation_data.action
