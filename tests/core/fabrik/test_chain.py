"""Unlimited chains: the paper's sweeps, and the exact finish."""

from itertools import pairwise

import numpy as np
import pytest
from support.reference import algorithm_1
from support.rigs import from_joints, straight_chain

from fabrik_addon.core import Effector, Options, Status, solve
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.fabrik import chain


def bent_points(rng, lengths):
    """A random chain as a list of points."""
    directions = rng.normal(size=(len(lengths), 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.vstack([np.zeros(3), np.cumsum(directions * np.asarray(lengths)[:, None], axis=0)])


def targets_within(rng, lengths, count, low=0.0, high=1.0):
    """Random points at these fractions of the reach, but not nearer to the root than the lengths allow."""
    inner = max(0.0, 2 * max(lengths) - sum(lengths))
    distances = inner + (sum(lengths) - inner) * rng.uniform(low, high, count)
    directions = rng.normal(size=(count, 3))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True) * distances[:, None]


@pytest.mark.parametrize("bones", [2, 3, 9, 30])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sweeps_are_algorithm_1(bones, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.uniform(0.05, 1.0, bones)
    points = bent_points(rng, lengths)
    targets = targets_within(rng, lengths, 8, 0.05, 0.95)
    swept = [many.vector(np.tile(point, (8, 1))) for point in points]
    for iterations in range(1, 11):
        swept = chain.sweep(many, swept, list(lengths), many.vector(targets))
        oracle = [algorithm_1(points, target, 0.0, iterations)[0] for target in targets]
        assert np.abs(many.stack(swept, 8) - np.array(oracle)).max() < 1e-9 * lengths.sum()


def test_plain_solve_stops_where_algorithm_1_does():
    skeleton = from_joints(
        [
            ("a", -1, (0, 0, 0), (0, 0.2, 0.1)),
            ("b", 0, (0, 0.2, 0.1), (0.1, 0.5, 0)),
            ("c", 1, (0.1, 0.5, 0), (0, 0.7, 0.2)),
        ]
    )
    points = np.vstack([skeleton.rest[:, :3, 3], [0, 0.7, 0.2]])
    target = np.array([0.3, 0.2, 0.35])
    tolerance = 1e-4
    options = Options(plain=True, tolerance=tolerance)
    solution = solve(skeleton, [Effector("c")], target[None, None], options=options)
    expected, iterations = algorithm_1(points, target, tolerance * skeleton.lengths.sum())
    assert solution.iterations[0] == iterations
    assert np.abs(solution.tails[0] - np.array(expected[1:])).max() < 1e-9
    assert solution.status[0] == Status.SOLVED


def bent_start(bones):
    """Points of a chain of 0.1 m bones on a slight arc, as a solve starts from."""
    angles = 0.1 * (1 - 2 * np.arange(bones) / max(bones - 1, 1))
    steps = 0.1 * np.stack([np.zeros(bones), np.cos(angles), np.sin(angles)], axis=1)
    return np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])


@pytest.mark.parametrize("bones", [2, 3, 9, 30, 100])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9, 0.99, 0.999, 0.9999])
def test_the_finish_is_exact_in_six_steps(bones, share):
    rng = np.random.default_rng(bones)
    reach = 0.1 * bones
    directions = rng.normal(size=(400, 3))
    target = many.vector(directions / np.linalg.norm(directions, axis=1, keepdims=True) * reach * share)
    points = [many.vector(np.tile(point, (400, 1))) for point in bent_start(bones)]
    for _ in range(5):
        points = chain.sweep(many, points, [0.1] * bones, target)
    points, steps = chain.scale_to_chord(many, points, [0.1] * bones, target)
    met = (points[-1] - target).length < 1e-6 * reach
    assert (met & (steps <= 6)).mean() >= 0.99
    for a, b in pairwise(points):
        assert np.abs((b - a).length - 0.1).max() < 1e-12


@pytest.mark.parametrize("bones", [2, 3, 4, 9, 30, 100])
@pytest.mark.parametrize("share", [0.0, 1e-4, 0.02, 0.1, 0.2, 0.3, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0])
def test_every_target_within_reach_is_met_exactly(bones, share):
    skeleton = straight_chain(bones)
    rng = np.random.default_rng(bones)
    directions = rng.normal(size=(200, 3))
    targets = directions / np.linalg.norm(directions, axis=1, keepdims=True) * 0.1 * bones * share
    solution = solve(skeleton, [Effector(f"b{bones - 1}")], targets[:, None])
    assert (solution.status == Status.SOLVED).all()
    assert solution.errors.max() < 1e-6 * 0.1 * bones


@pytest.mark.parametrize("seed", range(12))
def test_chains_of_unequal_bones_reach_all_that_their_lengths_allow(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.uniform(0.01, 1.0, int(rng.integers(2, 12)))
    heads = np.concatenate([[0.0], np.cumsum(lengths)])
    skeleton = from_joints(
        [(f"b{i}", i - 1, (0, heads[i], 0), (0, heads[i + 1], 0)) for i in range(len(lengths))],
    )
    targets = targets_within(rng, lengths, 300, 0.002, 0.999)
    solution = solve(skeleton, [Effector(skeleton.names[-1])], targets[:, None])
    assert (solution.status == Status.SOLVED).all()


@pytest.mark.parametrize("excess", [1.001, 1.1, 10.0])
def test_beyond_reach_the_chain_is_the_direct_line_in_one_step(excess):
    skeleton = straight_chain(9)
    target = np.array([0.3, -0.5, 0.2])
    target *= excess * 0.9 / np.linalg.norm(target)
    solution = solve(skeleton, [Effector("b8")], target[None, None])
    expected, _ = algorithm_1(np.vstack([skeleton.rest[:, :3, 3], [0, 0.9, 0]]), target, 0)
    assert solution.status[0] == Status.UNREACHABLE
    assert solution.iterations[0] == 1
    assert np.abs(solution.tails[0] - np.array(expected[1:])).max() < 1e-9


def test_inside_reach_the_tip_comes_as_near_as_the_lengths_allow():
    skeleton = from_joints([("long", -1, (0, 0, 0), (0, 1, 0)), ("short", 0, (0, 1, 0), (0, 1.3, 0))])
    solution = solve(skeleton, [Effector("short")], np.array([[[0.2, 0.0, 0.1]]]))
    assert solution.status[0] == Status.UNREACHABLE
    assert solution.errors[0, 0] == pytest.approx(0.7 - np.hypot(0.2, 0.1), abs=1e-12)


def test_a_dead_straight_chain_bends_for_a_target_on_its_axis():
    """Sweeps never bend a straight chain with joints at z = 0, 40, 80, 120 for a target at 100."""
    skeleton = from_joints([(f"b{i}", i - 1, (0, 0, 40 * i), (0, 0, 40 * i + 40)) for i in range(3)])
    solution = solve(skeleton, [Effector("b2")], np.array([[[0.0, 0.0, 100.0]]]))
    assert solution.status[0] == Status.SOLVED
    assert solution.errors[0, 0] < 1e-4


def test_zero_length_bones_and_a_target_on_the_root():
    skeleton = from_joints(
        [("a", -1, (0, 0, 0), (0, 1, 0)), ("none", 0, (0, 1, 0), (0, 1, 0)), ("b", 1, (0, 1, 0), (0, 2, 0))]
    )
    solution = solve(skeleton, [Effector("b")], np.array([[[0.0, 0.0, 0.0]], [[0.5, 0.5, 0.5]], [[0.0, 2.0, 0.0]]]))
    assert (solution.status == Status.SOLVED).all()
    assert np.isfinite(solution.rotations).all()


@pytest.mark.one_pose
def test_a_lone_bone_points_at_its_target():
    skeleton = straight_chain(1)
    solution = solve(skeleton, [Effector("b0")], np.array([[0.0, 0.0, 0.1]]))
    assert solution.status == Status.SOLVED
    assert np.abs(solution.tails[0] - [0, 0, 0.1]).max() < 1e-6


def test_the_finish_ends_near_the_pose_that_plain_sweeps_reach():
    skeleton = straight_chain(9)
    rng = np.random.default_rng(4)
    targets = targets_within(rng, [0.1] * 9, 100, 0.4, 0.95)[:, None]
    start = solve(skeleton, [Effector("b8")], targets[:1] * 0.9).rotations[0]
    exact = solve(skeleton, [Effector("b8")], targets, start=start)
    plain = solve(
        skeleton, [Effector("b8")], targets, start=start, options=Options(plain=True, tolerance=1e-9, max_sweeps=20_000)
    )
    distance = np.linalg.norm(exact.tails - plain.tails, axis=2).max(axis=1)
    assert np.median(distance) < 0.004 * 0.9
