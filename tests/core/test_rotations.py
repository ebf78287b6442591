"""Conversions between quaternions, matrices and rotation vectors, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrik_addon.core.rotations import (
    matrix_from_quaternion,
    product,
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


UNIT = np.array([0.5, -0.5, 0.1, 0.7])
MANY = np.random.default_rng(3).normal(size=(6, 5, 4))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (MANY, MANY[::-1]),
        (MANY[::2, :3], MANY.transpose(1, 0, 2)[:3, ::2]),
        (np.moveaxis(np.asfortranarray(MANY[0].T), 0, -1), MANY[1]),
        (MANY.astype(np.float32), MANY),
        (np.array([1, 0, 2, 0]), MANY),
        (UNIT, MANY),
        (MANY, np.broadcast_to(UNIT, MANY.shape)),
        (MANY[:, None], MANY[:1]),
        (UNIT, MANY[0, 0]),
        (MANY[:0], UNIT),
    ],
    ids=["reversed", "strided", "transposed", "single", "integers", "one left", "one right", "outer", "two", "none"],
)
def test_products_of_any_layout_follow_hamilton_s_rules(left, right):
    w, x, y, z = np.moveaxis(left, -1, 0)
    a, b, c, d = np.moveaxis(right, -1, 0)
    rows = [
        w * a - x * b - y * c - z * d,
        w * b + x * a + y * d - z * c,
        w * c - x * d + y * a + z * b,
        w * d + x * c - y * b + z * a,
    ]
    before = left.copy(), right.copy()
    found = product(left, right)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.stack(rows, axis=-1), rtol=1e-12, atol=1e-12)
    assert np.array_equal(left, before[0])
    assert np.array_equal(right, before[1])
