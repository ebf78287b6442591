"""Frames that follow changed goals, each near to its own pose: exact, smooth, inside limits."""

import numpy as np
import pytest
from support import walker

from fabrik_addon.core import Ball, Effector, Hinge, Skeleton, forward_kinematics
from fabrik_addon.core.backend import array as many
from fabrik_addon.core.kernel.posture import Masses
from fabrik_addon.core.rotations import angle_between
from fabrik_addon.motion.falloff import falloff
from fabrik_addon.motion.poses import MotionPoses, smoothed, widened
from fabrik_addon.motion.solve import MotionModel, MotionSolver

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
    return MotionModel(skeleton, effectors, masses(skeleton), dict(limits), turning or skeleton.names, **options)


def take():
    """(F, J, 4) and (F, 3) the true walk."""
    return walker.true_rotations()[FRAMES], walker.true_matrices()[FRAMES, 0, :3, 3]


def legal(rotations, limits):
    """The poses with limited joints brought inside."""
    rotations = rotations.copy()
    for name, limit in limits.items():
        place = walker.skeleton().index(name)
        inside = limit.clamp(many, many.quaternion(rotations[:, place]))
        rotations[:, place] = many.stack([inside], len(rotations))[:, 0]
    return rotations


def no_turns(solver):
    return np.full(solver.own_rotations.shape, np.nan)


def test_goals_that_stay_leave_every_pose_as_it_is():
    rotations, roots = take()
    effectors = [Effector("hand.R", priority=1), Effector("foot.L")]
    solver = MotionSolver(model_of(effectors, free_root=True), rotations, roots)
    found = solver.solve(solver.own_points, no_turns(solver))
    assert np.abs(found.rotations - rotations).max() < 1e-9
    assert np.abs(found.roots - roots).max() < 1e-9


@pytest.mark.parametrize("limits", [{}, LIMITS], ids=["free", "limited"])
def test_a_hand_goes_along_its_new_path_and_feet_stay(limits):
    rotations, roots = take()
    rotations = legal(rotations, limits)
    feet = [Effector(foot, (0, 0, 0), rotation_weight=1.0) for foot in FEET]
    effectors = [Effector("hand.R", priority=1), *feet]
    solver = MotionSolver(model_of(effectors, limits=limits, free_root=True), rotations, roots)
    targets = solver.own_points.copy()
    targets[:, 0] += falloff(np.arange(61.0), 30.0, 30.0, 30.0, 30.0)[:, None] * (0.0, -0.1, 0.15)
    found = solver.solve(targets, solver.own_rotations)
    assert found.errors.max() < 1e-5
    assert np.abs(found.rotations - rotations)[[0, -1]].max() < 1e-9
    posed = forward_kinematics(walker.skeleton(), found.rotations, found.roots)
    before = forward_kinematics(walker.skeleton(), rotations, roots)
    hand = walker.skeleton().index("hand.R")
    tails = posed[:, hand] @ (0.0, walker.skeleton().lengths[hand], 0.0, 1.0)
    assert np.abs(tails[:, :3] - targets[:, 0]).max() < 1e-5
    for foot in FEET:
        place = walker.skeleton().index(foot)
        assert np.abs(posed[:, place] - before[:, place]).max() < 1e-5
    for name, limit in limits.items():
        place = walker.skeleton().index(name)
        assert angle_between(found.rotations[:, place], legal(found.rotations, {name: limit})[:, place]).max() < 1e-6
    rough, was = (np.linalg.norm(np.diff(each[:, :, :3, 3], 2, axis=0), axis=2).max() for each in (posed, before))
    assert rough < 1.5 * was


def test_only_what_may_turn_does():
    rotations, roots = take()
    solver = MotionSolver(model_of([Effector("hand.R")], turning=("upper_arm.R", "forearm.R")), rotations, roots)
    targets = solver.own_points + np.array((0.0, 0.0, 0.03))
    found = solver.solve(targets, no_turns(solver))
    turned = np.abs(found.rotations - rotations).max(axis=(0, 2)) > 1e-9
    assert {walker.skeleton().names[bone] for bone in np.flatnonzero(turned)} == {"upper_arm.R", "forearm.R"}
    assert found.errors.max() < 1e-5


def test_what_is_out_of_reach_moves_nothing_that_is_held():
    rotations, roots = take()
    effectors = [Effector("hand.R", priority=1), *(Effector(foot, (0, 0, 0)) for foot in FEET)]
    solver = MotionSolver(model_of(effectors, free_root=True), rotations, roots)
    targets = solver.own_points.copy()
    targets[:, 0] += (0.0, 0.0, 3.0)
    found = solver.solve(targets, no_turns(solver))
    assert found.errors[:, 0].min() > 1.0
    assert found.errors[:, 1:].max() < 2e-3


def test_a_bone_that_does_not_inherit_rotation():
    rest = np.tile(np.eye(4), (3, 1, 1))
    rest[:, 1, 3] = [0.0, 1.0, 2.0]
    skeleton = Skeleton(["a", "b", "c"], [-1, 0, 1], rest, np.ones(3), [True, False, True])
    bent = np.tile([np.cos(0.2), np.sin(0.2), 0.0, 0.0], (5, 3, 1))
    model = MotionModel(skeleton, [Effector("c")], masses(skeleton), {}, skeleton.names)
    solver = MotionSolver(model, bent, np.zeros((5, 3)))
    targets = solver.own_points + np.linspace(0.0, 0.3, 5)[:, None, None] * (0.3, -0.5, 0.2)
    found = solver.solve(targets, np.zeros((5, 0, 4)))
    posed = forward_kinematics(skeleton, found.rotations, found.roots)
    assert np.abs((posed[:, 2] @ (0.0, 1.0, 0.0, 1.0))[:, :3] - targets[:, 0]).max() < 1e-5


def test_changes_are_smoothed_and_none_at_the_ends():
    rotations, roots = take()
    rng = np.random.default_rng(4)
    shaken = rotations + 0.01 * rng.normal(size=rotations.shape)
    shaken /= np.linalg.norm(shaken, axis=-1, keepdims=True)
    shaken[[0, -1]] = rotations[[0, -1]]
    moved = roots + 0.01 * np.sin(np.linspace(0.0, np.pi, len(roots)))[:, None]
    calm = smoothed(MotionPoses(shaken, moved, np.empty(0)), MotionPoses(rotations, roots, np.empty(0)))
    assert np.abs(calm.rotations[[0, -1]] - rotations[[0, -1]]).max() < 1e-9
    rough, less = (angle_between(each[1:], each[:-1]).max() for each in (shaken, calm.rotations))
    assert less < 0.6 * rough
    assert np.abs(calm.roots - moved)[10:-10].max() < 5e-4


def test_what_is_missing_is_missing_about_it_too():
    missing = np.zeros((61, 4))
    missing[20, 1], missing[58, 2] = 0.03, 0.01
    wide = widened(missing, 40)
    assert (wide[18:23, 1] > 0.5 * 0.03).all()
    assert np.abs(np.diff(wide, 2, axis=0))[:50].max() < 0.003
    assert np.abs(wide[[0, 40, 60]]).max() < 1e-6
    assert widened(missing, 20)[20] == pytest.approx(missing[20])


def test_a_frame_that_went_another_way_is_brought_back():
    rotations, roots = take()
    solver = MotionSolver(model_of([Effector("hand.R")]), rotations, roots)
    targets = solver.own_points.copy()
    targets += falloff(np.arange(61.0), 30.0, 30.0, 30.0, 30.0)[:, None, None] * (0.0, 0.0, 0.1)
    found = solver.solve(targets, no_turns(solver))
    other = found.rotations.copy()
    other[30, walker.skeleton().index("spine")] = (np.cos(0.1), np.sin(0.1), 0.0, 0.0)
    calm = solver.calmed(targets, no_turns(solver), MotionPoses(other, found.roots, found.errors), 30)
    assert calm.errors.max() < 1e-5
    spine = walker.skeleton().index("spine")
    assert angle_between(calm.rotations[30, spine], found.rotations[30, spine]) < 0.03
