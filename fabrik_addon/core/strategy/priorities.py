"""Priorities: groups of effectors are solved one after the other (the paper's section 4.2), the lowest numbers first.

If all targets can be met the order does not matter. If not, the groups begin at the pose that compromises between them:
each is brought as near as the groups before it allow, and these stay where they are.
"""

import numpy as np

from ..arrays import FloatArray, IntArray, lengths
from ..attempt import attempt
from ..problem import Problem
from ..state import Start, State

# Weight of a group relative to the one before it: small enough that the first hardly gives way, large enough to be
# effective.
_GRADE = 1e-4


def meet_groups(problem: Problem, start: Start, state: State) -> None:
    """If goals are missed, meet the groups in order, from the current pose and if necessary from the start."""
    last = int(problem.ranks.max())
    if not (last and problem.options.finish):
        return
    frames = np.flatnonzero(state.unmet())
    if not len(frames):
        return
    part = state.part(frames)
    _in_order(problem, part, last)
    state.put(frames, part)
    again = np.flatnonzero((_costs(problem, part)[:, :-1] > 0.0).any(axis=1))
    if len(again):
        _first_group_first(problem, start, state, frames[again], last)
    # A group gives way slightly to later ones, so the status is judged with these weights.
    state.weights[frames] *= _GRADE**problem.ranks


def _first_group_first(problem: Problem, start: Start, state: State, frames: IntArray, last: int) -> None:
    """Solve some frames from their start pose, the first group alone before the others join."""
    before = state.part(frames)
    part = state.part(frames)
    weights, part.weights = part.weights, part.weights * (problem.ranks == 0)
    part.pose = problem.bodies.pose(start.rotations[frames][:, problem.bones], start.roots[frames], _rest_factors(part))
    part.residual = problem.goals.residual(part.pose, part.wanted)
    attempt(problem, part)
    part.weights = weights
    _in_order(problem, part, last)
    mine, others = _costs(problem, part), _costs(problem, before)
    differ = mine != others
    first = differ.argmax(axis=1)[:, None]
    less = np.take_along_axis(mine < others, first, axis=1)[:, 0]
    better = np.flatnonzero(less | ~differ.any(axis=1))
    state.put(frames[better], part.part(better))


def _rest_factors(state: State) -> FloatArray | None:
    return None if state.pose.factors is None else np.ones_like(state.pose.factors)


def _in_order(problem: Problem, state: State, last: int) -> None:
    """Bring each group as near to its targets as the groups before it allow, in place.

    A second round in reverse order restores targets that earlier groups have lost.
    """
    least_squares, most = problem.sliding or problem.least_squares, problem.options.most_steps
    own, stationary = state.weights, state.stationary
    for group in (*range(last + 1), *reversed(range(last))):
        grades = np.where(problem.ranks < group, 1.0, (problem.ranks == group) * (_GRADE if group else 1.0))
        state.weights = own * grades
        state.stationary[:] = False
        least_squares.run(state, most)
        stationary = state.stationary.copy() if group == last else stationary
    state.weights, state.stationary = own, stationary


def _costs(problem: Problem, state: State) -> FloatArray:
    """(F, G) Σ weight · distance² of each group, without targets within their tolerance."""
    errors = lengths(state.residual)
    missed = np.where(errors > state.tolerances, state.weights * errors**2, 0.0)
    return np.asarray(missed @ (problem.ranks[:, None] == np.arange(problem.ranks.max() + 1)))
