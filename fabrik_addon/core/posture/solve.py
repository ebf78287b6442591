"""From the last pose to the next one: the goals exactly, by the motion that the posture term likes best.

Two parts. First goals and posture in balance: damped Newton steps, of which each keeps to the joints' limits and to the
rows that come first (pins), so that nothing else moves those. Then the goals alone, from there, where they can be met.
The posture term pulls to one preferred pose, so that the pose hardly depends on the way it was come to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray, lengths
from ..kernel.bodies import Bodies, joint_axes
from ..kernel.bounds import Bounds, Floor, Support
from ..kernel.hanging import HangFrom, Hanging
from ..kernel.joint_limits import JointLimits
from ..kernel.posture import Masses, PostureTerm
from ..limits.base import Limit
from ..model.effector import Effector
from ..model.skeleton import Skeleton
from ..rotations import NO_TURN, rotation_vector_from_matrix, slerp
from .goals import Goals
from .newton import POSTURE, Newton, State

# Radians that joints turn in one go for the posture's sake, and more of it for each size of the body that a target has
# gone: what a goal does not need comes about over several moves of the mouse instead of in one.
_EASY_TURN, _EASY_TURN_PER_SIZE = 0.02, 22.0
# Radians: where no joint is turned farther from the preferred pose than that, it may go back to it in one move.
_NEARLY_PREFERRED = 0.25
# Where that leaves goals unmet it goes on for as long as it pays: each time must take so much off what is missing.
_MOST_TURNS, _WORTH_IT = 4, 0.15
# Radians: a step in which no joint turns farther is the last one.
_LAST_TURN = 2e-3
_LAST_GAIN = 5e-3
# Bones go so many times as far as the targets in one move at most, and by this share of the body's size at least; by
# the other one while the targets rest. Without, a person's hands go up to 17 times as far as the chest that is led to
# the border of reach, knees up to 12 times as far as hips that are lowered from straight legs; with, up to 5 times.
_FOLLOWS, _LEAST_WAY, _AT_REST = 4.0, 5e-4, 1e-2
_LEAST_DAMPING, _HIGHEST_DAMPING = 0.1 * POSTURE, 1e3 * POSTURE


class _Pace(NamedTuple):
    """How far it goes in one solve.

    steps: toward the balance of goals and posture, in one go, and most_steps in all; none after so many tangents, which
    are what takes time. last_share: a step is the last one
    that turns by less than this share of the way from the preferred pose. tangents: how many are followed onto the
    goals, each turning by so many radians at most, farthest; they are met to so many tolerances.
    """

    steps: int
    most_steps: int
    most_tangents: float
    last_share: float
    tangents: int
    farthest: float
    tolerances: float


# Nobody sees what is left after a step that is small beside the way from the preferred pose, and the next move of the
# mouse goes on: a hand dragged about takes 1.0 steps a move for 2.1, and still closes to 0.00 degrees. Without a bound
# on tangents a move across the border of reach took up to 11 of them, of a tree of 60 bones 12; with it, 6 and 7, and a
# path goes as far, turns as much and is as short of its targets.
_A_MOVE, _AT_ONCE = _Pace(3, 6, 6, 0.2, 3, 0.2, 5.0), _Pace(6, 10, np.inf, 0.0, 12, 0.4, 1.0)


@dataclass(frozen=True)
class PosturePose:
    """A pose.

    Attributes:
        rotations: (J, 4) local. root_location: (3,) the root's head.
        errors: (E,) distances from the targets. rotation_errors: (E,) radians, NaN where no rotation counts.
        steps: how many were taken.
        is_held_back: whether it is on the way only, for no joint to run ahead of the goals.
    """

    rotations: FloatArray
    root_location: FloatArray
    errors: FloatArray
    rotation_errors: FloatArray
    steps: int
    is_held_back: bool = False


class PostureSolver:
    """One skeleton, its effectors and its masses, made ready once for pose after pose."""

    def __init__(
        self,
        skeleton: Skeleton,
        effectors: Sequence[Effector],
        masses: Masses,
        *,
        limits: Mapping[str, Limit] | None = None,
        root: str = "FIXED",
        floor: Floor | None = None,
        support: Support | None = None,
        hang_from: HangFrom | None = None,
    ) -> None:
        """See `solve` in `core` for the arguments. Effectors of the lowest priorities come first, pins above all.

        hang_from: limbs that nothing leads hang as in that pose; None has them ride on what carries them.
        """
        self.skeleton, self.masses = skeleton, masses
        self.goals = Goals(skeleton, effectors)
        own = [(limits or {}).get(skeleton.names[bone]) for bone in self.goals.bones]
        axes = [joint_axes(limit, masses.factors[bone]) for bone, limit in zip(self.goals.bones, own, strict=True)]
        self.bodies = Bodies(skeleton, self.goals.bones, axes, root == "FREE")
        self._limits, self._bounds = JointLimits(self.bodies, own), Bounds(self.bodies, floor, support)
        self._hanging: Hanging | None = None
        if hang_from is not None and masses.hanging is not None:
            found = Hanging(self.bodies, masses.hanging, limits or {}, hang_from)
            self._hanging = found if len(found.bones) else None
        self._every = np.ones(len(self.goals.hard), dtype=bool)
        self.prefer(np.tile(NO_TURN, (len(skeleton), 1)), skeleton.rest[0, :3, 3])

    def prefer(self, rotations: npt.ArrayLike, location: npt.ArrayLike) -> None:
        """From now on stay near a pose: (J, 4) local rotations and the root's head at (3,)."""
        turns = np.asarray(rotations, dtype=np.float64)
        place = np.asarray(location, dtype=np.float64)
        self.posture = PostureTerm(self.bodies, self.masses, turns, place, self._hanging)
        self._newton = Newton(self.bodies, self.goals, self._limits, self._bounds, self.posture)
        self.forget()

    def forget(self) -> None:
        """The next pose is not one that goes on from the last one."""
        self._last: State | None = None
        self._asked: tuple[FloatArray, FloatArray] | None = None
        self._damping = self.gone = 0.0

    def centre_of_mass(self, rotations: FloatArray, location: FloatArray) -> FloatArray:
        """(3,) in a pose."""
        stance = self.bodies.pose(rotations[self.bodies.bones], location)
        return self.posture.centre_of_mass(self.posture.away(stance))

    def points(self, rotations: FloatArray, location: FloatArray) -> FloatArray:
        """(E, 3) where the effectors are in a pose."""
        return self.goals.points(self.bodies.pose(rotations[self.bodies.bones], location))[: self.goals.count]

    def misses(
        self,
        rotations: FloatArray,
        location: FloatArray,
        targets: FloatArray,
        target_rotations: FloatArray | None = None,
    ) -> FloatArray:
        """(E + O,) metres and radians by which a pose misses targets and those rotations that count."""
        self.goals.ask(targets, target_rotations)
        stance = self.bodies.pose(rotations[self.bodies.bones], location)
        return np.asarray(np.linalg.norm(self.goals.misses(stance), axis=1))

    def solve(
        self,
        targets: npt.ArrayLike,
        *,
        start: npt.ArrayLike,
        start_location: npt.ArrayLike,
        target_rotations: npt.ArrayLike | None = None,
        at_once: bool = False,
        eased: bool = False,
    ) -> PosturePose:
        """The pose for (E, 3) targets, going on from a pose: (J, 4) rotations, (3,) the root's head.

        target_rotations: (E, 4). NaN: nothing is asked for. at_once: come to it now, however far joints turn for that,
        instead of over several moves of a mouse. eased: where that takes a joint much farther than the targets have
        gone, go a part of the way: near the border of reach a body would run ahead of the mouse.
        """
        rotations = np.array(start, dtype=np.float64)
        goals = self.goals
        goals.ask(
            np.asarray(targets, dtype=np.float64), None if target_rotations is None else np.asarray(target_rotations)
        )
        state = self._begin(rotations[self.bodies.bones], np.asarray(start_location, dtype=np.float64))
        self.gone = gone = self._targets_gone(state)
        easy_turn = np.inf if at_once else self._easy_turn(state, gone)
        found, steps = self._approach(state, easy_turn, _AT_ONCE if at_once else _A_MOVE)
        self._last = pose = self._held_back(state, found, gone) if eased and not at_once else found
        return self._pose(pose, rotations, steps, is_held_back=pose is not found)

    def on_the_way(self, begin: PosturePose, pose: PosturePose, gone: float) -> PosturePose:
        """As much of the way from one pose to another as joints may go while the targets have gone so many metres."""
        first, last = (
            self._newton.state(self.bodies.pose(each.rotations[self.bodies.bones], each.root_location))
            for each in (begin, pose)
        )
        held = self._held_back(first, last, gone)
        if held is last:
            return pose
        self._last = held
        return self._pose(held, pose.rotations.copy(), pose.steps, is_held_back=True)

    def _pose(self, state: State, rotations: FloatArray, steps: int, *, is_held_back: bool) -> PosturePose:
        """What a state is as a pose; (J, 4) rotations of the others, which become the pose's."""
        goals = self.goals
        rotations[self.bodies.bones] = state.stance.local
        if self._hanging is not None:
            rotations[self._hanging.bones] = self._hanging.turned(state.stance)
        misses = goals.missed(state.residual)
        turns = np.full(goals.count, np.nan)
        turns[goals.oriented] = misses[goals.count :]
        return PosturePose(rotations, state.stance.root, misses[: goals.count], turns, steps, is_held_back)

    def _begin(self, local: FloatArray, root: FloatArray) -> State:
        """The state of a pose: the last one, where it goes on from that."""
        last = self._last
        if last is None:
            return self._newton.state(self.bodies.pose(self._limits.clamped(local), root))
        if np.array_equal(last.stance.local, local) and np.array_equal(last.stance.root, root):
            return replace(last, residual=self.goals.residual(last.stance), way=None)
        return self._newton.state(self.bodies.pose(self._limits.clamped(local), root), last.pulls, last.closed)

    def _targets_gone(self, state: State) -> float:
        """Metres that the farthest target has gone since the last pose, or from where it is in a first one.

        A rotation goes as far as it takes the other end of the body.
        """
        before, self._asked = self._asked, self.goals.asked()
        if before is None:
            misses = self.goals.missed(state.residual)
            points, turns = misses[: self.goals.count], misses[self.goals.count :]
        else:
            points = lengths(self._asked[0] - before[0])
            turns = np.zeros(0)
            # As a rule none is turned, and to tell how far takes as long as to stand the body.
            if not np.array_equal(self._asked[1], before[1]):
                turns = lengths(rotation_vector_from_matrix(self._asked[1] @ np.swapaxes(before[1], 1, 2)))
        return float(max(points.max(initial=0.0), self.posture.size * turns.max(initial=0.0)))

    def _easy_turn(self, state: State, gone: float) -> float:
        """Radians that joints may turn for the posture's sake, now that targets have gone so far."""
        if np.abs(state.away.turned).max() <= _NEARLY_PREFERRED:
            return np.inf
        return float(_EASY_TURN + _EASY_TURN_PER_SIZE * gone / self.posture.size)

    def _held_back(self, begin: State, found: State, gone: float) -> State:
        """The pose itself, or as much of the way to it as joints may go while targets have gone so far."""
        centres, heads = found.away.centres - begin.away.centres, found.stance.heads - begin.stance.heads
        farthest = float(max(lengths(centres).max(), lengths(heads).max()))
        most = _FOLLOWS * gone + (_LEAST_WAY if gone > 0.0 else _AT_REST) * self.posture.size
        if farthest <= most:
            return found
        share = most / farthest
        local = slerp(begin.stance.local, found.stance.local, np.full(len(begin.stance.local), share))
        root = begin.stance.root + share * (found.stance.root - begin.stance.root)
        stance = self.bodies.pose(self._limits.clamped(local), root)
        return self._met(self._newton.state(stance, found.pulls, found.closed), self.goals.hard, _A_MOVE)

    def _approach(self, state: State, most: float, pace: _Pace) -> tuple[State, int]:
        """Goals and posture in balance, the goals met; how many steps it took. Joints turn by so much at a time."""
        steps, missing, begun = 0, np.inf, self._newton.tangents
        for _ in range(_MOST_TURNS):
            state, count, done = self._balance(state, most, pace)
            state = self._met(self._near_all(state, pace), self.goals.hard, pace)
            steps += count
            before, missing = missing, float(np.linalg.norm(state.residual))
            if done or steps >= pace.most_steps or self._newton.tangents - begun >= pace.most_tangents:
                break
            if self._newton.is_met(state, self._every, pace.tolerances):
                break
            if missing > (1.0 - _WORTH_IT) * before:
                break
        return state, steps

    def _near_all(self, state: State, pace: _Pace) -> State:
        """The state near all goals, unless one would have to pull harder than it may.

        Then only at once, and where all are met: a pose that is not gone on from may end anywhere beside the last one.
        """
        lets_go = self._newton.lets_go(state)
        if lets_go and pace is not _AT_ONCE:
            return state
        nearer = self._met(state, self._every, pace)
        return nearer if not lets_go or self._newton.is_met(nearer, self._every, pace.tolerances) else state

    def _balance(self, state: State, most: float, pace: _Pace) -> tuple[State, int, bool]:
        """Steps until goals and posture are in balance or joints have turned enough: how many, whether it is done."""
        newton, count = self._newton, 0
        damping = self._damping if _LEAST_DAMPING < self._damping < _HIGHEST_DAMPING else 0.0
        while count < pace.steps and damping <= _HIGHEST_DAMPING and most > _LAST_TURN:
            count += 1
            last = max(_LAST_TURN, pace.last_share * float(np.abs(state.away.turned).max()))
            trial, longest = newton.step(state, damping, most)
            before, after = newton.cost(state, state), newton.cost(trial, state)
            if after > before:
                # Where a limb is straight goals bend away from their tangents: back onto them.
                trial = self._met(trial, self._every, pace)
                after = newton.cost(trial, state)
            if after <= before:
                state, most, damping = trial, most - longest, 0.25 * damping
                self._damping = damping
                if longest < last or before - after < _LAST_GAIN * before:
                    return state, count, True
            else:
                self._damping = damping = max(4.0 * damping, POSTURE)
        return state, count, False

    def _met(self, state: State, chosen: BoolArray, pace: _Pace) -> State:
        """The state with some of the rows met, or nearly, by the least mass moved, as far as that leads anywhere."""
        state = self._newton.corrected(state, chosen, pace.tolerances)
        for _ in range(pace.tangents):
            if self._newton.is_met(state, chosen, pace.tolerances):
                break
            nearer = self._newton.nearer(state, chosen, pace.farthest)
            if nearer is None:
                break
            state = nearer
        return state
