"""Quaternions (w, x, y, z) and matrices as plain numpy arrays with any leading shape."""

from functools import cache
from typing import Final

import numpy as np

from .arrays import ROUNDING, TINY, FloatArray, lengths

# Beyond the angle with this cosine, the asymmetric part of a matrix does not determine the axis accurately.
_FAR_TURNED: Final = -0.9
IDENTITY: Final = np.eye(4)[0]
# (3, 3, 3) for each unit vector, the matrix of the cross product with it.
CROSSING: Final = np.cross(np.eye(3), np.eye(3)[:, None])
# The pairs of a quaternion's components w, x, y, z, each once.
_FIRST, _SECOND = np.triu_indices(len(IDENTITY))


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """(..., 4) quaternion products: `right` is applied first, then `left`."""
    w, x, y, z = left[..., 0], left[..., 1], left[..., 2], left[..., 3]
    a, b, c, d = right[..., 0], right[..., 1], right[..., 2], right[..., 3]
    result = np.empty(np.broadcast(left, right).shape)
    result[..., 0] = w * a - x * b - y * c - z * d
    result[..., 1] = w * b + x * a + y * d - z * c
    result[..., 2] = w * c - x * d + y * a + z * b
    result[..., 3] = w * d + x * c - y * b + z * a
    return result


def conjugate(quaternions: FloatArray) -> FloatArray:
    """(..., 4) inverse rotations of unit quaternions."""
    return np.asarray(quaternions * np.array([1.0, -1.0, -1.0, -1.0]))


def angle_between(quaternions: FloatArray, others: FloatArray) -> FloatArray:
    """(...) radians, 0 to π, between the rotations of (..., 4) unit quaternions."""
    turn = product(conjugate(quaternions), others)
    return np.asarray(2.0 * np.arctan2(lengths(turn[..., 1:]), np.abs(turn[..., 0])))


def rotation_vector_from_quaternion(quaternion: FloatArray) -> FloatArray:
    """(..., 3) axis times angle, at most π radians, of (..., 4) unit quaternions."""
    cosine, sine = quaternion[..., 0], lengths(quaternion[..., 1:])
    angle = 2.0 * np.arctan2(sine, np.abs(cosine))
    scale = np.where(sine > ROUNDING, angle / np.maximum(sine, ROUNDING), 2.0)
    return np.asarray(quaternion[..., 1:] * np.where(cosine < 0.0, -scale, scale)[..., None])


def quaternion_from_rotation_vector(vector: FloatArray) -> FloatArray:
    """(..., 4) unit quaternions of (..., 3) rotation vectors: axis times angle, radians."""
    angle = lengths(vector)[..., None]
    factor = np.where(angle > ROUNDING, np.sin(0.5 * angle) / np.maximum(angle, ROUNDING), 0.5)
    return np.concatenate([np.cos(0.5 * angle), vector * factor], axis=-1)


def matrix_from_quaternion(quaternion: FloatArray) -> FloatArray:
    """(..., 3, 3) rotation matrices of (..., 4) unit quaternions."""
    products = quaternion[..., _FIRST] * quaternion[..., _SECOND]
    products[..., 0] = 1.0
    return np.asarray((products.reshape(-1, 10) @ _from_products()).reshape(*quaternion.shape[:-1], 3, 3))


@cache
def _from_products() -> FloatArray:
    """(10, 9) the map from the products of a quaternion's components (w w, w x ... z z) to the matrix's entries.

    The matrix is 1 + 2 w X + 2 X X, with X the matrix of the cross product with (x, y, z). So the first product is
    replaced by 1.
    """
    part = np.concatenate([np.zeros((1, 3, 3)), CROSSING])
    both = np.einsum("aij,bjk->abik", part + np.multiply.outer(IDENTITY, np.eye(3)), part)
    both += np.where(np.eye(4, dtype=bool)[..., None, None], 0.0, np.swapaxes(both, 0, 1))
    return np.concatenate([np.eye(3).reshape(1, 9), 2.0 * both[_FIRST, _SECOND].reshape(10, 9)[1:]])


def quaternion_from_matrix(matrix: FloatArray) -> FloatArray:
    """(..., 4) unit quaternions with w >= 0 of (..., 3, 3) rotation matrices.

    The eigenvector of the largest eigenvalue of Bar-Itzhack's symmetric matrix (Journal of Guidance, Control, and
    Dynamics 23, 2000): robust at 180°. For a rotation the matrix is 4 q qᵀ - 1, so its longest column is already q, and
    one step of the power method squares its rounding error.
    """
    m = matrix
    k = np.empty((*m.shape[:-2], 4, 4))
    k[..., 0, 0] = 1.0 + m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
    k[..., 1, 1] = 1.0 + m[..., 0, 0] - m[..., 1, 1] - m[..., 2, 2]
    k[..., 2, 2] = 1.0 + m[..., 1, 1] - m[..., 0, 0] - m[..., 2, 2]
    k[..., 3, 3] = 1.0 + m[..., 2, 2] - m[..., 0, 0] - m[..., 1, 1]
    k[..., 0, 1] = k[..., 1, 0] = m[..., 2, 1] - m[..., 1, 2]
    k[..., 0, 2] = k[..., 2, 0] = m[..., 0, 2] - m[..., 2, 0]
    k[..., 0, 3] = k[..., 3, 0] = m[..., 1, 0] - m[..., 0, 1]
    k[..., 1, 2] = k[..., 2, 1] = m[..., 0, 1] + m[..., 1, 0]
    k[..., 1, 3] = k[..., 3, 1] = m[..., 0, 2] + m[..., 2, 0]
    k[..., 2, 3] = k[..., 3, 2] = m[..., 1, 2] + m[..., 2, 1]
    flat = k.reshape(-1, 4, 4)
    longest = flat[np.arange(len(flat)), flat.reshape(-1, 16)[:, ::5].argmax(axis=1)]
    quaternion = (flat @ longest[:, :, None]).reshape(k.shape[:-1])
    quaternion /= lengths(quaternion)[..., None]
    return np.where(quaternion[..., :1] < 0, -quaternion, quaternion)


def rotation_between(starts: FloatArray, ends: FloatArray) -> FloatArray:
    """(..., 4) the shortest rotations between the directions of vectors (..., 3), of any length.

    For opposite directions, the axis is perpendicular to the start and chosen as in mathutils. If a vector has no
    length, the rotation is the identity.
    """
    sizes, cosines, axes = lengths(starts) * lengths(ends), (starts * ends).sum(axis=-1), np.cross(starts, ends)
    # Near the antipode |a||b| + a·b loses its precision, so it is computed as |a×b|² / (|a||b| − a·b).
    exact = (axes * axes).sum(axis=-1) / np.maximum(sizes - cosines, TINY)
    quaternions = np.concatenate([np.where(cosines < 0.0, exact, sizes + cosines)[..., None], axes], axis=-1)
    opposite = (sizes > TINY) & (lengths(quaternions) <= ROUNDING * sizes)
    if opposite.any():
        rows = starts[opposite]
        largest = 2 - np.abs(rows[:, ::-1]).argmax(axis=1)[:, None]
        along = np.take_along_axis(rows, largest, axis=1)
        across = np.repeat(along, 3, axis=1)
        np.put_along_axis(across, largest, along - rows.sum(axis=1, keepdims=True), axis=1)
        quaternions[opposite] = np.concatenate([np.zeros((len(rows), 1)), across], axis=1)
    quaternions[sizes <= TINY] = IDENTITY
    return np.asarray(quaternions / lengths(quaternions)[..., None])


def rotation_vector_from_matrix(matrix: FloatArray) -> FloatArray:
    """(..., 3) axis times angle, at most π radians, of (..., 3, 3) rotation matrices; faster than via quaternions."""
    entries = matrix.reshape(*matrix.shape[:-2], 9)
    cosine = 0.5 * (entries[..., 0] + entries[..., 4] + entries[..., 8] - 1.0)
    if (cosine < _FAR_TURNED).any():
        return rotation_vector_from_quaternion(quaternion_from_matrix(matrix))
    skew = 0.5 * (entries @ CROSSING.reshape(3, 9).T)
    sine = lengths(skew)
    stretch = np.arctan2(sine, cosine) / np.maximum(sine, ROUNDING)
    return np.asarray(skew * np.where(sine > ROUNDING, stretch, 1.0)[..., None])


def slerp(start: FloatArray, end: FloatArray, share: FloatArray) -> FloatArray:
    """(F, 4) unit quaternions interpolated from start to end by fractions (F,), on the shorter arc."""
    turn = rotation_vector_from_quaternion(product(conjugate(start), end))
    return product(start, quaternion_from_rotation_vector(share[:, None] * turn))
