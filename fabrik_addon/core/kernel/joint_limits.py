"""The limits of all joints of a rig, for one pose or for frames: clamping, and inequalities for a step."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from ..arrays import ROUNDING, SINGLE, BoolArray, FloatArray, IntArray, joined, lengths, squares, times
from ..backend.array import many
from ..limits import (
    MAX_SWING,
    Ball,
    Hinge,
    Limit,
    Polygon,
    Swing,
    below_half_turn,
    compose_arrays,
    ellipse_root,
    legal_rotations,
    nearest_angle,
    nearest_on_ellipse,
    swing_of,
    twist_of,
)
from ..model.skeleton import Skeleton
from ..rotations import IDENTITY
from .bodies import Bodies

# A cone's outline is approximated by straight lines: the nearest one, and two that are rotated from it by this angle. A
# narrow ellipse curves away within a step: with the nearest line alone, a step along the outline gained nothing.
_BESIDE = np.radians(15.0)
_ANGLES = 0.0, -_BESIDE, _BESIDE
# The rotation matrices of these angles, side by side: their product with a direction gives all rotated directions.
_TURNED = np.hstack([[[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]] for angle in _ANGLES])
# (4, 2) the directions +X, +Z, -X, -Z.
AXES = np.concatenate([np.eye(2), -np.eye(2)])
# Each joint has this many keys for its rows.
KEYS = 32


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
        compliance: (K,) the distance by which each constraint yields to a force of 1.
    """

    rows: FloatArray
    gaps: FloatArray
    keys: IntArray
    compliance: FloatArray

    @classmethod
    def none(cls, columns: int) -> "ConstraintRows":
        """No rows, for D columns."""
        return cls(np.zeros((0, columns)), np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0))

    def scaled(self, factor: float) -> "ConstraintRows":
        """The same constraints with rows and gaps times `factor`, which divides their multipliers."""
        return self._replace(rows=factor * self.rows, gaps=factor * self.gaps)


class Sides(NamedTuple):
    """K inequalities near F poses, each of one joint on one frame: normal · w <= gap for a rotation vector w.

    Attributes:
        frames: (K,). bodies: (K,).
        normals: (K, 3) in the frame that carries the body.
        gaps: (K,) radians, zero or more.
        numbers: (K,) the index of each side among those of its joint.
    """

    frames: IntArray
    bodies: IntArray
    normals: FloatArray
    gaps: FloatArray
    numbers: IntArray

    def push(self, vectors: FloatArray) -> FloatArray:
        """(K,) the components of rotation vectors (F, B, 3) toward each side, in radians."""
        return np.asarray((self.normals * vectors[self.frames, self.bodies]).sum(axis=1))

    def places(self) -> IntArray:
        """(K,) the position of each side in the list of the sides of its frame."""
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
        balls = [(body, limit) for body, limit in turning if isinstance(limit, Ball)]
        self._kinds: tuple[_Hinges | _Balls | _Polygons, ...] = (*([_Balls(balls)] if balls else []), _Hinges(hinges))
        if polygons := [(body, limit) for body, limit in turning if isinstance(limit, Polygon)]:
            self._kinds += (_Polygons(polygons),)

    def holder(self, key: int) -> Holder | None:
        """The joint limit that a row belongs to; `key` is the row's key. None for keys of other constraints."""
        body = key // KEYS
        return Holder("LIMIT", self._names[body]) if body < len(self._names) else None

    def clamped(self, local: FloatArray) -> FloatArray:
        """([F,] B, 4) the rotations inside the limits that are nearest to `local` ([F,] B, 4)."""
        result = local.copy()
        poses = result.reshape(-1, *local.shape[-2:])
        poses[:, self._fixed] = IDENTITY
        for kind in self._kinds:
            kind.clamp(poses)
        return result

    def rows(self, local: FloatArray, within: float) -> tuple[ConstraintRows, "Outlines | None"]:
        """The rows that a rotation by `within` radians could violate, for one pose (B, 4).

        Those of balls come first. Also returns the balls' outlines; None if there are no balls.
        """
        balls = [kind.outlines(local[None], within, len(_ANGLES)) for kind in self._kinds if isinstance(kind, _Balls)]
        others = [kind.sides(local[None], within) for kind in self._kinds if not isinstance(kind, _Balls)]
        sides = joined([*(each for each, _ in balls), *others])
        (rows,), (gaps,) = sides.rows(self._bodies, 1)
        found = ConstraintRows(rows, gaps, KEYS * sides.bodies + sides.numbers, np.zeros(len(gaps)))
        return found, balls[0][1] if balls else None

    def curvature(self, outlines: "Outlines | None", pushes: FloatArray) -> FloatArray:
        """(D, D) second derivatives of the outlines, weighted by pushes (K,) of the rows.

        A rotation w (3,) reduces a gap by ½ w · curvature w more than the row predicts.
        """
        result = np.zeros((self._bodies.columns, self._bodies.columns))
        if outlines and pushes[: len(outlines.numbers)].any():
            pushed = np.flatnonzero(pushes[: len(outlines.numbers)])
            columns = self._bodies.first[outlines.bodies[outlines.joints[pushed]]]
            for first, found in zip(columns, pushes[pushed, None, None] * outlines.curvatures(pushed), strict=True):
                result[first : first + 3, first : first + 3] += found
        return result

    def near(self, local: FloatArray, within: float) -> BoolArray:
        """(F, B) whether bodies in F poses (F, B, 4) are `within` radians of a side; True for fixed bodies."""
        result = np.zeros(local.shape[:2], dtype=bool)
        result[:, self._fixed] = True
        sides = self.sides(local, within)
        result[sides.frames, sides.bodies] = True
        return result

    def sides(self, local: FloatArray, within: float) -> Sides:
        """The sides that a rotation by `within` radians could violate, for F poses (F, B, 4).

        A curved outline gives only its nearest side.
        """
        return joined([kind.sides(local, within) for kind in self._kinds])


class Outlines(NamedTuple):
    """The outlines of N ball limits near a pose.

    Attributes:
        numbers, joints: (K,) of the near sides: their numbers as in `Sides`, and their joints, from 0 to N - 1.
        bodies: (N,).
        angle, ex, ez: (N,) of their swings, as in `Swing`.
        normals: (N, m + 4, 2) outward normals of the m lines that approximate them, the nearest first, and of four
            axes.
        straight: (N, 2) divisors: a direction along the outline is divided by them, and the squared length of the
            quotient is the curvature.
        vectors: (N, 4, 3) as in `_gradients`.
    """

    numbers: IntArray
    joints: IntArray
    bodies: IntArray
    angle: FloatArray
    ex: FloatArray
    ez: FloatArray
    normals: FloatArray
    straight: FloatArray
    vectors: FloatArray

    def curvatures(self, sides: IntArray) -> FloatArray:
        """(n, 3, 3) second derivatives of some of the sides, `sides` (n,), by a rotation vector w.

        With u the bone's direction, u'' = w × (w × u). Its part along the sphere is w · u times w × u rotated by 90°.
        In polar coordinates of sphere and chart, with o outward and a around:

            θ'' - θ φ'²      = (w·u) a + (cot θ - θ / sin² θ) a²
            θ φ'' + 2 θ' φ'  = -θ / sin θ (w·u) o + 2 (1 - θ cot θ) / sin θ o a

        The second derivative of a twist t is t' o tan(θ / 2).
        """
        numbers, joints = self.numbers[sides], self.joints[sides]
        angle, ex, ez, normals, straight, vectors = (each[joints] for each in self[3:])
        safe, small, lines = np.maximum(np.sin(angle), SINGLE), angle < SINGLE, normals.shape[1] - len(AXES)
        stretch = np.where(small, 1.0, angle / safe)
        falling = np.where(small, -2.0 / 3.0 * angle, (np.cos(angle) - stretch) / safe)
        mixing = np.where(small, 2.0 / 3.0 * angle, 2.0 * (1.0 - stretch * np.cos(angle)) / safe)
        x, z = np.concatenate([normals, np.zeros((len(numbers), 2, 2))], axis=1)[np.arange(len(numbers)), numbers].T
        across, along = z * ex - x * ez, normals[:, 0, ::-1] * (-1.0, 1.0)
        bent = np.where(numbers < lines, lengths(along / straight), 0.0)
        out = bent * (along[:, 0] * ex + along[:, 1] * ez)
        around = bent * stretch * (along[:, 1] * ex - along[:, 0] * ez)
        products = np.zeros((len(numbers), 4, 4))
        products[:, 0, 2] = x * ex + z * ez
        products[:, 2, 2] = products[:, 0, 2] * falling + around**2
        products[:, 1, 2] = across * mixing + 2.0 * out * around
        products[:, 0, 1] = -across * stretch
        products[:, 1, 1] = out**2
        end = numbers - normals.shape[1]
        products[:, 3, 1] = np.where(end >= 0, 1.0 - 2.0 * end, 0.0) * np.tan(0.5 * angle)
        found = np.swapaxes(vectors, 1, 2) @ products @ vectors
        return np.asarray(0.5 * (found + np.swapaxes(found, 1, 2)))


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
        lower, frames, hinges = np.nonzero(gaps <= within)
        normals = np.where(lower[:, None], -1.0, 1.0) * self._axes[hinges]
        return Sides(frames, self._bodies[hinges], normals, np.maximum(gaps[lower, frames, hinges], 0.0), lower)

    def _angles(self, local: FloatArray) -> FloatArray:
        """(F, H) angles of poses (F, B, 4) in radians, nearest to the middle of each range."""
        own = local[:, self._bodies]
        angles = 2.0 * np.arctan2((own[..., 1:] * self._axes).sum(axis=-1), own[..., 0])
        return np.asarray(nearest_angle(many, angles, self._middle))


class _Balls:
    """N ball limits, with the methods of `JointLimits`.

    They are evaluated together by the array backend, with joints in place of its frames.
    """

    def __init__(self, balls: Sequence[tuple[int, Ball]]) -> None:
        self._bodies: IntArray = np.array([body for body, _ in balls], dtype=np.int64)
        cones = np.array([limit.angles for _, limit in balls]).reshape(-1, 4)
        self._positive, self._negative = cones[:, None, :2], cones[:, None, 2:]
        # A cone of π has no outline. Otherwise, each direction whose angle is zero has a straight side.
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
        swings = np.array([lean.x, lean.z]).T
        half_axes = self._half_axes(swings[:, None], joints)[:, 0]
        outside = squares(swings / np.maximum(half_axes, ROUNDING)) > 1.0 + ROUNDING
        outside |= (np.asarray(lean.angle) > MAX_SWING) | (twist != turn)[frames, joints]
        if not outside.any():
            return
        frames, joints, swings, half_axes = frames[outside], joints[outside], swings[outside], half_axes[outside]
        x, z = below_half_turn(many, *nearest_on_ellipse(many, *swings.T, *half_axes.T))
        local[frames, self._bodies[joints]] = compose_arrays(np.asarray(x), np.asarray(z), twist[frames, joints])

    def sides(self, local: FloatArray, within: float) -> Sides:
        return self.outlines(local, within, 1)[0]

    def outlines(self, local: FloatArray, within: float, count: int) -> tuple[Sides, Outlines]:
        """The sides of the limits near F poses (F, B, 4), and the outlines that they belong to.

        A joint's sides are `count` lines that approximate its outline, four axes, and the ends of its range of twist.
        """
        own = local[:, self._bodies]
        twists = self._twists(own)
        # All points of an outline are at least its shortest half-axis away from its middle.
        inside = np.sin(0.5 * np.maximum(self._least - within, 0.0)) ** 2
        candidates = own[..., 1] ** 2 + own[..., 3] ** 2 >= np.where(self._open, np.inf, inside)
        candidates |= np.minimum(self._high - twists, twists - self._low) <= within
        frames, joints = np.nonzero(candidates)
        lean = swing_of(many, many.quaternion(own[frames, joints]))
        swings = np.array([lean.x, lean.z]).T[:, None]
        half_axes = self._half_axes(swings, joints)
        root = np.reshape(ellipse_root(many, *swings[:, 0].T, *half_axes[:, 0].T), (-1, 1, 1))
        slope = np.where(half_axes > 0.0, swings / np.maximum(half_axes**2 + root, ROUNDING), 0.0)
        size = lengths(slope)[..., None]
        nearest = np.where(size > ROUNDING, slope / np.maximum(size, ROUNDING), AXES[0])
        lines = (nearest @ _TURNED[:, : 2 * count]).reshape(len(swings), count, 2)
        normals = np.concatenate([lines, np.broadcast_to(AXES, (len(swings), *AXES.shape))], axis=1)
        outline = lengths(self._half_axes(lines, joints) * lines) - (lines * swings).sum(axis=2)
        axes, twist = self._axis_gaps[joints] - swings[:, 0] @ AXES.T, twists[frames, joints]
        ends = np.array([self._high[joints] - twist, twist - self._low[joints]]).T
        gaps = np.concatenate([np.where(self._open[joints, None], np.inf, outline), axes, ends], axis=1)
        leaning, vectors = _gradients(lean)
        rows = np.concatenate([normals @ leaning, vectors[:, 3:], -vectors[:, 3:]], axis=1)
        which, numbers = near = np.nonzero(gaps <= within)
        bodies = self._bodies[joints]
        straight = np.maximum(half_axes, SINGLE) * np.sqrt(np.maximum(size, ROUNDING))
        angle, ex, ez = (np.asarray(value) for value in lean[:3])
        sides = Sides(frames[which], bodies[which], rows[near], np.maximum(gaps[near], 0.0), numbers)
        return sides, Outlines(numbers, which, bodies, angle, ex, ez, normals, straight[:, 0], vectors)

    def _twists(self, own: FloatArray) -> FloatArray:
        """(..., N) twists of rotations (..., N, 4) in radians, nearest to the middle of each range."""
        twist = 2.0 * np.arctan2(own[..., 2], own[..., 0])
        return np.asarray(nearest_angle(many, twist, self._middle))

    def _half_axes(self, ways: FloatArray, joints: IntArray) -> FloatArray:
        """(N, n, 2) the half-axes of the quadrants into which directions (N, n, 2) of joints (N,) point."""
        return np.where(ways >= 0.0, self._positive[joints], self._negative[joints])


def _gradients(lean: Swing) -> tuple[FloatArray, FloatArray]:
    """(N, 2, 3) gradients of N swings' x and z for a small rotation vector w, and (N, 4, 3) four vectors.

    The vectors are the bone's direction u, the axes of rotations that increase the swing and that move u around the
    azimuth, and the gradient of the twist. du = w × u. Around the azimuth, the chart stretches movements by θ / sin θ.
    A twist changes by (u + Y) · w / (1 + u · Y).
    """
    angle, ex, ez = (np.asarray(value) for value in (lean.angle, lean.ex, lean.ez))
    sine, cosine, none = np.sin(angle), np.cos(angle), np.zeros(len(ex))
    stretch = np.where(angle < SINGLE, 1.0, angle / np.maximum(sine, ROUNDING))
    x, z = sine * ex, sine * ez
    share = 1.0 / np.maximum(1.0 + cosine, SINGLE)
    twisting = share * x, share * (1.0 + cosine), share * z
    vectors = np.array([x, cosine, z, ez, none, -ex, cosine * ex, -sine, cosine * ez, *twisting]).T.reshape(-1, 4, 3)
    return np.array([ex, -ez * stretch, ez, ex * stretch]).T.reshape(-1, 2, 2) @ vectors[:, 1:3], vectors


class _Polygons:
    """Limits with an outline, evaluated one by one."""

    def __init__(self, polygons: Sequence[tuple[int, Polygon]]) -> None:
        self._polygons = polygons

    def clamp(self, local: FloatArray) -> None:
        for body, limit in self._polygons:
            inside = limit.clamp(many, many.quaternion(local[:, body]))
            local[:, body] = many.stack([inside], len(local))[:, 0]

    def sides(self, local: FloatArray, within: float) -> Sides:
        # Copy the rows, because the backend would read a broadcast row as plain numbers that hold for all frames.
        local = local.copy()
        found = []
        for body, limit in self._polygons:
            rotation, (low, high, middle) = many.quaternion(local[:, body]), limit.between
            lean, twist = swing_of(many, rotation), twist_of(many, rotation, middle)
            outward, nearest = limit.nearest_sides(np.stack([lean.x, lean.z], axis=-1))
            leaning, vectors = _gradients(lean)
            normals = np.concatenate([outward @ leaning, vectors[:, 3:], -vectors[:, 3:]], axis=1)
            gaps = np.concatenate([nearest, np.stack([high - twist, twist - low], axis=-1)], axis=1)
            frames, numbers = near = np.nonzero(gaps <= within)
            bodies = np.full(len(frames), body)
            found.append(Sides(frames, bodies, normals[near], np.maximum(gaps[near], 0.0), numbers))
        return joined(found)


def legal_pose(skeleton: Skeleton, limits: Mapping[str, Limit], rotations: FloatArray) -> FloatArray:
    """Clamp the limited bones of poses (F, J, 4) to their limits; returns (F, J, 4)."""
    legal = np.array(rotations)
    for name, limit in limits.items():
        bone = skeleton.index(name)
        legal[:, bone] = legal_rotations(limit, legal[:, bone])
    return legal


def at_limit(limit: Limit, rotations: FloatArray, within: float) -> BoolArray:
    """(F,) whether local rotations (F, 4) are `within` radians of a side; True for a fixed joint."""
    return JointLimits(_one_joint(), [limit]).near(rotations[:, None], within)[:, 0]


@cache
def _one_joint() -> Bodies:
    return Bodies(Skeleton(["joint"], [-1], np.eye(4)[None], [1.0]), [0], [np.eye(3)], free_root=False)
