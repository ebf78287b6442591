"""Live rigs that follow bones of other live rigs, added and removed rigs, and updates that affect no rig."""

import bpy
import numpy as np
import pytest
from support import scenes

from fabrik_addon.blender.posing import live

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]

HAND = "forearm.L"
NEAR = 1e-3 * scenes.HEIGHT


@pytest.fixture(autouse=True)
def _off_at_the_end():
    yield
    for thing in bpy.data.objects:
        thing.fabrik.live = False
    live.follow()


def animated_ball():
    ball = scenes.empty_at((0.4, -0.3, 1.2))
    for frame, place in ((1, (0.4, -0.3, 1.2)), (11, (0.2, -0.5, 1.5)), (21, (0.5, 0.1, 1.4))):
        ball.location = place
        ball.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(1)
    return ball


def hand(rig):
    return np.array(rig.matrix_world @ rig.pose.bones[HAND].tail)


def head_of(rig, bone):
    return np.array(rig.matrix_world @ rig.pose.bones[bone].head)


@pytest.fixture(params=["follower first", "leader first"])
def pair(request):
    """A leader whose hand follows a ball, and a follower whose hand follows the leader's forearm."""
    names = ["leader", "follower"] if request.param == "leader first" else ["follower", "leader"]
    rigs = {name: scenes.make_rig(name=name) for name in names}
    leader, follower = rigs["leader"], rigs["follower"]
    scenes.aim(leader, HAND, animated_ball())
    scenes.aim(follower, HAND, leader)
    follower.fabrik.effectors[0].target_bone = HAND
    for rig in rigs.values():
        rig.fabrik.live = True
    bpy.context.view_layer.update()
    return leader, follower


def test_after_each_frame_the_follower_is_where_the_leader_is(pair):
    leader, follower = pair
    for frame in (1, 6, 21, 11, 1):
        bpy.context.scene.frame_set(frame)
        assert np.linalg.norm(hand(follower) - head_of(leader, HAND)) < NEAR, frame


def test_the_leader_s_target_is_moved(pair):
    leader, follower = pair
    ball = leader.fabrik.effectors[0].target
    ball.animation_data_clear()
    for place in ((0.2, -0.5, 1.5), (0.5, 0.1, 1.4)):
        ball.location = place
        bpy.context.view_layer.update()
        assert np.linalg.norm(hand(leader) - np.array(place)) < NEAR
        assert np.linalg.norm(hand(follower) - head_of(leader, HAND)) < NEAR


def test_a_target_that_hangs_on_a_leader_s_bone(pair):
    leader, follower = pair
    carried = scenes.empty_at((0.0, 0.0, 0.0), "Carried")
    carried.parent, carried.parent_type, carried.parent_bone = leader, "BONE", HAND
    effector = follower.fabrik.effectors[0]
    effector.target_bone, effector.target = "", carried
    for frame in (6, 21, 1):
        bpy.context.scene.frame_set(frame)
        assert np.linalg.norm(hand(follower) - np.array(carried.matrix_world.translation)) < NEAR, frame


def test_two_rigs_that_follow_each_other_come_to_rest(pair):
    leader, follower = pair
    leader.fabrik.effectors[0].target = follower
    leader.fabrik.effectors[0].target_bone = HAND
    for frame in (6, 21, 1):
        bpy.context.scene.frame_set(frame)
    assert all(np.isfinite(hand(rig)).all() for rig in pair)


def test_a_paused_rig_does_not_stop_the_others(pair):
    leader, follower = pair
    live.pause(follower)
    before = hand(follower)
    bpy.context.scene.frame_set(21)
    assert np.linalg.norm(hand(leader) - np.array((0.5, 0.1, 1.4))) < NEAR
    assert hand(follower) == pytest.approx(before, abs=1e-5)
    # Switching another rig off and on does not pose the follower again.
    leader.fabrik.live = False
    leader.fabrik.live = True
    bpy.context.scene.frame_set(11)
    bpy.context.scene.frame_set(21)
    assert hand(follower) == pytest.approx(before, abs=1e-5)
    live.resume(follower)
    bpy.context.scene.frame_set(11)
    assert np.linalg.norm(hand(follower) - head_of(leader, HAND)) < NEAR


def test_a_copy_of_a_live_rig_is_live_too_and_one_that_is_deleted_is_forgotten(pair):
    leader, _ = pair
    copy = leader.copy()
    bpy.context.scene.collection.objects.link(copy)
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(21)
    assert np.linalg.norm(hand(copy) - np.array((0.5, 0.1, 1.4))) < NEAR
    bpy.data.objects.remove(leader)
    bpy.context.scene.frame_set(11)
    assert np.linalg.norm(hand(copy) - np.array((0.2, -0.5, 1.5))) < NEAR


def test_changes_of_other_objects_cost_the_same_with_many_objects(pair):
    """Scenes may have 10,000 objects: only changed ones are checked."""
    other = scenes.empty_at((0, 0, 0), "Other")
    few = steps_of_an_update(other)
    for _ in range(200):
        scenes.empty_at((1, 1, 1), "Many")
    bpy.context.view_layer.update()
    assert steps_of_an_update(other) == few


def steps_of_an_update(thing):
    """The number of Python instructions while Blender reports that an object has moved."""

    def move():
        thing.location.x += 1.0
        bpy.context.view_layer.update()

    return scenes.steps_of(move)
