"""Which bones the markers that are seen say enough about."""

from typing import Final

import numpy as np

from ...core import Solution, Solver, forward_kinematics
from ...core.arrays import IntArray
from ...core.model.bodies import participants
from ..calibrate.bundle import joint_columns
from ..calibrate.offsets import effector_points
from ..clip import BoolArray, FloatArray

# A bone's rotation is lost when hidden markers make it this much (radians) less sure than it is with all of them. With
# half of that, and all the more with 0.1, what is left of a bone's markers said more than frames far beside it: feet
# and arms jumped by up to 132 degrees a frame in takes with random holes. With 1.0 whole limbs away were not lost.
LOST: Final = 0.6
# What a marker's place says: to this share of the skeleton's size.
_NOISE_SHARE: Final = 0.005
_CHUNK: Final = 200
# While the same markers are seen, every so many frames are looked at: poses change little in between.
_EVERY: Final = 5
# Poses of a take that stand for all of them.
_SAMPLES: Final = 50


def lost_certainty(solver: Solver, solution: Solution, seen: BoolArray) -> tuple[FloatArray, FloatArray]:
    """(F, J) by how much less sure a bone's local rotation is than with all markers, radians; (F,) the root's place.

    solution: F poses of the solver, whose covariances are compared. seen: (F, E). The root's place is a share of the
    skeleton's size. Nothing is lost where no effector moves a bone, nor by what even all markers leave open.
    """
    turns = np.zeros((len(seen), len(solver.skeleton)))
    places = np.zeros(len(seen))
    bodies = np.array(participants(solver.skeleton, solver.effectors))
    looked_at, stands_for = _representatives(seen)
    partly_seen = looked_at[~seen[looked_at].all(axis=1)]
    for first in range(0, len(partly_seen), _CHUNK):
        frames = partly_seen[first : first + _CHUNK]
        matrices = forward_kinematics(solver.skeleton, solution.rotations[frames], solution.root_location[frames])
        lost = _lost(solver, matrices, seen[frames])
        turns[np.ix_(frames, bodies)] = lost[:, : len(bodies)]
        places[frames] = lost[:, -1] if solver.free_root else 0.0
    return turns[stands_for], places[stands_for]


def _representatives(seen: BoolArray) -> tuple[IntArray, IntArray]:
    """Frames (N,) that are looked at, and (F,) the one that stands for each: the same markers are seen there."""
    frames = np.arange(len(seen))
    changes = np.concatenate([[True], (seen[1:] != seen[:-1]).any(axis=1)])
    began = np.maximum.accumulate(np.where(changes, frames, 0))
    stands_for = frames - (frames - began) % _EVERY
    return np.unique(stands_for), stands_for


def uncertainty(solver: Solver, solution: Solution) -> FloatArray:
    """(J,) how unsure a bone's local rotation is with all markers seen, radians; the median over F poses.

    Zero where no effector moves a bone; a bone's closed ways are not unsure.
    """
    bodies = participants(solver.skeleton, solver.effectors)
    every = np.unique(np.linspace(0, len(solution.status) - 1, _SAMPLES).round().astype(np.intp))
    matrices = forward_kinematics(solver.skeleton, solution.rotations[every], solution.root_location[every])
    columns, weights = _columns(solver, matrices)
    variances = np.median(_spreads(columns, np.broadcast_to(weights, columns.shape[:2])), axis=0)[: len(bodies)]
    unsure = np.zeros(len(solver.skeleton))
    unsure[bodies] = np.sqrt(np.maximum(variances - _closed_ways(solver, bodies), 0.0))
    return unsure


def _closed_ways(solver: Solver, bodies: list[int]) -> FloatArray:
    """(B,) about how many axes each body cannot turn: each adds 1 to the variance that knowing nothing has."""
    limits = [solver.limits.get(solver.skeleton.names[body]) for body in bodies]
    return np.array([0.0 if limit is None else 3.0 - limit.freedom for limit in limits])


def _lost(solver: Solver, matrices: FloatArray, seen: BoolArray) -> FloatArray:
    """(F, B + 1) by how much each body's turn, and at last the root's place, is less sure; radians, and sizes.

    The root's place counts in shares of the skeleton's size.
    """
    columns, weights = _columns(solver, matrices)
    with_all = _spreads(columns, np.broadcast_to(weights, seen.shape))
    lost: FloatArray = np.sqrt(np.maximum(_spreads(columns, np.where(seen, weights, 0.0)) - with_all, 0.0))
    return lost


def _columns(solver: Solver, matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(F, M, 3, D) how the markers move with the joints and the root, in shares of the skeleton's size; their weights.

    matrices: (F, J, 4, 4).
    """
    skeleton, effectors = solver.skeleton, solver.effectors
    points = effector_points(skeleton, effectors, matrices)
    columns = joint_columns(skeleton, effectors, solver.limits, matrices, points)
    columns[..., :-3] /= skeleton.size
    return columns, np.array([effector.weight for effector in effectors])


def _spreads(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """(F, B + 1) variances of each body's turn and of the root's place; a radian's, a size's with no marker at all."""
    share = weights / max(float(weights.max()), 1e-30) / _NOISE_SHARE**2
    rows = columns * np.sqrt(share)[..., None, None]
    rows = rows.reshape(len(rows), -1, rows.shape[-1])
    square = np.swapaxes(rows, 1, 2) @ rows + np.eye(rows.shape[-1])
    variances = np.einsum("fii->fi", np.linalg.inv(square))
    return np.asarray(variances.reshape(len(rows), -1, 3).sum(axis=2))
