"""The prior on rotations: it determines joints that targets do not, and gives way according to its weight."""

import numpy as np
import pytest
from support.families import limb

from fabrik_addon.core import Effector, Options, Solver, TargetError
from fabrik_addon.core.model.effector import PosePrior

REST = np.array([1.0, 0.0, 0.0, 0.0])


def turned(angle):
    """A rotation about local X."""
    return np.array([np.cos(0.5 * angle), np.sin(0.5 * angle), 0.0, 0.0])


def bone():
    """One bone of length 1, and the position of its tip after a rotation of one radian about X."""
    skeleton = limb([1.0], None).skeleton
    rest = skeleton.rest[0]
    tip = rest[:3, 3] + rest[:3, :3] @ [0.0, np.cos(1.0), np.sin(1.0)]
    return Solver(skeleton, [Effector(skeleton.names[0])], options=Options(tolerance=1e-9)), tip


@pytest.mark.one_pose
@pytest.mark.parametrize("weight", [0.01, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("frames", [None, 3])
def test_one_bone_ends_at_the_minimum_of_both_costs(weight, frames):
    solver, tip = bone()
    targets = tip[None] if frames is None else np.tile(tip, (frames, 1, 1))
    found = solver.solve(targets, prior=PosePrior(REST[None], np.array([weight])))
    angles = np.linspace(0.0, 1.0, 100001)
    cost = 2.0 - 2.0 * np.cos(1.0 - angles) + weight * angles**2
    angle = 2.0 * np.arctan2(np.abs(found.rotations[..., 0, 1]), np.abs(found.rotations[..., 0, 0]))
    assert angle == pytest.approx(angles[np.argmin(cost)], abs=2e-3)


def test_rotations_that_targets_do_not_determine_are_the_expected_ones():
    """With three bones, many poses reach a target; the one nearest to the expected pose is found."""
    skeleton = limb([0.4, 0.3, 0.2], None, None, None).skeleton
    solver = Solver(skeleton, [Effector(skeleton.names[-1])], options=Options(tolerance=1e-6))
    pose = np.stack([turned(0.4), turned(-0.7), turned(0.5)])
    there = solver.solve(np.zeros((1, 1, 3)), start=pose)
    assert there.rotations.shape == (1, 3, 4)
    tip = Solver(skeleton, [Effector(skeleton.names[-1])]).solve(np.full((1, 1, 3), np.nan), start=pose).tails[:, -1:]
    above = np.array([0.0, 0.0, 0.01])
    found = solver.solve(tip + above, prior=PosePrior(pose, np.full(3, 1e-6)))
    assert found.errors.max() < 1e-4
    assert 2.0 * np.arccos(np.abs((found.rotations * pose).sum(axis=-1)).clip(0, 1)).max() < 0.15


def test_a_prior_without_weight_changes_nothing():
    solver, tip = bone()
    targets = np.tile(tip, (4, 1, 1))
    plain, held = solver.solve(targets), solver.solve(targets, prior=PosePrior(REST[None], np.zeros(1)))
    assert held.rotations == pytest.approx(plain.rotations, abs=1e-6)


@pytest.mark.parametrize("weights", [[-1.0], [np.nan], [1.0, 1.0]])
def test_invalid_weights_are_refused(weights):
    solver, tip = bone()
    with pytest.raises(TargetError, match="prior's weights"):
        solver.solve(tip[None], prior=PosePrior(REST[None], np.array(weights)))
