"""From a pose to matrices in armature space."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, IntArray, times
from ..errors import SkeletonError
from ..rotations import matrix_from_quaternion
from .skeleton import Skeleton


def forward_kinematics(
    skeleton: Skeleton,
    rotations: npt.ArrayLike,
    root_location: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike | None = None,
) -> FloatArray:
    """Where a pose puts every bone.

    pose_i = pose_parent · rest_parent⁻¹ · rest_i · R(q_i), rotations only for a bone that inherits them.

    Args:
        skeleton: the rest pose, J bones.
        rotations: ([F,] J, 4) local unit quaternions w x y z, as Blender's pose channels hold them.
        root_location: ([F,] 3) head of the root in armature space; its rest place when None.
        lengths: ([F,] J) bone lengths when they differ from rest: what sits on a bone moves along its Y with them.

    Returns:
        ([F,] J, 4, 4) matrices in armature space.

    Raises:
        SkeletonError: when a shape does not fit the skeleton.
    """
    local, count = np.asarray(rotations, dtype=np.float64), len(skeleton)
    if local.shape[-2:] != (count, 4) or local.ndim not in {2, 3}:
        raise SkeletonError(f"Rotations have shape {local.shape}, but ([F,] {count}, 4) is needed")
    local_matrices, stretch = matrix_from_quaternion(local), _stretch(skeleton, lengths, local.shape[:-2])
    matrices = np.zeros((*local.shape[:-1], 4, 4))
    matrices[..., 3, 3] = 1.0
    for bone, parent in enumerate(skeleton.parents):
        own = skeleton.rest_turn(bone) @ local_matrices[..., bone, :, :]
        if parent < 0:
            head = skeleton.rest[bone, :3, 3] if root_location is None else np.asarray(root_location)
        else:
            carried = matrices[..., parent, :, :]
            offset = skeleton.head_offset(bone) * stretch[..., parent, :]
            head = carried[..., :3, 3] + times(carried[..., :3, :3], offset)
            own = carried[..., :3, :3] @ own if skeleton.inherits_rotation[bone] else own
        matrices[..., bone, :3, :3] = own
        matrices[..., bone, :3, 3] = head
    return matrices


def jumps(carriers: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Of (B,) bodies that are carried by others (-1: by none), those that have one 1, 2, 4 … above them, and which.

    So what is carried along a tree is worked out in as many rounds as its depth has binary digits.
    """
    above = carriers
    while (above >= 0).any():
        bodies = np.flatnonzero(above >= 0)
        yield bodies, above[bodies]
        above = np.where(above >= 0, above[above], -1)


def tails(skeleton: Skeleton, matrices: FloatArray, lengths: FloatArray | None = None) -> FloatArray:
    """([F,] J, 3) tails of the bones that stand at `matrices` ([F,] J, 4, 4)."""
    length = skeleton.lengths if lengths is None else lengths
    return matrices[..., :3, 3] + matrices[..., :3, 1] * length[..., None]


def _stretch(skeleton: Skeleton, lengths: npt.ArrayLike | None, shape: tuple[int, ...]) -> FloatArray:
    """([F,] J, 3) factors on what sits on each bone: along local Y, its length over its rest length."""
    factors = np.ones((*shape, len(skeleton), 3))
    if lengths is not None:
        rest = np.where(skeleton.lengths > 0, skeleton.lengths, 1.0)
        factors[..., 1] = np.where(skeleton.lengths > 0, np.asarray(lengths, dtype=np.float64) / rest, 1.0)
    return factors
