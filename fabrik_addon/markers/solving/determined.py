"""Which bones the markers that are seen say enough about."""

from typing import Final

import numpy as np

from ...core import Solution, Solver, forward_kinematics
from ...core.arrays import TINY, IntArray
from ...core.model.bodies import participants
from ..calibrate.offsets import effector_points, joint_columns
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
        poses, which = np.unique(frames - frames % _EVERY, return_inverse=True)
        matrices = forward_kinematics(solver.skeleton, solution.rotations[poses], solution.root_location[poses])
        lost = _lost(_rows(solver, matrices), which.reshape(-1), seen[frames])
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
    own = np.einsum("fii->fi", _covariances(_rows(solver, matrices)))
    variances = np.median(own.reshape(len(own), -1, 3).sum(axis=2), axis=0)[: len(bodies)]
    unsure = np.zeros(len(solver.skeleton))
    unsure[bodies] = np.sqrt(np.maximum(variances - _closed_ways(solver, bodies), 0.0))
    return unsure


def _closed_ways(solver: Solver, bodies: list[int]) -> FloatArray:
    """(B,) about how many axes each body cannot turn: each adds 1 to the variance that knowing nothing has."""
    limits = [solver.limits.get(solver.skeleton.names[body]) for body in bodies]
    return np.array([0.0 if limit is None else 3.0 - limit.freedom for limit in limits])


def _lost(rows: FloatArray, which: IntArray, seen: BoolArray) -> FloatArray:
    """(N, B + 1) by how much each body's turn, and at last the root's place, is less sure; radians, and sizes.

    rows: (P, M, 3, D) of poses, see `_rows`. which: (N,) the pose of each frame. seen: (N, M). The root's place counts
    in shares of the skeleton's size. What hidden markers take away has the rank of their rows (Woodbury's identity).
    """
    away, most = ~seen, int((~seen).sum(axis=1).max())
    first = np.argsort(seen, axis=1, kind="stable")[:, :most]
    hidden = rows[which[:, None], first] * np.take_along_axis(away, first, axis=1)[..., None, None]
    hidden = hidden.reshape(len(seen), -1, rows.shape[-1])
    spread = hidden @ _covariances(rows)[which]
    left = np.eye(hidden.shape[1]) - spread @ np.swapaxes(hidden, 1, 2)
    grown = (spread * np.linalg.solve(left, spread)).sum(axis=1)
    lost: FloatArray = np.sqrt(np.maximum(grown.reshape(len(grown), -1, 3).sum(axis=2), 0.0))
    return lost


def _rows(solver: Solver, matrices: FloatArray) -> FloatArray:
    """(F, M, 3, D) how the markers move with the joints and the root, in shares of what a marker's place is unsure.

    matrices: (F, J, 4, 4).
    """
    skeleton, effectors = solver.skeleton, solver.effectors
    points = effector_points(skeleton, effectors, matrices)
    columns = joint_columns(skeleton, effectors, solver.limits, matrices, points)
    columns[..., :-3] /= skeleton.size
    weights = np.array([effector.weight for effector in effectors])
    share = np.sqrt(weights / max(float(weights.max()), TINY)) / _NOISE_SHARE
    return np.asarray(columns * share[:, None, None])


def _covariances(rows: FloatArray) -> FloatArray:
    """(F, D, D) of the joints and the root's place; a radian's, a size's with no marker at all."""
    flat = rows.reshape(len(rows), -1, rows.shape[-1])
    return np.asarray(np.linalg.inv(np.swapaxes(flat, 1, 2) @ flat + np.eye(flat.shape[-1])))
