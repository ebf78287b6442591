"""Slides: bones change their length between two factors only if targets cannot be met otherwise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import checker
from support.families import FAMILIES, ball, hinge, limb
from support.rigs import person, points_of, random_tree, straight_chain

from fabrik_addon.core import Effector, Status, forward_kinematics, solve

TIP = [Effector("b9")]


def assert_true(skeleton, slides, effectors, solution, targets):
    """Lengths in their ranges, heads by forward kinematics at these lengths, and correct errors."""
    factors = solution.lengths / skeleton.lengths
    low, high = np.array([slides.get(name, (1.0, 1.0)) for name in skeleton.names]).T
    assert (factors >= low - 1e-9).all()
    assert (factors <= high + 1e-9).all()
    matrices = forward_kinematics(skeleton, solution.rotations, solution.root_location, solution.lengths)
    assert np.abs(matrices[..., :3, 3] - solution.heads).max() < 1e-9
    columns = []
    for effector in effectors:
        bone = skeleton.index(effector.bone)
        offset = np.array([0.0, skeleton.lengths[bone], 0.0] if effector.offset is None else effector.offset)
        offset = offset * np.stack(
            [np.ones_like(factors[:, bone]), factors[:, bone], np.ones_like(factors[:, bone])], 1
        )
        columns.append(matrices[:, bone, :3, 3] + np.einsum("fij,fj->fi", matrices[:, bone, :3, :3], offset))
    errors = np.linalg.norm(np.stack(columns, axis=1) - targets, axis=2)
    assert errors == pytest.approx(solution.errors, abs=1e-9)


def test_targets_within_reach_are_met_at_rest_lengths():
    skeleton = straight_chain(10, 0.09)
    targets = np.random.default_rng(1).normal(size=(20, 1, 3)) * 0.2
    solution = solve(skeleton, TIP, targets, slides=dict.fromkeys(skeleton.names, (0.5, 2.0)))
    assert (solution.status == Status.SOLVED).all()
    assert (solution.lengths == skeleton.lengths).all()


@pytest.mark.one_pose
@pytest.mark.parametrize("share", [1.02, 1.2, 1.49])
def test_a_chain_stretches_to_reach(share):
    skeleton = straight_chain(10, 0.09)
    slides = {f"b{bone}": (1.0, 2.0) for bone in range(5)}
    directions = np.random.default_rng(2).normal(size=(20, 1, 3))
    targets = directions / np.linalg.norm(directions, axis=2, keepdims=True) * 0.9 * share
    solution = solve(skeleton, TIP, targets, slides=slides)
    assert (solution.status == Status.SOLVED).all()
    assert_true(skeleton, slides, TIP, solution, targets)
    one = solve(skeleton, TIP, targets[0], slides=slides)
    assert one.status == Status.SOLVED
    assert one.lengths == pytest.approx(solution.lengths[0], abs=1e-3)


def test_beyond_full_extension_the_chain_points_at_its_target():
    skeleton = straight_chain(4)
    slides = {"b1": (0.8, 1.5), "b3": (1.0, 1.1)}
    target = np.array([[[0.3, 0.5, 0.4]]])
    solution = solve(skeleton, [Effector("b3")], target, slides=slides)
    assert solution.status[0] == Status.UNREACHABLE
    assert solution.lengths[0] == pytest.approx([0.1, 0.15, 0.1, 0.11], abs=1e-4)
    away = target[0, 0] / np.linalg.norm(target[0, 0])
    assert solution.tails[0, 3] == pytest.approx(away * 0.46, abs=1e-3)


def test_a_range_without_rest_begins_at_its_nearer_end():
    skeleton = straight_chain(2, 0.3)
    slides = {"b0": (1.2, 1.4)}
    targets = np.array([[[0.1, 0.5, 0.1]], [[0.1, 0.69, 0.1]]])
    solution = solve(skeleton, [Effector("b1")], targets, slides=slides)
    assert (solution.status == Status.SOLVED).all()
    assert_true(skeleton, slides, [Effector("b1")], solution, targets)
    assert solution.lengths[0] == pytest.approx([0.36, 0.3])
    assert solution.lengths[1, 0] > 0.37


def test_a_piston_between_fixed_joints_only_slides():
    """The paper's prismatic joint alone: nothing can rotate."""
    family = limb((0.2, 0.3), hinge("X", 0, 0), hinge("X", 0, 0))
    effector, slides = [Effector("b1")], {"b1": (0.5, 1.5)}
    targets = np.array([[[0.0, 0.4, 0.0]], [[0.0, 0.6, 0.0]], [[0.0, 0.9, 0.0]]])
    solution = solve(family.skeleton, effector, targets, limits=family.limits, slides=slides)
    assert solution.lengths[:, 1] == pytest.approx([0.2, 0.4, 0.45], abs=1e-4)
    assert solution.status[:2].tolist() == [Status.SOLVED] * 2
    assert solution.status[2] == Status.UNREACHABLE


def test_limits_hold_while_an_arm_stretches():
    family = limb((0.3, 0.25, 0.1), ball(60, (-60, 60)), hinge("X", 10, 150), ball(40))
    slides = {"b0": (0.9, 1.2), "b1": (0.9, 1.2)}
    targets = family.targets(np.random.default_rng(3), 40) * 1.12
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits, slides=slides)
    assert_true(family.skeleton, slides, family.effectors, solution, targets)
    turns = checker.matrices(solution.rotations)
    for bone, limit in enumerate(family.limits.values()):
        assert np.degrees(checker.distances(limit, turns[:, bone])[0]).max() < 0.01
    stiff = solve(family.skeleton, family.effectors, targets, limits=family.limits)
    assert (solution.errors <= stiff.errors * (1 + 1e-6) + 1e-5).all()
    assert (solution.status == Status.SOLVED).sum() > (stiff.status == Status.SOLVED).sum()


@pytest.mark.parametrize("root", ["FIXED", "FREE"])
def test_a_person_with_a_rubber_arm(root):
    skeleton = person()
    effectors = [Effector(name) for name in ("hand.L", "hand.R", "foot.L", "foot.R", "head")]
    targets = np.tile(points_of(skeleton, skeleton.rest, effectors), (10, 1, 1))
    targets[:, 0] += np.random.default_rng(4).uniform(0.1, 0.3, (10, 3)) * [1.0, -1.0, 1.0]
    targets[:, 4, 2] -= 0.02
    slides = {"upper_arm.L": (1.0, 3.0), "forearm.L": (1.0, 3.0)}
    solution = solve(skeleton, effectors, targets, slides=slides, root=root, limits=FAMILIES["human, 5 goals"].limits)
    assert_true(skeleton, slides, effectors, solution, targets)
    assert (solution.status == Status.SOLVED).mean() >= 0.8


@given(seed=st.integers(0, 2**32 - 1), bones=st.integers(1, 8), count=st.integers(1, 3), free=st.booleans())
@settings(max_examples=25)
def test_any_tree_any_slides(seed, bones, count, free):
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, bones, inheriting=0.8)
    chosen = rng.permutation(bones)[: rng.integers(1, bones + 1)]
    slides = {f"bone{bone}": tuple(np.sort(rng.uniform(0.4, 2.0, 2))) for bone in chosen}
    effectors = [
        Effector(f"bone{rng.integers(bones)}", None if rng.random() < 0.5 else tuple(rng.normal(size=3) * 0.2))
        for _ in range(count)
    ]
    targets = rng.normal(size=(4, count, 3)) * rng.uniform(0.1, 1.5)
    solution = solve(skeleton, effectors, targets, slides=slides, root="FREE" if free else "FIXED")
    assert_true(skeleton, slides, effectors, solution, targets)
