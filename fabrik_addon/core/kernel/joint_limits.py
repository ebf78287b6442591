"""The limits of all joints of a rig, for one pose or for frames: clamping, and inequalities for a step."""

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from ..arrays import ROUNDING, SINGLE, BoolArray, FloatArray, IntArray, lengths, squares, times
from ..backend import array as many
from ..limits.ball import Ball, ellipse_root, nearest_on_ellipse
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
# (2, 2 n) the matrix from a direction to that direction rotated by each of the angles.
_TURNED = np.array([[np.cos(_ANGLES), np.sin(_ANGLES)], [-np.sin(_ANGLES), np.cos(_ANGLES)]])
_TURNED = _TURNED.transpose(0, 2, 1).reshape(2, -1)
_AXES = np.concatenate([np.eye(2), -np.eye(2)])
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

    def scaled(self, factor: float) -> "ConstraintRows":
        """The same constraints in another unit: multipliers are smaller by the factor."""
        return self._replace(rows=factor * self.rows, gaps=factor * self.gaps, curvatures=factor * self.curvatures)

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

    @classmethod
    def joined(cls, found: Sequence["Sides"]) -> "Sides":
        """The sides of several sets."""
        return cls(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def places(self) -> IntArray:
        """(K,) the index of each side among those of its frame."""
        order = np.argsort(self.frames, kind="stable")
        frames, places = self.frames[order], np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order)) - np.searchsorted(frames, frames)
        return places

    def rows(self, bodies: Bodies, frames: int) -> tuple[FloatArray, FloatArray]:
        """(F, W, D) rows and (F, W) gaps; if a frame has fewer than W sides, other rows are zero and gaps infinite."""
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
        self._bodies, self._names = bodies, [bodies.skeleton.names[bone] for bone in bodies.bones]
        turning = [
            (body, limit) for body, limit in enumerate(limits) if limit and limit.freedom and bodies.counts[body]
        ]
        fixed = [body for body, limit in enumerate(limits) if limit and limit.freedom == 0]
        self._fixed: IntArray = np.array(fixed, dtype=np.int64)
        hinges = [(body, limit) for body, limit in turning if isinstance(limit, Hinge)]
        self._kinds: tuple[_Hinges | _Balls | _Polygons, ...] = (_Hinges(hinges),)
        if balls := [(body, limit) for body, limit in turning if isinstance(limit, Ball)]:
            self._kinds += (_Balls(balls),)
        if polygons := [(body, limit) for body, limit in turning if isinstance(limit, Polygon)]:
            self._kinds += (_Polygons(polygons),)

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
        found, places, curvatures = zip(*[kind.curved_sides(local[None], within) for kind in self._kinds], strict=True)
        sides = Sides.joined(found)
        (rows,), (gaps,) = sides.rows(self._bodies, 1)
        keys, columns = _KEYS * sides.bodies + np.concatenate(places), self._bodies.first[sides.bodies]
        return ConstraintRows(rows, gaps, keys, np.zeros(len(gaps)), np.concatenate(curvatures), columns)

    def near(self, local: FloatArray, within: float) -> BoolArray:
        """(F, B) whether bodies in F poses (F, B, 4) are within some radians of a side, as fixed ones always are."""
        result = np.zeros(local.shape[:2], dtype=bool)
        result[:, self._fixed] = True
        sides = self.sides(local, within)
        result[sides.frames, sides.bodies] = True
        return result

    def sides(self, local: FloatArray, within: float) -> Sides:
        """The sides that a rotation by `within` radians could violate, for F poses (F, B, 4).

        A curved outline gives only its nearest side.
        """
        return Sides.joined([kind.sides(local, within) for kind in self._kinds])


class _Hinges:
    """H hinges, with the methods of `JointLimits`."""

    def __init__(self, hinges: Sequence[tuple[int, Hinge]]) -> None:
        self._bodies: IntArray = np.array([body for body, _ in hinges], dtype=np.int64)
        self._axes: FloatArray = np.array([limit.rotation_axis for _, limit in hinges]).reshape(-1, 3)
        self._low, self._high, self._middle = np.array([limit.between for _, limit in hinges]).reshape(-1, 3).T

    def clamp(self, local: FloatArray) -> None:
        half = 0.5 * np.clip(self._angles(local), self._low, self._high)[..., None]
        local[:, self._bodies] = np.concatenate([np.cos(half), np.sin(half) * self._axes], axis=-1)

    def sides(self, local: FloatArray, within: float) -> Sides:
        angles = self._angles(local)
        gaps = np.stack([self._high - angles, angles - self._low])
        upper, frames, hinges = np.nonzero(gaps <= within)
        normals = np.where(upper[:, None], -1.0, 1.0) * self._axes[hinges]
        bodies, gaps = self._bodies[hinges], np.maximum(gaps[upper, frames, hinges], 0.0)
        return Sides(frames, bodies, normals, gaps)

    def curved_sides(self, local: FloatArray, within: float) -> tuple[Sides, IntArray, FloatArray]:
        """The sides of one pose (1, B, 4), (K,) which ones of their joints they are, and (K, 3, 3) their curvatures.

        Curvatures are as in `ConstraintRows`.
        """
        sides = self.sides(local, within)
        is_upper = (sides.normals * self._axes[np.searchsorted(self._bodies, sides.bodies)]).sum(axis=1) > 0.0
        return sides, is_upper.astype(np.int64), np.zeros((len(sides.gaps), 3, 3))

    def _angles(self, local: FloatArray) -> FloatArray:
        """(F, H) angles of poses (F, B, 4) in radians, nearest to the middle of each range."""
        own = local[:, self._bodies]
        angles = 2.0 * np.arctan2((own[..., 1:] * self._axes).sum(axis=-1), own[..., 0])
        return np.asarray(angles - FULL_TURN * np.floor((angles - self._middle) / FULL_TURN + 0.5))


class _Balls:
    """N ball limits, with the methods of `JointLimits`.

    They are evaluated together by the array backend, with joints in place of its frames.
    """

    def __init__(self, balls: Sequence[tuple[int, Ball]]) -> None:
        self._bodies: IntArray = np.array([body for body, _ in balls], dtype=np.int64)
        cones = np.array([limit.angles for _, limit in balls]).reshape(-1, 4)
        self._positive, self._negative = cones[:, None, :2], cones[:, None, 2:]
        # A cone of π has no outline. Toward an axis, there is an extra limit only if the largest swing is zero.
        self._least = cones.min(axis=1, initial=np.pi)
        self._open = self._least >= np.pi
        self._axis_gaps = np.where(cones > 0.0, np.inf, 0.0)
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

    def sides(self, local: FloatArray, within: float) -> Sides:
        frames, joints, gaps, lean, normals, _ = self._lines(local, within, 1)
        which, places = np.nonzero(gaps <= within)
        leaning, twisting = _gradients(Swing(*(np.asarray(value)[which] for value in lean)))
        rows = np.concatenate([normals[which] @ leaning, twisting, -twisting], axis=1)[np.arange(len(which)), places]
        bodies, gaps = self._bodies[joints[which]], np.maximum(gaps[which, places], 0.0)
        return Sides(frames[which], bodies, rows, gaps)

    def curved_sides(self, local: FloatArray, within: float) -> tuple[Sides, IntArray, FloatArray]:
        # Several lines approximate an outline.
        frames, joints, gaps, lean, normals, straight = self._lines(local, within, len(_ANGLES))
        leaning, twisting = _gradients(lean)
        rows = np.concatenate([normals @ leaning, twisting, -twisting], axis=1)
        outward, around, twisted = _second_derivatives(lean, twisting[:, 0])
        unit = np.stack([lean.ex, lean.ez], axis=1)[:, None]
        curvatures = (normals * unit).sum(axis=2)[..., None, None] * outward[:, None]
        across = normals[..., 1] * unit[..., 0] - normals[..., 0] * unit[..., 1]
        curvatures += across[..., None, None] * around[:, None]
        along = normals[:, :1, ::-1] * (-1.0, 1.0)
        curved = (lengths(along / straight)[..., None] * along @ leaning)[:, 0]
        curvatures[:, : len(_ANGLES)] += (curved[:, :, None] * curved[:, None])[:, None]
        curvatures = np.concatenate([curvatures, twisted[:, None], -twisted[:, None]], axis=1)
        near = np.nonzero(gaps <= within)
        bodies = self._bodies[joints[near[0]]]
        sides = Sides(frames[near[0]], bodies, rows[near], np.maximum(gaps[near], 0.0))
        return sides, near[1], curvatures[near]

    def _lines(
        self, local: FloatArray, within: float, count: int
    ) -> tuple[IntArray, IntArray, FloatArray, Swing, FloatArray, FloatArray]:
        """Frames and joints (n,) that may be near a side, and (n, m + 6) radians to their sides; m is `count`.

        The sides are m lines that approximate the outline, four axes and the ends of the twist. Also returns the
        swings, (n, m + 4, 2) the outward normals of lines and axes, and (n, 1, 2) divisors: a direction along the
        outline is divided by them, and the squared length of the quotient is the curvature.
        """
        own = local[:, self._bodies]
        twists = self._twists(own)
        # All points of an outline are at least its shortest half-axis away from its middle.
        inside = np.sin(0.5 * np.maximum(self._least - within, 0.0)) ** 2
        candidates = own[..., 1] ** 2 + own[..., 3] ** 2 >= np.where(self._open, np.inf, inside)
        candidates |= np.minimum(self._high - twists, twists - self._low) <= within
        frames, joints = np.nonzero(candidates)
        lean = swing_of(many, many.quaternion(own[frames, joints]))
        swings = np.stack([lean.x, lean.z], axis=1)[:, None]
        half_axes = self._half_axes(swings, joints)
        root = np.reshape(ellipse_root(many, *swings[:, 0].T, *half_axes[:, 0].T), (-1, 1, 1))
        slope = np.where(half_axes > 0.0, swings / np.maximum(half_axes**2 + root, ROUNDING), 0.0)
        size = lengths(slope)[..., None]
        nearest = np.where(size > ROUNDING, slope / np.maximum(size, ROUNDING), _AXES[0])
        turned = (nearest @ _TURNED[:, : 2 * count]).reshape(len(swings), count, 2)
        normals = np.concatenate([turned, np.broadcast_to(_AXES, (len(swings), *_AXES.shape))], axis=1)
        outline = lengths(self._half_axes(turned, joints) * turned) - (turned * swings).sum(axis=2)
        axes, twist = self._axis_gaps[joints] - swings[:, 0] @ _AXES.T, twists[frames, joints]
        ends = np.stack([self._high[joints] - twist, twist - self._low[joints]], axis=1)
        gaps = np.concatenate([np.where(self._open[joints, None], np.inf, outline), axes, ends], axis=1)
        return frames, joints, gaps, lean, normals, np.maximum(half_axes, SINGLE) * np.sqrt(np.maximum(size, ROUNDING))

    def _twists(self, own: FloatArray) -> FloatArray:
        """(..., N) twists of rotations (..., N, 4) in radians, nearest to the middle of each range."""
        twist = 2.0 * np.arctan2(own[..., 2], own[..., 0])
        return np.asarray(twist - FULL_TURN * np.floor((twist - self._middle) / FULL_TURN + 0.5))

    def _half_axes(self, ways: FloatArray, joints: IntArray) -> FloatArray:
        """(N, n, 2) the half-axes of the quadrants into which directions (N, n, 2) of joints (N,) point."""
        return np.where(ways >= 0.0, self._positive[joints], self._negative[joints])


def _gradients(lean: Swing) -> tuple[FloatArray, FloatArray]:
    """(N, 2, 3) gradients of N swings' x and z, and (N, 1, 3) gradients of the twists, for a small rotation vector w.

    With u the bone's direction, du = w × u. A rotation about (ez, 0, -ex) increases the swing. A rotation about
    (cos θ ex, -sin θ, cos θ ez) moves u around the azimuth, which the chart stretches by θ / sin θ. A twist changes
    by (u + Y) · w / (1 + u · Y).
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

    With u the bone's direction, u'' = w × (w × u). Its part along the sphere is w · u times w × u rotated by 90°. In
    polar coordinates of sphere and chart, with o outward and a around:

        θ'' - θ φ'²      = (w·u) a + (cot θ - θ / sin² θ) a²
        θ φ'' + 2 θ' φ'  = -θ / sin θ (w·u) o + 2 (1 - θ cot θ) / sin θ o a

    The second derivative of a twist t is t' o tan(θ / 2).
    """
    angle, ex, ez = (np.asarray(value) for value in (lean.angle, lean.ex, lean.ez))
    sine, cosine, none = np.sin(angle), np.cos(angle), np.zeros(len(angle))
    safe, small = np.maximum(sine, SINGLE), angle < SINGLE
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

    def __init__(self, polygons: Sequence[tuple[int, Polygon]]) -> None:
        self._polygons = polygons

    def clamp(self, local: FloatArray) -> None:
        for body, limit in self._polygons:
            inside = limit.clamp(many, many.quaternion(local[:, body]))
            local[:, body] = many.stack([inside], len(local))[:, 0]

    def sides(self, local: FloatArray, within: float) -> Sides:
        return self._placed(local, within)[0]

    def curved_sides(self, local: FloatArray, within: float) -> tuple[Sides, IntArray, FloatArray]:
        # Copy the row, because the backend would read a broadcast one as plain numbers that hold for all frames.
        sides, places = self._placed(local.copy(), within)
        return sides, places, np.zeros((len(places), 3, 3))

    def _placed(self, local: FloatArray, within: float) -> tuple[Sides, IntArray]:
        """The two nearest edges of poses (F, B, 4) and the ends of their twist; and the index of each, 0 to 3."""
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
