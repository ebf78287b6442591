"""A skeleton and its markers while they are fitted to a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from ...core import Effector, Options, Skeleton, Solution, Solver
from ...core.arrays import ROUNDING, lengths, times
from ...core.limits.base import Limit
from ...core.model.bodies import participants
from ...core.model.targets import PosePrior
from ...core.rotations import (
    conjugate,
    product,
    quaternion_from_rotation_vector,
    rotation_vector_from_quaternion,
)
from ..clip import FloatArray
from ..mapping.marker_map import MappedMarker
from .expected_pose import ExpectedPose, any_pose
from .offsets import bones_of, joint_columns, make_effectors, points_on

# Poses need not be exact before the offsets are, so a few steps are enough; each round starts from the last.
_OPTIONS: Final = Options(tolerance=1e-6, restarts=0, most_steps=12)
_NEARBY: Final = Options(tolerance=1e-6, restarts=0, max_sweeps=0, most_steps=3)
# Error of a marker once its offset is found, as a share of the skeleton's size (3 mm on a person).
_NOISE: Final = 0.001
# Markers on skin are usually off by at most this share of the size; beyond it the error counts as noise, as with
# keypoints. When all of it counted as noise, surface markers of a balancing trial were 5.8 mm off instead of 5.0.
_OF_SURFACE: Final = 0.0017
# Bones are rotated by this angle (radians) to find the directions that their limits leave open. A limit is active if it
# takes away more than the share `_CUT` of it.
_TRIED: Final = 1e-3
_CUT: Final = 0.02


@dataclass(frozen=True, eq=False)
class Fit:
    """A skeleton, its markers and what is known of both, while they are fitted.

    Attributes:
        skeleton: the rig's bones, or those of a person of other proportions.
        mapping: M markers.
        offsets: (M, 3) marker offsets in their bones' frames.
        limits: bone name to limit.
        factors: (J,) bone lengths divided by those of the rig.
        expected: the pose that is likely.
        scale: the factor from recorded positions to the skeleton's size.
        off: known error of marker positions on their bones (standard deviation on an axis, the rig's units).
    """

    skeleton: Skeleton
    mapping: Sequence[MappedMarker]
    offsets: FloatArray
    limits: dict[str, Limit]
    factors: FloatArray
    expected: ExpectedPose
    scale: float = 1.0
    off: float = 0.0

    @cached_property
    def weights(self) -> FloatArray:
        """(M,) marker weights."""
        return np.array([entry.weight for entry in self.mapping])

    @cached_property
    def bones(self) -> list[int]:
        """Bone indices of the M markers."""
        return bones_of(self.skeleton, self.mapping)

    @cached_property
    def bodies(self) -> list[int]:
        """Indices of the B bones that move markers."""
        return participants(self.skeleton, self._effectors)

    @cached_property
    def _effectors(self) -> Sequence[Effector]:
        return make_effectors(self.mapping, self.offsets)

    @property
    def free(self) -> Fit:
        """This fit without a prior on the pose."""
        return replace(self, expected=any_pose(self.skeleton))

    @property
    def noise(self) -> float:
        """Assumed error of the marker positions on their bones, the rig's units.

        At least that of skin and cameras. Keypoints have three times as much: with too little noise, the offsets of a
        toe with gaps were 40 mm wrong.
        """
        beyond = max(self.off**2 - (_OF_SURFACE * self.skeleton.size) ** 2, 0.0)
        return float(np.hypot(_NOISE * self.skeleton.size, np.sqrt(beyond)))

    @cached_property
    def prior(self) -> PosePrior:
        """The prior on the pose, for markers with this noise."""
        return self.expected.prior(self.noise)

    def _solver(self, options: Options) -> Solver:
        return Solver(self.skeleton, self._effectors, limits=self.limits, root="FREE", options=options)

    def solve(
        self, positions: FloatArray, weights: FloatArray | None = None, start: Solution | None = None
    ) -> Solution:
        """The poses that fit recorded positions (F, M, 3) best.

        weights: (F, M). start: poses to begin from; None: rest.
        """
        targets = positions * self.scale
        if start is None:
            return self._solver(_OPTIONS).solve(targets, weights=weights, prior=self.prior)
        rotations, roots = start.rotations, start.root_location
        return self._solver(_NEARBY).solve(
            targets, weights=weights, start=rotations, start_location=roots, prior=self.prior
        )

    def points(self, solution: Solution) -> FloatArray:
        """(F, M, 3) marker positions in the poses."""
        return points_on(solution.matrices, self.bones, self.offsets)

    def distances(self, solution: Solution, positions: FloatArray) -> FloatArray:
        """(F, M) distances of the markers from recorded positions (F, M, 3); NaN where a position is NaN."""
        distances: FloatArray = np.linalg.norm(self.points(solution) - positions * self.scale, axis=2)
        return distances

    def joint_columns(self, solution: Solution) -> FloatArray:
        """(F, M, 3, D) Jacobian of the markers.

        Columns: the bodies' rotation vectors in armature space, then the root's location.
        """
        return joint_columns(self.skeleton, self._effectors, self.limits, solution.matrices, self.points(solution))

    def from_expected(self, solution: Solution) -> FloatArray:
        """(F, J, 3) local rotation vectors from the poses to the expected pose."""
        expected = np.broadcast_to(self.prior.rotations, solution.rotations.shape)
        return rotation_vector_from_quaternion(product(expected, conjugate(solution.rotations)))

    def carried(self, solution: Solution) -> FloatArray:
        """(F, B, 3, 3) the bodies' orientations without their local rotations, armature space."""
        skeleton, frames = self.skeleton, []
        for bone in self.bodies:
            parent, rest = skeleton.parents[bone], skeleton.rest_turn(bone)
            inherits = parent >= 0 and skeleton.inherits_rotation[bone]
            above = solution.matrices[:, parent, :3, :3] if inherits else np.eye(3)
            frames.append(np.broadcast_to(above @ rest, (len(solution.matrices), 3, 3)))
        return np.stack(frames, axis=1)

    def turned(self, solution: Solution, vectors: FloatArray) -> FloatArray:
        """(F, J, 4) local rotations after the bodies rotate by vectors (F, B, 3) in armature space."""
        local = times(np.swapaxes(self.carried(solution), -1, -2), vectors)
        rotations = np.array(solution.rotations)
        rotations[:, self.bodies] = product(quaternion_from_rotation_vector(local), rotations[:, self.bodies])
        return rotations

    def open_directions(self, solution: Solution, push: FloatArray) -> FloatArray:
        """(F, B, 3, 3) projectors onto the rotations that limits allow for bodies that are pushed along (F, B, 3).

        The part of a small rotation along the push that the limits remove is the normal of the active limit. A second
        round finds the other limit at a corner.
        """
        carried, legal = self.carried(solution), self._solver(_NEARBY).problem.legal
        tangents = np.broadcast_to(np.eye(3), (*push.shape, 3)).copy()
        for _ in range(2):
            along = times(tangents, push)
            along /= np.maximum(lengths(along), ROUNDING)[..., None]
            turned = legal(self.turned(solution, _TRIED * along))[:, self.bodies]
            moved = product(turned, conjugate(solution.rotations[:, self.bodies]))
            taken = along - times(carried, rotation_vector_from_quaternion(moved)) / _TRIED
            normal = times(tangents, taken * (lengths(taken) > _CUT)[..., None])
            normal /= np.maximum(lengths(normal), ROUNDING)[..., None]
            tangents -= normal[..., :, None] * normal[..., None, :]
        return tangents
