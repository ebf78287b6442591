"""A skeleton with markers on it that is being fitted to a recording: its poses, and how far markers are from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from ...core import Effector, Options, Skeleton, Solution, Solver
from ...core.limits.base import Limit
from ...core.model.bodies import participants
from ...core.model.targets import PosePrior
from ...core.rotations import angle_between
from ..clip import FloatArray
from ..mapping.marker_map import MappedMarker
from ..robust import MEDIAN_DISTANCE, outlier_weights
from .bundle import expected_columns, joint_columns, kept_inside, turned
from .expected_pose import ExpectedPose, any_pose
from .offsets import bones_of, make_effectors, points_on

# Poses need not be exact before offsets are: after so many steps they are near; each round goes on from the last.
_OPTIONS: Final = Options(tolerance=1e-6, restarts=0, most_steps=12)
_NEARBY: Final = Options(tolerance=1e-6, restarts=0, max_sweeps=0, most_steps=3)
# Of the skeleton's size: some 3 mm of a person, what is left of a marker's errors once its place is found.
_NOISE: Final = 0.001
# Markers on skin are usually off by this at most; what they are off beyond it is noise: keypoints'. With all of it as
# noise a balancing trial by surface markers came out 5.8 mm off, which is 5.0.
_OF_SURFACE: Final = 0.0017
# A sample may be so many times farther off than its marker usually is, and always this share of the skeleton's size.
_USUAL_TIMES: Final = 4.0
_ALWAYS_SHARE: Final = 0.01


@dataclass(frozen=True, eq=False)
class Fit:
    """What is being fitted.

    Attributes:
        skeleton: the rig's bones, or those of a person of other proportions.
        mapping: M markers.
        offsets: (M, 3) of the markers in their bones' frames.
        limits: bone name to limit.
        factors: (J,) lengths over those of the rig.
        expected: the pose that is likely.
        scale: the recording's positions times this are at the skeleton's size.
        off: how far markers are off their place on a bone as far as is known (one standard deviation on an axis, the
            rig's units).
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
        """(M,) of the markers."""
        return np.array([entry.weight for entry in self.mapping])

    @cached_property
    def bones(self) -> list[int]:
        """M places of the markers' bones."""
        return bones_of(self.skeleton, self.mapping)

    @cached_property
    def effectors(self) -> Sequence[Effector]:
        """M of the markers."""
        return make_effectors(self.mapping, self.offsets)

    @property
    def free(self) -> Fit:
        """The same with no pose likelier than another."""
        return replace(self, expected=any_pose(self.skeleton))

    @property
    def noise(self) -> float:
        """How far markers are taken to be off their place on a bone, the rig's units: as skin and cameras are, or more.

        Keypoints are three times as far off: with too little noise the offsets of a toe with holes went 40 mm astray.
        """
        beyond = max(self.off**2 - (_OF_SURFACE * self.skeleton.size) ** 2, 0.0)
        return float(np.hypot(_NOISE * self.skeleton.size, np.sqrt(beyond)))

    @cached_property
    def prior(self) -> PosePrior:
        """The pose that is likely, beside the markers."""
        return self.expected.prior(self.noise)

    def solve(
        self, positions: FloatArray, weights: FloatArray | None = None, start: Solution | None = None
    ) -> Solution:
        """The poses that fit positions (F, M, 3) of the recording best, from rest or from near."""
        options = _OPTIONS if start is None else _NEARBY
        solver = Solver(self.skeleton, self.effectors, limits=self.limits, root="FREE", options=options)
        targets = positions * self.scale
        if start is None:
            return solver.solve(targets, weights=weights, prior=self.prior)
        rotations, roots = start.rotations, start.root_location
        return solver.solve(targets, weights=weights, start=rotations, start_location=roots, prior=self.prior)

    def pose_cost(self, solution: Solution) -> float:
        """Σ weight · angle² of how far poses are from what is likely."""
        away = angle_between(solution.rotations, np.broadcast_to(self.prior.rotations, solution.rotations.shape))
        return float((self.prior.weights * away**2).sum())

    def points(self, solution: Solution) -> FloatArray:
        """(F, M, 3) where the markers are."""
        return points_on(solution.matrices, self.bones, self.offsets)

    def distances(self, solution: Solution, positions: FloatArray) -> FloatArray:
        """(F, M) of the markers from where positions want them, NaN where those are."""
        distances: FloatArray = np.linalg.norm(self.points(solution) - positions * self.scale, axis=2)
        return distances

    def as_far_off(self, usual: FloatArray) -> Fit:
        """The same with markers as far off as they usually are, (M,)."""
        return replace(self, off=float(np.sqrt(np.nanmean(usual**2))) / MEDIAN_DISTANCE)

    def inlier_weights(self, distances: FloatArray, usual: FloatArray) -> FloatArray:
        """(F, M) weights, next to nothing for outliers, zero where not seen. usual: (M,) of the (F, M) distances."""
        allowed = np.maximum(_USUAL_TIMES * np.nan_to_num(usual), _ALWAYS_SHARE * self.skeleton.size)
        return outlier_weights(distances, allowed) * self.weights

    def joint_columns(self, solution: Solution) -> FloatArray:
        """(F, M, 3, D) how the markers move with the joints."""
        return joint_columns(self.skeleton, self.effectors, self.limits, solution.matrices, self.points(solution))

    @cached_property
    def bodies(self) -> list[int]:
        """The bones that markers move."""
        return participants(self.skeleton, self.effectors)

    def kept_inside(self, solution: Solution, push: FloatArray) -> FloatArray:
        """(F, B, 3, 3) what limits leave open to the bodies that are pushed along (F, B, 3)."""
        return kept_inside(self.skeleton, self.effectors, self.limits, solution, push)

    def expected_columns(self, solution: Solution) -> tuple[FloatArray, FloatArray]:
        """(F, D) what the prior on the pose counts in the joints' columns, and (F, D) how far its mean is."""
        return expected_columns(self.skeleton, self.bodies, solution, self.prior)

    def turned(self, solution: Solution, step: FloatArray) -> Solution:
        """Poses after a step (F, D) of the joints' columns."""
        rotations, roots = turned(self.skeleton, self.bodies, solution, step)
        return replace(solution, rotations=rotations, root_location=roots)
