"""What many poses have in common, found together with the poses: marker offsets, bone lengths, scale.

The points p of a pose depend on its joints x, different on every frame, and on parameters φ that all frames share. A
Gauss-Newton step on Σ weight · |target − p(x, φ)|² is worked out for φ alone, the joints eliminated frame by frame (the
Schur complement, as in bundle adjustment: Triggs et al. 2000, §6); the solver then finds the joints anew. Finding one
and then the other in turn without this takes hundreds of rounds.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ...core import Effector, Skeleton, Solution
from ...core.arrays import times
from ...core.backend import array as many
from ...core.least_squares.active_limits import LimitConstraints
from ...core.least_squares.jacobian import Jacobian
from ...core.least_squares.joints import Joints, by_row
from ...core.limits.base import Limit
from ...core.model.bodies import build_bodies
from ...core.model.residuals import make_residuals
from ...core.model.targets import PosePrior
from ...core.rotations import (
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from ..clip import FloatArray

# Against joints that nothing determines, as a share of the mean diagonal.
_DAMPING = 1e-6


def joint_columns(
    skeleton: Skeleton,
    effectors: Sequence[Effector],
    limits: Mapping[str, Limit],
    matrices: FloatArray,
    points: FloatArray,
) -> FloatArray:
    """(F, M, 3, D) how points (F, M, 3) of bones at matrices (F, J, 4, 4) move with the joints and the free root.

    The columns of a hinge are those of its axis only.
    """
    bodies = build_bodies(skeleton, effectors, limits, many)
    heads = matrices[:, [body.bone for body in bodies]][..., :3, 3]
    measures = make_residuals(bodies, effectors, np.ones(len(effectors)), tolerance=1.0)
    jacobian = Jacobian(bodies, measures, free_root=True)
    columns = jacobian.rows(points, heads, np.ones(points.shape[:2]))
    for index, body in enumerate(bodies):
        if body.limit is not None and body.limit.freedom < 3:
            part = slice(3 * index, 3 * index + 3)
            axis = body.limit.turn_axis or (0.0, 0.0, 0.0)
            # A turn about the axis leaves the axis where it is, so the turned bone's own will do.
            ways = matrices[:, body.bone, :3, :3] @ np.array(axis)
            columns[..., part] = (columns[..., part] @ ways[..., None]) * ways[:, None, :]
    return columns.reshape(*points.shape, -1)


def kept_inside(
    skeleton: Skeleton,
    effectors: Sequence[Effector],
    limits: Mapping[str, Limit],
    solution: Solution,
    push: FloatArray,
) -> FloatArray:
    """(F, B, 3, 3) what limits leave open to bodies that are pushed along (F, B, 3)."""
    bodies = build_bodies(skeleton, effectors, limits, many)
    joints, local = Joints(bodies, len(effectors)), by_row(solution.rotations[:, [body.bone for body in bodies]])
    constraints = LimitConstraints(joints, local, joints.place(local, solution.root_location)[1])
    return constraints.tangents(push, np.zeros(len(push)), slice(None))


def expected_columns(
    skeleton: Skeleton, bodies: Sequence[int], solution: Solution, prior: PosePrior
) -> tuple[FloatArray, FloatArray]:
    """(F, D) weights of the bodies' and the root's columns, and (F, D) rotation vectors to the expected pose."""
    frames = len(solution.status)
    away = product(np.broadcast_to(prior.rotations, solution.rotations.shape), conjugate(solution.rotations))
    local = rotation_vector_from_quaternion(away)[:, bodies]
    carried = np.stack([_carried(skeleton, solution.matrices, bone) for bone in bodies], axis=1)
    vectors = times(carried, local).reshape(frames, -1)
    weights = np.repeat(np.broadcast_to(prior.weights, away.shape[:2])[:, bodies], 3, axis=1)
    root = np.zeros((frames, 3))
    return np.concatenate([weights, root], axis=1), np.concatenate([vectors, root], axis=1)


def turned(
    skeleton: Skeleton, bodies: Sequence[int], solution: Solution, step: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(F, J, 4) local rotations and (F, 3) root's heads of poses after a step (F, D) of the joints' columns."""
    vectors = step[:, :-3].reshape(len(step), -1, 3)
    carried = np.stack([_carried(skeleton, solution.matrices, bone) for bone in bodies], axis=1)
    local = times(np.swapaxes(carried, -1, -2), vectors)
    rotations = np.array(solution.rotations)
    rotations[:, bodies] = product(quaternion_from_rotation_vector(local), rotations[:, bodies])
    return rotations, solution.root_location + step[:, -3:]


def _carried(skeleton: Skeleton, matrices: FloatArray, bone: int) -> FloatArray:
    """(F, 3, 3) the frame of a bone whose local rotation is none."""
    parent, turn = skeleton.parents[bone], skeleton.rest_turn(bone)
    if parent < 0 or not skeleton.inherits_rotation[bone]:
        return np.broadcast_to(turn, (len(matrices), 3, 3))
    return np.asarray(matrices[:, parent, :3, :3] @ turn)


def offset_columns(matrices: FloatArray, bones: Sequence[int]) -> FloatArray:
    """(F, M, 3, 3 M) how markers move with their own offsets."""
    count = len(bones)
    columns = np.zeros((len(matrices), count, 3, count, 3))
    for marker, bone in enumerate(bones):
        columns[:, marker, :, marker] = matrices[:, bone, :3, :3]
    return columns.reshape(len(matrices), count, 3, 3 * count)


def length_columns(
    skeleton: Skeleton, matrices: FloatArray, bones: Sequence[int], offsets: FloatArray | None = None
) -> FloatArray:
    """(F, M, 3, J) how markers move, the root's head in place, as a bone with all that sits on it grows.

    offsets: (M, 3) of the markers where these grow with their bones; None where they stay.
    """
    orientations = matrices[..., :3, :3]
    columns = np.zeros((len(orientations), len(bones), 3, len(skeleton)))
    for marker, bone in enumerate(bones):
        for above, below in pairwise(skeleton.path(bone)):
            columns[:, marker, :, above] = orientations[:, above] @ skeleton.head_offset(below)
        if offsets is not None:
            columns[:, marker, :, bone] = orientations[:, bone] @ offsets[marker]
    return columns


def shared_step(
    joints: FloatArray,
    shared: FloatArray,
    residuals: FloatArray,
    weights: FloatArray,
    prior_weights: FloatArray,
    to_prior_mean: FloatArray,
    joint_weights: FloatArray,
    to_expected: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """(P,) by how much the shared parameters are to change, and (F, D) the joints with them.

    Args:
        joints: (F, M, 3, D) how the points move with the joints.
        shared: (F, M, 3, P) and with the parameters.
        residuals: (F, M, 3) from the points to their targets, anything where the weight is zero.
        weights: (F, M).
        prior_weights: (P,) how strongly a prior holds each parameter.
        to_prior_mean: (P,) how far from here it expects them.
        joint_weights: (F, D) how strongly each joint's column is held to the pose that is expected.
        to_expected: (F, D) how far from here that is.
    """
    root = np.sqrt(weights)[..., None]
    frames, rows = len(residuals), 3 * residuals.shape[1]
    a = (joints * root[..., None]).reshape(frames, rows, -1)
    k = (shared * root[..., None]).reshape(frames, rows, -1)
    r = np.where(root > 0.0, residuals * root, 0.0).reshape(frames, rows, 1)
    across = np.swapaxes(a, 1, 2)
    square = across @ a
    diagonal = np.einsum("fii->fi", square)
    diagonal += _DAMPING * diagonal.mean(axis=1, keepdims=True) + 1e-12 + joint_weights
    both = np.concatenate([k, r], axis=2)
    pulled = across @ both
    pulled[..., -1] += joint_weights * to_expected
    alone = np.linalg.solve(square, pulled)
    left = both - a @ alone
    summed = (np.swapaxes(k, 1, 2) @ left).sum(axis=0)
    matrix = summed[:, :-1] + np.diag(prior_weights + 1e-12)
    step: FloatArray = np.linalg.solve(matrix, summed[:, -1] + prior_weights * to_prior_mean)
    return step, alone[..., -1] - alone[..., :-1] @ step
