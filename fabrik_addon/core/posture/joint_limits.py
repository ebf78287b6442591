"""The limits of all joints of a body, for one pose: what is inside, and the sides that a step could pass."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray, IntArray
from ..backend import array as many
from ..backend.protocol import Quaternion, Scalar
from ..limits import ellipse
from ..limits.ball import Ball
from ..limits.base import Limit
from ..limits.hinge import Hinge
from ..limits.swing_twist import FULL_TURN, Lean, lean_of, turn_twisting, twist_of
from .body import Bodies

# A cone's outline is seen as straight lines: the nearest one, and those that are turned from it by so much. A narrow
# ellipse turns away within a step: with the nearest alone, a step along the outline was worth nothing.
_TURNED = np.radians([0.0, -3.0, 3.0, -9.0, 9.0, -20.0, 20.0, -45.0, 45.0])
_AXES = np.radians([0.0, 90.0, 180.0, 270.0])
# Sides of one joint have keys of their own up to this.
_KEYS = 32


class Sides(NamedTuple):
    """K sides near a pose.

    rows: (K, D) turning along one comes nearer. room: (K,) radians up to it. keys: (K,) the same side of the same joint
    has the same key from step to step. yielding: (K,) by how much it gives way to a force of 1.
    """

    rows: FloatArray
    room: FloatArray
    keys: IntArray
    yielding: FloatArray

    @classmethod
    def firm(cls, rows: FloatArray, room: FloatArray, keys: IntArray) -> "Sides":
        """Sides that do not give way."""
        return cls(rows, room, keys, np.zeros(len(room)))

    @classmethod
    def joined(cls, found: Sequence["Sides"]) -> "Sides":
        """All of several."""
        return cls(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


class JointLimits:
    """The limits of B bodies."""

    def __init__(self, bodies: Bodies, limits: Sequence[Limit | None]) -> None:
        turning = [(body, limit) for body, limit in enumerate(limits) if limit and bodies.counts[body]]
        others = [(body, limit) for body, limit in turning if not isinstance(limit, (Hinge, Ball))]
        self._kinds = (
            _Hinges(bodies, [(body, limit) for body, limit in turning if isinstance(limit, Hinge)]),
            _Balls(bodies, [(body, limit) for body, limit in turning if isinstance(limit, Ball)]),
            _Others(bodies, others),
        )

    def clamped(self, local: FloatArray) -> FloatArray:
        """(B, 4) the nearest rotations inside."""
        result = local.copy()
        for kind in self._kinds:
            kind.clamp(result)
        return result

    def sides(self, local: FloatArray, within: float) -> Sides:
        """Those that a turn by so many radians could pass."""
        return Sides.joined([kind.sides(local, within) for kind in self._kinds])


class _Hinges:
    """H hinges."""

    def __init__(self, bodies: Bodies, hinges: Sequence[tuple[int, Hinge]]) -> None:
        self._bodies: IntArray = np.array([body for body, _ in hinges], dtype=np.int64)
        self._columns, self._width = bodies.first[self._bodies], bodies.columns
        self._axes: FloatArray = np.array([limit.turn_axis for _, limit in hinges]).reshape(-1, 3)
        ends = [(limit.low, limit.high) if limit.bounded else (-np.inf, np.inf) for _, limit in hinges]
        self._low, self._high = np.array(ends).reshape(-1, 2).T
        self._middle: FloatArray = np.array([0.5 * (limit.low + limit.high) for _, limit in hinges])

    def clamp(self, local: FloatArray) -> None:
        half = 0.5 * np.clip(self._angles(local), self._low, self._high)
        local[self._bodies] = np.concatenate([np.cos(half)[:, None], np.sin(half)[:, None] * self._axes], axis=1)

    def sides(self, local: FloatArray, within: float) -> Sides:
        angles = self._angles(local)
        room = np.concatenate([self._high - angles, angles - self._low])
        near = np.flatnonzero(room <= within)
        rows = np.zeros((len(near), self._width))
        count = len(self._bodies)
        rows[np.arange(len(near)), self._columns[near % max(count, 1)]] = np.where(near < count, 1.0, -1.0)
        return Sides.firm(rows, room[near], _KEYS * self._bodies[near % max(count, 1)] + (near < count))

    def _angles(self, local: FloatArray) -> FloatArray:
        """(H,) on the side of each range's middle."""
        own = local[self._bodies]
        angles = 2.0 * np.arctan2((own[:, 1:] * self._axes).sum(axis=1), own[:, 0])
        return np.asarray(angles - FULL_TURN * np.floor((angles - self._middle) / FULL_TURN + 0.5))


class _Balls:
    """N balls, their leans and twists worked out together: the array backend's frames are joints here."""

    def __init__(self, bodies: Bodies, balls: Sequence[tuple[int, Ball]]) -> None:
        self._bodies: IntArray = np.array([body for body, _ in balls], dtype=np.int64)
        self._columns, self._width = bodies.first[self._bodies][:, None] + np.arange(3), bodies.columns
        self._cones: FloatArray = np.array([limit.angles for _, limit in balls]).reshape(-1, 4)
        self._low, self._high = np.array([limit.twist for _, limit in balls]).reshape(-1, 2).T
        self._twists = self._high - self._low < FULL_TURN
        self._leans = self._cones.min(axis=1, initial=np.pi) < np.pi
        self._flat = self._cones == 0.0
        if balls:
            self._bounds = type(balls[0][1].bounds).stacked([limit.bounds for _, limit in balls])

    def clamp(self, local: FloatArray) -> None:
        if len(self._bodies):
            inside = self._bounds.clamp(many, many.quaternion(local[self._bodies]))
            local[self._bodies] = many.stack([inside], len(self._bodies))[:, 0]

    def sides(self, local: FloatArray, within: float) -> Sides:
        if not len(self._bodies):
            return Sides.firm(np.zeros((0, self._width)), np.zeros(0), np.zeros(0, dtype=np.int64))
        rotations = many.quaternion(local[self._bodies])
        lean, twist = lean_of(many, rotations), self._twist(rotations)
        count = len(twist)
        chart = np.stack([self._stacked(lean, 1.0, 0.0), self._stacked(lean, 0.0, 1.0)], axis=1)
        (nx, nz), _ = ellipse.side(many, lean.x, lean.z, *self._half_axes(lean.x, lean.z))
        angles = np.concatenate(
            [np.arctan2(nz, nx)[:, None] + _TURNED, np.broadcast_to(_AXES, (count, len(_AXES)))], axis=1
        )
        normals = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        a, b = self._half_axes(normals[..., 0].T, normals[..., 1].T)
        support = np.hypot(a.T * normals[..., 0], b.T * normals[..., 1])
        room = support - (normals * np.stack([lean.x, lean.z], axis=-1)[:, None]).sum(axis=2)
        room[~self._leans] = np.inf
        room[:, len(_TURNED) :][~self._flat] = np.inf
        twisting = many.stack([turn_twisting(many, lean)], count)[:, 0]
        ends = np.where(self._twists[:, None], np.stack([self._high - twist, twist - self._low], axis=1), np.inf)
        normals = np.concatenate([normals @ chart, twisting[:, None], -twisting[:, None]], axis=1)
        room = np.concatenate([room, ends], axis=1)
        joints, places = np.nonzero(room <= within)
        rows = np.zeros((len(joints), self._width))
        rows[np.arange(len(joints))[:, None], self._columns[joints]] = normals[joints, places]
        return Sides.firm(rows, np.maximum(room[joints, places], 0.0), _KEYS * self._bodies[joints] + places)

    def _stacked(self, lean: Lean, x: float, z: float) -> FloatArray:
        """(N, 3) the rotation vectors that move leans along one direction of the chart."""
        ones = np.ones(len(self._bodies))
        return np.asarray(many.stack([lean.turn_toward(many, x * ones, z * ones)], len(ones))[:, 0])

    def _twist(self, rotations: Quaternion) -> FloatArray:
        """(N,) on the side of each range's middle."""
        return np.asarray(twist_of(many, rotations, 0.5 * (self._low + self._high)))

    def _half_axes(self, x: Scalar, z: Scalar) -> tuple[FloatArray, FloatArray]:
        right, front, left, back = self._cones.T
        return np.where(x >= 0.0, right, left), np.where(z >= 0.0, front, back)


class _Others:
    """Limits of any other kind, one by one."""

    def __init__(self, bodies: Bodies, others: Sequence[tuple[int, Limit]]) -> None:
        self._others, self._first, self._width = others, bodies.first, bodies.columns

    def clamp(self, local: FloatArray) -> None:
        for body, limit in self._others:
            inside = limit.clamp(many, many.quaternion(local[body : body + 1]))
            local[body] = many.stack([inside], 1)[0, 0]

    def sides(self, local: FloatArray, within: float) -> Sides:
        rows, room, keys = [np.zeros((0, self._width))], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
        for body, limit in self._others:
            rotation = many.quaternion(local[body : body + 1])
            for place, constraint in enumerate(limit.constraints(many, rotation, within)):
                row = np.zeros((1, self._width))
                row[0, self._first[body] : self._first[body] + 3] = many.stack([constraint.normal], 1)[0, 0]
                rows.append(row)
                room.append(np.maximum(many.row([constraint.gap], 1)[0], 0.0))
                keys.append(np.array([_KEYS * body + place]))
        return Sides.firm(np.concatenate(rows), np.concatenate(room), np.concatenate(keys))
