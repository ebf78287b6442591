"""Retargets a motion: transfers rotations, then brings hands and feet to their targets.

Warnings, one sentence each, name reasons why the motion may not match its source.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..core import Effector, Skeleton, Solution, Solver, Status, forward_kinematics
from ..core.arrays import CLOSE, ROUNDING, TINY, FloatArray, evenly_spread, lengths
from ..core.limits import Limit, legal_rotations
from ..core.rotations import IDENTITY, angle_between, conjugate, product, quaternion_from_matrix
from ..human.naming_schemes import MIDDLE, match
from ..human.preset import bend_axes
from ..human.rest_body import RestBody, degrees_between
from ..markers.doubts import LOOKED_AT, limbs_without_markers, listed, median_angle, named_figures
from ..markers.feet import Stance, drift, head_positions, point_positions
from ..markers.person import FLOOR_OFF, MOST, cadence_doubts, cut_doubts
from .alignment import (
    MAX_TILT,
    USUAL_LEG,
    Reference,
    Transfer,
    align,
    facing,
    find_reference,
    is_same_body,
    leg_length,
    limb_length,
)
from .goals import HEAD, Fold, LegReach, LimbGoals, LimbSolver, RetargetSettings, ToeLift, arm_reach, find_ends
from .motion import Motion
from .pairs import Pair, check_pairs, find_bodies, find_pairs

# The lines that are compared, each between the heads of two parts: on one side, or across both sides.
_LIMBS: Final = (
    ("the left upper arm", "upper_arm", "forearm", "L"),
    ("the right upper arm", "upper_arm", "forearm", "R"),
    ("the left forearm", "forearm", "hand", "L"),
    ("the right forearm", "forearm", "hand", "R"),
    ("the left thigh", "thigh", "shin", "L"),
    ("the right thigh", "thigh", "shin", "R"),
    ("the left shin", "shin", "foot", "L"),
    ("the right shin", "shin", "foot", "R"),
)
_ACROSS: Final = (("the line across the hips", "thigh"), ("the line across the shoulders", "upper_arm"))
# Median degrees over the frames. In three takes of people on six rigs with limits, this is at most 6.8.
_FAR_TRUNK: Final = 18.0
_FAR_LIMB: Final = 25.0
# RMS of a target's errors, as a fraction of the legs' length. It is at most 3 % in these three takes.
_MISSED: Final = 0.06
# A limit holds a bone if the bone is at it on more than this fraction of the frames.
_MOSTLY: Final = 0.5
# Arms or trunk differ in size if they differ by more than this factor after scaling to equal legs.
_OTHER_SIZE: Final = 2.5
# Degrees: if the axis of a hinge is farther from the axis of the knee or elbow, the bone had another roll. Human limits
# use hinges only up to 20 degrees.
_ROLLED: Final = 30.0
# Feet point backward if the cosine of their angle to the body's back exceeds this.
_BACKWARD: Final = 0.3
# Degrees: if the largest rotation of any joint from rest is in this range, radians (at most 2 pi) may have been read as
# degrees.
_HARDLY: Final = (0.1, 6.3)
# Hips of a person who is lying down travel at most this many leg lengths perpendicular to the trunk.
_WALKS: Final = 2.0
# In leg lengths: hips are at most _HIGH above the origin. The units of the root's positions are too large if hips are
# never below the origin, but less than _LOW above it, with feet that are _BELOW lower than the origin.
_HIGH: Final = 6.0
_LOW, _BELOW = 0.15, 0.5
# In real dances and gestures, the fastest hand, foot or head swings 1 to 2 times per second. In noisy poses from
# video it swings faster, but moves by fewer leg lengths per second.
_OFTEN, _FAST = 6.0, 2.0
# Radians: it shows if a body moves in a direction that is off by more.
_ASIDE: Final = 0.1


def _doubts(work: "_Work", motion: Motion, solution: Solution, turned_off: FloatArray) -> Iterator[str]:
    """Warnings that a rig's poses may not match those of a source; turned_off: (F, pairs) as in `Retargeted`."""
    (source, target), reference, pairs, limits = work.bodies, work.reference, work.pairs, work.problem.limits
    if bare := list(limbs_without_markers({pair.bone for pair in pairs}, {**match(work.rig.names), **target.roles})):
        yield f"No bone of the source is known for {listed(bare)}: map their bones, or they stay at rest"
    if _points_backward(reference.body, reference.axes.up):
        yield (
            "The source's feet or shoulders point backward: check that left and right are not swapped in bone names or "
            "in the map"
        )
        return
    if target.axes is not None and _points_backward(target, target.axes.up):
        yield "The rig's feet or shoulders point backward: check that left and right are not swapped in its bone names"
        return
    folds = {name: (axis, Fold.of(limits.get(name))) for name, axis in bend_axes(target).items()}
    rolled = {name: float(degrees_between(fold.axis, axis)) for name, (axis, fold) in folds.items() if fold is not None}
    if hinges := named_figures({name: min(off, 180.0 - off) for name, off in rolled.items()}, _ROLLED, "°"):
        yield f"Hinge axes differ from those of the joints: {hinges}; apply Human Limits again if bone rolls changed"
    if reference.trunk_tilt > MAX_TILT:
        yield (
            f"The source leans by {reference.trunk_tilt:.0f}° in the pose that is compared with the rig's rest pose: "
            "set Rest Frame to a frame on which it is upright"
        )
    is_ahead = -reference.axes.forward[1] > np.cos(_ASIDE)
    if reference.frame is None and abs(motion.heading) > _ASIDE and not is_ahead:
        yield (
            f"The source's object is rotated by {np.degrees(motion.heading):.0f}° about Z, which was ignored: rotate "
            "the rig's object as well if it should move in the same direction"
        )
    if reference.frame is not None and reference.axes.up[2] < ROUNDING and not _walks(motion, source, reference):
        yield (
            "On most frames the source points sideways or down, but was assumed to be upright: if it is lying down, "
            "export it with a T pose as its rest pose"
        )
    if len(motion) > 1 and _HARDLY[0] < (turned := np.degrees(_most_turned(motion))) < _HARDLY[1]:
        yield (
            f"The source's joints rotate by at most {turned:.1f}° from its rest pose: if it moves farther, export its "
            "rotations in degrees, not radians"
        )
    yield from _size_doubts(source, target)
    yield from _root_doubts(motion, source, reference)
    names = list(motion.names)
    left, right, hips = (
        [motion.heads[:, names.index(name)] for part in parts for name in source.named(part, side)]
        for side, parts in (("L", ("foot", "toe")), ("R", ("foot", "toe")), (None, ("thigh",)))
    )
    # Assume the leg length of an adult, since the units of motion files are often unknown.
    quick = [*cadence_doubts(motion.name, left, right, hips, reference.axes.up, motion.rate, USUAL_LEG)]
    quick = quick or [*_swing_doubts(motion, source)]
    trunk = np.isin(motion.names, [name for part in MIDDLE for name in source.named(part)])
    meters = motion.heads[:, trunk] * (USUAL_LEG / leg_length(source))
    yield from quick or cut_doubts(motion.name, meters, motion.rate)
    far = np.degrees(np.median(turned_off, axis=0)) > _FAR_TRUNK
    held = [
        pair.bone
        for pair, is_far in zip(pairs, far, strict=True)
        if is_far and solution.binding[:, work.rig.index(pair.bone)].mean() > _MOSTLY
    ]
    yield from _direction_doubts(work, motion, solution, held)
    missed = np.sqrt((solution.errors**2).mean(axis=0)) / leg_length(target)
    if (missed > _MISSED).any():
        worst = np.argsort(-missed)[: int((missed > _MISSED).sum())]
        names = [f"{work.effectors[place].bone} ({100.0 * missed[place]:.0f} % of the legs' length)" for place in worst]
        yield f"Far from their positions in the source: {listed(names)}; check whether limits or locks restrict the rig"


def _root_doubts(motion: Motion, source: RestBody, reference: Reference) -> Iterator[str]:
    """A warning if the root's locations seem to have other units than the bones, or another up axis."""
    places = motion.heads[:, np.isin(motion.names, source.named("hips"))].mean(axis=1) / leg_length(source)
    heights = motion.heads @ (reference.axes.up / leg_length(source))
    hips, lowest = places @ reference.axes.up, heights.min(axis=1)
    height, below = float(np.median(hips)), float(np.median(lowest))
    is_low = np.ptp(hips) > 0.0 and hips.min() > 0.0 and height < _LOW and below < -_BELOW
    # If the feet are on a floor at height 0 only along another axis, that axis is up.
    floors = np.abs(np.column_stack([lowest, np.abs(places) - (hips - lowest)[:, None]])) < FLOOR_OFF
    if floors[:, 0].mean() < 1.0 - MOST and floors.mean(axis=0).max() >= MOST:
        yield "The root's locations and the rotations have different up axes: export both with the same axes"
    elif is_low or height > _HIGH:
        yield (
            f"The hips are {height:.3g} times the legs' length above the origin: if locations and bone lengths have "
            "different units, export both in the same units"
        )


def _swing_doubts(motion: Motion, source: RestBody) -> Iterator[str]:
    """A warning if hands, feet and head swing to and fro more often per second than those of people."""
    ends, hips = (
        motion.heads[:, np.isin(motion.names, [name for part in parts for name in source.named(part)])]
        for parts in (("hand", "foot", "head"), ("hips",))
    )
    if len(motion) < 3 or not ends.size:
        return
    steps = np.diff(ends - hips.mean(axis=1, keepdims=True), axis=0)
    # The medians of how far the fastest one moves in a frame, and of the change of this movement.
    moved, changed = (float(np.median(lengths(each).max(axis=1))) for each in (steps, np.diff(steps, axis=0)))
    often = changed / max(moved, TINY) * motion.rate / (2.0 * np.pi)
    if often > _OFTEN and moved * motion.rate > _FAST * leg_length(source):
        yield (
            f"Hands, feet and head swing {often:.0f} times per second, faster than those of people: choose another "
            "frame rate if that is wrong"
        )


def _walks(motion: Motion, source: RestBody, reference: Reference) -> bool:
    """Whether the hips travel farther, perpendicular to up, than the hips of a person who is lying down."""
    hips, up = motion.heads[:, np.isin(motion.names, source.named("hips"))].mean(axis=1), reference.axes.up
    travelled = np.linalg.norm(np.ptp(hips - (hips @ up)[:, None] * up, axis=0))
    return bool(travelled > _WALKS * leg_length(reference.body))


def _direction_doubts(work: "_Work", motion: Motion, solution: Solution, held: Sequence[str]) -> Iterator[str]:
    """Warnings if trunk, hips, shoulders or limbs point in directions other than the source's.

    held: bones whose limits keep them far from the source's rotation on most frames.
    """
    bodies, places = work.bodies, evenly_spread(len(motion), LOOKED_AT)
    heads = motion.heads[places] @ work.transfer.alignment.axes.T
    of_bone = [{name: heads[:, place] for place, name in enumerate(motion.names)}]
    of_bone.append(head_positions(solution.part(places), bodies[1].roles))

    def off(one: tuple[str, str], other: tuple[str, str]) -> float:
        """The median angle in degrees between a line in the rig and in the source; 0 if a body lacks an end of it."""
        lines = []
        for body, place in zip(bodies, of_bone, strict=True):
            ends = [body.named(part, side or None) for part, side in (one, other)]
            if not all(ends):
                return 0.0
            lines.append(np.subtract(*(np.mean([place[name] for name in names], axis=0) for names in ends[::-1])))
        return median_angle(*lines)

    top = "neck" if all(body.named("neck") for body in bodies) else "head"
    trunk = {"the trunk": off(("thigh", ""), (top, ""))}
    trunk |= {words: off((part, "R"), (part, "L")) for words, part in _ACROSS}
    limbs = {words: off((upper, side), (lower, side)) for words, upper, lower, side in _LIMBS}
    far = {name: angle for name, angle in trunk.items() if angle > _FAR_TRUNK}
    far |= {name: angle for name, angle in limbs.items() if angle > _FAR_LIMB}
    if far and held:
        yield (
            f"Far from the source's directions: {named_figures(far, 0.0, '°')}; check that the limits of "
            f"{listed(held)} allow these rotations"
        )
    elif far:
        yield (
            f"Far from the source's directions: {named_figures(far, 0.0, '°')}; check the bone mapping, "
            "or set Rest Frame to a frame on which the source's pose is like the rig's rest pose"
        )


def _size_doubts(source: RestBody, target: RestBody) -> Iterator[str]:
    """A warning if arms or trunk of rig and source differ in size, relative to the legs."""
    legs, other = leg_length(target) / leg_length(source), []
    for words, side, parts in (
        ("the arms", "L", ("upper_arm", "forearm", "hand")),
        ("the trunk", None, ("thigh", "upper_arm")),
    ):
        sizes = [limb_length(body, parts, side) for body in (source, target)]
        if min(sizes) > 0.0 and not 1.0 / _OTHER_SIZE < (ratio := sizes[1] / sizes[0] / legs) < _OTHER_SIZE:
            other.append(f"{words} ({ratio:.1f} times the source's)")
    if other:
        yield (
            f"Compared with the legs, the rig's sizes differ from the source's: {listed(other)}; check that hips, "
            "knees and feet are mapped to the right bones"
        )


def _most_turned(motion: Motion) -> float:
    """The largest rotation of a joint from rest, relative to its parent, in radians."""
    rotations = motion.rotations[evenly_spread(len(motion), LOOKED_AT)]
    world = product(rotations, conjugate(quaternion_from_matrix(motion.rest[:, :3, :3])))
    at_rest = np.tile(IDENTITY, (len(world), 1, 1))
    return float(angle_between(world, np.append(world, at_rest, axis=1)[:, motion.parents]).max())


def _points_backward(body: RestBody, up: FloatArray) -> bool:
    """Whether the feet or shoulders face in the opposite direction from the hips."""
    ahead, left, _ = facing(body, up).T
    feet = [body.direction(name) @ ahead for name in body.named("foot")]
    return bool(body.across("upper_arm") @ left < 0.0 or (feet and np.mean(feet) < -_BACKWARD))


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
    work = _Work(motion, wide, skeleton, settings, limits or {}, pairs)
    solution = Solution.empty(work.skeleton, len(wide), len(work.effectors))
    chunks = [slice(first, min(first + _CHUNK, len(wide))) for first in range(0, len(wide), _CHUNK)]
    for frames in chunks:
        work.solve(frames, solution.part(frames))
        yield frames.stop / len(wide)
    for frames in chunks:
        work.finish(frames, solution.part(frames))
    solution = work.whole(solution.part(slice(beside, beside + len(motion))))
    stances, points = [], list({stance.point: None for stance in work.goals.stances})
    places = point_positions(solution, points) if points else np.empty((0, 0, 3))
    for stance in work.goals.stances:
        first, last = max(stance.first - beside, 0), min(stance.last - beside, len(motion) - 1)
        if first <= last:
            planted = drift(places[first : last + 1, points.index(stance.point)])
            stances.append(replace(stance, first=first, last=last, drift_after=planted))
    off, axes = work.turned_off[beside : beside + len(motion)], work.transfer.alignment.axes
    doubts = tuple(_doubts(work, motion, solution, off))
    return Retargeted(solution, work.effectors, work.pairs, off, tuple(stances), axes, work.reference, doubts)


class _Work:
    """Everything that is prepared once for a motion and a rig.

    skeleton: of the bones that follow the source and those above them.
    """

    def __init__(
        self,
        once: Motion,
        motion: Motion,
        skeleton: Skeleton,
        settings: RetargetSettings,
        limits: Mapping[str, Limit],
        pairs: Sequence[Pair],
    ) -> None:
        """once: the motion itself. motion: the same; a loop also has frames before and after it."""
        self.bodies = source, target = find_bodies(motion, skeleton, pairs)
        self.pairs = tuple(pair for pair in pairs if pair.bone in target.roles)
        check_pairs(motion, target, self.pairs)
        followed = [skeleton.index(name) for name in target.roles.keys() | {pair.bone for pair in self.pairs}]
        self.among = sorted({above for bone in followed for above in skeleton.path(bone)})
        self.rig = skeleton
        self.skeleton = skeleton = skeleton.part(self.among)
        limits = {name: limits[name] for name in skeleton.names if name in limits}
        self.reference = reference = find_reference(once, source, target, settings.reference)
        alignment = align(motion, reference, target, self.pairs)
        self.transfer = Transfer(motion, reference.body, skeleton, target, self.pairs, alignment)
        ends = find_ends(motion, reference.body, skeleton, target)
        if is_same_body(reference.body, target, self.pairs, alignment):
            # The contacts of the source already fit the rig.
            settings = replace(settings, plant_feet=False)
        hips = skeleton.names[self.transfer.hips]
        self.problem = Solver(skeleton, [Effector(hips)], limits=limits).problem
        self.goals = LimbGoals(self.transfer, reference.body, target, ends, settings)
        free = frozenset(pair.bone for pair in self.pairs)
        limbs = [(end, LimbSolver.of(self.transfer, end, limits)) for end in ends]
        self.hands = [(end, limb, arm_reach(skeleton, end, limits, free)) for end, limb in limbs if end.is_hand]
        self.feet = [(end, limb) for end, limb in limbs if not end.is_hand]
        self.legs = LegReach(skeleton, self.transfer.hips, [end for end, _ in self.feet], limits, free)
        self.in_limbs = [bone for end, limb in limbs if limb is not None for bone in end.limb]
        self.outside_trunk = {*self.in_limbs, *(above for end, _ in self.feet for above in skeleton.path(end.limb[-1]))}
        self.twisted = {bone for end in ends for bone in end.limb[:2]}
        self.turned_off = np.empty((len(motion), len(self.pairs)))
        toed = [end.sole for end, _ in self.feet if end.sole is not None and end.sole.toe and self.goals.plans]
        self.lifts = [ToeLift(skeleton, sole, self.goals.floor, len(motion), motion.rate) for sole in toed]
        self.effectors = tuple(Effector(bone, HEAD) for bone in (hips, *(end.name for end in ends)))
        # Only these bones need matrices: fingers, for example, do not.
        ends_on = [skeleton.index(sole.toe) for sole in toed] + [end.limb[-1] for end in ends]
        self.posed = sorted({above for bone in (self.transfer.hips, *ends_on) for above in skeleton.path(bone)})
        self.part = skeleton.part(self.posed)

    def solve(self, frames: slice, solution: Solution) -> None:
        """Write the poses of some frames, and the errors of hips, hands and feet.

        Legs and hips come first, then arms from the resulting shoulders.
        """
        local, root = self.transfer.poses(frames)
        carried, local = local, np.array(self.problem.legal(local))
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
        hips = local[:, self.transfer.hips].copy()
        root = root + self.legs.solve(local, matrices, goals)
        self._keep_trunk(local, hips)
        matrices = self._posed(local, root)
        positions = self.goals.hands([end for end, *_ in self.hands], frames, matrices)
        for (end, limb, arm), position in zip(self.hands, positions, strict=True):
            if limb is not None:
                limb.solve(frames, local, matrices, position, self.goals.rotation(end, frames, matrices))
            arm.solve(local, matrices, position[:, None])
            wanted[end.name] = position
        solution.rotations[:], solution.root_location[:] = self.problem.legal(local), root
        matrices = self._posed(solution.rotations, root)
        bones = [effector.bone for effector in self.effectors]
        found = matrices[:, [self.skeleton.index(bone) for bone in bones]][..., :3, 3]
        solution.errors[:] = lengths(found - np.stack([wanted[bone] for bone in bones], axis=1))
        for lift in self.lifts:
            lift.look(frames, matrices)

    def _keep_trunk(self, local: FloatArray, hips: FloatArray) -> None:
        """Restore the trunk's rotations in armature space, within limits, after the legs rotated the hips.

        local: (F, J, 4) local rotations, changed in place. hips: (F, 4) the hips' local rotations before.
        """
        skeleton = self.skeleton
        # By bone, the rotations that it lacks, in its own frame. A bone at its limit leaves them to its children.
        lacking = {self.transfer.hips: product(conjugate(local[:, self.transfer.hips]), hips)}
        for bone, parent in enumerate(skeleton.parents):
            if parent not in lacking or bone in self.outside_trunk or not skeleton.inherits_rotation[bone]:
                continue
            rest = quaternion_from_matrix(skeleton.rest_turns[bone])
            asked = product(product(product(conjugate(rest), lacking[parent]), rest), local[:, bone])
            limit = self.problem.limits.get(skeleton.names[bone])
            local[:, bone] = asked if limit is None else legal_rotations(limit, asked)
            if limit is not None:
                lacking[bone] = product(conjugate(local[:, bone]), asked)

    def finish(self, frames: slice, solution: Solution) -> None:
        """Bend the toes up on some frames, after all frames are solved, and measure the poses.

        Measures the angles between the bones and the source's rotations, and which joints are at their limits.
        """
        for lift in self.lifts:
            lift.apply(frames, solution.rotations)
        if self.lifts:
            solution.rotations[:] = self.problem.legal(solution.rotations)
        met = (solution.errors <= _MET * self.skeleton.size).all(axis=1)
        solution.status[:] = np.where(met, Status.SOLVED, Status.LIMITED)
        turned = self.transfer.carried(solution.rotations)
        for index, pair in enumerate(self.pairs):
            bone = self.skeleton.index(pair.bone)
            own, asked = turned[bone], self.transfer.turned(bone, frames)
            if bone in self.twisted:
                # The angle between the directions of Y, ignoring twist.
                w, x, y, z = product(conjugate(own), asked).T
                self.turned_off[frames, index] = 2.0 * np.arctan2(np.hypot(x, z), np.hypot(w, y))
            else:
                self.turned_off[frames, index] = angle_between(own, asked)
        solution.binding[:] = self.problem.at_limits(solution.rotations, CLOSE)

    def _posed(self, local: FloatArray, root: FloatArray) -> FloatArray:
        """(F, J, 4, 4) matrices of the bones in `self.posed`; zero for others."""
        matrices = np.zeros((*local.shape[:2], 4, 4))
        matrices[:, self.posed] = forward_kinematics(self.part, local[:, self.posed], root)
        return matrices

    def whole(self, solution: Solution) -> Solution:
        """The solution for all bones of the rig; bones that do not follow the source keep their rest pose."""
        count, rig = len(solution.status), self.rig
        rotations = np.tile(IDENTITY, (count, len(rig), 1))
        binding = np.zeros((count, len(rig)), dtype=bool)
        rotations[:, self.among], binding[:, self.among] = solution.rotations, solution.binding
        lengths = np.broadcast_to(rig.lengths, (count, len(rig)))
        return replace(solution, skeleton=rig, rotations=rotations, binding=binding, lengths=lengths)


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
