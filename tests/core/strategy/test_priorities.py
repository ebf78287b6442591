"""Priorities: the first goals are met, and later ones give way."""

import numpy as np
import pytest
from support import checker
from support.families import FAMILIES
from support.rigs import paper_y, person, points_of

from fabrik_addon.core import Effector, Options, Status, solve
from fabrik_addon.core.rotations import quaternion_from_matrix

ENDS = ("foot.L", "foot.R", "hand.L", "hand.R", "head")
LEGS, ARMS = [0, 1], [2, 3]


def goals(*priorities):
    return [Effector(end, priority=priority) for end, priority in zip(ENDS, priorities, strict=True)]


def reaching_out(count):
    """(F, 5, 3) goals of a person with bent knees whose left hand reaches far out."""
    skeleton = person()
    targets = np.tile(points_of(skeleton, skeleton.rest, goals(0, 0, 0, 0, 0)), (count, 1, 1))
    targets[:, :2, 2] += 0.05
    targets[:, 2] += np.random.default_rng(1).normal(size=(count, 3)) * 0.4 + [0.5, 0.0, 0.0]
    return targets


@pytest.mark.parametrize("root", ["FIXED", "FREE"])
@pytest.mark.parametrize("limited", [False, True])
def test_feet_stay_exactly_while_the_target_of_a_hand_is_out_of_reach(root, limited):
    skeleton, targets = person(), reaching_out(8 if limited else 30)
    limits = FAMILIES["human, 5 goals"].limits if limited else {}
    asked = {"limits": limits, "root": root, "options": Options(restarts=2)}
    solution = solve(skeleton, goals(0, 0, 1, 1, 1), targets, **asked)
    far = solution.errors[:, 2] > 0.05
    assert far.any()
    assert solution.errors[:, LEGS].max() < 1e-4
    assert (solution.status[far] != Status.SOLVED).all()
    verdict = checker.judge(skeleton, limits, goals(0, 0, 0, 0, 0), solution)
    assert verdict.break_deg.max() < 0.01
    assert verdict.stretch < 1e-6
    together = solve(skeleton, goals(0, 0, 0, 0, 0), targets, **asked)
    # Feet that come first make the errors of other goals larger. Bent legs can't carry a force, so feet are also met at
    # the optimum of all goals.
    assert ((together.errors**2).sum(axis=1) <= 1.001 * (solution.errors**2).sum(axis=1) + 1e-9).all()


def test_of_three_priorities_the_last_is_missed_first():
    skeleton, targets = person(), reaching_out(20)
    targets[:, 4] += [0.0, -0.3, 0.3]
    first, second = goals(0, 0, 1, 1, 2), goals(0, 0, 2, 2, 1)
    hands, head = solve(skeleton, first, targets, root="FREE"), solve(skeleton, second, targets, root="FREE")
    for solution in (hands, head):
        assert solution.errors[:, LEGS].max() < 2e-4
    assert (hands.errors[:, ARMS].sum(axis=1) <= head.errors[:, ARMS].sum(axis=1) + 1e-3).all()
    assert (head.errors[:, 4] <= hands.errors[:, 4] + 1e-3).all()
    assert np.median(hands.errors[:, 4]) > np.median(head.errors[:, 4]) + 0.05


def test_targets_within_reach_are_met_whatever_their_priorities():
    skeleton = person()
    targets = np.tile(points_of(skeleton, skeleton.rest, goals(0, 0, 0, 0, 0)), (10, 1, 1))
    targets[:, :4] += np.random.default_rng(2).uniform((-0.05, -0.05, 0.01), (0.05, 0.05, 0.11), (10, 4, 3))
    targets[:, 4, 2] -= 0.05
    solutions = [
        solve(skeleton, goals(*order), targets) for order in ((0, 0, 0, 0, 0), (0, 0, 1, 1, 2), (7, 5, 3, -1, 3))
    ]
    for solution in solutions:
        assert (solution.status == Status.SOLVED).all()
        assert (solution.rotations == solutions[0].rotations).all()


@pytest.mark.one_pose
@pytest.mark.parametrize("first", [0, 1])
def test_the_paper_y_meets_the_end_with_the_first_priority(first):
    skeleton = paper_y()
    effectors = [Effector("left2", priority=first), Effector("right2", priority=1 - first)]
    targets = np.array([[[0.35, 0.1, 0.45], [-0.35, -0.1, 0.45]]])
    solution = solve(skeleton, effectors, targets)
    assert solution.errors[0, first] < 1e-4
    assert solution.errors[0, 1 - first] > 0.02
    one = solve(skeleton, effectors, targets[0])
    assert one.errors[first] < 1e-4
    assert one.errors == pytest.approx(solution.errors[0], abs=2e-3)


def test_a_rotation_has_the_priority_of_its_effector():
    skeleton = person()
    effectors = [
        Effector("foot.L", rotation_weight=1.0, priority=0),
        Effector("foot.R", rotation_weight=1.0, priority=0),
        Effector("hand.L", rotation_weight=1.0, priority=1),
    ]
    targets = reaching_out(10)[:, :3] + [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (10, 3, 1))
    feet = skeleton.rest[[skeleton.index("foot.L"), skeleton.index("foot.R")], :3, :3]
    rotations[:, :2] = quaternion_from_matrix(feet)
    solution = solve(skeleton, effectors, targets, target_rotations=rotations, root="FREE")
    assert (solution.errors[:, 2] > 0.05).any()
    assert solution.errors[:, :2].max() < 1e-4
    assert solution.rotation_errors[:, :2].max() < 2e-4
