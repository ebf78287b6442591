"""The limits of all joints of a rig, for one pose or for frames: clamping, and inequalities for a step."""

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from ..arrays import ROUNDING, SINGLE, BoolArray, FloatArray, IntArray, lengths, squares, times
from ..backend import array as many
from ..limits.ball import Ball, nearest_on_ellipse
from ..limits.base import Limit
from ..limits.hinge import Hinge
from ..limits.polygon import Polygon
from ..limits.swing_twist import FULL_TURN, MAX_SWING, Swing, below_half_turn, compose_arrays, swing_of, twist_of
from ..model.skeleton import Skeleton
from ..rotations import IDENTITY
from .bodies import Bodies

# A cone's outline is approximated by straight lines: the nearest one, and those rotated from it by these angles. A
# narrow ellipse curves away within a step: with the nearest line alone, a step along the outline gained nothing.
_ANGLES = np.radians([0.0, -3.0, 3.0, -9.0, 9.0, -20.0, 20.0, -45.0, 45.0])
# (2, 2 n) from a direction to that direction rotated by each of the angles.
_TURNED = np.array([[np.cos(_ANGLES), np.sin(_ANGLES)], [-np.sin(_ANGLES), np.cos(_ANGLES)]])
_TURNED = _TURNED.transpose(0, 2, 1).reshape(2, -1)
_AXES = np.concatenate([np.eye(2), -np.eye(2)])
# Radians: below this, differences of sines and cosines are taken from their series.
_FLAT = 1e-3
# Each joint has this many keys for its rows.
_KEYS = 32


class Holder(NamedTuple):
    """A constraint that keeps a body from its targets.

    Attributes:
        kind: "LIMIT" of a joint, a "GOAL" that is met, the "FLOOR", "BALANCE", the "BODY" itself, or "REACH": the
            lengths of bones.
        bone: the bone concerned; "" for balance and reach.
        other: the bone that this one touches, for "BODY".
    """

    kind: str
    bone: str = ""
    other: str = ""


OUT_OF_REACH: Final = Holder("REACH")


class ConstraintRows(NamedTuple):
    """K inequalities near a pose: rows · x <= gaps, to first order in a step x (D,).

    Attributes:
        rows: (K, D).
        gaps: (K,) radians, or units of length, to each constraint.
        keys: (K,) a constraint's key is the same in every step.
        compliance: (K,) how much each gives way to a force of 1.
        curvatures: (K, 3, 3) a rotation w (3,) of the joint whose first column is in `columns` (K,) reduces the gap by
            ½ w · curvatures w more than the row predicts.
        columns: (K,).
    """

    rows: FloatArray
    gaps: FloatArray
    keys: IntArray
    compliance: FloatArray
    curvatures: FloatArray
    columns: IntArray

    @classmethod
    def straight(
        cls, rows: FloatArray, gaps: FloatArray, keys: IntArray, compliance: FloatArray | float = 0.0
    ) -> "ConstraintRows":
        """Constraints without curvature; by default also without compliance.

        rows: (K, D). gaps: (K,). keys: (K,). compliance: (K,), or one number for all.
        """
        curvatures, columns = np.zeros((len(gaps), 3, 3)), np.zeros(len(gaps), dtype=np.int64)
        return cls(rows, gaps, keys, np.broadcast_to(compliance, len(gaps)), curvatures, columns)

    @classmethod
    def none(cls, columns: int) -> "ConstraintRows":
        """No rows, for D columns."""
        return cls.straight(np.zeros((0, columns)), np.zeros(0), np.zeros(0, dtype=np.int64))

    @classmethod
    def joined(cls, found: Sequence["ConstraintRows"]) -> "ConstraintRows":
        """The rows of several sets."""
        return cls(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def curvature(self, pushes: FloatArray) -> FloatArray:
        """(D, D) second derivatives from the constraints' curvatures, weighted by pushes (K,)."""
        result = np.zeros((self.rows.shape[1], self.rows.shape[1]))
        for side in np.flatnonzero((pushes > 0.0) & self.curvatures.any(axis=(1, 2))):
            own = slice(self.columns[side], self.columns[side] + 3)
            result[own, own] += pushes[side] * self.curvatures[side]
        return result


class Sides(NamedTuple):
    """K inequalities near F poses, each of one joint on one frame: normal · w <= gap for a rotation vector w.

    Attributes:
        frames: (K,). bodies: (K,).
        normals: (K, 3) in the frame that carries the body.
        gaps: (K,) radians, zero or more.
    """

    frames: IntArray
    bodies: IntArray
    normals: FloatArray
    gaps: FloatArray

    def push(self, vectors: FloatArray) -> FloatArray:
        """(K,) how far rotation vectors (F, B, 3) go toward each side, in radians."""
        return np.asarray((self.normals * vectors[self.frames, self.bodies]).sum(axis=1))

    def part(self, which: IntArray | BoolArray) -> "Sides":
        """Some of the sides, `which` (N,) or (K,)."""
        return Sides(self.frames[which], self.bodies[which], self.normals[which], self.gaps[which])

    def places(self) -> IntArray:
        """(K,) the place of each side among those of its frame."""
        order = np.argsort(self.frames, kind="stable")
        frames, places = self.frames[order], np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order)) - np.searchsorted(frames, frames)
        return places

    def rows(self, bodies: Bodies, frames: int) -> tuple[FloatArray, FloatArray]:
        """(F, W, D) rows and (F, W) gaps; zero and infinite where a frame has fewer than W sides."""
        where, places, first = self.frames, self.places(), bodies.first[self.bodies]
        most = int(places.max(initial=-1)) + 1
        rows, gaps = np.zeros((frames, most, bodies.columns)), np.full((frames, most), np.inf)
        gaps[where, places] = self.gaps
        three = bodies.counts[self.bodies] > 1
        columns = first[three, None] + np.arange(3)
        rows[where[three, None], places[three, None], columns] = times(bodies.axes[columns], self.normals[three])
        along = (bodies.axes[first[~three]] * self.normals[~three]).sum(axis=1)
        rows[where[~three], places[~three], first[~three]] = along
        return rows, gaps


class JointLimits:
    """The limits of B bodies, for one pose or for F poses."""

    def __init__(self, bodies: Bodies, limits: Sequence[Limit | None]) -> None:
        self._names = [bodies.skeleton.names[bone] for bone in bodies.bones]
        turning = [
            (body, limit) for body, limit in enumerate(limits) if limit and limit.freedom and bodies.counts[body]
        ]
        fixed = [body for body, limit in enumerate(limits) if limit and limit.freedom == 0]
        self._fixed: IntArray = np.array(fixed, dtype=np.int64)
        hinges = [(body, limit) for body, limit in turning if isinstance(limit, Hinge)]
        self._kinds: tuple[_Hinges | _Balls | _Polygons, ...] = (_Hinges(bodies, hinges),)
        if balls := [(body, limit) for body, limit in turning if isinstance(limit, Ball)]:
            self._kinds += (_Balls(bodies, balls),)
        if polygons := [(body, limit) for body, limit in turning if isinstance(limit, Polygon)]:
            self._kinds += (_Polygons(bodies, polygons),)

    def holder(self, key: int) -> Holder | None:
        """The limit of the row with a key; None if the key belongs to another kind of constraint."""
        body = key // _KEYS
        return Holder("LIMIT", self._names[body]) if body < len(self._names) else None

    def clamped(self, local: FloatArray) -> FloatArray:
        """([F,] B, 4) the rotations inside the limits that are nearest to `local` ([F,] B, 4)."""
        result = local.copy()
        poses = result.reshape(-1, *local.shape[-2:])
        poses[:, self._fixed] = IDENTITY
        for kind in self._kinds:
            kind.clamp(poses)
        return result

    def rows(self, local: FloatArray, within: float) -> ConstraintRows:
        """The rows that a rotation by `within` radians could violate, for one pose (B, 4)."""
        return ConstraintRows.joined([kind.rows(local, within) for kind in self._kinds])

    def near(self, local: FloatArray, within: float) -> BoolArray:
        """(F, B) whether bodies in F poses (F, B, 4) are within some radians of a side, as fixed ones always are."""
        result = np.zeros(local.shape[:2], dtype=bool)
        result[:, self._fixed] = True
        for kind in self._kinds:
            result[kind.near(local, within)] = True
        return result

    def sides(self, local: FloatArray, within: float) -> Sides:
        """The sides that a rotation by `within` radians could violate, for F poses (F, B, 4).

        A curved outline gives only its nearest side.
        """
        found = [kind.sides(local, within) for kind in self._kinds]
        return Sides(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


class _Hinges:
    """H hinges, with the methods of `JointLimits`."""

    def __init__(self, bodies: Bodies, hinges: Sequence[tuple[int, Hinge]]) -> None:
        self._bodies: IntArray = np.array([body for body, _ in hinges], dtype=np.int64)
        self._columns, self._width = bodies.first[self._bodies], bodies.columns
        self._axes: FloatArray = np.array([limit.rotation_axis for _, limit in hinges]).reshape(-1, 3)
        ranges = [(*limit.ends, limit.middle) for _, limit in hinges]
        self._low, self._high, self._middle = np.array(ranges).reshape(-1, 3).T

    def clamp(self, local: FloatArray) -> None:
        half = 0.5 * np.clip(self._angles(local), self._low, self._high)[..., None]
        local[:, self._bodies] = np.concatenate([np.cos(half), np.sin(half) * self._axes], axis=-1)

    def rows(self, local: FloatArray, within: float) -> ConstraintRows:
        _, bodies, normals, gaps = self.sides(local[None], within)
        hinges = np.searchsorted(self._bodies, bodies)
        upper = (normals * self._axes[hinges]).sum(axis=1)
        rows = np.zeros((len(gaps), self._width))
        rows[np.arange(len(gaps)), self._columns[hinges]] = upper
        return ConstraintRows.straight(rows, gaps, _KEYS * bodies + (upper > 0.0))

    def near(self, local: FloatArray, within: float) -> tuple[IntArray, IntArray]:
        angles = self._angles(local)
        frames, hinges = np.nonzero(np.minimum(self._high - angles, angles - self._low) <= within)
        return frames, self._bodies[hinges]

    def sides(self, local: FloatArray, within: float) -> Sides:
        angles = self._angles(local)
        gaps = np.stack([self._high - angles, angles - self._low])
        upper, frames, hinges = np.nonzero(gaps <= within)
        normals = np.where(upper[:, None], -1.0, 1.0) * self._axes[hinges]
        return Sides(frames, self._bodies[hinges], normals, np.maximum(gaps[upper, frames, hinges], 0.0))

    def _angles(self, local: FloatArray) -> FloatArray:
        """(F, H) angles of poses (F, B, 4) in radians, nearest to the middle of each range."""
        own = local[:, self._bodies]
        angles = 2.0 * np.arctan2((own[..., 1:] * self._axes).sum(axis=-1), own[..., 0])
        return np.asarray(angles - FULL_TURN * np.floor((angles - self._middle) / FULL_TURN + 0.5))


class _Balls:
    """N ball limits, with the methods of `JointLimits`.

    They are evaluated together by the array backend, with joints in place of its frames.
    """

    def __init__(self, bodies: Bodies, balls: Sequence[tuple[int, Ball]]) -> None:
        self._bodies: IntArray = np.array([body for body, _ in balls], dtype=np.int64)
        self._columns, self._width = bodies.first[self._bodies][:, None] + np.arange(3), bodies.columns
        cones = np.array([limit.angles for _, limit in balls]).reshape(-1, 4)
        self._positive, self._negative = cones[:, None, :2], cones[:, None, 2:]
        # A cone of π has no outline. Along an axis there is a limit only if nothing is allowed there.
        self._least = cones.min(axis=1, initial=np.pi)
        self._open = self._least >= np.pi
        open_all_round = np.repeat(self._open[:, None], len(_ANGLES), axis=1)
        self._none = np.where(np.concatenate([open_all_round, cones > 0.0], axis=1), np.inf, 0.0)
        ranges = [(*limit.between, limit.surely_inside) for _, limit in balls]
        self._low, self._high, self._middle, self._sure = np.array(ranges).reshape(-1, 4).T

    def clamp(self, local: FloatArray) -> None:
        own = local[:, self._bodies]
        turn = self._twists(own)
        twist = np.clip(turn, self._low, self._high)
        frames, joints = np.nonzero((own[..., 1] ** 2 + own[..., 3] ** 2 > self._sure) | (twist != turn))
        if not len(frames):
            return
        lean = swing_of(many, many.quaternion(own[frames, joints]))
        swings = np.stack([lean.x, lean.z], axis=1)
        half_axes = self._half_axes(swings[:, None], joints)[:, 0]
        outside = squares(swings / np.maximum(half_axes, ROUNDING)) > 1.0 + ROUNDING
        outside |= (np.asarray(lean.angle) > MAX_SWING) | (twist != turn)[frames, joints]
        if not outside.any():
            return
        frames, joints, swings, half_axes = frames[outside], joints[outside], swings[outside], half_axes[outside]
        x, z = below_half_turn(many, *nearest_on_ellipse(many, *swings.T, *half_axes.T))
        local[frames, self._bodies[joints]] = compose_arrays(np.asarray(x), np.asarray(z), twist[frames, joints])

    def near(self, local: FloatArray, within: float) -> tuple[IntArray, IntArray]:
        frames, joints, gaps, _, _ = self._gaps(local, within)
        which = (gaps <= within).any(axis=1)
        return frames[which], self._bodies[joints[which]]

    def sides(self, local: FloatArray, within: float) -> Sides:
        frames, joints, gaps, lean, nearest = self._gaps(local, within)
        which, places = np.nonzero(gaps <= within)
        leaning, twisting = _gradients(Swing(*(np.asarray(value)[which] for value in lean)))
        ways = np.concatenate([nearest[which, None], np.broadcast_to(_AXES, (len(which), 4, 2))], axis=1) @ leaning
        ways = np.concatenate([ways, twisting, -twisting], axis=1)[np.arange(len(which)), places]
        return Sides(
            frames[which],
            self._bodies[joints[which]],
            ways,
            np.maximum(gaps[which, places], 0.0),
        )

    def _gaps(self, local: FloatArray, within: float) -> tuple[IntArray, IntArray, FloatArray, Swing, FloatArray]:
        """Frames and joints (n,) that may be near a side, and (n, 7) radians to outline, axes and ends of twist.

        Also their swings, and (n, 2) the outward directions.
        """
        own = local[:, self._bodies]
        twists = self._twists(own)
        # No point of an outline is nearer to its middle than its shortest half-axis.
        inside = np.sin(0.5 * np.maximum(self._least - within, 0.0)) ** 2
        candidates = own[..., 1] ** 2 + own[..., 3] ** 2 >= np.where(self._open, np.inf, inside)
        candidates |= np.minimum(self._high - twists, twists - self._low) <= within
        frames, joints = np.nonzero(candidates)
        twist = twists[frames, joints]
        lean = swing_of(many, many.quaternion(own[frames, joints]))
        swings = np.stack([lean.x, lean.z], axis=1)
        half_axes = self._half_axes(swings[:, None], joints)[:, 0]
        slope = np.where(half_axes > 0.0, swings / np.maximum(half_axes, ROUNDING) ** 2, 0.0)
        size = lengths(slope)[:, None]
        nearest = np.where(size > ROUNDING, slope / np.maximum(size, ROUNDING), _AXES[0])
        outline = lengths(half_axes * nearest) - (nearest * swings).sum(axis=1)
        # The limits along axes whose range is zero.
        across = np.where(self._none[joints, len(_ANGLES) :] == 0.0, -swings @ _AXES.T, np.inf)
        ends = np.stack([self._high[joints] - twist, twist - self._low[joints]], axis=1)
        gaps = np.concatenate([np.where(self._open[joints], np.inf, outline)[:, None], across, ends], axis=1)
        return frames, joints, gaps, lean, nearest

    def rows(self, local: FloatArray, within: float) -> ConstraintRows:
        own = local[self._bodies]
        lean, twist = swing_of(many, many.quaternion(own)), self._twists(own)
        normals, outline_room, along = self._outline(np.stack([lean.x, lean.z], axis=1))
        leaning, twisting = _gradients(lean)
        rows = np.concatenate([normals @ leaning, twisting, -twisting], axis=1)
        gaps = np.concatenate([outline_room, np.stack([self._high - twist, twist - self._low], axis=1)], axis=1)
        joints, places = np.nonzero(gaps <= within)
        found = np.zeros((len(joints), self._width))
        found[np.arange(len(joints))[:, None], self._columns[joints]] = rows[joints, places]
        outward, around, twisted = _second_derivatives(lean, twisting[:, 0])
        unit = np.stack([lean.ex, lean.ez], axis=1)[:, None]
        curvatures = (normals * unit).sum(axis=2)[..., None, None] * outward[:, None]
        curvatures += (normals[..., 1] * unit[..., 0] - normals[..., 0] * unit[..., 1])[..., None, None] * around[
            :, None
        ]
        curved = (along @ leaning)[:, 0]
        curvatures[:, : len(_ANGLES)] += (curved[:, :, None] * curved[:, None])[:, None]
        curvatures = np.concatenate([curvatures, twisted[:, None], -twisted[:, None]], axis=1)
        keys = _KEYS * self._bodies[joints] + places
        gaps = np.maximum(gaps[joints, places], 0.0)
        return ConstraintRows(
            found, gaps, keys, np.zeros(len(joints)), curvatures[joints, places], self._columns[joints, 0]
        )

    def _twists(self, own: FloatArray) -> FloatArray:
        """(..., N) twists of rotations (..., N, 4) in radians, nearest to the middle of each range."""
        twist = 2.0 * np.arctan2(own[..., 2], own[..., 0])
        return np.asarray(twist - FULL_TURN * np.floor((twist - self._middle) / FULL_TURN + 0.5))

    def _outline(self, swings: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(N, n, 2) outward normals of lines that approximate the cones' outlines, and (N, n) gaps from swings (N, 2).

        Also (N, 1, 2) the directions along the outlines, times the square roots of their curvatures.
        """
        swings = swings[:, None]
        half_axes = self._half_axes(swings)
        slope = np.where(half_axes > 0.0, swings / np.maximum(half_axes, ROUNDING) ** 2, 0.0)
        size = lengths(slope)[..., None]
        nearest = np.where(size > ROUNDING, slope / np.maximum(size, ROUNDING), _AXES[0])
        turned = (nearest @ _TURNED).reshape(len(swings), len(_ANGLES), 2)
        normals = np.concatenate([turned, np.broadcast_to(_AXES, (len(swings), *_AXES.shape))], axis=1)
        gaps = lengths(self._half_axes(normals) * normals) - (normals * swings).sum(axis=2)
        along = nearest[..., ::-1] * (-1.0, 1.0)
        curvature = (along**2 / np.maximum(half_axes, SINGLE) ** 2).sum(axis=2)[..., None] / np.maximum(size, ROUNDING)
        return normals, gaps + self._none, along * np.sqrt(curvature)

    def _half_axes(self, ways: FloatArray, joints: IntArray | slice = slice(None)) -> FloatArray:
        """(N, n, 2) the half-axes of the quadrants into which directions (N, n, 2) of joints (N,) point."""
        return np.where(ways >= 0.0, self._positive[joints], self._negative[joints])


def _gradients(lean: Swing) -> tuple[FloatArray, FloatArray]:
    """(N, 2, 3) gradients of N swings' x and z by a rotation vector, and (N, 1, 3) those of the twists.

    With u the bone's direction, du = w × u. A larger swing is a rotation about (ez, 0, -ex), movement around the
    azimuth one about (cos θ ex, -sin θ, cos θ ez), which the chart stretches by θ / sin θ. A twist changes by
    (u + Y) · w / (1 + u · Y).
    """
    angle, ex, ez = (np.asarray(value) for value in (lean.angle, lean.ex, lean.ez))
    sine, cosine = np.sin(angle), np.cos(angle)
    above = 1.0 + cosine
    stretch = np.where(angle < SINGLE, 1.0, angle / np.maximum(sine, ROUNDING))
    share, none = 1.0 / np.maximum(above, SINGLE), np.zeros(len(ex))
    turning = np.array([(ez, none, -ex), (cosine * ex, -sine, cosine * ez)]).transpose(2, 0, 1)
    leaning = np.array([(ex, -ez * stretch), (ez, ex * stretch)]).transpose(2, 0, 1)
    twisting = np.array([sine * share * ex, above * share, sine * share * ez]).T
    return leaning @ turning, twisting[:, None]


def _second_derivatives(lean: Swing, twisting: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(N, 3, 3) second derivatives of N swings (outward and around) and twists by a rotation vector.

    With u the bone's direction, u'' = w × (w × u): along the sphere w · u times w × u rotated by 90°. In polar
    coordinates of sphere and chart, o outward and a around: θ'' - θ φ'² = (w·u) a + (cot θ - θ / sin² θ) a², and θ φ''
    + 2 θ' φ' = -θ / sin θ (w·u) o + 2 (1 - θ cot θ) / sin θ o a. A twist t by t' o tan(θ / 2).
    """
    angle, ex, ez = (np.asarray(value) for value in (lean.angle, lean.ex, lean.ez))
    sine, cosine, none = np.sin(angle), np.cos(angle), np.zeros(len(angle))
    safe, small = np.maximum(sine, SINGLE), angle < _FLAT
    own = np.stack([sine * ex, cosine, sine * ez], axis=1)
    out, around = np.stack([ez, none, -ex], axis=1), np.stack([cosine * ex, -sine, cosine * ez], axis=1)
    stretch = np.where(small, 1.0, angle / safe)
    falling = np.where(small, -2.0 / 3.0 * angle, (cosine - stretch) / safe)
    mixing = np.where(small, 2.0 / 3.0 * angle, 2.0 * (1.0 - stretch * cosine) / safe)
    return (
        _both(own, around) + falling[:, None, None] * _both(around, around),
        mixing[:, None, None] * _both(out, around) - stretch[:, None, None] * _both(own, out),
        np.tan(0.5 * angle)[:, None, None] * _both(twisting, out),
    )


def _both(first: FloatArray, second: FloatArray) -> FloatArray:
    """(N, 3, 3) matrices M for which w · M w is the product of first · w and second · w."""
    product = first[:, :, None] * second[:, None]
    return np.asarray(0.5 * (product + np.swapaxes(product, 1, 2)))


class _Polygons:
    """Limits with an outline, evaluated one by one."""

    def __init__(self, bodies: Bodies, polygons: Sequence[tuple[int, Polygon]]) -> None:
        self._polygons, self._first, self._width = polygons, bodies.first, bodies.columns

    def clamp(self, local: FloatArray) -> None:
        for body, limit in self._polygons:
            inside = limit.clamp(many, many.quaternion(local[:, body]))
            local[:, body] = many.stack([inside], len(local))[:, 0]

    def near(self, local: FloatArray, within: float) -> tuple[IntArray, IntArray]:
        sides = self.sides(local, within)
        return sides.frames, sides.bodies

    def sides(self, local: FloatArray, within: float) -> Sides:
        return self._placed(local, within)[0]

    def rows(self, local: FloatArray, within: float) -> ConstraintRows:
        # Copy the row, because the backend would read a broadcast one as plain numbers that hold for all frames.
        (_, bodies, normals, gaps), places = self._placed(local[None].copy(), within)
        rows = np.zeros((len(gaps), self._width))
        rows[np.arange(len(gaps))[:, None], self._first[bodies, None] + np.arange(3)] = normals
        return ConstraintRows.straight(rows, gaps, _KEYS * bodies + places)

    def _placed(self, local: FloatArray, within: float) -> tuple[Sides, IntArray]:
        """The sides of poses (F, B, 4): the two nearest edges and the ends of the twist, and which of the four."""
        found = []
        for body, limit in self._polygons:
            rotation, (low, high, middle) = many.quaternion(local[:, body]), limit.between
            lean, twist = swing_of(many, rotation), twist_of(many, rotation, middle)
            edges = limit.shape.nearest_sides(many, lean.x, lean.z)
            leaning, twisting = _gradients(lean)
            normals = np.stack([np.stack(normal, axis=-1) for normal, _ in edges], axis=1) @ leaning
            normals = np.concatenate([normals, twisting, -twisting], axis=1)
            gaps = np.stack(np.broadcast_arrays(*(gap for _, gap in edges), high - twist, twist - low), axis=1)
            near, places = np.nonzero(gaps <= within)
            gaps = np.maximum(gaps[near, places], 0.0)
            found.append((near, np.full(len(near), body), normals[near, places], gaps, places))
        frames, bodies, normals, gaps, places = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return Sides(frames, bodies, normals, gaps), places


def at_limit(limit: Limit, rotations: FloatArray, within: float) -> BoolArray:
    """(F,) whether local rotations (F, 4) are within some radians of a side; always for a fixed joint."""
    return JointLimits(_one_joint(), [limit]).near(rotations[:, None], within)[:, 0]


@cache
def _one_joint() -> Bodies:
    return Bodies(Skeleton(["joint"], [-1], np.eye(4)[None], [1.0]), [0], [np.eye(3)], free_root=False)
