"""Forward kinematics of a whole skeleton: from a pose to matrices in armature space."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..arrays import CLOSE, FloatArray
from ..errors import LARGEST, SkeletonError, shaped, shown
from ..model.skeleton import Skeleton
from .bodies import Bodies


def forward_kinematics(
    skeleton: Skeleton,
    rotations: npt.ArrayLike,
    root_location: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
) -> FloatArray:
    """The armature-space matrix of every bone in a pose.

    pose_i = pose_parent · rest_parent⁻¹ · rest_i · R(q_i), as in Blender. A bone that does not inherit rotation follows
    only the location of its parent.

    Args:
        skeleton: the rest pose, J bones.
        rotations: ([F,] J, 4) local unit quaternions w x y z, as in Blender's pose channels.
        root_location: ([F,] 3) head of the root in armature space; at rest when None.
        lengths: ([F,] J) bone lengths if they differ from rest; children move along the bone's Y with them.

    Returns:
        ([F,] J, 4, 4) matrices in armature space.

    Raises:
        SkeletonError: if a shape does not match the skeleton, or a number is infinite or too large.
    """
    if not isinstance(skeleton, Skeleton):
        raise SkeletonError(f"The skeleton is {shown(skeleton)}: give a Skeleton")
    count = len(skeleton)
    # Larger components would scale bones; single precision may round up those of unit quaternions.
    local = _given("Rotations have", rotations, None, count, 4, largest=1.0 + CLOSE)
    frames = local.shape[0] if local.ndim == 3 else 1
    root, factors = skeleton.rest[0, :3, 3], None
    if root_location is not None:
        root = _given("Root locations have", root_location, frames, 3)
    if lengths is not None:
        rest = np.where(skeleton.lengths > 0, skeleton.lengths, np.inf)
        factors = np.where(rest < np.inf, _given("Lengths have", lengths, frames, count) / rest, 1.0)
    matrices = np.zeros((*local.shape[:-1], 4, 4))
    matrices[..., :3, 3], matrices[..., :3, :3] = _bodies(skeleton).placed(local, root, factors)
    matrices[..., 3, 3] = 1.0
    return matrices


@lru_cache(maxsize=8)
def _bodies(skeleton: Skeleton) -> Bodies:
    return Bodies(skeleton, range(len(skeleton)), [np.zeros((0, 3))] * len(skeleton), free_root=False)


def tails(skeleton: Skeleton, matrices: FloatArray, lengths: FloatArray | None = None) -> FloatArray:
    """([F,] J, 3) tails of bones at matrices ([F,] J, 4, 4), armature space; lengths: ([F,] J), at rest when None."""
    length = skeleton.lengths if lengths is None else lengths
    return matrices[..., :3, 3] + matrices[..., :3, 1] * length[..., None]


def _given(what: str, values: object, frames: int | None, *shape: int, largest: float = LARGEST) -> FloatArray:
    """Values as an array for one pose or F poses; NaN is allowed. Raises SkeletonError for invalid ones."""
    array = shaped(SkeletonError, what, values, frames, *shape)
    if (np.abs(array) > largest).any():
        raise SkeletonError(f"{what} a number that is infinite or too large: it must be at most {largest:g}")
    return array
