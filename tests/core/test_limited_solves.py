"""Whole solves with limits: what can be reached is reached, nothing is violated, and the status is correct."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import checker
from support.families import FAMILIES, ball, hinge, limb, window
from support.rigs import random_rotations
from support.strategies import limited_trees

from fabrik_addon.core import Effector, Fixed, Options, Solver, Status, forward_kinematics, solve

MOST_BREAK_DEG = 0.01
MOST_STRETCH = 1e-6
AT_LIMIT = 1e-4


def assert_kept(skeleton, limits, effectors, targets, solution):
    """Check that limits and lengths are kept and errors are correct; returns the verdict."""
    verdict = checker.judge(skeleton, limits, effectors, solution)
    assert verdict.break_deg.max(initial=0.0) < MOST_BREAK_DEG
    assert verdict.stretch < MOST_STRETCH
    errors = np.linalg.norm(verdict.points - targets, axis=2)
    assert np.nanmax(np.abs(errors - solution.errors), initial=0.0) < 1e-9
    assert (np.isnan(errors) == np.isnan(solution.errors)).all()
    return verdict


@pytest.mark.parametrize("name", FAMILIES)
def test_targets_within_the_limits_are_reached_from_a_cold_start(name):
    """`make bench` measures this on thousands of targets, and compares with the paper's plain method."""
    family = FAMILIES[name]
    frames = 100 if len(family.ends) > 1 else 200
    targets = family.targets(np.random.default_rng(1), frames)
    options = Options(tolerance=1e-3)
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits, options=options)
    assert_kept(family.skeleton, family.limits, family.effectors, targets, solution)
    assert (solution.errors.max(axis=1) <= 1e-3 * family.size).mean() >= 0.999
    assert (solution.status == Status.SOLVED).mean() >= 0.999


@pytest.mark.parametrize(
    "name", ["arm, asymmetric", "finger, never straight", "8 windows beside rest", "hand, 5 goals"]
)
def test_targets_anywhere_break_no_limit(name):
    family = FAMILIES[name]
    rng = np.random.default_rng(6)
    targets = rng.normal(size=(15, len(family.ends), 3)) * family.size * 0.5
    targets[rng.random(targets.shape[:2]) < 0.2] = np.nan
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits, options=Options(restarts=2))
    assert_kept(family.skeleton, family.limits, family.effectors, targets, solution)


def reachable_and_not(tree, rng):
    """(6, E, 3) targets: three frames within the limits, two near by, one far out; some not seen."""
    skeleton, limits, effectors = tree
    pose = np.tile([1.0, 0.0, 0.0, 0.0], (6, len(skeleton), 1))
    for name, limit in limits.items():
        pose[:, skeleton.index(name)] = checker.random_rotations_inside(limit, rng, 6)
    placed = checker.placed(skeleton, checker.matrices(pose), skeleton.rest[0, :3, 3])
    targets = checker.effector_points(skeleton, effectors, *placed)
    targets[3:5] += rng.normal(size=(2, len(effectors), 3)) * 0.3
    targets[5] *= 3.0
    targets[rng.random((6, len(effectors))) < 0.15] = np.nan
    return targets


@given(tree=limited_trees(), seed=st.integers(0, 2**32 - 1), free=st.booleans())
@settings(max_examples=40)
def test_limits_hold_and_the_status_is_true_for_any_targets(tree, seed, free):
    skeleton, limits, effectors = tree
    rng = np.random.default_rng(seed)
    targets = reachable_and_not(tree, rng)
    start = random_rotations(rng, (6, len(skeleton)), 2.0)  # outside the limits, mostly
    options = Options(restarts=4)
    solver = Solver(skeleton, effectors, limits=limits, root="FREE" if free else "FIXED", options=options)
    solution = solver.solve(targets, start=start)
    verdict = assert_kept(skeleton, limits, effectors, targets, solution)
    assert_no_worse_than_the_start(tree, targets, start, solution)
    assert_binding_is_true(tree, verdict, solution)
    assert_status_is_true(tree, targets, solution, free)


def assert_no_worse_than_the_start(tree, targets, start, solution):
    """A result is compared with the start pose after this has been clamped to the limits."""
    skeleton, limits, effectors = tree
    turns = checker.matrices(start)
    for name, limit in limits.items():
        bone = skeleton.index(name)
        turns[:, bone] = checker.clamped(limit, turns[:, bone])
    points = checker.effector_points(skeleton, effectors, *checker.placed(skeleton, turns, skeleton.rest[0, :3, 3]))
    weights = [effector.weight for effector in effectors]
    before = np.nansum(weights * np.linalg.norm(points - targets, axis=2) ** 2, axis=1)
    after = np.nansum(weights * solution.errors**2, axis=1)
    assert (after <= before * (1 + 1e-6) + 1e-12).all()


def assert_binding_is_true(tree, verdict, solution):
    """A bone above an effector is at its limit if the checker finds it within 1e-4 rad of a side."""
    skeleton, limits, effectors = tree
    bones = set().union(*[skeleton.path(skeleton.index(effector.bone)) for effector in effectors])
    for bone in bones:
        if skeleton.names[bone] in limits:
            found, slack = solution.binding[:, bone], verdict.slack[:, bone]
            assert not (found & (slack > AT_LIMIT * 1.2)).any()
            assert not (~found & (slack < AT_LIMIT * 0.8)).any()
        else:
            assert not solution.binding[:, bone].any()


def assert_status_is_true(tree, targets, solution, free):
    skeleton, limits, effectors = tree
    seen = ~np.isnan(targets).any(axis=2)
    tolerance = np.array([reach(skeleton, effector)[1] for effector in effectors]) * 1e-4
    met = ~(solution.errors > np.maximum(tolerance, 1e-12)).any(axis=1)
    status = solution.status
    assert ((status == Status.UNSEEN) == ~seen.any(axis=1)).all()
    assert ((status == Status.SOLVED) == (met & seen.any(axis=1))).all()
    if not free:
        far = np.array([reach(skeleton, effector)[0] for effector in effectors])
        distance = np.where(seen, np.linalg.norm(targets - skeleton.rest[0, :3, 3], axis=2), 0.0)
        beyond = (distance > far * (1 + 1e-9)).any(axis=1)
        assert (status[beyond] == Status.UNREACHABLE).all()
    limited = status == Status.LIMITED
    assert solution.binding[limited].any(axis=1).all()
    assert checker.steepest(skeleton, limits, effectors, solution, targets)[limited].max(initial=0.0) < 0.1


def reach(skeleton, effector):
    """The sum of the lengths on the path to an effector, and the length of which its tolerance is a fraction."""
    path = skeleton.path(skeleton.index(effector.bone))
    offset = (0, skeleton.lengths[path[-1]], 0) if effector.offset is None else effector.offset
    far = sum(np.linalg.norm(skeleton.head_offsets[bone]) for bone in path[1:]) + np.linalg.norm(offset)
    return far, max(far, skeleton.lengths[0])


def test_the_status_limited_comes_with_the_bones_at_their_limits():
    family = limb((0.1, 0.1, 0.1), ball(20), hinge("X", 0, 30), hinge("X", 0, 30))
    target = np.array([[[0.15, -0.1, 0.05]]])
    solution = solve(family.skeleton, family.effectors, target, limits=family.limits)
    assert_kept(family.skeleton, family.limits, family.effectors, target, solution)
    assert solution.status[0] == Status.LIMITED
    assert solution.binding[0, 0]
    assert solve(family.skeleton, family.effectors, target).status[0] == Status.SOLVED


def test_a_limit_that_is_not_reached_is_not_active():
    family = limb((0.1, 0.1, 0.1), ball(100), hinge("X", -150, 150), ball(100))
    target = np.array([[[0.02, 0.25, 0.05]]])
    solution = solve(family.skeleton, family.effectors, target, limits=family.limits)
    assert solution.status[0] == Status.SOLVED
    assert not solution.binding.any()


def test_beyond_the_lengths_is_unreachable_and_not_limited():
    family = limb((0.1, 0.1, 0.1), ball(60), hinge("X", 0, 90), ball(60))
    target = np.array([[[0.0, 0.31, 0.0]]])
    assert solve(family.skeleton, family.effectors, target, limits=family.limits).status[0] == Status.UNREACHABLE


@pytest.mark.parametrize("count", [1, 2])
def test_fixed_bones_stay_and_are_reported(count):
    family = limb((0.3, 0.25), Fixed(), Fixed())
    targets = np.tile([0.1, 0.3, 0.2], (2, count, 1))
    effectors = [Effector(name) for name in family.skeleton.names[:count]]
    solution = solve(family.skeleton, effectors, targets, limits=family.limits)
    assert (solution.rotations == [1.0, 0.0, 0.0, 0.0]).all()
    assert (solution.status != Status.SOLVED).all()
    assert solution.binding.all(axis=0)[:count].all()


def test_rest_outside_a_limit_starts_from_the_legal_pose_nearest_to_it():
    family = limb((0.3, 0.25), ball(90), hinge("X", 20, 150))
    nothing = np.full((1, 1, 3), np.nan)
    solution = solve(family.skeleton, family.effectors, nothing, limits=family.limits)
    assert solution.status[0] == Status.UNSEEN
    half = np.radians(10)
    assert solution.rotations[0] == pytest.approx(np.array([[1, 0, 0, 0], [np.cos(half), np.sin(half), 0, 0]]))


def test_bones_outside_the_chains_are_also_clamped():
    family = FAMILIES["human, ankles"]
    start = random_rotations(np.random.default_rng(3), (len(family.skeleton),), 2.0)
    target = np.array([[[0.3, -0.3, 1.2]]])
    effectors = [Effector("hand.L")]
    solution = solve(family.skeleton, effectors, target, limits=family.limits, start=start)
    assert_kept(family.skeleton, family.limits, effectors, target, solution)


@pytest.mark.parametrize("bend", [hinge("X", 0, 150), hinge("X", -150, 0), hinge("Z", 0, 150), hinge("Z", -150, -5)])
def test_a_straight_limb_bends_in_the_direction_of_its_hinge(bend):
    """The target is on the limb's axis: only a bend in the hinge's own range reaches it."""
    family = limb((0.3, 0.3), ball(100), bend)
    solution = solve(family.skeleton, family.effectors, np.array([[[0.0, 0.5, 0.0]]]), limits=family.limits)
    assert solution.status[0] == Status.SOLVED
    angle = 2 * np.arctan2(solution.rotations[0, 1, "wXYZ".index(bend.axis)], solution.rotations[0, 1, 0])
    assert bend.low - 1e-9 <= angle <= bend.high + 1e-9
    assert abs(angle) > 0.5


def test_hinges_never_rotate_about_other_axes():
    family = FAMILIES["alternating"]
    targets = family.targets(np.random.default_rng(5), 50) * 1.3
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits)
    hinges = [family.skeleton.index(name) for name in list(family.limits)[1::2]]
    assert np.abs(solution.rotations[:, hinges, 2:]).max() < 1e-12


def test_a_chain_pulled_away_ends_in_the_corners_of_its_outlines():
    """Two edges of each window bind at once, and the pose is still the best one."""
    square = [(-20, -20), (20, -20), (20, 20), (-20, 20)]
    family = limb((0.1,) * 4, *[window(square, (-10, 10))] * 4)
    target = np.array([[[0.3, -0.2, 0.3]]])
    solution = solve(family.skeleton, family.effectors, target, limits=family.limits)
    assert_kept(family.skeleton, family.limits, family.effectors, target, solution)
    assert checker.steepest(family.skeleton, family.limits, family.effectors, solution, target)[0] < 0.02


def test_frames_with_limits_do_not_depend_on_each_other():
    family = FAMILIES["hand, 5 goals"]
    targets = family.targets(np.random.default_rng(11), 40)
    together = solve(family.skeleton, family.effectors, targets, limits=family.limits)
    apart = solve(family.skeleton, family.effectors, targets[::-1], limits=family.limits, options=Options(chunk=7))
    assert np.abs(together.rotations - apart.rotations[::-1]).max() < 1e-9


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_size_does_not_matter(scale):
    family = FAMILIES["arm, asymmetric"]
    lengths = np.array([0.3, 0.25, 0.1]) * scale
    scaled = limb(lengths, *family.limits.values())
    targets = family.targets(np.random.default_rng(12), 60)
    solution = solve(scaled.skeleton, scaled.effectors, targets * scale, limits=scaled.limits)
    expected = solve(family.skeleton, family.effectors, targets, limits=family.limits)
    assert (solution.status == expected.status).all()
    assert np.abs(solution.tails / scale - expected.tails).max() < 1e-4


def test_solved_poses_agree_with_forward_kinematics():
    family = FAMILIES["human, 5 goals"]
    targets = family.targets(np.random.default_rng(13), 20)
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits)
    assert np.abs(forward_kinematics(family.skeleton, solution.rotations)[..., :3, 3] - solution.heads).max() < 1e-12


@pytest.mark.parametrize("targets", [[(0.2, 0.7, 0.0), (-0.2, 0.6, 0.1)], [(0.3, 0.5, 0.1), (0.0, 0.9, 0.0)]])
def test_a_fixed_joint_does_not_count_as_a_limit_that_blocks_several_targets(targets):
    """Two targets for nearly one point of a chain disagree, whether one of its seven joints is fixed or not."""
    family = limb([0.2] * 7, *[ball(179)] * 7)
    effectors = [Effector("b6"), Effector("b6", (0.02, 0.2, 0.0))]
    free = solve(family.skeleton, effectors, [targets], limits=family.limits)
    fixed = solve(family.skeleton, effectors, [targets], limits=family.limits | {"b1": Fixed()})
    assert free.status[0] == fixed.status[0] == Status.FITTED
    assert fixed.binding[0, 1]


def test_a_fixed_joint_that_blocks_a_single_target_counts_as_a_limit():
    """If two bones cannot fold completely, they cannot reach some points that their lengths alone would allow."""
    family = limb((0.3, 0.3, 0.1, 0.1), ball(179), Fixed(), ball(179), ball(179))
    solution = solve(family.skeleton, family.effectors, [[(0.1, 0.1, 0.0)]], limits=family.limits)
    assert solution.status[0] == Status.LIMITED


@pytest.mark.parametrize("cone", [(180, 2, 10, 180), (180, 2, 180, 2), (180, 180, 180, 180)])
def test_a_bone_swung_by_180_degrees_keeps_its_twist(cone):
    """At a swing of 180°, azimuth and twist are arbitrary. Fixed: the twist was 180° outside its range."""
    family = limb((0.3, 0.25), ball(cone, (-30, 30)), ball(cone, (-30, 30)))
    rng = np.random.default_rng(0)
    start = rng.normal(size=(200, 2, 4))
    start[100:] = [0.0, 0.0, 0.0, 1.0]
    targets = np.concatenate([rng.normal(size=(100, 1, 3)) * [0.3, 0.05, 0.05], rng.normal(size=(100, 1, 3)) * 1e-3])
    targets -= [0.0, 0.4, 0.0]
    options = Options(restarts=4)
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits, start=start, options=options)
    assert_kept(family.skeleton, family.limits, family.effectors, targets, solution)
