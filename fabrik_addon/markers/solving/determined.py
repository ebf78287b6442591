"""Finds the bones that the visible markers determine."""

from typing import Final

import numpy as np

from ...core import Solution, Solver, forward_kinematics
from ...core.arrays import TINY
from ...core.model.bodies import participants
from ..calibrate.offsets import effector_points, joint_columns
from ..clip import BoolArray, FloatArray

# A bone's rotation is lost if hidden markers make it less certain by this much (radians). With half of that, or 0.1,
# the bone's remaining markers knew more than distant frames: feet and arms jumped by up to 132 degrees a frame in takes
# with random gaps. With 1.0, completely hidden limbs were not lost.
LOST: Final = 0.6
# Accuracy of a marker's position, as a share of the skeleton's size.
_NOISE_SHARE: Final = 0.005
_CHUNK: Final = 200
# While the same markers are seen, one frame in this many is evaluated, since poses change little in between.
_EVERY: Final = 5
# Number of poses that represent a take.
_SAMPLES: Final = 50


def lost_certainty(solver: Solver, solution: Solution, seen: BoolArray) -> tuple[FloatArray, FloatArray]:
    """How much less certain hidden markers make poses: (F, J) local rotations, radians; (F,) the root's location.

    solution: F poses, at which covariances with all markers and with the seen ones are compared. seen: (F, E). The
    root's location is in shares of the skeleton's size. A bone that no effector moves has 0.
    """
    skeleton, frames = solver.skeleton, np.arange(len(seen))
    rotations, roots = np.zeros((len(seen), len(skeleton))), np.zeros(len(seen))
    bodies = np.array(participants(skeleton, solver.effectors))
    # For each frame, the evaluated frame with the same visible markers.
    changes = np.concatenate([[True], (seen[1:] != seen[:-1]).any(axis=1)])
    began = np.maximum.accumulate(np.where(changes, frames, 0))
    stands_for = frames - (frames - began) % _EVERY
    looked_at = np.unique(stands_for)
    partly_seen = looked_at[~seen[looked_at].all(axis=1)]
    for first in range(0, len(partly_seen), _CHUNK):
        chunk = partly_seen[first : first + _CHUNK]
        poses, which = np.unique(chunk - chunk % _EVERY, return_inverse=True)
        matrices = forward_kinematics(skeleton, solution.rotations[poses], solution.root_location[poses])
        rows = _rows(solver, matrices)
        which, away = which.reshape(-1), ~seen[chunk]
        # Removing markers adds to the covariance a matrix of the rank of their rows (Woodbury's identity).
        most = int(away.sum(axis=1).max())
        order = np.argsort(~away, axis=1, kind="stable")[:, :most]
        hidden = rows[which[:, None], order] * np.take_along_axis(away, order, axis=1)[..., None, None]
        hidden = hidden.reshape(len(chunk), -1, rows.shape[-1])
        spread = hidden @ _covariances(rows)[which]
        left = np.eye(hidden.shape[1]) - spread @ np.swapaxes(hidden, 1, 2)
        grown = (spread * np.linalg.solve(left, spread)).sum(axis=1)
        lost = np.sqrt(np.maximum(grown.reshape(len(grown), -1, 3).sum(axis=2), 0.0))
        rotations[np.ix_(chunk, bodies)] = lost[:, : len(bodies)]
        roots[chunk] = lost[:, -1] if solver.free_root else 0.0
    return rotations[stands_for], roots[stands_for]


def uncertainty(solver: Solver, solution: Solution) -> FloatArray:
    """(J,) uncertainty of each bone's local rotation with all markers seen, radians; the median over F poses.

    Zero for bones that no effector moves; axes fixed by a limit do not count.
    """
    bodies = participants(solver.skeleton, solver.effectors)
    every = np.unique(np.linspace(0, len(solution.status) - 1, _SAMPLES).round().astype(np.intp))
    matrices = forward_kinematics(solver.skeleton, solution.rotations[every], solution.root_location[every])
    own = np.einsum("fii->fi", _covariances(_rows(solver, matrices)))
    variances = np.median(own.reshape(len(own), -1, 3).sum(axis=2), axis=0)[: len(bodies)]
    limits = [solver.limits.get(solver.skeleton.names[body]) for body in bodies]
    # Each fixed axis adds 1, the variance of an unknown angle.
    closed = np.array([0.0 if limit is None else 3.0 - limit.freedom for limit in limits])
    unsure = np.zeros(len(solver.skeleton))
    unsure[bodies] = np.sqrt(np.maximum(variances - closed, 0.0))
    return unsure


def _rows(solver: Solver, matrices: FloatArray) -> FloatArray:
    """(F, M, 3, D) Jacobian of the markers for joints and root, divided by the markers' noise.

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
    """(F, D, D) covariances of the joints (radians) and the root's location (sizes); 1 without any marker."""
    flat = rows.reshape(len(rows), -1, rows.shape[-1])
    return np.asarray(np.linalg.inv(np.swapaxes(flat, 1, 2) @ flat + np.eye(flat.shape[-1])))
