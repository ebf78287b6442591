"""Rotation matrices and quaternions over any number of frames; angles in radians."""

from __future__ import annotations

import numpy as np

from .bones import FloatArray

_NEXT = (1, 2, 0)


def about(axis: int, angle: FloatArray | float) -> FloatArray:
    """(..., 3, 3) rotations by `angle` (...) about the coordinate axis 0, 1 or 2."""
    angle = np.asarray(angle, dtype=float)
    j = _NEXT[axis]
    k = _NEXT[j]
    matrix = np.zeros((*angle.shape, 3, 3))
    matrix[..., axis, axis] = 1.0
    matrix[..., j, j] = matrix[..., k, k] = np.cos(angle)
    matrix[..., k, j] = np.sin(angle)
    matrix[..., j, k] = -np.sin(angle)
    return matrix


def turned(rotation: FloatArray, point: FloatArray) -> FloatArray:
    """(..., 3) points or directions after rotations (..., 3, 3)."""
    return np.einsum("...ij,...j->...i", rotation, point)


def unit(vector: FloatArray) -> FloatArray:
    """Vectors (..., 3) scaled to length 1."""
    return vector / np.linalg.norm(vector, axis=-1, keepdims=True)


def quaternions(rotation: FloatArray) -> FloatArray:
    """(F, 4) quaternions w x y z of rotations (F, 3, 3), each in the hemisphere of the one before it."""
    m = rotation
    trace = np.trace(m, axis1=1, axis2=2)
    diagonal = np.diagonal(m, axis1=1, axis2=2)
    squares = np.concatenate([1.0 + trace[:, None], 1.0 - trace[:, None] + 2.0 * diagonal], axis=1)
    products = np.empty((len(m), 4, 4))  # four times the outer product of the quaternion with itself
    products[:, range(4), range(4)] = squares
    for i in range(3):
        j, k = _NEXT[i], _NEXT[_NEXT[i]]
        products[:, 0, i + 1] = products[:, i + 1, 0] = m[:, k, j] - m[:, j, k]
        products[:, j + 1, k + 1] = products[:, k + 1, j + 1] = m[:, k, j] + m[:, j, k]
    best = products[np.arange(len(m)), np.argmax(squares, axis=1)]
    result = best / np.linalg.norm(best, axis=1, keepdims=True)
    flips = np.sum(result[1:] * result[:-1], axis=1) < 0.0
    result[1:] *= np.where(np.cumsum(flips) % 2 == 1, -1.0, 1.0)[:, None]
    return result if result[0, 0] >= 0.0 else -result
