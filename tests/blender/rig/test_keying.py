"""Keys for posed bones: only unlocked channels, by the preferences and by the active keying set."""

import bpy
import numpy as np
import pytest
from mathutils import Quaternion
from support import scenes

from fabrik_addon.blender.posing.drag import DragSettings, begin_drag
from fabrik_addon.blender.posing.key_pose import key_pose
from fabrik_addon.blender.rig.armature import property_name
from fabrik_addon.blender.rig.keyframes import curves, keys

pytestmark = pytest.mark.usefixtures("clean_scene", "preferences")

ARM = 'pose.bones["upper_arm.L"]'
FOREARM = 'pose.bones["forearm.L"]'


@pytest.fixture
def rig():
    """A person whose left hand has a target."""
    made = scenes.make_rig(mode="XYZ")
    scenes.aim(made, "forearm.L", scenes.empty_at((0.4, -0.3, 1.2)))
    scenes.make_active(made)
    bpy.ops.object.mode_set(mode="POSE")
    return made


@pytest.fixture
def tools():
    return bpy.context.scene.tool_settings


def drag(rig):
    """Drag the hand so that forearm and upper arm rotate; returns the finished drag."""
    dragged = begin_drag(bpy.context, rig, "forearm.L", settings=DragSettings(reach="BONES", bones=2))
    dragged.step(dragged.start + np.array((-0.05, -0.1, 0.05)))
    dragged.finish(bpy.context)
    return dragged


def keyed(rig):
    """(data path, index) of the curves with a key."""
    return {(curve.data_path, curve.array_index) for curve in curves(rig) if len(keys(curve))}


def by_hand(rig):
    bpy.ops.fabrik.key_pose()


def whole(rig):
    """Also key bones that have not been posed."""
    key_pose(bpy.context, rig, "WHOLE")


def automatically(rig):
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    drag(rig)


def test_the_first_keys_over_a_strip_play(rig, tools):
    for name in ("upper_arm.L", "forearm.L"):
        for frame in (1, 20):
            rig.pose.bones[name].keyframe_insert("rotation_euler", frame=frame)
    animation = rig.animation_data
    animation.nla_tracks.new().strips.new("Walk", 1, animation.action)
    animation.action = None
    bpy.context.scene.frame_set(10)
    tools.use_keyframe_insert_auto = True
    drag(rig)
    posed = np.array(rig.pose.bones["forearm.L"].matrix)
    bpy.context.scene.frame_set(10)
    np.testing.assert_allclose(rig.pose.bones["forearm.L"].matrix, posed, atol=1e-5)


def poses(rig, frames):
    """(F, 4, 4) matrices of the forearm on frames."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append(np.array(rig.pose.bones["forearm.L"].matrix))
    return np.array(found)


def key_angles(rig, bone, angles):
    """Key a bone's rotation in its own mode: an angle (radians) about one axis, by frame."""
    posed = rig.pose.bones[bone]
    for frame, angle in angles.items():
        posed.rotation_euler = (angle, 0.0, 0.0)
        posed.rotation_quaternion = Quaternion((0.6, 0.8, 0.0), angle)
        posed.rotation_axis_angle = (angle, 0.6, 0.8, 0.0)
        channel = property_name(posed.rotation_mode)
        posed.keyframe_insert(channel, frame=frame)


@pytest.mark.parametrize("how", [automatically, by_hand])
def test_poses_without_keys_of_other_bones_stay(rig, how):
    """Fixed: new keys on other frames made Blender evaluate the animation, which reset these poses."""
    thigh = rig.pose.bones["thigh.L"]
    for frame in (1, 40):
        thigh.keyframe_insert("rotation_euler", frame=frame)
    bpy.context.scene.frame_set(20)
    if how is not automatically:
        drag(rig)
    thigh.rotation_euler.x = 0.5
    how(rig)
    bpy.context.view_layer.update()
    assert thigh.rotation_euler.x == pytest.approx(0.5)


def test_all_other_keyed_frames_keep_their_pose(rig):
    """The curves' handles change with a new key, so frames farther away than the nearest keys would change."""
    key_angles(rig, "spine", {1: 0.0, 15: 0.1, 25: 0.05, 40: 0.2})
    key_angles(rig, "upper_arm.L", {1: 0.1, 40: -0.4})
    key_angles(rig, "forearm.L", {1: 0.2, 25: 0.6, 40: 0.1})
    before = poses(rig, (1, 15, 25, 40))
    bpy.context.scene.frame_set(-4)
    automatically(rig)
    assert poses(rig, (1, 15, 25, 40)) == pytest.approx(before, abs=2e-5)


def test_a_small_change_keeps_the_pose_on_other_keyed_frames(rig):
    """Fixed: a change by 1e-5 was ignored there. On small rigs it moved bones that are nearly straight on IK."""
    key_angles(rig, "spine", dict.fromkeys((1, 20, 40), 0.0))
    key_angles(rig, "forearm.L", {1: 0.2, 40: 0.1})
    before = poses(rig, (20,))
    bpy.context.scene.frame_set(40)
    rig.pose.bones["forearm.L"].rotation_euler.x += 1.5e-5
    whole(rig)
    assert poses(rig, (20,)) == pytest.approx(before, abs=1e-6)


@pytest.mark.parametrize("blending", ["REPLACE", "COMBINE", "ADD"])
@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "XYZ"])
@pytest.mark.parametrize("how", [automatically, whole])
def test_other_keyed_frames_of_a_layer_keep_their_pose(rig, mode, blending, how):
    """Fixed: bones without keys in the layer got the pose of the key's frame there."""
    for bone in ("upper_arm.L", "forearm.L"):
        rig.pose.bones[bone].rotation_mode = mode
        key_angles(rig, bone, {1: 0.1, 15: 0.2, 40: 0.5})
    animation = rig.animation_data
    animation.nla_tracks.new().strips.new("Walk", 1, animation.action)
    animation.action = bpy.data.actions.new("Layer")
    animation.action_blend_type = blending
    key_angles(rig, "head", dict.fromkeys((1, 15, 40), 0.0))
    before = poses(rig, (1, 15, 40))
    bpy.context.scene.frame_set(20)
    how(rig)
    posed = np.array(rig.pose.bones["forearm.L"].matrix)
    assert poses(rig, (1, 15, 40)) == pytest.approx(before, abs=2e-5)
    assert poses(rig, (20,))[0] == pytest.approx(posed, abs=2e-5)


@pytest.mark.parametrize("has_layer_below", [False, True])
@pytest.mark.parametrize(("start", "scale"), [(11, 1.0), (1, 2.0)])
@pytest.mark.parametrize("how", [automatically, by_hand])
def test_a_strip_in_tweak_mode_is_keyed_in_its_own_time(rig, start, scale, has_layer_below, how):
    """Fixed: dragging with Auto Keying was refused in tweak mode, and so was Keyframe Solved Bones."""
    animation = rig.animation_data_create()
    if has_layer_below:
        key_angles(rig, "hips", {1: 0.1, 60: 0.2})
        key_angles(rig, "upper_arm.L", {1: 0.3, 60: 0.2})
        animation.nla_tracks.new().strips.new("Walk", 1, animation.action)
        animation.action = bpy.data.actions.new("Wave")
    key_angles(rig, "spine", {1: 0.0, 15: 0.1, 25: 0.05, 30: 0.2})
    key_angles(rig, "forearm.L", {1: 0.2, 25: 0.6, 30: 0.1})
    slot = animation.action_slot
    strip = animation.nla_tracks.new().strips.new("Wave", start, animation.action)
    strip.action_slot, strip.scale, animation.action = slot, scale, None
    animation.nla_tracks.active = animation.nla_tracks[-1]
    strip.select = animation.use_tweak_mode = True
    frames = [int(start + scale * (frame - 1)) for frame in (1, 15, 25, 30)]
    before = poses(rig, frames)
    bpy.context.scene.frame_set(21)
    how(rig)
    posed = np.array(rig.pose.bones["forearm.L"].matrix)
    assert poses(rig, frames) == pytest.approx(before, abs=2e-5)
    assert poses(rig, (21,))[0] == pytest.approx(posed, abs=2e-5)
    assert {1.0 + (21 - start) / scale} <= {time for curve in curves(rig) for time in keys(curve)[:, 0]}


@pytest.mark.parametrize("blending", ["REPLACE", "COMBINE", "ADD"])
@pytest.mark.parametrize("has_keys", [True, False])
def test_locked_components_keep_their_pose_in_a_layer(rig, blending, has_keys):
    """Fixed: Blender sets components without keys to 0, or keys them too, so the locked one changed on other frames."""
    forearm = rig.pose.bones["forearm.L"]
    forearm.rotation_mode = "QUATERNION"
    forearm.lock_rotations_4d = True
    key_angles(rig, "forearm.L", {1: 0.1, 15: 0.2, 40: 0.5})
    animation = rig.animation_data
    animation.nla_tracks.new().strips.new("Walk", 1, animation.action)
    animation.action = bpy.data.actions.new("Layer")
    animation.action_blend_type = blending
    key_angles(rig, "head", dict.fromkeys((1, 15, 40), 0.0))
    if has_keys:
        key_angles(rig, "forearm.L", {1: 0.3, 40: -0.6})
    forearm.lock_rotation = (False, True, False)
    before = poses(rig, (1, 15, 40))
    bpy.context.scene.frame_set(20)
    automatically(rig)
    posed = np.array(forearm.matrix)
    assert poses(rig, (1, 15, 40)) == pytest.approx(before, abs=2e-5)
    assert poses(rig, (20,))[0] == pytest.approx(posed, abs=2e-5)


@pytest.mark.parametrize("how", [by_hand, automatically])
def test_keys_between_two_frames_are_inserted_there(rig, how):
    for frame in (1, 20):
        for name in ("hips", "spine", "upper_arm.L", "forearm.L"):
            rig.pose.bones[name].keyframe_insert("rotation_euler", frame=frame)
    bpy.context.scene.frame_set(10, subframe=0.375)
    how(rig)
    posed = np.array(rig.pose.bones["forearm.L"].matrix)
    assert {time for curve in curves(rig) for time in keys(curve)[:, 0]} == {1.0, 10.375, 20.0}
    bpy.context.scene.frame_set(10, subframe=0.375)
    np.testing.assert_allclose(rig.pose.bones["forearm.L"].matrix, posed, atol=1e-5)


@pytest.mark.parametrize("how", [by_hand, automatically])
def test_locked_channels_get_no_key(rig, how):
    rig.pose.bones["upper_arm.L"].lock_rotation = (False, True, False)
    how(rig)
    assert {index for path, index in keyed(rig) if path.startswith(ARM)} == {0, 2}
    assert {index for path, index in keyed(rig) if path.startswith(FOREARM)} == {0, 1, 2}


def test_locked_axes_of_a_free_root_get_no_key(rig):
    rig.fabrik.root = "FREE"
    rig.pose.bones["hips"].lock_location = (False, True, False)
    by_hand(rig)
    assert {index for path, index in keyed(rig) if path.endswith("location")} == {0, 2}


def test_only_needed_keys_are_inserted_with_that_preference(rig, preferences):
    preferences.use_keyframe_insert_needed = True
    by_hand(rig)
    bpy.context.scene.frame_set(9)
    rig.pose.bones["forearm.L"].rotation_euler.x += 0.3
    by_hand(rig)
    later = {(curve.data_path, curve.array_index) for curve in curves(rig) if keys(curve)[-1, 0] == 9}
    assert later == {(f"{FOREARM}.rotation_euler", 0)}


class TestKeyingSets:
    def use(self, name):
        sets = bpy.context.scene.keying_sets_all
        sets.active = next(each for each in sets if each.bl_idname == name)

    def test_a_keying_set_of_blender_s_determines_the_keys(self, rig):
        self.use("LocRotScale")
        by_hand(rig)
        assert {path.rpartition(".")[2] for path, _ in keyed(rig)} == {"location", "rotation_euler", "scale"}
        assert {path.split('"')[1] for path, _ in keyed(rig)} == {"hips", "spine", "upper_arm.L", "forearm.L"}

    def test_auto_keying_uses_the_keying_set_only_if_enabled(self, rig, tools):
        self.use("Location")
        automatically(rig)
        assert {path.rpartition(".")[2] for path, _ in keyed(rig)} == {"rotation_euler"}
        tools.use_keyframe_insert_keyingset = True
        rig.animation_data_clear()
        automatically(rig)
        assert keyed(rig) == {(f"{bone}.location", axis) for bone in (ARM, FOREARM) for axis in range(3)}

    def test_a_custom_keying_set_keys_what_it_lists(self, rig):
        own = bpy.context.scene.keying_sets.new(idname="own", name="Own")
        own.paths.add(rig, f"{ARM}.rotation_euler", index=1)
        own.paths.add(rig, 'pose.bones["thigh.L"].rotation_euler')
        bpy.context.scene.keying_sets.active = own
        by_hand(rig)
        assert keyed(rig) == {(f"{ARM}.rotation_euler", 1)}
        assert len(own.paths) == 2

    def test_a_property_that_is_gone_keeps_the_dragged_pose_and_the_other_keys(self, rig, tools):
        own = bpy.context.scene.keying_sets.new(idname="own", name="Own")
        for path in (f"{ARM}.rotation_euler", f'{ARM}["gone"]', f"{FOREARM}.rotation_euler"):
            own.paths.add(rig, path)
        bpy.context.scene.keying_sets.active = own
        tools.use_keyframe_insert_auto = tools.use_keyframe_insert_keyingset = True
        for frame in (1, 20):
            rig.pose.bones["forearm.L"].keyframe_insert("rotation_euler", frame=frame)
        bpy.context.scene.frame_set(9)
        before = np.array(rig.pose.bones["forearm.L"].matrix)
        assert bpy.ops.fabrik.drag(bone="forearm.L", translation=(-0.05, -0.1, 0.05)) == {"FINISHED"}
        bpy.context.view_layer.update()
        posed = np.array(rig.pose.bones["forearm.L"].matrix)
        assert np.abs(posed - before).max() > 0.01
        assert keyed(rig) == {(f"{bone}.rotation_euler", axis) for bone in (ARM, FOREARM) for axis in range(3)}
        bpy.context.scene.frame_set(9)
        assert np.array(rig.pose.bones["forearm.L"].matrix) == pytest.approx(posed, abs=1e-6)
        bpy.context.scene.frame_set(1)
        assert rig.pose.bones["upper_arm.L"].rotation_euler[:] == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)

    def test_a_rig_without_these_bones_is_reported(self, rig):
        own = bpy.context.scene.keying_sets.new(idname="own", name="Own")
        own.paths.add(rig, 'pose.bones["thigh.L"].rotation_euler')
        bpy.context.scene.keying_sets.active = own
        with pytest.raises(RuntimeError, match=r"\(Own lacks changed properties\): choose another keying set"):
            by_hand(rig)
        assert not keyed(rig)


class TestMissingKeysAreReported:
    """Blender's settings prevent keys for a drag, as for Blender's own transforms. Here a message reports it."""

    def test_only_insert_available(self, rig, tools, preferences):
        tools.use_keyframe_insert_auto = True
        preferences.use_keyframe_insert_available = True
        dragged = drag(rig)
        assert not keyed(rig)
        assert any("Only Insert Available" in sentence for sentence in dragged.left_alone)

    def test_the_operator_reports_missing_keys_last(self, rig, tools, preferences, capfd):
        """The status bar shows only the last message."""
        tools.use_keyframe_insert_auto = True
        preferences.use_keyframe_insert_available = True
        bpy.ops.fabrik.drag(bone="forearm.L", translation=(0.0, -0.1, 0.1))
        (*_, result, warning) = [line for line in capfd.readouterr().out.splitlines() if ": " in line]
        assert "rotated" in result
        assert warning.startswith("Warning: No keys inserted (Only Insert Available")

    def test_only_replace(self, rig, tools):
        tools.use_keyframe_insert_auto = True
        tools.auto_keying_mode = "REPLACE_KEYS"
        dragged = drag(rig)
        assert not keyed(rig)
        assert any("only replaces keys" in sentence for sentence in dragged.left_alone)

    @pytest.mark.parametrize("all_of_them", [False, True])
    def test_locked_curves(self, rig, tools, all_of_them):
        tools.use_keyframe_insert_auto = True
        for bone in ("upper_arm.L", "forearm.L"):
            rig.pose.bones[bone].keyframe_insert("rotation_euler", frame=1)
        for curve in curves(rig):
            curve.lock = all_of_them or curve.data_path.startswith(ARM)
        bpy.context.scene.frame_set(10)
        (note,) = drag(rig).left_alone
        assert note.startswith("No keys inserted for ")
        assert note.endswith(": unlock their curves in the Graph Editor")
        assert [bone in note for bone in ("upper_arm.L", "forearm.L")] == [True, all_of_them]

    def test_no_message_after_keys_were_inserted(self, rig, tools):
        tools.use_keyframe_insert_auto = True
        assert not drag(rig).left_alone
        assert keyed(rig)
