"""Pops: frames on which a joint moved much farther than the targets did, and their repair.

Frames that are solved each by itself know nothing of each other, so a limb that can meet its target in two ways may
change from one to the other between two frames. Spans that begin and end with such a change, and frames that failed,
are solved again from both ends, each frame from its neighbour, and the smoother of the results is kept.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .solution import Solution, Status

FARTHER = 5.0
LONGEST_SPAN = 120
_AT_LEAST = 0.05

Continue = Callable[[int, FloatArray, FloatArray], Solution]


def jumps(solution: Solution, targets: FloatArray) -> FloatArray:
    """(F - 1,) how many times farther than the targets the farthest joint moved from each frame to the next.

    A joint that moves by less than a twentieth of the skeleton's size has not jumped, however still the targets are.
    """
    joints = np.concatenate([solution.heads, solution.tails], axis=1)
    size = np.linalg.norm(np.ptp(solution.skeleton.rest[:, :3, 3], axis=0)) + solution.skeleton.lengths.max()
    moved = _farthest(joints)
    wanted = np.maximum(_farthest(targets), _AT_LEAST * size / FARTHER)
    return np.asarray(moved / wanted)


def repair_pops(solution: Solution, targets: FloatArray, solve_from: Continue) -> Iterator[bool]:
    """Solve popped and failed spans again from both ends, in place, where that is smoother and no worse.

    Args:
        solution: F frames.
        targets: (F, E, 3).
        solve_from: solves one frame from a neighbour's (J, 4) rotations and (3,) root head.

    Yields:
        After each span, whether it was replaced.
    """
    pops = jumps(solution, targets) > FARTHER
    failed = ~np.isin(solution.status, (Status.SOLVED, Status.UNREACHABLE, Status.FITTED, Status.UNSEEN))
    for span in spans(pops, failed):
        yield _repair(solution, targets, span, solve_from)


def spans(pops: BoolArray, failed: BoolArray) -> list[range]:
    """Frames to solve again: between two pops not too far apart, or failed in a row."""
    found: list[range] = []
    places = np.flatnonzero(pops)
    for before, after in pairwise(places):
        if after - before <= LONGEST_SPAN and (not found or before + 1 >= found[-1].stop):
            found.append(range(before + 1, after + 1))
    covered = {frame for span in found for frame in span}
    edges = np.flatnonzero(np.diff(np.concatenate([[False], failed, [False]])))
    runs = [range(first, stop) for first, stop in zip(edges[::2], edges[1::2], strict=True)]
    found += [run for run in runs if covered.isdisjoint(run) and len(run) <= LONGEST_SPAN]
    return sorted(found, key=lambda span: span.start)


def _repair(solution: Solution, targets: FloatArray, span: range, solve_from: Continue) -> bool:
    """Replace one span by the smoothest of what there is, the way from before it and the way from after it."""
    present = _frames(solution, np.array(span))
    best, smoothness = present, _roughness(solution, targets, span)
    for order in _ways(span, len(solution.status)):
        candidate = _continued(solution, order, solve_from)
        _put(solution, span, candidate)
        roughness = _roughness(solution, targets, span)
        no_worse = np.nansum(candidate["errors"], axis=1) <= np.nansum(present["errors"], axis=1) * 1.01 + 1e-9
        solved = candidate["status"] <= present["status"]
        if roughness < smoothness and (no_worse | solved).all():
            best, smoothness = candidate, roughness
    _put(solution, span, best)
    return best is not present


def _ways(span: range, frames: int) -> Iterator[list[int]]:
    """The frames of a span in the order in which they are solved, the neighbour they start from first."""
    if span.start > 0:
        yield [span.start - 1, *span]
    if span.stop < frames:
        yield [span.stop, *reversed(span)]


def _continued(solution: Solution, order: list[int], solve_from: Continue) -> dict[str, Any]:
    """Each frame solved from the one before it in the order; in the order of time."""
    rotations, root = solution.rotations[order[0]], solution.root_location[order[0]]
    found = {}
    for frame in order[1:]:
        found[frame] = solve_from(frame, rotations, root)
        rotations, root = found[frame].rotations, found[frame].root_location
    return {name: np.stack([getattr(found[frame], name) for frame in sorted(found)]) for name in Solution.FRAME_ARRAYS}


def _frames(solution: Solution, frames: IntArray) -> dict[str, Any]:
    return {name: getattr(solution, name)[frames].copy() for name in Solution.FRAME_ARRAYS}


def _put(solution: Solution, span: range, arrays: dict[str, Any]) -> None:
    for name, values in arrays.items():
        getattr(solution, name)[span.start : span.stop] = values
    solution.forget_matrices()


def _roughness(solution: Solution, targets: FloatArray, span: range) -> float:
    """The greatest jump from the frame before a span to the one after it."""
    around = np.arange(max(span.start - 1, 0), min(span.stop + 1, len(solution.status)))
    piece = Solution(skeleton=solution.skeleton, **_frames(solution, around))
    return float(jumps(piece, targets[around]).max(initial=0.0))


def _farthest(points: FloatArray) -> FloatArray:
    """(F - 1,) the farthest that one of (F, N, 3) points moves from frame to frame; what is NaN does not count."""
    steps = np.nan_to_num(np.linalg.norm(np.diff(points, axis=0), axis=2))
    return np.asarray(steps.max(axis=1, initial=0.0))
