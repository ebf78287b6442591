"""Target rotations: what is missing from a bone's frame to the one that it is to have, as a rotation vector.

The finish treats it as a third kind of point: R · R_wanted⁻¹ as a rotation vector, whose target is zero. One radian
counts as much as a miss by the share LEVER of the effector's path length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import TINY, BoolArray, FloatArray, IntArray
from ..backend.protocol import Backend, Quaternion, Scalar, Vector
from ..rotations import conjugate, matrix_from_quaternion, product, rotation_vector_from_quaternion
from .bodies import Body, SweepPose, effector_points, hung_effectors
from .effector import Effector
from .loops import loops_of
from .targets import Targets

LEVER = 0.1
_LEAST_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Residuals:
    """What is measured of a pose: E points of effectors, then the turns of the O effectors that have a rotation weight.

    Of the K effectors that close loops it is the arm from their partners (see `loops`); both their points stand at the
    end, 2 K more columns that count nothing.

    Attributes:
        count: E.
        loops: (K,) effectors that close loops; their partners are E, E + 1, …
        oriented: (O,) effectors.
        holders: (O,) the bodies that they are on.
        shares: (O,) their rotation weights.
        factors: (O,) what a turn of one radian counts, in shares of the effector's weight.
        tolerances: (M,) distances, then radians.
        ranks: (M,) 0 for what is met first, and so on without gaps.
    """

    count: int
    loops: tuple[int, ...]
    oriented: tuple[int, ...]
    holders: tuple[int, ...]
    shares: tuple[float, ...]
    factors: FloatArray
    tolerances: FloatArray
    ranks: IntArray

    def seen(self, targets: Targets) -> BoolArray:
        """(F, M) which of them are asked for on each frame."""
        points: BoolArray = ~np.isnan(targets.positions[..., 0])
        if not self.special:
            return points
        turning = ~np.isnan(targets.rotations[..., 0])
        points[:, list(self.loops)] = True
        unused = np.zeros((len(targets), 2 * len(self.loops)), dtype=bool)
        return np.concatenate([points, turning[:, list(self.oriented)], unused], axis=1)

    def weigh(self, targets: Targets, seen: BoolArray) -> FloatArray:
        """(F, M) what each counts; nothing where it is not seen."""
        if not self.special:
            return np.asarray(targets.weights * seen)
        turning = targets.weights[:, list(self.oriented)] * self.factors
        unused = np.zeros((len(targets), 2 * len(self.loops)))
        return np.asarray(np.concatenate([targets.weights, turning, unused], axis=1) * seen)

    @property
    def last_rank(self) -> int:
        """The rank of what is met last."""
        return int(self.ranks.max())

    @property
    def asked(self) -> int:
        """E + O, the vectors that count."""
        return self.count + len(self.oriented)

    @property
    def ends(self) -> int:
        """E + K, the points that hang on bodies."""
        return self.count + len(self.loops)

    @property
    def special(self) -> bool:
        """Whether there is more than points with targets in space."""
        return bool(self.oriented or self.loops)

    @property
    def in_space(self) -> FloatArray:
        """(E,) 1 for effectors with targets in space, 0 for those that close loops."""
        return np.asarray(~np.isin(np.arange(self.count), self.loops), dtype=np.float64)

    def sweep_positions(
        self, backend: Backend, bodies: Sequence[Body], pose: SweepPose, targets: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(F, E + K, 3) where effectors and partners are to go in a sweep, and their (F, E + K) weights.

        Both sides of a loop go to the middle between them.
        """
        places, shares = targets[:, : self.count], weights[:, : self.count]
        if not self.loops:
            return places, shares
        points: FloatArray = backend.stack(effector_points(bodies, pose, self.ends), len(targets))
        middle = (points[:, list(self.loops)] + points[:, self.count :]) / 2.0
        places = np.concatenate([places, middle], axis=1)
        places[:, list(self.loops)] = middle
        return places, np.concatenate([shares, shares[:, list(self.loops)]], axis=1)

    def wanted(self, targets: Targets, seen: BoolArray) -> FloatArray:
        """(F, M, 3) what the measured vectors are to be; zero where nothing is asked for."""
        if not self.special:
            return np.asarray(np.where(seen[..., None], targets.positions, 0.0))
        vectors = np.zeros((len(targets), len(self.ranks), 3))
        vectors[:, : self.count] = np.nan_to_num(targets.positions)
        vectors[:, list(self.loops)] = 0.0
        return vectors

    def points(self, vectors: FloatArray) -> FloatArray:
        """(F, E + K, 3) where effectors and partners are, from the measured vectors (F, M, 3)."""
        if not self.loops:
            return vectors[:, : self.count]
        points: FloatArray = np.concatenate(
            [vectors[:, : self.count], vectors[:, len(self.ranks) - len(self.loops) :]], axis=1
        )
        points[:, list(self.loops)] = vectors[:, -2 * len(self.loops) : -len(self.loops)]
        return points

    def sweep_orientations(
        self, backend: Backend, target_rotations: FloatArray, weights: FloatArray
    ) -> dict[int, tuple[Quaternion, Scalar]]:
        """By body: the frame that it is to have, and how much of the way there a sweep turns it."""
        shares = np.where(weights[:, self.count : self.asked] > 0, self.shares, 0.0)
        return {
            holder: (backend.quaternion(target_rotations[:, effector]), backend.scalar(shares[:, place]))
            for place, (effector, holder) in enumerate(zip(self.oriented, self.holders, strict=True))
        }

    def vectors(
        self, backend: Backend, bodies: Sequence[Body], pose: SweepPose, target_rotations: FloatArray
    ) -> FloatArray:
        """(F, M, 3) the effectors' points, and how oriented bodies are turned away from the wanted ones (F, E, 4)."""
        frames = len(target_rotations)
        points = backend.stack(effector_points(bodies, pose, self.ends), frames)
        held = [pose.orientations[holder] for holder in self.holders]
        return self.measured(points, backend.stack(held, frames) if held else target_rotations[:, :0], target_rotations)

    def measured(self, points: FloatArray, held: FloatArray, target_rotations: FloatArray) -> FloatArray:
        """(F, M, 3) the same from points (F, E + K, 3), and orientations (F, O, 4) of those that have a weight."""
        if not self.special:
            return points
        closing = points[:, list(self.loops)], points[:, self.count :]
        vectors = points[:, : self.count].copy()
        vectors[:, list(self.loops)] -= closing[1]
        away = product(held, conjugate(target_rotations[:, list(self.oriented)]))
        return np.concatenate([vectors, rotation_vector_from_quaternion(away), *closing], axis=1)


def make_residuals(
    bodies: Sequence[Body], effectors: Sequence[Effector], lengths: FloatArray, tolerance: float
) -> Residuals:
    """What is to be measured of bodies with E effectors whose paths have lengths (E,).

    The tolerance is a fraction of these lengths, and the same number in radians.
    """
    loops = loops_of(effectors)
    holders = holders_of(bodies, len(effectors) + len(loops))
    oriented = tuple(index for index, effector in enumerate(effectors) if effector.rotation_weight > 0)
    shares = tuple(effectors[index].rotation_weight for index in oriented)
    ranks = np.unique([effector.priority for effector in effectors], return_inverse=True)[1].reshape(-1)
    unused = np.zeros(2 * len(loops))
    return Residuals(
        count=len(effectors),
        loops=loops,
        oriented=oriented,
        holders=tuple(holders[effector] for effector in oriented),
        shares=shares,
        factors=np.array(shares) * (LEVER * lengths[list(oriented)]) ** 2,
        tolerances=np.maximum(
            np.concatenate([tolerance * lengths, np.full(len(oriented), tolerance), unused]), _LEAST_TOLERANCE
        ),
        ranks=np.concatenate([ranks, ranks[list(oriented)], np.zeros(2 * len(loops), dtype=np.int64)]),
    )


def holders_of(bodies: Sequence[Body], count: int) -> list[int]:
    """(E,) the body that each effector is on."""
    holders = {effector: holder for effector, holder, _ in hung_effectors(bodies)}
    return [holders[effector] for effector in range(count)]


def rotation_vector(backend: Backend, rotation: Quaternion) -> Vector:
    """Axis times angle in radians, at most half a turn, of a unit quaternion."""
    axis = backend.Vector((rotation.x, rotation.y, rotation.z))
    sine = axis.length
    angle = 2.0 * backend.atan2(sine, backend.absolute(rotation.w))
    scale = backend.select(sine > TINY, angle / backend.maximum(sine, TINY), 2.0)
    return axis * backend.select(rotation.w < 0, -scale, scale)


def turning_spread(
    residuals: Residuals, orientations: FloatArray, target_rotations: FloatArray, weights: FloatArray
) -> FloatArray:
    """(F, 3, 3) what wanted rotations add to the spread of a rigid fit: half the weight times Σ R_k · wanted_kᵀ.

    Turning by θ then costs weight · θ², as it does in the finish.

    Args:
        residuals: what is measured.
        orientations: (F, B, 4) of the bodies.
        target_rotations: (F, E, 4) wanted.
        weights: (F, M).
    """
    own = matrix_from_quaternion(orientations[:, list(residuals.holders)])
    wanted = matrix_from_quaternion(target_rotations[:, list(residuals.oriented)])
    return np.asarray(np.einsum("fo,foij,fokj->fik", weights[:, residuals.count : residuals.asked] / 2.0, own, wanted))
