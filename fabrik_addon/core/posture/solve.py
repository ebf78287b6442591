"""From the last pose to the next one: the goals exactly, by the motion that the posture term likes best.

Two parts. First goals and posture in balance: damped Newton steps, of which each keeps to the joints' limits and to the
rows that come first (pins), so that nothing else moves those. Then the goals alone, from there, where they can be met.
The posture term pulls to one preferred pose, so that the pose hardly depends on the way it was come to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray, IntArray
from ..limits.base import Limit
from ..model.effector import Effector
from ..model.skeleton import Skeleton
from .body import Bodies, Motions, Stance
from .bounds import Bounds, Floor, Support
from .goals import Goals
from .joint_limits import JointLimits, Sides
from .mass import Away, Masses, PostureTerm
from .quadratic import Found, Step

# What the posture weighs beside goals of weight 1; between 1e-3 and 1e-2 the poses are much the same.
_POSTURE = 3e-3
# Mass that is added to the matrix until it is positive, in shares of the posture's, and how clearly positive: where it
# hardly is, a twist that moves no goal would go round and round.
_MORE_MASS, _CLEARLY = (0.0, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0), 0.5
# By how much a row that comes first gives way to a force of a metre of a goal: what a millimetre is to a person.
_YIELDING = 1e-5
# The same for all goals in the second part, for those that come first and for the others.
_MET_FIRST, _MET = 1e-8, 1e-6
# Radians that a joint turns in one step at most: what is beyond is not seen well from here.
_LONGEST_TURN = 0.5
# A share of the body's size: points that are farther from the floor do not come to it in a step.
_NEAR_THE_FLOOR = 0.3
_MOST_STEPS = 6
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
_MOST_CORRECTIONS, _MOST_BACK = 4, 3
# On the way what comes first is met to so many tolerances only; the last part sees to the rest.
_NEARLY = 100.0
# A person's eye does not see the pose of one move of the mouse: what takes longer goes on with the next.
_MOST_STEPS_A_MOVE = 10
# The second part goes on where a step leaves so much at most. So much of it is taken where all of it halves nothing: a
# limb that is nearly straight.
_LEFT, _SHARES = 0.2, (1.0, 0.5, 0.25)
# Radians that a step of it turns at most, how many tangents it follows, and by what share of the way from the preferred
# pose the last step of the first part may turn: for a move of the mouse, and at once. Nobody sees what is left then,
# and the next move goes on: a hand dragged about takes 1.0 steps a move for 2.1, and still closes to 0.00 degrees.
_A_MOVE, _AT_ONCE = (0.2, 3, 0.2), (0.4, 12, 0.0)
_HIGHEST_DAMPING = 1e3 * _POSTURE
# A share of the longest path: goals are met to this.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class PosturePose:
    """A pose.

    Attributes:
        rotations: (J, 4) local. root_location: (3,) the root's head.
        errors: (E,) distances from the targets. rotation_errors: (E,) radians, NaN where no rotation counts.
        steps: how many were taken.
    """

    rotations: FloatArray
    root_location: FloatArray
    errors: FloatArray
    rotation_errors: FloatArray
    steps: int


@dataclass
class _State:
    """A stance, what its goals are short of (R,), how far it is from the preferred one, and the sides (N,) it met."""

    stance: Stance
    residual: FloatArray
    away: Away
    pulls: FloatArray | None
    closed: IntArray


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
    ) -> None:
        """See `solve` in `core` for the arguments. Effectors of the lowest priorities come first, pins above all."""
        self.skeleton, self.masses = skeleton, masses
        self.goals = Goals(skeleton, effectors)
        own = [(limits or {}).get(skeleton.names[bone]) for bone in self.goals.bones]
        axes = [_axes(limit, masses.factors[bone]) for bone, limit in zip(self.goals.bones, own, strict=True)]
        self.bodies = Bodies(skeleton, self.goals.bones, axes, root == "FREE")
        self.limits, self.bounds = JointLimits(self.bodies, own), Bounds(self.bodies, floor, support)
        self.tolerance = _TOLERANCE * float(self.goals.lengths.max())
        self._farthest, self._most_tangents, self._last_share = _A_MOVE
        self._every = np.ones(len(self.goals.hard), dtype=bool)
        self.prefer(np.tile([1.0, 0.0, 0.0, 0.0], (len(skeleton), 1)), skeleton.rest[0, :3, 3])

    def prefer(self, rotations: npt.ArrayLike, location: npt.ArrayLike) -> None:
        """From now on stay near a pose: (J, 4) local rotations and the root's head at (3,)."""
        self._last: tuple[FloatArray | None, IntArray | None] = None, None
        self._asked: FloatArray | None = None
        turns = np.asarray(rotations, dtype=np.float64)
        self.posture = PostureTerm(self.bodies, self.masses, turns, np.asarray(location, dtype=np.float64))
        self.bounds.prefer(self.posture)

    def centre_of_mass(self, rotations: FloatArray, location: FloatArray) -> FloatArray:
        """(3,) in a pose."""
        stance = self.bodies.stand(rotations[self.bodies.bones], location)
        return self.posture.centre_of_mass(self.posture.away(stance))

    def points(self, rotations: FloatArray, location: FloatArray) -> FloatArray:
        """(E, 3) where the effectors are in a pose."""
        return self.goals.points(self.bodies.stand(rotations[self.bodies.bones], location))[: self.goals.count]

    def misses(
        self,
        rotations: FloatArray,
        location: FloatArray,
        targets: FloatArray,
        target_rotations: FloatArray | None = None,
    ) -> FloatArray:
        """(E + O,) metres and radians by which a pose misses targets and those rotations that count."""
        self.goals.ask(targets, target_rotations)
        stance = self.bodies.stand(rotations[self.bodies.bones], location)
        return np.asarray(np.linalg.norm(self.goals.misses(stance), axis=1))

    def solve(
        self,
        targets: npt.ArrayLike,
        *,
        start: npt.ArrayLike,
        start_location: npt.ArrayLike,
        target_rotations: npt.ArrayLike | None = None,
        at_once: bool = False,
    ) -> PosturePose:
        """The pose for (E, 3) targets, going on from a pose: (J, 4) rotations, (3,) the root's head.

        target_rotations: (E, 4). NaN: nothing is asked for. at_once: come to it now, however far joints turn for that,
        instead of over several moves of a mouse.
        """
        rotations = np.array(start, dtype=np.float64)
        goals = self.goals
        goals.ask(
            np.asarray(targets, dtype=np.float64), None if target_rotations is None else np.asarray(target_rotations)
        )
        local = self.limits.clamped(rotations[self.bodies.bones])
        stance = self.bodies.stand(local, np.asarray(start_location, dtype=np.float64))
        state = self._state(stance, *self._last)
        self._farthest, self._most_tangents, self._last_share = _AT_ONCE if at_once else _A_MOVE
        state, steps = self._approach(state, np.inf if at_once else self._easy_turn(state))
        self._last = state.pulls, state.closed
        rotations[self.bodies.bones] = state.stance.local
        misses = np.linalg.norm(goals.misses(state.stance), axis=1)
        turns = np.full(goals.count, np.nan)
        turns[goals.oriented] = misses[goals.count :]
        return PosturePose(rotations, state.stance.root, misses[: goals.count], turns, steps)

    def _state(self, stance: Stance, pulls: FloatArray | None = None, closed: IntArray | None = None) -> _State:
        residual = self.goals.residual(stance)
        none = np.zeros(0, dtype=np.int64)
        return _State(stance, residual, self.posture.away(stance), pulls, none if closed is None else closed)

    def _easy_turn(self, state: _State) -> float:
        """Radians that joints may turn for the posture's sake, now that targets have gone where they are."""
        before, self._asked = self._asked, self.goals.asked()
        if before is None or np.abs(state.away.turned).max() <= _NEARLY_PREFERRED:
            return np.inf
        gone = np.linalg.norm(self._asked - before, axis=1).max(initial=0.0)
        return float(_EASY_TURN + _EASY_TURN_PER_SIZE * gone / self.posture.size)

    def _approach(self, state: _State, most: float) -> tuple[_State, int]:
        """Goals and posture in balance, the goals met; how many steps it took. Joints turn by so much at a time."""
        steps, missing = 0, np.inf
        for _ in range(_MOST_TURNS):
            state, count, done = self._balance(state, most)
            state, steps = self._meet(state), steps + count
            before, missing = missing, float(np.linalg.norm(state.residual))
            if (
                done
                or steps >= _MOST_STEPS_A_MOVE
                or np.abs(state.residual).max() <= self.tolerance
                or missing > (1.0 - _WORTH_IT) * before
            ):
                break
        return state, steps

    def _balance(self, state: _State, most: float) -> tuple[_State, int, bool]:
        """Steps until goals and posture are in balance or joints have turned enough: how many, whether it is done."""
        damping, count = 0.0, 0
        while count < _MOST_STEPS and damping <= _HIGHEST_DAMPING and most > _LAST_TURN:
            count += 1
            last = max(_LAST_TURN, self._last_share * float(np.abs(state.away.turned).max()))
            trial, longest = self._step(state, damping, min(most, _LONGEST_TURN))
            before, after = self._cost(state, state), self._cost(trial, state)
            if after > before:
                # Where a limb is straight goals bend away from their tangents: back onto them.
                trial = self._met(trial, self._every) or trial
                after = self._cost(trial, state)
            if after <= before:
                state, damping, most = trial, 0.25 * damping, most - longest
                if longest < last or before - after < _LAST_GAIN * before:
                    return state, count, True
            else:
                damping = max(4.0 * damping, _POSTURE)
        return state, count, False

    def _step(self, state: _State, damping: float, most: float) -> tuple[_State, float]:
        """The state after a step in which no joint turns by more than the most radians, and what the farthest would."""
        hard, residual = self.goals.hard, state.residual
        motions = self.bodies.motions(state.stance)
        rows = self.goals.rows(self.bodies, state.stance, motions)
        mass, slope = self.posture.equations(state.away, state.stance, motions)
        # Rows that come first count here as well: it changes nothing where they are met, and makes the matrix positive.
        matrix = self._curved(rows.T @ rows + (_POSTURE + damping) * mass, mass, state, motions)
        near = _NEAR_THE_FLOOR * self.posture.size
        bounds = self.bounds.sides(state.stance, motions, state.away, near)
        sides = Sides.joined([self.limits.sides(state.stance.local, _LONGEST_TURN), bounds])
        yielding = np.full(np.count_nonzero(hard), _YIELDING)
        step = Step(matrix, rows.T @ residual - _POSTURE * slope, rows[hard], yielding, sides)
        found = step.solve(residual[hard], np.isin(sides.keys, state.closed))
        longest = float(np.abs(found.step[: self.bodies.turning]).max(initial=0.0))
        pulls = residual - rows @ found.step
        pulls[hard] = found.forces
        closed = sides.keys[found.closed]
        trial = self._state(self._moved(state.stance, found.step * min(1.0, most / max(longest, 1e-9))), pulls, closed)
        for _ in range(_MOST_BACK):
            if np.abs(trial.residual[hard]).max(initial=0.0) <= _NEARLY * self.tolerance:
                break
            # What comes first bends away from its tangent: back onto it.
            back = step.corrected(trial.residual[hard], found.closed)
            trial = self._state(self._moved(trial.stance, back), pulls, closed)
        return trial, longest

    def _cost(self, state: _State, before: _State) -> float:
        """What is to become less: goals, posture, and whatever comes first, at a price that no goal can pay."""
        hard = self.goals.hard
        soft, first = state.residual[~hard], state.residual[hard]
        price = 2.0 * max(float(np.linalg.norm(before.residual[~hard])), 0.1)
        bounds = self.bounds.cost(state.stance, state.away, price)
        posture = _POSTURE * self.posture.value(state.away)
        return 0.5 * float(soft @ soft) + posture + price * float(np.linalg.norm(first)) + bounds

    def _curved(self, matrix: FloatArray, mass: FloatArray, state: _State, motions: Motions) -> FloatArray:
        """The Gauss-Newton matrix with what the present forces add to it, and as much mass as makes it positive."""
        stance, posture, goals = state.stance, self.posture, self.goals
        if state.pulls is None:
            return matrix
        curvature = self.bodies.stiffness(
            stance,
            motions,
            np.concatenate([goals.points(stance), state.away.centres]),
            np.concatenate([goals.on, posture.carrier]),
            np.concatenate([goals.forces(state.pulls), -_POSTURE * posture.pulls(state.away)]),
        )
        for more in _MORE_MASS:
            curved = matrix - curvature + more * _POSTURE * mass
            try:
                np.linalg.cholesky(curved - _CLEARLY * _POSTURE * mass)
            except np.linalg.LinAlgError:
                continue
            return curved
        return matrix

    def _meet(self, state: _State) -> _State:
        """The goals alone, from here: all of them where they can be met, else those that come first."""
        for chosen in (self._every, self.goals.hard):
            if np.abs(state.residual[chosen]).max(initial=0.0) > self.tolerance:
                state = self._met(state, chosen) or state
        return state

    def _met(self, state: _State, chosen: BoolArray) -> _State | None:
        """The state with some of the rows met, or nearly, by the least mass moved; None where that leads nowhere."""
        met = None
        for _ in range(self._most_tangents):
            nearer = self._nearer(met or state, chosen)
            met = nearer or met
            if nearer is None or np.abs(nearer.residual[chosen]).max() <= self.tolerance:
                break
        return met

    def _nearer(self, state: _State, chosen: BoolArray) -> _State | None:
        """The state with less missing of some of the rows, along one tangent; None where it promises too little."""
        motions = self.bodies.motions(state.stance)
        mass, _ = self.posture.equations(state.away, state.stance, motions)
        rows = self.goals.rows(self.bodies, state.stance, motions)[chosen]
        floor = self.bounds.floor_sides(state.stance, motions, _NEAR_THE_FLOOR * self.posture.size)
        sides = Sides.joined([self.limits.sides(state.stance.local, _LONGEST_TURN), floor])
        step = Step(mass, np.zeros(len(mass)), rows, np.where(self.goals.hard[chosen], _MET_FIRST, _MET), sides)
        residual = state.residual[chosen]
        found = step.solve(residual, np.isin(sides.keys, state.closed))
        if np.linalg.norm(residual - rows @ found.step) > _LEFT * np.linalg.norm(residual):
            return None
        if np.abs(found.step[: self.bodies.turning]).max(initial=0.0) > self._farthest:
            return None
        for share in _SHARES:
            met = self._state(self._moved(state.stance, share * found.step), state.pulls, state.closed)
            if np.linalg.norm(met.residual[chosen]) <= (1.0 - 0.5 * share) * np.linalg.norm(residual):
                return self._corrected(met, step, found, chosen) if share == 1.0 else met
        return None

    def _corrected(self, met: _State, step: Step, found: Found, chosen: BoolArray) -> _State:
        """The state after further steps along the same tangent, for as long as each halves what is missing."""
        for _ in range(_MOST_CORRECTIONS):
            residual = met.residual[chosen]
            if np.abs(residual).max() <= self.tolerance:
                break
            move = step.corrected(residual, found.closed)
            trial = self._state(self._moved(met.stance, move), met.pulls, met.closed)
            if np.linalg.norm(trial.residual[chosen]) > 0.5 * np.linalg.norm(residual):
                break
            met = trial
        return met

    def _moved(self, stance: Stance, step: FloatArray) -> Stance:
        """Where the bodies are after a step, inside their limits."""
        local, root = self.bodies.moved(stance, step)
        return self.bodies.stand(self.limits.clamped(local), root)


def _axes(limit: Limit | None, factor: float) -> FloatArray:
    """(k, 3) what a joint may turn about; nothing where it is as stiff as can be."""
    if not np.isfinite(factor) or (limit is not None and limit.freedom == 0):
        return np.zeros((0, 3))
    return np.eye(3) if limit is None or limit.turn_axis is None else np.array([limit.turn_axis])
