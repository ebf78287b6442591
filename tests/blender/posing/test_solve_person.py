"""Solving the sample person inside its limits: near, far and out of reach, repeated, and mirrored."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support.dragging import drag_by
from support.takes import active_human

from fabrik_addon.blender.goals.effectors import pin_bones
from fabrik_addon.blender.posing.drag import begin_drag
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.core.rotations import angle_between

pytestmark = pytest.mark.one_blender

# Positions of the left hand's target; the last two are out of reach.
NEAR, FAR, BEYOND, ASIDE = (0.1, 0.0, 0.2), (-0.66, -0.15, -0.43), (1.91, -1.0, -0.34), (0.9, -0.9, 0.4)
MIRROR = np.array((-1.0, 1.0, 1.0))


@pytest.fixture
def human(clean_scene):
    """The sample person with pinned feet and a target for each hand."""
    rig = active_human()
    pin_bones(rig, ("foot.L", "foot.R"))
    for hand in ("hand.L", "hand.R"):
        bpy.ops.fabrik.add_effector(bone=hand)
    return rig


def solve(rig, side, shift):
    """(J, 4) rotations after the target of one hand has been moved, and (J, 3) heads; the other hand has no target."""
    for effector in rig.fabrik.effectors:
        effector.enabled = effector.kind == "PIN" or effector.bone == f"hand.{side}"
    bpy.data.objects[f"hand.{side} target"].location += Vector(shift)
    bpy.ops.fabrik.solve()
    bpy.context.view_layer.update()
    (tree,) = read_trees(rig)
    return tree.rotations, np.array([rig.pose.bones[name].head for name in tree.skeleton.names])


@pytest.mark.parametrize("shift", [NEAR, FAR, BEYOND, ASIDE])
def test_a_second_solve_changes_nothing(human, shift):
    first, _ = solve(human, "L", shift)
    again, _ = solve(human, "L", (0.0, 0.0, 0.0))
    assert np.degrees(angle_between(first, again).max()) < 0.05


def test_two_hands_out_of_reach_stay_when_solved_again(human):
    for hand, across in (("hand.L", 0.3), ("hand.R", -0.3)):
        bpy.data.objects[f"{hand} target"].location += Vector((across, -1.0, 0.6))
    poses = []
    for _ in range(3):
        bpy.ops.fabrik.solve()
        bpy.context.view_layer.update()
        poses.append(read_trees(human)[0].rotations)
    assert np.array_equal(poses[0], poses[1])
    assert np.array_equal(poses[0], poses[2])


def test_out_of_reach_it_follows_a_target_without_tilting_farther(human):
    """Of two poses with nearly the same error either is possible; the body should not move."""
    _, first = solve(human, "L", ASIDE)
    _, then = solve(human, "L", (0.0, 0.0, 0.1))
    _, back = solve(human, "L", (0.0, 0.0, -0.1))
    names = read_trees(human)[0].skeleton.names
    hand, hips = names.index("hand.L"), names.index("hips")
    assert then[hand, 2] - first[hand, 2] > 0.05
    assert np.linalg.norm(back[hips] - first[hips]) < 0.02


def test_a_pose_that_was_changed_by_hand_is_where_it_begins(human):
    first, _ = solve(human, "L", FAR)
    human.pose.bones["upper_arm.R"].rotation_quaternion = (0.9, 0.1, 0.0, 0.2)
    human.pose.bones["chest"].rotation_quaternion = (0.99, 0.0, 0.14, 0.0)
    bpy.context.view_layer.update()
    again, _ = solve(human, "L", (0.0, 0.0, 0.0))
    assert np.degrees(angle_between(first, again).max()) > 5.0


@pytest.mark.parametrize("shift", [NEAR, FAR, BEYOND])
def test_mirrored_targets_give_the_mirrored_pose(human, shift):
    _, own = solve(human, "L", shift)
    for bone in human.pose.bones:
        bone.rotation_quaternion, bone.location = (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    bpy.context.view_layer.update()
    _, other = solve(human, "R", np.array(shift) * MIRROR)
    names = read_trees(human)[0].skeleton.names
    sides = {".L": ".R", ".R": ".L"}
    places = [names.index(name[:-2] + sides.get(name[-2:], name[-2:])) for name in names]
    assert np.abs(own - other[places] * MIRROR).max() < 2e-4


def test_a_millimeter_rotates_bones_by_almost_nothing(human):
    """The pose is a crouch without straight limbs. By a millimeter, a bone of 10 cm rotates by 0.6°."""
    human.fabrik.effectors.remove(3)
    human.fabrik.effectors.remove(2)
    drag_by(human, "hips", (0.0, 0.05, -0.12), point="HEAD")
    drag_by(human, "hand.L", (-0.3, -0.3, 0.0))
    before = read_trees(human)[0].rotations
    for bone in ("hand.L", "head", "hips"):
        for way in 0.001 * np.array([(1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)]):
            session = begin_drag(bpy.context, human, bone)
            assert session.step(session.start + way).error < 1e-5
            assert np.degrees(angle_between(before, read_trees(human)[0].rotations).max()) < 0.6
            session.cancel()
