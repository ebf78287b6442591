"""Dragging over time on a control rig: the controls' keys change, and the body is where it was dragged."""

import bpy
import numpy as np
import pytest
from support.control_rigs import hand_made
from support.limited import refusal, select
from support.rigify import open_set_up
from support.takes import curves, go_to, poses

from fabrik_addon.blender.edit.spread_drag import Spread, begin_spread
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.rig.armature import RigError, property_name
from fabrik_addon.blender.rig.keyframes import bone_path, new_action, write_curves
from fabrik_addon.blender.rig.pose_writer import write_switches
from fabrik_addon.blender.ui.overlays import drawing
from fabrik_addon.core.channels import to_channels
from fabrik_addon.core.rotations import quaternion_from_rotation_vector

FRAMES = np.arange(1, 32)
HERE, SPREAD = 16, 10
UP = np.array((0.0, -0.1, 0.1))
INSIDE = np.abs(FRAMES - HERE) < SPREAD

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def human():
    """A generated Rigify human, limbs on FK, whose controls all have keys: arms and trunk swing."""
    rig = open_set_up("Basic.basic_human")
    kept = rig.fabrik.control
    write_switches(rig, {row.name: row.fk for row in kept.switches})
    action = new_action(rig, "Swing")
    swing = np.sin(2.0 * np.pi * FRAMES / 30.0)[:, None]
    for number, control in enumerate(sorted({kept.place, *(row.control for row in kept.carriers)} - {""})):
        turns = quaternion_from_rotation_vector(0.1 * swing * np.roll((1.0, 0.4, 0.2), number))
        still = "thigh" in control or "shin" in control or "foot" in control
        mode = rig.pose.bones[control].rotation_mode
        values = to_channels(mode, np.where(still, (1.0, 0.0, 0.0, 0.0), turns))
        write_curves(action, rig, bone_path(control, property_name(mode)), FRAMES, values, control)
    write_curves(action, rig, bone_path(kept.place, "location"), FRAMES, 0.02 * swing * np.ones(3), kept.place)
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    go_to(HERE)
    return rig


def tail(rig, bone):
    return np.array(rig.pose.bones[bone].tail)


@pytest.mark.parametrize(("control", "shift"), [("hand_fk.R", UP), ("torso", (0.03, 0.02, -0.1))])
def test_the_body_follows_and_only_controls_are_keyed(human, control, shift):
    bone = human.fabrik.control.controls[control].stands_for
    keys, before, was = curves(human), poses(human, FRAMES), tail(human, bone)
    drag = begin_spread(bpy.context, human, control, Spread(SPREAD))
    drag.step(drag.start + shift)
    bpy.context.view_layer.update()
    assert np.linalg.norm(tail(human, bone) - was - shift) < 1e-4
    assert drag.finish(bpy.context) > 2
    assert drag.left_alone == []
    assert np.linalg.norm(tail(human, bone) - was - shift) < 1e-4
    after = poses(human, FRAMES)
    assert np.array_equal(after[~INSIDE], before[~INSIDE])
    moved = np.linalg.norm((after - before)[:, human.pose.bones.find(bone), :3, 3], axis=1)
    assert (moved[INSIDE] > 1e-7).all()
    assert np.abs(np.diff(moved)).max() < 0.03
    for foot in ("ORG-foot.L", "ORG-foot.R"):
        place = human.pose.bones.find(foot)
        assert np.abs(after - before)[:, place, :3, 3].max() < 1e-5
    now = curves(human)
    assert now.keys() == keys.keys()
    assert all(np.array_equal(now[path][:, 0], keys[path][:, 0]) for path in keys)


@pytest.mark.one_blender
def test_the_pose_after_a_drag_is_that_of_the_keys():
    """Controls of neck and head follow the chest only in part. Fixed: their new keys showed only on the next frame."""
    bird = open_set_up("Animals.bird")
    for name in dict.fromkeys(row.control for row in bird.fabrik.control.carriers):
        for frame in (1, HERE, 31):
            bird.pose.bones[name].keyframe_insert(property_name(bird.pose.bones[name].rotation_mode), frame=frame)
    go_to(HERE)
    drag = begin_spread(bpy.context, bird, "chest", Spread(SPREAD))
    drag.step(drag.start + np.array((0.01, 0.0, 0.01)))
    drag.finish(bpy.context)
    shown = np.array([bone.matrix for bone in bird.pose.bones])
    go_to(1)
    go_to(HERE)
    assert np.array([bone.matrix for bone in bird.pose.bones]) == pytest.approx(shown, abs=1e-5)


def test_the_hips_of_a_rig_without_mechanism_may_travel():
    """The hips are below a root bone, and are the control that moves the body."""
    rig = open_set_up(hand_made)
    kept = rig.fabrik.control
    assert kept.place == "hips"
    write_switches(rig, {row.name: row.fk for row in kept.switches})
    action = new_action(rig, "Walk")
    swing = np.sin(2.0 * np.pi * FRAMES / 30.0)[:, None]
    for bone in ("hips", "chest", "arm.L", "forearm.L", "hand.L"):
        turns = quaternion_from_rotation_vector(0.1 * swing * np.array((1.0, 0.4, 0.2)))
        write_curves(action, rig, bone_path(bone, "rotation_quaternion"), FRAMES, turns, bone)
    write_curves(action, rig, bone_path("hips", "location"), FRAMES, 0.05 * swing * np.ones(3), "hips")
    go_to(HERE)
    before, was = poses(rig, FRAMES), tail(rig, "hand.L")
    drag = begin_spread(bpy.context, rig, "hand.L", Spread(SPREAD))
    drag.step(drag.start + UP)
    drag.finish(bpy.context)
    assert np.linalg.norm(tail(rig, "hand.L") - was - UP) < 1e-4
    after = poses(rig, FRAMES)
    assert np.array_equal(after[~INSIDE], before[~INSIDE])
    hips = rig.pose.bones.find("hips")
    assert np.abs(after - before)[:, hips, :3, 3].max() < 1e-3


def test_a_toe_below_a_leg_on_ik_without_keys_is_refused():
    rig = open_set_up(hand_made)
    action = new_action(rig, "Still")
    write_curves(action, rig, bone_path("toe.L", "rotation_quaternion"), FRAMES[[0, -1]], np.eye(4)[[0, 0]], "toe.L")
    with pytest.raises(RigError, match=r"'foot\.L_ik' has no keys to edit"):
        begin_spread(bpy.context, rig, "toe.L", Spread(SPREAD))


def test_a_hold_keeps_a_control_in_place(human):
    """The hand also stays in place on nearby frames, on which other controls have moved the bones above the arm."""
    first, last, ease = 12, 20, 6
    held = (first <= FRAMES) & (last >= FRAMES)
    keys, before = curves(human), poses(human, FRAMES)
    assert bpy.ops.fabrik.add_hold(bone="hand_fk.R", first=first, last=last, ease=ease) == {"FINISHED"}
    after = poses(human, FRAMES)
    hand, foot = (human.pose.bones.find(name) for name in ("ORG-hand.R", "ORG-foot.L"))
    assert np.abs(before[held, hand] - before[HERE - 1, hand])[:, :3, 3].max() > 0.1
    assert np.abs(after[held, hand] - before[HERE - 1, hand]).max() < 1e-5
    assert np.abs(after - before)[:, foot].max() < 1e-5
    outside = (first - ease >= FRAMES) | (last + ease <= FRAMES)
    assert np.array_equal(after[outside], before[outside])
    now = curves(human)
    assert now.keys() == keys.keys()
    assert all(np.array_equal(now[path][:, 0], keys[path][:, 0]) for path in keys)
    bpy.ops.fabrik.remove_hold(index=0)
    assert max(np.abs(now - keys[path]).max() for path, now in curves(human).items()) < 1e-6


def test_a_hold_with_x_mirror_does_not_need_the_other_side(human):
    """Fixed: it was refused, because the other arm was on IK."""
    human.pose.use_mirror_x = True
    switch = next(row for row in human.fabrik.control.switches if "upper_arm_parent.L" in row.name)
    write_switches(human, {switch.name: switch.ik})
    assert bpy.ops.fabrik.add_hold(bone="hand_fk.R", first=12, last=20, ease=6) == {"FINISHED"}


def test_a_limb_on_ik_is_refused_with_the_remedy(human):
    write_switches(human, {row.name: row.ik for row in human.fabrik.control.switches})
    with pytest.raises(RigError, match=r"'hand_ik\.R' has no keys to edit"):
        begin_spread(bpy.context, human, "hand_fk.R", Spread(SPREAD))
    human.fabrik.control.limbs = "FK"
    with pytest.raises(RigError, match=r"Bone 'hand_ik\.R' is on IK here, .*: switch its limb to FK and key it"):
        begin_spread(bpy.context, human, "hand_fk.R", Spread(SPREAD))
    # Users don't know the names of mechanism bones.
    with pytest.raises(RigError, match=r"Bone 'forearm_fk\.R' is on IK here"):
        begin_spread(bpy.context, human, "forearm_fk.R", Spread(SPREAD))
    with pytest.raises(RuntimeError, match="or set Limbs on IK to Automatic"):
        bpy.ops.fabrik.add_hold(bone="hand_fk.R", first=12, last=20)


def test_esc_restores_the_keys_and_an_edit_can_be_a_layer(human):
    before = poses(human, FRAMES)
    drag = begin_spread(bpy.context, human, "hand_fk.R", Spread(SPREAD))
    drag.step(drag.start + UP)
    drag.cancel()
    assert np.array_equal(poses(human, FRAMES), before)
    was = tail(human, next(iter(drag._dragged)))  # noqa: SLF001
    human.fabrik.drag.spread_to = {"LAYER"}
    bpy.ops.fabrik.drag(bone="hand_fk.R", translation=UP, spread=SPREAD)
    assert len(human.animation_data.nla_tracks) == 2
    go_to(HERE)
    assert np.linalg.norm(tail(human, next(iter(drag._dragged))) - was - UP) < 1e-3  # noqa: SLF001
    assert not keyframes.curves(human) or human.animation_data.action is None


def test_trails_of_controls_are_those_of_their_bones(human):
    human.fabrik.show_trails, human.fabrik.trail_frames = True, 5
    select(human, ("hand_fk.R",), "hand_fk.R")
    bpy.ops.fabrik.work_out_trails()
    ((bone, frames, points, *_),) = drawing.trails(bpy.context, human)
    assert bone == human.fabrik.control.controls["hand_fk.R"].stands_for
    assert frames.tolist() == list(range(HERE - 5, HERE + 6))
    for frame in (HERE - 3, HERE, HERE + 5):
        go_to(frame)
        assert np.abs(points[frame - HERE + 5] - tail(human, bone)).max() < 1e-4


def test_trails_of_controls_follow_their_keys(human):
    """Fixed: they stayed as they were when keys changed."""
    human.fabrik.show_trails, human.fabrik.trail_frames = True, 5
    select(human, ("hand_fk.R",), "hand_fk.R")
    assert drawing.trails(bpy.context, human) == []
    assert bpy.app.timers.is_registered(drawing.refresh_trails), "nobody has to ask for the trails"
    drawing.refresh_trails()
    (before,) = (trail.points for trail in drawing.trails(bpy.context, human))
    go_to(HERE)
    hand = human.pose.bones["hand_fk.R"].parent
    hand.rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
    hand.keyframe_insert(property_name(hand.rotation_mode))
    assert drawing.trails(bpy.context, human) == [], "what is not so any more is not drawn"
    assert drawing.refresh_trails() is None
    (after,) = (trail.points for trail in drawing.trails(bpy.context, human))
    assert np.abs(after - before).max() > 0.01


def without_keys(rig):
    rig.animation_data.action = None


def without_a_foot_that_stands(rig):
    scene = bpy.context.scene
    travel = np.linspace(0.0, 6.0, len(FRAMES))[:, None] * (0.0, -1.0, 0.3)
    path = bone_path(rig.fabrik.control.place, "location")
    write_curves(rig.animation_data.action, rig, path, FRAMES, travel, "Travel")
    scene.frame_start, scene.frame_end = int(FRAMES[0]), int(FRAMES[-1])


def on_ik(rig):
    write_switches(rig, {row.name: row.ik for row in rig.fabrik.control.switches})


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (without_keys, "has no animation to find foot contacts in: bake or key some first"),
        (without_a_foot_that_stands, "No planted foot of 'Generated' found in frames 1-31: add holds by hand"),
        (on_ik, "'foot_ik.L' has no keys to edit"),
    ],
)
def test_feet_that_cannot_be_held_are_refused_and_nothing_changes(human, make, told):
    make(human)
    go_to(HERE)
    before = curves(human)
    assert told in refusal(bpy.ops.fabrik.hold_contacts)
    after = curves(human)
    assert after.keys() == before.keys()
    assert all(np.array_equal(after[path], before[path]) for path in before)
    assert not len(human.fabrik.holds)


@pytest.fixture
def arm_on_ik(human):
    """The human with its right arm on IK; the hand's IK control and its pole swing too."""
    switch = next(row for row in human.fabrik.control.switches if "upper_arm_parent.R" in row.name)
    write_switches(human, {switch.name: switch.ik})
    swing = np.sin(2.0 * np.pi * FRAMES / 30.0)[:, None]
    action = human.animation_data.action
    places = np.array((0.1, -0.1, 0.1)) + 0.5 * swing * UP
    write_curves(action, human, bone_path("hand_ik.R", "location"), FRAMES, places, "hand_ik.R")
    for name in ("hand_ik.R", "upper_arm_ik.R"):
        mode = human.pose.bones[name].rotation_mode
        values = to_channels(mode, quaternion_from_rotation_vector(0.1 * swing * np.array((1.0, 0.4, 0.2))))
        write_curves(action, human, bone_path(name, property_name(mode)), FRAMES, values, name)
    go_to(HERE)
    return human


def from_ik_control(rig, places):
    """(F,) the distance of the hand from where its IK control holds it."""
    hand, control = (rig.data.bones[name].matrix_local for name in ("ORG-hand.R", "hand_ik.R"))
    held = places[:, rig.pose.bones.find("hand_ik.R")] @ np.array(control.inverted() @ hand)
    return np.linalg.norm((held - places[:, rig.pose.bones.find("ORG-hand.R")])[:, :3, 3], axis=1)


@pytest.mark.parametrize("layer", [False, True])
def test_a_limb_on_ik_is_edited_by_its_ik_controls(arm_on_ik, layer):
    """Fixed: it was refused."""
    keys, before, was = curves(arm_on_ik), poses(arm_on_ik, FRAMES), tail(arm_on_ik, "ORG-hand.R")
    drag = begin_spread(bpy.context, arm_on_ik, "hand_ik.R", Spread(SPREAD, to=("LAYER",) if layer else ()))
    drag.step(drag.start + UP)
    bpy.context.view_layer.update()
    assert np.linalg.norm(tail(arm_on_ik, "ORG-hand.R") - was - UP) < 1e-4
    drag.finish(bpy.context)
    assert drag.left_alone == []
    assert np.linalg.norm(tail(arm_on_ik, "ORG-hand.R") - was - UP) < 1e-3
    after = poses(arm_on_ik, FRAMES)
    assert np.abs(after - before)[~INSIDE].max() < (1e-5 if layer else 1e-9)
    assert from_ik_control(arm_on_ik, after).max() < 1e-3
    moved = np.linalg.norm((after - before)[:, arm_on_ik.pose.bones.find("ORG-hand.R"), :3, 3], axis=1)
    assert (moved[INSIDE] > 1e-7).all()
    assert np.abs(np.diff(moved)).max() < 0.03
    if not layer:
        now = curves(arm_on_ik)
        arm = [path for path in keys if any(f'"{name}_fk.R"' in path[0] for name in ("upper_arm", "forearm", "hand"))]
        assert arm
        assert all(np.array_equal(now[path], keys[path]) for path in arm)
        assert all(np.array_equal(now[path][:, 0], keys[path][:, 0]) for path in keys)


def test_a_limb_on_ik_is_held(arm_on_ik):
    first, last = 12, 20
    held = (first <= FRAMES) & (last >= FRAMES)
    before = poses(arm_on_ik, FRAMES)
    assert bpy.ops.fabrik.add_hold(bone="hand_ik.R", first=first, last=last, ease=6) == {"FINISHED"}
    assert arm_on_ik.fabrik.holds[0].name == "hand_ik.R 12-20"
    after, hand = poses(arm_on_ik, FRAMES), arm_on_ik.pose.bones.find("ORG-hand.R")
    assert np.abs(before[held, hand] - before[HERE - 1, hand])[:, :3, 3].max() > 0.03
    assert np.abs(after[held, hand] - before[HERE - 1, hand])[:, :3, 3].max() < 1e-4
    bpy.ops.fabrik.remove_hold(index=0)
    assert np.abs(poses(arm_on_ik, FRAMES) - before).max() < 1e-5


def test_a_leg_that_ik_stretches_on_some_frames_is_held(human):
    """Fixed: the foot moved by 18 mm, and there was no warning."""
    switch = next(row for row in human.fabrik.control.switches if "thigh_parent.L" in row.name)
    write_switches(human, {switch.name: switch.ik})
    swing = np.sin(2.0 * np.pi * FRAMES / 30.0)[:, None]
    places = 0.02 * swing * np.array((1.0, 1.0, -1.0))
    write_curves(human.animation_data.action, human, bone_path("foot_ik.L", "location"), FRAMES, places, "foot_ik.L")
    human.pose.bones["foot_ik.L"].keyframe_insert("rotation_quaternion", frame=1)
    held, foot = (FRAMES >= 6) & (FRAMES <= 20), human.pose.bones.find("ORG-foot.L")
    before = poses(human, FRAMES)[held, foot]
    assert np.ptp(before[:, :3, 3], axis=0).max() > 0.01
    bpy.ops.fabrik.add_hold(bone="foot_ik.L", first=6, last=20, ease=5)
    after = poses(human, FRAMES)[held, foot]
    assert np.ptp(after, axis=0).max() < 1e-4
    assert after[0] == pytest.approx(before[HERE - 6], abs=1e-4)
