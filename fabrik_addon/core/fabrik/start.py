"""Start poses: a set that fills the limits, and the alignment of a free root."""

from collections.abc import Mapping

import numpy as np

from ..arrays import TINY, FloatArray
from ..backend import array
from ..limits.base import Limit
from ..model.skeleton import Skeleton
from ..rotations import IDENTITY

# Number of poses, of which the nearest are tried as starts. A robot's hand on five hinges reached its position and
# rotation on 396 of 400 frames with 256 of them, on 399 with 512, on all with 1,024.
_SPREAD_POSES = 1024
_TOWARD_START = 1e-6


def spread_poses(skeleton: Skeleton, limits: Mapping[str, Limit]) -> FloatArray:
    """(P, J, 4) a fixed sequence of poses that fill the limits; bones without a limit stay at rest."""
    count = len(skeleton)
    poses = np.tile(IDENTITY, (_SPREAD_POSES, count, 1))
    places = _spread_places(_SPREAD_POSES, 3 * count).reshape(_SPREAD_POSES, count, 3)
    for name, limit in limits.items():
        bone = skeleton.index(name)
        inside = limit.clamp(array, array.quaternion(limit.sample(places[:, bone])))
        poses[:, bone] = array.stack([inside], _SPREAD_POSES)[:, 0]
    return poses


def _spread_places(count: int, dimensions: int) -> FloatArray:
    """(count, dimensions) a fixed sequence that fills the unit cube evenly.

    Additive recurrence with the powers of the generalised golden ratio (Roberts 2018, the R sequence).
    """
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    return np.asarray(np.mod(0.5 + np.arange(1, count + 1)[:, None] * steps, 1.0))


def align_root(
    points: FloatArray, targets: FloatArray, weights: FloatArray, turning: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The best rigid fit of all effectors to their targets (Horn 1987, the largest eigenvector of his 4×4 matrix).

    Args:
        points: (F, E, 3) the effectors.
        targets: (F, E, 3) their targets.
        weights: (F, E), zero if a target is not seen.
        turning: (F, 3, 3) the contribution of target rotations to the spread of the points.

    Returns:
        (F, 4) rotation, (F, 3) its center and (F, 3) the target of the center. If one or two points do not determine
        the rotation, the smallest one is used; without visible targets nothing moves.
    """
    share = (weights / np.maximum(weights.sum(axis=1, keepdims=True), TINY))[..., None]
    middle, wanted = (points * share).sum(axis=1), (targets * share).sum(axis=1)
    a, b = points - middle[:, None], targets - wanted[:, None]
    spread = np.einsum("fei,fej->fij", a * share, b)
    if turning is not None:
        spread += turning / np.maximum(weights.sum(axis=1), TINY)[:, None, None]
    matrix = np.zeros((len(points), 4, 4))
    trace = np.trace(spread, axis1=1, axis2=2)
    skew = np.stack([spread[:, i, j] - spread[:, j, i] for i, j in ((1, 2), (2, 0), (0, 1))], axis=1)
    size = np.abs(spread).sum(axis=(1, 2)) + TINY
    matrix[:, 0, 0] = trace + _TOWARD_START * size
    matrix[:, 0, 1:] = matrix[:, 1:, 0] = skew
    matrix[:, 1:, 1:] = spread + np.swapaxes(spread, 1, 2) - trace[:, None, None] * np.eye(3)
    rotation = np.linalg.eigh(matrix)[1][..., -1]
    return np.where(rotation[:, :1] < 0, -rotation, rotation), middle, wanted
