"""Frames follow changed goals, each near its own pose: exactly, smoothly, inside limits and at any scale."""

import numpy as np
import pytest
from support import walker

from fabrik_addon.core import Ball, Effector, Hinge, Skeleton, forward_kinematics
from fabrik_addon.core.arrays import falloff
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.drag import DragSolver
from fabrik_addon.core.edit import EditModel, EditSolver, KnownPose
from fabrik_addon.core.kernel.bodies import Bodies
from fabrik_addon.core.kernel.posture import Masses
from fabrik_addon.core.rotations import (
    angle_between,
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)

FRAMES = slice(100, 161)
FEET = ("foot.L", "foot.R")
LIMITS = {
    "shoulder.R": Ball(0.3, (-0.2, 0.2)),
    "upper_arm.R": Ball(2.0, (-1.5, 1.5)),
    "forearm.R": Hinge("X", -0.1, 2.6),
    "hand.R": Ball(0.9, (-0.4, 0.4)),
}


def masses(skeleton):
    count = len(skeleton)
    return Masses(np.full(count, 1.0 / count), np.full(count, 0.5), np.ones(count))


def model_of(effectors, turning=None, limits=(), **options):
    skeleton = walker.skeleton()
    return EditModel(skeleton, effectors, masses(skeleton), dict(limits), turning or skeleton.names, **options)


def take():
    """(F, J, 4) and (F, 3) the true walk."""
    return walker.true_rotations()[FRAMES], walker.true_matrices()[FRAMES, 0, :3, 3]


def legal(rotations, limits):
    """The poses with limited joints clamped."""
    rotations = rotations.copy()
    for name, limit in limits.items():
        place = walker.skeleton().index(name)
        inside = limit.clamp(many, many.quaternion(rotations[:, place]))
        rotations[:, place] = many.stack([inside], len(rotations))[:, 0]
    return rotations


def no_turns(solver):
    return np.full(solver.own_rotations.shape, np.nan)


def followed(model, rotations, roots, targets, turned, shares):
    """The poses that follow a drag of the frame with the largest share."""
    here = int(np.argmax(shares))
    still = {*model.skeleton.names}.difference(model.turning)
    root = "FREE" if model.free_root else "FIXED"
    drag = DragSolver(model.skeleton, model.effectors, model.masses, limits=model.limits, still=still, root=root)
    drag.prefer(rotations[here], roots[here])
    drag.begin(*drag.preferred)
    pose = drag.solve(targets[here], turned[here], settled=True)
    solver, frames = EditSolver(model, rotations, roots, shares), np.arange(float(len(shares)))
    return solver.over_time(targets, turned, frames, 30.0, KnownPose(here, pose.rotations, pose.root_location))


SHARES = falloff(np.arange(61.0), 30.0, 30.0, 30.0, 30.0)


def test_unchanged_goals_change_no_pose():
    rotations, roots = take()
    effectors = [Effector("hand.R", priority=1), Effector("foot.L")]
    solver = EditSolver(model_of(effectors, free_root=True), rotations, roots)
    found = solver.over_time(solver.own_points, no_turns(solver), np.arange(61.0), 30.0)
    assert np.abs(found.rotations - rotations).max() < 1e-9
    assert np.abs(found.roots - roots).max() < 1e-9


@pytest.mark.parametrize("limits", [{}, LIMITS], ids=["free", "limited"])
def test_a_hand_follows_its_new_path_and_feet_stay(limits):
    rotations, roots = take()
    rotations = legal(rotations, limits)
    feet = [Effector(foot, (0, 0, 0), rotation_weight=1.0) for foot in FEET]
    model = model_of([Effector("hand.R", priority=1), *feet], limits=limits, free_root=True)
    solver = EditSolver(model, rotations, roots)
    targets = solver.own_points.copy()
    targets[:, 0] += SHARES[:, None] * (0.0, -0.1, 0.15)
    found = followed(model, rotations, roots, targets, solver.own_rotations, SHARES)
    assert found.errors[:, 1:].max() < 1e-5
    assert found.errors[:, 0].max() < 3e-3
    assert found.errors[30, 0] < 1e-5
    assert np.abs(found.rotations - rotations)[[0, -1]].max() < 1e-9
    posed = forward_kinematics(walker.skeleton(), found.rotations, found.roots)
    before = forward_kinematics(walker.skeleton(), rotations, roots)
    hand = walker.skeleton().index("hand.R")
    tails = posed[:, hand] @ (0.0, walker.skeleton().lengths[hand], 0.0, 1.0)
    assert np.linalg.norm(tails[:, :3] - targets[:, 0], axis=1) == pytest.approx(found.errors[:, 0], abs=1e-9)
    for foot in FEET:
        place = walker.skeleton().index(foot)
        assert np.abs(posed[:, place] - before[:, place]).max() < 1e-5
    for name, limit in limits.items():
        place = walker.skeleton().index(name)
        assert angle_between(found.rotations[:, place], legal(found.rotations, {name: limit})[:, place]).max() < 1e-6
    rough, was = (np.linalg.norm(np.diff(each[:, :, :3, 3], 2, axis=0), axis=2).max() for each in (posed, before))
    assert rough < 1.5 * was


def test_only_bones_that_may_rotate_do():
    rotations, roots = take()
    solver = EditSolver(model_of([Effector("hand.R")], turning=("upper_arm.R", "forearm.R")), rotations, roots)
    targets = solver.own_points + np.array((0.0, 0.0, 0.03))
    found = solver.over_time(targets, no_turns(solver), np.arange(61.0), 30.0)
    turned = np.abs(found.rotations - rotations).max(axis=(0, 2)) > 1e-9
    assert {walker.skeleton().names[bone] for bone in np.flatnonzero(turned)} == {"upper_arm.R", "forearm.R"}
    assert found.errors.max() < 1e-5


def test_targets_out_of_reach_do_not_move_held_points():
    rotations, roots = take()
    model = model_of([Effector("hand.R", priority=1), *(Effector(foot, (0, 0, 0)) for foot in FEET)], free_root=True)
    solver = EditSolver(model, rotations, roots)
    targets = solver.own_points.copy()
    targets[:, 0] += SHARES[:, None] * (0.0, 0.0, 3.0)
    found = followed(model, rotations, roots, targets, no_turns(solver), SHARES)
    assert found.errors[:, 1:].max() < 2e-3


def test_a_bone_that_does_not_inherit_rotation():
    rest = np.tile(np.eye(4), (3, 1, 1))
    rest[:, 1, 3] = [0.0, 1.0, 2.0]
    skeleton = Skeleton(["a", "b", "c"], [-1, 0, 1], rest, np.ones(3), [True, False, True])
    bent = np.tile([np.cos(0.2), np.sin(0.2), 0.0, 0.0], (5, 3, 1))
    model = EditModel(skeleton, [Effector("c")], masses(skeleton), {}, skeleton.names)
    solver = EditSolver(model, bent, np.zeros((5, 3)))
    targets = solver.own_points + np.linspace(0.0, 0.3, 5)[:, None, None] * (0.3, -0.5, 0.2)
    found = solver.over_time(targets, np.full((5, 1, 4), np.nan), np.arange(5.0), 5.0)
    posed = forward_kinematics(skeleton, found.rotations, found.roots)
    assert np.abs((posed[:, 2] @ (0.0, 1.0, 0.0, 1.0))[:, :3] - targets[:, 0]).max() < 1e-5


def test_a_limb_that_becomes_straight_does_not_jerk():
    """A target moves out of an arm's reach and back; frame by frame, the arm's speed changes by 15 degrees a frame."""
    skeleton = Skeleton(["upper", "lower"], [-1, 0], straight_chain(2), np.ones(2))
    bend = np.array([(np.cos(0.4), np.sin(0.4), 0.0, 0.0), (np.cos(-0.8), np.sin(-0.8), 0.0, 0.0)])
    rotations, roots = np.tile(bend, (61, 1, 1)), np.zeros((61, 3))
    model = EditModel(skeleton, [Effector("lower", priority=1)], masses(skeleton), {}, skeleton.names)
    solver = EditSolver(model, rotations, roots)
    targets = solver.own_points + SHARES[:, None, None] * (0.0, 1.2, 0.0)
    assert np.linalg.norm(targets[30, 0]) > 2.2
    found = followed(model, rotations, roots, targets, no_turns(solver), SHARES)
    assert found.errors[30, 0] < np.linalg.norm(targets[30, 0]) - 1.8
    turned = angle_between(found.rotations[1:], found.rotations[:-1])
    assert np.abs(np.diff(turned, axis=0)).max() < np.radians(4.0)


@pytest.mark.parametrize("angle", [0.5, 2.0])
def test_a_free_root_moves_all_the_way_to_its_target(angle):
    rotations, roots = take()
    root = Effector(walker.skeleton().names[0], (0.0, 0.0, 0.0), rotation_weight=1.0)
    solver = EditSolver(model_of([root], free_root=True), rotations, roots)
    targets = solver.own_points + SHARES[:, None, None] * (3.0, 0.0, 0.0)
    turns = quaternion_from_rotation_vector(angle * SHARES[:, None] * (0.0, 0.6, 0.8))
    turned = product(turns[:, None], solver.own_rotations)
    found = solver.over_time(targets, turned, np.arange(61.0), 30.0)
    assert found.errors.max() < 1e-5
    posed, before = (forward_kinematics(walker.skeleton(), *each) for each in ((found.rotations, found.roots), take()))
    expected = matrix_from_quaternion(turns) @ before[:, 0, :3, :3]
    assert np.abs(posed[:, 0, :3, :3] - expected).max() < 1e-4


def straight_chain(count):
    """(count, 4, 4) rest matrices of bones of length 1 along Y."""
    rest = np.tile(np.eye(4), (count, 1, 1))
    rest[:, 1, 3] = np.arange(count)
    return rest


def test_the_unit_of_length_does_not_matter():
    """A hand with its rotation, and the feet that are held, in meters and at 0.01 to 100 times that."""
    rotations, roots = (each[20:41:2] for each in take())
    rotations, shares = legal(rotations, LIMITS), falloff(np.arange(11.0), 5.0, 5.0, 5.0, 5.0)

    def poses(scale):
        own = walker.skeleton()
        rest = own.rest.copy()
        rest[:, :3, 3] *= scale
        skeleton = Skeleton(own.names, own.parents, rest, scale * own.lengths)
        feet = [Effector(foot, (0, 0, 0), rotation_weight=1.0) for foot in FEET]
        hand = Effector("hand.R", rotation_weight=1.0)
        model = EditModel(skeleton, [hand, *feet], masses(skeleton), LIMITS, skeleton.names, free_root=True)
        solver = EditSolver(model, rotations, scale * roots)
        targets = solver.own_points.copy()
        targets[:, 0] += scale * shares[:, None] * (0.1, -0.1, 0.15)
        found = solver.over_time(targets, solver.own_rotations, np.arange(11.0), 5.0)
        return found.rotations, found.roots / scale

    turned, moved = poses(1.0)
    for scale in (0.01, 0.3, 20.0, 100.0):
        same, there = poses(scale)
        assert angle_between(turned, same).max() < np.radians(0.05)
        assert np.abs(moved - there).max() < 1e-4


def test_the_heavier_of_two_goals_that_contradict_each_other_is_nearer():
    """Their errors are in the inverse ratio of their weights."""
    rotations, roots = take()
    place = walker.skeleton().lengths[walker.skeleton().index("hand.R")]
    tips = [Effector("hand.R", (0.0, place, 0.0), weight, priority=1) for weight in (1.0, 10.0)]
    solver = EditSolver(model_of(tips), rotations, roots)
    targets = solver.own_points + np.array([(0.0, 0.0, 0.05), (0.0, 0.0, -0.05)])
    light, heavy = solver.over_time(targets, no_turns(solver), np.arange(61.0), 30.0).errors.T
    assert light == pytest.approx(10.0 * heavy, rel=0.1)
    assert light + heavy == pytest.approx(np.full(61, 0.1), abs=1e-4)


def test_a_change_over_time_holds_a_hand_and_fades_on_other_frames():
    """The path of the hand has no corner at the start and end of the hold, and hips hardly move."""
    rotations, roots = take()
    count, hand = len(rotations), Effector("hand.R")
    feet = [Effector(foot, (0, 0, 0), rotation_weight=1.0) for foot in FEET]
    frames, first, last = np.arange(count, dtype=float), count // 3, 2 * count // 3
    shares = falloff(frames, first, last, first, count - 1.0 - last)
    solver = EditSolver(model_of([hand, *feet], free_root=True), rotations, roots, shares)
    targets, turned = solver.own_points.copy(), solver.own_rotations.copy()
    targets[:, 0] = turned[:, 0] = np.nan
    targets[first : last + 1, 0] = solver.own_points[first, 0]
    found = solver.over_time(targets, turned, frames, float(first))
    assert np.nanmax(found.errors) < 1e-5
    posed = forward_kinematics(walker.skeleton(), found.rotations, found.roots)
    own = forward_kinematics(walker.skeleton(), rotations, roots)
    np.testing.assert_allclose(posed[[0, -1]], own[[0, -1]], atol=1e-12)
    before, after = (np.linalg.norm(np.diff(each[..., :3, 3], 2, axis=0), axis=-1).max() for each in (own, posed))
    assert after < 1.05 * before


@pytest.mark.parametrize("angles", [(0.0, 0.0), (0.4, -0.7), (1e-5, 2.0)])
def test_derivatives_of_rotation_vectors_agree_with_differences(angles):
    """The rates agree with finite differences."""
    rotations, roots = take()
    bodies = Bodies(walker.skeleton(), [0, 1], [np.eye(3), np.eye(3)], free_root=False)
    step = np.array([[angles[0], angles[1], 0.3, angles[1], 0.1, angles[0]]])
    by = 1e-6 * np.array([[1.0, -2.0, 0.5, 0.3, 1.5, -1.0]])
    pose = bodies.pose(rotations[:1, [0, 1]], roots[:1])
    before, after = (bodies.moved(pose, each)[0] for each in (step, step + by))
    turned = rotation_vector_from_quaternion(product(after, conjugate(before))).reshape(1, 6)
    np.testing.assert_allclose((bodies.rates(step) @ by[..., None])[..., 0], turned, atol=1e-11)
