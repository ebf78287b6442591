"""A drag of the sample person from step to step: it is smooth, reversible, and steady out of reach."""

import bpy
import numpy as np
import pytest
from support import scenes
from support.dragging import channels
from support.takes import active_human

from fabrik_addon.blender.goals.effectors import pin_bones
from fabrik_addon.blender.posing.drag import DragSettings, begin_drag
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.core.rotations import angle_between, conjugate, product, rotation_vector_from_quaternion

STEP = 0.01
# Degrees in a step of a centimeter; the first steps, from a straight neck and straight knees, need larger rotations.
JUMP, FIRST, STRAIGHT = 8.0, 20.0, 3

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]


@pytest.fixture
def human():
    """The sample person with pinned feet, in Pose mode."""
    rig = active_human()
    pin_bones(rig, ("foot.L", "foot.R"))
    return rig


def drag(rig, bone, shifts):
    """(N + 1, J, 4) rotations, the start first, and (N, 2) errors of dragged points and of pins, in meters."""
    session = begin_drag(bpy.context, rig, bone, settings=DragSettings(root="FREE"))
    poses, errors = [read_trees(rig)[0].rotations], []
    for shift in shifts:
        result = session.step(session.start + shift)
        poses.append(read_trees(rig)[0].rotations)
        errors.append((result.error, result.pin_error))
    return np.array(poses), np.array(errors)


def straight(shift):
    """(N, 3) a straight path in steps of a centimeter."""
    count = int(np.ceil(np.linalg.norm(shift) / STEP))
    return np.outer(np.arange(1, count + 1) / count, shift)


def turns(poses):
    """(N,) the largest rotation of a bone in each step, in degrees."""
    return np.degrees(angle_between(poses[:-1], poses[1:]).max(axis=1))


@pytest.mark.parametrize(
    ("bone", "shift"),
    [("head", (0.0, -0.25, -0.45)), ("hand.L", (-0.5, -0.25, 0.1)), ("upper_chest", (0.0, -0.3, -0.3))],
)
def test_no_step_jumps_and_every_goal_is_met(human, bone, shift):
    poses, errors = drag(human, bone, straight(np.array(shift)))
    assert errors.max() < 1e-4
    turned = turns(poses)
    assert turned[:STRAIGHT].max() < FIRST
    assert turned[STRAIGHT:].max() < JUMP


def test_a_drag_there_and_back_ends_near_the_start_before_it_is_restored(human):
    """A tenth of a millimeter from the start, the pose is solved again; it still equals the pose at the start."""
    out = straight(np.array((-0.5, -0.25, 0.1)))
    poses, _ = drag(human, "hand.L", np.concatenate([out, out[-2::-1], [(1e-5, 0.0, 0.0)]]))
    assert np.degrees(angle_between(poses[0], poses[-1]).max()) < 0.1


def test_out_of_reach_nothing_flails_and_pins_hold(human):
    poses, errors = drag(human, "hand.L", straight(np.array((0.9, -0.9, 0.4))))
    assert errors[-1, 0] > 0.2
    assert errors[:, 1].max() < 1e-3
    assert turns(poses).max() < 15.0
    steps = rotation_vector_from_quaternion(product(conjugate(poses[:-1]), poses[1:]))
    is_back = (steps[1:] * steps[:-1]).sum(axis=-1) < 0.0
    sizes = np.minimum(np.linalg.norm(steps[1:], axis=-1), np.linalg.norm(steps[:-1], axis=-1))
    assert np.degrees(sizes[is_back].max()) < 2.0


def test_beyond_reach_left_and_right_are_mirrored(human):
    """Straight limbs bend the same way on both sides, whatever the rounding."""
    places, way = {}, straight(np.array((0.9, -0.9, 0.4)))[96:114]
    for side, sign in (("L", 1.0), ("R", -1.0)):
        session, poses = begin_drag(bpy.context, human, f"hand.{side}"), []
        for x, y, z in way:
            session.step(session.start + np.array((sign * x, y, z)))
            bpy.context.view_layer.update()
            poses.append({bone.name: np.array(bone.tail) for bone in human.pose.bones})
        session.cancel()
        places[side] = poses
    flip = {"L": "R", "R": "L"}
    apart = [
        np.linalg.norm(place * (-1.0, 1.0, 1.0) - right[f"{name[:-1]}{flip[name[-1]]}" if name[-2] == "." else name])
        for left, right in zip(places["L"], places["R"], strict=True)
        for name, place in left.items()
    ]
    assert max(apart) < 1e-4


def test_a_target_back_in_reach_is_met_soon(human):
    """The target is out of reach for the last quarter of the path. Then it comes back in small steps."""
    shares = np.concatenate([np.linspace(0.0, 1.0, 31)[1:], np.arange(0.995, 0.6975, -0.005)])
    _, errors = drag(human, "hand.L", shares[:, None] * np.array((0.72, -0.72, 0.32)))
    assert errors[20, 0] < 1e-3 < errors[29, 0]
    assert errors[-1, 0] < 1e-3


def test_a_reach_to_the_front_leaves_the_hips_where_they_are(human):
    bpy.context.view_layer.update()
    before = np.array(human.pose.bones["hips"].head)
    drag(human, "hand.L", straight(np.array((0.0, -0.7, 0.0))))
    bpy.context.view_layer.update()
    assert np.linalg.norm(np.array(human.pose.bones["hips"].head) - before) < 0.03


class TestRelease:
    """Solving that is unfinished after a mouse movement is finished on release."""

    def released(self, rig, bone, shift):
        """Distance of the bone from its target in meters: at the last move, and after release."""
        session = begin_drag(bpy.context, rig, bone)
        wanted = session.start + np.array(shift)
        before = session.step(wanted).error
        session.finish(bpy.context)
        bpy.context.view_layer.update()
        return before, float(np.linalg.norm(np.array(rig.matrix_world @ rig.pose.bones[bone].tail) - wanted))

    def test_out_of_reach_the_joints_rest(self, human):
        """Released once more with the same target, nothing moves."""
        wanted, found = None, []
        for _ in range(2):
            session = begin_drag(bpy.context, human, "hand.L")
            wanted = session.start + np.array((0.9, -0.9, 0.4)) if wanted is None else wanted
            for _ in range(2):
                session.step(wanted)
            session.step(wanted, settled=True)
            bpy.context.view_layer.update()
            found.append(np.array([bone.tail[:] for bone in human.pose.bones]))
            found.append(session.step(wanted, settled=True).error)
            bpy.context.view_layer.update()
            found.append(np.array([bone.tail[:] for bone in human.pose.bones]))
            session.cancel()
        assert found[1] > 0.1
        assert np.linalg.norm(found[2] - found[0], axis=1).max() < 1e-4
        assert np.linalg.norm(found[5] - found[0], axis=1).max() < 1e-4

    def test_met_targets_stay_met(self, human):
        before, after = self.released(human, "hand.L", (-0.3, -0.4, -0.3))
        assert max(before, after) < 1e-4

    def test_a_drag_back_to_the_start_restores_every_bit(self, human):
        before = channels(human)
        session = begin_drag(bpy.context, human, "hand.L")
        for shift in ((-0.2, -0.3, -0.2), (0.0, 0.0, 0.0)):
            session.step(session.start + np.array(shift))
        assert session.finish(bpy.context) == 0
        assert channels(human) == before

    def test_without_a_movement_nothing_changes(self, human):
        before = channels(human)
        assert begin_drag(bpy.context, human, "hand.L").finish(bpy.context) == 0
        assert channels(human) == before


@pytest.mark.parametrize("reach", [(0.2, -0.8, -1.25), (0.3, -0.2, -1.3)])
def test_a_free_leg_swings_gradually_for_balance(human, reach):
    """On one foot, a hand reaches for the floor. Fixed: the free leg rotated by up to 17 degrees in a step."""
    human.fabrik.effectors.clear()
    pin_bones(human, ("foot.R",))
    shift = np.array(human.pose.bones["upper_arm.L"].head) + reach - human.pose.bones["hand.L"].tail
    shift[2] = max(shift[2], 0.05 - human.pose.bones["hand.L"].tail.z)
    poses, errors = drag(human, "hand.L", straight(shift))
    assert turns(poses).max() < 11.0
    assert errors[-1].max() < 1e-4


class TestStraightLimbs:
    """No small rotation shortens a straight limb; it bends nevertheless, in the direction that its limit allows."""

    @pytest.mark.parametrize("drop", [0.002, 0.01, 0.1])
    def test_hips_are_lowered_on_straight_knees(self, human, drop):
        session = begin_drag(bpy.context, human, "hips")
        found = [session.step(session.start - (0.0, 0.0, drop)) for _ in range(4)]
        assert found[-1].error < 1e-4
        assert not found[-1].is_catching_up

    def test_knees_do_not_run_ahead_of_the_hips(self, human):
        """By geometry, knees would move by 7 cm for the first centimeter. They lag, and the hips reach their target."""
        session, bones, scale = (
            begin_drag(bpy.context, human, "hips"),
            human.pose.bones,
            human.matrix_world.to_scale()[0],
        )
        places, found = [], []
        for drop in (0.0, 0.01, 0.02, 0.02, 0.02):
            found.append(session.step(session.start - (0.0, 0.0, drop)))
            bpy.context.view_layer.update()
            places.append(scale * np.array([bones[name].head for name in ("shin.L", "shin.R")]))
        gone = np.linalg.norm(np.diff(places, axis=0), axis=2)
        assert 0.02 < gone.max() < 0.045
        assert found[1].is_catching_up
        assert found[-1].error < 1e-4

    @pytest.mark.parametrize("limits", [True, False])
    def test_a_dead_straight_leg(self, limits):
        rows = [("thigh", "", (0, 0, 1), (0, 0, 0.5)), ("shin", "thigh", (0, 0, 0.5), (0, 0, 0))]
        rig = scenes.make_rig(rows)
        scenes.make_active(rig)
        bpy.ops.object.mode_set(mode="POSE")
        if limits:
            bpy.ops.fabrik.set_limit(bones="shin", type="HINGE", axis="X", low=-2.5, high=0.0)
        session = begin_drag(bpy.context, rig, "shin", settings=DragSettings(root="FIXED"))
        for shift in (0.1, 0.3):
            assert session.step(np.add(session.start, (0.0, 0.0, shift))).error < 1e-4
        turn = rig.pose.bones["shin"].rotation_quaternion
        assert abs(turn.to_axis_angle()[1]) > 0.5
        assert turn.x < 0.0 or not limits
