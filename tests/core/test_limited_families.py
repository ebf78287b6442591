"""Limited rigs: everything that the limits allow is reached, and no limit or length is ever violated."""

import numpy as np
import pytest
from support.checker import judge
from support.families import FAMILIES

from fabrik_addon.core import Options, Status, solve

TARGETS = 150


@pytest.mark.parametrize("name", FAMILIES)
def test_targets_from_legal_poses_are_met(name):
    """Cold start, tolerance 1e-3; `make bench` counts over 2,000 targets."""
    family = FAMILIES[name]
    targets = family.targets(np.random.default_rng(5), TARGETS)
    options = Options(tolerance=1e-3)
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits, options=options)
    assert (solution.status == Status.SOLVED).mean() >= 0.985
    assert_legal(family, solution)


@pytest.mark.parametrize(
    "name", ["arm, asymmetric", "finger, never straight", "8 windows beside rest", "hand, 5 goals"]
)
def test_targets_anywhere_break_no_limit(name):
    family = FAMILIES[name]
    rng = np.random.default_rng(6)
    targets = rng.normal(size=(40, len(family.ends), 3)) * family.size * 0.5
    targets[rng.random(targets.shape[:2]) < 0.2] = np.nan
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits, options=Options(restarts=2))
    assert_legal(family, solution)


def assert_legal(family, solution):
    """The independent checker finds limits kept to 0.01°, and lengths to 1e-6."""
    verdict = judge(family.skeleton, family.limits, family.effectors, solution)
    assert verdict.break_deg.max() < 0.01
    assert verdict.stretch < 1e-6
