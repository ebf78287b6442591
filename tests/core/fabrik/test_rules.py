"""The two rules for limited joints, each on and off, compared with the paper's plain method."""

from functools import cache

import numpy as np
import pytest
from support.families import FAMILIES

from fabrik_addon.core import Options, Solver, Status, solve
from fabrik_addon.core.attempt import bend_straight_limbs
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.fabrik.limbs import find_hinge_limbs, place_bodies
from fabrik_addon.core.fabrik.passes import Passes, Sweep, SweepTargets

FRAMES = 200
SWEEPS = 20
TOLERANCE = 1e-3


@cache
def share_solved(name, *, carrying=True, linking=True):
    """The fraction of reachable targets that sweeps alone meet, with one of the rules switched off."""
    family = FAMILIES[name]
    targets = family.targets(np.random.default_rng(21), FRAMES)
    problem = Solver(family.skeleton, family.effectors, limits=family.limits).problem
    bodies, count = problem.links, targets.shape[1]
    limbs = find_hinge_limbs(bodies) if linking else []
    sweeper = Passes(many, problem.bodies, problem.goals, bodies, limbs, plain=False)
    points = [many.vector(column) for column in np.moveaxis(targets, 1, 0)]
    targeted = SweepTargets(points, [1.0] * count, [1.0] * len(bodies), {})
    legal = problem.legal(np.tile([1.0, 0.0, 0.0, 0.0], (FRAMES, len(family.skeleton), 1)))[:, problem.bones]
    pose = problem.bodies.pose(legal, np.tile(family.skeleton.rest[0, :3, 3], (FRAMES, 1)))
    bent = bend_straight_limbs(problem, pose)
    root = many.vector(np.tile(family.skeleton.rest[0, :3, 3], (FRAMES, 1)))
    start = local = many.quaternions(bent)
    bound = [np.zeros(FRAMES, dtype=bool) for _ in bodies]
    for _ in range(SWEEPS):
        if not carrying:
            bound = [np.zeros(FRAMES, dtype=bool) for _ in bodies]
        turning = [free if body.limit is None else own for body, free, own in zip(bodies, start, local, strict=True)]
        placed = place_bodies(bodies, local, root)
        local = sweeper.sweep(Sweep(placed.heads, placed.orientations, targeted, bound, {}), turning)
    placed = place_bodies(bodies, local, root)
    attached = [(body, each) for body, link in enumerate(bodies) for each in link.attachments]
    reached = {end: placed.point(body, each) for body, each in attached for end in each.effectors}
    tips = many.stack([reached[effector] for effector in range(count)], FRAMES)
    return met(family, np.linalg.norm(tips - targets, axis=2))


def share_solved_plainly(name):
    """The fraction that the paper's method meets, which clamps to the limits at each step of both passes."""
    family = FAMILIES[name]
    targets = family.targets(np.random.default_rng(21), FRAMES)
    options = Options(plain=True, max_sweeps=SWEEPS, tolerance=TOLERANCE)
    return met(family, solve(family.skeleton, family.effectors, targets, limits=family.limits, options=options).errors)


def met(family, errors):
    return float((errors.max(axis=1) <= TOLERANCE * family.size).mean())


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("arm", 0.65),
        ("leg", 0.5),
        ("leg, asymmetric", 0.3),
        ("8 hinges never straight", 0.1),
        ("6 crossed hinges", 0.05),
        ("human, 5 goals", 0.05),
        ("hand, 5 goals", 0.05),
    ],
)
def test_a_bone_with_an_active_limit_moves_without_rotating(name, without):
    """A bone at its limit only moves, so that the bodies before it receive its real target."""
    assert share_solved(name, carrying=False) <= without
    assert share_solved(name) >= without + 0.2


@pytest.mark.parametrize(("name", "without"), [("arm", 0.85), ("leg", 0.65), ("finger", 0.4), ("alternating", 0.4)])
def test_a_ball_and_its_hinges_are_one_link(name, without):
    assert share_solved(name, linking=False) <= without
    assert share_solved(name) >= max(0.8, without + 0.1)


@pytest.mark.parametrize("name", ["arm", "leg", "finger", "6 crossed hinges", "human, 5 goals", "hand, 5 goals"])
def test_the_plain_method_leaves_most_targets_unsolved(name):
    plainly = share_solved_plainly(name)
    assert plainly <= 0.15
    assert share_solved(name, carrying=False, linking=False) <= 0.15
    assert share_solved(name) >= plainly + 0.2


def test_sweeps_called_directly_are_those_of_a_solve():
    """The sweeps of this test are those of `Options(finish=False)`."""
    name, family = "leg", FAMILIES["leg"]
    targets = family.targets(np.random.default_rng(21), FRAMES)
    options = Options(finish=False, max_sweeps=SWEEPS, tolerance=TOLERANCE)
    solution = solve(family.skeleton, family.effectors, targets, limits=family.limits, options=options)
    assert share_solved(name) == pytest.approx((solution.status == Status.SOLVED).mean(), abs=0.03)
