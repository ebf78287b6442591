"""Poses of neighbouring frames that are folded differently though the markers are where they were, made alike."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

import numpy as np

from ...core import Solution
from ...core.arrays import IntArray
from ...core.rotations import angle_between
from ..clip import FloatArray

# Solves some frames (N,) from the poses of others (N,): what is found, and (N,) Σ weight · distance² of it.
Resolve = Callable[[IntArray, IntArray], tuple[Solution, FloatArray]]

# A bone that turns by more than this (radians) from one frame to the next may have been folded anew.
_JUMP: Final = np.pi / 3.0
# The other fold is as good where it costs no more than this; markers of noise differ by as much from frame to frame.
_NO_WORSE: Final = 1.05
# As a share of a jump, what has to be left of it at the most for a change of folds to be worth it.
_SMOOTHER: Final = 0.5
# So many frames on a side of a jump may be folded anew: two seconds of them.
_MOST: Final = 30


def unfold(found: Solution, costs: FloatArray, resolve: Resolve) -> None:
    """Carry poses over jumps, in place: from the longer stretch without one into the shorter, else the other way.

    found: K frames of a recording, some way apart. costs: (K,) Σ weight · distance². resolve: solves from near.
    """
    refused: set[tuple[int, int]] = set()
    for _ in range(_MOST):
        turns = angle_between(found.rotations[1:], found.rotations[:-1]).max(axis=1, initial=0.0)
        pairs = list(_carried(np.flatnonzero(turns > _JUMP), len(found.status), refused))
        if not pairs:
            return
        frames, neighbours = np.array(pairs).T
        other, cost = resolve(frames, neighbours)
        after = angle_between(other.rotations, found.rotations[neighbours]).max(axis=1)
        taken = (cost <= _NO_WORSE * costs[frames]) & (after < _SMOOTHER * turns[np.minimum(frames, neighbours)])
        refused.update(pair for pair, take in zip(pairs, taken, strict=True) if not take)
        found.put(frames[taken], other.part(np.flatnonzero(taken)))
        costs[frames[taken]] = cost[taken]


def _carried(jumps: IntArray, count: int, refused: Collection[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Frames to be solved again and the neighbours to start from, one pair for each jump that is not given up."""
    edges = [-1, *jumps.tolist(), count - 1]
    for before, here, after in zip(edges, edges[1:], edges[2:], strict=False):
        pairs = [(here + 1, here), (here, here + 1)]
        if here - before < after - here:
            pairs.reverse()
        pair = next((pair for pair in pairs if pair not in refused), None)
        if pair is not None:
            yield pair
