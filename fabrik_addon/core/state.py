"""The frames in the making: their pose, and what it is measured by."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray, lengths, squares
from .backend.protocol import Backend, Condition, Quaternion, Scalar, Vector
from .model.bodies import Body, SweepPose, place_bodies
from .model.residuals import Residuals
from .rotations import conjugate, product, rotation_vector_from_quaternion


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
    """(F, B, 4) local rotations that bodies are expected to have, and (F, B) what a squared radian off counts."""

    rotations: FloatArray
    weights: FloatArray

    def part(self, frames: IntArray | slice) -> "Prior":
        """The same for some of the frames."""
        return Prior(self.rotations[frames], self.weights[frames])

    def away(self, local: FloatArray) -> FloatArray:
        """(F, B, 3) rotation vectors from local rotations (F, B, 4) to the expected ones, where those are."""
        return rotation_vector_from_quaternion(product(self.rotations, conjugate(local)))

    def cost(self, local: FloatArray) -> FloatArray:
        """(F,) Σ weight · angle²."""
        return np.asarray((self.weights * squares(self.away(local))).sum(axis=1))


@dataclass
class Objective:
    """What is asked of F frames in which M vectors are measured (see `Residuals`), and how far they have got.

    Attributes:
        targets: (F, M, 3), zero where not seen.
        weights: (F, M), zero where not seen.
        tolerances: (F, M) distances and radians.
        target_rotations: (F, E, 4) what effectors' bodies are to have; none is NaN where one has a rotation weight.
        residuals: what the M vectors are.
        prior: what rotations are expected to be; None: nothing is.
        iterations: (F,) sweeps and steps taken.
        stationary: (F,) nothing makes it better.
    """

    targets: FloatArray
    weights: FloatArray
    tolerances: FloatArray
    target_rotations: FloatArray
    residuals: Residuals
    prior: Prior | None
    iterations: IntArray
    stationary: BoolArray

    def objective(self, frames: IntArray | slice) -> dict[str, Any]:
        """What is asked of some of the frames, by the names of the attributes."""
        whole = ((name.name, getattr(self, name.name)) for name in fields(Objective))
        result = {name: value[frames] if isinstance(value, np.ndarray) else value for name, value in whole}
        return result | {"prior": None if self.prior is None else self.prior.part(frames)}

    def misses(self, points: FloatArray) -> FloatArray:
        """(F, M) how far points (F, M, 3) are from the targets, zero where those are not seen."""
        return np.asarray(np.where(self.weights > 0, lengths(points - self.targets), 0.0))

    def moved(self, points: FloatArray, before: FloatArray, share: float) -> BoolArray:
        """(F,) whether something that counts went farther than a share of its tolerance, both (F, M, 3)."""
        far = squares(points - before) > np.square(self.tolerances * share)
        return np.asarray((far & (self.weights > 0)).any(axis=1))

    def unfinished(self, errors: FloatArray) -> BoolArray:
        """(F,) whether least squares may gain: something is unmet, or rotations are expected to be something."""
        return self.unmet(errors) if self.prior is None else np.ones(len(errors), dtype=bool)

    def unmet(self, errors: FloatArray) -> BoolArray:
        """(F,) whether something is farther from its target than its tolerance."""
        return np.asarray((errors > self.tolerances).any(axis=1))

    def cost(self, points: FloatArray) -> FloatArray:
        """(F,) Σ weight · distance² with the effectors at (F, M, 3) points, and what rotations off the prior count."""
        cost: FloatArray = np.einsum("fe,fei->f", self.weights, (points - self.targets) ** 2)
        return cost if self.prior is None else cost + self.prior.cost(self.local_rotations())

    def local_rotations(self) -> FloatArray:
        """(F, B, 4) of the bodies."""
        raise NotImplementedError


@dataclass
class State(Objective):
    """F frames of a solve with B bodies.

    Attributes:
        backend: array or scalar.
        local: B local rotations.
        root: the root's head.
        rest: B local rotations that free twist returns to.
        bound: B flags, whether the last backward pass had to clamp the body.
        bend_targets: (F, E, 3) points toward which limbs bend, NaN where there is none.
        factors: by body that slides, the factor of its length.
    """

    backend: Backend
    local: list[Quaternion]
    root: Vector
    rest: list[Quaternion]
    bound: list[Condition]
    bend_targets: FloatArray
    factors: dict[int, Scalar]

    def part(self, frames: IntArray) -> "State":
        """The state of some of the frames."""
        take = self.backend.take
        return State(
            **self.objective(frames),
            backend=self.backend,
            local=[take(rotation, frames) for rotation in self.local],
            root=take(self.root, frames),
            rest=[take(rotation, frames) for rotation in self.rest],
            bound=[take(flag, frames) for flag in self.bound],
            bend_targets=self.bend_targets[frames],
            factors={body: take(factor, frames) for body, factor in self.factors.items()},
        )

    def replace(self, frames: IntArray, part: "State") -> None:
        """Take over pose and progress of some of the frames."""
        put, count = self.backend.put, len(self.targets)
        self.local = [put(rotation, frames, new, count) for rotation, new in zip(self.local, part.local, strict=True)]
        self.bound = [put(flag, frames, new, count) for flag, new in zip(self.bound, part.bound, strict=True)]
        self.root = put(self.root, frames, part.root, count)
        self.factors = {body: put(factor, frames, part.factors[body], count) for body, factor in self.factors.items()}
        self.iterations[frames] = part.iterations
        self.stationary[frames] = part.stationary

    def local_rotations(self) -> FloatArray:
        """(F, B, 4) of the bodies."""
        rotations: FloatArray = self.backend.stack(self.local, len(self.targets))
        return rotations

    def pose(self, bodies: Sequence[Body]) -> SweepPose:
        """Where the bodies are."""
        return place_bodies(bodies, self.local, self.root, self.factors)

    def points(self, bodies: Sequence[Body]) -> FloatArray:
        """(F, M, 3) where the effectors are, and what else is measured."""
        return self.points_of(bodies, self.pose(bodies))

    def points_of(self, bodies: Sequence[Body], pose: SweepPose) -> FloatArray:
        """(F, M, 3) the same for bodies that stand in a pose."""
        return self.residuals.vectors(self.backend, bodies, pose, self.target_rotations)

    def errors(self, bodies: Sequence[Body]) -> FloatArray:
        """(F, M) distances from the targets, zero where not seen."""
        return self.misses(self.points(bodies))
