"""The joints of B bodies on F frames, all at once: quaternions (4, B, F) and vectors (3, B, F), a row a component.

A step of least squares is little work, so calls of numpy decide: body by body, a step of one frame took 16 ms, not 3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..backend import array
from ..backend.array import Quaternion, Vector
from ..backend.protocol import Quaternion as AnyQuaternion
from ..backend.protocol import Vector as AnyVector
from ..limits.base import Bounds, Limit
from ..model.bodies import Body, hung_effectors
from ..model.kinematics import jumps
from ..model.residuals import holders_of
from ..rotations import NO_TURN

# A joint stands at its limit within so many radians: half a hundredth of a degree, which nobody sees.
AT_LIMIT = 1e-4


@dataclass(frozen=True)
class Placed:
    """Where bodies are.

    Attributes:
        orientations: (4, B, F) in armature space.
        carried: (4, B, F) those that they would have without their local rotations.
        heads: (3, B, F) in armature space.
        points: (F, M, 3) what is measured.
    """

    orientations: FloatArray
    carried: FloatArray
    heads: FloatArray
    points: FloatArray

    def part(self, frames: IntArray) -> "Placed":
        """The same on some of the frames."""
        orientations, carried, heads = (rows[..., frames] for rows in (self.orientations, self.carried, self.heads))
        return Placed(orientations, carried, heads, self.points[frames])

    def put_back(self, frames: IntArray, before: "Placed") -> None:
        """Some of the frames, in place, as they were before."""
        for name in ("orientations", "carried", "heads"):
            getattr(self, name)[..., frames] = getattr(before, name)[..., frames]
        self.points[frames] = before.points[frames]


class Joints:
    """Bodies with their limits, parents first, and the points that hang on them."""

    def __init__(self, bodies: Sequence[Body], ends: int) -> None:
        """Make them ready; ends: how many points hang on them."""
        self._rest = _columns([body.rest_turn for body in bodies], "wxyz")
        self._offsets = _columns([body.head_offset for body in bodies], "xyz")
        self._parents = np.array([body.parent for body in bodies])
        self._carriers = np.where([body.inherits_rotation for body in bodies], self._parents, -1)
        self._jumps = list(jumps(self._carriers))
        self._above = above_or_self([body.parent for body in bodies])
        self._holders = np.array(holders_of(bodies, ends))
        offsets = {end: attachment.offset for end, _, attachment in hung_effectors(bodies)}
        self._points = _columns([offsets[end] for end in range(ends)], "xyz")
        self._groups = list(_groups(bodies))
        self._fixed = [index for index, body in enumerate(bodies) if body.limit and body.limit.freedom == 0]

    def place(self, local: FloatArray, root: FloatArray, factors: FloatArray | None = None) -> tuple[FloatArray, ...]:
        """Forward kinematics: orientations, carried and heads of `Placed`.

        Args:
            local: (4, B, F) local rotations.
            root: (F, 3) the root's head.
            factors: (B, F) of the bodies' lengths; None: all are 1.
        """
        posed = _rows(Quaternion(self._rest) @ Quaternion(local))
        for bodies, above in self._jumps:
            posed[:, bodies] = _rows(Quaternion(posed[:, above]) @ Quaternion(posed[:, bodies]))
        heads = _rows(Quaternion(posed[:, self._parents]) @ _stretched(self._offsets, factors, self._parents))
        heads[:, 0] = root.T
        carried = _rows(Quaternion(posed[:, self._carriers]) @ Quaternion(self._rest))
        carried[:, self._carriers < 0] = self._rest[:, self._carriers < 0]
        return posed, carried, self._above @ heads

    def points(self, orientations: FloatArray, heads: FloatArray, factors: FloatArray | None) -> FloatArray:
        """(F, E + K, 3) where effectors are, and the partners of those that close loops."""
        offsets = _stretched(self._points, factors, self._holders)
        return by_frame(Vector(heads[:, self._holders]) + Quaternion(orientations[:, self._holders]) @ offsets)

    def turned(self, local: FloatArray, carried: FloatArray, rotation_vectors: FloatArray) -> FloatArray:
        """(4, B, F) local rotations, inside all limits, turned by (F, B, 3) rotation vectors in armature space."""
        turn = array.exp_map(Quaternion(carried).conjugated() @ Vector(by_row(rotation_vectors)))
        result = _rows((turn @ Quaternion(local)).normalized())
        result[:, self._fixed] = NO_TURN[:, None, None]
        for bodies, rotations, limit in self._limited(result):
            inside = limit.clamp(array, rotations)
            if inside is not rotations:
                result[:, bodies] = _rows(inside).reshape(4, len(bodies), -1)
        return result

    def constraints(self, local: FloatArray) -> Iterator[tuple[IntArray, IntArray, int, FloatArray]]:
        """The sides of limits at which bodies stand: (N,) bodies, (N,) frames, which side, and (3, N) its normals."""
        frames = local.shape[2]
        for bodies, rotations, limit in self._limited(local):
            for side, constraint in enumerate(limit.constraints(array, rotations, AT_LIMIT)):
                at = np.flatnonzero(constraint.gap <= AT_LIMIT)
                if len(at):
                    yield bodies[at // frames], at % frames, side, _rows(array.take(constraint.normal, at))

    def binding(self, local: FloatArray) -> BoolArray:
        """(F, B) whether a body stands at a side of its limit; a fixed one always does."""
        result = np.zeros(local.shape[:0:-1], dtype=bool)
        result[:, self._fixed] = True
        for bodies, frames, _, _ in self.constraints(local):
            result[frames, bodies] = True
        return result

    def _limited(self, local: FloatArray) -> Iterator[tuple[IntArray, Quaternion, Bounds | Limit]]:
        """N bodies whose limits are of one kind, their rotations with components (N · F,), and what limits these."""
        for bodies, limits in self._groups:
            limit = limits.repeated(local.shape[2]) if isinstance(limits, Bounds) else limits
            yield bodies, Quaternion(local[:, bodies].reshape(4, -1)), limit


def by_frame(value: Vector | Quaternion) -> FloatArray:
    """(F, N, 3 or 4) of what has components (N, F)."""
    return np.ascontiguousarray(_rows(value).transpose(2, 1, 0))


def by_row(vectors: FloatArray) -> FloatArray:
    """(3 or 4, N, F) of (F, N, 3 or 4)."""
    return np.ascontiguousarray(vectors.transpose(2, 1, 0))


def _columns(values: Sequence[AnyVector | AnyQuaternion], names: str) -> FloatArray:
    """(3 or 4, N, 1) of N constants of either backend."""
    return np.array([[[getattr(value, name)] for value in values] for name in names])


def _rows(value: AnyVector | AnyQuaternion) -> FloatArray:
    names = "xyz" if isinstance(value, Vector) else "wxyz"
    return np.array([getattr(value, name) for name in names])


def _stretched(offsets: FloatArray, factors: FloatArray | None, bodies: IntArray) -> Vector:
    """Points (3, N, 1) fixed in N bodies, moved along Y with the bodies' lengths."""
    x, y, z = offsets
    return Vector((x, y if factors is None else y * factors[bodies], z))


def above_or_self(parents: Sequence[int]) -> FloatArray:
    """(B, B) 1 where the column's body is the row's own or above it."""
    above = np.eye(len(parents))
    for index, parent in enumerate(parents):
        if parent >= 0:
            above[index] += above[parent]
    return above


def _groups(bodies: Sequence[Body]) -> Iterator[tuple[IntArray, Bounds | Limit]]:
    """Bodies that can turn inside limits, those together whose numbers can be stacked."""
    groups: dict[type[Bounds], list[tuple[int, Bounds]]] = {}
    for index, body in enumerate(bodies):
        if body.limit is None or not body.limit.freedom:
            continue
        if body.limit.bounds is None:
            yield np.array([index]), body.limit
        else:
            groups.setdefault(type(body.limit.bounds), []).append((index, body.limit.bounds))
    for kind, group in groups.items():
        yield np.array([index for index, _ in group]), kind.stacked([bounds for _, bounds in group])
