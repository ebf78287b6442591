"""Finds pops, frames on which a joint moved much farther than the targets did, and repairs them.

Frames that are solved separately are not coordinated, so a limb that can meet its target in two ways may change from
one to the other between two frames. From both sides of such a change the pose is continued, each frame from its
neighbor, until it meets the frames as they were solved; the smoother of the two is kept. A change that remains is
spread over the frames around it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..solution import Solution, Status

FARTHER = 3.0
LONGEST_SPAN = 500
_SPREAD = 40
_AT_LEAST = 0.002
_SHARPEST = np.pi / 3
_NO_WORSE = 1.01
# Smaller distances, in the unit of the targets, count as zero; also breaks ties of signs.
_ROUNDING = 1e-9

Continue = Callable[[int, FloatArray, FloatArray], Solution]


def jumps(solution: Solution, targets: FloatArray) -> FloatArray:
    """(F - 1,) how many times farther than the targets the farthest joint moved from each frame to the next.

    Targets that hardly move count as having moved by a small share of the skeleton's size. A bone that rotates sharply,
    even only about itself, counts as a joint that moves too far. targets: (F, E, 3), armature space.
    """
    joints = np.concatenate([solution.heads, solution.tails], axis=1)
    moved = _farthest(joints) / np.maximum(_farthest(targets), _AT_LEAST * solution.skeleton.size)
    alike = np.abs((solution.rotations[1:] * solution.rotations[:-1]).sum(axis=2)).min(axis=1)
    turned = 2.0 * np.arccos(np.minimum(alike, 1.0))
    return np.asarray(np.maximum(moved, FARTHER * turned / _SHARPEST))


def repair_pops(solution: Solution, targets: FloatArray, solve_from: Continue) -> Iterator[bool]:
    """Continue the pose through popped and failed frames, in place, if that is smoother and no worse.

    Args:
        solution: F frames.
        targets: (F, E, 3), armature space.
        solve_from: solves one frame from a neighbor's (J, 4) rotations and (3,) root head.

    Yields:
        After each pop, whether something was replaced.
    """
    repair = _Repair(solution, targets, solve_from)
    for frame in restart_frames(jumps(solution, targets) > FARTHER, _failed(solution.status)):
        yield repair.at(frame)
    for frame in np.flatnonzero(jumps(solution, targets) > FARTHER) + 1:
        yield repair.spread(int(frame))


def restart_frames(pops: BoolArray, failed: BoolArray) -> list[int]:
    """The frames from which a pose is continued: after each pop, and the first of consecutive failed ones.

    pops: (F - 1,) whether a pop follows the frame. failed: (F,).
    """
    begins = failed[1:] & ~failed[:-1]
    return [int(frame) for frame in np.flatnonzero(pops | begins) + 1]


def _failed(status: IntArray) -> BoolArray:
    return np.isin(status, (Status.LIMITED, Status.STALLED))


@dataclass(frozen=True)
class _Repair:
    """The repair of one take."""

    solution: Solution
    targets: FloatArray
    solve_from: Continue

    def at(self, frame: int) -> bool:
        """Repair the change between the previous frame and this one from whichever side is better."""
        current = self._jump_around(frame, frame)
        if current <= FARTHER and not _failed(self.solution.status[frame]):
            return False
        frames = len(self.solution.status)
        ways = (range(frame, min(frame + LONGEST_SPAN, frames)), range(frame - 1, max(frame - LONGEST_SPAN, -1), -1))
        found = [(poses, left) for poses, left in map(self._continued_to_join, ways) if poses and left <= current]
        best = min(found, key=lambda found: (max(found[1], FARTHER), len(found[0])), default=({}, 0.0))[0]
        self._put(best)
        return bool(best)

    def spread(self, frame: int) -> bool:
        """Spread the change between the previous frame and this one over the frames around them.

        Over these frames, the poses continued from either side are blended with smoothly changing shares.
        """
        ahead = dict(self._continued(range(frame, min(frame + _SPREAD, len(self.solution.status) - 1))))
        back = dict(self._continued(range(frame - 1, max(frame - _SPREAD, 1) - 1, -1)))
        span = range(frame - len(back), frame + len(ahead))
        earlier = self._own(span[: len(back)]) | ahead
        later = self._own(span[len(back) :]) | back
        shares = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, len(span) + 2)[1:-1])
        mixed = {
            index: self.solve_from(index, *_interpolated(earlier[index], later[index], share))
            for index, share in zip(span, shares, strict=True)
        }
        before, own = self._jump_around(span.start, span.stop), self._own(span)
        worse = not all(self._no_worse(index, one) for index, one in mixed.items())
        self._put(mixed)
        if worse or self._jump_around(span.start, span.stop) >= before:
            self._put(own)
            return False
        return True

    def _continued(self, span: range) -> Iterator[tuple[int, Solution]]:
        """Frames along a range, each solved from the one before it, until they become worse than the existing ones."""
        pose = self._frame(span.start - span.step)
        for frame in span:
            pose = self.solve_from(frame, pose.rotations, pose.root_location)
            if not self._no_worse(frame, pose):
                return
            yield frame, pose

    def _continued_to_join(self, span: range) -> tuple[dict[int, Solution], float]:
        """Poses continued along a range until they join the existing ones, and the jump that remains at the end."""
        poses: dict[int, Solution] = {}
        left = np.inf
        for frame, pose in self._continued(span):
            poses[frame] = pose
            after = frame + span.step
            if not 0 <= after < len(self.solution.status):
                return poses, 0.0
            left = self._jump(_pair(pose, self._frame(after)), self.targets[[frame, after]])
            if left <= FARTHER:
                break
        return poses, left

    def _no_worse(self, frame: int, one: Solution) -> bool:
        missed, current = np.nansum(one.errors), np.nansum(self.solution.errors[frame])
        return bool(one.status == Status.SOLVED or missed <= current * _NO_WORSE + _ROUNDING)

    def _jump(self, solution: Solution, targets: FloatArray) -> float:
        return float(jumps(solution, targets).max(initial=0.0))

    def _jump_around(self, first: int, last: int) -> float:
        """The largest jump from the frame before `first` to `last`."""
        frames = slice(first - 1, last + 1)
        return self._jump(self.solution.part(frames), self.targets[frames])

    def _frame(self, frame: int) -> Solution:
        return self.solution.part(np.array([frame])).single()

    def _own(self, frames: range) -> dict[int, Solution]:
        return {frame: self._frame(frame) for frame in frames}

    def _put(self, poses: dict[int, Solution]) -> None:
        for frame, pose in poses.items():
            self.solution.put(frame, pose)


def _pair(first: Solution, second: Solution) -> Solution:
    names = Solution.FRAME_ARRAYS
    arrays = {name: np.stack([getattr(first, name), getattr(second, name)]) for name in names}
    return Solution(skeleton=first.skeleton, **arrays)


def _interpolated(first: Solution, second: Solution, share: float) -> tuple[FloatArray, FloatArray]:
    """(J, 4) rotations and (3,) root head between two poses."""
    alike = np.sign((first.rotations * second.rotations).sum(axis=1, keepdims=True) + _ROUNDING)
    rotations = (1.0 - share) * first.rotations + share * alike * second.rotations
    root = (1.0 - share) * first.root_location + share * second.root_location
    return rotations / np.linalg.norm(rotations, axis=1, keepdims=True), root


def _farthest(points: FloatArray) -> FloatArray:
    """(F - 1,) the farthest that one of (F, N, 3) points moves from frame to frame, ignoring NaN."""
    steps = np.nan_to_num(np.linalg.norm(np.diff(points, axis=0), axis=2))
    return np.asarray(steps.max(axis=1, initial=0.0))
