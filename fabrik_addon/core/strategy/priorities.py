"""Priorities: effectors in groups that are solved one after the other (the paper's section 4.2), the first ones first.

When all targets can be met the order does not matter. When they cannot, the pose that compromises between them is
where the groups begin: each is brought as near as the ones before it let it, and these stay where they are.
"""

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..problem import Problem
from ..state import Start, State
from .attempt import attempt, local_rotations, slides_at_rest

# What a group counts beside the ones before it: so little that they barely give way, so much that it gets anywhere.
_GRADE = 1e-4


def meet_groups(problem: Problem, start: Start, state: State) -> None:
    """Where not all is met, meet the groups in order: from the present pose, and if need be from the start."""
    if not (problem.residuals.last_rank and problem.options.finish):
        return
    frames = np.flatnonzero(state.unmet(state.errors(problem.bodies)))
    if not len(frames):
        return
    part = state.part(frames)
    _in_order(problem, part)
    state.replace(frames, part)
    again = np.flatnonzero((_costs(problem, part)[:, :-1] > 0.0).any(axis=1))
    if len(again):
        _first_group_first(problem, start, state, frames[again])
    # A group barely gives way to those after it: so the status is judged, too.
    state.weights[frames] *= _GRADE**problem.residuals.ranks


def _first_group_first(problem: Problem, start: Start, state: State, frames: IntArray) -> None:
    """Solve some frames anew from their start pose, the first group by itself before the others join in."""
    before = state.part(frames)
    part = before.part(np.arange(len(frames)))
    weights, part.weights = part.weights, part.weights * _only(problem, 0)
    part.local = local_rotations(problem, start.rotations[frames])
    part.root = problem.backend.vector(start.roots[frames])
    part.factors = slides_at_rest(problem, len(frames))
    attempt(problem, part)
    part.weights = weights
    _in_order(problem, part)
    better = np.flatnonzero(_no_worse(problem, part, before))
    state.replace(frames[better], part.part(better))


def _in_order(problem: Problem, state: State) -> None:
    """Bring each group as near to its targets as those before it let it, in place.

    On the way back what the earlier ones have given way is made good.
    """
    ranks, last = problem.residuals.ranks, problem.residuals.last_rank
    least_squares = problem.sliding_least_squares or problem.least_squares
    own, stationary = state.weights, state.stationary
    for group in (*range(last + 1), *reversed(range(last))):
        shares = np.where(ranks < group, 1.0, _only(problem, group) * (_GRADE if group else 1.0))
        state.weights = own * shares
        state.stationary[:] = False
        least_squares.run(state)
        stationary = state.stationary.copy() if group == last else stationary
    state.weights, state.stationary = own, stationary


def _no_worse(problem: Problem, state: State, than: State) -> BoolArray:
    """(F,) whether the first group that differs is nearer to its targets; met is met."""
    mine, others = _costs(problem, state), _costs(problem, than)
    differ = mine != others
    first = differ.argmax(axis=1)[:, None]
    less = np.take_along_axis(mine < others, first, axis=1)[:, 0]
    return np.asarray(less | ~differ.any(axis=1))


def _only(problem: Problem, group: int) -> FloatArray:
    """(M,) 1 for what is in a group."""
    return np.asarray(problem.residuals.ranks == group, dtype=np.float64)


def _costs(problem: Problem, state: State) -> FloatArray:
    """(F, G) Σ weight · distance² of each group, without what is within its tolerance."""
    errors = state.errors(problem.bodies)
    missed = np.where(errors > state.tolerances, state.weights * errors**2, 0.0)
    groups = range(problem.residuals.last_rank + 1)
    return np.stack([(missed * _only(problem, group)).sum(axis=1) for group in groups], axis=1)
