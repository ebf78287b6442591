"""The paper's results on its models, and that our solver is at least as good; `make bench-paper` has the figures."""

import numpy as np
import pytest
from support.checker import judge
from support.solvers.chains import fabrik, follow_the_leader

from benchmarks.paper import chain, convergence, hinge_plane, humanoid, limited_chain, motions, table1, tracking
from fabrik_addon.core import Status

pytestmark = pytest.mark.one_pose

THE_PAPERS_ITERATIONS = 15.461


@pytest.mark.parametrize("start", ["slightly bent", "crumpled"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_targets_within_reach_take_fewer_steps_than_the_papers(start, seed):
    pose = chain.slightly_bent() if start == "slightly bent" else chain.crumpled(np.random.default_rng(seed))
    tip = chain.joints(pose)[-1]
    wanted = chain.targets_away(np.random.default_rng(seed), tip, 200, 0.0, 0.999)
    solution = chain.shipped().solve(wanted[:, None], start=pose)
    assert (solution.status == Status.SOLVED).all()
    assert solution.errors.max() <= chain.TOLERANCE
    assert solution.iterations.mean() <= THE_PAPERS_ITERATIONS
    assert solution.iterations.max() <= THE_PAPERS_ITERATIONS


def test_table_1_needs_fewer_iterations_than_algorithm_1():
    ours = table1.measure_ours(table1.targets(True))
    plain = table1.measure("FABRIK, Algorithm 1", table1.targets(True), True)
    assert ours.most_iterations <= THE_PAPERS_ITERATIONS
    assert ours.iterations < plain.iterations
    assert max(ours.miss, plain.miss) <= chain.TOLERANCE


def test_targets_beyond_reach_take_one_step_and_the_default_loop_many():
    wanted = table1.targets(False)
    assert table1.measure_ours(wanted).most_iterations == 1
    assert table1.measure("FABRIK, Algorithm 1", wanted[:5], False).iterations > 5
    end = chain.shipped().solve(wanted[0][None], start=chain.slightly_bent())
    line = wanted[0] / np.linalg.norm(wanted[0])
    assert np.abs(end.tails - np.arange(1, 10)[:, None] * chain.LINK * line).max() < 1e-3


def test_follow_the_leader_breaks_the_lengths_and_fabrik_does_not():
    within, beyond = convergence.target(), table1.targets(False)[0]
    assert convergence.stretch_after(follow_the_leader, within, 10) > 0.01
    assert convergence.stretch_after(follow_the_leader, beyond, 100) > 0.1
    assert convergence.stretch_after(fabrik, within, 10) < 1e-12
    assert convergence.stretch_after(fabrik, beyond, 100) < 1e-12


def test_a_limited_chain_meets_every_target_and_ccd_with_the_same_limits_does_not():
    wanted = limited_chain.targets(60)
    misses, counts, _ = limited_chain.run_fabrik({}, wanted[:20])
    of_ccd, counts_of_ccd, _ = limited_chain.run_ccd(wanted[:5], limited_chain.FAMILY.limits)
    assert misses.max() <= 1.001 * chain.TOLERANCE
    assert counts.mean() < counts_of_ccd.mean()
    assert np.median(misses) <= np.median(of_ccd)


def test_hinges_stay_in_a_plane_and_in_their_ranges_which_projection_leaves():
    wanted, normals = hinge_plane.targets(100)
    ours = hinge_plane.shipped().solve(wanted)
    broken = judge(hinge_plane.FAMILY.skeleton, hinge_plane.FAMILY.limits, hinge_plane.FAMILY.effectors, ours).break_deg
    assert (ours.status == Status.SOLVED).all()
    assert broken.max() < 0.01
    assert max(hinge_plane.out_of_plane(points) for points in hinge_plane.joints(ours)) < 1e-6
    projected = [hinge_plane.project(target[0], normal) for target, normal in zip(wanted, normals, strict=True)]
    assert max(abs(points @ normal).max() for (points, _, _), normal in zip(projected, normals, strict=True)) < 1e-6
    assert not all(hinge_plane.are_inside(angles) for _, _, angles in projected)


@pytest.mark.parametrize("moving", [tracking.snake(120), tracking.clicks(30)], ids=["dragged", "clicked"])
def test_the_planar_chain_stays_in_its_plane_on_its_target(moving):
    for track in (tracking.follow_each_by_itself(moving), tracking.follow_on(moving)):
        assert np.abs(track.joints[..., 0]).max() < 1e-6
        assert track.errors.max() < 0.01


def test_a_dragged_planar_chain_moves_no_farther_than_its_target():
    moving = tracking.snake(120)
    assert tracking.follow_on(moving).step_ratio(moving.targets) < 1.5


@pytest.mark.parametrize("name", ["chain", "y", "hand"])
def test_a_thousand_steps_in_and_out_of_reach_are_tracked(name):
    moving = tracking.model(name)
    within = moving.within_reach
    assert 0.2 < within.mean() < 0.95
    track = tracking.follow_each_by_itself(moving)
    assert np.median(track.errors[within]) < tracking.TOLERANCE
    assert track.shakes(moving.targets)[within[3:]].mean() < 0.005


def test_limits_bring_hidden_joints_nearer_to_where_they_were():
    motion = motions.dance(3, 20)
    free = np.median(humanoid.each_by_itself(motion, {}).error(motion))
    limited = np.median(humanoid.each_by_itself(motion, motion.limits).error(motion))
    assert limited < 0.8 * free


def test_the_true_pose_of_the_dance_meets_its_own_targets_and_limits():
    motion = motions.dance(25, 2)
    lengths = np.linalg.norm(motion.joints["forearm.L"] - motion.joints["upper_arm.L"], axis=1)
    assert np.ptp(lengths) < 1e-9
    solution = humanoid.each_by_itself(motion, motion.limits)
    assert solution.miss(motion).max() < humanoid.TOLERANCE
