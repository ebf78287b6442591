"""Conversions between quaternions, matrices and rotation vectors, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrik_addon.core.rotations import (
    matrix_from_quaternion,
    quaternion_from_rotation_vector,
    rotation_vector_from_matrix,
)

ANGLES = st.one_of(st.floats(0.0, np.pi), st.sampled_from((0.0, 1e-9, 1e-4, 2.69, np.pi - 1e-4, np.pi - 1e-9, np.pi)))


@given(st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.floats(0.1, 1)), ANGLES)
def test_a_matrix_gives_the_rotation_vector_that_it_was_made_of_up_to_180_degrees(arm, angle):
    axis = np.array(arm) / np.linalg.norm(arm)
    matrix = matrix_from_quaternion(quaternion_from_rotation_vector(axis * angle))
    found = rotation_vector_from_matrix(matrix)
    # At 180°, rotations in both directions about the axis are equal.
    sign = -1.0 if angle > 3.14 and found @ axis < 0.0 else 1.0
    assert sign * found == pytest.approx(axis * angle, abs=1e-7)


def test_matrices_of_any_shape_are_converted_separately():
    vectors = np.array([[[0.0, 0.0, np.pi], [0.1, -0.2, 0.3]], [[0.0, 0.0, 0.0], [2.0, 0.0, -1.0]]])
    matrices = matrix_from_quaternion(quaternion_from_rotation_vector(vectors))
    assert np.abs(rotation_vector_from_matrix(matrices)) == pytest.approx(np.abs(vectors))
