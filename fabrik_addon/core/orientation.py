"""Target rotations: what is missing from a bone's frame to the one that it is to have, as a rotation vector.

The finish treats it as a third kind of point: R · R_wanted⁻¹ as a rotation vector, whose target is zero. One radian
counts as much as a miss by the share LEVER of the effector's path length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray, Quaternion, Scalar, Vector
from .bodies import Body, Pose, effector_points
from .rotations import matrix_from_quaternion
from .solution import Effector
from .wanted import Wanted

LEVER = 0.1
_TINY = 1e-30
_LEAST_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Measures:
    """What is measured of a pose: E points of effectors, then the turns of the O effectors that have a rotation weight.

    Attributes:
        count: E.
        oriented: (O,) effectors.
        holders: (O,) the bodies that they are on.
        shares: (O,) their rotation weights.
        levers: (O,) what a radian counts beside a distance, per weight of the effector.
        tolerances: (E + O,) distances, then radians.
        ranks: (E + O,) 0 for what is met first, and so on without gaps.
    """

    count: int
    oriented: tuple[int, ...]
    holders: tuple[int, ...]
    shares: tuple[float, ...]
    levers: FloatArray
    tolerances: FloatArray
    ranks: IntArray

    def seen(self, wanted: Wanted) -> BoolArray:
        """(F, E + O) which of them are asked for on each frame."""
        points, turns = ~np.isnan(wanted.points[..., 0]), ~np.isnan(wanted.turns[..., 0])
        return np.concatenate([points, turns[:, list(self.oriented)]], axis=1)

    def weighed(self, weights: FloatArray) -> FloatArray:
        """(F, E + O) what each of them counts, for weights (F, E) of the effectors."""
        return np.concatenate([weights, weights[:, list(self.oriented)] * self.levers], axis=1)

    def frames(
        self, numbers: ModuleType, turns: FloatArray, weights: FloatArray
    ) -> dict[int, tuple[Quaternion, Scalar]]:
        """By body: the frame that it is to have, and how much of the way there a sweep turns it."""
        shares = np.where(weights[:, self.count :] > 0, self.shares, 0.0)
        return {
            holder: (numbers.quaternion(turns[:, effector]), numbers.scalar(shares[:, place]))
            for place, (effector, holder) in enumerate(zip(self.oriented, self.holders, strict=True))
        }

    def vectors(self, numbers: ModuleType, bodies: Sequence[Body], pose: Pose, turns: FloatArray) -> FloatArray:
        """(F, E + O, 3) the effectors' points, and how oriented bodies are turned away from `turns` (F, E, 4)."""
        vectors = effector_points(bodies, pose, self.count)
        for effector, holder in zip(self.oriented, self.holders, strict=True):
            wanted = numbers.quaternion(turns[:, effector])
            vectors.append(rotation_vector(numbers, pose.frames[holder] @ wanted.conjugated()))
        stacked: FloatArray = numbers.stack(vectors, len(turns))
        return stacked


def make_measures(
    bodies: Sequence[Body], effectors: Sequence[Effector], lengths: FloatArray, tolerance: float
) -> Measures:
    """What is to be measured of bodies with E effectors whose paths have lengths (E,).

    The tolerance is a fraction of these lengths, and the same number in radians.
    """
    holders = holders_of(bodies, len(effectors))
    oriented = tuple(index for index, effector in enumerate(effectors) if effector.rotation_weight > 0)
    shares = tuple(effectors[index].rotation_weight for index in oriented)
    ranks = np.unique([effector.priority for effector in effectors], return_inverse=True)[1].reshape(-1)
    return Measures(
        count=len(effectors),
        oriented=oriented,
        holders=tuple(holders[effector] for effector in oriented),
        shares=shares,
        levers=np.array(shares) * (LEVER * lengths[list(oriented)]) ** 2,
        tolerances=np.maximum(np.append(tolerance * lengths, np.full(len(oriented), tolerance)), _LEAST_TOLERANCE),
        ranks=np.concatenate([ranks, ranks[list(oriented)]]),
    )


def holders_of(bodies: Sequence[Body], count: int) -> list[int]:
    """(E,) the body that each effector is on."""
    holders = [-1] * count
    for holder, body in enumerate(bodies):
        for attachment in body.attachments:
            for effector in attachment.effectors:
                holders[effector] = holder
    return holders


def rotation_vector(numbers: ModuleType, rotation: Quaternion) -> Vector:
    """Axis times angle in radians, at most half a turn, of a unit quaternion."""
    axis = numbers.Vector((rotation.x, rotation.y, rotation.z))
    sine = axis.length
    angle = 2.0 * numbers.atan2(sine, abs(rotation.w))
    scale = numbers.select(sine > _TINY, angle / numbers.larger(sine, _TINY), 2.0)
    return axis * numbers.select(rotation.w < 0, -scale, scale)


def turning_spread(measures: Measures, frames: FloatArray, turns: FloatArray, weights: FloatArray) -> FloatArray:
    """(F, 3, 3) what wanted rotations add to the spread of a rigid fit: half the weight times Σ R_k · wanted_kᵀ.

    Turning by θ then costs weight · θ², as it does in the finish.

    Args:
        measures: what is measured.
        frames: (F, B, 4) of the bodies.
        turns: (F, E, 4) wanted.
        weights: (F, E + O).
    """
    own = matrix_from_quaternion(frames[:, list(measures.holders)])
    wanted = matrix_from_quaternion(turns[:, list(measures.oriented)])
    return np.asarray(np.einsum("fo,foij,fokj->fik", weights[:, measures.count :] / 2.0, own, wanted))


def rotation_errors(frames: FloatArray, turns: FloatArray) -> FloatArray:
    """(F, E) radians between frames and wanted turns, both (F, E, 4); NaN where there is none."""
    w = np.abs((frames * turns).sum(axis=-1))
    own, wanted = frames[..., 1:], turns[..., 1:]
    away = frames[..., :1] * wanted - turns[..., :1] * own - np.cross(own, wanted)
    return np.asarray(2.0 * np.arctan2(np.linalg.norm(away, axis=-1), w))
