"""The posture term: the cost of moving masses and rotating joints away from the preferred pose.

½ Σ s_b · ( m_b · |c_b - c_b⁰|² + I_b · |log(q_b q_b⁰⁻¹)|² ), with its gradient and Gauss-Newton matrix in the columns
of `Bodies`. The matrix of the first part is the mass matrix of composite rigid bodies (Featherstone, *Rigid Body
Dynamics Algorithms*, 2008, chapter 6). The matrix of the second part is diagonal.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ..arrays import ROUNDING, SINGLE, BoolArray, FloatArray, IntArray, lengths, squares, times
from ..rotations import conjugate, matrix_from_quaternion, product, rotation_vector_from_quaternion
from .bodies import Bodies, Motions, Pose, cross, forward_kinematics

# Inertia of each joint in addition to that of its bone, in squares of the body's size. With less, the light wrist
# rotates to its limits instead of the arm, and jumps there. With more, the hips follow a hand farther.
_LEAST_INERTIA = 1.038e-3
# Radians by which a hip flexes for each radian of its knee's bend, in a relaxed leg: 0.5 with a foot straight below the
# hip, 1 in a squat. With 0, the body bends over backward by 67 degrees if its head is lowered by 50 cm.
FOLLOWS: Final = 0.8
# Factor on the inertia of joints of limbs without goals, which follow gravity and the floor.
_RELAXED = 0.3
# A spine without goals is this many times as stiff unless it bends sideways. With 4, its back is hollow in a squat;
# with 25, a trunk dragged far down tilts sideways. A joint above a hinge, such as a hip, is equally stiff once it
# flexes by _FLEXES radians more than FOLLOWS times the hinge's bend, because muscles behind both joints are stretched
# (straight legs can be raised by 69 to 76 degrees: Youdas et al., *J. Orthop. Sports Phys. Ther.* 35, 2005).
_STIFF, _FLEXES = 12.0, 1.0


@dataclass(frozen=True)
class Masses:
    """The masses of J bones and the stiffness of their joints.

    Attributes:
        shares: (J,) fractions of the body's mass; they add up to 1.
        centers: (J,) the center of mass, as a fraction of the distance from head to tail.
        factors: (J,) factors on the bones' parts of the term, from their stiffness.
        bending: (J,) further factors on the rotations of the joints; all 1 when None.
        hanging: (J,) the fraction of the trunk's tilt that bones of limbs without goals do not follow; all 0 when None.
        eased: (J,) angles of relaxed limbs in radians. For a hinge: the smallest bend. For any other joint: the angle
            by which its bone is lowered from level, or twisted so that the hinge below it bends down. None: no limb
            is relaxed.
        hinges: (J, 3) unit axes about which knees and elbows bend if they have no hinge limits, in the bones' frames;
            zeros for other bones. None: only hinge limits are known.
    """

    shares: FloatArray
    centers: FloatArray
    factors: FloatArray
    bending: FloatArray | None = None
    hanging: FloatArray | None = None
    eased: FloatArray | None = None
    hinges: FloatArray | None = None


class Away(NamedTuple):
    """The difference between a body's pose and the preferred one.

    Attributes:
        centers: (..., J, 3) the mass centers if limbs without goals were fixed to the body.
        balanced: (..., J, 3) the actual mass centers.
        moved: (..., J, 3) `centers` minus those of the preferred pose.
        turned: (..., B, 3) rotation vectors of joints. For joints above hinges, the rotation that follows the hinge is
            left out.
        own: (..., K, 3) rotation vectors of the joints above the K hinges, including that rotation.
        stretched: (..., 2 K) radians by which these joints extend beyond their slack, and by which they flex too far
            for the bends of their hinges.
    """

    centers: FloatArray
    balanced: FloatArray
    moved: FloatArray
    turned: FloatArray
    own: FloatArray
    stretched: FloatArray


class Coupled(NamedTuple):
    """A hinge and the joint above it, which follows the hinge in a relaxed limb: knee and hip.

    The joint above rotates in the opposite direction, by FOLLOWS times the angle.

    Attributes:
        hinge, above: their bodies.
        axis: (3,) of the hinge, in the direction of its bend.
        behind: (3,) the same in the frame of the joint above, at rest.
        eased: the hinge's bend in a relaxed limb, radians.
        stiffer: the factor on the stiffness of the joint above if it extends by more than `slack` radians.
    """

    hinge: int
    above: int
    axis: FloatArray
    behind: FloatArray
    eased: float
    stiffer: float = 1.0
    slack: float = 0.0


class PostureTerm:
    """The posture term for one preferred pose. Bones that are not bodies move with the nearest body above.

    The masses of limbs without goals count as if fixed to the body: they follow it and do not hold it back. Poses may
    have a leading axis of frames.

    Attributes:
        shift: (3,) added to all preferred positions of mass centers, armature space; zero at first.
    """

    def __init__(
        self,
        bodies: Bodies,
        masses: Masses,
        rotations: FloatArray,
        location: FloatArray,
        free: BoolArray | None = None,
        coupled: Sequence[Coupled] = (),
        side_bends: Sequence[tuple[int, FloatArray]] = (),
    ) -> None:
        """Make the term for preferred local rotations (J, 4) and the root's head at (3,).

        free: (B,) the bodies of limbs without goals. coupled: hinges with which the joints above rotate. side_bends:
        bodies, each with the axis (3,) about which it rotates most easily, in the frame that carries it.
        """
        self.bodies, skeleton = bodies, bodies.skeleton
        self.shift: FloatArray = np.zeros(3)
        posed = forward_kinematics(skeleton, rotations, location)
        along = masses.centers * skeleton.lengths
        centers = posed[..., :3, 3] + along[:, None] * posed[..., :3, 1]
        # (..., J, 3) the mass centers in the frames of the bodies that move them; bones that are not bodies are rigid.
        carrying = posed[..., bodies.bones[bodies.carrier], :, :]
        away = centers - carrying[..., :3, 3]
        self._own_offsets: FloatArray = times(np.swapaxes(carrying[..., :3, :3], -1, -2), away)
        free = np.zeros(len(bodies.bones), dtype=bool) if free is None else free
        above = np.arange(len(free))
        for body in np.flatnonzero(free):
            above[body] = above[bodies.parents[body]]
        self.carrier: IntArray = above[bodies.carrier]
        self.masses = masses.shares * np.where(np.isfinite(masses.factors), masses.factors, 1.0)
        self.shares = masses.shares / masses.shares.sum()
        self._has_free = bool(free.any())
        inertia = masses.shares * skeleton.lengths**2 + _LEAST_INERTIA * skeleton.extent**2
        if masses.bending is not None:
            inertia = inertia * masses.bending
        self.inertia = np.where(np.isfinite(masses.factors), inertia * masses.factors, 0.0)[bodies.bones]
        self.inertia[free] *= _RELAXED
        self._stiffness: FloatArray = self.inertia[:, None, None] * np.eye(3)
        self._bent = [body for body, _ in side_bends]
        for body, axis in side_bends:
            self._stiffness[body] += (_STIFF - 1.0) * self.inertia[body] * (np.eye(3) - np.outer(axis, axis))
        self._below = bodies.below(self.carrier)
        self.prefer(bodies.pose(rotations[..., bodies.bones, :], location), coupled)

    def relaxed(self, preferred: Pose, coupled: Sequence[Coupled]) -> "PostureTerm":
        """Copy this term, with another preferred pose of the bodies and another slack of the coupled joints."""
        other = copy(self)
        other.prefer(preferred, coupled)
        return other

    def prefer(self, pose: Pose, coupled: Sequence[Coupled]) -> None:
        """Set the preferred pose of the bodies; all other bones move with them."""
        bodies, self._back = self.bodies, conjugate(pose.local)
        self._preferred = pose.points(bodies.carrier, self._own_offsets)
        away = self._preferred - pose.heads[..., self.carrier, :]
        self._offsets = times(np.swapaxes(pose.orientations[..., self.carrier, :, :], -1, -2), away)
        self.preferred_center_of_mass: FloatArray = self.shares @ self._preferred
        # (K, 3) the axes about which the joints above extend, in the frames that carry them.
        plain, self._above = bodies.vectors(np.eye(bodies.columns)), [each.above for each in coupled]
        axes = [matrix_from_quaternion(pose.local[each.above]) @ each.behind for each in coupled]
        self._behind: FloatArray = np.array(axes).reshape(-1, 3)
        # (3 B, 3 B) the map from rotation vectors of hinges to those of the joints above, which follow them.
        self._follows: FloatArray = np.zeros((3 * len(bodies.bones),) * 2)
        for each, behind in zip(coupled, self._behind, strict=True):
            rows, columns = (slice(3 * body, 3 * body + 3) for body in (each.hinge, each.above))
            self._follows[rows, columns] = FOLLOWS * np.outer(each.axis, behind)
        # (2 K, D) rows of extension and flexion, (2 K,) their slack, and (2 K,) the stiffness that is added beyond it.
        turning, own = self._with_coupled(plain), rotation_vector_from_quaternion(pose.local)
        self._stretching: FloatArray = self._stretches(plain, turning).T
        flexible = np.maximum(_FLEXES - self._stretches(own, self._with_coupled(own))[..., len(coupled) :], 0.0)
        extensible = np.broadcast_to([each.slack for each in coupled], flexible.shape)
        self._slack: FloatArray = np.concatenate([extensible, flexible], axis=-1)
        stiffer = np.array([[each.stiffer - 1.0 for each in coupled], np.full(len(coupled), _STIFF - 1.0)])
        self._stiffer: FloatArray = (stiffer * self.inertia[self._above]).ravel()
        # (D, D) the joints' part of the matrix.
        weighed = times(self._stiffness, turning).reshape(len(turning), 3 * len(self.inertia))
        self._joints = weighed @ turning.reshape(weighed.shape).T

    def center_of_mass(self, away: Away) -> FloatArray:
        """(..., 3) the center of mass, armature space."""
        return np.asarray(self.shares @ away.balanced)

    def away(self, pose: Pose) -> Away:
        """The difference of a pose from the preferred one; rotation vectors are in the parents' frames."""
        turned = rotation_vector_from_quaternion(product(pose.local, self._back))
        coupled = self._with_coupled(turned)
        stretched = np.maximum(self._stretches(turned, coupled) - self._slack, 0.0)
        centers = pose.points(self.carrier, self._offsets)
        balanced = pose.points(self.bodies.carrier, self._own_offsets) if self._has_free else centers
        moved = centers - self._preferred - self.shift
        return Away(centers, balanced, moved, coupled, turned[..., self._above, :], stretched)

    def _with_coupled(self, vectors: FloatArray) -> FloatArray:
        """Subtract from rotation vectors (..., B, 3) the rotations by which joints above hinges follow the hinges."""
        # Don't use -1 for the last axis: without bones, its size would be ambiguous.
        flat = vectors.reshape(*vectors.shape[:-2], len(self._follows))
        return vectors + (flat @ self._follows).reshape(vectors.shape)

    def _stretches(self, turned: FloatArray, coupled: FloatArray) -> FloatArray:
        """(..., 2 K) extension of the joints above hinges, and the excess of their flexion for the hinges' bends.

        turned: (..., B, 3) rotation vectors of joints. coupled: (..., B, 3) from `_with_coupled`.
        """
        both = turned[..., self._above, :], -coupled[..., self._above, :]
        return np.concatenate([(each * self._behind).sum(axis=-1) for each in both], axis=-1)

    def _torques(self, away: Away) -> FloatArray:
        """(..., B, 3) gradients of the term's sum over joints with respect to small rotations of the joints."""
        torques, pulls = times(self._stiffness, away.turned), self._stiffer * away.stretched
        extending, flexing = np.split(pulls[..., None], 2, axis=-2)
        bent = away.turned[..., self._bent, :], torques[..., self._bent, :]
        torques[..., self._bent, :] = _by_rotation(*bent)
        torques[..., self._above, :] -= flexing * self._behind
        torques += (torques.reshape(*torques.shape[:-2], len(self._follows)) @ self._follows.T).reshape(torques.shape)
        pull = torques[..., self._above, :] + extending * self._behind
        torques[..., self._above, :] = _by_rotation(away.own, pull)
        return torques

    def value(self, away: Away) -> float:
        """The value of the term for one pose."""
        value = self.masses @ squares(away.moved) + float((away.turned * times(self._stiffness, away.turned)).sum())
        return 0.5 * float(value + self._stiffer @ away.stretched**2)

    def pulls(self, away: Away) -> FloatArray:
        """(..., J, 3) gradients of the term's sum over masses with respect to the mass centers."""
        return np.asarray(self.masses[:, None] * away.moved)

    def equations(self, away: Away, pose: Pose, motions: Motions) -> tuple[FloatArray, FloatArray]:
        """(..., D, D) Gauss-Newton matrix and (..., D) gradient of the term."""
        centers, forces = away.centers, self.pulls(away)
        if self.bodies.breaks_inheritance:
            matrix, gradient = self._dense(centers, forces, pose, motions)
        else:
            left, right, gradient = self.bodies.factors(motions, self._below, centers, self.masses, forces)
            matrix = self.bodies.symmetric(left @ np.swapaxes(right, -1, -2))
        torques, bodies = self._torques(away), self.bodies
        gradient[..., : bodies.turning] += (torques[..., bodies.body_of[: bodies.turning], :] * bodies.axes).sum(
            axis=-1
        )
        # The threshold keeps rounding errors at the edge of the slack from making a joint stiffer.
        stiffer = self._stiffer * (away.stretched > SINGLE)
        return matrix + self._joints + (self._stretching.T * stiffer[..., None, :]) @ self._stretching, gradient

    def _dense(
        self, centers: FloatArray, forces: FloatArray, pose: Pose, motions: Motions
    ) -> tuple[FloatArray, FloatArray]:
        """Matrix (..., D, D) and gradient (..., D) of the sum over masses, for any tree; in time J · D²."""
        shifts = self.bodies.shifts(pose, motions, centers, self.carrier)
        shifts = np.swapaxes(shifts.reshape(*shifts.shape[:-3], -1, self.bodies.columns), -1, -2)
        weighed = np.swapaxes(shifts * np.repeat(self.masses, 3), -1, -2)
        return shifts @ weighed, (shifts @ forces.reshape(*forces.shape[:-2], -1, 1))[..., 0]


def _by_rotation(vectors: FloatArray, slopes: FloatArray) -> FloatArray:
    """(..., 3) gradients with respect to small rotations, from those by rotation vectors (..., 3).

    The transposed inverse of the left Jacobian of SO(3) (Solà, Deray, Atchuthan, *A micro Lie theory*, 2018, eq. 146).
    """
    half = 0.5 * lengths(vectors)[..., None]
    axes = vectors / np.maximum(2.0 * half, ROUNDING)
    share = np.where(half > SINGLE, half / np.tan(np.maximum(half, SINGLE)), 1.0)
    along = (axes * slopes).sum(axis=-1, keepdims=True) * axes
    return np.asarray(share * slopes + (1.0 - share) * along + half * cross(axes, slopes))
