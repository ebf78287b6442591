"""A drag from beginning to end: locks, keys, live posing, the operator, and its messages."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import scenes
from support.dragging import changed, channels, drag_by, person, world

from fabrik_addon.blender.goals.effectors import pin_bones
from fabrik_addon.blender.posing.drag import begin_drag
from fabrik_addon.blender.rig.armature import RigError
from fabrik_addon.blender.rig.keyframes import curves

pytestmark = pytest.mark.usefixtures("clean_scene")


class TestLocks:
    @pytest.mark.one_blender
    @pytest.mark.parametrize("mode", ["XYZ", "ZYX", "QUATERNION", "AXIS_ANGLE"])
    @pytest.mark.parametrize("locks", [(False, True, True), (True, True, False), (False, True, False)])
    def test_locked_channels_keep_their_values(self, mode, locks):
        rig = person(mode=mode)
        bone = rig.pose.bones["forearm.L"]
        bone.lock_rotation, bone.lock_rotations_4d = locks, False
        hand = world(rig, "forearm.L")
        shift = np.array((-0.05, -0.1, 0.05))
        drag_by(rig, "forearm.L", shift)
        order = mode if mode in {"XYZ", "ZYX"} else "XYZ"
        angles = np.array(bone.matrix_basis.to_euler(order))
        assert np.abs(angles[list(locks)]).max() < 1e-6
        assert np.linalg.norm(world(rig, "forearm.L") - hand - shift) < 1e-3

    @pytest.mark.parametrize("locks", [(False, True, True), (False, True, False), (True, False, False)])
    def test_locked_components_of_a_quaternion(self, locks):
        rig = person()
        bone = rig.pose.bones["forearm.L"]
        bone.lock_rotations_4d, bone.lock_rotation = True, locks
        hand = world(rig, "forearm.L")
        shift = np.array((-0.05, -0.1, 0.05))
        drag_by(rig, "forearm.L", shift)
        assert not np.array(bone.rotation_quaternion)[1:][list(locks)].any()
        assert np.linalg.norm(world(rig, "forearm.L") - hand - shift) < 1e-3


@pytest.mark.usefixtures("preferences")
class TestKeys:
    def keyed(self, rig):
        return {curve.data_path.split('"')[1] for curve in curves(rig)}

    def test_auto_keying_keys_the_bones_that_changed(self):
        rig = person(mode="MIXED")
        bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
        bpy.context.scene.frame_set(7)
        drag_by(rig, "forearm.L", (-0.05, -0.1, 0.05), reach="BONES", bones=2)
        assert self.keyed(rig) == {"forearm.L", "upper_arm.L"}
        assert {key.co[0] for curve in curves(rig) for key in curve.keyframe_points} == {7.0}
        assert {curve.group.name for curve in curves(rig)} == {"forearm.L", "upper_arm.L"}

    def test_a_root_that_moved_is_keyed_too(self):
        rig = person()
        bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
        drag_by(rig, "hips", (0.0, 0.1, 0.0), point="HEAD", root="FREE")
        assert {curve.data_path for curve in curves(rig)} == {'pose.bones["hips"].location'}

    def test_without_auto_keying_no_keys_are_inserted(self):
        rig = person()
        drag_by(rig, "forearm.L", (-0.05, -0.1, 0.05))
        assert rig.animation_data is None

    def test_only_existing_curves_are_keyed_with_that_preference(self, preferences):
        rig = person()
        rig.pose.bones["forearm.L"].keyframe_insert("rotation_quaternion")
        bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
        preferences.use_keyframe_insert_available = True
        drag_by(rig, "forearm.L", (-0.05, -0.1, 0.05))
        assert self.keyed(rig) == {"forearm.L"}


class TestLive:
    """Live posing pauses during a drag, and its targets are at the new pose afterwards."""

    def live_person(self):
        rig = person()
        for bone in ("forearm.L", "shin.L"):
            scenes.aim(rig, bone, scenes.empty_at(world(rig, bone), f"{bone} target"))
        rig.fabrik.live = True
        bpy.context.view_layer.update()
        return rig

    def test_the_target_moves_with_the_dragged_bone(self):
        rig = self.live_person()
        shift = np.array((-0.1, -0.1, 0.1))
        wanted = world(rig, "forearm.L") + shift
        drag_by(rig, "forearm.L", shift)
        bpy.context.view_layer.update()
        assert np.linalg.norm(world(rig, "forearm.L") - wanted) < 2e-3
        assert (bpy.data.objects["forearm.L target"].location - Vector(wanted)).length < 2e-3
        assert rig.fabrik.live

    def test_live_continues_after_a_canceled_drag(self):
        rig = self.live_person()
        target = bpy.data.objects["forearm.L target"]
        drag = begin_drag(bpy.context, rig, "forearm.L")
        drag.step(drag.start + np.array((-0.1, -0.1, 0.1)))
        drag.cancel()
        bpy.context.view_layer.update()
        target.location.z += 0.05
        bpy.context.view_layer.update()
        assert (rig.pose.bones["forearm.L"].tail - target.location).length < 1e-3


class TestOperator:
    def test_a_bone_is_moved_by_a_distance_or_to_a_position(self):
        rig = person()
        hand = world(rig, "forearm.L")
        assert bpy.ops.fabrik.drag(bone="forearm.L", translation=(-0.1, -0.1, 0.0)) == {"FINISHED"}
        assert np.linalg.norm(world(rig, "forearm.L") - hand - (-0.1, -0.1, 0.0)) < 1e-3
        rig.data.bones.active = rig.data.bones["forearm.L"]
        assert bpy.ops.fabrik.drag(location=hand) == {"FINISHED"}
        assert np.linalg.norm(world(rig, "forearm.L") - hand) < 1e-3

    def test_rotations_are_applied(self):
        rig = person()
        before = rig.pose.bones["forearm.L"].matrix.to_quaternion()
        bpy.ops.fabrik.drag(bone="forearm.L", rotation=(0.0, 0.0, 0.4))
        bpy.context.view_layer.update()
        turn = rig.pose.bones["forearm.L"].matrix.to_quaternion() @ before.inverted()
        assert np.allclose(turn.to_euler()[:], (0.0, 0.0, 0.4), atol=5e-3)

    def test_settings_come_from_the_rig(self):
        rig = person()
        rig.fabrik.drag.reach, rig.fabrik.drag.bones = "BONES", 2
        before = channels(rig)
        bpy.ops.fabrik.drag(bone="forearm.L", translation=(-0.05, -0.05, 0.0))
        assert changed(rig, before) == {"upper_arm.L", "forearm.L"}
        rig.fabrik.drag.reach = "WHOLE"
        bpy.ops.fabrik.drag(bone="head", translation=(0.05, 0.0, 0.0))
        assert "spine" in changed(rig, before)

    def test_works_outside_pose_mode(self):
        rig = person()
        bpy.ops.object.mode_set(mode="OBJECT")
        assert bpy.ops.fabrik.drag(bone="head", translation=(0.05, 0.0, 0.0)) == {"FINISHED"}
        assert rig.mode == "OBJECT"

    def test_errors_of_dragging_name_the_problem_and_change_nothing(self):
        rig = person()
        rig.data.bones.active = None
        before = scenes.digest()
        with pytest.raises(RuntimeError, match="No bone is active"):
            bpy.ops.fabrik.drag()
        with pytest.raises(RuntimeError, match="has no bone 'nose'"):
            bpy.ops.fabrik.drag(bone="nose", translation=(1, 0, 0))
        rig.pose.bones["spine"].scale = (1, 2, 1)
        with pytest.raises(RuntimeError, match=r"'spine' is scaled"):
            bpy.ops.fabrik.drag(bone="head", translation=(1, 0, 0))
        rig.pose.bones["spine"].scale = (1, 1, 1)
        assert scenes.digest() == before

    @pytest.mark.parametrize("how", ["deleted", "undone", "a bone is gone"])
    def test_a_removed_rig_ends_the_drag_and_live_continues(self, how):
        other, rig = person(name="Other"), person()
        scenes.aim(other, "forearm.L", scenes.empty_at((0.4, -0.3, 1.2)))
        other.fabrik.live = rig.fabrik.live = True
        bpy.ops.ed.undo_push(message="before")
        rig.location.x = 1.0
        bpy.ops.ed.undo_push(message="moved")
        drag = begin_drag(bpy.context, rig, "head")
        if how == "deleted":
            bpy.data.objects.remove(rig)
        elif how == "undone":
            bpy.ops.ed.undo()
        else:
            bpy.ops.object.mode_set(mode="EDIT")
            rig.data.edit_bones.remove(rig.data.edit_bones["head"])
            bpy.ops.object.mode_set(mode="POSE")
        before = scenes.digest()
        with pytest.raises(RigError, match="'head' was changed during the drag"):
            drag.step(drag.start + np.array((0.1, 0.0, 0.0)))
        drag.cancel()
        assert scenes.digest() == before
        ball = bpy.data.objects["Other"].fabrik.effectors[0].target
        ball.location = (0.2, -0.5, 1.5)
        assert np.linalg.norm(world(bpy.data.objects["Other"], "forearm.L") - (0.2, -0.5, 1.5)) < 1e-3 * scenes.HEIGHT
        for thing in bpy.data.objects:
            thing.fabrik.live = False

    def test_a_scaled_bone_is_refused_only_inside_the_chain(self):
        rig = person()
        rig.pose.bones["shin.L"].scale = (1.0, 2.0, 1.0)
        before = world(rig, "head")
        drag_by(rig, "head", (0.05, 0.0, 0.0))
        assert np.linalg.norm(world(rig, "head") - before - (0.05, 0.0, 0.0)) < 1e-3
        pin_bones(rig, ["shin.L"])
        with pytest.raises(RigError, match=r"'shin\.L' is scaled"):
            begin_drag(bpy.context, rig, "head")
