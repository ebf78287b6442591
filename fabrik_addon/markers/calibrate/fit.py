"""Fits marker positions on bones, the pose at rest, and the size or proportions of a rig to a recording, in rounds.

Real markers are about 15 mm from the positions that a mapping guesses. A fit without a prior turns these errors into
joint angles: with markers 10 mm off, arms of a body at rest rotated by 13–32°. So the pose that a person holds during
calibration is expected, with the deviations of people from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import numpy as np

from ...core import Effector, Options, Skeleton, Solution, Solver
from ...core.arrays import ROUNDING, BoolArray, FloatArray, lengths, times
from ...core.limits import Limit
from ...core.model.effector import PosePrior, participants
from ...core.rotations import (
    IDENTITY,
    angle_between,
    conjugate,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_between,
    rotation_vector_from_quaternion,
)
from ...human import rest_body
from ...human.naming_schemes import match
from ...human.rest_body import RestBody, degrees_between
from ..mapping.marker_map import MappedMarker
from ..signals import MEDIAN_DISTANCE, medians, outlier_weights
from .size import bones_of, joint_columns, make_effectors, points_on, with_factors

Kind = Literal["REST", "STANDING", "A_POSE", "T_POSE", "MOVING"]

# Degrees by which the arms are raised to the side in each calibration pose.
_RAISED: Final[dict[Kind, float]] = {"STANDING": 10.0, "A_POSE": 45.0, "T_POSE": 90.0}
# Degrees: a calibration pose is recognized if the arms are within this angle of it, and legs and trunk within this
# angle of rest.
_NEAR: Final = 25.0
# Deviations of people from a calibration pose, by part (degrees, standard deviation).
_STILL: Final = {"spine": 4.0, "chest": 4.0, "neck": 5.0, "head": 5.0, "shoulder": 4.0, "foot": 4.0, "toe": 4.0}
_STILL_LIMB: Final = 8.0
# Deviations of moving people from rest (degrees, standard deviation). With 15 for the lower spine, it was at its limits
# twice as often.
_MOVING: Final = {"spine": 12.0, "chest": 15.0, "neck": 20.0, "head": 20.0, "shoulder": 12.0, "foot": 20.0, "toe": 15.0}
_MOVING_LIMB: Final = 60.0
# Radians: a deviation so large that the prior has only about 2 % of the weight of a marker 10 cm from the joint.
_ANY: Final = np.pi
_LIMBS: Final = frozenset({"upper_arm", "forearm", "hand", "thigh", "shin"})


@dataclass(frozen=True, eq=False)
class ExpectedPose:
    """A pose: its name, (J, 4) local rotations, and (J,) standard deviations of people from it, radians."""

    kind: Kind
    rotations: FloatArray
    spread: FloatArray

    def prior(self, noise: float) -> PosePrior:
        """This pose as a prior. noise: standard deviation of a marker of weight 1, the rig's units."""
        return PosePrior(self.rotations, (noise / self.spread) ** 2)


def any_pose(skeleton: Skeleton) -> ExpectedPose:
    """The expected pose if nothing is known: rest, with so little weight that it only affects undetermined joints."""
    return ExpectedPose("MOVING", np.tile(IDENTITY, (len(skeleton), 1)), np.full(len(skeleton), _ANY))


def moving_pose(skeleton: Skeleton) -> ExpectedPose:
    """The expected pose of a moving person: near rest, with free limbs."""
    return ExpectedPose("MOVING", np.tile(IDENTITY, (len(skeleton), 1)), _spread(skeleton, _MOVING, _MOVING_LIMB))


def given_pose(skeleton: Skeleton, solution: Solution) -> ExpectedPose:
    """The calibration pose that a person holds, recognized from a rough fit of F frames."""
    spread = _spread(skeleton, _STILL, _STILL_LIMB)
    rest = np.tile(IDENTITY, (len(skeleton), 1))
    parts = _parts(skeleton)
    limbs = [bone for bone, part in enumerate(parts) if part in _LIMBS]
    away = np.degrees(np.median(angle_between(solution.rotations, rest[None]), axis=0))
    if not limbs or max(away[bone] for bone in limbs if parts[bone] != "hand") < _NEAR:
        return ExpectedPose("REST", rest, spread)
    arms = [bone for bone, part in enumerate(parts) if part == "upper_arm"]
    straight = [bone for bone, part in enumerate(parts) if part in {"forearm", "thigh", "shin"}]
    body = RestBody(rest_body.bones_of(skeleton.names, skeleton.parents, skeleton.rest, skeleton.lengths))
    if not arms or max(away[bone] for bone in straight) > _NEAR or body.axes is None:
        return moving_pose(skeleton)
    along = {bone: body.direction(skeleton.names[bone]) for bone in arms}
    # Degrees from the body's own down axis, in any orientation of the body.
    up = solution.matrices[:, 0, :3, :3] @ (skeleton.rest[0, :3, :3].T @ body.axes.up)
    raised = []
    for bone, direction in along.items():
        arm = solution.matrices[:, bone, :3, :3] @ (skeleton.rest[bone, :3, :3].T @ direction)
        raised.append(float(np.median(degrees_between(arm, -up))))
    kind = min(_RAISED, key=lambda kind: abs(_RAISED[kind] - np.mean(raised)))
    if max(abs(_RAISED[kind] - angle) for angle in raised) > _NEAR:
        return moving_pose(skeleton)
    angle = np.radians(_RAISED[kind])
    for bone, direction in along.items():
        # Swing the arm from rest, without twist, until it is raised to the side by this angle.
        outward = (np.sign(direction @ body.axes.left) or 1.0) * body.axes.left
        wanted = np.sin(angle) * outward - np.cos(angle) * body.axes.up
        turn = rotation_between(direction[None], wanted[None])
        own = quaternion_from_matrix(skeleton.rest[bone, :3, :3])
        rest[bone] = product(conjugate(own), product(turn, own))[0]
    return ExpectedPose(kind, rest, spread)


def _parts(skeleton: Skeleton) -> list[str]:
    """The body part of each bone; "" if its name does not show it."""
    roles = match(skeleton.names)
    return [roles[name].part if name in roles else "" for name in skeleton.names]


def _spread(skeleton: Skeleton, by_part: dict[str, float], limb: float) -> FloatArray:
    """(J,) standard deviations in radians; infinite for the root, large for unknown bones."""
    degrees = [limb if part in _LIMBS else by_part.get(part, _MOVING_LIMB) for part in _parts(skeleton)]
    spread = np.radians(degrees)
    spread[0] = np.inf
    return spread


# The numbers of steps for the first poses, and for the poses of later rounds, which start from the poses before. Poses
# need not be exact before the offsets are.
_STEPS, _STEPS_FROM_NEAR = 6, 2
# Error of a marker position once its offset is found, as a fraction of the skeleton's size (3 mm on a person).
_NOISE: Final = 0.001
# Markers on skin are usually off by at most this fraction of the size. Only an error beyond it, such as that of
# keypoints, counts as noise. With 0, skin markers lose weight.
_OF_SURFACE: Final = 0.0017
# Bones are rotated by this angle (radians) to find the directions in which their limits let them move. A limit is
# active if clamping removes more than the fraction `_CUT` of the rotation.
_TRIED: Final = 1e-3
_CUT: Final = 0.02


@dataclass(frozen=True, eq=False)
class Fit:
    """A skeleton and its markers while they are fitted to a recording.

    Attributes:
        skeleton: the rig's bones, or those of a person of other proportions.
        mapping: the M markers and their bones.
        offsets: (M, 3) marker offsets in their bones' frames.
        limits: bone name to limit.
        factors: (J,) bone lengths divided by those of the rig.
        expected: the pose that the person probably holds.
        scale: the factor from recorded positions to the skeleton's size.
        off: measured error of the marker positions (standard deviation along an axis, the rig's units).
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
        return participants(self.skeleton, self.effectors)

    @cached_property
    def effectors(self) -> Sequence[Effector]:
        """One effector for each marker."""
        return make_effectors(self.mapping, self.offsets)

    @property
    def noise(self) -> float:
        """Assumed error of the marker positions (standard deviation along an axis, the rig's units).

        It is at least the error of skin and cameras. With a smaller one, offsets of markers with gaps are off by
        centimeters.
        """
        beyond = max(self.off**2 - (_OF_SURFACE * self.skeleton.size) ** 2, 0.0)
        return float(np.hypot(_NOISE * self.skeleton.size, np.sqrt(beyond)))

    @cached_property
    def prior(self) -> PosePrior:
        """The prior on the pose, relative to markers with `noise`."""
        return self.expected.prior(self.noise)

    def solver(self, steps: int = _STEPS) -> Solver:
        """A solver for the markers, with a free root, that takes at most this many steps."""
        options = Options(tolerance=1e-6, restarts=0, max_sweeps=0, most_steps=steps)
        return Solver(self.skeleton, self.effectors, limits=self.limits, root="FREE", options=options)

    def solve(
        self,
        positions: FloatArray,
        weights: FloatArray | None = None,
        start: Solution | None = None,
        steps: int = _STEPS_FROM_NEAR,
    ) -> Solution:
        """The poses that fit recorded positions (F, M, 3) best.

        weights: (F, M). start: F initial poses; None: rest. steps: the maximum number of steps from `start`.
        """
        targets = positions * self.scale
        if start is None:
            return self.solver().solve(targets, weights=weights, prior=self.prior)
        rotations, roots = start.rotations, start.root_location
        near = self.solver(steps)
        return near.solve(targets, weights=weights, start=rotations, start_location=roots, prior=self.prior)

    def points(self, solution: Solution) -> FloatArray:
        """(F, M, 3) marker positions in the poses."""
        return points_on(solution.matrices, self.bones, self.offsets)

    def distances(self, solution: Solution, positions: FloatArray) -> FloatArray:
        """(F, M) distances of the markers from recorded positions (F, M, 3); NaN where a position is NaN."""
        return lengths(self.points(solution) - positions * self.scale)

    def from_expected(self, solution: Solution) -> FloatArray:
        """(F, J, 3) local rotation vectors from the poses to the expected pose."""
        expected = np.broadcast_to(self.prior.rotations, solution.rotations.shape)
        return rotation_vector_from_quaternion(product(expected, conjugate(solution.rotations)))

    def carried(self, solution: Solution) -> FloatArray:
        """(F, B, 3, 3) frames in armature space that the bodies' local rotations are relative to."""
        skeleton, parents = self.skeleton, self.skeleton.parents[self.bodies]
        inherits = (parents >= 0) & skeleton.inherits_rotation[self.bodies]
        above = np.where(inherits[:, None, None], solution.matrices[:, parents, :3, :3], np.eye(3))
        return np.asarray(above @ skeleton.rest_turns[self.bodies])

    def turned(self, solution: Solution, vectors: FloatArray) -> FloatArray:
        """(F, J, 4) local rotations after the bodies rotate by vectors (F, B, 3) in armature space."""
        local = times(np.swapaxes(self.carried(solution), -1, -2), vectors)
        rotations = np.array(solution.rotations)
        rotations[:, self.bodies] = product(quaternion_from_rotation_vector(local), rotations[:, self.bodies])
        return rotations

    def open_directions(self, solution: Solution, push: FloatArray, legal: Legal) -> FloatArray:
        """(F, B, 3, 3) projectors onto the rotations that limits allow to bodies pushed along vectors (F, B, 3).

        A body is rotated slightly along the push and clamped to its limits. The part of the rotation that is removed is
        the normal of the active limit. At a corner, a second round finds the other limit.
        """
        carried = self.carried(solution)
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


# Usual error of a guessed offset (standard deviation), as a fraction of the skeleton's size (15 mm on a person).
_OFFSET_SHARE: Final = 0.0065
# The same error for markers of a cluster, which may be anywhere on their bone (70 mm).
_CLUSTER_SHARE: Final = 0.03
# The same error for markers that are mapped to a joint (3 mm).
_JOINT_SHARE: Final = 0.0013
# Usual difference between a person's limb and the rig's, as a fraction of its length.
_LENGTH_SHARE: Final = 0.2
# All frames together count as this many independent ones, because skin moves with the pose, not at random.
FRAMES_WORTH: Final = 2.0
# Relative error of the scale found from the reference.
_SCALE_SHARE: Final = 0.01
_LARGEST_CHANGE: Final = 0.15
_SHORTEST: Final = 0.4
_LONGEST: Final = 2.5


@dataclass(frozen=True)
class Scale:
    """The size of the rig in the recording's units.

    grows: scale the offsets too, because they were guessed on the rig. first: the scale found from the reference.
    """

    grows: bool = False
    first: float | None = None

    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """(F, M, 3, 1) derivatives of the marker positions with respect to the logarithm of the scale."""
        return np.asarray(_length_columns(fit, solution, grows=self.grows).sum(axis=-1, keepdims=True))

    def prior(self, fit: Fit, sample_weight: float) -> tuple[FloatArray, FloatArray]:
        """Weight (1,) and difference (1,) that keep the scale near that of the reference."""
        if self.first is None:
            return np.zeros(1), np.zeros(1)
        weight = sample_weight * len(fit.mapping) / FRAMES_WORTH * (fit.noise / _SCALE_SHARE) ** 2
        return np.full(1, weight), np.full(1, fit.scale / self.first - 1.0)

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """The fit after a `step` (1,) of the scale. If the rig should be larger, the recording is scaled down."""
        factor = 1.0 + float(np.clip(step[0], -_LARGEST_CHANGE, _LARGEST_CHANGE))
        offsets = fit.offsets if self.grows else fit.offsets / factor
        return replace(fit, scale=fit.scale / factor, offsets=offsets)


@dataclass(frozen=True)
class Limbs:
    """One length factor for each bone. grows: scale the offsets with their bones, because they are guesses."""

    grows: bool = False
    frames_worth: float = FRAMES_WORTH

    def columns(self, fit: Fit, solution: Solution) -> FloatArray:
        """(F, M, 3, J) derivatives of the marker positions with respect to the logarithms of bone lengths."""
        return _length_columns(fit, solution, grows=self.grows)

    def prior(self, fit: Fit, sample_weight: float) -> tuple[FloatArray, FloatArray]:
        """Weights (J,) and differences (J,) that keep bone lengths near those of the rig."""
        weight = sample_weight / self.frames_worth * (fit.noise / _LENGTH_SHARE) ** 2
        return np.full(len(fit.skeleton), weight), 1.0 / fit.factors - 1.0

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """The fit after each bone is scaled by its own `step` (J,)."""
        wanted = fit.factors * (1.0 + np.clip(step, -_LARGEST_CHANGE, _LARGEST_CHANGE))
        factors = np.clip(wanted, _SHORTEST, _LONGEST)
        growth = factors / fit.factors
        offsets = fit.offsets * growth[fit.bones, None] if self.grows else fit.offsets
        return replace(fit, skeleton=with_factors(fit.skeleton, growth), offsets=offsets, factors=factors)


@dataclass(frozen=True, eq=False)
class Offsets:
    """The offset of each marker on its bone.

    first: (M, 3) the expected offsets. factors: (J,) the bone lengths for which these hold; None if offsets are not
    scaled with bones.
    """

    first: FloatArray
    factors: FloatArray | None = None
    frames_worth: float = FRAMES_WORTH

    def prior(self, fit: Fit, sample_weight: float) -> tuple[FloatArray, FloatArray]:
        """Weights (3 M,) and differences (3 M,) that keep markers within a few centimeters of their first offsets."""
        shares = [_OFFSET_SHARE if entry.point == "OFFSET" else _JOINT_SHARE for entry in fit.mapping]
        spread = np.where(in_clusters(fit.bones, self.first), _CLUSTER_SHARE, shares) * fit.skeleton.size
        growth = 1.0 if self.factors is None else (fit.factors / self.factors)[fit.bones, None]
        weights = np.repeat(sample_weight / self.frames_worth * (fit.noise / spread) ** 2, 3)
        return weights, np.asarray(self.first * growth - fit.offsets).ravel()

    def changed(self, fit: Fit, step: FloatArray) -> Fit:
        """The fit after each offset is moved by its own part of `step` (3 M,)."""
        return replace(fit, offsets=fit.offsets + step.reshape(fit.offsets.shape))


# P parameters of one kind, shared by all poses of a recording. `prior` returns (P,) weights and (P,) differences from
# the current values to the prior's mean. Its sample_weight is a marker's total weight over all samples, averaged over
# the markers.
Shared: TypeAlias = Scale | Limbs | Offsets


def in_clusters(bones: Sequence[int], guesses: FloatArray) -> BoolArray:
    """(M,) whether another marker on the same bone has the same guessed offset, so that not both can be near it.

    bones: of the M markers. guesses: (M, 3) offsets.
    """
    places = [(bone, *guess) for bone, guess in zip(bones, guesses.tolist(), strict=True)]
    counts = Counter(places)
    return np.array([counts[place] > 1 for place in places])


def _length_columns(fit: Fit, solution: Solution, *, grows: bool) -> FloatArray:
    """(F, M, 3, J) derivatives of the marker positions with respect to the logarithms of bone lengths.

    The root's head does not move. grows: scale the offsets with their bones.
    """
    orientations = solution.matrices[..., :3, :3]
    columns = np.zeros((len(orientations), len(fit.bones), 3, len(fit.skeleton)))
    for marker, bone in enumerate(fit.bones):
        for above, below in pairwise(fit.skeleton.path(bone)):
            columns[:, marker, :, above] = orientations[:, above] @ fit.skeleton.head_offsets[below]
        if grows:
            columns[:, marker, :, bone] = orientations[:, bone] @ fit.offsets[marker]
    return columns


# The search: rounds of Gauss-Newton steps for the poses and for the parameters that all poses of a recording share.
#
# The markers of a pose depend on its joints, which differ on every frame, and on the shared parameters. To minimize Σ
# weight · |target − point|², each step eliminates the joints frame by frame and solves for the shared parameters alone
# (the Schur complement, as in bundle adjustment: Triggs et al. 2000, §6). The solver then finds the joints again.

_ROUNDS: Final = 6
# The search ends when a round reduces the objective by less than this fraction.
_WORTH_WHILE: Final = 1e-2
# Damping of undetermined joints, as a fraction of the mean diagonal.
_DAMPING: Final = 1e-6
# A sample counts as good up to this many times its marker's usual distance, and always within this fraction of the
# skeleton's size.
_USUAL_TIMES: Final = 4.0
_ALWAYS_SHARE: Final = 0.01

# A function that clamps local rotations (F, J, 4) to the limits.
Legal: TypeAlias = Callable[[FloatArray], FloatArray]
# A search in small steps: yields an upper bound of its progress, 0 to 1, and returns a fit with its poses.
Search: TypeAlias = Generator[float, None, tuple[Fit, Solution]]


def at_best_scale(fit: Fit, positions: FloatArray, first: float) -> Search:
    """The fit at the scale that matches positions (F, M, 3) best, with the guessed offsets; first: about that scale."""
    return (yield from _search(replace(fit, scale=first), positions, [Scale(grows=True)]))


def over_reference(fit: Fit, positions: FloatArray, poses: Solution, *, resize: bool, limbs: bool) -> Search:
    """Fit offsets, and optionally scale or limbs, to positions (F, M, 3) of a person who holds a pose.

    poses: F initial poses.
    """
    shared: list[Shared] = [Offsets(fit.offsets, fit.factors, frames_worth=1.0)]
    if limbs:
        shared.append(Limbs(grows=True, frames_worth=1.0))
    elif resize:
        shared.append(Scale(first=fit.scale))
    return (yield from _search(fit, positions, shared, poses))


def over_take(fit: Fit, positions: FloatArray, *, resize: bool) -> Search:
    """Fit offsets, and optionally sizes, to positions (F, M, 3) of a take, ignoring outliers."""
    shared: list[Shared] = [Offsets(fit.offsets)]
    if resize:
        shared.append(Scale(first=fit.scale) if (fit.factors == 1.0).all() else Limbs())
    return (yield from _search(fit, positions, shared))


def _search(fit: Fit, positions: FloatArray, shared: Sequence[Shared], poses: Solution | None = None) -> Search:
    """Improve the fit in rounds until a round gains too little; yields progress, 0 to 1.

    If offsets are searched for, outliers get almost no weight. Over a take, the noise is estimated from the data. A
    reference does not show it, since its offsets are guesses at first.

    poses: F initial poses of a reference; None: rest.
    """
    weights = np.where(np.isnan(positions).any(axis=2), 0.0, fit.weights)
    solution, legal = fit.solve(positions, weights, poses), fit.solver().problem.legal
    for done in range(_ROUNDS):
        yield done / _ROUNDS
        if any(isinstance(one, Offsets) for one in shared):
            distances = fit.distances(solution, positions)
            usual = medians(distances)
            allowed = np.maximum(_USUAL_TIMES * np.nan_to_num(usual), _ALWAYS_SHARE * fit.skeleton.size)
            weights = outlier_weights(distances, allowed) * fit.weights
            if poses is None:
                fit = replace(fit, off=float(np.sqrt(np.nanmean(usual**2))) / MEDIAN_DISTANCE)
        yield (done + 0.5) / _ROUNDS
        before = _objective(fit, solution, positions, weights, shared)
        step = _step(fit, solution, positions, weights, shared, legal)
        for share in (1.0, 0.4):
            trial = _changed(fit, shared, share * step)
            start = replace(solution, root_location=solution.root_location * (trial.scale / fit.scale))
            found = trial.solve(positions, weights, start)
            after = _objective(trial, found, positions, weights, shared)
            if after < before:
                break
        else:
            break
        fit, solution = trial, found
        if before - after <= _WORTH_WHILE * before:
            break
    return fit, solution


def _objective(
    fit: Fit, solution: Solution, positions: FloatArray, weights: FloatArray, shared: Sequence[Shared]
) -> float:
    """Σ weight · distance² plus the priors on pose and parameters, in the recording's units."""
    cost = float((weights * np.nan_to_num(fit.distances(solution, positions)) ** 2).sum())
    cost += float((fit.prior.weights * (fit.from_expected(solution) ** 2).sum(axis=-1)).sum())
    prior_weights, to_mean = _prior(fit, weights, shared)
    return (cost + float((prior_weights * to_mean**2).sum())) / fit.scale**2


def _prior(fit: Fit, weights: FloatArray, shared: Sequence[Shared]) -> tuple[FloatArray, FloatArray]:
    """(P,) weights of the priors on all shared parameters, and (P,) differences from their means."""
    sample_weight = float(weights.sum()) / max(len(fit.mapping), 1)
    priors = [one.prior(fit, sample_weight) for one in shared]
    return np.concatenate([weight for weight, _ in priors]), np.concatenate([mean for _, mean in priors])


def _changed(fit: Fit, shared: Sequence[Shared], step: FloatArray) -> Fit:
    """The fit after a step (P,) of all shared parameters."""
    first = 0
    for one in shared:
        count = len(one.prior(fit, 0.0)[0])
        fit, first = one.changed(fit, step[first : first + count]), first + count
    return fit


def _step(
    fit: Fit, solution: Solution, positions: FloatArray, weights: FloatArray, shared: Sequence[Shared], legal: Legal
) -> FloatArray:
    """(P,) step of the shared parameters."""
    frames, markers = weights.shape
    points = fit.points(solution)
    residuals = np.nan_to_num(positions * fit.scale - points)
    # The bodies' rotation vectors in armature space, then the root's location.
    joints = joint_columns(fit.skeleton, fit.effectors, fit.limits, solution.matrices, points)
    joints = joints.reshape(frames, 3 * markers, -1, 3)
    # The prior on the pose, for the joints' columns; none for the root's location.
    held = np.zeros((frames, joints.shape[2], 3))
    held[:, :-1] = np.broadcast_to(fit.prior.weights, (frames, len(fit.skeleton)))[:, fit.bodies, None]
    to_expected = np.zeros(held.shape)
    to_expected[:, :-1] = times(fit.carried(solution), fit.from_expected(solution)[:, fit.bodies])
    pulls = (weights[..., None] * residuals).reshape(frames, 1, -1)
    push = (pulls @ joints.reshape(frames, 3 * markers, -1)).reshape(held.shape) + held * to_expected
    tangents = fit.open_directions(solution, push[:, :-1], legal)
    limited = np.flatnonzero((tangents != np.eye(3)).any(axis=(0, 2, 3)))
    joints[:, :, limited] = np.swapaxes(np.swapaxes(joints[:, :, limited], 1, 2) @ tangents[:, limited], 1, 2)
    to_expected[:, :-1] = times(tangents, to_expected[:, :-1])
    held, to_expected = held.reshape(frames, -1), to_expected.reshape(frames, -1)
    # Rows are in the frames of the markers' bones, so that the columns of the offsets form a unit matrix.
    back = np.swapaxes(solution.matrices[:, fit.bones, :3, :3], -1, -2) * np.sqrt(weights)[..., None, None]
    own = (back @ joints.reshape(frames, markers, 3, -1)).reshape(frames, 3 * markers, -1)
    sizes = [one.columns(fit, solution) for one in shared if isinstance(one, Scale | Limbs)]
    rest = (back @ np.concatenate([*sizes, residuals[..., None]], axis=-1)).reshape(frames, 3 * markers, -1)
    across = np.swapaxes(own, 1, 2)
    square, pulled = across @ own, across @ rest
    flat = rest.reshape(frames * 3 * markers, -1)
    summed = flat[:, :-1].T @ flat
    if len(sizes) < len(shared):
        root = np.repeat(np.sqrt(weights), 3, axis=1)
        pulled = np.concatenate([np.swapaxes(own * root[..., None], 1, 2), pulled], axis=2)
        beside = (root[..., None] * rest).sum(axis=0)
        summed = np.block([[np.diag((root**2).sum(axis=0)), beside], [beside[:, :-1].T, summed]])
    pulled[..., -1] += held * to_expected
    diagonal = np.einsum("fii->fi", square)
    diagonal += _DAMPING * diagonal.mean(axis=1, keepdims=True) + 1e-12 + held
    alone = np.linalg.solve(square, pulled)
    columns = pulled.shape[2]
    summed -= pulled.reshape(-1, columns)[:, :-1].T @ alone.reshape(-1, columns)
    prior_weights, to_mean = _prior(fit, weights, shared)
    matrix = summed[:, :-1] + np.diag(prior_weights + 1e-12)
    return np.asarray(np.linalg.solve(matrix, summed[:, -1] + prior_weights * to_mean))
