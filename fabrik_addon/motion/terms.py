"""What poses over frames are asked for: rows for a step."""

from collections.abc import Sequence

import numpy as np

from ..core.arrays import BoolArray, FloatArray, IntArray
from ..core.kernel.bodies import Bodies, Motions, Pose
from ..core.model.bodies import effector_offset, participants
from ..core.model.effector import Effector
from ..core.model.skeleton import Skeleton
from ..core.rotations import matrix_from_quaternion, quaternion_from_matrix, rotation_vector_from_matrix


class FrameGoals:
    """E effectors of a skeleton over frames: R rows, three for each point and three for each rotation that counts.

    Attributes:
        bones: the bones on the way to them, parents first.
        hard: (R,) the rows of what is held rather than moved: those of the lowest priority.
    """

    def __init__(self, skeleton: Skeleton, effectors: Sequence[Effector]) -> None:
        self.bones = participants(skeleton, effectors)
        place = {bone: body for body, bone in enumerate(self.bones)}
        self._on: IntArray = np.array([place[skeleton.index(each.bone)] for each in effectors])
        self._offsets = np.array([effector_offset(skeleton, each) for each in effectors])
        self.oriented: IntArray = np.flatnonzero([each.rotation_weight > 0.0 for each in effectors])
        ranks = np.array([each.priority for each in effectors])
        self.hard: BoolArray = np.repeat(np.concatenate([ranks, ranks[self.oriented]]) < ranks.max(), 3)
        self.count = len(effectors)

    def points(self, pose: Pose) -> FloatArray:
        """(F, E, 3) where the effectors are."""
        return pose.points(self._on, self._offsets)

    def rotations(self, pose: Pose) -> FloatArray:
        """(F, O, 4) how the bones are turned whose rotation counts."""
        return quaternion_from_matrix(pose.orientations[:, self._on[self.oriented]])

    def residual(self, pose: Pose, targets: FloatArray, rotations: FloatArray) -> FloatArray:
        """(F, R) metres and radians to (F, E, 3) targets and (F, O, 4) rotations, NaN where those are."""
        missing = targets - self.points(pose)
        if len(self.oriented):
            back = np.swapaxes(pose.orientations[:, self._on[self.oriented]], -1, -2)
            rotation_vectors = rotation_vector_from_matrix(matrix_from_quaternion(rotations) @ back)
            missing = np.concatenate([missing, rotation_vectors], axis=1)
        return np.asarray(missing.reshape(len(missing), -1))

    def rows(self, bodies: Bodies, pose: Pose, motions: Motions) -> FloatArray:
        """(F, R, D) how the columns lessen the residual."""
        rows = bodies.shifts(pose, motions, self.points(pose), self._on)
        if len(self.oriented):
            rows = np.concatenate([rows, bodies.turns(motions, self._on[self.oriented])], axis=1)
        return np.asarray(rows.reshape(len(rows), -1, bodies.columns))
