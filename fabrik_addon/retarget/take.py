"""From a motion to the poses of a rig: rotations carried over, then hands and feet brought to their places."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core import Effector, Fixed, Options, Skeleton, Solution, Solver, forward_kinematics
from ..core.limits.base import Limit
from ..core.model.targets import PosePrior
from ..human.naming_schemes import match
from ..human.rest_body import RestBody
from ..markers.steps import at_once
from .alignment import align
from .goals import Goals, RetargetSettings, find_ends
from .limbs import Limb, LimbSolver
from .motion import Motion, RetargetError, bones_of
from .pairs import Pair, pair_bodies
from .reference import find_reference
from .transfer import Transfer

# The poses with the rotations carried over are near.
_OPTIONS = Options(max_sweeps=0, restarts=0, tolerance=1e-5)
# What a bone's turn off the source's rotation counts beside the places: a radian as much as this share of its size.
_ROTATION_SHARE = 0.03
_CHUNK = 500


@dataclass(frozen=True, eq=False)
class Retargeted:
    """F poses of a rig, and what they were asked to meet."""

    solution: Solution
    names: tuple[str, ...]
    effectors: tuple[Effector, ...]
    pairs: tuple[Pair, ...]


def find_pairs(motion: Motion, skeleton: Skeleton) -> tuple[Pair, ...]:
    """Which bone goes by which; raises RetargetError where none does."""
    source, target = _bodies(motion, skeleton)
    pairs = pair_bodies(source, target)
    if not any(target.roles[pair.bone].part == "hips" for pair in pairs):
        raise RetargetError(f"No bone of {motion.name!r} is known as one of the rig's: say by a map which is which.")
    return pairs


def _bodies(motion: Motion, skeleton: Skeleton) -> tuple[RestBody, RestBody]:
    target = RestBody(bones_of(skeleton.names, skeleton.parents, skeleton.rest, skeleton.lengths))
    return RestBody(motion.bones_at(None)), target


def retarget_steps(
    motion: Motion,
    skeleton: Skeleton,
    settings: RetargetSettings,
    *,
    limits: Mapping[str, Limit] | None = None,
    pairs: Sequence[Pair] | None = None,
) -> Generator[float, None, Retargeted]:
    """Find the rig's poses, in small steps: yields the share done; may be closed at any time.

    Raises RetargetError where the bodies have too little in common.
    """
    pairs = find_pairs(motion, skeleton) if pairs is None else tuple(pairs)
    work = _Work(motion, skeleton, settings, limits or {}, pairs)
    solution = Solution.empty(skeleton, len(motion), len(work.goals.effectors))
    for first in range(0, len(motion), _CHUNK):
        frames = slice(first, first + _CHUNK)
        found = work.solve(frames)
        for name in Solution.FRAME_ARRAYS:
            getattr(solution, name)[frames] = getattr(found, name)
        yield min(1.0, frames.stop / len(motion))
    return Retargeted(solution, tuple(work.goals.names), tuple(work.goals.effectors), tuple(pairs))


class _Work:
    """All that is prepared once for a motion and a rig."""

    def __init__(
        self,
        motion: Motion,
        skeleton: Skeleton,
        settings: RetargetSettings,
        limits: Mapping[str, Limit],
        pairs: Sequence[Pair],
    ) -> None:
        _, target = _bodies(motion, skeleton)
        reference = find_reference(motion, target, match(motion.names), settings.reference)
        alignment = align(motion, reference, target, pairs)
        self.skeleton = skeleton
        self.transfer = Transfer(motion, reference.body, skeleton, target, pairs, alignment)
        ends = find_ends(motion, reference.body, skeleton, target)
        self.goals = Goals(motion, alignment, skeleton, self.transfer.hips, ends, settings)
        limbs = [Limb.of(skeleton, end.limb, limits) for end in ends]
        self.limbs = [
            (place, LimbSolver(skeleton, limb, motion.rate))
            for place, limb in enumerate(limbs, start=1)
            if limb is not None
        ]
        still = {name: Fixed() for name in _unpaired(skeleton, pairs)}
        self.solver = Solver(skeleton, self.goals.effectors, limits={**limits, **still}, root="FREE", options=_OPTIONS)
        self.weights = np.full(len(skeleton), (_ROTATION_SHARE * skeleton.size) ** 2)

    def solve(self, frames: slice) -> Solution:
        """The poses of some frames."""
        local, root = self.transfer.poses(frames)
        matrices = forward_kinematics(self.skeleton, local, root)
        targets = self.goals.targets(frames, matrices)
        for place, limb in self.limbs:
            limb.solve(local, matrices, targets[:, place])
        return self.solver.solve(targets, start=local, start_location=root, prior=PosePrior(local, self.weights))


retarget = at_once(retarget_steps)


def _unpaired(skeleton: Skeleton, pairs: Sequence[Pair]) -> list[str]:
    """The bones that stay as they are at rest."""
    paired = {pair.bone for pair in pairs}
    return [name for name in skeleton.names if name not in paired]
