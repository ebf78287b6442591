"""The posture term: how far each bone's mass is from where the preferred pose has it, and how far joints are turned.

½ Σ s_b · ( m_b · |c_b - c_b⁰|² + I_b · |log(q_b q_b⁰⁻¹)|² ), with its gradient and Gauss-Newton matrix in the columns
of `Bodies`. The first part's matrix is the mass matrix of composite rigid bodies (Featherstone, *Rigid Body Dynamics
Algorithms*, 2008, chapter 6), the second one's is diagonal.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import FloatArray, IntArray
from ..model.kinematics import forward_kinematics
from ..rotations import conjugate, product, rotation_vector_from_quaternion
from .body import Bodies, Motions, Stance, cross

# Each turning joint's own inertia beside that of its bone, in squares of the body's size. Of 2e-5 m² (at 1.7 m), 1e-3,
# 3e-3 and 5e-3 m²: with little of it the wrist, which is light, turns to its limits to spare the arm a little way, and
# jumps there (13, 3, 0, 0 steps above 8° where a hand goes across); with much, joints share a way evenly and the hips
# go along (2.7, 3.2, 3.7, 4.3 cm for a hand 70 cm to the front).
_LEAST_INERTIA = 3e-3 / 1.7**2
_ROWS = [0, 0, 0, 1, 1, 2]
_COLUMNS = [0, 1, 2, 1, 2, 2]
_FULL = np.array([[4, 5, 6], [5, 7, 8], [6, 8, 9]])


@dataclass(frozen=True)
class Masses:
    """What J bones weigh and how stiff their joints are.

    Attributes:
        shares: (J,) of the body's mass; they add up to 1.
        centres: (J,) where the centre of mass is, as a share of the way from head to tail.
        factors: (J,) what a bone's part of the term is multiplied by, from its stiffness.
        bending: (J,) what turning its joint is multiplied by besides; all 1 when None.
    """

    shares: FloatArray
    centres: FloatArray
    factors: FloatArray
    bending: FloatArray | None = None


class PostureTerm:
    """The term for one preferred pose. Bones that do not take part ride on the nearest one above that does.

    Poses may have frames in front, (F, J, 4) and (F, 3), where the bodies have them; `equations` is for one pose.
    """

    def __init__(self, bodies: Bodies, masses: Masses, rotations: FloatArray, location: FloatArray) -> None:
        """Prefer (J, 4) local rotations and the root's head at (3,)."""
        self.bodies, skeleton = bodies, bodies.skeleton
        posed = forward_kinematics(skeleton, rotations, location)
        centres = posed[..., :3, 3] + (masses.centres * skeleton.lengths)[:, None] * posed[..., :3, 1]
        self.carrier = _carriers(skeleton.parents, bodies.bones)
        self.masses = masses.shares * np.where(np.isfinite(masses.factors), masses.factors, 1.0)
        self.shares = masses.shares
        self.preferred_centres, self._back = centres, conjugate(rotations[..., bodies.bones, :])
        carriers = posed[..., bodies.bones[self.carrier], :, :]
        away = centres - carriers[..., :3, 3]
        self._offsets = (np.swapaxes(carriers[..., :3, :3], -1, -2) @ away[..., None])[..., 0]
        self.size = size = float(np.ptp(skeleton.rest[:, :3, 3], axis=0).max() + skeleton.lengths.max())
        inertia = masses.shares * skeleton.lengths**2 + _LEAST_INERTIA * size**2
        if masses.bending is not None:
            inertia = inertia * masses.bending
        self.inertia = np.where(np.isfinite(masses.factors), inertia * masses.factors, 0.0)[bodies.bones]
        turning = bodies.body_of[: bodies.turning]
        self.column_inertia = np.concatenate([self.inertia[turning], np.zeros(bodies.columns - bodies.turning)])
        on_body = np.arange(len(bodies.bones))[:, None] == self.carrier
        self._below: FloatArray = bodies.above.astype(float) @ on_body

    def centres(self, stance: Stance) -> FloatArray:
        """(J, 3) where the bones' masses are."""
        heads, frames = stance.heads[..., self.carrier, :], stance.frames[..., self.carrier, :, :]
        return np.asarray(heads + (frames @ self._offsets[..., None])[..., 0])

    def centre_of_mass(self, stance: Stance) -> FloatArray:
        """(3,)."""
        return np.asarray(self.shares @ self.centres(stance) / self.shares.sum())

    @cached_property
    def preferred_centre_of_mass(self) -> FloatArray:
        """(3,) in the preferred pose."""
        return np.asarray(self.shares @ self.preferred_centres / self.shares.sum())

    def turned(self, stance: Stance) -> FloatArray:
        """(B, 3) how far joints are turned from the preferred pose, in the frames that carry them."""
        return rotation_vector_from_quaternion(product(stance.local, self._back))

    def value(self, stance: Stance) -> float:
        """The term itself."""
        moved = ((self.centres(stance) - self.preferred_centres) ** 2).sum(axis=1)
        return 0.5 * float(self.masses @ moved + self.inertia @ (self.turned(stance) ** 2).sum(axis=1))

    def equations(self, stance: Stance, motions: Motions) -> tuple[FloatArray, FloatArray]:
        """(D, D) Gauss-Newton matrix and (D,) gradient."""
        centres = self.centres(stance)
        forces = self.pulls(centres)
        if self.bodies.broken:
            matrix, gradient = self._dense(stance, motions, centres, forces)
        else:
            matrix, gradient = self._composite(motions, centres, forces)
        turning = self.bodies.turning
        body = self.bodies.body_of[:turning]
        gradient[:turning] += self.inertia[body] * (self.turned(stance)[body] * self.bodies.axes).sum(axis=1)
        matrix[np.arange(len(matrix)), np.arange(len(matrix))] += self.column_inertia
        return matrix, gradient

    def pulls(self, centres: FloatArray) -> FloatArray:
        """(J, 3) the forces that hold the masses away from where they are preferred."""
        return np.asarray(self.masses[:, None] * (centres - self.preferred_centres))

    def _dense(
        self, stance: Stance, motions: Motions, centres: FloatArray, forces: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The first part, mass by mass: any tree."""
        shifts = self.bodies.shifts(stance, motions, centres, self.carrier).reshape(-1, self.bodies.columns)
        weighed = shifts * np.repeat(self.masses, 3)[:, None]
        return shifts.T @ weighed, shifts.T @ forces.ravel()

    def _composite(self, motions: Motions, centres: FloatArray, forces: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The first part by the masses below each body, where all of them turn with what is above them."""
        own = np.empty((len(centres), 16))
        own[:, 0] = self.masses
        own[:, 1:4] = centres * self.masses[:, None]
        own[:, 4:10] = own[:, 1:4][:, _ROWS] * centres[:, _COLUMNS]
        own[:, 10:13] = forces
        own[:, 13:] = cross(centres, forces)
        below = (self._below @ own)[self.bodies.body_of]
        axes, speeds = motions
        mass, first, second = below[:, :1], below[:, 1:4], below[:, _FULL]
        linear = mass * speeds + cross(axes, first)
        spread = np.trace(second, axis1=1, axis2=2)[:, None] * axes - (second @ axes[..., None])[..., 0]
        angular = cross(first, speeds) + spread
        both = axes @ angular.T + speeds @ linear.T
        matrix = self.bodies.symmetric(both)
        gradient = (axes * below[:, 13:]).sum(axis=1) + (speeds * below[:, 10:13]).sum(axis=1)
        return matrix, gradient


def _carriers(parents: IntArray, bones: IntArray) -> IntArray:
    """(J,) for each bone the body that it is or rides on."""
    place = {int(bone): body for body, bone in enumerate(bones)}
    result = np.zeros(len(parents), dtype=np.int64)
    for bone, parent in enumerate(parents):
        result[bone] = place.get(bone, result[parent] if parent >= 0 else 0)
    return result
