"""Levenberg-Marquardt over frames: from a pose to the nearest one that meets its goals as well as possible.

Minimizes Σ weight · |residual|² over joint rotations, a free root's location and the lengths of sliding bones, inside
joint limits. Each frame has its own damping (Nielsen 1999) on scaled columns (Moré 1978). Limits are linear
inequalities of a step: a primal-dual active set (Hintermüller, Ito, Kunisch 2002) finds the active ones. A step beyond
their curved outlines is clamped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..arrays import (
    BLOCK_NUMBERS,
    CLOSE,
    ROUNDING,
    ROUNDS,
    SINGLE,
    TINY,
    BoolArray,
    FloatArray,
    IntArray,
    chosen,
    lengths,
    squares,
    times,
)
from ..fabrik.limbs import BendLimb
from ..kernel.bodies import Bodies, Motions, Pose, cross
from ..kernel.goals import Goals, State
from ..kernel.joint_limits import JointLimits, Sides
from ..model.effector import Frames

# A limb is straight if its middle is closer to its line than this fraction of its length: then no direction is defined.
CLEAR = 1e-3


class Poles:
    """P limbs that may have poles. Each rotates about the line from base to end until its middle points to the pole.

    The residual is the remaining angle, so it does not act against goals.

    Attributes:
        limbs: (P,).
        effectors: (P,) at which they end.
        sizes: (P,) units of length for a radian: a tenth of the limbs' lengths.
    """

    def __init__(self, bodies: Bodies, limbs: Sequence[BendLimb]) -> None:
        self.limbs, self._bodies = limbs, bodies
        self.effectors: IntArray = np.array([limb.effector for limb in limbs], dtype=np.int64)
        bones = bodies.skeleton.lengths[bodies.bones]
        self.sizes: FloatArray = np.array([0.1 * max(bones[list(limb.bodies)].sum(), TINY) for limb in limbs])

    def residual(self, pose: Pose, poles: FloatArray) -> FloatArray:
        """(F, P) the angles of P limbs to their poles (F, E, 3), in radians, times `sizes`; zero without a pole.

        An angle is from the limb's middle, about its line; it is reduced to zero if either is almost on the line.
        """
        result = np.zeros((len(pose.root), len(self.limbs)))
        for index in range(len(self.limbs)):
            axis, length, side, to_pole = self._frame(index, pose, poles)
            angle = np.arctan2((axis * cross(side, to_pole)).sum(axis=-1), (side * to_pole).sum(axis=-1))
            clear = np.minimum(lengths(side), lengths(to_pole)) / np.maximum(length * CLEAR, TINY)
            result[:, index] = np.where(np.isnan(angle) | (length <= TINY), 0.0, angle * np.minimum(clear, 1.0))
        return result * self.sizes

    def axis(self, index: int, pose: Pose) -> tuple[FloatArray, FloatArray]:
        """(F, 3) unit vectors from a limb's base to its end, and (F,) the distances."""
        limb = self.limbs[index]
        line = pose.points(np.array(limb.bodies[-1:]), limb.end[None])[:, 0] - pose.heads[:, limb.bodies[0]]
        length = lengths(line)
        return line / np.maximum(length, TINY)[:, None], length

    def rows(self, pose: Pose, motions: Motions, poles: FloatArray) -> FloatArray:
        """(F, P, D) reduction of the residual per unit of each column, if the line of the limb stays in place."""
        rows = np.zeros((len(pose.root), len(self.limbs), self._bodies.columns))
        for index, limb in enumerate(self.limbs):
            axis, _, side, to_pole = self._frame(index, pose, poles)
            middle = np.array(limb.middle)
            shifts = self._bodies.shifts(pose, motions, pose.heads[:, middle], middle)
            base = np.array(limb.bodies[:1])
            moved = (shifts - self._bodies.shifts(pose, motions, pose.heads[:, base], base)).sum(axis=1)
            about = cross(axis, side) / np.maximum((side * side).sum(axis=-1), TINY)[:, None]
            seen = ~np.isnan(to_pole).any(axis=-1) & (lengths(side) > TINY)
            rows[:, index] = np.where(seen[:, None], (about[:, None] @ moved)[:, 0], 0.0)
        return rows * self.sizes[:, None]

    def _frame(
        self, index: int, pose: Pose, poles: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """(F, 3) a limb's line, (F,) its length, and (F, 3) vectors to its middle and pole, perpendicular to it."""
        limb = self.limbs[index]
        base, (axis, length) = pose.heads[:, limb.bodies[0]], self.axis(index, pose)
        side = (pose.heads[:, list(limb.middle)] - base[:, None]).sum(axis=1)
        to_pole = poles[:, limb.effector] - base
        return axis, length, *(arm - axis * (arm * axis).sum(axis=-1, keepdims=True) for arm in (side, to_pole))


# The first damping: a pure number, since columns have a length of about one. With a tenth of it, a marker that had
# fallen off displaced a joint by 12 mm.
_FIRST = 1e-3
# Factors by Nielsen: the largest reduction of damping after a good step, and its growth after a bad one. The growth
# doubles with each additional bad step.
_EASE, _TIGHTEN = 1.0 / 3.0, 2.0
# A frame is stationary if no single joint can gain more than _OPTIMAL² of the cost.
_OPTIMAL = 3e-3
# A frame is also stationary after a step that was damped by at most _FIRST, if two fractions of the remaining cost are
# small: the gain of the next step, about error² / gain with the error of this step's prediction, is at most
# _PREDICTABLE; the gain that damping prevented is at most _OPTIMAL (otherwise a marker that had fallen off displaced
# a joint by 29 mm). Without expected rotations, limits may still change, so no single joint may gain more than
# NEARLY_OPTIMAL².
_PREDICTABLE, NEARLY_OPTIMAL = 1e-5, 0.03
# After a step that gained at most this fraction of the cost, the next one includes the derivative of the goals' forces
# (Newton's method). Farther away that matrix is often indefinite.
_NEAR_END = 0.1
# Radians: the largest rotation of a joint in a step, since the linear model is inaccurate beyond it. Limits farther
# away do not count. With 0.5, as in drags, a finger that follows a moving target jumps by 109 degrees.
_LONGEST_TURN = 0.7
# Weight of the squared angle between a limb and its pole: comparable to that of the goals.
_POLE_WEIGHT = 1e-2


class _Step(NamedTuple):
    """The steps of F frames.

    change: (F, D). predicted: (F,) the predicted gain. optimality: (F,) of the poses before the steps. kept_back: (F,)
    the gain that damping prevents, to first order.
    """

    change: FloatArray
    predicted: FloatArray
    optimality: FloatArray
    kept_back: FloatArray


class LeastSquares:
    """The least-squares problem of goals on bodies, with limits."""

    def __init__(self, bodies: Bodies, goals: Goals, limits: JointLimits, poles: Poles, slides: FloatArray) -> None:
        """Prepare the problem; slides: (2, S) min and max length factors of bodies that slide."""
        self.bodies, self.goals, self.limits, self.poles, self.slides = bodies, goals, limits, poles, slides
        self._pole_weight, self._slide = 0.0, False
        counts = [*bodies.counts[bodies.counts > 0], *[3] * bodies.free_root, *[1] * len(bodies.slides)]
        groups = np.repeat(np.arange(len(counts)), counts)
        # (D, G) 1 if a column belongs to a joint, else 0; (D, D) the map to the mean over the columns of a joint.
        self._groups = np.eye(len(counts))[groups]
        self._even = self._groups / np.array(counts) @ self._groups.T
        # Goals are kept as rows if there are fewer rows than columns.
        self._wide = 3 * (goals.count + len(goals.oriented)) < bodies.columns

    def run(self, state: State, most_steps: int, *, bending: bool = False, slide: bool = False) -> None:
        """Improve the frames in place until each is solved, is stationary, or has had `most_steps` steps.

        bending: whether limbs first bend toward their poles. Poles are then ignored, so that goals are met exactly.
        slide: whether lengths may change.
        """
        self._slide = slide and len(self.bodies.slides) > 0
        if bending:
            self._pole_weight = _POLE_WEIGHT
            self._improve(state, most_steps)
            state.stationary[:] = False
        self._pole_weight = 0.0
        self._improve(state, most_steps)

    def _improve(self, state: State, most_steps: int) -> None:
        bodies, open_frames, part = self.bodies, np.arange(len(state.weights)), state
        away = self._away(part)
        damping, growth = np.full(len(open_frames), _FIRST), np.full(len(open_frames), _TIGHTEN)
        curved = np.zeros(len(open_frames), dtype=bool)
        for _ in range(most_steps):
            is_going = self.unfinished(part, away) & ~part.stationary
            if not is_going.all():
                going = np.flatnonzero(is_going)
                if part is not state:
                    state.put(open_frames, part)
                if not len(going):
                    return
                open_frames, part, away = open_frames[going], part.part(going), away[going]
                damping, growth, curved = damping[going], growth[going], curved[going]
            cost = self._cost(part, away)
            step = self._step(part, away, cost, damping, curved)
            local, root = bodies.moved(part.pose, step.change)
            pose = bodies.pose(self.limits.clamped(local), root, self._new_factors(part.pose.factors, step.change))
            trial = replace(part, pose=pose, residual=self.goals.residual(pose, part.wanted))
            left = self._away(trial)
            gained = cost - self._cost(trial, left)
            better = gained > 0.0
            worse = np.flatnonzero(~better)
            if len(worse):
                trial.put(worse, part.part(worse))
                left[worse] = away[worse]
            part, away = trial, left
            left_over = cost - gained
            settled = (gained - step.predicted) ** 2 <= _PREDICTABLE * gained * left_over
            settled &= (damping <= _FIRST) & (step.kept_back <= _OPTIMAL * left_over)
            if part.prior is None:
                settled &= step.optimality <= NEARLY_OPTIMAL
            at_rest = settled | (step.optimality <= _OPTIMAL)
            part.stationary |= (better & at_rest) | (step.optimality <= SINGLE) | (SINGLE * damping > 1.0)
            part.iterations += 1
            ratio = gained / np.maximum(step.predicted, TINY)
            eased = np.maximum(damping * np.maximum(1.0 - (2.0 * ratio - 1.0) ** 3, _EASE), SINGLE)
            damping = np.where(better, eased, damping * growth)
            curved = better & (gained <= _NEAR_END * cost)
            growth = np.where(better, _TIGHTEN, 2.0 * growth)
        if part is not state:
            state.put(open_frames, part)

    def optimality(self, state: State) -> FloatArray:
        """(F,) the gain that is left for rotations of a single joint inside its limit, from 0 to 1.

        0: no gain. 1: one joint could remove the whole residual. The square is the fraction of the cost that one joint
        could remove.
        """
        self._pole_weight, self._slide = 0.0, False
        away, frames = self._away(state), len(state.weights)
        damping, curved = np.full(frames, _FIRST), np.zeros(frames, dtype=bool)
        return self._step(state, away, self._cost(state, away), damping, curved).optimality

    def _away(self, state: State) -> FloatArray:
        """(F, P) residuals of poles; (F, 0) if poles are not used."""
        return self.poles.residual(state.pose, state.bend) if self._pole_weight else np.zeros((len(state.weights), 0))

    def _cost(self, state: State, away: FloatArray) -> FloatArray:
        return state.cost() + self._pole_weight * squares(away) if self._pole_weight else state.cost()

    def unfinished(self, state: State, away: FloatArray) -> BoolArray:
        """(F,) whether a goal is missed, a limb is off its pole by `away` (F, P), or rotations are expected."""
        if state.prior is not None:
            return np.ones(len(away), dtype=bool)
        off = np.abs(away) > CLOSE * self.poles.sizes[: away.shape[1]]
        return np.asarray(state.unmet() | off.any(axis=1))

    def _new_factors(self, factors: FloatArray | None, step: FloatArray) -> FloatArray | None:
        if factors is None or not self._slide:
            return factors
        slides, result = self.bodies.slides, factors.copy()
        result[:, slides] = np.clip(factors[:, slides] + step[:, -len(slides) :], *self.slides)
        return result

    def _step(self, state: State, away: FloatArray, cost: FloatArray, damping: FloatArray, curved: BoolArray) -> _Step:
        """The step for each frame's damping, in blocks whose matrices stay in the cache."""
        count, columns = len(cost), self.bodies.columns
        if not columns:
            return _Step(np.zeros((count, 0)), np.zeros(count), np.zeros(count), np.zeros(count))
        rows = 3 * state.residual.shape[1] if self._wide else columns
        block = max(1, BLOCK_NUMBERS // (columns * rows))
        # Frames whose step includes the derivative of forces have larger matrices, so they get separate blocks.
        kinds = np.flatnonzero(~curved), np.flatnonzero(curved)
        blocks = [kind[first : first + block] for kind in kinds for first in range(0, len(kind), block)]
        if len(blocks) == 1:
            return self._block_step(state, away, cost, damping, bool(curved[0]))
        steps = [
            self._block_step(state.part(part), away[part], cost[part], damping[part], bool(curved[part[0]]))
            for part in blocks
        ]
        order = np.argsort(np.concatenate(blocks))
        return _Step(*(np.concatenate(each)[order] for each in zip(*steps, strict=True)))

    def _block_step(self, state: State, away: FloatArray, cost: FloatArray, damping: FloatArray, curved: bool) -> _Step:
        system, bodies = self._system(state, away, curved), self.bodies
        gradient = system.gradient()
        sides = self.limits.sides(state.pose.local, _LONGEST_TURN + CLOSE)
        active = sides.push(bodies.vectors(gradient)) > ROUNDING * np.sqrt(cost)[sides.frames]
        active &= sides.gaps <= CLOSE
        change, pushes = self._constrained_step(system, damping, sides, active)
        for _ in range(ROUNDS if len(sides.gaps) else 0):
            now = sides.push(bodies.vectors(change * system.scale)) - sides.gaps > CLOSE
            now[active] = pushes > 0.0
            changed = np.zeros(len(cost), dtype=bool)
            changed[sides.frames[now != active]] = True
            where = np.flatnonzero(changed)
            if not len(where):
                break
            own = changed[sides.frames]
            kept = pushes[~own[active]]
            active = np.where(own, now, active)
            few = chosen(sides, own)
            few = few._replace(frames=(np.cumsum(changed) - 1)[few.frames])
            change[where], found = self._constrained_step(system.part(where), damping[where], few, active[own])
            pushes = np.empty(active.sum())
            pushes[own[active]], pushes[~own[active]] = found, kept
        balance = system.times(change) + damping[:, None] * change
        own = np.sqrt(np.maximum(times(self._even, system.squares), SINGLE))
        largest = np.sqrt(((balance / own) ** 2 @ self._groups).max(axis=1))
        step = change * system.scale
        longest = lengths(bodies.vectors(step)).max(axis=1)
        share = np.minimum(1.0, _LONGEST_TURN / np.maximum(longest, _LONGEST_TURN))[:, None]
        change *= share
        predicted = ((2.0 * gradient - system.times(change)) * change).sum(axis=1)
        return _Step(step * share, predicted, largest / np.sqrt(np.maximum(cost, TINY)), damping * squares(change))

    def _constrained_step(
        self, system: "_System", damping: FloatArray, sides: Sides, active: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """(F, D) the scaled step that ends at the active sides (K,), and (A,) their pushes (multipliers).

        The range-space method: Nocedal & Wright, *Numerical Optimization*, 2006, section 16.2.
        """
        pull, which = system.gradient()[..., None], np.flatnonzero(active)
        if not len(which):
            return system.solve(damping, pull)[..., 0], np.zeros(0)
        held = chosen(sides, which)
        rows, gaps = held.rows(self.bodies, len(damping))
        rows *= system.scale[:, None]
        found = system.solve(damping, np.concatenate([pull, np.swapaxes(rows, 1, 2)], axis=2))
        step, each = found[..., 0], found[..., 1:]
        across = rows @ each
        # Sides may be equal, such as the two of a hinge without a range.
        diagonal = np.einsum("fii->fi", across)
        diagonal += np.where(diagonal > 0.0, ROUNDING * diagonal, 1.0)
        beyond = np.where(np.isfinite(gaps), times(rows, step) - gaps, 0.0)
        pushes = np.linalg.solve(across, beyond[..., None])
        return step - (each @ pushes)[..., 0], pushes[held.frames, held.places(), 0]

    def _system(self, state: State, away: FloatArray, curved: bool) -> "_System":
        """The linear problem of a step in scaled columns. Slides that are pulled beyond their range are locked."""
        bodies, goals, pose, prior = self.bodies, self.goals, state.pose, state.prior
        motions = bodies.motions(pose)
        residual = state.residual
        wide = self._wide and prior is None and not (self._pole_weight or curved)
        # If possible, the matrix is computed from its factors, after the scale of its columns is known.
        factored = goals.is_composite and not (wide or self._pole_weight)
        if factored:
            left, factor, right = goals.factors(pose, motions, residual, state.weights)
            squares = (left * factor).sum(axis=-1)
        else:
            root = np.sqrt(state.weights)[..., None]
            matrix = (goals.rows(pose, motions, state.wanted) * root[..., None]).reshape(
                len(residual), -1, bodies.columns
            )
            right = (residual * root).reshape(len(residual), -1)
            if not wide:
                across = np.swapaxes(matrix, 1, 2)
                matrix, right = across @ matrix, times(across, right)
            if self._pole_weight:
                rows = self.poles.rows(pose, motions, state.bend)
                across = self._pole_weight * np.swapaxes(rows, 1, 2)
                matrix, right = matrix + across @ rows, right + times(across, away)
            squares = (matrix**2).sum(axis=1) if wide else np.array(np.einsum("fii->fi", matrix))
        held = np.zeros_like(squares)
        if prior is not None:
            turning = bodies.body_of[: bodies.turning]
            pulls = (prior.away(pose.local)[:, turning] * bodies.axes).sum(axis=-1)
            held[:, : bodies.turning] = prior.weights[:, turning]
            right[:, : bodies.turning] += held[:, : bodies.turning] * pulls
            squares += held
        # A joint is scaled by the mean of two squared lengths: that of its own columns, and the mean over all joints
        # that move a goal. With the first alone, poses far from their targets took 1.8 times the steps; with the
        # second, 1 % needed a restart.
        even = times(self._even, squares)
        joints = even[:, : bodies.turning]
        joints += joints.sum(axis=1, keepdims=True) / np.maximum((joints > 0.0).sum(axis=1, keepdims=True), 1)
        joints *= 0.5
        least = ROUNDING * even.max(axis=1, keepdims=True) + TINY
        scale = 1.0 / np.sqrt(np.maximum(even, least))
        if len(bodies.slides) and pose.factors is not None:
            pull = (times(np.swapaxes(matrix, 1, 2), right) if wide else right)[:, -len(bodies.slides) :]
            factors, (low, high) = pose.factors[:, bodies.slides], self.slides
            locked = (not self._slide) | ((factors <= low) & (pull <= 0.0)) | ((factors >= high) & (pull >= 0.0))
            scale[:, -len(bodies.slides) :] *= ~locked
        if wide:
            return _System(matrix * scale[:, None], right, scale, squares * scale**2, wide)
        if curved and not self._slide:
            forces = goals.forces(residual * state.weights[..., None])
            bent = bodies.stiffness_factor(pose, motions, goals.points(pose), goals.on, forces)
            if factored:
                left, factor = np.concatenate([left, motions[0]], axis=-1), np.concatenate([factor, -bent], axis=-1)
            else:
                matrix -= bodies.symmetric(motions[0] @ np.swapaxes(bent, 1, 2))
        if factored:
            matrix = bodies.symmetric((left * scale[..., None]) @ np.swapaxes(factor * scale[..., None], 1, 2))
        else:
            matrix *= scale[:, :, None] * scale[:, None]
        np.einsum("fii->fi", matrix)[...] += held * scale**2
        return _System(matrix, right * scale, scale, squares * scale**2, wide)


@dataclass(frozen=True)
class _System(Frames):
    """min |r - J S y|² in columns scaled by S, on F frames.

    Attributes:
        matrix: (F, D, D) S JᵀJ S, or if `wide` (F, R, D) J S with fewer rows than columns.
        right: (F, D) S Jᵀ r, or if `wide` (F, R) r.
        scale: (F, D) the diagonal of S.
        squares: (F, D) squared lengths of the columns of J S.
        wide: which of the two forms is stored.
    """

    matrix: FloatArray
    right: FloatArray
    scale: FloatArray
    squares: FloatArray
    wide: bool

    def gradient(self) -> FloatArray:
        """(F, D) S Jᵀ r."""
        return times(np.swapaxes(self.matrix, 1, 2), self.right) if self.wide else self.right

    def times(self, y: FloatArray) -> FloatArray:
        """(F, D) S JᵀJ S y."""
        moved = times(self.matrix, y)
        return times(np.swapaxes(self.matrix, 1, 2), moved) if self.wide else moved

    def solve(self, damping: FloatArray, pulls: FloatArray) -> FloatArray:
        """(F, D, K) the y with (S JᵀJ S + damping) y = pulls (F, D, K), for damping (F,)."""
        matrix, damping = self.matrix, (damping + TINY)[:, None]
        square = matrix @ np.swapaxes(matrix, 1, 2) if self.wide else matrix.copy()
        np.einsum("fii->fi", square)[...] += damping
        if not self.wide:
            return np.asarray(np.linalg.solve(square, pulls))
        # Woodbury's identity.
        across = np.linalg.solve(square, matrix @ pulls)
        return np.asarray((pulls - np.swapaxes(matrix, 1, 2) @ across) / damping[..., None])
