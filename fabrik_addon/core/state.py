"""The frames in the making: their pose, and what it is measured by."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray, Quaternion, Scalar, Vector, lengths, squares
from .model.bodies import Body, Pose, place_bodies
from .model.residuals import Residuals, rotation_vector


@dataclass(frozen=True)
class Start:
    """Where F frames of J bones begin.

    Attributes:
        rotations: (F, J, 4) local rotations inside all limits.
        roots: (F, 3) the root's head, as seen from the origin.
        origins: (F, 3) the point in armature space that a frame is solved about: far from it single precision is rough.
    """

    rotations: FloatArray
    roots: FloatArray
    origins: FloatArray

    def part(self, frames: slice) -> "Start":
        """The same for some of the frames."""
        return Start(self.rotations[frames], self.roots[frames], self.origins[frames])


@dataclass(frozen=True)
class Prior:
    """Local rotations that F frames of B bodies are expected to have, and (F, B) what a squared radian off counts."""

    numbers: ModuleType
    rotations: list[Quaternion]
    weights: FloatArray

    def part(self, frames: IntArray) -> "Prior":
        """The same for some of the frames."""
        return Prior(self.numbers, [self.numbers.take(each, frames) for each in self.rotations], self.weights[frames])

    def away(self, local: Sequence[Quaternion]) -> list[Vector]:
        """B rotation vectors from local rotations to those expected, in the frames that carry the bodies."""
        pairs = zip(self.rotations, local, strict=True)
        return [rotation_vector(self.numbers, wanted @ own.conjugated()) for wanted, own in pairs]

    def cost(self, local: Sequence[Quaternion]) -> FloatArray:
        """(F,) Σ weight · angle²."""
        away = self.numbers.stack(self.away(local), len(self.weights))
        return np.asarray((self.weights * squares(away)).sum(axis=1))


@dataclass
class State:
    """F frames of a solve with B bodies, E effectors and M vectors that are measured (see `Residuals`).

    Attributes:
        local: B local rotations.
        root: the root's head.
        rest: B local rotations that free twist returns to.
        bound: B flags, whether the last backward pass had to clamp the body.
        targets: (F, M, 3), zero where not seen.
        weights: (F, M), zero where not seen.
        tolerances: (F, M) distances and radians.
        iterations: (F,) sweeps and steps taken.
        stationary: (F,) nothing makes it better.
        target_rotations: (F, E, 4) what effectors' bodies are to have; none is NaN where one has a rotation weight.
        bend_targets: (F, E, 3) points toward which limbs bend, NaN where there is none.
        residuals: what the M vectors are.
        factors: by body that slides, the factor of its length.
        prior: what rotations are expected to be; None: nothing is.
    """

    local: list[Quaternion]
    root: Vector
    rest: list[Quaternion]
    bound: list[Scalar]
    targets: FloatArray
    weights: FloatArray
    tolerances: FloatArray
    iterations: IntArray
    stationary: BoolArray
    target_rotations: FloatArray
    bend_targets: FloatArray
    residuals: Residuals
    factors: dict[int, Scalar]
    prior: Prior | None = None

    def part(self, numbers: ModuleType, frames: IntArray) -> "State":
        """The state of some of the frames."""
        return State(
            [numbers.take(rotation, frames) for rotation in self.local],
            numbers.take(self.root, frames),
            [numbers.take(rotation, frames) for rotation in self.rest],
            [numbers.take(flag, frames) for flag in self.bound],
            self.targets[frames],
            self.weights[frames],
            self.tolerances[frames],
            self.iterations[frames],
            self.stationary[frames],
            self.target_rotations[frames],
            self.bend_targets[frames],
            self.residuals,
            {body: numbers.take(factor, frames) for body, factor in self.factors.items()},
            None if self.prior is None else self.prior.part(frames),
        )

    def replace(self, numbers: ModuleType, frames: IntArray, part: "State") -> None:
        """Take over pose and progress of some of the frames."""
        count = len(self.targets)
        pairs = zip(self.local, part.local, strict=True)
        self.local = [numbers.put(rotation, frames, new, count) for rotation, new in pairs]
        self.bound = [numbers.put(flag, frames, new, count) for flag, new in zip(self.bound, part.bound, strict=True)]
        self.root = numbers.put(self.root, frames, part.root, count)
        own = self.factors.items()
        self.factors = {body: numbers.put(factor, frames, part.factors[body], count) for body, factor in own}
        self.iterations[frames] = part.iterations
        self.stationary[frames] = part.stationary

    def pose(self, bodies: Sequence[Body]) -> Pose:
        """Where the bodies are."""
        return place_bodies(bodies, self.local, self.root, self.factors)

    def points(self, numbers: ModuleType, bodies: Sequence[Body]) -> FloatArray:
        """(F, M, 3) where the effectors are, and what else is measured."""
        return self.points_of(numbers, bodies, self.pose(bodies))

    def points_of(self, numbers: ModuleType, bodies: Sequence[Body], pose: Pose) -> FloatArray:
        """(F, M, 3) the same for bodies that stand in a pose."""
        return self.residuals.vectors(numbers, bodies, pose, self.target_rotations)

    def errors(self, numbers: ModuleType, bodies: Sequence[Body]) -> FloatArray:
        """(F, M) distances from the targets, zero where not seen."""
        return self.misses(self.points(numbers, bodies))

    def misses(self, points: FloatArray) -> FloatArray:
        """(F, M) how far points (F, M, 3) are from the targets, zero where those are not seen."""
        return np.asarray(np.where(self.weights > 0, lengths(points - self.targets), 0.0))

    def moved(self, points: FloatArray, before: FloatArray, share: float) -> BoolArray:
        """(F,) whether something that counts went farther than a share of its tolerance, both (F, M, 3)."""
        far = squares(points - before) > np.square(self.tolerances * share)
        return np.asarray((far & (self.weights > 0)).any(axis=1))

    def cost(self, points: FloatArray) -> FloatArray:
        """(F,) Σ weight · distance² with the effectors at (F, M, 3) points, and what rotations off the prior count."""
        cost: FloatArray = np.einsum("fe,fei->f", self.weights, (points - self.targets) ** 2)
        return cost if self.prior is None else cost + self.prior.cost(self.local)

    def unfinished(self, errors: FloatArray) -> BoolArray:
        """(F,) whether least squares may gain: something is unmet, or rotations are expected to be something."""
        return self.unmet(errors) if self.prior is None else np.ones(len(errors), dtype=bool)

    def unmet(self, errors: FloatArray) -> BoolArray:
        """(F,) whether something is farther from its target than its tolerance."""
        return np.asarray((errors > self.tolerances).any(axis=1))
