"""Retargets a motion: transfers rotations, then brings hands and feet to their targets."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core import Effector, Skeleton, Solution, Solver, Status, forward_kinematics
from ..core.arrays import CLOSE, ROUNDING, FloatArray, lengths
from ..core.kernel.joint_limits import at_limit
from ..core.limits import Limit
from ..core.rotations import angle_between, conjugate, product, quaternion_from_matrix
from ..markers.feet import Stance, drift, point_positions
from ..markers.steps import at_once
from .alignment import Reference, Transfer, align, find_reference, is_same_body
from .doubts import retarget_doubts
from .goals import HEAD, LegReach, LimbGoals, LimbSolver, RetargetSettings, ToeLift, arm_reach, find_ends
from .motion import Motion
from .pairs import Pair, check_pairs, find_bodies, find_pairs

# Number of frames solved together, so that memory does not grow with the take.
_CHUNK = 2000
# Seconds before and after a loop that are solved too, so that both ends are equal.
_LOOPED = 1.0
# A target counts as reached if its error is at most this fraction of the rig's size.
_MET = 1e-3


@dataclass(frozen=True, eq=False)
class Retargeted:
    """F poses of a rig, their targets, the N bone pairs, and the contacts of feet.

    turned_off: (F, N) radians between the rotations of a bone and its source. For limb bones whose twist follows from
    the hinge below, twist does not count. axes: (3, 3) from the source's world to the rig's armature space. reference:
    the pose of the source that corresponds to the rig at rest, and its frame. doubts: warnings that the motion may not
    match the source's, one sentence each.
    """

    solution: Solution
    effectors: tuple[Effector, ...]
    pairs: tuple[Pair, ...]
    turned_off: FloatArray
    stances: tuple[Stance, ...]
    axes: FloatArray
    reference: Reference
    doubts: tuple[str, ...]


def retarget_steps(
    motion: Motion,
    skeleton: Skeleton,
    settings: RetargetSettings,
    *,
    limits: Mapping[str, Limit] | None = None,
    pairs: Sequence[Pair] | None = None,
) -> Generator[float, None, Retargeted]:
    """Find the rig's poses, in small steps; yields progress, 0 to 1. May be closed at any time.

    Raises RetargetError if the bodies have too little in common.
    """
    pairs = find_pairs(motion, skeleton) if pairs is None else tuple(pairs)
    beside = round(_LOOPED * motion.rate) if motion.is_loop else 0
    wide = motion.repeated(beside) if beside else motion
    work = _Work(wide, skeleton, settings, limits or {}, pairs)
    solution = Solution.empty(skeleton, len(wide), len(work.effectors))
    chunks = [slice(first, min(first + _CHUNK, len(wide))) for first in range(0, len(wide), _CHUNK)]
    for frames in chunks:
        work.solve(frames, solution.part(frames))
        yield frames.stop / len(wide)
    for frames in chunks:
        work.finish(frames, solution.part(frames))
    solution = solution.part(slice(beside, beside + len(motion)))
    stances = []
    for stance in work.goals.stances:
        first, last = max(stance.first - beside, 0), min(stance.last - beside, len(motion) - 1)
        if first <= last:
            planted = point_positions(solution.part(slice(first, last + 1)), [stance.point])[:, 0]
            stances.append(replace(stance, first=first, last=last, drift_after=drift(planted)))
    off = work.turned_off[beside : beside + len(motion)]
    axes, reference = work.transfer.alignment.axes, work.reference
    bodies, ends = work.bodies, work.effectors
    doubts = retarget_doubts(motion, bodies, reference, skeleton, solution, ends, work.pairs, off, axes, work.limits)
    return Retargeted(solution, work.effectors, work.pairs, off, tuple(stances), axes, reference, tuple(doubts))


retarget = at_once(retarget_steps)


class _Work:
    """Everything that is prepared once for a motion and a rig."""

    def __init__(
        self,
        motion: Motion,
        skeleton: Skeleton,
        settings: RetargetSettings,
        limits: Mapping[str, Limit],
        pairs: Sequence[Pair],
    ) -> None:
        self.bodies = source, target = find_bodies(motion, skeleton, pairs)
        self.skeleton, self.limits = skeleton, limits
        self.pairs = tuple(pair for pair in pairs if pair.bone in target.roles)
        check_pairs(motion, target, self.pairs)
        self.reference = reference = find_reference(motion, source, target, settings.reference)
        alignment = align(motion, reference, target, self.pairs)
        self.transfer = Transfer(motion, reference.body, skeleton, target, self.pairs, alignment)
        ends = find_ends(motion, reference.body, skeleton, target)
        if is_same_body(reference.body, target, self.pairs, alignment):
            # The contacts of the source already fit the rig.
            settings = replace(settings, plant_feet=False)
        hips = skeleton.names[self.transfer.hips]
        self.legal = Solver(skeleton, [Effector(hips)], limits=limits).problem.legal
        self.goals = LimbGoals(self.transfer, reference.body, target, ends, settings)
        free = frozenset(pair.bone for pair in self.pairs)
        limbs = [(end, LimbSolver.of(self.transfer, end, limits)) for end in ends]
        self.hands = [(end, limb, arm_reach(skeleton, end, limits, free)) for end, limb in limbs if end.is_hand]
        self.feet = [(end, limb) for end, limb in limbs if not end.is_hand]
        self.legs = LegReach(skeleton, self.transfer.hips, [end for end, _ in self.feet], limits, free)
        self.in_limbs = [bone for end, limb in limbs if limb is not None for bone in end.limb]
        self.twisted = {bone for end in ends for bone in end.limb[:2]}
        self.turned_off = np.empty((len(motion), len(self.pairs)))
        toed = [end.sole for end, _ in self.feet if end.sole is not None and end.sole.toe and self.goals.keeps_floor]
        self.lifts = [ToeLift(skeleton, sole, self.goals.floor, len(motion), motion.rate) for sole in toed]
        self.effectors = tuple(Effector(bone, HEAD) for bone in (hips, *(end.name for end in ends)))
        self.wanted = np.empty((len(motion), len(self.effectors), 3))
        # All matrices that are used: those of bones with roles or pairs, and of the bones above.
        looked_at = {*target.roles, *(pair.bone for pair in self.pairs)}
        self.moving = sorted({bone for name in looked_at for bone in skeleton.path(skeleton.index(name))})
        self.part = skeleton.part(self.moving)

    def solve(self, frames: slice, solution: Solution) -> None:
        """Write the poses of some frames: legs and hips first, then arms from the resulting shoulders."""
        local, root = self.transfer.poses(frames)
        carried, local = local, np.array(self.legal(local))
        local[:, self.in_limbs] = carried[:, self.in_limbs]
        matrices = self._posed(local, root)
        if self.feet:
            # Lower the hips until the legs reach their feet's targets.
            up, downs = self.goals.floor.axes.up, []
            for end, _ in self.feet:
                hip, foot = matrices[:, end.limb[0], :3, 3], matrices[:, end.limb[-1], :3, 3]
                reach = self.goals.position(end, frames, matrices) - hip
                downs.append(_down(reach, lengths(foot - hip), end.length, up))
            shift = -np.max(downs, axis=0)[:, None] * up
            root = root + shift
            matrices[..., :3, 3] += shift[:, None]
        wanted = {self.effectors[0].bone: matrices[:, self.transfer.hips, :3, 3]}
        goals = []
        for end, limb in self.feet:
            position, rotation = self.goals.position(end, frames, matrices), self.goals.rotation(end, frames, matrices)
            if limb is not None:
                limb.solve(frames, local, matrices, position, rotation)
            goals.append((position, rotation, self.goals.standing(end, frames, len(local))))
            wanted[end.name] = position
        root = root + self.legs.solve(local, matrices, goals)
        matrices = self._posed(local, root)
        positions = self.goals.hands([end for end, *_ in self.hands], frames, matrices)
        for (end, limb, arm), position in zip(self.hands, positions, strict=True):
            if limb is not None:
                limb.solve(frames, local, matrices, position, self.goals.rotation(end, frames, matrices))
            arm.solve(local, matrices, position[:, None])
            wanted[end.name] = position
        solution.rotations[:], solution.root_location[:] = self.legal(local), root
        self.wanted[frames] = np.stack([wanted[effector.bone] for effector in self.effectors], axis=1)
        if self.lifts:
            matrices = self._posed(solution.rotations, root)
            for lift in self.lifts:
                lift.look(frames, matrices)

    def finish(self, frames: slice, solution: Solution) -> None:
        """Bend the toes up on some frames, after all frames are solved, and measure the poses.

        Measures the errors of hips, hands and feet, the angles between the bones and the source's rotations, and which
        joints are at their limits.
        """
        for lift in self.lifts:
            lift.apply(frames, solution.rotations)
        if self.lifts:
            solution.rotations[:] = self.legal(solution.rotations)
        matrices = self._posed(solution.rotations, solution.root_location)
        bones = [self.skeleton.index(effector.bone) for effector in self.effectors]
        solution.errors[:] = lengths(matrices[..., :3, 3][:, bones] - self.wanted[frames])
        met = (solution.errors <= _MET * self.skeleton.size).all(axis=1)
        solution.status[:] = np.where(met, Status.SOLVED, Status.LIMITED)
        for index, pair in enumerate(self.pairs):
            bone = self.skeleton.index(pair.bone)
            own, asked = quaternion_from_matrix(matrices[:, bone, :3, :3]), self.transfer.turned(bone, frames)
            if bone in self.twisted:
                # The angle between the directions of Y, ignoring twist.
                w, x, y, z = product(conjugate(own), asked).T
                self.turned_off[frames, index] = 2.0 * np.arctan2(np.hypot(x, z), np.hypot(w, y))
            else:
                self.turned_off[frames, index] = angle_between(own, asked)
        for name, limit in self.limits.items():
            bone = self.skeleton.index(name)
            solution.binding[:, bone] = at_limit(limit, solution.rotations[:, bone], CLOSE)

    def _posed(self, local: FloatArray, root: FloatArray) -> FloatArray:
        """(F, J, 4, 4) matrices of the bones in `self.moving`; zero for others."""
        matrices = np.zeros((*local.shape[:2], 4, 4))
        matrices[:, self.moving] = forward_kinematics(self.part, local[:, self.moving], root)
        return matrices


def _down(reach: FloatArray, own: FloatArray, length: float, up: FloatArray) -> FloatArray:
    """(F,) distances by which a hip joint must move down so that its leg reaches its foot.

    A leg that has to extend approaches its full length only gradually, since an almost straight knee bends by many
    degrees within millimeters. reach: (F, 3) vectors from the hip to the foot's target. own: (F,) distances from hip to
    foot in the transferred poses. length: of the straight leg. up: (3,).
    """
    wanted, height = lengths(reach), reach @ up
    room = np.maximum(length - own, ROUNDING)
    most = np.minimum(own - room * np.expm1(-np.maximum(wanted - own, 0.0) / room), length)
    left = most**2 - (wanted**2 - height**2)
    down = np.maximum(-height - np.sqrt(np.maximum(left, 0.0)), 0.0)
    return np.where((left > 0.0) & (wanted > own), down, 0.0)
