"""The Jacobian methods surveyed by Buss and Kim (2005): transpose, damped least squares, and that by SVD."""

import numpy as np

# ε_ijk: (a × b)_i = ε_ijk a_j b_k
LEVI_CIVITA = np.zeros((3, 3, 3))
LEVI_CIVITA[[0, 1, 2], [1, 2, 0], [2, 0, 1]] = 1.0
LEVI_CIVITA[[0, 2, 1], [2, 1, 0], [1, 0, 2]] = -1.0


def jacobian(figure, unit=1.0):
    """(3 E, 3 B) derivatives of the end effectors by rotations of the figure's B joints about x, y and z."""
    arms = (figure.tips - figure.heads[figure.bones, None]) / unit
    arms *= figure.rides[figure.bones, :, None]
    return np.einsum("ijk,bek->eibj", LEVI_CIVITA, arms).reshape(arms.shape[1] * 3, -1)


def transpose(matrix, error):
    """Jᵀe, scaled so that the error of the linear model is least."""
    turns = matrix.T @ error
    moves = matrix @ turns
    return turns * (error @ moves / max(moves @ moves, 1e-300))


def damped(matrix, error, damping):
    """Jᵀ (J Jᵀ + λ²)⁻¹ e."""
    square = matrix @ matrix.T + damping**2 * np.eye(len(error))
    return matrix.T @ np.linalg.solve(square, error)


def damped_by_svd(matrix, error, damping):
    """Damped least squares by singular values: the inverse of each value s is s / (s² + λ²)."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return right.T @ (values / (values**2 + damping**2) * (left.T @ error))


def step(figure, targets, rule, *, unit=1.0, longest=1.0):
    """One full iteration: rotate all joints by a rule (matrix, error) -> radians."""
    errors = (targets - figure.tips) / unit
    sizes = np.linalg.norm(errors, axis=1, keepdims=True)
    errors *= np.minimum(1.0, longest / np.maximum(sizes, 1e-300))
    turns = rule(jacobian(figure, unit), errors.ravel()).reshape(-1, 3)
    for bone, turn in reversed(list(zip(figure.bones, turns, strict=True))):
        figure.turn(bone, turn)
