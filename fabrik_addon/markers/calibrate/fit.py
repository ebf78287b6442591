"""A skeleton with markers on it that is being fitted to a recording: its poses, and how far markers are from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from ...core import Options, Skeleton, Solution, Solver
from ...core.limits.base import Limit
from ..clip import FloatArray
from ..mapping.marker_map import MappedMarker
from ..robust import outlier_weights, usual_distances
from .bundle import joint_columns
from .offsets import bones_of, make_effectors, points_on

_OPTIONS: Final = Options(tolerance=1e-6, restarts=0)
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
        scale: the recording's positions times this are at the skeleton's size.
    """

    skeleton: Skeleton
    mapping: Sequence[MappedMarker]
    offsets: FloatArray
    limits: dict[str, Limit]
    factors: FloatArray
    scale: float = 1.0

    @cached_property
    def weights(self) -> FloatArray:
        """(M,) of the markers."""
        return np.array([entry.weight for entry in self.mapping])

    @cached_property
    def bones(self) -> list[int]:
        """M places of the markers' bones."""
        return bones_of(self.skeleton, self.mapping)

    def solve(
        self, positions: FloatArray, weights: FloatArray | None = None, start: Solution | None = None
    ) -> Solution:
        """The poses that fit positions (F, M, 3) of the recording best."""
        effectors = make_effectors(self.mapping, self.offsets)
        solver = Solver(self.skeleton, effectors, limits=self.limits, root="FREE", options=_OPTIONS)
        targets = positions * self.scale
        if start is None:
            return solver.solve(targets, weights=weights)
        return solver.solve(targets, weights=weights, start=start.rotations, start_location=start.root_location)

    def points(self, solution: Solution) -> FloatArray:
        """(F, M, 3) where the markers are."""
        return points_on(solution.matrices, self.bones, self.offsets)

    def distances(self, solution: Solution, positions: FloatArray) -> FloatArray:
        """(F, M) of the markers from where positions want them, NaN where those are."""
        distances: FloatArray = np.linalg.norm(self.points(solution) - positions * self.scale, axis=2)
        return distances

    def inlier_weights(self, distances: FloatArray) -> FloatArray:
        """(F, M) weights, next to nothing for outliers, zero where not seen."""
        usual = np.nan_to_num(usual_distances(distances))
        allowed = np.maximum(_USUAL_TIMES * usual, _ALWAYS_SHARE * self.skeleton.size)
        return outlier_weights(distances, allowed) * self.weights

    def joint_columns(self, solution: Solution) -> FloatArray:
        """(F, M, 3, D) how the markers move with the joints."""
        effectors = make_effectors(self.mapping, self.offsets)
        return joint_columns(self.skeleton, effectors, self.limits, solution.matrices, self.points(solution))
