"""Frames while they are solved: their pose, and the terms of their cost."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray, lengths, squares
from .kernel.bodies import Pose
from .kernel.goals import Wanted
from .rotations import conjugate, product, rotation_vector_from_quaternion


class Frames:
    """A dataclass whose fields are arrays over frames, contain such arrays, or are None."""

    def part(self, frames: IntArray | slice) -> Self:
        """Some of the frames."""
        return type(self)(**{each.name: _part(getattr(self, each.name), frames) for each in fields(self)})  # type: ignore[arg-type]


def _part(value: Any, frames: IntArray | slice) -> Any:
    if value is None:
        return None
    return value[frames] if isinstance(value, np.ndarray) else value.part(frames)


@dataclass(frozen=True)
class Start(Frames):
    """The start of F frames of J bones.

    Attributes:
        rotations: (F, J, 4) local rotations inside all limits.
        roots: (F, 3) the root's head, armature space.
    """

    rotations: FloatArray
    roots: FloatArray


@dataclass(frozen=True)
class Prior(Frames):
    """(F, B, 4) expected local rotations of the bodies, and (F, B) weights of squared radians from them."""

    rotations: FloatArray
    weights: FloatArray

    def away(self, local: FloatArray) -> FloatArray:
        """(F, B, 3) rotation vectors, in the frames that carry the bodies, from (F, B, 4) to the expected rotations."""
        return rotation_vector_from_quaternion(product(self.rotations, conjugate(local)))

    def cost(self, local: FloatArray) -> FloatArray:
        """(F,) Σ weight · angle²; local: (F, B, 4)."""
        return np.asarray((self.weights * squares(self.away(local))).sum(axis=1))


@dataclass
class State(Frames):
    """F frames of a solve with B bodies and E effectors, O of which have a target rotation.

    Attributes:
        pose: of the bodies.
        residual: (F, E + O, 3) what is missing in this pose.
        wanted: their targets.
        weights: (F, E + O) weights of squared residuals, zero without a target.
        tolerances: (F, E + O) the largest residuals of met goals.
        bend: (F, E, 3) poles toward which limbs bend; NaN for none.
        prior: expected rotations; None for none.
        iterations: (F,) sweeps and steps taken.
        stationary: (F,) whether no step improves it.
    """

    pose: Pose
    residual: FloatArray
    wanted: Wanted
    weights: FloatArray
    tolerances: FloatArray
    bend: FloatArray
    prior: Prior | None
    iterations: IntArray
    stationary: BoolArray

    def put(self, frames: IntArray, part: "State") -> None:
        """Replace pose and progress of some of the frames, in place."""
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
