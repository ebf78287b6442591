"""What a pose is asked for, as rows of a least-squares step: points and rotations, some of which come first."""

from collections.abc import Sequence

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, lengths
from ..kernel.bodies import Bodies, Motions, Pose
from ..kernel.goals import LEVER
from ..model.bodies import effector_offset, participants, path_reaches
from ..model.effector import Effector
from ..model.loops import loops_of, with_partners
from ..model.skeleton import Skeleton
from ..rotations import matrix_from_quaternion, rotation_vector_from_matrix


class Goals:
    """E effectors of a skeleton: R rows, three for each point and three for each of the O rotations that count.

    Attributes:
        bones: the bones on the way to them, parents first.
        hard: (R,) the rows of what is met before all else.
        lengths: (E,) of the paths to them.
        oriented: (O,) effectors whose rotation counts.
        scales: (E + O,) what a metre or a radian counts, before it is squared.
    """

    def __init__(self, skeleton: Skeleton, effectors: Sequence[Effector]) -> None:
        points = with_partners(effectors)
        self.count, self._loops = len(effectors), list(loops_of(effectors))
        self.bones = participants(skeleton, points)
        place = {bone: body for body, bone in enumerate(self.bones)}
        self.on: IntArray = np.array([place[skeleton.index(each.bone)] for each in points])
        self._offsets = np.array([effector_offset(skeleton, each) for each in points])
        self.lengths = path_reaches(skeleton, effectors).tolerance_lengths
        turning = [row for row, each in enumerate(effectors) if each.rotation_weight > 0.0]
        self.oriented: IntArray = np.array(turning, dtype=np.int64)
        weights = np.array([each.weight for each in effectors])
        shares = np.array([effectors[row].rotation_weight for row in turning])
        of_turns = weights[self.oriented] * shares * (LEVER * self.lengths[self.oriented]) ** 2
        self.scales: FloatArray = np.sqrt(np.concatenate([weights, of_turns]))
        ranks = np.array([each.priority for each in effectors])
        self.hard: BoolArray = np.repeat(np.concatenate([ranks, ranks[self.oriented]]) < ranks.max(), 3)

    def ask(self, targets: FloatArray, rotations: FloatArray | None) -> None:
        """From now on (E, 3) targets, NaN where there is none, and (E, 4) rotations of the bones."""
        self._targets = np.array(targets)
        self._targets[self._loops] = 0.0
        wanted = np.full((self.count, 4), np.nan) if rotations is None else np.asarray(rotations, dtype=np.float64)
        wanted = wanted[self.oriented]
        seen = np.concatenate([~np.isnan(self._targets).any(axis=1), ~np.isnan(wanted).any(axis=1)])
        self._present = np.where(seen, self.scales, 0.0)
        self._targets, self._frames = np.nan_to_num(self._targets), matrix_from_quaternion(np.nan_to_num(wanted))

    def asked(self) -> tuple[FloatArray, FloatArray]:
        """(E, 3) the targets and (O, 3, 3) the rotations of the bones."""
        return self._targets, self._frames

    def points(self, pose: Pose) -> FloatArray:
        """(E + K, 3) where effectors and the partners of loops are."""
        return pose.points(self.on, self._offsets)

    def misses(self, pose: Pose) -> FloatArray:
        """(E + O, 3) metres and radians that are missing, zero where nothing is asked for."""
        points = self.points(pose)
        found = points[: self.count]
        found[self._loops] -= points[self.count :]
        missing = self._targets - found
        if len(self.oriented):
            back = np.swapaxes(pose.orientations[self.on[self.oriented]], 1, 2)
            missing = np.concatenate([missing, rotation_vector_from_matrix(self._frames @ back)])
        return np.where(self._present[:, None] > 0.0, missing, 0.0)

    def residual(self, pose: Pose) -> FloatArray:
        """(R,) the same by what it counts."""
        return np.asarray((self.misses(pose) * self._present[:, None]).ravel())

    def missed(self, residual: FloatArray) -> FloatArray:
        """(E + O,) the metres and radians of a residual (R,), zero where nothing is asked for."""
        return np.asarray(lengths(residual.reshape(-1, 3)) / np.where(self._present > 0.0, self._present, 1.0))

    def rows(self, bodies: Bodies, pose: Pose, motions: Motions) -> FloatArray:
        """(R, D) how the columns lessen the residual."""
        shifts = bodies.shifts(pose, motions, self.points(pose), self.on)
        rows = shifts[: self.count]
        rows[self._loops] -= shifts[self.count :]
        if len(self.oriented):
            rows = np.concatenate([rows, bodies.turns(motions, self.on[self.oriented])])
        return np.asarray((rows * self._present[:, None, None]).reshape(-1, bodies.columns))

    def forces(self, pulls: FloatArray) -> FloatArray:
        """(E + K, 3) the forces at the points that go with pulls (R,) along the rows."""
        forces = (pulls.reshape(-1, 3) * self._present[:, None])[: self.count]
        return np.concatenate([forces, -forces[self._loops]])
