"""Frames while they are solved: their pose, and the terms of their cost."""

from dataclasses import dataclass

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray, lengths, squares
from .kernel.bodies import Pose
from .kernel.goals import Wanted
from .model.effector import Frames, PosePrior


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
