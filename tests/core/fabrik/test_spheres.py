"""The position of a hidden joint between two known ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rigs import person, random_rotations, straight_chain

from fabrik_addon.core import Effector, Status, forward_kinematics, solve
from fabrik_addon.core.backend import array as many
from fabrik_addon.core.fabrik.chain import joint_between


def joint(first, second, to_first, to_second, previous):
    """(F, 3) positions of the joint, from (F, 3) positions and lengths."""
    places = [many.vector(np.atleast_2d(place)) for place in (first, second, previous)]
    found = joint_between(many, places[0], places[1], to_first, to_second, places[2])
    return many.stack([found], len(np.atleast_2d(first)))[:, 0]


@given(seed=st.integers(0, 2**32 - 1))
def test_the_joint_keeps_both_lengths_and_is_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    first, truth, second, previous = rng.normal(size=(4, 3))
    lengths = np.linalg.norm(truth - first), np.linalg.norm(truth - second)
    found = joint(first, second, *lengths, previous)[0]
    assert np.linalg.norm(found - first) == pytest.approx(lengths[0], abs=1e-9)
    assert np.linalg.norm(found - second) == pytest.approx(lengths[1], abs=1e-6)
    axis = (second - first) / np.linalg.norm(second - first)
    center = first + axis * (axis @ (truth - first))
    arm = truth - center
    for angle in np.linspace(0.0, 2.0 * np.pi, 60):
        other = center + arm * np.cos(angle) + np.cross(axis, arm) * np.sin(angle)
        assert np.linalg.norm(found - previous) <= np.linalg.norm(other - previous) + 1e-9


def test_if_spheres_do_not_intersect_the_joint_is_on_the_line():
    assert joint([0, 0, 0], [0, 1, 0], 0.3, 0.3, [1, 0, 0])[0] == pytest.approx([0, 0.3, 0])
    assert joint([0, 0, 0], [0, 0.1, 0], 0.5, 0.2, [1, 0, 0])[0] == pytest.approx([0, 0.5, 0])
    assert joint([0, 0, 0], [0, 0.1, 0], 0.2, 0.5, [1, 0, 0])[0] == pytest.approx([0, -0.2, 0])


def test_on_the_axis_any_point_of_the_circle_is_valid():
    for previous in ([0, 0.4, 0], [0, 0, 0]):
        found = joint([0, 0, 0], [0, 0.8, 0], 0.5, 0.5, previous)[0]
        assert np.linalg.norm(found) == pytest.approx(0.5)
        assert np.linalg.norm(found - [0, 0.8, 0]) == pytest.approx(0.5)


def test_hidden_elbows_of_a_moving_person_are_found_from_shoulder_and_wrist():
    """Hidden markers: the joint is found frame by frame, from its former position."""
    skeleton, frames = person(), 200
    phase = np.linspace(0.0, 6.0, frames)[:, None]
    away = random_rotations(np.random.default_rng(1), (22,), 0.6)
    share = 0.5 + 0.5 * np.sin(phase)
    rotations = (1 - share)[..., None] * np.array([1.0, 0.0, 0.0, 0.0]) + share[..., None] * away
    rotations /= np.linalg.norm(rotations, axis=-1, keepdims=True)
    heads = forward_kinematics(skeleton, rotations)[..., :3, 3]
    shoulder, elbow, wrist = (heads[:, skeleton.index(name)] for name in ("upper_arm.L", "forearm.L", "hand.L"))
    lengths = [np.linalg.norm((elbow - end)[0]) for end in (shoulder, wrist)]
    for frame in range(1, frames):
        found = joint(shoulder[frame], wrist[frame], *lengths, elbow[frame - 1])[0]
        assert np.linalg.norm(found - elbow[frame]) <= np.linalg.norm(elbow[frame - 1] - elbow[frame]) + 1e-9


def test_two_bones_are_solved_directly():
    skeleton = straight_chain(2, 0.3)
    targets = np.random.default_rng(2).uniform(-0.3, 0.3, (50, 1, 3))
    solution = solve(skeleton, [Effector("b1")], targets)
    assert (solution.status == Status.SOLVED).all()
    assert (solution.iterations == 1).all()
    assert solution.errors.max() < 1e-9
