"""Which turns the joint limits leave open, for the least-squares finish."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray, Quaternion
from .bodies import Body, Pose, carried_frame

AT_LIMIT = 1e-4
_PUSH = 1e-9
_TINY = 1e-12


class Walls:
    """The walls of all limits about a pose of B bodies on F frames, and the turns that are still open.

    Attributes:
        open: (F, B, 3, 3) projector of each body's rotation vector (armature space) on what is open.
        normals: (F, N, 3) unit normals in armature space; turning along one comes nearer to its wall.
        slack: (F, N) radians to the wall.
        body: (N,) whose wall it is.
    """

    def __init__(
        self, numbers: ModuleType, bodies: Sequence[Body], local: Sequence[Quaternion], pose: Pose, frames: int
    ) -> None:
        self.open = np.tile(np.eye(3), (frames, len(bodies), 1, 1))
        normals, slack, owners = [], [], []
        for index, body in enumerate(bodies):
            if body.limit is None:
                continue
            carried = carried_frame(body, pose)
            if body.limit.freedom == 0:
                self.open[:, index] = 0.0
            if body.limit.turn_axis is not None:
                axis = numbers.stack([carried @ numbers.Vector(body.limit.turn_axis)], frames)[:, 0]
                self.open[:, index] = axis[:, :, None] * axis[:, None, :]
            for wall in body.limit.walls(numbers, local[index]):
                normals.append(carried @ wall.normal)
                slack.append(np.broadcast_to(wall.slack, frames))
                owners.append(index)
        self.body = np.array(owners, dtype=np.int64)
        self.slack = np.stack(slack, axis=1) if slack else np.zeros((frames, 0))
        self.normals = _unit(numbers.stack(normals, frames)) if normals else np.zeros((frames, 0, 3))
        self._free = self.slack <= AT_LIMIT

    def lock(self, step: FloatArray, frames: IntArray) -> BoolArray:
        """Close the ways along which a step (F, D) pushes a joint through a wall it stands at.

        Args:
            step: for all frames; only `frames` of it are looked at.
            frames: indices.

        Returns:
            For each of `frames`, whether something was closed.
        """
        turns = step[frames, : 3 * self.open.shape[1]].reshape(len(frames), -1, 3)[:, self.body]
        pushed = self._free[frames] & ((turns * self.normals[frames]).sum(axis=2) > _PUSH)
        self._free[frames] &= ~pushed
        for wall in np.flatnonzero(pushed.any(axis=0)):
            hit = frames[pushed[:, wall]]
            self._close(hit, int(self.body[wall]), self.normals[hit, wall])
        return np.asarray(pushed.any(axis=1))

    def _close(self, frames: IntArray, body: int, normals: FloatArray) -> None:
        """Take one direction out of what is open."""
        open_ = self.open[frames, body]
        inside = (open_ @ normals[..., None])[..., 0]
        size = np.linalg.norm(inside, axis=1, keepdims=True)
        unit = np.where(size > 1e-6, inside / np.maximum(size, _TINY), 0.0)
        self.open[frames, body] = open_ - unit[:, :, None] * unit[:, None, :]


def binding(numbers: ModuleType, bodies: Sequence[Body], local: Sequence[Quaternion], frames: int) -> BoolArray:
    """(F, B) whether a body stands at a wall of its limit; a fixed one always does."""
    result = np.zeros((frames, len(bodies)), dtype=bool)
    for index, body in enumerate(bodies):
        if body.limit is None:
            continue
        result[:, index] = body.limit.freedom == 0
        for wall in body.limit.walls(numbers, local[index]):
            result[:, index] |= np.asarray(wall.slack) <= AT_LIMIT
    return result


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), _TINY))
