"""Poses that are placed together are those that are placed one by one."""

import numpy as np
import pytest
from support.rigs import random_rotations, random_tree

from fabrik_addon.core import forward_kinematics
from fabrik_addon.core.kernel import bodies as kernel
from fabrik_addon.core.kernel.bodies import Bodies

BONES = 9


@pytest.mark.parametrize("stretched", [False, True])
@pytest.mark.parametrize("inheriting", [1.0, 0.6])
@pytest.mark.parametrize("count", [1, BONES - 1, BONES, BONES + 1, 5 * BONES])
def test_poses_placed_together_are_those_placed_one_by_one(monkeypatch, count, inheriting, stretched):
    """With more poses than bones, they are placed in blocks, here of four."""
    monkeypatch.setattr(kernel, "BLOCK_NUMBERS", 4 * 27 * BONES)
    random = np.random.default_rng(count)
    skeleton = random_tree(random, BONES, inheriting=inheriting)
    local, roots = random_rotations(random, (count, BONES)), random.normal(size=(count, 3))
    factors = random.uniform(0.5, 2.0, (count, BONES)) if stretched else None
    bodies = Bodies(skeleton, range(BONES), [np.eye(3)] * BONES, free_root=True, slides=[2, 5] if stretched else [])
    found = bodies.placed(local, roots, factors)
    for row in range(count):
        alone = bodies.placed(local[row], roots[row], None if factors is None else factors[row])
        for together, each in zip(found, alone, strict=True):
            np.testing.assert_allclose(together[row], each, atol=1e-12)


@pytest.mark.parametrize("count", [BONES, BONES + 1])
@pytest.mark.parametrize("root", [None, (1.0, 2.0, 3.0)])
def test_lengths_and_a_root_that_all_frames_share(count, root):
    """Fixed: lengths (J,) of more frames than bones were an IndexError."""
    random = np.random.default_rng(count)
    skeleton, lengths = random_tree(random, BONES), random.uniform(0.1, 0.5, BONES)
    rotations = random_rotations(random, (count, BONES))
    found = forward_kinematics(skeleton, rotations, root, lengths)
    for own, matrices in zip(rotations, found, strict=True):
        np.testing.assert_allclose(matrices, forward_kinematics(skeleton, own, root, lengths), atol=1e-12)
