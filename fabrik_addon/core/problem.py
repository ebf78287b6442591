"""Everything that is prepared once to solve a skeleton and its effectors repeatedly."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .arrays import ROUNDING, BoolArray, FloatArray, lengths
from .backend.array import Backend, many
from .fabrik.chain import is_chain
from .fabrik.limbs import BendLimb, Body, HingeLimb, find_bend_limbs, find_hinge_limbs, make_links, straight_runs
from .fabrik.passes import Passes
from .kernel.bodies import Bodies, Pose, joint_axes
from .kernel.goals import Goals
from .kernel.joint_limits import JointLimits
from .limits import Limit
from .model.effector import Effector, Options, Reaches, participants, path_reaches, with_factors_applied, with_partners
from .model.skeleton import Skeleton, scaled_skeleton
from .optimize.least_squares import LeastSquares, Poles
from .rotations import IDENTITY

# Factor on a chunk of an unlimited chain, which needs little memory per frame; numpy is fastest with many frames.
_CHUNKS_OF_A_CHAIN = 5
# Number of poses among which restarts choose the nearest ones. With 256, a robot of five hinges missed 1 % of its
# targets.
_SPREAD_POSES = 1024


def one_pose_backend() -> Backend:
    """The backend for one pose: mathutils if available (only in Blender), else arrays."""
    try:
        from .backend.scalar import one  # noqa: PLC0415
    except ImportError:
        return many
    return one


@dataclass(frozen=True, eq=False)
class Problem:
    """A skeleton of J bones, its E effectors, and everything derived from them; each part is made when first needed.

    Attributes:
        skeleton: the bones at rest.
        effectors: the points that have targets.
        limits: bone name to limit.
        slides: bone name to the range of its length factor.
        free_root: whether the root's head may move.
        options: tolerance and method.
    """

    skeleton: Skeleton
    effectors: tuple[Effector, ...]
    limits: Mapping[str, Limit]
    slides: Mapping[str, tuple[float, float]]
    free_root: bool
    options: Options

    @cached_property
    def reaches(self) -> Reaches:
        """The reach of effectors, with all slides at their longest."""
        reaches = path_reaches(self.skeleton, self.effectors)
        if not self.slides:
            return reaches
        longest = {name: high for name, (_, high) in self.slides.items()}
        out = path_reaches(scaled_skeleton(self.skeleton, longest), with_factors_applied(self.effectors, longest))
        return Reaches(out.far, np.zeros_like(out.near), reaches.tolerance_lengths)

    @cached_property
    def bones(self) -> list[int]:
        """(B,) the bones between the root and some effector, parents first."""
        return participants(self.skeleton, with_partners(self.effectors))

    @cached_property
    def body_limits(self) -> list[Limit | None]:
        """(B,) limits of the bodies; None for none."""
        return [self.limits.get(self.skeleton.names[bone]) for bone in self.bones]

    @cached_property
    def _sliding(self) -> list[int]:
        return [body for body, bone in enumerate(self.bones) if self.skeleton.names[bone] in self.slides]

    @cached_property
    def bodies(self) -> Bodies:
        """The bones as bodies."""
        axes = [joint_axes(limit, 1.0) for limit in self.body_limits]
        return Bodies(self.skeleton, self.bones, axes, self.free_root, self._sliding)

    @cached_property
    def goals(self) -> Goals:
        """The effectors on the bodies."""
        return Goals(self.bodies, self.effectors)

    @cached_property
    def tolerances(self) -> FloatArray:
        """(E + O,) the largest residuals of met goals."""
        both = np.concatenate([self.goals.lengths, self.goals.arms])
        return np.maximum(self.options.tolerance * both, ROUNDING)

    @cached_property
    def ranks(self) -> FloatArray:
        """(E + O,) the ranks of the goals by priority: 0 is met first, and no rank is skipped."""
        ranks = np.unique([each.priority for each in self.effectors], return_inverse=True)[1].reshape(-1)
        return np.asarray(np.concatenate([ranks, ranks[self.goals.oriented]]), dtype=np.float64)

    @cached_property
    def joint_limits(self) -> JointLimits:
        """The limits of all bodies, evaluated together."""
        return JointLimits(self.bodies, self.body_limits)

    @cached_property
    def limited(self) -> bool:
        """Whether a body has a limit."""
        return any(limit is not None for limit in self.body_limits)

    @cached_property
    def may_restart(self) -> bool:
        """Whether other start poses are tried."""
        options = self.options
        return self.limited and options.finish and options.restarts > 0 and not options.plain

    @cached_property
    def links(self) -> list[Body]:
        """The bodies as seen by the two passes."""
        return make_links(self.bodies, self.goals, self.body_limits, many)

    @cached_property
    def is_chain(self) -> bool:
        """Whether points are enough: one unlimited rigid chain with a fixed root and one effector at its end."""
        if len(self.effectors) > 1 or self.limited or self.slides or self.is_general or self.free_root:
            return False
        return is_chain(self.links)

    @cached_property
    def is_general(self) -> bool:
        """Whether the goals include rotations or loops."""
        return bool(len(self.goals.oriented) or len(self.goals.on) > self.goals.count)

    @cached_property
    def follows_end(self) -> bool:
        """Whether the only effector pulls the whole chain along."""
        return self.free_root and self.goals.count == 1 and not self.is_general

    @cached_property
    def straight_runs(self) -> list[list[int]]:
        """The runs of bodies that are bent if they are straight at the start."""
        return straight_runs(self.links)

    @cached_property
    def hinge_limbs(self) -> list[HingeLimb]:
        """The limbs that consist of a ball joint and hinges, except those with target rotations."""
        held = set(self.goals.on[self.goals.oriented].tolist())
        return [limb for limb in find_hinge_limbs(self.links) if not held.intersection((limb.ball, *limb.hinges))]

    @cached_property
    def bend_limbs(self) -> list[BendLimb]:
        """The limbs that can be bent toward poles."""
        return find_bend_limbs(self.links, self.hinge_limbs, self.goals)

    @cached_property
    def poles(self) -> Poles:
        """The residual term that bends limbs toward poles."""
        return Poles(self.bodies, self.bend_limbs)

    @cached_property
    def passes(self) -> Passes:
        """FABRIK's two passes."""
        return Passes(many, self.bodies, self.goals, self.links, self.hinge_limbs, self.options.plain)

    @cached_property
    def passes_of_one(self) -> Passes:
        """The passes for one pose: for a person, two passes take 2 ms in mathutils and 10 ms in arrays."""
        backend = one_pose_backend()
        if backend is many:
            return self.passes
        links = make_links(self.bodies, self.goals, self.body_limits, backend)
        return Passes(backend, self.bodies, self.goals, links, self.hinge_limbs, self.options.plain)

    @cached_property
    def least_squares(self) -> LeastSquares:
        """The least-squares solver."""
        ends = np.array([self.slides[self.skeleton.names[self.bones[body]]] for body in self._sliding])
        return LeastSquares(self.bodies, self.goals, self.joint_limits, self.poles, ends.reshape(-1, 2).T)

    @cached_property
    def frames_at_once(self) -> int:
        """The number of frames solved together."""
        return self.options.chunk * (_CHUNKS_OF_A_CHAIN if self.is_chain else 1)

    @cached_property
    def _all_limits(self) -> tuple[list[int], JointLimits]:
        """The bones that have limits, and their limits, evaluated as if each bone were a body."""
        bones = [self.skeleton.index(name) for name in self.limits]
        bodies = Bodies(self.skeleton, bones, [np.eye(3)] * len(bones), free_root=False)
        return bones, JointLimits(bodies, list(self.limits.values()))

    @cached_property
    def first_poses(self) -> dict[bytes, tuple[Pose, Pose]]:
        """A cache of start poses, each also with straight limbs bent; the key is the rotations of all bones."""
        return {}

    @cached_property
    def _legal_poses(self) -> dict[bytes, FloatArray]:
        """The last pose shared by all frames, clamped to the limits; the key is the pose before clamping."""
        return {}

    def legal(self, rotations: FloatArray) -> FloatArray:
        """(F, J, 4) local rotations with every limited bone inside its limit."""
        if not (self.limits and len(rotations)):
            return rotations
        bones, limits = self._all_limits
        if rotations.strides[0]:
            legal = np.array(rotations)
            legal[:, bones] = limits.clamped(legal[:, bones])
            return legal
        # One pose for all frames is clamped only once, and only if it differs from that of the last solve.
        key = rotations[0].tobytes()
        if key not in self._legal_poses:
            self._legal_poses.clear()
            legal = np.array(rotations[0])
            legal[bones] = limits.clamped(legal[None, bones])[0]
            self._legal_poses[key] = legal
        return np.broadcast_to(self._legal_poses[key], rotations.shape)

    def at_limits(self, rotations: FloatArray, within: float) -> BoolArray:
        """(F, J) whether bones with local rotations (F, J, 4) are `within` radians of a limit; True for fixed bones."""
        result = np.zeros(rotations.shape[:2], dtype=bool)
        bones, limits = self._all_limits
        result[:, bones] = limits.near(rotations[:, bones], within)
        return result

    @cached_property
    def spread_poses(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A fixed sequence of P poses that fill the limits.

        Returns (P, J, 4) local rotations, (P, E, 3) the effectors relative to the root's head, and (P, O, 3, 3) the
        orientations of those whose rotation counts.
        """
        poses = _spread_poses(self.skeleton, self.limits)
        pose = self.bodies.pose(poses[:, self.bones], np.zeros((len(poses), 3)))
        orientations = pose.orientations[:, self.goals.on[self.goals.oriented]]
        return poses, self.goals.points(pose)[:, : self.goals.count], orientations

    def fits_freedom(self, weights: FloatArray, times: float = 1.0) -> BoolArray:
        """(F,) whether goals with a weight (F, E + O) have at most `times` as many coordinates as there are columns."""
        return np.asarray(3 * (weights > 0).sum(axis=1) <= times * self.bodies.columns)

    def is_beyond_lengths(self, targets: FloatArray, weights: FloatArray, roots: FloatArray) -> BoolArray:
        """(F,) whether a target (F, E, 3) with a weight is out of reach from the root's head at (F, 3)."""
        if self.free_root:
            return np.zeros(len(targets), dtype=bool)
        distances, reaches = lengths(targets - roots[:, None]), self.reaches
        outside = (distances > reaches.far) | (distances < reaches.near)
        return np.asarray((outside & (weights[:, : self.goals.count] > 0)).any(axis=1))


def _spread_poses(skeleton: Skeleton, limits: Mapping[str, Limit]) -> FloatArray:
    """(P, J, 4) a fixed sequence of poses that fill the limits; bones without a limit stay at rest."""
    count = len(skeleton)
    poses = np.tile(IDENTITY, (_SPREAD_POSES, count, 1))
    unit_points = np.random.default_rng(0).random((_SPREAD_POSES, count, 3))
    for name, limit in limits.items():
        bone = skeleton.index(name)
        inside = limit.clamp(many, many.quaternion(limit.sample(unit_points[:, bone])))
        poses[:, bone] = many.stack([inside], _SPREAD_POSES)[:, 0]
    return poses
