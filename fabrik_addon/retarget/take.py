"""From a motion to the poses of a rig: rotations carried over, then hands and feet brought to their places."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core import Effector, Skeleton, Solution, Solver, Status, forward_kinematics
from ..core.arrays import BoolArray, FloatArray, lengths
from ..core.backend import array
from ..core.limits.base import Limit
from ..core.rotations import angle_between, conjugate, product, quaternion_from_matrix
from ..markers.calibrate.offsets import points_on
from ..markers.feet.stances import Stance, drift
from ..markers.steps import at_once
from .alignment import align, is_alike, leg_length
from .bodies import check_pairs, find_bodies, find_pairs
from .feet import toe_turns
from .goals import End, Goals, RetargetSettings, find_ends, lowered
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
# Radians: a limit binds where the bone is no farther from one of its sides, as in `Solution.binding`.
_BINDS = 1e-4
_HEAD = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Retargeted:
    """F poses of a rig, what they were asked to meet, which of N bones went by which, and when feet stood.

    turned_off: (F, N) radians that a bone is turned from what the source's is; of limbs, whose roll goes by the hinge
        below, their way only.
    axes: (3, 3) from the source's world to the rig's armature space.
    """

    solution: Solution
    effectors: tuple[Effector, ...]
    pairs: tuple[Pair, ...]
    turned_off: FloatArray
    stances: tuple[Stance, ...]
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
    stances = tuple(_stances(work.goals.stances, solution, beside))
    off = work.turned_off[beside : beside + len(motion)]
    return Retargeted(solution, work.effectors, work.pairs, off, stances, work.transfer.alignment.axes)


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
        reference = find_reference(motion, source, target, settings.reference)
        alignment = align(motion, reference, target, pairs)
        self.skeleton, self.limits, self.pairs = skeleton, limits, tuple(pairs)
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
        self.hands = [(end, limb, ArmReach(skeleton, end, limits, free)) for end, limb in self.limbs if end.is_hand]
        self.feet = [(end, limb) for end, limb in self.limbs if not end.is_hand]
        self.legs = LegReach(skeleton, self.transfer.hips, [end for end, _ in self.feet], limits, free)
        self.bones = [skeleton.index(pair.bone) for pair in pairs]
        self.rolled = {bone for end in ends for bone in end.limb[:2]}
        self.turned_off = np.empty((len(motion), len(pairs)))
        bones = [skeleton.names[self.transfer.hips], *(end.name for end in ends)]
        self.effectors = tuple(Effector(bone, _HEAD) for bone in bones)

    def solve(self, frames: slice, solution: Solution) -> None:
        """Write the poses of some frames: legs and hips first, arms from where these leave the shoulders."""
        local, root = self.transfer.poses(frames)
        local = self._trunk_legal(local)
        matrices = forward_kinematics(self.skeleton, local, root)
        root, matrices = self._lowered(frames, root, matrices)
        wanted = {self.effectors[0].bone: matrices[:, self.transfer.hips, :3, 3]}
        goals = []
        for end, limb in self.feet:
            place, rotation = self.goals.place(end, frames, matrices), self.goals.rotation(end, frames, matrices)
            if limb is not None:
                limb.solve(frames, local, matrices, place, rotation)
            goals.append((place, rotation, self.goals.standing(end, frames, len(local))))
            wanted[end.name] = place
        self.legs.solve(local, root, matrices, goals)
        wanted |= self._arms(frames, local, forward_kinematics(self.skeleton, local, root))
        self._lift_toes(local, root)
        legal = self.legal(local)
        for name, limit in self.limits.items():
            bone = self.skeleton.index(name)
            solution.binding[:, bone] = _at_limit(limit, legal[:, bone])
        solution.rotations[:], solution.root_location[:] = legal, root
        self._measure(frames, solution, np.stack([wanted[effector.bone] for effector in self.effectors], axis=1))

    def _arms(self, frames: slice, local: FloatArray, matrices: FloatArray) -> dict[str, FloatArray]:
        """Bring hands to their goals; (F, 3) these by the hands' names."""
        ends = [end for end, *_ in self.hands]
        places = [self.goals.place(end, frames, matrices) for end in ends]
        if self.touches is not None:
            places = self.touches.brought(frames, ends, places, matrices)
        for (end, limb, reach), place in zip(self.hands, places, strict=True):
            if limb is not None:
                limb.solve(frames, local, matrices, place, self.goals.rotation(end, frames, matrices))
            reach.solve(local, matrices, place)
        return {end.name: place for end, place in zip(ends, places, strict=True)}

    def _trunk_legal(self, local: FloatArray) -> FloatArray:
        """The rotations inside the limits but for those of the limbs that are still to be solved."""
        legal = np.array(self.legal(local))
        limbs = [bone for end, limb in self.limbs if limb is not None for bone in end.limb]
        legal[:, limbs] = local[:, limbs]
        return legal

    def _lowered(self, frames: slice, root: FloatArray, matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The hips as far down as legs need to reach their feet."""
        if not self.feet:
            return root, matrices
        up = self.goals.floor.axes.up
        downs = [
            lowered(matrices[:, end.limb[0], :3, 3], self.goals.place(end, frames, matrices), end.length, up)
            for end, _ in self.feet
        ]
        shift = -np.max(downs, axis=0)[:, None] * up
        moved = matrices.copy()
        moved[..., :3, 3] += shift[:, None]
        return root + shift, moved

    def _lift_toes(self, local: FloatArray, root: FloatArray) -> None:
        """Turn toes up, in place, where they would go through the ground."""
        soles = [end.sole for end, _ in self.limbs if end.sole is not None and end.sole.toe]
        if not soles or not self.goals.stances:
            return
        matrices = forward_kinematics(self.skeleton, self.legal(local), root)
        for sole in soles:
            toe = self.skeleton.index(sole.toe)
            frame = matrices[:, toe]
            turn = toe_turns(frame[:, :3, :3], frame[:, :3, 3], sole.tip, self.goals.floor)
            # The same turn as seen from the toe's own frame.
            own = quaternion_from_matrix(frame[:, :3, :3])
            local[:, toe] = product(local[:, toe], product(conjugate(own), product(turn, own)))

    def _measure(self, frames: slice, solution: Solution, wanted: FloatArray) -> None:
        """Write how far hips, hands and feet are from where they are to be, and bones from the source's rotations."""
        matrices = forward_kinematics(self.skeleton, solution.rotations, solution.root_location)
        bones = [self.skeleton.index(effector.bone) for effector in self.effectors]
        solution.errors[:] = lengths(matrices[..., :3, 3][:, bones] - wanted)
        for place, bone in enumerate(self.bones):
            turned = quaternion_from_matrix(matrices[:, bone, :3, :3])
            asked = self.transfer.turned(bone, frames)
            off = _leaned_off if bone in self.rolled else angle_between
            self.turned_off[frames, place] = off(turned, asked)
        met = (solution.errors <= _MET * self.skeleton.size).all(axis=1)
        solution.status[:] = np.where(met, Status.SOLVED, Status.LIMITED)


def _at_limit(limit: Limit, rotations: FloatArray) -> BoolArray:
    """(F,) whether local rotations (F, 4) inside a limit touch one of its sides; a fixed joint always does."""
    touching = np.full(len(rotations), limit.freedom == 0)
    for constraint in limit.constraints(array, array.quaternion(rotations), _BINDS):
        touching |= constraint.gap <= _BINDS
    return touching


def _leaned_off(quaternions: FloatArray, others: FloatArray) -> FloatArray:
    """(F,) radians between the ways that rotations (F, 4) point Y, whatever the twist about it."""
    w, x, y, z = product(conjugate(quaternions), others).T
    return np.asarray(2.0 * np.arctan2(np.hypot(x, z), np.hypot(w, y)))


def _stances(planned: Iterable[Stance], solution: Solution, before: int) -> Iterator[Stance]:
    """What of planned stances is in the frames of a solution, `before` of which it leaves out, and how they drift."""
    for stance in planned:
        first, last = max(stance.first - before, 0), min(stance.last - before, len(solution.rotations) - 1)
        if first <= last:
            bone, offset = solution.skeleton.index(stance.point.bone), np.array(stance.point.offset)
            places = points_on(solution.matrices[first : last + 1], [bone], offset[None])
            yield replace(stance, first=first, last=last, drift_after=drift(places[:, 0]))


def _limb_solver(transfer: Transfer, end: End, limits: Mapping[str, Limit]) -> LimbSolver | None:
    """What brings a limb to its goals in closed form; None where its bones do not hang on one another."""
    limb = Limb.of(transfer.skeleton, end.limb, limits)
    if limb is None:
        return None
    rotations = (transfer.turned(end.limb[0], slice(None)), transfer.turned(end.limb[1], slice(None)))
    return LimbSolver(transfer.skeleton, limb, rotations, transfer.motion.rate)
