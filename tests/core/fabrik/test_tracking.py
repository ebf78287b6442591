"""Targets that move on sinusoids in and out of reach, as in the paper's tracking experiments, with joint limits."""

import numpy as np
import pytest
from support import checker
from support.families import FAMILIES

from fabrik_addon.core import Options, Solver, solve

STEPS = 160
NEAR = 0.95
FARTHEST_STEP = 3.0
HALF_TURN = np.pi / 2


def sinusoids(family, seed):
    """(STEPS, E, 3) about the middle of the effectors' positions in legal poses, and somewhat beyond those."""
    rng = np.random.default_rng(seed)
    places = family.targets(rng, 400)
    phases = rng.uniform(0, 2 * np.pi, 3)
    waves = np.sin(np.linspace(0, 2 * np.pi, STEPS)[:, None] * (2, 3, 1) + phases)
    return places.mean(axis=0) + waves[:, None] * places.std(axis=0) * 1.6


def steps(family, targets, solution):
    """Between frames: the farthest joint step divided by the target's, the largest rotation, and quiet frames.

    A frame is quiet if it is not near full reach, and if the same limits are active as before.
    """
    joints = np.concatenate([solution.heads, solution.tails], axis=1)
    moved = np.linalg.norm(np.diff(joints, axis=0), axis=2).max(axis=1)
    wanted = np.linalg.norm(np.diff(targets, axis=0), axis=2).max(axis=1)
    turns = checker.matrices(solution.rotations)
    sharpest = checker.size_of_turn(np.swapaxes(turns[:-1], -1, -2) @ turns[1:]).max(axis=1)
    solver = Solver(family.skeleton, family.effectors, limits=family.limits)
    reach = np.linalg.norm(targets - family.skeleton.rest[0, :3, 3], axis=2) / solver.reaches.far
    inside = (reach < NEAR).all(axis=1)
    binds = checker.judge(family.skeleton, family.limits, family.effectors, solution).slack < 1e-4
    quiet = inside[1:] & inside[:-1] & (binds[1:] == binds[:-1]).all(axis=1)
    return moved / wanted, sharpest, quiet


@pytest.mark.parametrize("name", [pytest.param("arm", marks=pytest.mark.one_pose), "leg", "finger"])
def test_no_joint_moves_faster_than_the_target_and_nothing_spins(name):
    family = FAMILIES[name]
    targets = sinusoids(family, 0)
    solution = solve(
        family.skeleton, family.effectors, targets, limits=family.limits, options=Options(repair_pops=True)
    )
    farther, sharpest, quiet = steps(family, targets, solution)
    assert quiet.sum() > STEPS / 2
    assert farther[quiet].max() <= FARTHEST_STEP
    assert sharpest.max() < HALF_TURN


def test_the_same_target_gives_the_same_pose_whatever_came_before():
    family = FAMILIES["arm"]
    targets = sinusoids(family, 1)[::10]
    forth = solve(family.skeleton, family.effectors, targets, limits=family.limits)
    order = np.random.default_rng(0).permutation(len(targets))
    mixed = solve(family.skeleton, family.effectors, targets[order], limits=family.limits)
    assert np.abs(mixed.rotations - forth.rotations[order]).max() < 1e-9
