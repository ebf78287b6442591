"""From a motion to the poses of a rig: rotations carried over, then hands and feet brought to their places."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core import Effector, Skeleton, Solution, Solver, Status, forward_kinematics
from ..core.arrays import FloatArray, lengths
from ..core.limits.base import Limit
from ..core.rotations import angle_between, conjugate, product, quaternion_from_matrix
from ..markers.steps import at_once
from .alignment import align, is_alike, leg_length
from .bodies import check_pairs, find_bodies, find_pairs
from .feet import Contact, toe_turns, within_frames
from .goals import End, Goals, RetargetSettings, find_ends, legs_reach, lowered
from .limbs import Limb, LimbSolver
from .motion import Motion
from .pairs import Pair
from .reaching import ArmReach, LegReach
from .reference import find_reference
from .touches import Touches
from .transfer import Transfer

# Frames that are solved together, so that memory stays flat.
_CHUNK = 2000
# Seconds of a loop that are looked at beyond its ends, so that both come out alike.
_LOOPED = 1.0
# Shares of the rig's size: a place met to within this is met.
_MET = 1e-3
# A limit binds where it turns a bone by more, in radians.
_BINDS = 1e-4
_HEAD = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Retargeted:
    """F poses of a rig, what they were asked to meet, which bone went by which, and when feet stood.

    axes: (3, 3) from the source's world to the rig's armature space.
    """

    solution: Solution
    names: tuple[str, ...]
    effectors: tuple[Effector, ...]
    pairs: tuple[Pair, ...]
    contacts: tuple[Contact, ...]
    axes: FloatArray


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
    beside = round(_LOOPED * motion.rate) if motion.is_loop else 0
    wide = motion.repeated(beside) if beside else motion
    work = _Work(wide, skeleton, settings, limits or {}, pairs)
    solution = Solution.empty(skeleton, len(wide), len(work.effectors))
    for first in range(0, len(wide), _CHUNK):
        frames = slice(first, min(first + _CHUNK, len(wide)))
        work.solve(frames, solution.part(frames))
        yield frames.stop / len(wide)
    solution = solution.part(slice(beside, beside + len(motion)))
    names = tuple(effector.bone for effector in work.effectors)
    return Retargeted(
        solution,
        names,
        work.effectors,
        tuple(pairs),
        tuple(within_frames(work.goals.contacts, beside, len(motion))),
        work.transfer.alignment.axes,
    )


retarget = at_once(retarget_steps)


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
        source, target = find_bodies(motion, skeleton, pairs)
        pairs = [pair for pair in pairs if pair.bone in target.roles]
        check_pairs(motion, target, pairs)
        reference = find_reference(motion, target, source.roles, settings.reference)
        alignment = align(motion, reference, target, pairs)
        self.skeleton, self.target = skeleton, target
        self.transfer = Transfer(motion, reference.body, skeleton, target, pairs, alignment)
        ends = find_ends(motion, reference.body, skeleton, target)
        if is_alike(reference.body, target, pairs, alignment):
            # The source's contacts hold as they are.
            settings = replace(settings, plant_feet=False)
        self.legal = Solver(skeleton, [Effector(skeleton.names[self.transfer.hips])], limits=limits).problem.legal
        self.goals = Goals(self.transfer, target, ends, settings, self.legal)
        self.touches = None
        if settings.plant_feet and settings.places > 0.0:
            self.touches = Touches(motion, alignment, reference.body, skeleton, target, leg_length(target))
        free = frozenset(pair.bone for pair in pairs)
        self.limbs = [(end, _limb_solver(self.transfer, end, limits)) for end in ends]
        feet = [end for end in ends if not end.is_hand]
        self.arms = {end.name: ArmReach(skeleton, end, limits, free) for end in ends if end.is_hand}
        self.legs = LegReach(skeleton, self.transfer.hips, feet, limits, free)
        self.reaches = legs_reach(skeleton, ends)
        bones = [skeleton.names[self.transfer.hips], *(end.name for end in ends)]
        self.effectors = tuple(Effector(bone, _HEAD) for bone in bones)

    def solve(self, frames: slice, solution: Solution) -> None:
        """Write the poses of some frames: legs and hips first, arms from where these leave the shoulders."""
        local, root = self.transfer.poses(frames)
        local = self._trunk_legal(local)
        matrices = forward_kinematics(self.skeleton, local, root)
        root, matrices = self._lowered(frames, root, matrices)
        hips = matrices[:, self.transfer.hips, :3, 3]
        wanted, feet = {}, []
        for end, limb in self.limbs:
            if not end.is_hand:
                wanted[end.name], rotations = self._bring(frames, end, limb, local, matrices)
                feet.append((wanted[end.name], rotations, self.goals.standing(end, frames, len(local))))
        self.legs.solve(local, root, matrices, feet)
        matrices = forward_kinematics(self.skeleton, local, root)
        wanted |= self._arms(frames, local, matrices)
        self._lift_toes(local, root)
        legal = self.legal(local)
        solution.binding[:] = angle_between(local, legal) > _BINDS
        solution.rotations[:], solution.root_location[:] = legal, root
        self._measure(solution, np.stack([hips, *(wanted[end.name] for end, _ in self.limbs)], axis=1))

    def _arms(self, frames: slice, local: FloatArray, matrices: FloatArray) -> dict[str, FloatArray]:
        """Bring hands to their goals; (F, 3) these by the hands' names."""
        arms = [(end, limb, *self.goals.of(end, frames, matrices)) for end, limb in self.limbs if end.is_hand]
        places = [place for _, _, place, _ in arms]
        if self.touches is not None:
            places = self.touches.brought(frames, [end for end, *_ in arms], places, matrices)
        for (end, limb, _, rotations), place in zip(arms, places, strict=True):
            if limb is not None:
                limb.solve(frames, local, matrices, place, rotations)
            self.arms[end.name].solve(local, matrices, place)
        return {end.name: place for (end, *_), place in zip(arms, places, strict=True)}

    def _bring(
        self, frames: slice, end: End, limb: LimbSolver | None, local: FloatArray, matrices: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bring a limb to its goals in closed form; (F, 3) and (F, 4) these."""
        places, rotations = self.goals.of(end, frames, matrices)
        if limb is not None:
            limb.solve(frames, local, matrices, places, rotations)
        return places, rotations

    def _trunk_legal(self, local: FloatArray) -> FloatArray:
        """The rotations inside the limits but for those of the limbs that are still to be solved."""
        legal = np.array(self.legal(local))
        limbs = [bone for end, limb in self.limbs if limb is not None for bone in end.limb]
        legal[:, limbs] = local[:, limbs]
        return legal

    def _lowered(self, frames: slice, root: FloatArray, matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The hips as far down as legs need to reach their feet."""
        assert self.target.axes is not None
        feet = [end for end, _ in self.limbs if not end.is_hand]
        if not feet:
            return root, matrices
        up = self.target.axes.up
        downs = [
            lowered(matrices[:, end.limb[0], :3, 3], self.goals.of(end, frames, matrices)[0], reach, up)
            for end, reach in zip(feet, self.reaches, strict=True)
        ]
        shift = -np.max(downs, axis=0)[:, None] * up
        moved = matrices.copy()
        moved[..., :3, 3] += shift[:, None]
        return root + shift, moved

    def _lift_toes(self, local: FloatArray, root: FloatArray) -> None:
        """Turn toes up, in place, where they would go through the ground."""
        soles = [end.sole for end, _ in self.limbs if end.sole is not None and end.sole.toe]
        if not soles or not self.goals.contacts:
            return
        matrices = forward_kinematics(self.skeleton, self.legal(local), root)
        for sole in soles:
            toe = self.skeleton.index(sole.toe)
            frame = matrices[:, toe]
            turn = toe_turns(frame[:, :3, :3], frame[:, :3, 3], sole.tip, self.goals.floor)
            # The same turn as seen from the toe's own frame.
            own = quaternion_from_matrix(frame[:, :3, :3])
            local[:, toe] = product(local[:, toe], product(conjugate(own), product(turn, own)))

    def _measure(self, solution: Solution, wanted: FloatArray) -> None:
        """Write how far hips, hands and feet are from where they are to be."""
        bones = [self.skeleton.index(effector.bone) for effector in self.effectors]
        placed = forward_kinematics(self.skeleton, solution.rotations, solution.root_location)[..., :3, 3][:, bones]
        solution.errors[:] = lengths(placed - wanted)
        met = (solution.errors <= _MET * self.skeleton.size).all(axis=1)
        solution.status[:] = np.where(met, Status.SOLVED, Status.LIMITED)


def _limb_solver(transfer: Transfer, end: End, limits: Mapping[str, Limit]) -> LimbSolver | None:
    """What brings a limb to its goals in closed form; None where its bones do not hang on one another."""
    limb = Limb.of(transfer.skeleton, end.limb, limits)
    if limb is None:
        return None
    turns = (transfer.turned(end.limb[0], slice(None)), transfer.turned(end.limb[1], slice(None)))
    return LimbSolver(transfer.skeleton, limb, turns, transfer.motion.rate)
