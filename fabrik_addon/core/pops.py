"""Pops: frames on which a joint moved much farther than the targets did, and their repair.

Frames that are solved each by itself know nothing of each other, so a limb that can meet its target in two ways may
change from one to the other between two frames. From both sides of such a change the pose is carried on, each frame
from its neighbour, until it meets the frames as they were solved; the smoother of the two ways is kept.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .solution import Solution, Status

FARTHER = 3.0
LONGEST_SPAN = 500
_AT_LEAST = 0.002
_SHARPEST = np.pi / 3
_NO_WORSE = 1.01
_TINY = 1e-9

Continue = Callable[[int, FloatArray, FloatArray], Solution]


def jumps(solution: Solution, targets: FloatArray) -> FloatArray:
    """(F - 1,) how many times farther than the targets the farthest joint moved from each frame to the next.

    Where the targets stand nearly still they count as having moved by a small share of the skeleton's size. A bone that
    turns sharply, if only about itself, counts as a joint that moves too far.
    """
    joints = np.concatenate([solution.heads, solution.tails], axis=1)
    size = np.linalg.norm(np.ptp(solution.skeleton.rest[:, :3, 3], axis=0)) + solution.skeleton.lengths.max()
    moved = _farthest(joints) / np.maximum(_farthest(targets), _AT_LEAST * size)
    alike = np.abs((solution.rotations[1:] * solution.rotations[:-1]).sum(axis=2)).min(axis=1)
    turned = 2.0 * np.arccos(np.minimum(alike, 1.0))
    return np.asarray(np.maximum(moved, FARTHER * turned / _SHARPEST))


def repair_pops(solution: Solution, targets: FloatArray, solve_from: Continue) -> Iterator[bool]:
    """Carry the pose on through popped and failed frames, in place, where that is smoother and no worse.

    Args:
        solution: F frames.
        targets: (F, E, 3).
        solve_from: solves one frame from a neighbour's (J, 4) rotations and (3,) root head.

    Yields:
        After each pop, whether something was replaced.
    """
    repair = _Repair(solution, targets, solve_from)
    for frame in places(jumps(solution, targets) > FARTHER, _failed(solution.status)):
        yield repair.at(frame)


def places(pops: BoolArray, failed: BoolArray) -> list[int]:
    """The frames from which a pose is to be carried on: after each pop, and the first of failed ones in a row."""
    begins = failed[1:] & ~failed[:-1]
    return [int(frame) for frame in np.flatnonzero(pops | begins) + 1]


def _failed(status: IntArray) -> BoolArray:
    return np.isin(status, (Status.LIMITED, Status.STALLED))


@dataclass(frozen=True)
class _Repair:
    """A take under repair."""

    solution: Solution
    targets: FloatArray
    solve_from: Continue

    def at(self, frame: int) -> bool:
        """Mend the change between the frame before and this one from whichever side does it better."""
        present = self._jump(self._around(frame, frame))
        if present <= FARTHER and not _failed(self.solution.status[frame]):
            return False
        frames = len(self.solution.status)
        ways = (range(frame, min(frame + LONGEST_SPAN, frames)), range(frame - 1, max(frame - LONGEST_SPAN, -1), -1))
        found = [found for found in map(self._carried, ways) if found[0] and found[1] <= present]
        best = min(found, key=lambda found: (max(found[1], FARTHER), len(found[0])), default=({}, 0.0))[0]
        for place, one in best.items():
            self._put(place, one)
        self.solution.forget_matrices()
        return bool(best)

    def _carried(self, way: range) -> tuple[dict[int, Solution], float]:
        """Poses carried on along a way until they join the ones there are, and the jump that is left at the end."""
        before = way.start - way.step
        pose = self._frames(np.array([before, before]))
        carried: dict[int, Solution] = {}
        left = np.inf
        for frame in way:
            one = self.solve_from(frame, pose["rotations"][0], pose["root_location"][0])
            if not self._no_worse(frame, one):
                break
            carried[frame] = one
            pose = {name: getattr(one, name)[None] for name in Solution.FRAME_ARRAYS}
            after = frame + way.step
            if not 0 <= after < len(self.solution.status):
                return carried, 0.0
            left = self._jump(self._joined(one, frame, after))
            if left <= FARTHER:
                break
        return carried, left

    def _no_worse(self, frame: int, one: Solution) -> bool:
        missed, present = np.nansum(one.errors), np.nansum(self.solution.errors[frame])
        return bool(one.status == Status.SOLVED or missed <= present * _NO_WORSE + _TINY)

    def _jump(self, pair: tuple[Solution, FloatArray]) -> float:
        return float(jumps(*pair).max(initial=0.0))

    def _around(self, first: int, last: int) -> tuple[Solution, FloatArray]:
        """The frames from the one before to the one given, and their targets."""
        frames = np.arange(first - 1, last + 1)
        return Solution(skeleton=self.solution.skeleton, **self._frames(frames)), self.targets[frames]

    def _joined(self, one: Solution, frame: int, after: int) -> tuple[Solution, FloatArray]:
        """A carried frame and the one that stands after it, and their targets."""
        there = self._frames(np.array([after]))
        arrays = {name: np.concatenate([getattr(one, name)[None], there[name]]) for name in there}
        return Solution(skeleton=self.solution.skeleton, **arrays), self.targets[[frame, after]]

    def _frames(self, frames: IntArray) -> dict[str, Any]:
        return {name: getattr(self.solution, name)[frames] for name in Solution.FRAME_ARRAYS}

    def _put(self, frame: int, one: Solution) -> None:
        for name in Solution.FRAME_ARRAYS:
            getattr(self.solution, name)[frame] = getattr(one, name)


def _farthest(points: FloatArray) -> FloatArray:
    """(F - 1,) the farthest that one of (F, N, 3) points moves from frame to frame; what is NaN does not count."""
    steps = np.nan_to_num(np.linalg.norm(np.diff(points, axis=0), axis=2))
    return np.asarray(steps.max(axis=1, initial=0.0))
