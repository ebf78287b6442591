"""Goals: the distances of effectors from their targets, and how these change as joints rotate."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, lengths, squares
from ..model.effector import Effector, Frames, PosePrior, effector_offset, loops_of, path_reaches, with_partners
from ..rotations import matrix_from_quaternion, quaternion_from_rotation_vector, rotation_vector_from_matrix
from .bodies import Bodies, Motions, Pose

# A radian between a rotation and its target counts as this fraction of the length of the effector's path.
LEVER = 0.1
# The cap of a goal is this many times that of a goal of the next lower priority.
PRIORITY = 100.0


@dataclass(frozen=True)
class Wanted(Frames):
    """The targets of E effectors, in armature space.

    Attributes:
        points: (..., E, 3), zero without a target and for effectors that close a loop.
        frames: (..., O, 3, 3) target rotations of bones, arbitrary if there is none.
        seen: (..., E + O) whether there is a target.
        free_directions: for one pose, (E, 3) a unit direction along which the effector is free, zero for none.
    """

    points: FloatArray
    frames: FloatArray
    seen: BoolArray
    free_directions: FloatArray | None = None


class Goals:
    """E effectors on the bodies of a rig, with a residual of three numbers for each target position and rotation.

    A residual is in units of length. A rotation that differs by an angle counts as the angle times LEVER times the
    length of the effector's path, so that positions and rotations are weighted alike at any scale.

    Attributes:
        count: E.
        oriented: (O,) the effectors whose rotation counts.
        lengths: (E,) of the paths from the root to the effectors.
        arms: (O,) the length that counts as much as a radian.
        shares: (O,) the rotation weights.
        on: (E + K,) the bodies of the effectors and of the K partners in loops.
        offsets: (E + K, 3) the points in the frames of these bodies.
        below: (B, E + K) 1 if a point is on a body or on one below it, else 0.
    """

    def __init__(self, bodies: Bodies, effectors: Sequence[Effector]) -> None:
        """Prepare the goals of effectors, whose bones must be among the bodies."""
        skeleton, ends = bodies.skeleton, with_partners(effectors)
        self._bodies, self.count, self.loops = bodies, len(effectors), list(loops_of(effectors))
        place = {int(bone): body for body, bone in enumerate(bodies.bones)}
        self.on: IntArray = np.array([place[skeleton.index(each.bone)] for each in ends], dtype=np.int64)
        self.offsets: FloatArray = np.array([effector_offset(skeleton, each) for each in ends])
        self.lengths: FloatArray = path_reaches(skeleton, effectors).tolerance_lengths
        oriented = [row for row, each in enumerate(effectors) if each.rotation_weight > 0.0]
        self.oriented: IntArray = np.array(oriented, dtype=np.int64)
        self.shares: FloatArray = np.array([effectors[row].rotation_weight for row in oriented], dtype=np.float64)
        self.arms: FloatArray = LEVER * self.lengths[self.oriented]
        self._levers: FloatArray = bodies.levers(self.on, self.offsets)
        # Rows are not needed if all bodies are rigid and every point belongs to one of them.
        self.is_composite = not (self.loops or len(bodies.slides) or bodies.breaks_inheritance)
        self.below: FloatArray = bodies.below(self.on)
        self._turned_below = bodies.below(self.on[self.oriented])

    def wanted(
        self, points: FloatArray, rotations: FloatArray | None = None, free_directions: FloatArray | None = None
    ) -> Wanted:
        """Make targets from positions (..., E, 3) and rotations (..., E, 4) w x y z, in armature space; NaN for none.

        free_directions: (E, 3), see `Wanted`.
        """
        targets = np.array(points, dtype=np.float64)
        targets[..., self.loops, :] = 0.0
        turned = np.full((*targets.shape[:-1], 4), np.nan) if rotations is None else np.asarray(rotations)
        turned = turned[..., self.oriented, :]
        seen = np.concatenate([~np.isnan(targets).any(axis=-1), ~np.isnan(turned).any(axis=-1)], axis=-1)
        return Wanted(np.nan_to_num(targets), matrix_from_quaternion(np.nan_to_num(turned)), seen, free_directions)

    def points(self, pose: Pose) -> FloatArray:
        """(..., E + K, 3) the effectors and the partners of loops, armature space."""
        return pose.points(self.on, self.offsets)

    def residual(self, pose: Pose, wanted: Wanted) -> FloatArray:
        """(..., E + O, 3) vectors from effectors to targets, and rotation vectors times `arms`; zero without target."""
        found = self.points(pose)
        points = found[..., : self.count, :]
        points[..., self.loops, :] -= found[..., self.count :, :]
        missing = wanted.points - points
        if wanted.free_directions is not None:
            missing -= (missing * wanted.free_directions).sum(axis=-1, keepdims=True) * wanted.free_directions
        if len(self.oriented):
            back = np.swapaxes(pose.orientations[..., self.on[self.oriented], :, :], -1, -2)
            turned = rotation_vector_from_matrix(wanted.frames @ back) * self.arms[:, None]
            missing = np.concatenate([missing, turned], axis=-2)
        return np.asarray(np.where(wanted.seen[..., None], missing, 0.0))

    def toward(self, pose: Pose, wanted: Wanted, share: float) -> Wanted:
        """Targets between the effectors in a pose (share 0) and the wanted targets (share 1)."""
        missing = share * self.residual(pose, wanted)
        found = self.points(pose)
        points = found[..., : self.count, :]
        points[..., self.loops, :] -= found[..., self.count :, :]
        frames = pose.orientations[..., self.on[self.oriented], :, :]
        turns = quaternion_from_rotation_vector(missing[..., self.count :, :] / self.arms[:, None])
        turned = matrix_from_quaternion(turns) @ frames
        return Wanted(points + missing[..., : self.count, :], turned, wanted.seen, wanted.free_directions)

    def missed(self, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(..., E) distances from the targets and (..., O) radians, from a residual (..., E + O, 3)."""
        distances = np.sqrt((residual**2).sum(axis=-1))
        return distances[..., : self.count], distances[..., self.count :] / self.arms

    def rows(self, pose: Pose, motions: Motions, wanted: Wanted) -> FloatArray:
        """(..., E + O, 3, D) the reduction of the residual per unit of each of the D columns."""
        bodies = self._bodies
        shifts = bodies.shifts(pose, motions, self.points(pose), self.on)
        if len(bodies.slides):
            along = np.swapaxes(pose.orientations[..., 1][..., bodies.slides, :], -1, -2)
            shifts[..., -len(bodies.slides) :] = along[..., None, :, :] * self._levers[:, None, :]
        rows = shifts[..., : self.count, :, :]
        rows[..., self.loops, :, :] -= shifts[..., self.count :, :, :]
        if wanted.free_directions is not None:
            rows = rows - wanted.free_directions[:, :, None] * (wanted.free_directions[:, None] @ rows)
        if len(self.oriented):
            turns = bodies.turns(motions, self.on[self.oriented]) * self.arms[:, None, None]
            rows = np.concatenate([rows, turns], axis=-3)
        return np.asarray(rows * wanted.seen[..., None, None])

    def weighted(self, weights: FloatArray, wanted: Wanted) -> FloatArray:
        """(..., E + O) weights of the squared residuals, from weights (..., E); zero without a target."""
        return np.asarray(np.concatenate([weights, weights[..., self.oriented] * self.shares], axis=-1) * wanted.seen)

    def moves_goal(self, body: int, weights: FloatArray) -> BoolArray:
        """(F,) whether rotating or moving some body moves a goal with a weight above 0; weights: (F, E + O)."""
        ends = weights[:, [*range(self.count), *self.loops]] @ self.below[body]
        return np.asarray(ends + weights[:, self.count :] @ self._turned_below[body] > 0.0)

    def factors(
        self, pose: Pose, motions: Motions, residual: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The normal equations of Σ weight · |residual|², if `is_composite`, as `Bodies.factors` gives them.

        residual: (..., E + O, 3). weights: (..., E + O). The matrix is half the Gauss-Newton matrix, the vector
        half the negative gradient.
        """
        points, forces = self.points(pose), residual * weights[..., None]
        turning = None
        if len(self.oriented):
            counts = weights[..., self.count :] * self.arms**2
            turning = self._turned_below, counts, forces[..., self.count :, :] * self.arms[:, None]
        return self._bodies.factors(
            motions, self.below, points, weights[..., : self.count], forces[..., : self.count, :], turning
        )

    def forces(self, multipliers: FloatArray) -> FloatArray:
        """(..., E + K, 3) forces at the points, from multipliers (..., E + O, 3) of the residuals."""
        forces = multipliers[..., : self.count, :]
        return np.concatenate([forces, -forces[..., self.loops, :]], axis=-2)


@dataclass
class State(Frames):
    """F frames of a solve with B bodies and E effectors, O of which have a target rotation.

    Attributes:
        pose: of the bodies.
        residual: (F, E + O, 3) differences from the effectors to their targets in this pose.
        wanted: their targets.
        weights: (F, E + O) weights of squared residuals, zero without a target.
        tolerances: (F, E + O) the largest residuals of met goals.
        bend: (F, E, 3) poles toward which limbs bend; NaN for none.
        prior: expected rotations of the bodies; None for none.
        iterations: (F,) sweeps and steps taken.
        stationary: (F,) whether no step improves the pose.
    """

    pose: Pose
    residual: FloatArray
    wanted: Wanted
    weights: FloatArray
    tolerances: FloatArray
    bend: FloatArray
    prior: PosePrior | None
    iterations: IntArray
    stationary: BoolArray

    def put(self, frames: IntArray, part: "State") -> None:
        """Replace pose and progress of some of the frames, `frames` (N,), in place."""
        if len(frames) == len(self.weights):
            self.pose, self.residual = part.pose, part.residual
            self.iterations, self.stationary = part.iterations, part.stationary
            return
        self.pose.put(frames, part.pose)
        self.residual[frames] = part.residual
        self.iterations[frames] = part.iterations
        self.stationary[frames] = part.stationary

    def cost(self) -> FloatArray:
        """(F,) Σ weight · |residual|², plus the prior's cost of the pose."""
        cost: FloatArray = (self.weights * squares(self.residual)).sum(axis=1)
        return cost if self.prior is None else cost + self.prior.cost(self.pose.local)

    def unmet(self) -> BoolArray:
        """(F,) whether a target with a weight is farther away than its tolerance."""
        return np.asarray(((lengths(self.residual) > self.tolerances) & (self.weights > 0.0)).any(axis=1))
