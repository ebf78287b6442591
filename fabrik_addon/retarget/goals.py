"""The targets of a retarget: positions of hands and feet in the rig's proportions; and the solvers of its limbs.

Arms and legs are solved in closed form: the elbow or knee bends until the length fits, then the limb swings. A hinge
also determines the twist of the bone above it, since the limb folds about the hinge's axis. The fold of a nearly
straight limb does not show this twist, so the take's usual twist is used. Limbs at limits are solved by least squares.

Contacts of feet are kept: feet planted in the source are planted on the rig, and no foot goes below the floor. Heel and
ball of each foot have separate contacts, as with markers. One rotation and one translation of the whole foot bring them
to their planted positions, and are blended in and out. The foot then rotates about its ball until neither side of the
ball is below the floor. Toes that are still below the floor bend up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ..core import Effector, Fixed, Hinge, Options, Polygon, Skeleton, Solver, forward_kinematics
from ..core.arrays import ROUNDING, FloatArray, IntArray, lengths, smoothstep, squares, times, wrapped
from ..core.limits import Limit
from ..core.model.effector import PosePrior
from ..core.rotations import (
    IDENTITY,
    conjugate,
    matrix_from_quaternion,
    product,
    quaternion_from_matrix,
    quaternion_from_rotation_vector,
    rotation_between,
)
from ..human.rest_body import BodyAxes, RestBody, soles_of
from ..markers.calibrate.size import effector_points
from ..markers.feet import Stance, StandingSettings, drift, faded, find_stances
from ..markers.solving.course import interpolate_gaps
from .alignment import USUAL_LEG, Transfer, leg_length, path_length
from .motion import Motion

# A point with a share s has the weight s / (1 - s + this).
_CERTAIN: Final = 1e-3
# Points below this fraction of the contact height count as near the ground.
_NEAR: Final = 0.4
# A planted point is moved onto the floor if it is at most this many times the contact height above it.
_ON_FLOOR: Final = 1.5
# Radians per second at which toes are raised before they would go through the ground, and lowered afterwards. Toes move
# faster when people push off, so this hardly changes a step.
_LIFTED: Final = 2.0


@dataclass(frozen=True, eq=False)
class Sole:
    """Heel and ball of a foot, in the frame of its bone.

    pivot: (3,) the joint above the ball, about which the foot rolls while its toes stay in place; the ball, if there
    are no toes. aside: (3,) from the middle of the ball to its left side. toe: the bone of the toes, "" if there is
    none; tip: their end. All in the same frame.
    """

    heel: FloatArray
    ball: FloatArray
    pivot: FloatArray
    aside: FloatArray
    toe: str
    tip: FloatArray


def find_soles(target: RestBody) -> dict[str, Sole]:
    """The soles of a rig's feet, by the names of their bones."""
    found = {}
    for foot, points in soles_of(target).items():
        heel, left, right, tip = (np.array(point) for _, point in points)
        toe, ball, bone = points[-1][0], 0.5 * (left + right), target.bones[foot]
        pivot = ball if toe == foot else bone.axes.T @ (target.bones[toe].head - bone.head)
        found[foot] = Sole(heel, ball, pivot, 0.5 * (left - right), toe if toe != foot else "", tip)
    return found


class RigFloor(NamedTuple):
    """The floor below a rig at rest: its height along the body's up axis."""

    axes: BodyAxes
    height: float

    @classmethod
    def of(cls, target: RestBody, soles: Mapping[str, Sole]) -> "RigFloor":
        """The floor below a rig with these feet."""
        assert target.axes is not None
        heels = [target.bones[foot].head + target.bones[foot].axes @ sole.heel for foot, sole in soles.items()]
        return cls(target.axes, min((float(heel @ target.axes.up) for heel in heels), default=0.0))

    def above(self, points: FloatArray) -> FloatArray:
        """(...) heights of points (..., 3) above the floor; negative below it."""
        return np.asarray(points @ self.axes.up - self.height)


class FootPlan:
    """The planned motion of one foot over F frames.

    positions: (F, 3) of its bone's head; rotations: (F, 4) of the bone; both in armature space. stances: contacts of
    its points. standing: (F, 2) from 0 to 1, the contact of heel and ball with the ground.
    """

    def __init__(
        self,
        name: str,
        sole: Sole,
        positions: FloatArray,
        rotations: FloatArray,
        floor: RigFloor,
        rate: float,
        standing: StandingSettings,
    ) -> None:
        """positions: (F, 3), rotations: (F, 4), of the source's foot. standing: thresholds for contacts."""
        self.positions, self.rotations = positions, rotations
        ends, grounds = np.array([sole.heel, sole.pivot]), np.array([sole.heel, sole.ball])
        self.stances: list[Stance] = []
        up = floor.axes.up
        axes, raised = floor.axes.columns.T, lengths(ends - grounds)
        # The translations of heel and pivot to their planted positions, and their weights, 0 to 1.
        points = self._points(ends)
        shifts, shares = np.zeros(points.shape), np.zeros(points.shape[:2])
        seen, below = points @ axes.T - raised[:, None] * [0.0, 0.0, 1.0], self._points(grounds) @ axes.T
        for index, offset in enumerate(ends):
            point = Effector(name, (float(offset[0]), float(offset[1]), float(offset[2])))
            for first, end in find_stances(seen[:, index], rate, settings=standing):
                self.stances.append(Stance(point, first, end - 1, drift(seen[first:end, index]), np.nan))
                # Use the ball, since the pivot is not straight above it unless the foot is flat.
                planted = np.median(below[first:end, index], axis=0)
                # Points that are planted much higher stay there: they may be on a step, or the recording may drift.
                if planted[2] - floor.height <= _ON_FLOOR * standing.height:
                    planted[2] = floor.height
                frames, share = faded((first, end), round(rate * standing.blend), len(points))
                nearest = np.clip(frames, first, end - 1)
                more = share > shares[frames, index]
                shifts[frames[more], index] = ((planted - seen[nearest, index]) @ axes)[more]
                shares[frames[more], index] = share[more]
        self._move(ends, shifts, shares)
        # Rotate the foot about its planted point until the other point is above the ground.
        points = self._points(ends)
        heights = floor.above(points) - raised
        low = np.maximum(-heights, 0.0)
        # Hold a point gradually as it approaches the ground. Otherwise the foot would rotate within one frame.
        near = np.clip(1.0 - (heights + low) / (_NEAR * standing.height), 0.0, 1.0)
        self._move(ends, low[..., None] * up, np.maximum(shares, near))
        pivots = self._points(ends)[:, 1]
        # Roll the foot until neither side of the ball is below the ground: about the ball, or about the pivot if the
        # heel is not planted. The point about which it rolls does not move sideways.
        balls = self._points(grounds)[:, 1]
        aside = matrix_from_quaternion(self.rotations) @ sole.aside
        height, most = aside @ up, np.maximum(floor.above(balls), 0.0)
        flat, level = aside - height[:, None] * up, np.clip(height, -most, most)
        across = np.sqrt(np.maximum(squares(aside) - level**2, 0.0)) / np.maximum(lengths(flat), ROUNDING)
        self._turn(balls, rotation_between(aside, across[:, None] * flat + level[:, None] * up))
        slid = pivots - self._points(ends)[:, 1]
        self.positions = self.positions + (1.0 - shares[:, :1]) * (slid - (slid @ up)[:, None] * up)
        heights = floor.above(self._points(grounds))
        lift = np.maximum(-heights.min(axis=1), 0.0)
        self.positions = self.positions + lift[:, None] * up
        above = (heights + lift[:, None]) / (_NEAR * standing.height)
        self.standing = np.maximum(shares, np.clip(1.0 - above, 0.0, 1.0))

    def _points(self, offsets: FloatArray) -> FloatArray:
        """(F, 2, 3) positions of two points (2, 3) in the frame of the bone, in armature space."""
        turned = matrix_from_quaternion(self.rotations)
        return np.stack([self.positions + turned @ offset for offset in offsets], axis=1)

    def _turn(self, about: FloatArray, turn: FloatArray) -> None:
        """Rotate the foot by quaternions (F, 4) about points (F, 3), armature space."""
        self.positions = about + times(matrix_from_quaternion(turn), self.positions - about)
        self.rotations = product(turn, self.rotations)

    def _move(self, ends: FloatArray, shifts: FloatArray, shares: FloatArray) -> None:
        """Rotate and translate the foot so that its ends (2, 3) move by (F, 2, 3), weighted by fractions (F, 2)."""
        points = self._points(ends)
        weights = shares / (1.0 - shares + _CERTAIN)
        both = (shares[:, 0] * shares[:, 1])[:, None]
        span = points[:, 1] - points[:, 0]
        twist = np.cross(span, shifts[:, 1] - shifts[:, 0]) / np.maximum(squares(span), ROUNDING)[:, None]
        self._turn(self.positions, quaternion_from_rotation_vector(both * twist))
        left = shifts + points - self._points(ends)
        self.positions = self.positions + (weights[..., None] * left).sum(axis=1) / (1.0 + weights.sum(axis=1))[:, None]


def leading(needed: FloatArray, step: float) -> FloatArray:
    """(F, ...) the smallest values that are at least `needed` (F, ...) and change by at most `step` between frames."""
    ramp = (step * np.arange(len(needed))).reshape(-1, *[1] * (needed.ndim - 1))
    after = np.maximum.accumulate(needed + ramp, axis=0) - ramp
    before = np.maximum.accumulate((needed - ramp)[::-1], axis=0)[::-1] + ramp
    return np.asarray(np.maximum(after, before))


class ToeLift:
    """Bends the toes of one foot up on frames on which they would go through the ground, with smooth transitions."""

    def __init__(self, skeleton: Skeleton, sole: Sole, floor: RigFloor, frames: int, rate: float) -> None:
        """frames: the number of frames. rate: frames per second."""
        self._bone = skeleton.index(sole.toe)
        self._tip, self._floor, self._step = sole.tip, floor, _LIFTED / rate
        self._angles, self._axes = np.zeros(frames), np.zeros((frames, 3))

    def look(self, frames: slice, matrices: FloatArray) -> None:
        """Measure the angles by which toes must bend up on some frames; matrices: (F, J, 4, 4), armature space."""
        toe, up = matrices[:, self._bone], self._floor.axes.up
        way = toe[:, :3, :3] @ self._tip
        reach, rise = np.maximum(lengths(way), ROUNDING), way @ up
        low = np.maximum(-self._floor.above(toe[:, :3, 3] + way), 0.0)
        before, after = (np.arcsin(np.clip(each / reach, -1.0, 1.0)) for each in (rise, rise + low))
        flat = way - rise[:, None] * up
        ahead = flat / np.maximum(lengths(flat), ROUNDING)[:, None]
        self._angles[frames] = np.where(low > 0.0, after - before, 0.0)
        self._axes[frames] = times(np.swapaxes(toe[:, :3, :3], 1, 2), np.cross(ahead, up))

    def apply(self, frames: slice, local: FloatArray) -> None:
        """Bend the toes in (F, J, 4) local rotations; call `look` for all frames first."""
        angles = leading(self._angles, self._step)[frames, None]
        turn = quaternion_from_rotation_vector(angles * self._axes[frames])
        local[:, self._bone] = product(local[:, self._bone], turn)


_LIMBS: Final = (("hand", ("upper_arm", "forearm", "hand")), ("foot", ("thigh", "shin", "foot")))
# The parts that hands may touch, in addition to each other.
_TOUCHED: Final = ("head", "thigh")
# Distances as fractions of the leg's length: below the first, a hand is in full contact, above the second it is not.
# Wrists are about 10 cm apart in a clap.
_TOUCHING: Final = 0.15
_FAR: Final = 0.22
# Squared sines of half the bend of elbows. Arms that swing past the hips are bent by less than 30 degrees. If a hand
# rests on a hip or a thigh, its elbow is bent by more than 45 degrees.
_HANGING, _BENT = np.sin(np.radians([15.0, 22.5])) ** 2


@dataclass(frozen=True)
class RetargetSettings:
    """How a motion is retargeted to a rig.

    Attributes:
        places: 0 to 1; with 0, rotations are kept; with 1, positions, and therefore contacts.
        hands_in_world: with 0, the distance from shoulder to hand is scaled to the rig's arm; with 1, hands are at the
            positions of the source's hands.
        plant_feet: planted feet of the source stay planted, and no foot goes through the floor.
        reference: the frame, counted from 0, on which the source has the rig's rest pose; None: detected.
    """

    places: float = 1.0
    hands_in_world: float = 0.0
    plant_feet: bool = True
    reference: int | None = None


@dataclass(frozen=True)
class End:
    """A hand or foot that both bodies have.

    name: of the rig's bone. limb: indices of the limb's bones in the skeleton, the end last. source: index of the
    source's bone; source_begin: of the first bone of its limb. length: of the rig's limb; ratio: of this length to the
    source's. sole: of a foot.
    """

    name: str
    limb: tuple[int, int, int]
    source: int
    source_begin: int
    length: float
    ratio: float
    is_hand: bool
    sole: Sole | None = None


def find_ends(motion: Motion, source: RestBody, skeleton: Skeleton, target: RestBody) -> list[End]:
    """The hands and feet that both bodies have."""
    names, soles = list(motion.names), find_soles(target)
    found = []
    for what, limb in _LIMBS:
        for side in ("L", "R"):
            other, own = ([name for part in limb for name in body.named(part, side)[:1]] for body in (source, target))
            if len(other) < len(limb) or len(own) < len(limb):
                continue
            length, theirs = (
                path_length([body.bones[name].head for name in path]) for body, path in ((target, own), (source, other))
            )
            upper, lower, end = (skeleton.index(name) for name in own)
            begin, *_, last = map(names.index, other)
            sole = soles.get(own[-1])
            found.append(End(own[-1], (upper, lower, end), last, begin, length, length / theirs, what == "hand", sole))
    return found


class LimbGoals:
    """The targets of hands and feet, prepared once for all frames.

    stances: when feet are planted. floor: the floor of the rig. plans: of the feet that are kept above the floor.
    touched: bones that hands may touch, in pairs: one of the source, and the rig's bone that corresponds to it.
    """

    def __init__(
        self,
        transfer: Transfer,
        source: RestBody,
        target: RestBody,
        ends: Sequence[End],
        settings: RetargetSettings,
    ) -> None:
        self._motion, self._alignment, self._settings = transfer.motion, transfer.alignment, settings
        self.plans: dict[str, FootPlan] = {}
        self.touched: list[tuple[int, int]] = []
        self._leg = leg_length(target)
        self.floor = RigFloor.of(target, {end.name: end.sole for end in ends if end.sole is not None})
        self.stances: list[Stance] = []
        if not settings.plant_feet or settings.places <= 0.0:
            return
        standing = StandingSettings.at_size(self._leg / USUAL_LEG)
        for end in ends:
            if end.sole is not None:
                positions = self._alignment.to_rig(self._motion.heads[:, end.source])
                rotations = transfer.turned(end.limb[-1], slice(None))
                plan = FootPlan(end.name, end.sole, positions, rotations, self.floor, self._motion.rate, standing)
                self.plans[end.name] = plan
                self.stances += plan.stances
        names = list(self._motion.names)
        for part in _TOUCHED:
            for side in ("L", "R", ""):
                other, own = source.named(part, side)[:1], target.named(part, side)[:1]
                if other and own:
                    self.touched.append((names.index(other[0]), transfer.skeleton.index(own[0])))

    def position(self, end: End, frames: slice, matrices: FloatArray) -> FloatArray:
        """(F, 3) target positions of a limb's end on some frames, armature space.

        matrices: (F, J, 4, 4) the transferred poses, armature space.
        """
        carried, heads = matrices[:, end.limb[-1], :3, 3], self._motion.heads[frames]
        plan = self.plans.get(end.name)
        position = self._alignment.to_rig(heads[:, end.source]) if plan is None else plan.positions[frames]
        if end.is_hand:
            arm = (heads[:, end.source] - heads[:, end.source_begin]) @ self._alignment.axes.T
            own = matrices[:, end.limb[0], :3, 3] + end.ratio * arm
            position = own + self._settings.hands_in_world * (position - own)
        return np.asarray(carried + self._settings.places * (position - carried))

    def hands(self, hands: Sequence[End], frames: slice, matrices: FloatArray) -> list[FloatArray]:
        """(F, 3) target positions of each hand, which keep the source's contacts with the other hand, head and hips.

        matrices: (F, J, 4, 4) the transferred poses, armature space.
        """
        positions = [self.position(hand, frames, matrices) for hand in hands]
        if not self.touched:
            return positions
        heads, result = self._motion.heads[frames], []
        for hand, position in zip(hands, positions, strict=True):
            # Hanging arms pass the hips without touching them. If upper arm and forearm are equally long, 1 - reach² is
            # the squared sine of half the elbow's bend.
            reach = lengths(heads[:, hand.source] - heads[:, hand.source_begin]) * hand.ratio / hand.length
            bent = smoothstep(np.clip((1.0 - reach**2 - _HANGING) / (_BENT - _HANGING), 0.0, 1.0))
            touched = [(heads[:, other], matrices[:, bone, :3, 3], bent) for other, bone in self.touched]
            # Two hands that touch each other both move half of the distance.
            touched += [
                (heads[:, other.source], theirs, np.full(len(heads), 0.5))
                for other, theirs in zip(hands, positions, strict=True)
                if other is not hand
            ]
            shift, total = np.zeros(position.shape), np.zeros(len(position))
            for source, own, part in touched:
                apart = self._alignment.scale * (heads[:, hand.source] - source) @ self._alignment.axes.T
                far = np.clip((lengths(apart) / self._leg - _TOUCHING) / (_FAR - _TOUCHING), 0.0, 1.0)
                share = smoothstep(1.0 - far)
                shift += (part * share)[:, None] * (own + apart - position)
                total += share
            result.append(position + shift / np.maximum(total, 1.0)[:, None])
        return result

    def rotation(self, end: End, frames: slice, matrices: FloatArray) -> FloatArray:
        """(F, 4) target rotations of a limb's end, armature space; matrices: (F, J, 4, 4) of the transferred poses."""
        plan = self.plans.get(end.name)
        return quaternion_from_matrix(matrices[:, end.limb[-1], :3, :3]) if plan is None else plan.rotations[frames]

    def standing(self, end: End, frames: slice, count: int) -> FloatArray:
        """(F, 2) the contact, 0 to 1, of heel and ball of a foot with the ground on some frames."""
        plan = self.plans.get(end.name)
        return np.zeros((count, 2)) if plan is None else plan.standing[frames]


# Arms and legs are solved by least squares on frames on which limits keep hands or feet from their targets.
#
# An arm is solved together with its collar bone. Legs are solved together with the hips, which move so that planted
# feet stay in place.

# Weight of the source's rotations: a radian off counts as much as a target missed by this fraction of the limb's
# length. With 0.03, a leg that kicks beyond its limits jumps between two poses.
_SHARE: Final = 0.15
# A limb is solved again if it misses its target by more than this fraction of its length.
_MISSED: Final = 1e-3
# With 60 steps, a dance takes twice the time, and hips are only 1 mm closer to their target. With 12, feet are up to 1
# cm too deep.
_OPTIONS: Final = Options(max_sweeps=0, restarts=0, tolerance=5e-4, most_steps=20)
# Fraction of the frames that are solved first.
_FIRST_ONE_IN: Final = 4
# Weights of the hips and of a foot in the air, and the factor for a point that is planted or near the ground. With
# heavier hips, soles sink below the floor. Lighter hips jitter, and a leg that kicks beyond its limits moves them too
# far.
_HIPS_WEIGHT: Final = 0.3
_FOOT_WEIGHT: Final = 0.1
_STANDING_WEIGHT: Final = 2500.0
HEAD: Final = (0.0, 0.0, 0.0)


class Reach:
    """Solves some bones of a rig together if limits keep their ends from their targets; prepared once."""

    def __init__(
        self,
        skeleton: Skeleton,
        bones: Sequence[int],
        effectors: Sequence[Effector],
        limits: Mapping[str, Limit],
        free: frozenset[str],
        *,
        length: float,
        root: str,
    ) -> None:
        """bones: their indices, parents first; free: the bones that may rotate, while the others are fixed.

        length: of the limb. root: "FREE" if the first bone may also move, else "FIXED".
        """
        part = skeleton.part(bones)
        own: dict[str, Limit] = {name: Fixed() for name in part.names[1:] if name not in free}
        own |= {name: limits[name] for name in part.names if name in free and name in limits}
        self._solver = Solver(part, effectors, limits=own, root=root, options=_OPTIONS)
        self._limited = any(name in limits for name in part.names)
        self._bones: IntArray = np.array(bones)
        self._carrier = int(skeleton.parents[bones[0]]) if skeleton.inherits_rotation[bones[0]] else -1
        self._rest = skeleton.rest[self._carrier, :3, :3]
        self._weights = np.full(len(part), (_SHARE * length) ** 2)
        self._missed = _MISSED * length

    def solve(
        self, local: FloatArray, matrices: FloatArray, targets: FloatArray, weights: FloatArray | None = None
    ) -> FloatArray:
        """Write the rotations to `local` (F, J, 4); returns the (F, 3) translation of the first bone, armature space.

        matrices: (F, J, 4, 4) of the bones. targets: (F, E, 3), armature space. weights: (F, E) of the targets.
        """
        part, count = self._solver.skeleton, len(local)
        shift = np.zeros((count, 3))
        if not self._limited:
            return shift
        # Solve in the frame of the parent bone, so that the bones are attached to a body at rest.
        turn = np.broadcast_to(np.eye(3), (count, 3, 3))
        if self._carrier >= 0:
            turn = self._rest @ np.swapaxes(matrices[:, self._carrier, :3, :3], 1, 2)
        home, heads = part.rest[0, :3, 3], matrices[:, self._bones[0], :3, 3]
        wanted = home + (targets - heads[:, None]) @ np.swapaxes(turn, 1, 2)
        own = local[:, self._bones]
        legal = self._solver.problem.legal(own)
        reached = effector_points(part, self._solver.effectors, forward_kinematics(part, legal))
        missed = np.flatnonzero((lengths(reached - wanted) > self._missed).any(axis=1))
        local[:, self._bones] = legal
        # Some frames are solved first, so that the others start near their solutions.
        changes, moves = np.tile(IDENTITY, (len(missed), len(part), 1)), np.zeros((len(missed), 1, 3))
        is_first, known = np.arange(len(missed)) % _FIRST_ONE_IN == 0, np.zeros(len(missed), dtype=bool)
        for some in (is_first, ~is_first):
            changes, moves = interpolate_gaps(changes, known, unit=True), interpolate_gaps(moves, known)
            frames, known = missed[some], some
            solved = self._solver.solve(
                wanted[frames],
                start=product(legal[frames], changes[some]),
                start_location=home + moves[some, 0],
                weights=None if weights is None else weights[frames],
                prior=PosePrior(own[frames], self._weights),
            )
            local[frames[:, None], self._bones] = solved.rotations
            shift[frames] = times(np.swapaxes(turn[frames], 1, 2), solved.root_location - home)
            changes[some] = product(conjugate(legal[frames]), solved.rotations)
            moves[some, 0] = solved.root_location - home
        return shift


def arm_reach(skeleton: Skeleton, end: End, limits: Mapping[str, Limit], free: frozenset[str]) -> Reach:
    """The solver of one arm; free: the bones that may rotate. The collar bone is used if it is among them."""
    path = skeleton.path(end.limb[-1])
    first = path.index(end.limb[0])
    if first > 0 and skeleton.names[path[first - 1]] in free & limits.keys():
        first -= 1
    length = path_length(skeleton.rest[path[first:], :3, 3])
    hand = [Effector(end.name, HEAD)]
    return Reach(skeleton, path[first:], hand, limits, free, length=length, root="FIXED")


class LegReach:
    """Solves hips and legs together; prepared once."""

    def __init__(
        self, skeleton: Skeleton, hips: int, ends: Sequence[End], limits: Mapping[str, Limit], free: frozenset[str]
    ) -> None:
        """ends: the feet. free: the bones that may rotate."""
        paths = [skeleton.path(end.limb[-1]) for end in ends]
        legs = sorted({bone for path in paths if hips in path for bone in path[path.index(hips) + 1 :]})
        # The head of each foot, its heel and both sides of its ball, in its frame.
        self._points = []
        effectors = [Effector(skeleton.names[hips], HEAD)]
        for end in ends:
            sole = end.sole
            corners = [] if sole is None else [sole.heel, sole.ball + sole.aside, sole.ball - sole.aside]
            self._points.append(np.array([HEAD, *corners]))
            effectors += [Effector(end.name, (x, y, z)) for x, y, z in self._points[-1].tolist()]
        self._hips = hips
        length = float(np.mean([end.length for end in ends])) if ends else 1.0
        self._reach = Reach(skeleton, [hips, *legs], effectors, limits, free, length=length, root="FREE")

    def solve(
        self, local: FloatArray, matrices: FloatArray, feet: Sequence[tuple[FloatArray, FloatArray, FloatArray]]
    ) -> FloatArray:
        """Solve hips and legs; write their rotations to `local` (F, J, 4), and return the hips' translation (F, 3).

        matrices: (F, J, 4, 4) of the bones. feet: for each foot its location (F, 3), its rotation (F, 4), and the
        contact of heel and ball (F, 2), as in `FootPlan`. All in armature space.
        """
        heads = matrices[:, self._hips, :3, 3]
        targets, weights = [heads[:, None]], [np.full((len(heads), 1), _HIPS_WEIGHT)]
        for points, (positions, rotations, standing) in zip(self._points, feet, strict=True):
            targets.append(positions[:, None] + points @ np.swapaxes(matrix_from_quaternion(rotations), 1, 2))
            counted = np.full((len(heads), len(points)), _FOOT_WEIGHT)
            if len(points) > 1:
                # Interpolate the logarithm of the factor. Otherwise a point that is planted by only 0.02 would have
                # nearly the full weight, and shins would jerk. A side of the ball has half the factor of the heel.
                counted[:, 1:] *= (_STANDING_WEIGHT * np.array([1.0, 0.5, 0.5])) ** standing[:, [0, 1, 1]]
            weights.append(counted)
        return self._reach.solve(local, matrices, np.concatenate(targets, axis=1), np.concatenate(weights, axis=1))


# Weight of the take's usual twist: the squared sine of a fold by 27 degrees. It is large because recorded knees are up
# to 15 degrees beyond straight.
_USUAL: Final = 0.2
# Radians: a polygon limit that is at most this wide is a hinge about any axis across the bone.
_NARROW: Final = 0.04


class Fold(NamedTuple):
    """A hinge: its axis (3,) in the bone's frame, and its range in radians."""

    axis: FloatArray
    low: float
    high: float

    @classmethod
    def of(cls, limit: Limit | None) -> "Fold | None":
        """The hinge that a limit allows; None if it allows more."""
        if isinstance(limit, Hinge) and limit.axis != "Y":
            return cls(np.eye(3)["XYZ".index(limit.axis)], limit.low, limit.high)
        if isinstance(limit, Polygon) and np.ptp(limit.twist) <= _NARROW:
            corners = np.array(limit.points)
            x, z = np.linalg.svd(corners - corners.mean(axis=0))[2][0]
            along, across = corners @ (x, z), corners @ (-z, x)
            if np.ptp(across) <= _NARROW:
                return cls(np.array([z, 0.0, -x]), float(along.min()), float(along.max()))
        return None


class LimbSolver:
    """Moves the end of one limb to its targets on many frames; prepared once."""

    def __init__(self, transfer: Transfer, end: End, hinge: Fold | None) -> None:
        """hinge: that of the limb's second bone, if it has one."""
        skeleton, self._limb, self._hinge = transfer.skeleton, end.limb, hinge
        upper, lower, last = (skeleton.rest[bone] for bone in end.limb)
        # The vectors of the upper and lower bone to the next joint, each in its own bone's frame.
        self._elbow = upper[:3, :3].T @ (lower[:3, 3] - upper[:3, 3])
        self._forearm = lower[:3, :3].T @ (last[:3, 3] - lower[:3, 3])
        self._lower = quaternion_from_matrix(upper[:3, :3].T @ lower[:3, :3])
        self._end = quaternion_from_matrix(lower[:3, :3].T @ last[:3, :3])
        self._along = self._elbow / max(float(np.linalg.norm(self._elbow)), ROUNDING)
        if hinge is not None:
            rotations = [transfer.turned(bone, slice(None)) for bone in end.limb[:2]]
            self._twist, self._angles = self._twisted(*rotations)

    @classmethod
    def of(cls, transfer: Transfer, end: End, limits: Mapping[str, Limit]) -> "LimbSolver | None":
        """The solver of a limb; None if its bones are not connected or do not inherit rotation."""
        skeleton, (upper, lower, last) = transfer.skeleton, end.limb
        path = skeleton.path(last)
        below = path[path.index(upper) + 1 :] if upper in path else []
        if lower not in below or not skeleton.inherits_rotation[below].all():
            return None
        return cls(transfer, end, Fold.of(limits.get(skeleton.names[lower])))

    def solve(self, frames: slice, local: FloatArray, matrices: FloatArray, goals: FloatArray, end: FloatArray) -> None:
        """Solve the limb and write its local rotations to `local` (F, J, 4).

        matrices: (F, J, 4, 4) of the bones. goals: (F, 3) positions for the head of the limb's last bone. end: (F, 4)
        its rotations. All in armature space.
        """
        first, second, last = self._limb
        upper = quaternion_from_matrix(matrices[:, first, :3, :3])
        carrier = product(upper, conjugate(local[:, first]))
        shoulder = matrices[:, first, :3, 3]
        reach = lengths(goals - shoulder)
        if self._hinge is None:
            bent = local[:, second]
            axis = self._fold_axis(bent)
            folded = product(quaternion_from_rotation_vector(self._angle(axis, bent, reach)[:, None] * axis), bent)
        else:
            upper = product(upper, quaternion_from_rotation_vector(self._twist[frames, None] * self._along))
            axis = np.broadcast_to(self._hinge.axis, (len(local), 3))
            now = self._angles[frames]
            bent = quaternion_from_rotation_vector(now[:, None] * axis)
            folded = quaternion_from_rotation_vector(
                self._in_range(now + self._angle(axis, bent, reach))[:, None] * axis
            )
        ends = self._elbow + _turned(product(self._lower, folded), self._forearm)
        upper = product(rotation_between(_turned(upper, ends), goals - shoulder), upper)
        lower = product(product(upper, self._lower), folded)
        local[:, first] = product(conjugate(carrier), upper)
        local[:, second] = folded
        local[:, last] = product(conjugate(product(lower, self._end)), end)

    def _fold_axis(self, bent: FloatArray) -> FloatArray:
        """(F, 3) axes about which a free elbow is folded by rotations `bent` (F, 4), in the lower bone's rest frame."""
        along = _turned(conjugate(self._lower), self._along)
        axis = np.cross(np.broadcast_to(along, (len(bent), 3)), _turned(bent, self._forearm))
        size = lengths(axis)
        # A straight limb folds about the usual axis of the take.
        usual = axis.sum(axis=0)
        usual = usual / np.linalg.norm(usual) if np.linalg.norm(usual) > ROUNDING else np.array([1.0, 0.0, 0.0])
        straight = size <= 1e-3 * np.linalg.norm(self._forearm)
        return np.where(straight[:, None], usual, axis / np.maximum(size, ROUNDING)[:, None])

    def _in_range(self, angle: FloatArray) -> FloatArray:
        """(F,) hinge angles clamped to the range, after full turns are added to bring them nearest to its middle."""
        assert self._hinge is not None
        middle = 0.5 * (self._hinge.low + self._hinge.high)
        return np.clip(middle + wrapped(angle - middle), self._hinge.low, self._hinge.high)

    def _twisted(self, upper: FloatArray, lower: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(F,) twists of the upper bone with which the hinge folds like the source's, and (F,) hinge angles, radians.

        The twist of a frame is the argument of a complex number. Its absolute value grows with the bend of the limb,
        since a bent limb shows the twist more clearly. A limb that is nearly straight, or slightly bent the wrong way,
        gets the take's usual twist. upper, lower: (F, 4) transferred rotations of the two bones, armature space.
        """
        assert self._hinge is not None
        count = len(upper)
        forearm = _turned(product(conjugate(upper), lower), self._forearm)
        axis, none = np.broadcast_to(self._hinge.axis, (count, 3)), np.broadcast_to(IDENTITY, (count, 4))
        angle = self._in_range(self._angle(axis, none, lengths(self._elbow + forearm)))
        folded = quaternion_from_rotation_vector(angle[:, None] * self._hinge.axis)
        own = _turned(product(self._lower, folded), self._forearm)
        flat, wanted = (vector - (vector @ self._along)[:, None] * self._along for vector in (own, forearm))
        size = max(float(self._forearm @ self._forearm), ROUNDING)
        number = ((flat * wanted).sum(axis=1) + 1j * (np.cross(flat, wanted) @ self._along)) / size
        usual = (number * np.maximum(np.abs(number) - _USUAL, 0.0)).sum() + ROUNDING
        usual = usual / abs(usual)
        return np.asarray(np.angle(number + _USUAL * usual)), angle

    def _angle(self, axis: FloatArray, bent: FloatArray, reach: FloatArray) -> FloatArray:
        """(F,) the smallest angles (radians) at which the limb's end is at distances `reach` (F,) from its beginning.

        The rotation is about `axis` (F, 3) of the lower bone, after its rotation `bent` (F, 4). The angles solve
        |elbow + R(angle) forearm|² = a + b cos(angle) + c sin(angle). A hinge has the solution nearer to the middle of
        its range.
        """
        elbow = _turned(conjugate(self._lower), self._elbow)
        forearm = _turned(bent, self._forearm)
        along = (forearm * axis).sum(axis=1)
        across = forearm - along[:, None] * axis
        constant = elbow @ elbow + float(self._forearm @ self._forearm) + 2.0 * along * (axis @ elbow)
        cosine, sine = 2.0 * across @ elbow, 2.0 * np.cross(axis, across) @ elbow
        size = np.maximum(np.hypot(cosine, sine), ROUNDING)
        middle, half = np.arctan2(sine, cosine), np.arccos(np.clip((reach**2 - constant) / size, -1.0, 1.0))
        angles = np.stack([wrapped(middle + half), wrapped(middle - half)])
        away = np.abs(angles)
        if self._hinge is not None:
            now = 2.0 * np.arctan2((bent[:, 1:] * axis).sum(axis=1), bent[:, 0])
            away = np.abs(wrapped(now + angles - 0.5 * (self._hinge.low + self._hinge.high)))
        return np.where(away[0] < away[1], angles[0], angles[1])


def _turned(rotations: FloatArray, vectors: FloatArray) -> FloatArray:
    """(..., 3) vectors rotated by (..., 4) rotations."""
    return times(matrix_from_quaternion(rotations), vectors)
