"""Quaternions (w, x, y, z) and matrices as plain numpy arrays with any leading shape."""

from typing import Final

import numpy as np

from .arrays import FloatArray

# Below this angle (radians) a straight line between quaternions is as good as the arc: it is off by its square.
_SMALL_ANGLE: Final = 1e-6


def matrix_from_quaternion(quaternion: FloatArray) -> FloatArray:
    """(..., 4) unit quaternions to (..., 3, 3) rotation matrices."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternion_from_matrix(matrix: FloatArray) -> FloatArray:
    """(..., 3, 3) rotation matrices to (..., 4) unit quaternions with w >= 0.

    The eigenvector of the largest eigenvalue of Bar-Itzhack's symmetric matrix: robust at half-turns.
    """
    m = matrix
    k = np.empty((*m.shape[:-2], 4, 4))
    k[..., 0, 0] = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
    k[..., 1, 1] = m[..., 0, 0] - m[..., 1, 1] - m[..., 2, 2]
    k[..., 2, 2] = m[..., 1, 1] - m[..., 0, 0] - m[..., 2, 2]
    k[..., 3, 3] = m[..., 2, 2] - m[..., 0, 0] - m[..., 1, 1]
    k[..., 0, 1] = k[..., 1, 0] = m[..., 2, 1] - m[..., 1, 2]
    k[..., 0, 2] = k[..., 2, 0] = m[..., 0, 2] - m[..., 2, 0]
    k[..., 0, 3] = k[..., 3, 0] = m[..., 1, 0] - m[..., 0, 1]
    k[..., 1, 2] = k[..., 2, 1] = m[..., 0, 1] + m[..., 1, 0]
    k[..., 1, 3] = k[..., 3, 1] = m[..., 0, 2] + m[..., 2, 0]
    k[..., 2, 3] = k[..., 3, 2] = m[..., 1, 2] + m[..., 2, 1]
    quaternion = np.linalg.eigh(k)[1][..., :, -1]
    return np.where(quaternion[..., :1] < 0, -quaternion, quaternion)


def slerp(start: FloatArray, end: FloatArray, share: FloatArray) -> FloatArray:
    """(F, 4) quaternions a (F,) share of the way from one to the other, on the shorter arc."""
    cosine = np.sum(start * end, axis=-1)
    end = np.where(cosine[:, None] < 0.0, -end, end)
    angle = np.arctan2(np.linalg.norm(end - start, axis=-1), np.linalg.norm(end + start, axis=-1)) * 2.0
    small = angle < _SMALL_ANGLE
    sine = np.where(small, 1.0, np.sin(angle))
    weights = [np.where(small, straight, np.sin(straight * angle) / sine) for straight in (1.0 - share, share)]
    mixed = weights[0][:, None] * start + weights[1][:, None] * end
    return np.asarray(mixed / np.linalg.norm(mixed, axis=-1, keepdims=True))
