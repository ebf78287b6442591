"""A rig that is posed over and over, each time going on from the pose before: dragging and live posing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import bpy
import numpy as np

from ...core import Effector, Fixed, Options, Solver, forward_kinematics
from ...core.arrays import BoolArray, FloatArray
from ...core.kernel.hanging import HangFrom
from ...core.limits.base import Limit
from ...core.model.skeleton import Skeleton
from ...core.posture.solve import PosturePose, PostureSolver
from ...core.rotations import angle_between
from ..goals.goals import Goals
from ..goals.root import moves_root
from ..goals.support import floor_of, support_of
from ..rig.locks import WithLocks
from ..rig.posture_masses import masses_of
from ..settings.rig import rig_settings
from .stored_pose import kept_pose_key, preferred_pose
from .straight_limbs import straight_joints, with_bent_joints

# Radians that locked channels may be off by: less cannot be seen, and solving again for it would double the time.
_KEPT: Final = 1e-4
# A share of the body's size: targets that have gone farther at once have jumped. There is nothing to go on from then,
# and the pose is the one that leads there from the preferred pose, in stretches of this length: so many at most.
_JUMP: Final = 0.1
_MOST_STRETCHES: Final = 8
# A share of the body's size, and radians: what misses by less is met.
_MET, _TURNED = 1e-4, 1e-2
# A pose by sweeps is taken for missing so much less than the one that stretches lead to; what comes first counts more.
_CLEARLY_LESS, _FIRST = 0.9, 10.0
# Where goals that come first cannot all be met, each later rank weighs so much less than the one before.
_GIVES_WAY: Final = 0.05
# The nearest answer is wanted, not the best of all.
_NO_RESTARTS: Final = Options(restarts=0)


class Asked(NamedTuple):
    """What is asked of a tree: (E, 3) points, and (E, 4) rotations where some count; NaN where nothing is asked for."""

    points: FloatArray
    rotations: FloatArray | None = None


class PostureSession:
    """One tree of bones, the points that it is led by, and the pose that it is in.

    Attributes:
        local_rotations: (J, 4) the present pose. location: (3,) where its root's head is.
        locks: by place in the skeleton, what each lets a rotation be.
    """

    def __init__(  # noqa: PLR0913  each is needed by one of the two that pose over and over
        self,
        armature: bpy.types.Object,
        skeleton: Skeleton,
        effectors: Sequence[Effector],
        *,
        limits: Mapping[str, Limit],
        root: str,
        preferred: tuple[FloatArray, FloatArray],
        locks: Mapping[int, WithLocks] | None = None,
        pinned: Collection[str] = (),
        most_stretches: int = _MOST_STRETCHES,
        is_eased: bool = False,
        hang_from: HangFrom | None = None,
    ) -> None:
        """Begin in the preferred pose, (J, 4) local rotations and the root's head at (3,), and stay near it.

        root: "FIXED" or "FREE". locks: by place in the skeleton, what each lets a rotation be. pinned: the bones that
        are held where they are, on which the rig may stand. most_stretches: what is farther away is gone to by sweeps.
        is_eased: joints do not run ahead of what leads them, even if that falls short for a while.
        hang_from: limbs that nothing leads hang as in that pose; None has them ride on the trunk.
        """
        self._skeleton, self._effectors, self._limits, self._root = skeleton, tuple(effectors), dict(limits), root
        self._masses, self.locks = masses_of(armature, skeleton), dict(locks or {})
        self._floor, self._support = floor_of(armature), support_of(armature, pinned)
        self._solvers: dict[tuple[int, tuple[int, ...]], PostureSolver] = {}
        self._sweepers: dict[Options, Solver] = {}
        ranks = sorted({effector.priority for effector in effectors})
        self._ranks = np.array([ranks.index(effector.priority) for effector in effectors])
        self._preferred, self._most_stretches, self._is_stuck = preferred, most_stretches, False
        # Whether a pose is come to now, rather than over several moves of the mouse.
        self._at_once, self._is_eased, self._hang_from = False, is_eased, hang_from
        self.back()

    def prefer(self, local_rotations: FloatArray, location: FloatArray) -> None:
        """Stay near another pose from now on."""
        self._preferred = local_rotations, location
        for solver in self._solvers.values():
            solver.prefer(*self._preferred)

    def _forget(self) -> None:
        """What comes next does not go on from the pose before."""
        for solver in self._solvers.values():
            solver.forget()

    def back(self) -> None:
        """Be in the preferred pose again."""
        self.begin_at(*self._preferred)

    def begin_at(self, local_rotations: FloatArray, location: FloatArray) -> None:
        """Be in a pose in which everything is where it is to be."""
        self._is_stuck, self._first = False, int(self._ranks.max())
        self.go_on_from(local_rotations, location)
        self._asked = self._solver(()).points(local_rotations, location)

    def misses(self, local_rotations: FloatArray, location: FloatArray, asked: Asked) -> FloatArray:
        """(E + O,) what a pose misses, in metres and radians."""
        return self._solver(()).misses(local_rotations, location, *asked)

    def go_on_from(self, local_rotations: FloatArray, location: FloatArray) -> None:
        """Be in another pose."""
        self.local_rotations, self.location = local_rotations, location

    def pose(self, asked: Asked) -> PosturePose:
        """Go to the pose for what is asked."""
        before, self._asked = self._asked, np.where(np.isnan(asked.points), self._asked, asked.points)
        if np.linalg.norm(self._asked - before, axis=1).max() > self._stretch:
            return self.pose_anew(asked)
        self._at_once = False
        return self._go(asked)

    def pose_anew(self, asked: Asked, *, options: Options = _NO_RESTARTS) -> PosturePose:
        """Go from the preferred pose to the one for what is asked, whatever the present one is.

        By stretches, where so many lead there, else by FABRIK's sweeps and from there.
        """
        self._at_once = True
        self._forget()
        self.back()
        begin, self._asked = self._asked, np.where(np.isnan(asked.points), self._asked, asked.points)
        stretches = int(np.linalg.norm(self._asked - begin, axis=1).max() / self._stretch) + 1
        found = None
        if stretches <= self._most_stretches:
            for share in np.arange(1, stretches) / stretches:
                self._go(asked._replace(points=begin + share * (asked.points - begin)))
            found = self._go(asked)
            if self._missing(found) == 0.0:
                return found
        swept = self._swept(asked, options)
        if found is not None and self._missing(swept) > _CLEARLY_LESS * self._missing(found):
            self.go_on_from(found.rotations, found.root_location)
            return found
        return swept

    @property
    def _stretch(self) -> float:
        """How far targets may go at once."""
        return _JUMP * self._solver(()).posture.size

    def _missing(self, found: PosturePose) -> float:
        """How much a pose misses, in shares of the body's size and radians; 0 where all is met."""
        goals = self._solver(()).goals
        errors = found.errors / self._solver(()).posture.size
        turns = np.nan_to_num(found.rotation_errors)
        missing = np.where(errors > _MET, errors, 0.0) + np.where(turns > _TURNED, turns, 0.0)
        return float(missing @ np.where(goals.hard[: 3 * goals.count : 3], _FIRST, 1.0))

    def _out_of_straight_limbs(self, found: PosturePose, asked: Asked) -> PosturePose:
        """Go on from a pose that misses its goals once limbs that are straight have been bent.

        Along such a limb no step leads anywhere: hips that are drawn down on straight legs stay where they are. Where
        it does not help it is tried again only once the goals have been met.
        """
        frames = forward_kinematics(self._skeleton, found.rotations, found.root_location)
        straight = straight_joints(self._skeleton, self._limits, self._solver(()).bodies.bones[1:], frames)
        points = self._solver(()).points(found.rotations, found.root_location)
        way = asked.points - points
        # Some goal is missed other than one whose point is drawn away from the joint.
        nearing = [
            bone
            for bone, place in straight.items()
            if self._is_missed(found, ~((way * (points - place)).sum(axis=1) > 0.0))
        ]
        if straight and not nearing:
            # Points that are drawn away stretch them; to bend them leads back, and takes ten times as long as a move.
            return found
        bent = with_bent_joints(self._skeleton, self._limits, found.rotations, nearing)
        gone = self._solver(()).gone
        self._forget()
        self.go_on_from(self._within_locks(bent), found.root_location)
        other = self._go_near(asked)
        if self._missing(other) <= _CLEARLY_LESS * self._missing(found):
            return self._eased(found, other, gone)
        self.go_on_from(found.rotations, found.root_location)
        return found

    def _eased(self, found: PosturePose, other: PosturePose, gone: float) -> PosturePose:
        """Go from one pose as far to another one as joints may go at once."""
        if self._at_once or not self._is_eased:
            return other
        other = self._solver(()).on_the_way(found, other, gone)
        self.go_on_from(other.rotations, other.root_location)
        return other

    def _within_locks(self, local_rotations: FloatArray) -> FloatArray:
        """(J, 4) a pose as the locks allow it."""
        turned = np.array(local_rotations)
        for bone, lock in self.locks.items():
            turned[bone] = lock(turned[bone])
        return turned

    def _sweeper(self, options: Options) -> Solver:
        """FABRIK's sweeps for the same goals."""
        if options not in self._sweepers:
            limits = {name: limit for name, limit in self._limits.items() if limit is not None}
            self._sweepers[options] = Solver(
                self._skeleton, self._effectors, limits=limits, root=self._root, options=options
            )
        return self._sweepers[options]

    def _swept(self, asked: Asked, options: Options) -> PosturePose:
        """Go to the pose that FABRIK's sweeps from the preferred one lead to."""
        rotations, location = self._preferred
        swept = self._sweeper(options).solve(
            asked.points, start=rotations, start_location=location, target_rotations=asked.rotations
        )
        self.go_on_from(self._within_locks(swept.rotations), swept.root_location)
        self._forget()
        return self._go(asked)

    def _go(self, asked: Asked) -> PosturePose:
        """Go to a pose that is near, out of straight limbs where those are in the way."""
        found = self._go_near(asked)
        if self._missing(found) == 0.0:
            self._is_stuck = False
        elif not self._is_stuck and not found.is_held_back:
            before = found
            found = self._out_of_straight_limbs(found, asked)
            self._is_stuck = found is before
        return found

    def _go_near(self, asked: Asked) -> PosturePose:
        """Go to a pose that is near: as many ranks of goals come first as can be met."""
        start = self.local_rotations, self.location
        found = self._go_within_locks(asked)
        while self._first > 1 and self._is_missed(found, self._ranks < self._first):
            self._first -= 1
            self.go_on_from(*start)
            found = self._go_within_locks(asked)
        if self._first < self._ranks.max() and not self._is_missed(found, self._ranks <= self._first):
            self._first += 1
        return found

    def _is_missed(self, found: PosturePose, chosen: BoolArray) -> bool:
        """Whether some of the goals, (E,) chosen, are missed."""
        size = self._solver(()).posture.size
        turns = np.nan_to_num(found.rotation_errors)
        return bool(((found.errors > _MET * size) | (turns > _TURNED))[chosen].any())

    def _go_within_locks(self, asked: Asked) -> PosturePose:
        """Go to a pose that is near and that locks allow."""
        found = self._solve((), self.local_rotations, self.location, asked)
        allowed = {bone: lock(found.rotations[bone]) for bone, lock in self.locks.items()}
        kept = [bone for bone, turn in allowed.items() if angle_between(turn, found.rotations[bone]) > _KEPT]
        if kept:
            # Those bones go where their locks let them, and the others make up for it.
            turned = np.array(found.rotations)
            turned[kept] = [allowed[bone] for bone in kept]
            found = self._solve(tuple(kept), turned, found.root_location, asked)
        self.go_on_from(found.rotations, found.root_location)
        return found

    def _solve(self, held: tuple[int, ...], start: FloatArray, location: FloatArray, asked: Asked) -> PosturePose:
        solver = self._solver(held)
        return solver.solve(
            asked.points,
            start=start,
            start_location=location,
            target_rotations=asked.rotations,
            at_once=self._at_once,
            eased=self._is_eased,
        )

    def _solver(self, held: tuple[int, ...]) -> PostureSolver:
        """The solver in which some bones do not turn, and as many ranks come first as do now."""
        key = self._first, held
        if key not in self._solvers:
            self._solvers[key] = self._made_ready([self._skeleton.names[bone] for bone in held])
        return self._solvers[key]

    def _made_ready(self, held: Collection[str]) -> PostureSolver:
        later = np.maximum(self._ranks - self._first, 0)
        effectors = [
            replace(effector, priority=int(rank >= self._first), weight=effector.weight * _GIVES_WAY**steps)
            for effector, rank, steps in zip(self._effectors, self._ranks, later.tolist(), strict=True)
        ]
        limits = {**self._limits, **{name: Fixed() for name in held}}
        solver = PostureSolver(
            self._skeleton,
            effectors,
            self._masses,
            limits=limits,
            root=self._root,
            floor=self._floor,
            support=self._support,
            hang_from=self._hang_from,
        )
        solver.prefer(*self._preferred)
        return solver


def session_for(
    rig: bpy.types.Object,
    goals: Goals,
    begin: tuple[FloatArray, FloatArray],
    *,
    locks: Mapping[int, WithLocks] | None = None,
    most_stretches: int = _MOST_STRETCHES,
    is_eased: bool = False,
) -> PostureSession:
    """The session of some goals near the pose that the rig prefers, as a rule that in which it begins."""
    free = moves_root(rig, goals)
    return PostureSession(
        rig,
        goals.tree.skeleton,
        goals.effectors,
        limits=goals.all_limits,
        root="FREE" if free else "FIXED",
        preferred=preferred_pose(rig, goals.tree, *begin, bones=goals.bones, moves_root=free),
        locks=locks,
        pinned=goals.pinned,
        most_stretches=most_stretches,
        is_eased=is_eased,
    )


def depends_on(rig: bpy.types.Object, goals: Goals) -> tuple[Any, ...]:
    """What a session for some goals depends on besides the bones at rest, the pose to stay near and its targets."""
    masses = masses_of(rig, goals.tree.skeleton)
    weighed = tuple(array.tobytes() for array in (masses.shares, masses.centres, masses.factors))
    held, moves = tuple(goals.held), moves_root(rig, goals)
    return weighed, stands_by(rig), goals.effectors, dict(goals.limits), held, moves


def stands_by(rig: bpy.types.Object) -> tuple[Any, ...]:
    """What of that the rig's settings say, and how it stands in the world."""
    kept, up = rig_settings(rig), rig.matrix_world[2][:]
    return kept_pose_key(rig), kept.balance, up[:3], (kept.floor_height, up) if kept.use_floor else None
