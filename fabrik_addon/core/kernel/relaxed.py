"""Relaxed limbs: straight legs and level arms, whose preferred pose changes as their targets move.

A straight leg bends its knee, and flexes its hip by FOLLOWS times that angle, like a person's leg that leaves the
ground. A level arm, as in a T pose, is lowered, so that its elbow is below the line from shoulder to hand. If its elbow
is dragged instead, the arm twists, so that the forearm can hang: a straight elbow that bends forward cannot bend down.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import CLOSE, ROUNDING, BoolArray, FloatArray, IntArray, lengths, squares
from ..limits import Hinge, Limit
from ..rotations import (
    IDENTITY,
    angle_between,
    matrix_from_quaternion,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from .bodies import Bodies, Motions, Pose, cross
from .hanging import POSED
from .joint_limits import JointLimits
from .posture import FOLLOWS, Coupled, Masses

# Radians: the least range that counts when the two sides of a joint are compared.
_LEAST_RANGE = 0.1


class _Limb(NamedTuple):
    """A limb to relax.

    turns: by body, the rotation vector (3,) that relaxes it, in its own frame. top: the body of the knee or upper arm.
    ends: the effectors on the limb.
    """

    turns: dict[int, FloatArray]
    top: int
    ends: IntArray


class SaggingArms:
    """Elbows of arms with goals sag: -Σ k · |o| |d| o · d.

    o is the elbow's offset from the line between shoulder and wrist, and d is the part of "down" that is perpendicular
    to that line. So the arm swivels about the line until its elbow is lower, but is not pulled down as a whole. The
    more it is bent, the stronger the pull. k is the arm's share of the mass, times the body's size, divided by the
    length of the upper arm. Arms that were posed before sag less. (Arms swivel to where gravity takes little torque:
    Soechting et al., *J. Neuroscience* 15, 1995.)
    """

    def __init__(self, bodies: Bodies, masses: Masses, arms: Sequence[tuple[int, int, int]], up: FloatArray) -> None:
        """Prepare the term; it is zero until `relax` is called.

        arms: for each of A arms, the bodies of upper arm and forearm, and an effector below. up: (3,) armature space.
        """
        self._bodies, self._down = bodies, -up
        self._arms, elbows, self._ends = np.array(arms, dtype=np.int64).T
        self._on: IntArray = np.concatenate([self._arms, elbows, elbows])
        self._offsets: FloatArray = np.zeros((3 * len(arms), 3))
        self._offsets[2 * len(arms) :, 1] = bodies.skeleton.lengths[bodies.bones[elbows]]
        self._weights: FloatArray = bodies.above[self._arms][:, bodies.carrier] @ masses.shares * bodies.skeleton.extent
        self._stiffness: FloatArray = np.zeros(len(arms))

    def prefer(self, pose: Pose) -> None:
        """Set the preferred pose, in which nothing sags."""
        shoulders, elbows, _ = self._points(pose)
        swing = matrix_from_quaternion(pose.local[self._arms])[:, :, 1] - (0.0, 1.0, 0.0)
        at_rest = np.maximum(1.0 - squares(swing) / POSED**2, 0.0)
        self._full: FloatArray = at_rest * self._weights / lengths(elbows - shoulders)
        self._stiffness = np.zeros(len(self._full))

    def relax(self, shares: FloatArray) -> bool:
        """Let arms sag by the shares (E,) of their effectors; returns whether any arm sags."""
        self._stiffness = self._full * shares[self._ends]
        return bool((shares[self._ends] > CLOSE).any())

    def value(self, pose: Pose) -> float:
        """The value of the term."""
        upper, line = self._lines(self._points(pose))
        along = line / np.maximum(lengths(line), ROUNDING)[:, None]
        share, down = (upper * along).sum(axis=1), along @ self._down
        size = np.sqrt(np.maximum((squares(upper) - share**2) * (1.0 - down**2), 0.0))
        return -float(self._stiffness @ (size * (upper @ self._down - share * down)))

    def equations(self, pose: Pose, motions: Motions) -> tuple[FloatArray, FloatArray]:
        """(D,) the gradient, and (D, D) the negative Hessian."""
        points, step = self._points(pose), CLOSE * self._bodies.skeleton.extent
        lines = self._lines(points)
        slopes = self._slopes(lines)
        tries = [self._slopes(lines + sign * step * np.eye(6).reshape(6, 2, 1, 3)) for sign in (1.0, -1.0)]
        bent = (tries[0] - tries[1]).transpose(2, 0, 1, 3).reshape(-1, 6, 6) / (2.0 * step)
        flat = points.reshape(-1, 3)
        shifts = self._bodies.shifts(pose, motions, flat, self._on).reshape(*points.shape, -1)
        rows = np.concatenate(self._lines(shifts), axis=1)
        forces = np.concatenate([slopes[0] + slopes[1], -slopes[0], -slopes[1]])
        curvature = self._bodies.stiffness(pose, motions, flat, self._on, forces)
        curvature = curvature - (np.swapaxes(rows, -1, -2) @ bent @ rows).sum(axis=0)
        return np.einsum("ai,aid->d", np.concatenate(slopes, axis=1), rows), curvature

    def _points(self, pose: Pose) -> FloatArray:
        """(3, A, 3) shoulders, elbows and wrists, armature space."""
        return pose.points(self._on, self._offsets).reshape(3, -1, 3)

    @staticmethod
    def _lines(points: FloatArray) -> FloatArray:
        """(2, A, ...) the lines from shoulders (A, ...) to elbows and to wrists; points: (3, A, ...)."""
        return np.asarray(points[1:] - points[0])

    def _slopes(self, lines: FloatArray) -> FloatArray:
        """(..., 2, A, 3) the gradient with respect to the lines (..., 2, A, 3) from shoulders to elbows and wrists."""
        upper, line = lines[..., 0, :, :], lines[..., 1, :, :]
        length = np.maximum(lengths(line), ROUNDING)[..., None]
        along = line / length
        share, down = (upper * along).sum(axis=-1, keepdims=True), (along @ self._down)[..., None]
        offset, free = np.maximum(squares(upper)[..., None] - share**2, 0.0), 1.0 - down**2
        size, height = np.sqrt(offset * free), (upper @ self._down)[..., None] - share * down
        falls = height / np.maximum(size, ROUNDING)
        by_upper = falls * free * (upper - share * along) + size * (self._down - down * along)
        by_along = -falls * (free * share * upper + offset * down * self._down)
        by_along -= size * (down * upper + share * self._down)
        by_line = (by_along - (by_along * along).sum(axis=-1, keepdims=True) * along) / length
        return np.asarray(-self._stiffness[:, None] * np.stack([by_upper, by_line], axis=-3))


class RelaxedLimbs:
    """The limbs of a body that relax.

    Attributes:
        coupled: hinges that bend in relaxed limbs, with the joints above them.
        on_legs, below_knees: (E,) whether each effector is on a leg, and below its knee.
    """

    def __init__(
        self,
        bodies: Bodies,
        masses: Masses,
        limits: Sequence[Limit | None],
        joints: IntArray,
        free: BoolArray,
        on: IntArray,
        up: FloatArray | None,
    ) -> None:
        """Find the legs.

        Args:
            bodies: B of them.
            masses: of the J bones of the skeleton.
            limits: (B,) of the bodies.
            joints: (B,) from `hanging.joints_of`.
            free: (B,) the bodies of limbs without goals.
            on: (E,) the bodies of the effectors.
            up: (3,) armature space; None: only legs relax.
        """
        self._bodies, self._joints, self._free, self._up = bodies, joints, free, up
        self._on, self._limits = joints[on], limits
        self._eased = np.zeros(len(bodies.bones)) if masses.eased is None else masses.eased[bodies.bones]
        self._hinges = np.zeros((len(bodies.skeleton), 3)) if masses.hinges is None else masses.hinges
        self._hinges = self._hinges[bodies.bones]
        self.coupled = self._find_coupled()
        legs = np.array([(each.above, each.hinge) for each in self.coupled], dtype=np.int64).reshape(-1, 2).T
        self.on_legs, self.below_knees = bodies.above[legs][..., on].any(axis=1)

    def prefer(self, pose: Pose) -> None:
        """Find the limbs that relax if this pose is preferred."""
        self._preferred = pose
        self._limbs = [
            each for each in [*self._legs(), *self._arms()] if len(each.ends) and any(map(np.any, each.turns.values()))
        ]
        self._shares = np.zeros(len(self._limbs))

    def relaxed(self, shares: FloatArray) -> tuple[Pose, list[Coupled]] | None:
        """The preferred pose, each limb relaxed by the largest of its effectors' shares (E,); None if unchanged."""
        eased = np.array([shares[limb.ends].max() for limb in self._limbs])
        if np.array_equal(eased, self._shares):
            return None
        self._shares = eased
        local, coupled = self._preferred.local.copy(), {each.hinge: each for each in self.coupled}
        turned = [body for limb in self._limbs for body in limb.turns]
        vectors = [share * turn for share, limb in zip(eased, self._limbs, strict=True) for turn in limb.turns.values()]
        local[turned] = product(local[turned], quaternion_from_rotation_vector(np.array(vectors)))
        for share, limb in zip(eased, self._limbs, strict=True):
            if limb.top in coupled:
                slack = FOLLOWS * share * float(lengths(limb.turns[limb.top]))
                coupled[limb.top] = coupled[limb.top]._replace(slack=slack)
        return self._bodies.pose(local, self._preferred.root), [*coupled.values()]

    def arms_with_goals(self) -> list[tuple[int, int, int]]:
        """The bodies of upper arm and forearm, and an effector, of each arm with effectors below its elbow."""
        found, bodies = [], self._bodies
        arms = {*np.flatnonzero(self._eased).tolist()} - {each.hinge for each in self.coupled}
        for elbow in np.flatnonzero((bodies.counts > 0) & (bodies.parents >= 0)).tolist():
            ends = np.flatnonzero(bodies.above[elbow, self._on])
            if (arm := int(self._joints[bodies.parents[elbow]])) in arms and len(ends):
                found.append((arm, elbow, int(ends[0])))
        return found

    def _find_coupled(self) -> list[Coupled]:
        bodies, found = self._bodies, []
        rest = bodies.skeleton.rest[bodies.bones, :3, :3]
        joint_limits = JointLimits(bodies, self._limits)
        for body in np.flatnonzero((self._eased > 0.0) & (bodies.counts > 0) & (bodies.parents >= 0)).tolist():
            axis, above = self._bend_axis(body), int(self._joints[bodies.parents[body]])
            if axis is not None:
                # A joint is stiffer toward the side with the shorter range: stiffness is proportional to 1 / range².
                # A range of more than 90° counts as 90°.
                behind = rest[above].T @ rest[body] @ axis
                bends = behind * np.array([[-0.5 * np.pi], [0.5 * np.pi]])
                local = np.tile(IDENTITY, (2, len(bodies.bones), 1))
                local[:, above] = quaternion_from_rotation_vector(bends)
                ranges = angle_between(joint_limits.clamped(local)[:, above], IDENTITY)
                stiffer = max(1.0, float(ranges[0] / max(ranges[1], _LEAST_RANGE))) ** 2
                found.append(Coupled(body, above, axis, behind, float(self._eased[body]), stiffer))
        return found

    def _bend_axis(self, body: int) -> FloatArray | None:
        """(3,) the axis about which a body's hinge bends, in the body's own frame; None without a hinge."""
        limit, axis = self._limits[body], self._hinges[body]
        if isinstance(limit, Hinge):
            axis = np.sign(limit.middle) * np.array(limit.rotation_axis)
        return axis if axis.any() else None

    def _legs(self) -> list[_Limb]:
        """Legs whose knees are straighter in the preferred pose than in a relaxed leg.

        A shin without goals has the goals of its thigh, so that a straight leg hangs once its thigh is raised.
        """
        found = []
        for each in self.coupled:
            bent = float(rotation_vector_from_quaternion(self._preferred.local[each.hinge]) @ each.axis)
            bend = max(0.0, each.eased - bent)
            turns = {each.hinge: bend * each.axis, each.above: -FOLLOWS * bend * each.behind}
            below = self._bodies.above[each.above if self._free[each.hinge] else each.hinge, self._on]
            found.append(_Limb(turns, each.hinge, np.flatnonzero(below)))
        return found

    def _arms(self) -> list[_Limb]:
        found: list[_Limb] = []
        if self._up is None:
            return found
        bodies, on = self._bodies, self._on
        for arm in sorted({*np.flatnonzero(self._eased).tolist()} - {each.hinge for each in self.coupled}):
            frame = self._preferred.orientations[arm]
            axis = cross(self._up, frame[:, 1])
            from_level = np.arctan2(abs(self._up @ frame[:, 1]), np.linalg.norm(axis))
            most = max(0.0, self._eased[arm] - from_level)
            axis *= most / max(float(np.linalg.norm(axis)), ROUNDING)
            found.append(_Limb({arm: axis @ frame}, arm, np.flatnonzero(bodies.above[arm, on] & (on != arm))))
            for elbow in np.flatnonzero(self._free & (self._joints[bodies.parents] == arm)).tolist():
                hinge, forearm = self._bend_axis(elbow), self._preferred.orientations[elbow]
                if hinge is not None:
                    bends = cross(forearm @ hinge, forearm[:, 1])
                    twist = np.arctan2(frame[:, 1] @ cross(self._up, bends), -bends @ self._up)
                    turn = np.array((0.0, np.clip(twist, -most, most), 0.0))
                    found.append(_Limb({arm: turn}, arm, np.flatnonzero(on == arm)))
        return found
