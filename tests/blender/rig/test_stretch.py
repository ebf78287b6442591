"""Bones that may stretch: stored as a property, solved, keyed as the Y scale, and children keep their size."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import scenes

from fabrik_addon.blender.posing.drag import begin_drag
from fabrik_addon.blender.posing.solve import solve_frame
from fabrik_addon.blender.rig.armature import RigError
from fabrik_addon.blender.settings.limit_properties import LimitPropertyError, read_extra, read_settings

pytestmark = pytest.mark.usefixtures("clean_scene")

NEAR = 1e-3 * scenes.HEIGHT
# To the side of the shoulder, a quarter farther than the arm reaches.
FAR = (0.85, 0.0, 1.40)
BONES = (*scenes.PERSON, ("hand.L", "forearm.L", (0.70, 0.0, 1.40), (0.80, 0.0, 1.40)))


@pytest.fixture
def rig(clean_scene):
    """A person whose arm reaches for something beyond its reach; spine and hips are locked."""
    made = scenes.place(scenes.make_rig(BONES, mode="MIXED"), scale=1.5)
    for bone in ("hips", "spine"):
        made.pose.bones[bone].rotation_mode = "XYZ"
        made.pose.bones[bone].lock_rotation = (True, True, True)
    scenes.aim(made, "hand.L", scenes.empty_at(made.matrix_world @ Vector(FAR)), point="HEAD")
    scenes.make_active(made)
    return made


def stretch(bones="upper_arm.L,forearm.L", factors=(1.0, 1.5)):
    bpy.ops.fabrik.set_limit(bones=bones, slide=factors)


def update():
    bpy.context.view_layer.update()


def gap(rig):
    update()
    effector = rig.fabrik.effectors[0]
    point = rig.matrix_world @ rig.pose.bones[effector.bone].head
    return (point - effector.target.matrix_world.translation).length


def scales(rig):
    return np.array([bone.scale for bone in rig.pose.bones])


class TestStoring:
    def test_the_operator_stores_the_stretch_and_children_keep_their_size(self, rig):
        stretch()
        for bone in ("upper_arm.L", "forearm.L"):
            assert read_extra(rig, [bone], "slide") == {bone: (1.0, 1.5)}
            assert read_settings(rig.pose.bones[bone]).type == "FREE"
        assert [rig.data.bones[name].inherit_scale for name in ("forearm.L", "hand.L")] == ["NONE", "NONE"]
        assert rig.data.bones["upper_arm.L"].inherit_scale == "FULL"

    def test_a_bone_can_have_stretch_and_a_limit(self, rig):
        bpy.ops.fabrik.set_limit(bones="forearm.L", axis="Z", low=0.0, high=2.0)
        stretch("forearm.L")
        assert read_settings(rig.pose.bones["forearm.L"]).type == "HINGE"
        bpy.ops.fabrik.clear_limit(bones="forearm.L")
        assert "fabrik_slide" not in rig.pose.bones["forearm.L"]

    @pytest.mark.parametrize("factors", [(1.5, 1.0)])
    def test_invalid_factors_are_refused(self, rig, factors):
        with pytest.raises(RuntimeError, match=r"stretch range 1\.5 to 1 is invalid"):
            stretch("forearm.L", factors)
        rig.pose.bones["forearm.L"]["fabrik_slide"] = list(factors)
        with pytest.raises(LimitPropertyError, match=r"Bone 'forearm\.L', property 'fabrik_slide'"):
            solve_frame(bpy.context, rig)

    def test_a_child_that_would_grow_is_named(self, rig):
        stretch()
        rig.data.bones["hand.L"].inherit_scale = "FULL"
        with pytest.raises(RigError, match=r"'hand\.L' would be scaled by its stretching parent 'forearm\.L'"):
            solve_frame(bpy.context, rig)


class TestSolving:
    def test_without_stretch_the_target_is_missed(self, rig):
        bpy.ops.fabrik.solve()
        assert gap(rig) > 0.1

    def test_the_arm_stretches_to_reach_and_the_hand_keeps_its_size(self, rig):
        stretch()
        assert solve_frame(bpy.context, rig).met == 1
        assert gap(rig) < NEAR
        update()
        hand = rig.pose.bones["hand.L"]
        assert np.array(hand.matrix.to_scale()) == pytest.approx(np.ones(3), abs=1e-5)
        factors = scales(rig)
        assert np.abs(factors[:, [0, 2]] - 1.0).max() == 0.0
        arm = [rig.pose.bones[name].scale[1] for name in ("upper_arm.L", "forearm.L")]
        assert min(arm) >= 1.0
        assert 1.0 < max(arm) <= 1.5

    def test_bones_keep_their_length_for_targets_within_reach(self, rig):
        stretch()
        bpy.ops.fabrik.solve()
        assert scales(rig).max() > 1.0
        rig.fabrik.effectors[0].target.location = rig.matrix_world @ Vector((0.5, -0.2, 1.3))
        bpy.ops.fabrik.solve()
        assert gap(rig) < NEAR
        assert scales(rig) == pytest.approx(1.0, abs=1e-6)

    def test_bones_stretch_no_farther_than_allowed(self, rig):
        stretch(factors=(1.0, 1.1))
        bpy.ops.fabrik.solve()
        assert gap(rig) > NEAR
        arm = [rig.pose.bones[name].scale[1] for name in ("upper_arm.L", "forearm.L")]
        assert arm == pytest.approx([1.1, 1.1], abs=1e-5)

    def test_a_bone_that_stretches_reaches_its_target(self, rig):
        stretch("upper_arm.L,forearm.L,hand.L", (1.0, 1.3))
        effector = rig.fabrik.effectors[0]
        effector.point = "TAIL"
        bpy.ops.fabrik.solve()
        update()
        tail = rig.matrix_world @ rig.pose.bones["hand.L"].tail
        assert (tail - effector.target.matrix_world.translation).length < NEAR

    def test_a_locked_scale_stays(self, rig):
        stretch()
        for bone in ("upper_arm.L", "forearm.L"):
            rig.pose.bones[bone].lock_scale = (True, True, True)
        bpy.ops.fabrik.solve()
        assert gap(rig) > 0.1
        assert (scales(rig) == 1.0).all()

    def test_bones_that_are_not_solved_keep_their_current_length(self, rig):
        stretch()
        bpy.ops.fabrik.solve()
        scale = rig.pose.bones["upper_arm.L"].scale[1]
        rig.pose.bones["upper_arm.L"].rotation_mode = "XYZ"
        rig.pose.bones["upper_arm.L"].lock_rotation = (True, True, True)
        goal = rig.fabrik.effectors[0].target
        update()
        elbow = rig.matrix_world @ rig.pose.bones["forearm.L"].head
        goal.location = elbow + (goal.location - elbow) * 0.9
        bpy.ops.fabrik.solve()
        assert gap(rig) < NEAR
        assert rig.pose.bones["upper_arm.L"].scale[1] == scale

    def test_other_scales_are_still_refused(self, rig):
        stretch()
        rig.pose.bones["forearm.L"].scale = (1.2, 1.2, 1.2)
        update()
        with pytest.raises(RigError, match=r"'forearm\.L' is scaled"):
            solve_frame(bpy.context, rig)


def test_live_stretches_and_returns(rig):
    stretch()
    rig.fabrik.live = True
    update()
    assert gap(rig) < NEAR
    assert scales(rig).max() > 1.05
    rig.fabrik.influence = 0.0
    update()
    assert scales(rig) == pytest.approx(1.0, abs=1e-6)
    rig.fabrik.influence = 1.0
    rig.fabrik.effectors[0].target.location = rig.matrix_world @ Vector((0.5, -0.2, 1.3))
    assert gap(rig) < NEAR
    assert scales(rig) == pytest.approx(1.0, abs=1e-6)
    rig.fabrik.live = False


@pytest.mark.parametrize("fewer", [0.0, 0.02])
def test_a_bake_keys_the_length_and_can_be_repeated(rig, fewer):
    stretch()
    goal = rig.fabrik.effectors[0].target
    for frame, place in ((1, FAR), (11, (0.5, -0.3, 1.3)), (21, (0.2, -0.62, 1.4))):
        goal.location = rig.matrix_world @ Vector(place)
        goal.keyframe_insert("location", frame=frame)
    for action in ("NEW", "CURRENT"):
        rig.fabrik.bake.action, rig.fabrik.bake.key_angle = action, fewer
        bpy.ops.fabrik.bake(frame_start=1, frame_end=21)
        largest = []
        for frame in (1, 6, 11, 16, 21):
            bpy.context.scene.frame_set(frame)
            assert gap(rig) < (NEAR if not fewer else 0.03)
            largest.append(scales(rig)[:, 1].max())
        assert largest[0] > 1.05
        assert largest[2] == pytest.approx(1.0, abs=1e-3)


def test_keying_the_pose_keys_the_length(rig):
    stretch()
    bpy.ops.fabrik.solve()
    scale = rig.pose.bones["forearm.L"].scale[1]
    bpy.ops.fabrik.key_pose()
    rig.pose.bones["forearm.L"].scale = (1.0, 1.0, 1.0)
    bpy.context.scene.frame_set(bpy.context.scene.frame_current)
    assert rig.pose.bones["forearm.L"].scale[1] == pytest.approx(scale)


@pytest.mark.parametrize("point", ["TAIL", "HEAD"])
def test_dragging_keeps_the_current_length(rig, point):
    stretch("upper_arm.L,forearm.L,hand.L", (1.0, 1.3))
    bpy.ops.fabrik.solve()
    update()
    before = scales(rig)
    assert before.max() > 1.05
    drag = begin_drag(bpy.context, rig, "hand.L", point=point)
    end = rig.pose.bones["hand.L"].tail if point == "TAIL" else rig.pose.bones["hand.L"].head
    assert drag.start == pytest.approx(np.array(rig.matrix_world @ end), abs=1e-5)
    place = drag.start + np.array((-0.1, -0.1, -0.1))
    # The arm is nearly straight: joints ease in, and catch up while the mouse rests.
    assert [drag.step(place) for _ in range(4)][-1].error < NEAR
    drag.finish(bpy.context)
    update()
    end = rig.pose.bones["hand.L"].tail if point == "TAIL" else rig.pose.bones["hand.L"].head
    assert np.array(rig.matrix_world @ end) == pytest.approx(place, abs=NEAR)
    assert (scales(rig) == before).all()
