"""Problems that were once solved wrongly, each with the correct result."""

import numpy as np
import pytest
from support import checker
from support.families import FAMILIES, chain, hinge, limb
from support.rigs import from_joints, straight_chain

from fabrik_addon.core import Effector, Options, Solver, Status, forward_kinematics, solve

FRAMES = 120
OPTIONS = Options(tolerance=1e-3)


def robot(hinges):
    """Links of 100 mm whose hinges rotate about X, Z and Y in turn."""
    return limb((0.1,) * hinges, *[hinge("XZY"[place % 3], -120, 120) for place in range(hinges)])


def in_reach(family, effectors, frames):
    """(F, E, 3) positions and (F, E, 4) rotations of effectors in random poses inside the limits."""
    poses = family.poses(np.random.default_rng(41), frames)
    turns, heads = checker.placed(family.skeleton, checker.matrices(poses), family.skeleton.rest[0, :3, 3])
    bones = [family.skeleton.index(effector.bone) for effector in effectors]
    rotations = np.array([[checker_quaternion(turns[frame, bone]) for bone in bones] for frame in range(frames)])
    return checker.effector_points(family.skeleton, effectors, turns, heads), rotations


def checker_quaternion(matrix):
    """W x y z of a rotation matrix, by its angle and axis."""
    axis = np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])
    angle = np.arctan2(np.linalg.norm(axis), np.trace(matrix) - 1.0)
    axis = axis / max(np.linalg.norm(axis), 1e-12)
    return [np.cos(angle / 2), *(np.sin(angle / 2) * axis)]


def solve_reachable(family, effectors, *, turning=False):
    """Frames whose targets are in reach."""
    places, rotations = in_reach(family, effectors, FRAMES)
    turns = {"target_rotations": rotations} if turning else {}
    return solve(family.skeleton, effectors, places, limits=family.limits, options=OPTIONS, **turns)


@pytest.mark.parametrize("hinges", [4, 5])
def test_a_robot_with_fewer_hinges_than_target_numbers_does_not_stay_folded(hinges):
    """A position and a rotation are six numbers: the error may be due to targets, but here it is due to the start."""
    family = robot(hinges)
    effectors = [Effector(family.skeleton.names[-1], rotation_weight=1.0)]
    assert (solve_reachable(family, effectors, turning=True).status == Status.SOLVED).mean() >= 0.99


def test_two_targets_of_five_hinges_are_met():
    family = robot(5)
    names = family.skeleton.names
    assert (solve_reachable(family, [Effector(names[2]), Effector(names[4])]).status == Status.SOLVED).all()


def test_more_exact_points_than_degrees_of_freedom_are_met():
    family = FAMILIES["human, 5 goals"]
    effectors = [Effector(name) for name in family.skeleton.names]
    assert (solve_reachable(family, effectors).status == Status.SOLVED).all()


def test_bones_without_effectors_are_clamped_in_one_pose_as_in_many():
    skeleton = from_joints(
        [("a", -1, (0, 0, 0), (0, 1, 0)), ("b", 0, (0, 1, 0), (0, 2, 0)), ("c", 1, (0, 2, 0), (0, 3, 0))]
    )
    solver = Solver(skeleton, [Effector("b")], limits={"c": hinge("X", 30, 60)})
    target = np.array([[0.3, 1.4, 0.2]])
    one, many = solver.solve(target), solver.solve(target[None])
    assert checker.judge(skeleton, {"c": hinge("X", 30, 60)}, [Effector("b")], many).break_deg.max() < 0.01
    assert one.rotations[2] == pytest.approx(many.rotations[0, 2], abs=1e-6)


def test_a_bend_target_without_a_limb_changes_nothing():
    skeleton = straight_chain(1, 0.5)
    target, toward = np.array([[0.3, 0.4, 0.0]]), np.array([[1.0, 0.0, 0.0]])
    bent = solve(skeleton, [Effector("b0")], target, bend_targets=toward)
    assert bent.status == Status.SOLVED
    assert bent.tails == pytest.approx(solve(skeleton, [Effector("b0")], target).tails, abs=1e-6)


def test_the_error_of_a_target_without_weight_is_reported():
    skeleton = chain((0.3, 0.3))
    names = skeleton.names
    targets = np.array([[0.1, 0.45, 0.1], [5.0, 0.0, 0.0]])
    solution = Solver(skeleton, [Effector(names[1]), Effector(names[0])]).solve(targets, weights=[1.0, 0.0])
    assert solution.status == Status.SOLVED
    assert solution.errors[1] == pytest.approx(np.linalg.norm(solution.tails[0] - targets[1]), abs=1e-6)
    assert solution.errors[1] > 4.0


def test_a_rotation_of_a_root_without_length_is_met_or_reported():
    skeleton = from_joints([("a", -1, (0, 0, 0), (0, 0, 0)), ("b", 0, (0, 0, 0), (0, 1, 0))])
    turn = np.array([[np.cos(np.pi / 3), np.sin(np.pi / 3), 0.0, 0.0]])
    for limits in ({}, {"a": hinge("X", -10, 10)}):
        solution = solve(
            skeleton, [Effector("a", rotation_weight=1.0)], np.zeros((1, 3)), limits=limits, target_rotations=turn
        )
        assert (solution.status == Status.SOLVED) == (solution.rotation_errors[0] < 1e-3)
        assert (solution.status == Status.SOLVED) == (not limits)


@pytest.mark.parametrize("root", ["FREE", "FIXED"])
def test_far_from_the_origin_one_pose_is_as_exact_as_near_it(root):
    """Single precision stores 10 km with an accuracy of 1 mm."""
    family = FAMILIES["arm, asymmetric"]
    away = np.array([10_000.0, -7_000.0, 3_000.0])
    head = family.skeleton.rest[0, :3, 3] + away
    targets = family.targets(np.random.default_rng(3), 12) + away
    solver = Solver(family.skeleton, family.effectors, limits=family.limits, root=root)
    for target in targets:
        solution = solver.solve(target, start_location=head)
        assert solution.status == Status.SOLVED
        heads = forward_kinematics(family.skeleton, solution.rotations, solution.root_location)[..., :3, 3]
        assert solution.heads == pytest.approx(heads, abs=1e-9)


def test_solving_again_from_the_solution_keeps_the_pose():
    family = FAMILIES["human, 5 goals"]
    targets = family.targets(np.random.default_rng(8), 30)
    first = solve(family.skeleton, family.effectors, targets, limits=family.limits)
    assert (first.status == Status.SOLVED).all()
    again = solve(family.skeleton, family.effectors, targets, limits=family.limits, start=first.rotations)
    assert again.rotations == pytest.approx(first.rotations, abs=1e-12)
    assert (again.iterations == 0).all()
