"""Target rotations: bones rotate with their targets, inside their limits, according to their weight."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import checker
from support.families import FAMILIES, ball, hinge, limb
from support.rigs import person, random_rotations, random_tree, straight_chain

from fabrik_addon.core import Effector, Options, Status, solve
from fabrik_addon.core.rotations import quaternion_from_matrix

ENDS = ("head", "hand.L", "hand.R", "foot.L", "foot.R")


def wanted(skeleton, effectors, rotations):
    """(F, E, 3) points and (F, E, 3, 3) frames of the effectors in poses (F, J, 4)."""
    frames, heads = checker.placed(skeleton, checker.matrices(rotations), skeleton.rest[0, :3, 3])
    bones = [skeleton.index(effector.bone) for effector in effectors]
    return checker.effector_points(skeleton, effectors, frames, heads), frames[:, bones]


def turned_away(skeleton, effectors, solution, turns):
    """(F, E) radians between the bones of a solution, put together by the checker, and wanted frames."""
    frames, _ = checker.placed(skeleton, checker.matrices(solution.rotations), solution.root_location)
    bones = [skeleton.index(effector.bone) for effector in effectors]
    return checker.size_of_turn(frames[:, bones] @ np.swapaxes(turns, -1, -2))


def assert_true(skeleton, limits, effectors, solution, points, turns):
    """Limits, lengths and both kinds of errors, by the checker."""
    verdict = checker.judge(skeleton, limits, effectors, solution)
    assert verdict.break_deg.max(initial=0.0) < 0.01
    assert verdict.stretch < 1e-6
    assert np.abs(np.linalg.norm(verdict.points - points, axis=2) - solution.errors).max() < 1e-9
    assert np.abs(turned_away(skeleton, effectors, solution, turns) - solution.rotation_errors).max() < 1e-6


@pytest.mark.parametrize(
    "name",
    ["arm", "arm, asymmetric", "arm, forearm turning", "leg, asymmetric", "10 balls of 30°", "8 windows beside rest"],
)
def test_targets_within_limits_are_met_in_position_and_rotation(name):
    family = FAMILIES[name]
    effectors = [Effector(end, rotation_weight=1.0) for end in family.ends]
    points, turns = wanted(family.skeleton, effectors, family.poses(np.random.default_rng(1), 100))
    solution = solve(
        family.skeleton,
        effectors,
        points,
        limits=family.limits,
        target_rotations=quaternion_from_matrix(turns),
        options=Options(tolerance=1e-3),
    )
    assert_true(family.skeleton, family.limits, effectors, solution, points, turns)
    assert (solution.status == Status.SOLVED).mean() >= 0.99
    assert solution.rotation_errors[solution.status == Status.SOLVED].max() <= 1e-3


@pytest.mark.one_pose
@pytest.mark.parametrize("root", ["FIXED", "FREE"])
def test_a_person_with_five_oriented_goals(root):
    skeleton = person()
    effectors = [Effector(end, rotation_weight=1.0) for end in ENDS]
    points, turns = wanted(skeleton, effectors, random_rotations(np.random.default_rng(2), (50, 22), 0.6))
    quaternions = quaternion_from_matrix(turns)
    solution = solve(skeleton, effectors, points, target_rotations=quaternions, root=root)
    assert (solution.status == Status.SOLVED).all()
    assert_true(skeleton, {}, effectors, solution, points, turns)
    for frame in range(5):
        one = solve(skeleton, effectors, points[frame], target_rotations=quaternions[frame], root=root)
        assert one.status == Status.SOLVED
        assert one.rotation_errors.max() <= 1e-4


def test_sweeps_alone_give_the_last_bone_its_rotation_at_once():
    """The paper's chain of ten: the tip's frame is fixed, the others reach for its head."""
    skeleton = straight_chain(10, 0.09)
    effectors = [Effector("b9", rotation_weight=1.0)]
    points, turns = wanted(skeleton, effectors, random_rotations(np.random.default_rng(3), (50, 10), 0.6))
    solution = solve(
        skeleton,
        effectors,
        points,
        target_rotations=quaternion_from_matrix(turns),
        options=Options(finish=False, tolerance=1e-3),
    )
    assert (solution.status == Status.SOLVED).mean() > 0.9
    assert solution.rotation_errors.max() < 1e-6


def test_at_a_limit_the_rotation_is_missed_rather_than_the_position():
    family = limb((0.3, 0.25, 0.1), ball(100), hinge("X", 0, 150), ball(20, (-20, 20)))
    effectors = [Effector("b2", rotation_weight=1.0)]
    points, turns = wanted(family.skeleton, effectors, family.poses(np.random.default_rng(4), 40))
    aside = turns @ checker.matrices(random_rotations(np.random.default_rng(5), (40, 1), 1.0))
    solution = solve(
        family.skeleton, effectors, points, limits=family.limits, target_rotations=quaternion_from_matrix(aside)
    )
    assert_true(family.skeleton, family.limits, effectors, solution, points, aside)
    missed = solution.status != Status.SOLVED
    assert missed.any()
    assert np.isin(solution.status[missed], (Status.LIMITED, Status.FITTED)).all()
    assert np.median(solution.errors[missed]) < 0.1 * np.median(solution.rotation_errors[missed]) * 0.65


@pytest.mark.one_pose
def test_a_higher_weight_rotates_farther():
    skeleton = straight_chain(2, 0.3)
    target, turn = np.array([[0.0, 0.8, 0.0]]), np.array([[np.cos(0.5), 0.0, 0.0, np.sin(0.5)]])
    missing = [
        solve(skeleton, [Effector("b1", rotation_weight=weight)], target, target_rotations=turn).rotation_errors[0]
        for weight in (0.0, 0.1, 0.5, 1.0)
    ]
    # The optimum, from up to 200 iterations that end only when the gradient vanishes.
    assert np.ravel(missing) == pytest.approx([1.0, 0.99626, 0.98160, 0.96388], abs=1e-3)


def test_a_rotation_without_a_position_and_a_position_without_a_rotation():
    skeleton = person()
    effectors = [Effector("head", rotation_weight=1.0), Effector("hand.L", rotation_weight=1.0)]
    points, turns = wanted(skeleton, effectors, random_rotations(np.random.default_rng(6), (10, 22), 0.5))
    quaternions = quaternion_from_matrix(turns)
    points[:, 0], quaternions[:, 1] = np.nan, np.nan
    solution = solve(skeleton, effectors, points, target_rotations=quaternions)
    assert (solution.status == Status.SOLVED).all()
    assert np.isnan(solution.errors[:, 0]).all()
    assert np.isnan(solution.rotation_errors[:, 1]).all()
    assert solution.errors[:, 1].max() < 1e-3
    assert solution.rotation_errors[:, 0].max() <= 1e-4


def test_without_weight_a_rotation_is_measured_and_changes_nothing():
    skeleton = person()
    targets = np.array([[[0.4, -0.4, 1.3]]])
    plain = solve(skeleton, [Effector("hand.L")], targets)
    measured = solve(skeleton, [Effector("hand.L")], targets, target_rotations=[[1.0, 0.0, 0.0, 0.0]])
    assert (measured.rotations == plain.rotations).all()
    assert np.isnan(plain.rotation_errors).all()
    frame = plain.matrices[0, skeleton.index("hand.L"), :3, :3]
    assert measured.rotation_errors[0, 0] == pytest.approx(checker.size_of_turn(frame), abs=1e-9)


@pytest.mark.one_pose
def test_a_limb_bends_toward_its_pole_and_the_hand_keeps_its_rotation():
    skeleton = straight_chain(3, 0.3)
    effectors = [Effector("b2", rotation_weight=1.0)]
    turn = random_rotations(np.random.default_rng(7), (1,), 0.5)
    pole = np.array([[0.3, 0.2, 0.9]])
    solution = solve(skeleton, effectors, np.array([[0.1, 0.6, 0.1]]), target_rotations=turn, bend_targets=pole)
    assert solution.status == Status.SOLVED
    base, elbow, wrist = solution.heads
    axis = (wrist - base) / np.linalg.norm(wrist - base)
    assert np.cross(axis, elbow - base) @ np.cross(axis, pole[0] - base) > 0.9999 * np.linalg.norm(
        np.cross(axis, elbow - base)
    ) * np.linalg.norm(np.cross(axis, pole[0] - base))


@given(seed=st.integers(0, 2**32 - 1), bones=st.integers(1, 8), count=st.integers(1, 4), free=st.booleans())
@settings(max_examples=30)
def test_any_tree_any_rotations(seed, bones, count, free):
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, bones, inheriting=0.8)
    names = [f"bone{rng.integers(bones)}" for _ in range(count)]
    effectors = [Effector(name, None, rng.uniform(0.1, 3), rng.choice([0.0, 0.3, 1.0])) for name in names]
    points, turns = wanted(skeleton, effectors, random_rotations(rng, (4, bones)))
    points += rng.normal(size=points.shape) * rng.choice([0.0, 0.3])
    start, root = random_rotations(rng, (4, bones), 2.0), "FREE" if free else "FIXED"
    quaternions = quaternion_from_matrix(turns)
    solution = solve(skeleton, effectors, points, target_rotations=quaternions, start=start, root=root)
    assert_true(skeleton, {}, effectors, solution, points, turns)
    asked = np.array([effector.rotation_weight for effector in effectors]) > 0
    assert (solution.rotation_errors[solution.status == Status.SOLVED][:, asked] <= 1e-4).all()
