"""The door: what is to be solved is made ready once, and solved chunk by chunk."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import ModuleType

import numpy as np
import numpy.typing as npt

from .arrays import BoolArray, FloatArray
from .backend import array as many
from .fabrik import chain as chains
from .fabrik.limbs import find_links
from .fabrik.one_chain import OneChain
from .fabrik.passes import Sweeper
from .fabrik.start import spread_places, straight_runs
from .least_squares.solve import LeastSquares
from .limits.kinds import Limit
from .model.bodies import Body, Reaches, build_bodies, effector_points, path_reaches, place_bodies
from .model.effector import Effector
from .model.loops import with_partners
from .model.options import Options
from .model.prismatic import SlideRange, at_factors, find_slides, moved_with, nearest_to_rest
from .model.residuals import make_measures
from .model.skeleton import Skeleton
from .model.targets import Wanted
from .model.validation import (
    check_effectors,
    check_limits,
    check_root,
    check_slides,
    checked_poles,
    checked_root_location,
    checked_start,
    checked_targets,
    checked_turns,
    checked_weights,
)
from .solution import Solution
from .stages import Kernel, Run
from .strategy.bend_targets import Bends, find_limbs
from .strategy.priorities import Groups
from .strategy.temporal import repair_pops

_SPREAD_POSES = 256
# No more than one in so many frames of a chunk is put off.
_PUT_OFF = 10
# An unlimited chain needs little room for a frame, and many frames to be worth numpy's while.
_CHUNKS_OF_A_CHAIN = 5


def solve(  # noqa: PLR0913  the one public door: what it takes is the contract
    skeleton: Skeleton,
    effectors: Sequence[Effector],
    targets: npt.ArrayLike,
    *,
    limits: Mapping[str, Limit] | None = None,
    slides: Mapping[str, tuple[float, float]] | None = None,
    start: npt.ArrayLike | None = None,
    start_location: npt.ArrayLike | None = None,
    root: str = "FIXED",
    target_rotations: npt.ArrayLike | None = None,
    bend_targets: npt.ArrayLike | None = None,
    options: Options | None = None,
) -> Solution:
    """Find the pose in which the effectors meet their targets, for one pose or F frames, each by itself.

    Args:
        skeleton: J bones in their rest pose.
        effectors: E points on bones.
        targets: (E, 3) or (F, E, 3) in armature space; a NaN row is not seen on that frame.
        limits: bone name to limit.
        slides: bone name to (low, high) factors of its length, which changes only where targets cannot be met else.
        start: (J, 4) or (F, J, 4) local rotations to start from; rest when None.
        start_location: (3,) or (F, 3) the root's head at the start; its rest place when None.
        root: "FIXED" keeps the root's head, "FREE" lets it go where the fit wants it; a single effector then pulls the
            rest along behind it.
        target_rotations: (E, 4) or (F, E, 4) quaternions w x y z in armature space that effectors' bones are to have,
            each as much as its rotation_weight says; NaN: none.
        bend_targets: (E, 3) or (F, E, 3) points toward which the limbs that end at the effectors bend; NaN: none.
        options: tolerance and method.

    Raises:
        TargetError: for effectors, targets or starts that do not fit; OptionsError for an unknown root mode.
        LimitError: for limits and slides that make no sense.
    """
    return Solver(skeleton, effectors, limits=limits, slides=slides, root=root, options=options).solve(
        targets,
        start=start,
        start_location=start_location,
        target_rotations=target_rotations,
        bend_targets=bend_targets,
    )


class Solver:
    """A skeleton and its effectors made ready once, to be solved many times (see `solve` for the arguments)."""

    def __init__(
        self,
        skeleton: Skeleton,
        effectors: Sequence[Effector],
        *,
        limits: Mapping[str, Limit] | None = None,
        slides: Mapping[str, SlideRange] | None = None,
        root: str = "FIXED",
        options: Options | None = None,
    ) -> None:
        check_root(root)
        check_effectors(skeleton, effectors)
        self.limits = dict(limits or {})
        check_limits(skeleton, self.limits)
        self.skeleton = skeleton
        self.effectors = tuple(effectors)
        self.free_root = root == "FREE"
        self.options = options or Options()
        self.slides = dict(slides or {})
        check_slides(skeleton, self.slides)
        self.limits_by_bone = [skeleton.index(name) for name in self.limits], list(self.limits.values())
        self._factors = {name: nearest_to_rest(ends) for name, ends in self.slides.items()}
        self.shape = at_factors(skeleton, self._factors)
        self.reaches = self._reaches()

    def _reaches(self) -> Reaches:
        """How far effectors get, with all slides out."""
        reaches = path_reaches(self.shape, moved_with(self.effectors, self._factors))
        if not self.slides:
            return reaches
        longest = {name: high for name, (_, high) in self.slides.items()}
        out = path_reaches(at_factors(self.skeleton, longest), moved_with(self.effectors, longest))
        return Reaches(out.far, np.zeros_like(out.near), reaches.tolerance_lengths)

    def solve(
        self,
        targets: npt.ArrayLike,
        *,
        start: npt.ArrayLike | None = None,
        start_location: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        target_rotations: npt.ArrayLike | None = None,
        bend_targets: npt.ArrayLike | None = None,
    ) -> Solution:
        """One pose for (E, 3) targets, F poses for (F, E, 3); weights: ([F,] E) instead of the effectors' own."""
        if self._one_chain is not None and weights is None and target_rotations is None and bend_targets is None:
            alone = self._one_chain.solve(targets, start, start_location)
            if alone is not None:
                return alone
        points, is_one = checked_targets(targets, len(self.effectors))
        wanted = self._wanted(points, weights, target_rotations, bend_targets)
        frames = len(wanted)
        rotations = checked_start(start, self.skeleton, frames)
        locations = checked_root_location(start_location, self.skeleton, frames)
        kernel = self._for_one if is_one else self._for_many
        result = self._solved(kernel, wanted, rotations, locations, hurry=frames > self.frames_at_once)
        if self.options.repair_pops and not is_one:
            again = self.repair_pops(
                result,
                points,
                start_location,
                weights=weights,
                target_rotations=target_rotations,
                bend_targets=bend_targets,
            )
            list(again)
        return result.single() if is_one else result

    def _solved(
        self, kernel: Kernel, wanted: Wanted, rotations: FloatArray, locations: FloatArray, *, hurry: bool
    ) -> Solution:
        """All frames, a chunk at a time; in a hurry those that take long are put off, to be solved all together."""
        frames, at_once = len(wanted), self.frames_at_once
        result = Solution.empty(self.skeleton, frames, len(self.effectors))
        put_off = [np.arange(0)]
        for first in range(0, frames, at_once):
            part = slice(first, first + at_once)
            run = Run(self, kernel, wanted.part(part), rotations[part], locations[part])
            put_off.append(first + run.solve(at_once // _PUT_OFF if hurry else 0))
            run.settle()
            run.write(result, part)
        late = np.concatenate(put_off)
        if len(late):
            result.put(late, self._solved(kernel, wanted.part(late), rotations[late], locations[late], hurry=False))
        return result

    def _wanted(
        self,
        points: FloatArray,
        weights: npt.ArrayLike | None,
        target_rotations: npt.ArrayLike | None,
        bend_targets: npt.ArrayLike | None,
    ) -> Wanted:
        shape = len(points), len(self.effectors)
        weighed = checked_weights(weights, self.effectors, len(points))
        return Wanted(points, weighed, checked_turns(target_rotations, *shape), checked_poles(bend_targets, *shape))

    def repair_pops(
        self,
        solution: Solution,
        targets: npt.ArrayLike,
        start_location: npt.ArrayLike | None = None,
        *,
        weights: npt.ArrayLike | None = None,
        target_rotations: npt.ArrayLike | None = None,
        bend_targets: npt.ArrayLike | None = None,
    ) -> Iterator[bool]:
        """Solve again, in place, what jumps or failed in F frames of a solution; see `pops`.

        Yields:
            After each span of frames, whether it was replaced, so that long work can be watched and stopped.
        """
        points, _ = checked_targets(targets, len(self.effectors))
        locations = checked_root_location(start_location, self.skeleton, len(points))
        wanted = self._wanted(points, weights, target_rotations, bend_targets)
        return repair_pops(solution, points, partial(self._continue, wanted, locations))

    def _continue(
        self, wanted: Wanted, locations: FloatArray, frame: int, rotations: FloatArray, root: FloatArray
    ) -> Solution:
        """One frame carried on from its neighbour's pose: the finish alone, which moves no more than it must."""
        head = root if self.free_root else locations[frame]
        this = wanted.part(slice(frame, frame + 1))
        result = Solution.empty(self.skeleton, 1, len(self.effectors))
        run = Run(self, self._for_one, this, rotations[None], head[None])
        run.follow()
        run.settle()
        run.write(result, slice(0, 1))
        return result.single()

    @cached_property
    def frames_at_once(self) -> int:
        """How many frames are solved together."""
        is_chain = not self.free_root and chains.is_chain(self._for_many.bodies)
        return self.options.chunk * (_CHUNKS_OF_A_CHAIN if is_chain else 1)

    @cached_property
    def wishes_within_freedom(self) -> BoolArray:
        """Entry n: whether n targets, places and rotations, ask no more of the joints than they are free to give."""
        bodies = self._for_many.bodies
        freedom = sum(3 if body.limit is None else body.limit.freedom for body in bodies) + 3 * self.free_root
        return 3 * np.arange(2 * len(self.effectors) + 1) <= freedom

    @cached_property
    def spread_poses(self) -> tuple[FloatArray, FloatArray]:
        """(P, J, 4) a fixed sequence of poses that fill the limits, (P, E, 3) their effectors from the root's head."""
        count = len(self.skeleton)
        poses = np.tile([1.0, 0.0, 0.0, 0.0], (_SPREAD_POSES, count, 1))
        places = np.stack([spread_places(index + 1, count) for index in range(_SPREAD_POSES)])
        for name, limit in self.limits.items():
            bone = self.skeleton.index(name)
            inside = limit.clamp(many, many.quaternion(limit.sample(places[:, bone])))
            poses[:, bone] = many.stack([inside], _SPREAD_POSES)[:, 0]
        bodies = self._for_many.bodies
        local = [many.quaternion(poses[:, body.bone]) for body in bodies]
        pose = place_bodies(bodies, local, many.Vector((0.0, 0.0, 0.0)))
        points = effector_points(bodies, pose, len(with_partners(self.effectors)))
        return poses, many.stack(points[: len(self.effectors)], _SPREAD_POSES)

    @cached_property
    def _for_many(self) -> Kernel:
        return self._kernel(many, self._bodies(many))

    @cached_property
    def _for_one(self) -> Kernel:
        """The number system for a single pose: mathutils where there is one."""
        try:
            from .backend import scalar as one  # noqa: PLC0415  mathutils comes with Blender only
        except ImportError:
            return self._for_many
        return self._kernel(one, self._bodies(one))

    @cached_property
    def _one_chain(self) -> OneChain | None:
        """The short way to one pose, where there is nothing but a chain without limits."""
        kernel = self._for_one
        more = self.free_root or self.slides or kernel.measures.special or not chains.is_chain(kernel.bodies)
        if more or kernel.numbers is many:
            return None
        tolerance = float(kernel.measures.tolerances[0])
        return OneChain(kernel.numbers, kernel.bodies, self.skeleton, self.reaches, tolerance, self.options)

    def _bodies(self, numbers: ModuleType) -> list[Body]:
        points = moved_with(with_partners(self.effectors), self._factors)
        return build_bodies(self.shape, points, self.limits, numbers)

    def _kernel(self, numbers: ModuleType, bodies: list[Body]) -> Kernel:
        measures = make_measures(bodies, self.effectors, self.reaches.tolerance_lengths, self.options.tolerance)
        links = [
            link
            for link in find_links(bodies if numbers is many else self._for_many.bodies)
            if not {link.ball, *link.hinges}.intersection(measures.holders)
        ]
        sweeper = Sweeper(numbers, bodies, links, self.free_root, self.options.plain)
        finish = LeastSquares(bodies, measures, self.free_root)
        slides = find_slides(bodies, self.skeleton, self.slides)
        stretch = LeastSquares(bodies, measures, self.free_root, slides) if slides.bodies else None
        groups = Groups(numbers, bodies, measures, stretch or finish)
        bends = Bends(numbers, bodies, find_limbs(bodies, links, measures), finish)
        arrays = None if numbers is many else self._for_many
        bones, runs = [body.bone for body in bodies], straight_runs(bodies)
        return Kernel(numbers, bodies, bones, runs, measures, sweeper, finish, stretch, bends, groups, arrays)
