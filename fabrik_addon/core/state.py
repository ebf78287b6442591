"""Frames in the making: their pose, and the terms that it is judged by."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray, lengths, squares
from .kernel.bodies import Pose
from .kernel.goals import Wanted
from .rotations import conjugate, product, rotation_vector_from_quaternion


class Frames:
    """A dataclass whose fields are arrays over frames, or have such arrays themselves, or are None."""

    def part(self, frames: IntArray | slice) -> Self:
        """Some of the frames."""
        return type(self)(**{each.name: _part(getattr(self, each.name), frames) for each in fields(self)})  # type: ignore[arg-type]


def _part(value: Any, frames: IntArray | slice) -> Any:
    if value is None:
        return None
    return value[frames] if isinstance(value, np.ndarray) else value.part(frames)


@dataclass(frozen=True)
class Start(Frames):
    """Where F frames of J bones begin.

    Attributes:
        rotations: (F, J, 4) local rotations inside all limits.
        roots: (F, 3) the root's head.
    """

    rotations: FloatArray
    roots: FloatArray


@dataclass(frozen=True)
class Prior(Frames):
    """(F, B, 4) local rotations that bodies are expected to have, and (F, B) what a squared radian off counts."""

    rotations: FloatArray
    weights: FloatArray

    def away(self, local: FloatArray) -> FloatArray:
        """(F, B, 3) rotation vectors, in the frames that carry the bodies, from (F, B, 4) to the expected rotations."""
        return rotation_vector_from_quaternion(product(self.rotations, conjugate(local)))

    def cost(self, local: FloatArray) -> FloatArray:
        """(F,) Σ weight · angle²."""
        return np.asarray((self.weights * squares(self.away(local))).sum(axis=1))


@dataclass
class State(Frames):
    """F frames of a solve with B bodies, E effectors and O of them whose rotations count.

    Attributes:
        pose: of the bodies.
        wanted: their targets.
        weights: (F, E + O) what squares of residuals count, zero where there is no target.
        tolerances: (F, E + O) residuals that are met.
        bend: (F, E, 3) points toward which limbs bend, NaN where there is none.
        prior: rotations that are expected; None: none are.
        iterations: (F,) sweeps and steps taken.
        stationary: (F,) whether no step makes it better.
    """

    pose: Pose
    wanted: Wanted
    weights: FloatArray
    tolerances: FloatArray
    bend: FloatArray
    prior: Prior | None
    iterations: IntArray
    stationary: BoolArray

    def put(self, frames: IntArray, part: "State") -> None:
        """Take over pose and progress of some of the frames, in place."""
        self.pose.put(frames, part.pose)
        self.iterations[frames] = part.iterations
        self.stationary[frames] = part.stationary

    def cost(self, residual: FloatArray, pose: Pose | None = None) -> FloatArray:
        """(F,) Σ weight · |residual|² of residuals (F, E + O, 3), and of the pose the prior's part."""
        cost: FloatArray = (self.weights * squares(residual)).sum(axis=1)
        return cost if self.prior is None else cost + self.prior.cost((pose or self.pose).local)

    def unmet(self, residual: FloatArray) -> BoolArray:
        """(F,) whether a target that counts is farther away than its tolerance."""
        return np.asarray(((lengths(residual) > self.tolerances) & (self.weights > 0.0)).any(axis=1))
