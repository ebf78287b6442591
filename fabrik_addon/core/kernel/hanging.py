"""Limbs without goals hang: a weak pull on their bones, added to the posture term, within the same limits and floor.

A limb keeps its tilt from the vertical while its carrier (the bone from which it hangs) tilts, and rotates about the
vertical with the carrier. The farther the carrier tilts, the more the limb is pulled straight down: arms held away from
the body, a shin below a raised knee. If the carrier is itself a bone of a limb, its whole swing counts, even if it
stays equally steep, but not its twist. Limbs raised above level are pulled less, and so are limbs that were posed
before: the more a limb's direction in the start pose differs from that at rest, the more it only keeps its tilt.
Nothing is pulled in the start pose.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import CLOSE, ROUNDING, BoolArray, FloatArray, IntArray, lengths, squares, times
from ..model.skeleton import Skeleton
from ..rotations import IDENTITY, matrix_from_quaternion, quaternion_from_rotation_vector, rotation_between
from .bodies import Bodies, Motions, Pose, cross
from .bounds import Floor
from .posture import Masses

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
