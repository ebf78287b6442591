"""A rig that is posed over and over, each time going on from the pose before: dragging and live posing."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import bpy
import numpy as np

from ...core import Effector, Fixed
from ...core.arrays import FloatArray
from ...core.limits.kinds import Limit
from ...core.model.skeleton import Skeleton
from ...core.posture.solve import PosturePose, PostureSolver
from ...core.rotations import angle_between
from ..rig.locks import WithLocks
from ..rig.posture_masses import masses_of

# Radians that locked channels may be off by: less cannot be seen, and solving again for it would double the time.
_KEPT: Final = 1e-4
# A share of the body's size: targets that have gone farther at once have jumped. There is nothing to go on from then,
# and the pose is the one that leads there from the preferred pose, in stretches of this length.
_JUMP: Final = 0.1
_MOST_STRETCHES: Final = 8


class PostureSession:
    """One tree of bones, the points that it is led by, and the pose that it is in.

    Attributes:
        local_rotations: (J, 4) the present pose. location: (3,) where its root's head is.
    """

    def __init__(
        self,
        armature: bpy.types.Object,
        skeleton: Skeleton,
        effectors: Sequence[Effector],
        *,
        limits: Mapping[str, Limit],
        root: str,
        preferred: tuple[FloatArray, FloatArray],
        locks: Mapping[int, WithLocks] | None = None,
    ) -> None:
        """Begin in the preferred pose, (J, 4) local rotations and the root's head at (3,), and stay near it.

        root: "FIXED" or "FREE". locks: by place in the skeleton, what each lets a rotation be.
        """
        self._skeleton, self._effectors, self._limits, self._root = skeleton, tuple(effectors), dict(limits), root
        self._masses, self._locks = masses_of(armature, skeleton), dict(locks or {})
        self._solvers: dict[tuple[int, ...], PostureSolver] = {}
        self._preferred = preferred
        self.back()

    def prefer(self, local_rotations: FloatArray, location: FloatArray) -> None:
        """Stay near another pose from now on."""
        self._preferred = local_rotations, location
        for solver in self._solvers.values():
            solver.prefer(*self._preferred)

    def back(self) -> None:
        """Be in the preferred pose again."""
        self.go_on_from(*self._preferred)
        self._asked = self._points()

    def go_on_from(self, local_rotations: FloatArray, location: FloatArray) -> None:
        """Be in another pose."""
        self.local_rotations, self.location = local_rotations, location

    def pose(self, targets: FloatArray, target_rotations: FloatArray | None = None) -> PosturePose:
        """Go to the pose for (E, 3) targets and (E, 4) rotations, NaN where nothing is asked for."""
        before, self._asked = self._asked, np.where(np.isnan(targets), self._asked, targets)
        stretch = _JUMP * self._solver(()).posture.size
        if np.linalg.norm(self._asked - before, axis=1).max() > stretch:
            self.go_on_from(*self._preferred)
            begin = self._points()
            far = float(np.linalg.norm(self._asked - begin, axis=1).max())
            for share in np.linspace(0.0, 1.0, min(int(far / stretch), _MOST_STRETCHES) + 2)[1:-1]:
                self._go(begin + share * (targets - begin), target_rotations)
        return self._go(targets, target_rotations)

    def _points(self) -> FloatArray:
        """(E, 3) where the effectors are in the preferred pose."""
        return self._solver(()).points(*self._preferred)

    def _go(self, targets: FloatArray, target_rotations: FloatArray | None) -> PosturePose:
        """Go to a pose that is near."""
        found = self._solve((), self.local_rotations, self.location, targets, target_rotations)
        allowed = {bone: lock(found.rotations[bone]) for bone, lock in self._locks.items()}
        kept = [bone for bone, turn in allowed.items() if angle_between(turn, found.rotations[bone]) > _KEPT]
        if kept:
            # Those bones go where their locks let them, and the others make up for it.
            turned = np.array(found.rotations)
            turned[kept] = [allowed[bone] for bone in kept]
            found = self._solve(tuple(kept), turned, found.root_location, targets, target_rotations)
        self.go_on_from(found.rotations, found.root_location)
        return found

    def _solve(
        self,
        held: tuple[int, ...],
        start: FloatArray,
        location: FloatArray,
        targets: FloatArray,
        target_rotations: FloatArray | None,
    ) -> PosturePose:
        solver = self._solver(held)
        return solver.solve(targets, start=start, start_location=location, target_rotations=target_rotations)

    def _solver(self, held: tuple[int, ...]) -> PostureSolver:
        """The solver in which some bones do not turn."""
        if held not in self._solvers:
            self._solvers[held] = self._made_ready([self._skeleton.names[bone] for bone in held])
        return self._solvers[held]

    def _made_ready(self, held: Collection[str]) -> PostureSolver:
        limits = {**self._limits, **{name: Fixed() for name in held}}
        solver = PostureSolver(self._skeleton, self._effectors, self._masses, limits=limits, root=self._root)
        solver.prefer(*self._preferred)
        return solver
