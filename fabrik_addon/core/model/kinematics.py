"""Forward kinematics: from a pose to matrices in armature space."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, IntArray, times
from ..errors import SkeletonError
from ..readers import LARGEST, shaped, shown
from ..rotations import matrix_from_quaternion
from .skeleton import Skeleton

# Components of unit quaternions are at most 1. This allows rounding errors, but not quaternions that would scale bones.
_MAX_COMPONENT = 2.0


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
    local = _given("Rotations have", rotations, None, count, 4, largest=_MAX_COMPONENT)
    frames = local.shape[0] if local.ndim == 3 else 1
    root = skeleton.rest[0, :3, 3]
    if root_location is not None:
        root = _given("Root locations have", root_location, frames, 3)
    lengths = None if lengths is None else _given("Lengths have", lengths, frames, count)
    local_matrices, stretch = matrix_from_quaternion(local), _stretch(skeleton, lengths, local.shape[:-2])
    matrices = np.zeros((*local.shape[:-1], 4, 4))
    matrices[..., 3, 3] = 1.0
    for bone, parent in enumerate(skeleton.parents):
        own = skeleton.rest_turn(bone) @ local_matrices[..., bone, :, :]
        if parent < 0:
            head = root
        else:
            carried = matrices[..., parent, :, :]
            offset = skeleton.head_offset(bone) * stretch[..., parent, :]
            head = carried[..., :3, 3] + times(carried[..., :3, :3], offset)
            own = carried[..., :3, :3] @ own if skeleton.inherits_rotation[bone] else own
        matrices[..., bone, :3, :3] = own
        matrices[..., bone, :3, 3] = head
    return matrices


def ancestor_steps(carriers: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """For each step of 1, 2, 4 … levels: the bodies that have an ancestor that far above them, and this ancestor.

    carriers: (B,) the body above each one, -1 for none.

    Quantities that are passed down a tree then need as many rounds as its depth has binary digits.
    """
    above = carriers
    while (above >= 0).any():
        bodies = np.flatnonzero(above >= 0)
        yield bodies, above[bodies]
        above = np.where(above >= 0, above[above], -1)


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


def _stretch(skeleton: Skeleton, lengths: FloatArray | None, shape: tuple[int, ...]) -> FloatArray:
    """([F,] J, 3) factors on points in each bone's frame: along local Y, its length over its rest length."""
    factors = np.ones((*shape, len(skeleton), 3))
    if lengths is not None:
        rest = np.where(skeleton.lengths > 0, skeleton.lengths, 1.0)
        factors[..., 1] = np.where(skeleton.lengths > 0, lengths / rest, 1.0)
    return factors
