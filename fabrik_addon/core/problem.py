"""All that is prepared once to solve a skeleton and its effectors, again and again, on one of the two backends."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .arrays import BoolArray, FloatArray, lengths
from .backend import array
from .backend.protocol import Backend
from .fabrik.chain import is_chain
from .fabrik.limbs import BendLimb, HingeLimb, find_bend_limbs, find_hinge_limbs, straight_runs
from .fabrik.passes import Passes
from .fabrik.start import spread_poses
from .least_squares.solve import LeastSquares
from .limits.base import Limit
from .model.bodies import Body, Reaches, build_bodies, effector_points, path_reaches, place_bodies
from .model.effector import Effector
from .model.loops import with_partners
from .model.options import Options
from .model.prismatic import SlideRange, at_factors, find_slides, moved_with, nearest_to_rest
from .model.residuals import Residuals, make_residuals
from .model.skeleton import Skeleton
from .model.validation import checked_parts

# An unlimited chain needs little room for a frame, and many frames to be worth numpy's while.
_CHUNKS_OF_A_CHAIN = 5


@dataclass(frozen=True, eq=False)
class Problem:
    """A skeleton of J bones, its E effectors, and whatever follows from them; each part is made when first needed.

    Attributes:
        skeleton: the bones at rest.
        effectors: the points that are to reach targets.
        limits: by name of bone.
        slides: by name of bone, the factors that its length may be between.
        free_root: whether the root's head may move.
        options: tolerance and method.
        backend: array or scalar.
        on_arrays: the same on arrays; None where this one is.

    Raises:
        TargetError: for effectors that do not fit the skeleton; LimitError for limits and slides that make no sense.
    """

    skeleton: Skeleton
    effectors: tuple[Effector, ...]
    limits: Mapping[str, Limit]
    slides: Mapping[str, SlideRange]
    free_root: bool
    options: Options
    backend: Backend = array
    on_arrays: "Problem | None" = None

    def on(self, backend: Backend) -> "Problem":
        """The same on another backend."""
        return replace(self, backend=backend, on_arrays=self)

    @cached_property
    def limits_by_bone(self) -> tuple[list[int], list[Limit]]:
        """The bones that have limits, and these."""
        return [self.skeleton.index(name) for name in self.limits], list(self.limits.values())

    @cached_property
    def _factors(self) -> dict[str, float]:
        """Of bones that slide, the factors of their lengths that are nearest to rest."""
        return {name: nearest_to_rest(ends) for name, ends in self.slides.items()}

    @cached_property
    def shape(self) -> Skeleton:
        """The skeleton with all slides as near to rest as they can be."""
        return at_factors(self.skeleton, self._factors)

    @cached_property
    def reaches(self) -> Reaches:
        """How far effectors get, with all slides out."""
        reaches = path_reaches(self.shape, moved_with(self.effectors, self._factors))
        if not self.slides:
            return reaches
        longest = {name: high for name, (_, high) in self.slides.items()}
        out = path_reaches(at_factors(self.skeleton, longest), moved_with(self.effectors, longest))
        return Reaches(out.far, np.zeros_like(out.near), reaches.tolerance_lengths)

    @cached_property
    def bodies(self) -> list[Body]:
        """The B bones between the root and some effector, parents first."""
        points = moved_with(with_partners(self.effectors), self._factors)
        return build_bodies(self.shape, points, self.limits, self.backend)

    @cached_property
    def bones(self) -> list[int]:
        """(B,) the bodies' bones."""
        return [body.bone for body in self.bodies]

    @cached_property
    def residuals(self) -> Residuals:
        """What is measured of a pose, and how exact it is to be."""
        return make_residuals(self.bodies, self.effectors, self.reaches.tolerance_lengths, self.options.tolerance)

    @cached_property
    def is_chain(self) -> bool:
        """Whether points are all it takes: one unlimited chain, one effector at its end, a target in space."""
        return not self.residuals.special and is_chain(self.bodies)

    @cached_property
    def follows_its_end(self) -> bool:
        """Whether the one effector pulls the whole along."""
        return self.free_root and self.residuals.count == 1 and not self.residuals.special

    @cached_property
    def straight_runs(self) -> list[list[int]]:
        """The runs of bodies that are bent slightly where they begin dead straight."""
        return straight_runs(self.bodies)

    @cached_property
    def hinge_limbs(self) -> list[HingeLimb]:
        """The limited limbs; their tables are the same on either backend."""
        limbs = find_hinge_limbs(self.bodies) if self.on_arrays is None else self.on_arrays.hinge_limbs
        held = set(self.residuals.holders)
        return [limb for limb in limbs if not held.intersection((limb.ball, *limb.hinges))]

    @cached_property
    def bend_limbs(self) -> list[BendLimb]:
        """The limbs that can be bent toward bend targets."""
        return find_bend_limbs(self.bodies, self.hinge_limbs, self.residuals)

    @cached_property
    def passes(self) -> Passes:
        """FABRIK's two passes."""
        return Passes(self.backend, self.bodies, self.hinge_limbs, self.free_root, self.options.plain)

    @cached_property
    def least_squares(self) -> LeastSquares:
        """What makes a pose exact, at the lengths nearest to rest."""
        return LeastSquares(self.bodies, self.residuals, self.free_root)

    @cached_property
    def sliding_least_squares(self) -> LeastSquares | None:
        """The same with lengths that give way; None where nothing on the way slides."""
        slides = find_slides(self.bodies, self.skeleton, self.slides)
        return LeastSquares(self.bodies, self.residuals, self.free_root, slides) if slides.bodies else None

    @cached_property
    def sliding_bodies(self) -> tuple[int, ...]:
        """(S,) the bodies that slide."""
        sliding = self.sliding_least_squares
        return () if sliding is None or sliding.slides is None else sliding.slides.bodies

    @cached_property
    def frames_at_once(self) -> int:
        """How many frames are solved together."""
        return self.options.chunk * (_CHUNKS_OF_A_CHAIN if self.is_chain and not self.free_root else 1)

    def legal(self, rotations: FloatArray) -> FloatArray:
        """(F, J, 4) local rotations with every limited bone inside its limit."""
        if not self.limits:
            return rotations
        # One pose for all frames needs to be looked at once only.
        legal = np.array(rotations[:1] if rotations.strides[0] == 0 else rotations)
        bones, limits = self.limits_by_bone
        bounded = zip(limits, self.backend.quaternions(legal, bones), strict=True)
        inside = [limit.clamp(self.backend, rotation) for limit, rotation in bounded]
        legal[:, bones] = self.backend.stack(inside, len(legal))
        return np.broadcast_to(legal, rotations.shape)

    @cached_property
    def spread_poses(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A fixed sequence of P poses that fill the limits.

        Returns:
            (P, J, 4) local rotations, (P, E, 3) the effectors from the root's head, and (P, O, 4) the orientations of
            those that have a rotation weight.
        """
        poses = spread_poses(self.skeleton, self.limits)
        local = array.quaternions(poses, self.bones)
        pose = place_bodies(self.bodies, local, array.Vector((0.0, 0.0, 0.0)))
        points = array.stack(effector_points(self.bodies, pose, self.residuals.ends), len(poses))
        orientations = np.zeros((len(poses), 0, 4))
        if self.residuals.oriented:
            orientations = array.stack([pose.orientations[holder] for holder in self.residuals.holders], len(poses))
        return poses, points[:, : self.residuals.count], orientations

    def within_freedom(self, weights: FloatArray, times: float = 1.0) -> BoolArray:
        """(F,) whether what counts (F, M) asks for no more numbers than so many times the joints' freedoms."""
        freedom = sum(3 if body.limit is None else body.limit.freedom for body in self.bodies) + 3 * self.free_root
        return np.asarray(3 * (weights > 0).sum(axis=1) <= times * freedom)

    def beyond_lengths(self, targets: FloatArray, weights: FloatArray, roots: FloatArray) -> BoolArray:
        """(F,) whether a target that counts is where the lengths do not reach.

        Args:
            targets: (F, M, 3) what is asked of the measured vectors.
            weights: (F, M).
            roots: (F, 3) where the root's head is.
        """
        if self.free_root:
            return np.zeros(len(targets), dtype=bool)
        count = self.residuals.count
        distances = lengths(targets[:, :count] - roots[:, None])
        return self.reaches.misses(distances, weights[:, :count] > 0)


def make_problem(
    skeleton: Skeleton,
    effectors: Iterable[Effector],
    limits: Mapping[str, Limit] | None,
    slides: Mapping[str, SlideRange] | None,
    root: str,
    options: Options | None,
) -> Problem:
    """The problem on arrays, once all that it is made of has been checked.

    Raises:
        SkeletonError: for what is no skeleton.
        TargetError: for effectors that do not fit the skeleton.
        LimitError: for limits and slides that make no sense.
        OptionsError: for an unknown root mode, or for what are no options.
    """
    points, bounds, ranges, options = checked_parts(skeleton, effectors, limits, slides, root, options)
    return Problem(skeleton, points, bounds, ranges, root == "FREE", options)
