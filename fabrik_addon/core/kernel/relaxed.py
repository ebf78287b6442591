"""Hanging limbs, which have no goals, and relaxed limbs, whose preferred pose changes as their targets move.

A straight leg bends its knee, and flexes its hip by FOLLOWS times that angle, like a person's leg that leaves the
ground. A level arm, as in a T pose, is lowered, so that its elbow is below the line from shoulder to hand. If its elbow
is dragged instead, the arm twists, so that the forearm can hang: a straight elbow that bends forward cannot bend down.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import CLOSE, ROUNDING, BoolArray, FloatArray, IntArray, lengths, squares, times
from ..limits import Hinge, Limit
from ..model.skeleton import Skeleton
from ..rotations import (
    IDENTITY,
    angle_between,
    matrix_from_quaternion,
    product,
    quaternion_from_rotation_vector,
    rotation_between,
    rotation_vector_from_quaternion,
)
from .bodies import Bodies, Motions, Pose, cross
from .bounds import Floor
from .joint_limits import JointLimits
from .posture import FOLLOWS, Coupled, Masses

# The least pull on a limb, in squares of the body's size: about ten times the inertia of a light joint, so that limits
# and floor decide the limb's pose, not its stiffness. Heavy limbs are pulled by their mass times their length, as
# fractions of the body: otherwise the free leg of a person on one foot kicks out for balance.
_LEAST_PULL = 0.012
# The pull on a bone, as a fraction of that on its limb. With 0, elbows bend and arms do not swing.
_OF_BONES = 0.5
# If a carrier is tilted by an angle a, the share 1 - cos(a)^n of the pull is straight down. With n = 3 on the trunk, a
# free hand moves up to 7 times as far as the mouse. With n = 2 on a limb, the forearm below a raised elbow hangs less
# steeply.
_ON_TRUNK, _ON_LIMB = 2, 3
# A limb counts as posed if its direction at the start, relative to its carrier, is this far from that at rest, as a
# distance on the unit sphere (40 degrees). Such a limb keeps its tilt. Otherwise a raised arm would fall by 9 degrees
# while the hips are lowered.
POSED = 0.7
# Steps of finite differences, in radians. _TURNS: (4, 4, 3, 3) rotations by the sum of two steps; index 0 is no step.
_STEPS = CLOSE * np.eye(4)[:, 1:]
_TURNS = matrix_from_quaternion(quaternion_from_rotation_vector(_STEPS[:, None] + _STEPS))


class HangFrom(NamedTuple):
    """The pose whose limb tilts are kept: (J, 4) local rotations, the root's head at (3,), and up (3,); armature space.

    hangs: if False, limbs follow their carrier instead, except at limits and the floor.
    """

    rotations: FloatArray
    location: FloatArray
    up: FloatArray
    hangs: bool = True


class HangingTerm:
    """½ Σ pull · |direction - wanted|² over L limbs and bones, with its gradient and Gauss-Newton matrix.

    Limbs without goals hang: they are pulled weakly, within the same limits and floor. A limb keeps its tilt from the
    vertical while its carrier (the bone from which it hangs) tilts, and rotates about the vertical with the carrier.
    The farther the carrier tilts, the more the limb is pulled straight down: arms held away from the body, a shin below
    a raised knee. If the carrier is itself a bone of a limb, its whole swing counts, even if it stays equally steep,
    but not its twist. Limbs raised above level are pulled less, and so are limbs that were posed before: the more a
    limb's direction in the start pose differs from that at rest, the more it only keeps its tilt. Nothing is pulled in
    the start pose.

    A limb's direction is from the head of its first bone to the tail of its last bone, so a leg on the floor bends its
    knee instead of sliding away. Each of its bones also counts as a limb, by a smaller share, so that an arm hangs from
    the shoulder and not only from the elbow.
    """

    def __init__(
        self,
        bodies: Bodies,
        limbs: Sequence[Sequence[int]],
        carriers: Sequence[int],
        shares: Sequence[float],
        masses: Sequence[float],
        start: HangFrom,
        on_limbs: Sequence[int] = (),
    ) -> None:
        """Prepare the term.

        Args:
            bodies: those of the rig.
            limbs: the bodies of each limb, from the trunk outward.
            carriers: for each limb, the body that carries it.
            shares: for each limb, the fraction of the carrier's tilt that it does not follow.
            masses: of the limbs, as fractions of the body's mass.
            start: the pose whose tilts are kept.
            on_limbs: the carriers that are bones of limbs. Their twists don't count: an upper arm that twists would
                otherwise pull the forearm down, which twists it further, and the forearm would snap.
        """
        skeleton = bodies.skeleton
        self._bodies, self._up = bodies, start.up
        rows = []
        for limb, carrier, share, mass in zip(limbs, carriers, shares, masses, strict=True):
            pull = max(_LEAST_PULL, mass * float(skeleton.lengths[bodies.bones[limb]].sum()) / skeleton.extent)
            rows.append((limb[0], limb[-1], carrier, share, pull))
            rows += [(bone, bone, carrier, share, _OF_BONES * pull) for bone in limb if len(limb) > 1]
        first, last, self._carriers = np.array([row[:3] for row in rows], dtype=np.int64).T
        self._shares, pull = np.array([row[3:] for row in rows]).T
        self._shares *= start.hangs
        self._ends = np.concatenate([last, first])
        self._offsets = np.zeros((len(self._ends), 3))
        self._offsets[: len(rows), 1] = skeleton.lengths[bodies.bones[last]]
        self._strength = np.sqrt(pull) * skeleton.extent
        pose = bodies.pose(start.rotations[bodies.bones], start.location)
        self._back = np.swapaxes(pose.orientations[self._carriers], -1, -2)
        # (S,) the rows whose carriers are themselves bones of limbs, and (S, 3) the directions of these carriers.
        is_on_limb = np.isin(self._carriers, on_limbs)
        self._swings: IntArray = np.flatnonzero(is_on_limb)
        self._powers: IntArray = np.where(is_on_limb, _ON_LIMB, _ON_TRUNK)
        self._axes: FloatArray = pose.orientations[self._carriers[self._swings], :, 1]
        self._start = self._directions(pose)[0]
        rest = bodies.pose(np.tile(IDENTITY, (len(bodies.bones), 1)), start.location)
        at_rest = times(np.swapaxes(rest.orientations[self._carriers], -1, -2), self._directions(rest)[0])
        posed = squares(times(self._back, self._start) - at_rest) / POSED**2
        self._falls = np.clip(1.0 - self._start @ start.up, 0.0, 1.0) * np.maximum(1.0 - posed, 0.0) * start.hangs

    def _directions(self, pose: Pose) -> tuple[FloatArray, FloatArray]:
        """(L, 3) directions of the limbs, and (L,) their lengths from end to end."""
        points = pose.points(self._ends, self._offsets).reshape(2, -1, 3)
        chords = points[0] - points[1]
        sizes = np.maximum(lengths(chords), ROUNDING)
        return chords / sizes[:, None], sizes

    def residual(self, pose: Pose) -> FloatArray:
        """(L, 3) differences from the limbs' hanging directions; half the squared norm is the energy of the pull."""
        strength, pulled = self._wanted(pose.orientations[self._carriers])
        return np.asarray(strength[:, None] * self._directions(pose)[0] - pulled)

    def equations(
        self, residual: FloatArray, pose: Pose, motions: Motions
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(D, D) Gauss-Newton matrix, (D,) gradient, and (D, D) that matrix minus the Hessian."""
        strengths, pulls = self._wanted(_TURNS[:, :, None] @ pose.orientations[self._carriers])
        strength = strengths[0, 0]
        along, sizes = self._directions(pose)
        points = pose.points(self._ends, self._offsets)
        shifts = self._bodies.shifts(pose, motions, points, self._ends).reshape(2, len(along), 3, -1)
        rows = (strength / sizes)[:, None, None] * (shifts[0] - shifts[1])
        rows -= along[:, :, None] * (along[:, None] @ rows)
        changes = (strengths - strength)[..., None] * along - (pulls - pulls[0, 0])
        # One-sided differences of second order, from single and double steps.
        by_carrier = (4.0 * changes[0, 1:] - np.einsum("iilk->ilk", changes[1:, 1:])) / (2.0 * CLOSE)
        turns = self._bodies.turns(motions, self._carriers)
        rows += by_carrier.transpose(1, 2, 0) @ turns
        rows = rows.reshape(-1, self._bodies.columns)
        # Without this curvature, steps overshoot back and forth when a forearm begins to hang.
        forces = -(strength / sizes)[:, None] * residual
        torques = self._carriers, -(by_carrier * residual).sum(axis=-1).T
        forces = np.concatenate([forces, -forces])
        curvature = self._bodies.stiffness(pose, motions, points, self._ends, forces, torques)
        energies = (changes * residual).sum(axis=-1)
        bent = (energies[1:, 1:] - energies[0, 1:, None] - energies[0, 1:]).transpose(2, 0, 1) / CLOSE**2
        curvature -= (np.swapaxes(turns, -1, -2) @ bent @ turns).sum(axis=0)
        return rows.T @ rows, rows.T @ residual.ravel(), curvature

    def _wanted(self, carrying: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(..., L) strengths of the pull for carriers (..., L, 3, 3), and (..., L, 3) wanted directions.

        The pull vanishes for a carrier upside down, which has no heading.
        """
        turned = carrying @ self._back
        directions = carrying[..., 1][..., self._swings, :]
        if len(self._swings):
            swings = rotation_between(np.broadcast_to(self._axes, directions.shape), directions)
            turned[..., self._swings, :, :] = matrix_from_quaternion(swings)
        upright = turned @ self._up
        cosine = upright @ self._up
        axes = cross(np.broadcast_to(self._up, upright.shape), upright)
        sine = lengths(axes)
        axes /= np.maximum(sine, ROUNDING)[..., None]
        tilt = np.arctan2(sine, cosine)
        # Follow the carrier's rotation about the vertical, and a fraction of its tilt.
        ridden = times(turned, self._start)
        kept = _rotated(ridden, axes, -self._shares * tilt)
        # A limb also falls if its carrier swings to another direction that is equally steep.
        cosine[..., self._swings] = (directions * self._axes).sum(axis=-1)
        cosine = np.clip(cosine, -1.0, 1.0)
        drawn = self._falls * np.where(cosine > 0.0, 1.0 - cosine**self._powers, 1.0)
        wanted = (1.0 - drawn)[..., None] * kept - drawn[..., None] * self._up
        wanted /= lengths(wanted)[..., None]
        strength = self._strength * np.sqrt(0.5 * (1.0 + cosine))
        return strength, strength[..., None] * wanted


def _rotated(vectors: FloatArray, axes: FloatArray, angles: FloatArray) -> FloatArray:
    """(..., 3) vectors rotated about unit axes (..., 3) by angles (...), radians; Rodrigues' formula."""
    sine, cosine = np.sin(angles)[..., None], np.cos(angles)[..., None]
    along = (vectors * axes).sum(axis=-1, keepdims=True)
    return np.asarray(cosine * vectors + sine * cross(axes, vectors) + (1.0 - cosine) * along * axes)


def free_limbs(
    skeleton: Skeleton, with_goals: Collection[int], masses: Masses | None, still: Collection[str], floor: Floor | None
) -> set[int]:
    """Bones without goals that hang or meet the floor, and the bones between them and bones with goals.

    with_goals: bones between the root and effectors. masses: None if limbs do not hang. still: bones that don't rotate.
    """
    names = set() if floor is None else {name for name, _ in floor.points if name in skeleton}
    if masses is not None and masses.hanging is not None:
        names |= {skeleton.names[bone] for bone in np.flatnonzero(masses.hanging)}
    paths = [skeleton.path(skeleton.index(name)) for name in names.difference(still)]
    return {int(bone) for path in paths for bone in path} - set(with_goals)


def joints_of(bodies: Bodies, masses: Masses) -> IntArray:
    """(B,) the body whose joint moves each body: itself, or the body of a limb that carries it rigidly.

    Some rigs, such as MakeHuman's, split the bones of limbs into halves, of which the far one does not rotate.
    """
    joints, limbs = np.arange(len(bodies.bones)), masses.hanging
    for body in np.flatnonzero((bodies.counts == 0) & (bodies.parents >= 0)).tolist():
        above = joints[bodies.parents[body]]
        if limbs is not None and limbs[bodies.bones[above]] > 0.0:
            joints[body] = above
    return joints


def hanging_limbs(
    bodies: Bodies, masses: Masses, joints: IntArray, free: BoolArray, start: HangFrom
) -> HangingTerm | None:
    """The term of the limbs that hang; None if there are none.

    joints: (B,) from `joints_of`. free: (B,) the bodies of limbs without goals.
    """
    if masses.hanging is None:
        return None
    shares = masses.hanging[bodies.bones]
    limbs: list[list[int]] = []
    for body in np.flatnonzero(free & (shares > 0.0)).tolist():
        above = next((limb for limb in limbs if limb[-1] == joints[bodies.parents[body]]), [])
        above.append(body)
        limbs += [above] if len(above) == 1 else []
    carriers = np.array([limb[0] for limb in limbs], dtype=np.int64)
    while (unled := free[carriers]).any():
        carriers[unled] = bodies.parents[carriers[unled]]
    carriers = joints[carriers]
    kept = [float(shares[limb[-1]]) for limb in limbs]
    on_limbs = carriers[shares[carriers] > 0.0].tolist()
    weights = [float(masses.shares[bodies.bones[limb]].sum()) for limb in limbs]
    return HangingTerm(bodies, limbs, carriers.tolist(), kept, weights, start, on_limbs) if limbs else None


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
        # (13, 2, 1, 3) no step, and a step along each component of the two lines, forward and back.
        steps = np.concatenate([np.zeros((1, 6)), np.eye(6), -np.eye(6)]).reshape(-1, 2, 1, 3)
        self._steps: FloatArray = CLOSE * bodies.skeleton.extent * steps

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
        points = self._points(pose)
        slopes, forward, back = np.split(self._slopes(self._lines(points) + self._steps), [1, 7])
        bent = (forward - back).transpose(2, 0, 1, 3).reshape(-1, 6, 6) / (2.0 * self._steps.max())
        flat = points.reshape(-1, 3)
        shifts = self._bodies.shifts(pose, motions, flat, self._on).reshape(*points.shape, -1)
        rows = np.concatenate(self._lines(shifts), axis=1)
        forces = np.concatenate([slopes[0, 0] + slopes[0, 1], -slopes[0, 0], -slopes[0, 1]])
        curvature = self._bodies.stiffness(pose, motions, flat, self._on, forces)
        curvature = curvature - (np.swapaxes(rows, -1, -2) @ bent @ rows).sum(axis=0)
        return np.einsum("ai,aid->d", np.concatenate(slopes[0], axis=1), rows), curvature

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
