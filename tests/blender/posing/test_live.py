"""Live posing: which bones follow targets, from which pose a solve starts, and when it changes nothing."""

import logging

import bpy
import numpy as np
import pytest
from mathutils import Matrix
from support import scenes
from support.limited import write_limit

import fabrik_addon
from fabrik_addon.blender.posing import live
from fabrik_addon.blender.rig.armature import property_name
from fabrik_addon.core import Hinge

pytestmark = pytest.mark.usefixtures("clean_scene")

HAND = "forearm.L"
NEAR = 1e-3 * scenes.HEIGHT


@pytest.fixture
def rig():
    """A person, posed by hand, who reaches for a target with a hand."""
    made = scenes.make_rig(mode="MIXED")
    scenes.pose(made, scenes.smooth_motion(made, 1, 5)[0][0])
    scenes.aim(made, HAND, scenes.empty_at((0.4, -0.3, 1.2)))
    scenes.make_active(made)
    return made


@pytest.fixture(autouse=True)
def _off_at_the_end():
    yield
    for thing in bpy.data.objects:
        thing.fabrik.live = False
    live.follow()


def is_watching():
    """Whether Blender reports changes and frames to the add-on."""
    handlers = (bpy.app.handlers.depsgraph_update_post, bpy.app.handlers.frame_change_post)
    there = [any(each.__module__ == live.__name__ for each in listed) for listed in handlers]
    assert there[0] == there[1]
    return there[0]


def update():
    bpy.context.view_layer.update()


def switch(rig, *, on=True):
    rig.fabrik.live = on
    update()


def target(rig):
    return rig.fabrik.effectors[0].target


def gap(rig, bone=HAND):
    """World distance from hand to target."""
    end = rig.matrix_world @ rig.pose.bones[bone].tail
    return (end - target(rig).matrix_world.translation).length


def turns(rig):
    """(N, 3, 3) armature-space rotations as Blender shows them."""
    return np.array([bone.matrix.to_3x3() for bone in rig.pose.bones])


def move(rig, *place):
    target(rig).location = place
    update()


def test_the_pose_follows_a_target_that_is_moved(rig):
    update()
    assert gap(rig) > 0.05
    switch(rig)
    assert gap(rig) < NEAR
    for place in ((0.5, -0.2, 1.3), (0.2, -0.4, 1.5), (0.3, 0.3, 1.1)):
        move(rig, *place)
        assert gap(rig) < NEAR
    assert live.trouble_of(rig) == ""


def test_a_target_that_returns_brings_the_pose_back(rig):
    switch(rig)
    first = turns(rig)
    move(rig, -0.3, 0.5, 1.9)
    move(rig, 0.4, -0.3, 1.2)
    assert turns(rig) == pytest.approx(first, abs=1e-5)


def test_a_solved_bone_returns_each_time_that_it_is_rotated(rig):
    """Fixed: the first rotation after a pose was written counted as its result, so the arm jumped back and forth."""
    switch(rig)
    move(rig, 0.5, -0.2, 1.3)
    first = turns(rig)
    for _ in range(3):
        arm = rig.pose.bones["upper_arm.L"]
        arm.matrix_basis = arm.matrix_basis @ Matrix.Rotation(0.4, 4, "X")
        update()
        assert turns(rig) == pytest.approx(first, abs=1e-5)


@pytest.mark.one_blender
def test_live_posing_comes_to_rest(rig):
    """Once the pose is found, nothing is written; otherwise Blender would redraw forever."""
    switch(rig)
    move(rig, 0.5, -0.2, 1.3)
    update()
    calls = []
    bpy.app.handlers.depsgraph_update_post.append(lambda *_: calls.append(1))
    try:
        for _ in range(3):
            update()
    finally:
        bpy.app.handlers.depsgraph_update_post.pop()
    assert not calls


@pytest.mark.one_blender
@pytest.mark.parametrize("unused", [False, True])
def test_frames_in_any_order_give_the_same_poses(rig, unused):
    """Also with strips that don't play, because NLA is off. Fixed: each frame began at the pose of the last one."""
    if unused:
        for bone in rig.pose.bones:
            bone.keyframe_insert(property_name(bone.rotation_mode), frame=1)
        animation = rig.animation_data
        strip = animation.nla_tracks.new().strips.new("", 1, animation.action)
        strip.action_slot, animation.action, animation.use_nla = animation.action_slot, None, False
    ball = target(rig)
    for frame, place in ((1, (0.4, -0.3, 1.2)), (11, (0.2, -0.5, 1.5)), (21, (0.5, 0.1, 1.4))):
        ball.location = place
        ball.keyframe_insert("location", frame=frame)
    switch(rig)
    found = {}
    for frame in (1, 6, 11, 16, 21, 6, 1, 16):
        bpy.context.scene.frame_set(frame)
        update()
        assert gap(rig) < NEAR, frame
        pose = found.setdefault(frame, turns(rig))
        assert turns(rig) == pytest.approx(pose, abs=1e-5), frame


@pytest.mark.parametrize("how", ["parent", "constraint", "driver"])
def test_animated_and_driven_targets_are_followed(rig, how):
    leader, ball = scenes.empty_at((0.1, 0.0, 0.0), "Leader"), target(rig)
    if how == "parent":
        ball.parent = leader
    elif how == "constraint":
        ball.constraints.new("COPY_LOCATION").target = leader
        ball.constraints[0].use_offset = True
    else:
        curve = ball.driver_add("location", 0)
        curve.driver.expression = "lead + 0.3"
        variable = curve.driver.variables.new()
        variable.name, variable.type = "lead", "TRANSFORMS"
        variable.targets[0].id, variable.targets[0].transform_type = leader, "LOC_X"
    switch(rig)
    leader.location.x = -0.1
    update()
    assert gap(rig) < NEAR


class TestInfluence:
    def test_none_shows_the_stored_pose_and_a_half_is_between(self, rig):
        update()
        before = turns(rig)
        switch(rig)
        full = turns(rig)
        rig.fabrik.influence = 0.0
        update()
        assert turns(rig) == pytest.approx(before, abs=1e-5)
        rig.fabrik.influence = 0.5
        update()
        assert np.abs(turns(rig) - before).max() > 0.01
        assert np.abs(turns(rig) - full).max() > 0.01

    def test_live_never_blends_with_its_own_result(self, rig):
        switch(rig)
        rig.fabrik.influence = 0.3
        update()
        once = turns(rig)
        for _ in range(5):
            move(rig, 0.1, -0.4, 1.3)
            move(rig, 0.4, -0.3, 1.2)
        assert turns(rig) == pytest.approx(once, abs=1e-5)

    def test_bones_with_keys_start_from_them(self, rig):
        scene = bpy.context.scene
        arm = rig.pose.bones["upper_arm.L"]
        for frame, angle in ((1, 0.0), (11, 0.8)):
            arm.rotation_mode = "XYZ"
            arm.rotation_euler = (angle, 0.0, 0.1)
            arm.keyframe_insert("rotation_euler", frame=frame)
        switch(rig)
        rig.fabrik.influence = 0.0
        for frame, angle in ((1, 0.0), (11, 0.8), (1, 0.0)):
            scene.frame_set(frame)
            update()
            assert tuple(arm.rotation_euler) == pytest.approx((angle, 0.0, 0.1), abs=1e-5)
        rig.fabrik.influence = 1.0
        update()
        assert gap(rig) < NEAR
        # Keys also count if the frame has not changed.
        rig.fabrik.influence = 0.0
        update()
        assert tuple(arm.rotation_euler) == pytest.approx((0.0, 0.0, 0.1), abs=1e-5)

    @pytest.mark.one_blender
    def test_poses_that_start_inside_a_limit_stay_inside(self, rig):
        scenes.reset(rig)
        write_limit(rig.pose.bones[HAND], Hinge("X", -0.1, 2.0))
        switch(rig)
        for share in (0.2, 0.5, 0.8, 1.0):
            rig.fabrik.influence = share
            update()
            turn = rig.pose.bones[HAND].matrix_basis.to_quaternion()
            assert abs(turn.y) + abs(turn.z) < 1e-4
            assert -0.1 - 1e-4 <= 2 * np.arctan2(turn.x, turn.w) <= 2.0 + 1e-4

    def test_a_free_root_moves_by_its_influence(self, rig):
        rig.fabrik.root = "FREE"
        move(rig, 3.0, 0.0, 1.0)
        switch(rig)
        assert gap(rig) < NEAR
        away = rig.pose.bones["hips"].location.length
        rig.fabrik.influence = 0.5
        update()
        assert rig.pose.bones["hips"].location.length == pytest.approx(away / 2, rel=1e-3)
        rig.fabrik.influence = 0.0
        update()
        assert rig.pose.bones["hips"].location.length < 1e-6


class TestHandsOff:
    def test_there_are_no_handlers_unless_a_rig_is_live(self, rig):
        assert not is_watching()
        switch(rig)
        assert is_watching()
        switch(rig, on=False)
        assert not is_watching()

    def test_the_pose_stays_if_live_is_switched_off(self, rig):
        switch(rig)
        posed = turns(rig)
        switch(rig, on=False)
        move(rig, 0.2, 0.5, 1.0)
        assert turns(rig) == pytest.approx(posed, abs=1e-6)
        assert len(rig.fabrik.stored_pose) == 0

    def test_bones_that_no_target_needs_can_be_posed(self, rig):
        switch(rig)
        leg = rig.pose.bones["thigh.R"]
        leg.rotation_mode = "QUATERNION"
        leg.rotation_quaternion = (0.9, 0.3, 0.0, 0.1)
        move(rig, 0.5, -0.2, 1.3)
        assert tuple(leg.rotation_quaternion) == pytest.approx((0.9, 0.3, 0.0, 0.1))

    def test_the_reason_for_a_pause_is_shown_and_live_continues_after_it(self, rig):
        switch(rig)
        rig.fabrik.effectors[0].bone = "nobody"
        update()
        assert "'nobody'" in live.trouble_of(rig)
        rig.fabrik.effectors[0].bone = HAND
        update()
        assert live.trouble_of(rig) == ""
        move(rig, 0.5, -0.2, 1.3)
        assert gap(rig) < NEAR

    def test_renders_do_not_pose_and_suggest_a_bake(self, rig, caplog, tmp_path):
        scene = bpy.context.scene
        ball = target(rig)
        ball.keyframe_insert("location", frame=1)
        ball.location.x = -0.2
        ball.keyframe_insert("location", frame=3)
        scene.camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
        scene.collection.objects.link(scene.camera)
        scene.render.engine, scene.cycles.samples = "CYCLES", 1
        scene.render.resolution_x = scene.render.resolution_y = 16
        scene.render.filepath = str(tmp_path / "frame_")
        scene.frame_start, scene.frame_end = 1, 3
        switch(rig)
        with caplog.at_level(logging.WARNING):
            bpy.ops.render.render(animation=True)
        assert "bake it to keyframes" in caplog.text
        assert len(list(tmp_path.glob("frame_*.png"))) == 3
        scene.frame_set(3)
        update()
        assert gap(rig) < NEAR

    def test_a_bake_is_not_disturbed(self, rig):
        ball = target(rig)
        for frame, x in ((1, 0.4), (5, 0.2)):
            ball.location.x = x
            ball.keyframe_insert("location", frame=frame)
        bpy.context.scene.frame_set(1)
        switch(rig)
        bpy.ops.fabrik.bake(frame_start=1, frame_end=5)
        assert is_watching()
        switch(rig, on=False)
        for frame in (1, 3, 5):
            bpy.context.scene.frame_set(frame)
            assert gap(rig) < NEAR


class TestSurvival:
    def test_live_continues_in_a_saved_file(self, rig, tmp_path):
        name = rig.name
        switch(rig)
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "live.blend"))
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        assert not is_watching()
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "live.blend"))
        rig = bpy.data.objects[name]
        assert rig.fabrik.live
        move(rig, 0.5, -0.2, 1.3)
        assert gap(rig) < NEAR

    def test_the_extension_continues_after_being_switched_off_and_on(self, rig):
        switch(rig)
        fabrik_addon.unregister()
        assert not is_watching()
        move_there = (0.5, -0.2, 1.3)
        bpy.data.objects["Target"].location = move_there
        update()
        fabrik_addon.register()
        rig = bpy.data.objects["Rig"]
        assert rig.fabrik.live
        move(rig, *move_there)
        assert gap(rig) < NEAR

    def test_undo_and_redo(self, rig):
        bpy.ops.ed.undo_push(message="before")
        switch(rig)
        bpy.ops.ed.undo_push(message="live")
        move(rig, 0.5, -0.2, 1.3)
        posed = turns(rig)
        bpy.ops.ed.undo_push(message="moved")
        bpy.ops.ed.undo()
        rig = bpy.data.objects["Rig"]
        update()
        assert gap(rig) < NEAR
        assert np.abs(turns(rig) - posed).max() > 0.01
        bpy.ops.ed.redo()
        rig = bpy.data.objects["Rig"]
        update()
        assert turns(rig) == pytest.approx(posed, abs=1e-5)
        bpy.ops.ed.undo()
        bpy.ops.ed.undo()
        rig = bpy.data.objects["Rig"]
        assert not rig.fabrik.live
        assert not is_watching()
        bpy.ops.ed.redo()
        assert is_watching()


@pytest.mark.one_blender
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_any_place_and_scale_with_targets_parented_to_the_armature(scale):
    """The same result in the armature's own space, for any placement and any parent."""
    poses = []
    for where in (None, scale):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        rig = scenes.make_rig()
        ball = scenes.empty_at((0.4, -0.3, 1.2))
        scenes.aim(rig, HAND, ball)
        ball.parent = rig
        if where:
            rig.parent = scenes.empty_at((3.0, -2.0, 1.0), "Carrier")
            rig.parent.rotation_euler = (0.5, 1.2, -2.0)
            scenes.place(rig, scale=where)
        switch(rig)
        assert gap(rig) < NEAR * (where or 1.0)
        poses.append(turns(rig))
        ball.location = (0.3, 0.1, 1.7)
        update()
        poses.append(turns(rig))
    assert poses[2] == pytest.approx(poses[0], abs=2e-4)
    assert poses[3] == pytest.approx(poses[1], abs=2e-4)


def test_an_unexpected_error_is_reported_once_and_stops_the_rig(rig, monkeypatch, caplog):
    """Fixed: Blender printed its traceback again on each frame."""

    def failing(*_arguments):
        raise ZeroDivisionError("of all things")

    rig.fabrik.live = True
    with monkeypatch.context() as patched:
        patched.setattr("fabrik_addon.blender.posing.solve.current_targets", failing)
        for frame in range(2, 6):
            bpy.context.scene.frame_set(frame)
    (record,) = [each for each in caplog.records if each.exc_info]
    assert "'Rig' has stopped" in record.getMessage()
    assert "of all things" in live.trouble_of(rig)
    before = np.array([bone.matrix for bone in rig.pose.bones])
    target = rig.fabrik.effectors[0].target
    target.location.z -= 0.3
    bpy.context.view_layer.update()
    assert np.array_equal(np.array([bone.matrix for bone in rig.pose.bones]), before)
    rig.fabrik.live = False
    rig.fabrik.live = True
    bpy.context.view_layer.update()
    assert not live.trouble_of(rig)
    assert not np.array_equal(np.array([bone.matrix for bone in rig.pose.bones]), before)


def test_a_rig_that_gets_a_bone_stays_live(rig):
    """Fixed: poses of the former bones were compared with the new ones. This raised an error and stopped the rig."""
    rig.fabrik.effectors[0].bone = "shin.R"
    target(rig).location = (-0.1, -0.3, 0.2)
    switch(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    bone = rig.data.edit_bones.new("hand.L")
    bone.parent, bone.head, bone.tail = rig.data.edit_bones[HAND], (0.7, 0.0, 1.4), (0.8, 0.0, 1.4)
    bpy.ops.object.mode_set(mode="OBJECT")
    target(rig).location.z += 0.05
    update()
    assert not live.trouble_of(rig)
    assert gap(rig, "shin.R") < NEAR
