"""Poles: limbs bend toward their poles, reach the same targets as without poles, and do not flip."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import checker
from support.families import FAMILIES, ball, hinge, limb
from support.rigs import from_joints, person, points_of, straight_chain

from fabrik_addon.core import Effector, Options, Status, forward_kinematics, solve

LEG = from_joints([("thigh", -1, (0, 0, 0), (0, 0.02, -0.4)), ("shin", 0, (0, 0.02, -0.4), (0, 0, -0.8))])
TIP = [Effector("shin")]
GOALS = [Effector(name) for name in ("head", "hand.L", "hand.R", "foot.L", "foot.R")]


def beside(base, middle, end, pole):
    """(F,) degrees between a limb's middle and its pole, about the line from base to end; the points are (F, 3)."""
    axis = (end - base) / np.linalg.norm(end - base, axis=-1, keepdims=True)
    side, wish = (arm - axis * (arm * axis).sum(-1, keepdims=True) for arm in (middle - base, pole - base))
    return np.degrees(np.arctan2((axis * np.cross(side, wish)).sum(-1), (side * wish).sum(-1)))


def turns_between(rotations):
    """(F - 1, J) degrees by which bones rotate from frame to frame."""
    alike = np.abs((rotations[1:] * rotations[:-1]).sum(axis=-1))
    return np.degrees(2.0 * np.arccos(np.clip(alike, 0.0, 1.0)))


@pytest.mark.one_pose
@given(seed=st.integers(0, 2**32 - 1))
def test_a_leg_bends_toward_its_pole_and_reaches(seed):
    rng = np.random.default_rng(seed)
    targets, poles = rng.normal(size=(2, 8, 1, 3))
    targets *= rng.uniform(0.1, 0.79, (8, 1, 1)) / np.linalg.norm(targets, axis=-1, keepdims=True)
    solution = solve(LEG, TIP, targets, bend_targets=poles)
    assert (solution.status == Status.SOLVED).all()
    heads, tails = solution.heads, solution.tails
    assert np.abs(beside(heads[:, 0], heads[:, 1], tails[:, 1], poles[:, 0])).max() < 0.05
    one = solve(LEG, TIP, targets[0], bend_targets=poles[0])
    assert np.abs(one.tails - tails[0]).max() < 1e-4


def test_a_long_chain_bends_toward_its_pole():
    skeleton = straight_chain(10, 0.09)
    rng = np.random.default_rng(1)
    targets, poles = rng.normal(size=(2, 50, 1, 3))
    targets *= 0.5 / np.linalg.norm(targets, axis=-1, keepdims=True)
    solution = solve(skeleton, [Effector("b9")], targets, bend_targets=poles)
    assert (solution.status == Status.SOLVED).all()
    middle = solution.heads[:, 0] + (solution.heads[:, 1:] - solution.heads[:, :1]).sum(axis=1)
    assert np.abs(beside(solution.heads[:, 0], middle, solution.tails[:, -1], poles[:, 0])).max() < 0.05


@pytest.mark.one_pose
@pytest.mark.parametrize("pole", [(0.7, -0.3, -0.4), (0.0, 1.0, -0.4), (0.0, -1.0, -0.4)])
def test_nothing_flips_as_the_target_passes_through_the_straight_pose(pole):
    """Steps of 2 mm in and out of reach; a knee that is nearly straight rotates fast, but never by 90°."""
    path = np.concatenate([np.linspace(0.7, 0.9, 101), np.linspace(0.9, 0.7, 101)])
    targets = np.stack([0.1 * np.sin(9 * path), 0 * path, -path], axis=1)[:, None]
    by_itself = solve(LEG, TIP, targets, bend_targets=[pole])
    assert turns_between(by_itself.rotations).max() < 12.0
    rotations, dragged = np.tile([1.0, 0.0, 0.0, 0.0], (2, 1)), []
    for target in targets:
        rotations = solve(LEG, TIP, target, bend_targets=[pole], start=rotations).rotations
        dragged.append(rotations)
    assert turns_between(np.array(dragged)).max() < 12.0
    for poses in (by_itself.rotations, np.array(dragged)):
        bent = forward_kinematics(LEG, poses)[..., :3, 3]
        near = np.abs(beside(bent[:, 0], bent[:, 1], targets[:, 0], np.array([pole])))[path < 0.78]
        assert near.max() < 0.1


@pytest.mark.one_pose
def test_a_straight_start_bends_toward_the_pole_without_rolling():
    skeleton = straight_chain(2, 0.4)
    pole = np.array([[0.6, 0.4, 0.6]])
    solution = solve(skeleton, [Effector("b1")], np.array([[0.0, 0.7, 0.0]]), bend_targets=pole)
    assert solution.status == Status.SOLVED
    assert abs(beside(solution.heads[0], solution.heads[1], solution.tails[1], pole[0])) < 0.05
    assert np.abs(solution.rotations[:, 2]).max() < 1e-6  # no twist


def test_without_a_pole_nothing_changes():
    targets = np.random.default_rng(2).normal(size=(20, 1, 3)) * 0.3
    without, nothing = solve(LEG, TIP, targets), solve(LEG, TIP, targets, bend_targets=np.full((20, 1, 3), np.nan))
    assert (without.rotations == nothing.rotations).all()
    some = np.full((20, 1, 3), np.nan)
    some[::2] = [1.0, 1.0, 1.0]
    mixed = solve(LEG, TIP, targets, bend_targets=some)
    assert np.abs(mixed.tails[1::2] - without.tails[1::2]).max() < 1e-9


@pytest.mark.one_pose
def test_a_pose_that_already_bends_toward_its_pole_does_not_change():
    pole = np.array([[0.5, 0.5, -0.3]])
    first = solve(LEG, TIP, np.array([[0.1, 0.0, -0.6]]), bend_targets=pole)
    away = solve(LEG, TIP, np.array([[-0.4, 0.2, -0.1]]), bend_targets=pole, start=first.rotations)
    again = solve(LEG, TIP, first.tails[1:], bend_targets=pole, start=first.rotations)
    back = solve(LEG, TIP, first.tails[1:], bend_targets=pole, start=away.rotations)
    assert again.iterations == 0
    assert np.abs(again.rotations - first.rotations).max() < 1e-6
    assert np.abs(back.tails - first.tails).max() < 1e-3


def test_all_four_limbs_of_a_person_bend_toward_their_poles():
    skeleton = person()
    rng = np.random.default_rng(3)
    targets = np.tile(points_of(skeleton, skeleton.rest, GOALS), (20, 1, 1)) * [0.8, 1.0, 1.0]
    targets += rng.uniform(-0.05, 0.05, targets.shape) + np.array(
        [[0, 0, -0.1]] + [[0, -0.1, 0.05]] * 2 + [[0, 0, 0.3]] * 2
    )
    poles = targets + rng.normal(size=targets.shape)
    poles[:, 0] = np.nan
    solution = solve(skeleton, GOALS, targets, bend_targets=poles)
    assert (solution.status == Status.SOLVED).all()
    heads = solution.heads
    for column, (base, middle) in ((1, ("shoulder.L", ("upper_arm.L", "forearm.L", "hand.L"))), (3, ("thigh.L", None))):
        names = middle or ("shin.L", "foot.L")
        start = heads[:, skeleton.index(base)]
        side = start + sum(heads[:, skeleton.index(name)] - start for name in names)
        assert np.abs(beside(start, side, targets[:, column], poles[:, column])).max() < 0.5


@pytest.mark.one_pose
def test_a_foot_with_a_goal_beyond_it_stays_when_the_leg_rotates():
    skeleton = person()
    goals = [Effector("foot.L"), Effector("toe.L"), Effector("head")]
    targets = points_of(skeleton, skeleton.rest, goals) + np.array([[0.0, -0.15, 0.25]] * 2 + [[0.0, 0.0, -0.01]])
    pole = np.array([[0.8, -0.6, 0.6], [np.nan] * 3, [np.nan] * 3])
    solution = solve(skeleton, goals, targets, bend_targets=pole)
    assert solution.status == Status.SOLVED
    hip, knee, ankle = (solution.heads[skeleton.index(name)] for name in ("thigh.L", "shin.L", "foot.L"))
    assert abs(beside(hip, knee, ankle, pole[0])) < 0.1


@pytest.mark.parametrize(
    "family",
    [
        limb((0.3, 0.25), ball(60, (-90, 90)), hinge("X", 0, 150)),
        limb((0.3, 0.25), ball((50, 110, 40, 20), (-40, 40)), hinge("X", -150, -5)),
        FAMILIES["arm, asymmetric"],
    ],
)
def test_a_limb_rotates_toward_its_pole_as_far_as_limits_allow(family):
    """Compared with other positions on the circle: no valid one is nearer to the pole by more than a few degrees."""
    frames, options = 60, Options(tolerance=1e-3)
    targets = family.targets(np.random.default_rng(4), frames)
    poles = np.random.default_rng(5).normal(size=(frames, 1, 3)) * family.size
    solution = solve(
        family.skeleton, family.effectors, targets, limits=family.limits, bend_targets=poles, options=options
    )
    verdict = checker.judge(family.skeleton, family.limits, family.effectors, solution)
    assert verdict.break_deg.max() < 0.01
    assert verdict.stretch < 1e-6
    assert (solution.errors <= 1e-3 * family.size).all()
    heads, tip = solution.heads, solution.tails[:, -1]
    found = np.abs(beside(heads[:, 0], heads[:, 1], tip, poles[:, 0]))
    best = best_on_circle(family, solution, poles)
    assert np.mean(found <= best + 3.0) >= 0.9


def best_on_circle(family, solution, poles):
    """(F,) degrees from the pole at the best valid position, as the limb rotates about the line from base to tip."""
    turns = checker.matrices(solution.rotations)
    heads, tip = solution.heads, solution.tails[:, -1]
    off = beside(heads[:, 0], heads[:, 1], tip, poles[:, 0])
    axis = (tip - heads[:, 0]) / np.linalg.norm(tip - heads[:, 0], axis=1, keepdims=True)
    rest, best = family.skeleton.rest[0, :3, :3], np.abs(off)
    for angle in np.radians(np.arange(-180.0, 180.0, 2.0)):
        left = np.abs((off - np.degrees(angle) + 180.0) % 360.0 - 180.0)
        nearer = np.flatnonzero(left < best)
        base = rest.T @ checker.about(axis[nearer], np.full(len(nearer), angle)) @ rest @ turns[nearer, 0]
        outside, _ = checker.distances(next(iter(family.limits.values())), base)
        best[nearer] = np.where(outside < 1e-4, left[nearer], best[nearer])
    return best
