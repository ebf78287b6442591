"""Which turns the joint limits leave open, for the least-squares finish."""

from collections.abc import Sequence
from math import inf
from types import ModuleType

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, Quaternion, lengths
from ..model.bodies import Body, Pose, carried_frame

AT_LIMIT = 1e-4
_PUSH = 1e-9
_TINY = 1e-12
_NO_TURN = 1e-6
_STEEPEST = 0.1
_ACROSS = -0.999
_LOOSE = 1e-9


class Walls:
    """The walls of all limits about a pose of B bodies on F frames, K or fewer to a body, and the turns still open.

    Attributes:
        open: (F, B, 3, 3) projector of each body's rotation vector (armature space) on what is open.
        moved: (F, B, 3) how far each body goes up to the walls that are closed.
        normals: (F, B, K, 3) unit normals in armature space; turning along one comes nearer to its wall.
        slack: (F, B, K) radians to the wall, infinite where there is none.
        closed: (F, B, K) the walls that a step is kept from passing.
    """

    def __init__(
        self,
        numbers: ModuleType,
        bodies: Sequence[Body],
        local: Sequence[Quaternion],
        pose: Pose,
        frames: int,
        within: float = inf,
    ) -> None:
        """Look around a pose; walls that are farther than `within` radians on all frames are left out."""
        self._turns = np.broadcast_to(np.eye(3), (frames, len(bodies), 3, 3)).copy()
        normals, slack, places = [], [], []
        hinges, axes = [], []
        for index, body in enumerate(bodies):
            if body.limit is None:
                continue
            carried = carried_frame(body, pose)
            if body.limit.freedom == 0:
                self._turns[:, index] = 0.0
            if body.limit.turn_axis is not None:
                hinges.append(index)
                axes.append(carried @ numbers.Vector(body.limit.turn_axis))
            for place, wall in enumerate(body.limit.walls(numbers, local[index], within)):
                normals.append(carried @ wall.normal)
                slack.append(wall.slack)
                places.append((index, place))
        if hinges:
            axis = numbers.stack(axes, frames)
            self._turns[:, hinges] = axis[..., :, None] * axis[..., None, :]
        most = max((place + 1 for _, place in places), default=0)
        self.slack = np.full((frames, len(bodies), most), np.inf)
        self.normals = np.zeros((frames, len(bodies), most, 3))
        if places:
            body_of, place_of = np.array(places).T
            self.slack[:, body_of, place_of] = numbers.row(slack, frames)
            self.normals[:, body_of, place_of] = _unit(numbers.stack(normals, frames))
        self.closed = np.zeros(self.slack.shape, dtype=bool)
        self._pinned = self._between_two()
        self.open, self.moved = self._turns.copy(), np.zeros((frames, len(bodies), 3))

    def _between_two(self) -> BoolArray:
        """(F, B, K) whether another wall stands right across from a wall, so that neither way is open."""
        at = self.slack <= AT_LIMIT
        result = np.zeros_like(at)
        # A joint stands at two walls here and there only.
        where = np.nonzero(np.count_nonzero(at, axis=2) > 1)
        if not len(where[0]):
            return result
        across = self.normals[where] @ np.swapaxes(self.normals[where], 1, 2) < _ACROSS
        result[where] = at[where] & (across & at[where][:, None]).any(axis=2)
        return result

    def begin(self, force: FloatArray, frames: IntArray) -> None:
        """Close the walls at which a joint stands and against which a force (N, D) pushes it on these frames."""
        stood_at = (self._on(self.slack, frames) <= AT_LIMIT) & (self._along(force, frames) > 0.0)
        self.closed[frames] = self._pinned[frames] | stood_at
        self._close(frames)

    def settle(self, step: FloatArray, force: FloatArray, frames: IntArray) -> BoolArray:
        """Close the walls that a step would pass; where it passes none, open those that nothing pushes against.

        Args:
            step: (N, D) for these frames.
            force: (N, D) what still pulls after the step.
            frames: (N,) indices.

        Returns:
            (N,) whether a wall was closed or opened, so that the step is to be worked out again.
        """
        closed, nearer = self.closed[frames], self._along(step, frames)
        passed = ~closed & (nearer > np.maximum(self._on(self.slack, frames) - AT_LIMIT, _PUSH))
        changed = np.asarray(passed.any(axis=(1, 2)))
        if closed.any():
            released = closed & ~self._pinned[frames] & (self._pressure(force, frames) < 0.0)
            released &= ~changed[:, None, None]
            changed |= released.any(axis=(1, 2))
            closed &= ~released
        if changed.any():
            self.closed[frames] = closed | passed
            self._close(frames[changed])
        return changed

    def _on(self, values: FloatArray, frames: IntArray) -> FloatArray:
        """The values on some frames; not copied where those are all of them."""
        return values if len(frames) == len(values) else values[frames]

    def _along(self, vectors: FloatArray, frames: IntArray) -> FloatArray:
        """(N, B, K) the parts of (N, D) rotation vectors along the walls' normals."""
        turns = vectors[:, : 3 * self.open.shape[1]].reshape(len(frames), -1, 3, 1)
        return np.asarray((self._on(self.normals, frames) @ turns)[..., 0])

    def _pressure(self, force: FloatArray, frames: IntArray) -> FloatArray:
        """(N, B, K) with what force each closed wall is pushed against; two at a corner share it."""
        closed = self.closed[frames]
        pressure = np.zeros(closed.shape)
        rows, bodies = np.nonzero(closed.any(axis=2))
        closed = closed[rows, bodies]
        normals = self.normals[frames[rows], bodies] * closed[..., None]
        overlap = normals @ np.swapaxes(normals, 1, 2) + (_LOOSE + ~closed)[..., None] * np.eye(closed.shape[1])
        pushes = normals @ force[:, : 3 * self.open.shape[1]].reshape(len(frames), -1, 3)[rows, bodies][..., None]
        pressure[rows, bodies] = np.linalg.solve(overlap, pushes)[..., 0]
        return pressure

    def _close(self, frames: IntArray) -> None:
        """Work out what is open beside the closed walls, and the way up to them."""
        self.open[frames], self.moved[frames] = self._turns[frames], 0.0
        rows, bodies = np.nonzero(self.closed[frames].any(axis=2))
        if not len(rows):
            return
        where = frames[rows], bodies
        open_, moved, every = self._turns[where], np.zeros((len(rows), 3)), self.closed[where]
        for place in np.flatnonzero(every.any(axis=0)):
            normals, closed = self.normals[*where, place], every[:, place]
            inside = (open_ @ normals[..., None])[..., 0]
            size = lengths(inside)
            unit = inside * np.where(closed & (size > _NO_TURN), 1.0 / np.maximum(size, _NO_TURN), 0.0)[..., None]
            gap = np.where(closed, self.slack[*where, place], 0.0) - (moved * normals).sum(axis=-1)
            moved += unit * (gap / np.maximum(size, _STEEPEST))[..., None]
            open_ -= unit[..., :, None] * unit[..., None, :]
        self.open[where], self.moved[where] = open_, moved


def binding(numbers: ModuleType, bodies: Sequence[Body], local: Sequence[Quaternion], frames: int) -> BoolArray:
    """(F, B) whether a body stands at a wall of its limit; a fixed one always does."""
    result = np.zeros((frames, len(bodies)), dtype=bool)
    for index, (body, rotation) in enumerate(zip(bodies, local, strict=True)):
        if body.limit is None:
            continue
        if body.limit.freedom == 0:
            result[:, index] = True
        for wall in body.limit.walls(numbers, rotation, AT_LIMIT):
            result[:, index] |= np.asarray(wall.slack) <= AT_LIMIT
    return result


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.maximum(lengths(vectors), _TINY)[..., None])
