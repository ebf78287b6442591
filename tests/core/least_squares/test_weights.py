"""Weights that differ from frame to frame, and solves that start near their result."""

import numpy as np
import pytest
from support import walker
from support.rigs import straight_chain

from fabrik_addon.core import Effector, Options, Solver, TargetError

CHAIN = straight_chain(3)


def make_solver(**options):
    return Solver(walker.skeleton(), walker.effectors(), root="FREE", options=Options(restarts=0, **options))


def test_a_target_without_weight_is_ignored():
    targets = np.array(walker.true_positions()[:4])
    targets[:, 5] += 0.4
    weights = np.ones(targets.shape[:2])
    weights[1:3, 5] = 0.0
    weighed = make_solver().solve(targets, weights=weights)
    unseen = np.array(targets)
    unseen[1:3, 5] = np.nan
    assert weighed.heads == pytest.approx(make_solver().solve(unseen).heads, abs=1e-6)
    assert (np.nan_to_num(weighed.errors[[0, 3]]).max(axis=1) > 0.05).all()


def test_one_row_of_weights_is_for_all_frames():
    targets = walker.true_positions()[:3] + 0.01 * np.random.default_rng(1).normal(size=(3, 42, 3))
    row = np.random.default_rng(2).uniform(0.2, 2.0, 42)
    effectors = [Effector(e.bone, e.offset, w) for e, w in zip(walker.effectors(), row.tolist(), strict=True)]
    own = Solver(walker.skeleton(), effectors, root="FREE", options=Options(restarts=0)).solve(targets)
    assert make_solver().solve(targets, weights=row).heads == pytest.approx(own.heads, abs=1e-9)


def test_from_a_close_start_the_finish_alone_converges():
    positions = walker.true_positions()[:20]
    start = make_solver().solve(positions)
    roots = start.root_location + 0.01
    again = make_solver(max_sweeps=0).solve(positions, start=start.rotations, start_location=roots)
    assert again.errors.max() < 1e-3
    assert again.iterations.max() <= start.iterations.max()


@pytest.mark.parametrize("weights", [[-1.0], [np.nan], [1.0, 1.0], [[1.0], [1.0]]])
def test_weights_are_checked(weights):
    with pytest.raises(TargetError, match="weight"):
        Solver(CHAIN, [Effector("b2")]).solve(np.zeros((3, 1, 3)), weights=weights)
