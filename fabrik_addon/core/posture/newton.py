"""Single steps from a stance: toward goals and posture in balance, and onto the goals."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..arrays import ROUNDING, BoolArray, FloatArray, IntArray, lengths
from ..kernel.bodies import Bodies, Motions, Pose
from ..kernel.bounds import Bounds
from ..kernel.joint_limits import ConstraintRows, JointLimits
from ..kernel.posture import Away, PostureTerm
from ..optimize.quadratic import Step
from .goals import Goals

# What the posture weighs beside goals of weight 1; between 1e-3 and 1e-2 the poses are much the same.
POSTURE = 3e-3
# Shares of the body's size: of its pull a goal keeps what is beyond the first, up to the second, while nothing of it is
# missing, and is short of its target by the rest. So a pull grows step by step until the goal is met, and beyond the
# most the goal is let go, as far as it would pull harder: without steps between the two the body swings over, 60 mm and
# more, and turns back and forth. With a most of 0.025, 0.03 and 0.04 a hand led out of reach and back is met on 175,
# 183 and 197 of 271 steps; with 0.035 and more live hips that come up again to straight legs are late. Less than the
# least decides nothing, but along a straight limb, where it would never be lost again.
_LEAST_PULL, _MOST_PULL = 5e-4, 0.03
# Where a step leaves more than this share of what is missing, a limb is rigid: an arm that is stretched or straight.
_RIGID = 0.8
# Mass that is added to the matrix until it is positive, in shares of the posture's, and how clearly positive: where it
# hardly is, a twist that moves no goal would go round and round.
_MORE_MASS, _CLEARLY = (0.0, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0), 0.5
# By how much a row that comes first gives way to a force of a metre of a goal: what a millimetre is to a person.
_YIELDING = 1e-5
# The same for all goals in the second part, for those that come first and for the others, where masses alone count.
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
# Radians: as long as no joint turns farther for it, goals are met along the tangent of the step that came near to them.
# Of a hand led out of reach and back, with 0.2, 0.03, 0.01 and 0.003: bones turn back on 10, 3, 0 and 0 steps.
_NEAR_TURN = 0.01
# A share of the longest path: goals are met to this.
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Tangent:
    """What is near a state.

    Attributes:
        rows: (R, D) of the goals. mass: (D, D) the posture's matrix, and slope: (D,) its gradient.
        sides: those that a step could pass, and pushes: (K,) how hard they pushed back in the last step.
        compliance: (R,) by how much rows give way where masses alone count.
    """

    motions: Motions
    rows: FloatArray
    mass: FloatArray
    slope: FloatArray
    sides: ConstraintRows
    pushes: FloatArray
    compliance: FloatArray

    @property
    def closed(self) -> BoolArray:
        """(K,) whether the last step came up against each."""
        return np.asarray(self.pushes > 0.0)

    @cached_property
    def onto(self) -> Step:
        """The least mass moved to meet goals."""
        return Step(self.mass, np.zeros(len(self.mass)), self.rows, self.compliance, self.sides, self.closed)


class Closed(NamedTuple):
    """ConstraintRows that a step came up against: their keys (N,), and how hard they pushed back (N,)."""

    keys: IntArray
    pushes: FloatArray

    def of(self, sides: ConstraintRows) -> FloatArray:
        """(K,) how hard each of the sides pushed back, zero where it did not."""
        return np.asarray((sides.keys[:, None] == self.keys) @ self.pushes)


NOTHING_CLOSED = Closed(np.zeros(0, dtype=np.int64), np.zeros(0))


class Way(NamedTuple):
    """The tangent along which a step led to a state, and which of its sides (K,) it came up against.

    turned: radians that the joint that turned farthest did.
    """

    tangent: Tangent
    closed: BoolArray
    turned: float = 0.0


@dataclass(frozen=True)
class State:
    """A stance, what its goals are short of (R,), and how far it is from the preferred one.

    Attributes:
        pulls: (R,) the forces along the goals' rows in the step that led here.
        closed: the keys (N,) of sides that it came up against, and how hard (N,) those pushed back.
        way: that step, where it begins at the pose before.
    """

    stance: Pose
    residual: FloatArray
    away: Away
    pulls: FloatArray
    closed: Closed
    way: Way | None = None


class Newton:
    """The steps of one body for its goals, inside its limits and bounds, near a preferred pose.

    tangents: how many have been worked out.
    """

    def __init__(self, bodies: Bodies, goals: Goals, limits: JointLimits, bounds: Bounds, posture: PostureTerm) -> None:
        self.bodies, self.goals, self.limits, self.bounds, self.posture = bodies, goals, limits, bounds, posture
        self.tolerance = _TOLERANCE * float(goals.lengths.max())
        # By how much rows give way: (H,) those that come first in the first part, and (R,) all in the second one.
        self._yielding = np.full(np.count_nonzero(goals.hard), _YIELDING)
        self._met = np.where(goals.hard, _MET_FIRST, _MET)
        self._begun: tuple[State, Tangent] | None = None
        self.tangents = 0
        bounds.prefer(posture)

    def state(
        self,
        stance: Pose,
        pulls: FloatArray | None = None,
        closed: Closed = NOTHING_CLOSED,
        way: Way | None = None,
    ) -> State:
        """All that is known of a stance. Where no step led to it, goals pull by what they are short of."""
        residual = self.goals.residual(stance)
        pulls = np.where(self.goals.hard, 0.0, residual) if pulls is None else pulls
        return State(stance, residual, self.posture.away(stance), pulls, closed, way)

    def is_met(self, state: State, chosen: BoolArray, tolerances: float) -> bool:
        """Whether some of the rows are, to so many tolerances."""
        return bool(np.abs(state.residual[chosen]).max(initial=0.0) <= tolerances * self.tolerance)

    def step(self, state: State, damping: float, most: float) -> tuple[State, float]:
        """The state after a step in which no joint turns by more than the most radians, and what the farthest would."""
        hard, residual, tangent = self.goals.hard, state.residual, self._tangent(state)
        rows, mass, sides, held = tangent.rows, tangent.mass, tangent.sides, self.held(state)
        # Rows that come first count here as well: it changes nothing where they are met, and makes the matrix positive.
        bounds = self.bounds.support_rows(state.stance, tangent.motions, state.away)
        on_bounds = state.closed.of(bounds)
        matrix = self._curved(rows.T @ rows + (POSTURE + damping) * mass, tangent, state, on_bounds, damping)
        slope = rows.T @ (residual + held) - POSTURE * tangent.slope
        all_sides = ConstraintRows.joined([sides, bounds])
        still = np.concatenate([tangent.closed, on_bounds > 0.0])
        step = Step(matrix, slope, rows[hard], self._yielding, all_sides, still)
        found = step.solve(residual[hard])
        longest = float(np.abs(found.step[: self.bodies.turning]).max(initial=0.0))
        pulls = self._pulls(residual, residual - rows @ found.step, held)
        pulls[hard] = found.forces
        share = min(1.0, min(most, _LONGEST_TURN) / max(longest, ROUNDING))
        stance = self._moved(state.stance, share * found.step)
        closed = Closed(all_sides.keys[found.closed], found.pushes[found.closed])
        way = Way(tangent, found.closed[: len(sides.gaps)], share * longest)
        trial = self.state(stance, pulls, closed, way)
        for _ in range(_MOST_BACK):
            if self.is_met(trial, hard, _NEARLY):
                break
            # What comes first curvatures away from its tangent: back onto it.
            move = step.back(found.closed) @ trial.residual[hard]
            trial = self.state(self._moved(trial.stance, move), pulls, closed, trial.way)
        return trial, longest

    def held(self, state: State) -> FloatArray:
        """(R,) what goals pull with though nothing of them is missing.

        The multipliers of an augmented Lagrangian (Hestenes 1969, Powell 1969), kept within a bound: goals then cost
        their distance besides its square, an exact penalty, and are met until they would have to pull harder.
        """
        sizes, size = self._pulling(state)[:, None], self.posture.size
        kept = np.clip(sizes - _LEAST_PULL * size, 0.0, _MOST_PULL * size)
        return np.asarray((state.pulls.reshape(-1, 3) * kept / np.maximum(sizes, ROUNDING)).ravel())

    def _pulls(self, residual: FloatArray, short: FloatArray, held: FloatArray) -> FloatArray:
        """(R,) how goals pull that a step leaves short by so much.

        What a rigid limb has taken beyond its target is not held on to: the limb would first bend once all is lost.
        """
        before, each, own = residual.reshape(-1, 3), short.reshape(-1, 3), held.reshape(-1, 3)
        beyond = ((each * own).sum(axis=1) < 0.0) & (lengths(each) > _RIGID * lengths(before))
        beyond &= lengths(own) > 0.5 * _MOST_PULL * self.posture.size
        return np.asarray(np.where(beyond[:, None], each, each + own).ravel())

    def lets_go(self, state: State) -> bool:
        """Whether some goal would have to pull harder than it may."""
        return bool(self._pulling(state).max(initial=0.0) > (_LEAST_PULL + _MOST_PULL) * self.posture.size)

    def _pulling(self, state: State) -> FloatArray:
        """(E + O,) how hard goals pull, but for those that come first."""
        return lengths(np.where(self.goals.hard, 0.0, state.pulls).reshape(-1, 3))

    def cost(self, state: State, before: State) -> float:
        """What is to become less: goals, posture, and whatever comes first, at a price that no goal can pay."""
        hard = self.goals.hard
        soft, first = (state.residual + self.held(before))[~hard], state.residual[hard]
        price = 2.0 * max(float(np.linalg.norm(before.residual[~hard])), 0.1)
        bounds = self.bounds.cost(state.stance, state.away, price)
        posture = POSTURE * self.posture.value(state.away)
        missing = max(float(np.linalg.norm(first)) - _NEARLY * self.tolerance, 0.0)
        return 0.5 * float(soft @ soft) + posture + price * missing + bounds

    def _curved(
        self, matrix: FloatArray, tangent: Tangent, state: State, on_bounds: FloatArray, damping: float
    ) -> FloatArray:
        """The Gauss-Newton matrix with what the present forces add to it, and as much mass as makes it positive.

        Where none does, it is without those forces at first, which leads near to what is in reach; once that was of no
        use and steps are damped, it is made positive otherwise.
        """
        stance, posture, goals, mass = state.stance, self.posture, self.goals, tangent.mass
        on_masses = self.bounds.support_forces(on_bounds) - POSTURE * posture.pulls(state.away)
        curvature = self.bodies.stiffness(
            stance,
            tangent.motions,
            np.concatenate([goals.points(stance), state.away.centres]),
            np.concatenate([goals.on, posture.carrier]),
            np.concatenate([goals.forces(state.pulls), on_masses]),
        )
        curvature -= tangent.sides.curvature(tangent.pushes)
        for more in _MORE_MASS:
            curved = matrix - curvature + more * POSTURE * mass
            try:
                np.linalg.cholesky(curved - _CLEARLY * POSTURE * mass)
            except np.linalg.LinAlgError:
                continue
            return curved
        return made_positive(matrix - curvature, mass) if damping > 0.0 else matrix

    def nearer(self, state: State, chosen: BoolArray, farthest: float) -> State | None:
        """The state with less missing of some of the rows, along one tangent; None where it promises too little."""
        tangent, residual = self._tangent(state), state.residual[chosen]
        found = tangent.onto.solve(residual, chosen)
        if self._promises_little(residual, tangent.rows[chosen], found.step, farthest):
            return None
        for share in _SHARES:
            way = Way(tangent, found.closed)
            met = self.state(self._moved(state.stance, share * found.step), state.pulls, state.closed, way)
            if np.linalg.norm(met.residual[chosen]) <= (1.0 - 0.5 * share) * np.linalg.norm(residual):
                return self._corrected(met, chosen, tangent.onto.back(found.closed, chosen)) if share == 1.0 else met
        return None

    def corrected(self, state: State, chosen: BoolArray, tolerances: float) -> State:
        """The state with some of the rows met by further steps along the tangent that led to it, if those meet them.

        For one that lies a move of the mouse away, that is enough; a new tangent takes as long as the step itself.
        """
        # A turn takes what it moves off its tangent by half its square.
        if state.way is None or 0.5 * state.way.turned**2 > _NEAR_TURN or self.is_met(state, chosen, 1.0):
            return state
        residual, tangent = state.residual[chosen], state.way.tangent
        back = tangent.onto.back(state.way.closed, chosen)
        if self._promises_little(residual, tangent.rows[chosen], back @ residual, _NEAR_TURN):
            return state
        met = self._corrected(state, chosen, back)
        return met if self.is_met(met, chosen, tolerances) else state

    def _promises_little(self, residual: FloatArray, rows: FloatArray, step: FloatArray, farthest: float) -> bool:
        """Whether a step leaves much of what is missing of some rows, or turns a joint farther than so many radians."""
        left, turned = float(np.linalg.norm(residual - rows @ step)), np.abs(step[: self.bodies.turning])
        return left > _LEFT * float(np.linalg.norm(residual)) or float(turned.max(initial=0.0)) > farthest

    def _corrected(self, state: State, chosen: BoolArray, back: FloatArray) -> State:
        """The state after steps along the tangent that led to it, for as long as each halves what is missing.

        back: (D, n) the steps that meet each of the chosen rows.
        """
        for _ in range(_MOST_CORRECTIONS):
            residual = state.residual[chosen]
            if self.is_met(state, chosen, 1.0):
                break
            trial = self.state(self._moved(state.stance, back @ residual), state.pulls, state.closed, state.way)
            if np.linalg.norm(trial.residual[chosen]) > 0.5 * np.linalg.norm(residual):
                break
            state = trial
        return state

    def _tangent(self, state: State) -> Tangent:
        """What is near a state; it is worked out once for all steps that begin there."""
        if self._begun is None or self._begun[0] is not state:
            stance, motions = state.stance, self.bodies.motions(state.stance)
            rows = self.goals.rows(self.bodies, stance, motions)
            mass, slope = self.posture.equations(state.away, stance, motions)
            floor = self.bounds.floor_rows(stance, motions, _NEAR_THE_FLOOR * self.posture.size)
            sides = ConstraintRows.joined([self.limits.rows(stance.local, _LONGEST_TURN), floor])
            pushes = state.closed.of(sides)
            self.tangents += 1
            self._begun = state, Tangent(motions, rows, mass, slope, sides, pushes, self._met)
        return self._begun[1]

    def _moved(self, stance: Pose, step: FloatArray) -> Pose:
        """Where the bodies are after a step, inside their limits."""
        local, root = self.bodies.moved(stance, step)
        return self.bodies.pose(self.limits.clamped(local), root)


def made_positive(curved: FloatArray, mass: FloatArray) -> FloatArray:
    """(D, D) a matrix with the ways along which it is not clearly positive turned over, the ways measured by mass.

    For what no mass makes positive: far out of reach goals pull so hard that without it five steps of six led nowhere.
    After Dauphin et al. (*Identifying and attacking the saddle point problem*, NeurIPS 2014). In reach it is no good
    instead of the mass: steps along what is hardly bent overshoot, and bones turn back and forth.
    """
    root = np.linalg.cholesky(mass)
    by_mass = np.linalg.solve(root, np.linalg.solve(root, curved).T)
    curvatures, ways = np.linalg.eigh(by_mass)
    ways, least = root @ ways, _CLEARLY * POSTURE
    return np.asarray((ways * np.where(curvatures < least, np.maximum(-curvatures, least), curvatures)) @ ways.T)
