"""When a fit ends, and that the unit of length does not affect the result."""

from dataclasses import replace

import numpy as np
import pytest
from support import checker, walker
from support.families import FAMILIES

from fabrik_addon.core import Effector, Options, Skeleton, Solver, Status, solve

NOISE = 0.01
# A fit that takes this many sweeps and steps was cut off.
MOST = 60


def enlarged(skeleton, factor):
    """The same rig in another unit of length."""
    rest = np.array(skeleton.rest)
    rest[:, :3, 3] *= factor
    return Skeleton(skeleton.names, skeleton.parents, rest, skeleton.lengths * factor, skeleton.inherits_rotation)


@pytest.mark.parametrize("factor", [1e-3, 1e-2, 1e2, 1e3])
def test_markers_are_fitted_equally_in_every_unit(factor):
    """Both the angles and the location of a free root are fitted."""
    markers = walker.true_positions()[:12]
    markers = markers + NOISE * np.random.default_rng(5).normal(size=markers.shape)
    expected = Solver(walker.skeleton(), walker.effectors(), root="FREE").solve(markers)
    effectors = [Effector(each.bone, tuple(np.array(each.offset) * factor)) for each in walker.effectors()]
    found = Solver(enlarged(walker.skeleton(), factor), effectors, root="FREE").solve(markers * factor)
    assert (found.iterations == expected.iterations).all()
    np.testing.assert_allclose(found.rotations, expected.rotations, atol=1e-6)
    np.testing.assert_allclose(found.root_location / factor, expected.root_location, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_bones_slide_equally_in_every_unit(factor):
    family = FAMILIES["10 balls of 15°"]
    slides = {"b2": (0.5, 1.5), "b7": (0.8, 1.1)}
    targets = family.targets(np.random.default_rng(9), 20) * 1.1
    options = {"limits": family.limits, "slides": slides, "options": Options(restarts=0)}
    expected = solve(family.skeleton, family.effectors, targets, **options)
    found = solve(enlarged(family.skeleton, factor), family.effectors, targets * factor, **options)
    assert (found.iterations == expected.iterations).all()
    np.testing.assert_allclose(found.rotations, expected.rotations, atol=1e-6)
    np.testing.assert_allclose(found.lengths / factor, expected.lengths, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "noise"), [("human, 5 goals", 0.05), ("human, ankles", 0.05), ("hand, never flat", 0.01)]
)
def test_a_fit_ends_only_if_no_joint_can_improve_it(name, noise):
    """Targets beyond the limits: if the status is stationary, the independent checker agrees."""
    family = FAMILIES[name]
    rng = np.random.default_rng(3)
    targets = family.targets(rng, 40)
    targets += noise * rng.normal(size=targets.shape)
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits, options=Options(restarts=0))
    ended = (solution.status != Status.SOLVED) & (solution.iterations < MOST)
    assert ended.sum() >= 8
    steepest = checker.steepest(family.skeleton, family.limits, family.effectors, solution, targets)
    assert steepest[ended].max() < 0.03


@pytest.mark.parametrize("name", ["human, 5 goals", "human, ankles"])
def test_a_later_goal_is_missed_only_if_no_joint_can_improve_it(name):
    """The head has a lower priority than hands and feet, and almost no weight; each pose is reachable."""
    family = FAMILIES[name]
    effectors = [replace(effector, priority=int(effector.bone == "head")) for effector in family.effectors]
    targets = family.targets(np.random.default_rng(4), 200)
    solution = solve(family.skeleton, effectors, targets, limits=family.limits, options=Options(restarts=0))
    assert (solution.status == Status.SOLVED).sum() >= 199
    assert not (solution.status == Status.LIMITED).any()
