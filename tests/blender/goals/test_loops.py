"""Closed loops on a rig: effectors whose target is a point on another bone of the same rig; both sides move."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import scenes

from fabrik_addon.blender.goals.effectors import Partner, pin_bones
from fabrik_addon.blender.goals.problem import find_problems
from fabrik_addon.blender.posing.drag import DragSettings, begin_drag
from fabrik_addon.blender.posing.snap_targets import snap_targets
from fabrik_addon.blender.posing.solve import solve_frame
from fabrik_addon.blender.rig.armature import RigError

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]

NEAR = 1e-3 * scenes.HEIGHT
BONES = (
    *scenes.PERSON,
    ("hand.L", "forearm.L", (0.70, 0.0, 1.40), (0.80, 0.0, 1.40)),
    ("hand.R", "forearm.R", (-0.70, 0.0, 1.40), (-0.80, 0.0, 1.40)),
)


@pytest.fixture
def rig():
    """A person somewhere in the world whose left hand is to meet the right wrist."""
    made = scenes.place(scenes.make_rig(BONES, mode="MIXED"), scale=1.5)
    scenes.aim(made, "hand.L", made, target_bone="hand.R")
    scenes.make_active(made)
    return made


def update():
    bpy.context.view_layer.update()


def gap(rig, bone="hand.L", other="hand.R"):
    """World distance between a bone's tail and another one's head, as Blender shows them."""
    update()
    bones = rig.pose.bones
    return (rig.matrix_world @ bones[bone].tail - rig.matrix_world @ bones[other].head).length


def held_stick(rig, place=(0.0, 0.3, 0.0)):
    """An empty that is parented to the right hand's tail, as a target of the left hand."""
    stick = scenes.empty_at((0, 0, 0), "Stick")
    stick.parent, stick.parent_type, stick.parent_bone = rig, "BONE", "hand.R"
    stick.location = place
    effector = rig.fabrik.effectors[0]
    effector.target, effector.target_bone = stick, ""
    return stick


def shown(rig):
    update()
    return np.array([bone.matrix for bone in rig.pose.bones])


class TestSolving:
    def test_only_the_two_sides_move(self, rig):
        before = shown(rig)
        bpy.ops.fabrik.solve()
        assert gap(rig) < NEAR
        moved = np.abs(shown(rig) - before).max(axis=(1, 2)) > 1e-6
        names = {bone.name for bone, is_moved in zip(rig.pose.bones, moved, strict=True) if is_moved}
        sides = {"upper_arm", "forearm", "hand"}
        assert names == {f"{bone}.{side}" for bone in sides for side in "LR"}

    def test_a_loop_closes_with_other_effectors(self, rig):
        goal = scenes.empty_at(rig.matrix_world @ Vector((-0.1, -0.4, 1.3)))
        scenes.aim(rig, "forearm.R", goal)
        result = solve_frame(bpy.context, rig)
        update()
        assert result.met == 2
        assert gap(rig) < NEAR
        tail = rig.matrix_world @ rig.pose.bones["forearm.R"].tail
        assert (tail - goal.matrix_world.translation).length < NEAR

    def test_two_hands_meet_on_a_stick_parented_to_one_of_them(self, rig):
        stick = held_stick(rig)
        bpy.ops.fabrik.solve()
        update()
        hand = rig.matrix_world @ rig.pose.bones["hand.L"].tail
        assert (hand - stick.matrix_world.translation).length < NEAR

    def test_a_target_bone_that_cannot_move_is_a_fixed_target(self, rig):
        for bone in ("hips", "spine"):
            rig.pose.bones[bone].lock_rotation = (True, True, True)
        rig.fabrik.effectors[0].target_bone = "shin.L"
        (goals,) = find_problems(rig)
        assert goals.targets == ((rig, "shin.L"),)
        assert goals.effectors[0].target_bone is None

    def test_the_bones_limits_hold(self, rig):
        for bone in ("forearm.L", "forearm.R"):
            bpy.ops.fabrik.set_limit(bones=bone, type="HINGE", axis="X", low=-2.5, high=2.5)
        bpy.ops.fabrik.solve()
        for bone in ("forearm.L", "forearm.R"):
            turn = rig.pose.bones[bone].matrix_basis.to_quaternion()
            assert abs(turn.y) < 1e-4
            assert abs(turn.z) < 1e-4


class TestRefusals:
    def test_rotation_in_a_loop_is_refused(self, rig):
        rig.fabrik.effectors[0].hold_rotation = True
        with pytest.raises(RigError, match="turn Rotation off"):
            solve_frame(bpy.context, rig)

    def test_an_animated_stick_is_refused(self, rig):
        stick = held_stick(rig)
        stick.keyframe_insert("location", frame=1)
        with pytest.raises(RigError, match=r"'hand\.R' moves with bones"):
            solve_frame(bpy.context, rig)

    def test_an_effector_s_own_bone_is_refused_as_its_target(self, rig):
        rig.fabrik.effectors[0].target_bone = "hand.L"
        with pytest.raises(RigError, match=r"moves with bone 'hand\.L'"):
            solve_frame(bpy.context, rig)


class TestLive:
    def test_the_loop_stays_closed_while_another_target_moves_and_comes_to_rest(self, rig):
        goal = scenes.empty_at(rig.matrix_world @ Vector((-0.1, -0.4, 1.3)))
        scenes.aim(rig, "forearm.R", goal)
        rig.fabrik.live = True
        update()
        assert gap(rig) < NEAR
        goal.location.z += 0.2
        update()
        assert gap(rig) < NEAR
        still = shown(rig)
        rig.update_tag(refresh={"OBJECT"})
        assert np.array_equal(shown(rig), still)
        rig.fabrik.live = False


class TestBaking:
    def test_the_loop_is_closed_on_every_frame(self, rig):
        goal = scenes.empty_at(rig.matrix_world @ Vector((-0.1, -0.4, 1.3)))
        for frame, shift in ((1, 0.0), (5, 0.3), (9, -0.2)):
            goal.location.z += shift
            goal.keyframe_insert("location", frame=frame)
        scenes.aim(rig, "forearm.R", goal)
        bpy.ops.fabrik.bake(frame_start=1, frame_end=9)
        for frame in (1, 4, 7, 9):
            bpy.context.scene.frame_set(frame)
            assert gap(rig) < NEAR
            tail = rig.matrix_world @ rig.pose.bones["forearm.R"].tail
            assert (tail - goal.matrix_world.translation).length < NEAR

    def test_a_loop_without_other_targets_can_be_baked(self, rig):
        bpy.ops.fabrik.bake(frame_start=1, frame_end=3)
        for frame in (1, 3):
            bpy.context.scene.frame_set(frame)
            assert gap(rig) < NEAR


class TestDragging:
    def drag(self, rig, bone, shift, **settings):
        bpy.ops.fabrik.solve()
        update()
        bpy.ops.object.mode_set(mode="POSE")
        drag = begin_drag(bpy.context, rig, bone, settings=DragSettings(**settings))
        for share in (0.5, 1.0):
            result = drag.step(drag.start + share * np.array(shift))
        drag.finish(bpy.context)
        return result

    @pytest.mark.parametrize("bone", ["forearm.L", "forearm.R"])
    def test_each_side_moves_the_other(self, rig, bone):
        result = self.drag(rig, bone, (0.05, 0.05, 0.05))
        assert result.error < NEAR
        assert result.pin_error < NEAR
        assert gap(rig) < NEAR

    def test_a_side_outside_the_dragged_chain_stays_and_the_loop_holds(self, rig):
        result = self.drag(rig, "forearm.L", (0.02, 0.0, 0.05), reach="BONES", bones=2)
        assert gap(rig) < NEAR
        assert result.pin_error < NEAR

    def test_pins_and_loops_together(self, rig):
        pin_bones(rig, ["shin.L", "shin.R"])
        before = rig.pose.bones["shin.L"].tail.copy()
        self.drag(rig, "hips", (0.0, 0.0, -0.1), root="FREE")
        assert gap(rig) < NEAR
        assert (rig.pose.bones["shin.L"].tail - before).length < NEAR


def test_targets_snap_to_the_pose_unless_they_are_the_rigs_own_bones(rig):
    goal = scenes.empty_at((0, 0, 0))
    scenes.aim(rig, "shin.L", goal)
    update()
    before = shown(rig)
    moved, stays = snap_targets(bpy.context, rig)
    assert moved == 1
    assert stays == ["Target 'hand.R' was not moved: it is a bone of 'Rig'"]
    assert shown(rig) == pytest.approx(before)


def test_the_target_of_a_loop_is_a_point_on_the_other_bone(rig):
    (goals,) = find_problems(rig)
    assert goals.targets == (Partner("hand.R", (0.0, 0.0, 0.0)),)
