"""Rigs as animators have them: bones moved by constraints or drivers, and locked bones, are named and not changed."""

import os

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import scenes
from support.processes import run_python

from fabrik_addon.blender.goals.places import tree_space
from fabrik_addon.blender.goals.problem import find_problems
from fabrik_addon.blender.posing import live
from fabrik_addon.blender.posing.solve import solve_frame
from fabrik_addon.blender.rig.armature import RigError, cut_tree, freeze, read_trees
from fabrik_addon.blender.rig.pose_writer import constrained_bones, unkeyable_bones
from fabrik_addon.core import forward_kinematics

pytestmark = pytest.mark.usefixtures("clean_scene")

NEAR = 1e-3 * scenes.HEIGHT
ARM = ("upper_arm.L", "forearm.L")


@pytest.fixture
def rig():
    """A posed person, moved and rotated in the world, who reaches for a target with a hand."""
    made = scenes.place(scenes.make_rig(mode="MIXED"), scale=1.5)
    scenes.pose(made, scenes.smooth_motion(made, 1, 5)[0][0])
    scenes.aim(made, "forearm.L", scenes.empty_at(made.matrix_world @ Vector((0.4, -0.3, 1.2))))
    scenes.make_active(made)
    return made


def update():
    bpy.context.view_layer.update()


def gap(rig):
    update()
    effector = rig.fabrik.effectors[0]
    end = rig.matrix_world @ rig.pose.bones[effector.bone].tail
    return (end - effector.target.matrix_world.translation).length


def channels(rig):
    names = ("location", "rotation_quaternion", "rotation_axis_angle", "rotation_euler", "scale")
    return {bone.name: [tuple(getattr(bone, name)) for name in names] for bone in rig.pose.bones}


def written(rig, operation):
    """The bones whose channels an operation changes, and its result."""
    before = channels(rig)
    result = operation()
    after = channels(rig)
    return {name for name in before if before[name] != after[name]}, result


def solve(rig):
    return solve_frame(bpy.context, rig)


def leader(rig, turn=(0.3, 0.2, -0.4)):
    """An object that something can copy."""
    made = scenes.empty_at((0.0, 0.0, 0.0), "Leader")
    made.rotation_euler = turn
    return made


class TestConstraints:
    def test_a_constrained_bone_is_left_alone_and_its_children_are_solved(self, rig):
        copy = rig.pose.bones["spine"].constraints.new("COPY_ROTATION")
        copy.target = leader(rig)
        update()
        bones, result = written(rig, lambda: solve(rig))
        assert bones == set(ARM)
        assert result.left_alone == ("Bone 'spine' was not changed: constraint 'Copy Rotation' moves it",)
        assert gap(rig) < NEAR

    @pytest.mark.parametrize("kind", ["LIMIT_ROTATION", "COPY_SCALE"])
    def test_limit_and_scale_constraints_do_not_block_solving(self, rig, kind):
        rig.pose.bones["spine"].constraints.new(kind)
        assert constrained_bones(rig) == {}

    def test_muted_constraints_and_those_without_influence_do_nothing(self, rig):
        copy = rig.pose.bones["spine"].constraints.new("COPY_ROTATION")
        copy.target, copy.mute = leader(rig), True
        assert constrained_bones(rig) == {}
        copy.mute, copy.influence = False, 0.0
        assert constrained_bones(rig) == {}
        copy.influence = 1.0
        assert set(constrained_bones(rig)) == {"spine"}

    @pytest.mark.parametrize(
        ("length", "tail", "chain"),
        [
            (2, True, {"forearm.L", "upper_arm.L"}),
            (1, False, {"upper_arm.L"}),
            (0, True, {"forearm.L", "upper_arm.L", "spine", "hips"}),
        ],
    )
    def test_ik_moves_its_whole_chain(self, rig, length, tail, chain):
        ik = rig.pose.bones["forearm.L"].constraints.new("IK")
        ik.target, ik.chain_count, ik.use_tail = leader(rig), length, tail
        assert set(constrained_bones(rig)) == chain

    def test_an_effector_that_nothing_can_move_is_refused_by_name(self, rig):
        rig.pose.bones["forearm.L"].constraints.new("COPY_TRANSFORMS").target = leader(rig)
        update()
        with pytest.raises(RigError, match=r"'forearm\.L' was not changed: constraint 'Copy Transforms'"):
            solve(rig)

    def test_a_constrained_parent_may_follow_a_bone_that_is_solved_first(self, rig):
        """The spine rotates for the head; a bone that copies it carries the arm."""
        bpy.ops.object.mode_set(mode="EDIT")
        rig.data.edit_bones["upper_arm.L"].parent = None
        carrier = rig.data.edit_bones.new("carrier")
        carrier.head, carrier.tail = (0.0, 0.0, 1.15), (0.0, 0.0, 1.42)
        rig.data.edit_bones["upper_arm.L"].parent = carrier
        bpy.ops.object.mode_set(mode="OBJECT")
        copy = rig.pose.bones["carrier"].constraints.new("COPY_TRANSFORMS")
        copy.target, copy.subtarget = rig, "spine"
        scenes.aim(rig, "head", scenes.empty_at(rig.matrix_world @ Vector((0.3, -0.4, 1.5)), "Head target"))
        solve(rig)
        assert gap(rig) < NEAR

    def test_a_bake_follows_a_moving_parent(self, rig):
        spin = leader(rig)
        for frame, angle in ((1, -0.5), (9, 0.7)):
            spin.rotation_euler.x = angle
            spin.keyframe_insert("rotation_euler", frame=frame)
        rig.pose.bones["spine"].constraints.new("COPY_ROTATION").target = spin
        bpy.context.scene.frame_set(1)
        bpy.ops.fabrik.bake(frame_start=1, frame_end=9)
        for frame in (1, 4, 9):
            bpy.context.scene.frame_set(frame)
            assert gap(rig) < NEAR, frame


class TestUnkeyableBones:
    def test_driven_locked_hidden_and_unselectable_bones_follow_rigidly(self, rig):
        bones = rig.pose.bones
        bones["hips"].rotation_mode = bones["spine"].rotation_mode = "XYZ"
        curve = bones["hips"].driver_add("rotation_euler", 0)
        curve.driver.expression = "0.3"
        bones["spine"].lock_rotation = (True, True, True)
        bones["head"].bone.hide_select = True
        update()
        assert unkeyable_bones(rig) == {
            "hips": "a driver rotates it",
            "spine": "its rotation is locked",
            "head": "it can't be selected",
        }
        written_bones, result = written(rig, lambda: solve(rig))
        assert written_bones == set(ARM)
        assert len(result.left_alone) == 2
        assert gap(rig) < NEAR

    def test_hidden_bones(self, rig):
        bone = rig.pose.bones["spine"]
        (bone if hasattr(bone, "hide") else bone.bone).hide = True
        assert unkeyable_bones(rig) == {"spine": "it is hidden"}

    def test_bones_in_hidden_collections(self, rig):
        shown, hidden = (rig.data.collections.new(name) for name in ("shown", "hidden"))
        hidden.assign(rig.data.bones["spine"])
        hidden.is_visible = False
        assert unkeyable_bones(rig) == {"spine": "it is hidden"}
        shown.assign(rig.data.bones["spine"])
        assert unkeyable_bones(rig) == {}

    @pytest.mark.parametrize("by_parts", [False, True])
    def test_locked_quaternions(self, rig, by_parts):
        bone = rig.pose.bones["hips"]
        bone.rotation_mode, bone.lock_rotations_4d = "QUATERNION", by_parts
        bone.lock_rotation = (True, True, True)
        assert "hips" in unkeyable_bones(rig)

    def test_an_axis_angle_bone_is_locked_only_if_both_axis_and_angle_are(self, rig):
        bone = rig.pose.bones["hips"]
        bone.rotation_mode, bone.lock_rotations_4d, bone.lock_rotation = "AXIS_ANGLE", True, (True, True, True)
        assert "hips" not in unkeyable_bones(rig)
        bone.lock_rotation_w = True
        assert "hips" in unkeyable_bones(rig)


class TestPartialLocks:
    def test_two_locked_axes_make_a_hinge(self, rig):
        elbow = rig.pose.bones["forearm.L"]
        elbow.rotation_mode, elbow.rotation_euler = "XYZ", (0.6, 0.0, 0.0)
        elbow.lock_rotation = (False, True, True)
        solve(rig)
        assert tuple(elbow.rotation_euler)[1:] == pytest.approx((0.0, 0.0), abs=1e-5)
        assert elbow.rotation_euler[0] != pytest.approx(0.6, abs=1e-3)
        assert gap(rig) < NEAR

    def test_two_locked_components_of_a_quaternion_make_a_hinge(self, rig):
        elbow = rig.pose.bones["forearm.L"]
        elbow.rotation_mode, elbow.rotation_quaternion = "QUATERNION", (0.95, 0.3, 0.0, 0.0)
        elbow.lock_rotations_4d, elbow.lock_rotation = True, (False, True, True)
        solve(rig)
        assert tuple(elbow.rotation_quaternion)[2:] == pytest.approx((0.0, 0.0), abs=1e-5)
        assert gap(rig) < NEAR

    def test_a_locked_axis_is_kept_and_the_others_compensate(self, rig):
        arm = rig.pose.bones["upper_arm.L"]
        arm.rotation_mode, arm.rotation_euler = "XYZ", (0.1, 0.25, 0.3)
        arm.lock_rotation = (False, True, False)
        solve(rig)
        assert arm.rotation_euler[1] == pytest.approx(0.25, abs=1e-4)
        assert gap(rig) < NEAR

    def test_live_keeps_locks(self, rig):
        arm = rig.pose.bones["upper_arm.L"]
        arm.rotation_mode, arm.rotation_euler = "XYZ", (0.1, 0.25, 0.3)
        arm.lock_rotation = (False, True, False)
        rig.fabrik.live = True
        update()
        assert arm.rotation_euler[1] == pytest.approx(0.25, abs=1e-4)
        assert gap(rig) < NEAR
        rig.fabrik.live = False


class TestTargetsOnTheRigItself:
    def add_control(self, rig, parent=""):
        bpy.ops.object.mode_set(mode="EDIT")
        bone = rig.data.edit_bones.new("control")
        bone.head, bone.tail = (0.4, -0.3, 1.2), (0.4, -0.3, 1.3)
        bone.parent = rig.data.edit_bones.get(parent)
        bpy.ops.object.mode_set(mode="OBJECT")
        rig.fabrik.effectors[0].target, rig.fabrik.effectors[0].target_bone = rig, "control"

    def test_a_control_bone_of_the_rig_can_be_a_target(self, rig):
        self.add_control(rig)
        solve(rig)
        update()
        assert (rig.pose.bones["forearm.L"].tail - rig.pose.bones["control"].head).length < NEAR

    def test_a_target_bone_that_moves_with_its_effector_is_refused(self, rig):
        self.add_control(rig, "forearm.L")
        with pytest.raises(RigError, match=r"moves with bone 'forearm\.L': choose"):
            solve(rig)
        rig.fabrik.live = True
        update()
        assert "moves with bone 'forearm.L'" in live.trouble_of(rig)
        rig.fabrik.live = False


def test_cut_and_frozen_trees_show_the_same_pose(rig):
    (tree,) = read_trees(rig)
    before = forward_kinematics(tree.skeleton, tree.rotations, tree.root_location)
    held = {"hips", "upper_arm.L", "shin.R"}
    frozen = freeze(tree, held)
    assert forward_kinematics(frozen.skeleton, frozen.rotations, frozen.root_location) == pytest.approx(before)
    for part, carrier in cut_tree(tree, {"spine"}, set(scenes.ENDS)):
        rows = [tree.skeleton.index(name) for name in part.skeleton.names]
        carried = np.eye(4)
        if carrier:
            carried = before[tree.skeleton.index(carrier)] @ np.linalg.inv(part.skeleton.rest[0])
        places = carried @ forward_kinematics(part.skeleton, part.rotations, part.root_location)
        assert places == pytest.approx(before[rows], abs=1e-9)


# In a separate process: after Rigify has run, Blender's module crashes at exit.
GENERATE = """
import os, sys
import bpy
import addon_utils
if addon_utils.enable("rigify", default_set=True) is None:
    os._exit(3)
data = bpy.data.armatures.new("Meta")
bpy.context.scene.collection.objects.link(bpy.data.objects.new("Meta", data))
bpy.context.view_layer.objects.active = bpy.data.objects["Meta"]
bpy.ops.object.mode_set(mode="EDIT")
bpy.ops.armature.metarig_sample_add(metarig_type="limbs.arm")
bpy.ops.object.mode_set(mode="OBJECT")
arm = data.collections.new("Arm")
arm.rigify_ui_row = 1
for bone in data.bones:
    arm.assign(bone)
bpy.ops.pose.rigify_generate()
bpy.context.object.name = "Generated"
bpy.ops.wm.save_as_mainfile(filepath=sys.argv[-1])
os._exit(0)
"""


@pytest.fixture
def generated_arm(tmp_path):
    """An arm generated by Rigify, if Blender has Rigify."""
    file = tmp_path / "arm.blend"
    profile = {**os.environ, "BLENDER_USER_RESOURCES": str(tmp_path)}
    ended = run_python(GENERATE, file, env=profile)
    if ended.returncode == 3:
        pytest.skip("this Blender has no Rigify")
    assert ended.returncode == 0, ended.stderr
    bpy.ops.wm.open_mainfile(filepath=str(file))
    scenes.make_active(bpy.data.objects["Generated"])
    return bpy.data.objects["Generated"]


def test_a_generated_rigify_arm(generated_arm):
    """The FK controls reach the target; bones that constraints and drivers move do not change."""
    rig = generated_arm
    controls = {"upper_arm_fk.L", "forearm_fk.L", "hand_fk.L"}
    free = {bone.name for bone in rig.pose.bones} - set(constrained_bones(rig)) - set(unkeyable_bones(rig))
    assert controls <= free
    assert not [name for name in free if name.startswith(("MCH-", "ORG-", "DEF-"))]
    scenes.aim(rig, "hand_fk.L", scenes.empty_at(rig.pose.bones["hand_fk.L"].tail + Vector((-0.1, -0.1, 0.1))))
    bones, result = written(rig, lambda: solve(rig))
    assert bones - {"root"} == controls
    assert any("MCH-" in sentence for sentence in result.left_alone)
    assert gap(rig) < NEAR


def test_target_rotations_include_the_rotation_of_a_constrained_parent(rig):
    """Positions and rotations of goals are in the space of the bone that carries the tree."""
    copy = rig.pose.bones["spine"].constraints.new("COPY_ROTATION")
    copy.target = leader(rig)
    update()
    (goals,) = find_problems(rig)

    space = tree_space(rig, goals)
    shown = np.array(rig.matrix_world @ rig.pose.bones["forearm.L"].matrix)
    row = goals.tree.skeleton.index("forearm.L")
    matrices = forward_kinematics(goals.tree.skeleton, goals.tree.rotations, goals.tree.root_location)
    assert space @ matrices[row] == pytest.approx(shown, abs=1e-4)
