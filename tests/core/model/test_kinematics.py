"""Skeletons and forward kinematics, compared with plain matrix algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rigs import person, random_rotations, random_tree, straight_chain

from fabrik_addon.core import Skeleton, SkeletonError, forward_kinematics
from fabrik_addon.core.rotations import matrix_from_quaternion, quaternion_from_matrix


def four(rotation):
    matrix = np.eye(4)
    matrix[:3, :3] = matrix_from_quaternion(rotation)
    return matrix


@given(seed=st.integers(0, 2**32 - 1), bones=st.integers(1, 15))
@settings(max_examples=40, deadline=None)
def test_poses_follow_the_formula(seed, bones):
    """pose_i = pose_parent · rest_parent⁻¹ · rest_i · R(q_i); the rotation is rest_i · R(q_i) if none is inherited."""
    rng = np.random.default_rng(seed)
    skeleton = random_tree(rng, bones, inheriting=0.7)
    rotations = random_rotations(rng, (bones,))
    got = forward_kinematics(skeleton, rotations)
    expected = []
    for bone, parent in enumerate(skeleton.parents):
        pose = skeleton.rest[bone] @ four(rotations[bone])
        if parent >= 0:
            carried = expected[parent] @ np.linalg.inv(skeleton.rest[parent]) @ skeleton.rest[bone]
            pose[:3, 3] = carried[:3, 3]
            if skeleton.inherits_rotation[bone]:
                pose = carried @ four(rotations[bone])
        expected.append(pose)
    assert np.abs(got - np.array(expected)).max() < 1e-9


def test_rest_is_the_rest_pose_and_the_root_can_be_moved():
    skeleton = person()
    still = np.tile([1.0, 0, 0, 0], (3, 22, 1))
    matrices = forward_kinematics(skeleton, still, np.array([[0, 0, 0.95], [1, 0, 0.95], [0, 2, 0.95]]))
    assert matrices[0] == pytest.approx(skeleton.rest)
    assert matrices[2, :, :3, 3] == pytest.approx(skeleton.rest[:, :3, 3] + [0, 2, 0])


def test_children_move_with_the_tails_of_stretched_bones():
    skeleton = straight_chain(3)
    matrices = forward_kinematics(skeleton, np.tile([1.0, 0, 0, 0], (3, 1)), lengths=np.array([0.2, 0.1, 0.1]))
    assert matrices[:, 1, 3] == pytest.approx([0, 0.2, 0.3])


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_quaternions_and_matrices_agree(seed):
    rng = np.random.default_rng(seed)
    rotations = random_rotations(rng, (5,))
    back = quaternion_from_matrix(matrix_from_quaternion(rotations))
    assert np.abs(np.abs((back * rotations).sum(axis=1)) - 1).max() < 1e-12


GOOD = {"names": ["a", "b"], "parents": [-1, 0], "rest": [np.eye(4), np.eye(4)], "lengths": [1.0, 0.0]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"names": []}, "shape"),
        ({"names": ["a", "a"]}, "Two bones are named 'a'"),
        ({"parents": [-1, -1]}, "exactly one root"),
        ({"parents": [0, -1]}, "exactly one root"),
        ({"parents": [-1, 1]}, "'b' comes before its parent"),
        ({"parents": [-1]}, "parents have shape (1,)"),
        ({"rest": [np.eye(4), np.diag([2.0, 1, 1, 1])]}, "Bone 'b': its rest matrix must be a pure rotation"),
        ({"rest": [np.eye(4), np.full((4, 4), np.nan)]}, "Bone 'b': its rest matrix must be finite"),
        ({"lengths": [1.0, -1.0]}, "Bone 'b': its length must be zero or more"),
        ({"lengths": [np.inf, 1.0]}, "Bone 'a': its length must be zero or more"),
    ],
)
def test_invalid_skeletons_are_refused_with_the_name(change, sentence):
    with pytest.raises(SkeletonError) as caught:
        Skeleton(**{**GOOD, **change})
    assert sentence in str(caught.value)


def test_skeletons_do_not_change():
    skeleton = Skeleton(**GOOD)
    with pytest.raises(ValueError, match="read-only"):
        skeleton.rest[0, 0, 0] = 2.0


def test_forward_kinematics_checks_shapes():
    with pytest.raises(SkeletonError, match="Rotations have shape"):
        forward_kinematics(person(), np.zeros((3, 4)))
