"""The comparison methods themselves, checked with simple oracles."""

import numpy as np
import pytest
from support.checker import distances
from support.families import FAMILIES
from support.reference import algorithm_1
from support.rigs import paper_y, random_rotations, straight_chain
from support.solvers import chains, jacobian
from support.solvers.ccd import arc, ccd
from support.solvers.figure import Figure, turn_by
from support.solvers.loop import Turning, iterate, met, miss

pytestmark = pytest.mark.one_pose

SEEDS = range(4)


def crumpled_points(rng, links=9):
    """(links + 1, 3) a random chain of unequal links."""
    steps = rng.normal(size=(links, 3))
    steps *= rng.uniform(0.5, 1.5, (links, 1)) / np.linalg.norm(steps, axis=1, keepdims=True)
    return np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])


def lengths_of(points):
    return np.linalg.norm(np.diff(points, axis=0), axis=1)


def crumpled_figure(rng, skeleton, ends, **more):
    return Figure(skeleton, ends, rotations=random_rotations(rng, (len(skeleton),), 1.0), **more)


@pytest.mark.parametrize("seed", SEEDS)
def test_fabrik_on_arrays_is_algorithm_1(seed):
    rng = np.random.default_rng(seed)
    points = crumpled_points(rng)
    target = rng.normal(size=3) * 2.0
    run = chains.PointChain(chains.fabrik, points, target)
    for iterations in range(1, 8):
        run.advance()
        assert np.abs(run.points - algorithm_1(points, target, 0.0, iterations)[0]).max() < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_follow_the_leader_holds_both_ends_and_rests_only_where_the_lengths_are_right(seed):
    rng = np.random.default_rng(seed)
    points = crumpled_points(rng)
    lengths = lengths_of(points)
    resting = chains.follow_the_leader(points, lengths, points[-1])
    assert np.abs(resting - points).max() < 1e-12
    target = rng.normal(size=3) * 2.0
    moved = chains.follow_the_leader(points, lengths, target)
    assert np.array_equal(moved[[0, -1]], [points[0], target])
    assert np.abs(lengths_of(moved) / lengths - 1.0).max() > 0.01


@pytest.mark.parametrize("seed", SEEDS)
def test_triangulation_reaches_its_target_in_one_iteration_and_keeps_lengths(seed):
    rng = np.random.default_rng(seed)
    points = crumpled_points(rng)
    lengths = lengths_of(points)
    for share in (0.3, 0.7, 0.99):
        direction = rng.normal(size=3)
        target = direction / np.linalg.norm(direction) * share * lengths.sum()
        found = chains.triangulation(points, lengths, target)
        assert np.linalg.norm(found[-1] - target) < 1e-6
        assert np.abs(lengths_of(found) - lengths).max() < 1e-12


def test_triangulation_points_straight_at_what_is_out_of_reach():
    points = crumpled_points(np.random.default_rng(1))
    lengths = lengths_of(points)
    target = np.array([3.0, -20.0, 5.0])
    straight = np.concatenate([[0.0], np.cumsum(lengths)])[:, None] * target / np.linalg.norm(target)
    assert np.abs(chains.triangulation(points, lengths, target) - straight).max() < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_an_arc_rotates_one_direction_onto_the_other(seed):
    start, end = np.random.default_rng(seed).normal(size=(2, 3))
    turned = turn_by(arc(start, end)) @ (start / np.linalg.norm(start))
    assert np.abs(turned - end / np.linalg.norm(end)).max() < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_ccd_approaches_its_target_and_reaches_it(seed):
    rng = np.random.default_rng(seed)
    figure = crumpled_figure(rng, straight_chain(6), ["b5"])
    target = rng.normal(size=(1, 3)) * 0.1
    trace = iterate(Turning(ccd, figure, target), met(1e-6), 500)
    assert (np.diff(trace.errors) <= 1e-12).all()
    assert trace.errors[-1] <= 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_turning_a_figure_keeps_its_lengths_and_limits(seed):
    rng = np.random.default_rng(seed)
    family = FAMILIES["human, 5 goals"]
    figure = Figure(family.skeleton, family.ends, limits=family.limits)
    for _ in range(40):
        figure.turn(int(rng.integers(1, len(family.skeleton))), rng.normal(size=3))
    rest, skeleton = family.skeleton.rest[:, :3, :3], family.skeleton
    for name, limit in family.limits.items():
        bone = skeleton.index(name)
        parent = skeleton.parents[bone]
        local = (figure.frames[parent] @ rest[parent].T @ rest[bone]).T @ figure.frames[bone]
        assert np.degrees(distances(limit, local)[0]) < 0.01
    gaps = figure.frames @ np.swapaxes(figure.frames, 1, 2) - np.eye(3)
    assert np.abs(gaps).max() < 1e-5
    heads = figure.heads[skeleton.index("forearm.L")] - figure.heads[skeleton.index("upper_arm.L")]
    assert np.linalg.norm(heads) == pytest.approx(skeleton.lengths[skeleton.index("upper_arm.L")], abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_jacobian_is_how_tips_move_when_joints_turn(seed):
    ends, small = ("left2", "right2"), 1e-6
    matrix = jacobian.jacobian(crumpled_figure(np.random.default_rng(seed), paper_y(), ends))
    for column in range(matrix.shape[1]):
        figure = crumpled_figure(np.random.default_rng(seed), paper_y(), ends)
        before = figure.tips
        figure.turn(column // 3, small * np.eye(3)[column % 3])
        assert np.abs((figure.tips - before).ravel() / small - matrix[:, column]).max() < 1e-5


@pytest.mark.parametrize("seed", SEEDS)
def test_damped_steps_solve_the_damped_least_squares_problem(seed):
    rng = np.random.default_rng(seed)
    matrix, error = rng.normal(size=(6, 30)), rng.normal(size=6)
    stacked = np.vstack([matrix, 1.1 * np.eye(30)])
    expected = np.linalg.lstsq(stacked, np.append(error, np.zeros(30)), rcond=None)[0]
    assert np.allclose(jacobian.damped(matrix, error, 1.1), expected)
    assert np.allclose(jacobian.damped_by_svd(matrix, error, 1.1), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_transpose_step_is_the_best_along_the_gradient(seed):
    rng = np.random.default_rng(seed)
    matrix, error = rng.normal(size=(6, 30)), rng.normal(size=6)
    step = jacobian.transpose(matrix, error)
    left = [np.linalg.norm(error - matrix @ (factor * step)) for factor in (0.99, 1.0, 1.01)]
    assert np.argmin(left) == 1
    assert np.linalg.matrix_rank(np.stack([step, matrix.T @ error]), tol=1e-9) == 1


@pytest.mark.parametrize("rule", [jacobian.transpose, lambda matrix, error: jacobian.damped(matrix, error, 1.1)])
def test_jacobian_steps_bring_both_arms_of_the_y_to_their_targets(rule):
    rng = np.random.default_rng(6)
    wanted = crumpled_figure(rng, paper_y(), ("left2", "right2")).tips
    figure = crumpled_figure(rng, paper_y(), ("left2", "right2"))

    def iteration(figure, targets):
        jacobian.step(figure, targets, rule, unit=0.1, longest=0.5)

    run = Turning(iteration, figure, wanted)
    iterate(run, met(1e-3), 1000)
    assert miss(run) <= 1e-3
