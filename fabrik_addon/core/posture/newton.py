"""Single steps from a stance: toward goals and posture in balance, and onto the goals."""

from dataclasses import dataclass

import numpy as np

from ..arrays import ROUNDING, BoolArray, FloatArray, IntArray
from .body import Bodies, Motions, Stance
from .bounds import Bounds
from .goals import Goals
from .joint_limits import JointLimits, Sides
from .mass import Away, PostureTerm
from .quadratic import Found, Step

# What the posture weighs beside goals of weight 1; between 1e-3 and 1e-2 the poses are much the same.
POSTURE = 3e-3
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
_MOST_CORRECTIONS, _MOST_BACK = 4, 3
# On the way what comes first is met to so many tolerances only; the last part sees to the rest.
_NEARLY = 100.0
# The second part goes on where a step leaves so much at most. So much of it is taken where all of it halves nothing: a
# limb that is nearly straight.
_LEFT, _SHARES = 0.2, (1.0, 0.5, 0.25)
# A share of the longest path: goals are met to this.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class State:
    """A stance, what its goals are short of (R,), and how far it is from the preferred one.

    Attributes:
        pulls: (R,) the forces along the goals' rows in the step that led here, and closed: (N,) the sides that it came
            up against; None where no step did.
    """

    stance: Stance
    residual: FloatArray
    away: Away
    pulls: FloatArray | None
    closed: IntArray | None


class Newton:
    """The steps of one body for its goals, inside its limits and bounds, near a preferred pose."""

    def __init__(self, bodies: Bodies, goals: Goals, limits: JointLimits, bounds: Bounds, posture: PostureTerm) -> None:
        self.bodies, self.goals, self.limits, self.bounds, self.posture = bodies, goals, limits, bounds, posture
        self.tolerance = _TOLERANCE * float(goals.lengths.max())
        bounds.prefer(posture)

    def state(self, stance: Stance, pulls: FloatArray | None = None, closed: IntArray | None = None) -> State:
        """All that is known of a stance."""
        return State(stance, self.goals.residual(stance), self.posture.away(stance), pulls, closed)

    def is_met(self, state: State, chosen: BoolArray, tolerances: float) -> bool:
        """Whether some of the rows are, to so many tolerances."""
        return bool(np.abs(state.residual[chosen]).max(initial=0.0) <= tolerances * self.tolerance)

    def step(self, state: State, damping: float, most: float) -> tuple[State, float]:
        """The state after a step in which no joint turns by more than the most radians, and what the farthest would."""
        hard, residual = self.goals.hard, state.residual
        motions, rows, mass, slope = self._tangent(state)
        # Rows that come first count here as well: it changes nothing where they are met, and makes the matrix positive.
        matrix = self._curved(rows.T @ rows + (POSTURE + damping) * mass, mass, state, motions)
        bounds = self.bounds.sides(state.stance, motions, state.away, _NEAR_THE_FLOOR * self.posture.size)
        sides = Sides.joined([self.limits.sides(state.stance.local, _LONGEST_TURN), bounds])
        yielding = np.full(np.count_nonzero(hard), _YIELDING)
        step = Step(matrix, rows.T @ residual - POSTURE * slope, rows[hard], yielding, sides)
        found = step.solve(residual[hard], _still_closed(sides, state))
        longest = float(np.abs(found.step[: self.bodies.turning]).max(initial=0.0))
        pulls = residual - rows @ found.step
        pulls[hard] = found.forces
        closed = sides.keys[found.closed]
        share = min(1.0, most / max(longest, ROUNDING), _LONGEST_TURN / max(longest, ROUNDING))
        trial = self.state(self._moved(state.stance, share * found.step), pulls, closed)
        for _ in range(_MOST_BACK):
            if np.abs(trial.residual[hard]).max(initial=0.0) <= _NEARLY * self.tolerance:
                break
            # What comes first bends away from its tangent: back onto it.
            back = step.corrected(trial.residual[hard], found.closed)
            trial = self.state(self._moved(trial.stance, back), pulls, closed)
        return trial, longest

    def cost(self, state: State, before: State) -> float:
        """What is to become less: goals, posture, and whatever comes first, at a price that no goal can pay."""
        hard = self.goals.hard
        soft, first = state.residual[~hard], state.residual[hard]
        price = 2.0 * max(float(np.linalg.norm(before.residual[~hard])), 0.1)
        bounds = self.bounds.cost(state.stance, state.away, price)
        posture = POSTURE * self.posture.value(state.away)
        missing = max(float(np.linalg.norm(first)) - _NEARLY * self.tolerance, 0.0)
        return 0.5 * float(soft @ soft) + posture + price * missing + bounds

    def _curved(self, matrix: FloatArray, mass: FloatArray, state: State, motions: Motions) -> FloatArray:
        """The Gauss-Newton matrix with what the present forces add to it, and as much mass as makes it positive."""
        stance, posture, goals = state.stance, self.posture, self.goals
        if state.pulls is None:
            return matrix
        curvature = self.bodies.stiffness(
            stance,
            motions,
            np.concatenate([goals.points(stance), state.away.centres]),
            np.concatenate([goals.on, posture.carrier]),
            np.concatenate([goals.forces(state.pulls), -POSTURE * posture.pulls(state.away)]),
        )
        for more in _MORE_MASS:
            curved = matrix - curvature + more * POSTURE * mass
            try:
                np.linalg.cholesky(curved - _CLEARLY * POSTURE * mass)
            except np.linalg.LinAlgError:
                continue
            return curved
        return matrix

    def nearer(self, state: State, chosen: BoolArray, farthest: float) -> State | None:
        """The state with less missing of some of the rows, along one tangent; None where it promises too little."""
        motions, rows, mass, _ = self._tangent(state)
        rows = rows[chosen]
        floor = self.bounds.floor_sides(state.stance, motions, _NEAR_THE_FLOOR * self.posture.size)
        sides = Sides.joined([self.limits.sides(state.stance.local, _LONGEST_TURN), floor])
        step = Step(mass, np.zeros(len(mass)), rows, np.where(self.goals.hard[chosen], _MET_FIRST, _MET), sides)
        residual = state.residual[chosen]
        found = step.solve(residual, _still_closed(sides, state))
        if np.linalg.norm(residual - rows @ found.step) > _LEFT * np.linalg.norm(residual):
            return None
        if np.abs(found.step[: self.bodies.turning]).max(initial=0.0) > farthest:
            return None
        for share in _SHARES:
            met = self.state(self._moved(state.stance, share * found.step), state.pulls, state.closed)
            if np.linalg.norm(met.residual[chosen]) <= (1.0 - 0.5 * share) * np.linalg.norm(residual):
                return self._corrected(met, step, found, chosen) if share == 1.0 else met
        return None

    def _corrected(self, met: State, step: Step, found: Found, chosen: BoolArray) -> State:
        """The state after further steps along the same tangent, for as long as each halves what is missing."""
        for _ in range(_MOST_CORRECTIONS):
            residual = met.residual[chosen]
            if np.abs(residual).max() <= self.tolerance:
                break
            move = step.corrected(residual, found.closed)
            trial = self.state(self._moved(met.stance, move), met.pulls, met.closed)
            if np.linalg.norm(trial.residual[chosen]) > 0.5 * np.linalg.norm(residual):
                break
            met = trial
        return met

    def _tangent(self, state: State) -> tuple[Motions, FloatArray, FloatArray, FloatArray]:
        """The columns, (R, D) the goals' rows, and the posture's (D, D) matrix and (D,) slope."""
        motions = self.bodies.motions(state.stance)
        rows = self.goals.rows(self.bodies, state.stance, motions)
        return motions, rows, *self.posture.equations(state.away, state.stance, motions)

    def _moved(self, stance: Stance, step: FloatArray) -> Stance:
        """Where the bodies are after a step, inside their limits."""
        local, root = self.bodies.moved(stance, step)
        return self.bodies.stand(self.limits.clamped(local), root)


def _still_closed(sides: Sides, state: State) -> BoolArray:
    """(K,) the sides that the last step came up against."""
    return np.zeros(len(sides.keys), dtype=bool) if state.closed is None else np.isin(sides.keys, state.closed)
