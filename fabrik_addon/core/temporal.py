"""Finds pops, frames on which a joint moved much farther than the targets did, and repairs them.

A limb that can meet its target with two poses may change from one to the other between two frames. From each side of
such a change the pose is continued, each frame from its neighbor, until it meets the frames as they were solved. The
smoother of the two results is kept. A change that remains is spread over the frames around it.
"""

from collections.abc import Callable, Iterator

import numpy as np

from .arrays import BoolArray, FloatArray, IntArray
from .rotations import slerp
from .solution import Solution, Status

# A joint pops if it moves this many times as far as the targets.
FARTHER = 3.0
# The largest number of frames over which a pose is continued past a pop, and over which a pop is spread on each side.
_LONGEST_SPAN, _SPREAD = 500, 40
# Targets count as having moved by at least this fraction of the skeleton's size.
_AT_LEAST = 0.002
# A rotation by this angle, in radians, counts as a pop.
_SHARPEST = np.pi / 3
# Errors count as equal if they differ by at most this factor.
_NO_WORSE = 1.01

Continue = Callable[[int, FloatArray, FloatArray], Solution]


def jumps(solution: Solution, targets: FloatArray) -> FloatArray:
    """(F - 1,) the farthest movement of a joint from each frame to the next, divided by that of the targets.

    Targets that hardly move count as having moved by a small fraction of the skeleton's size. A bone that rotates
    sharply, even only about itself, counts as a joint that moves too far. targets: (F, E, 3), armature space.
    """
    joints = np.concatenate([solution.heads, solution.tails], axis=1)
    moved = _farthest(joints) / np.maximum(_farthest(targets), _AT_LEAST * solution.skeleton.size)
    alike = np.abs((solution.rotations[1:] * solution.rotations[:-1]).sum(axis=2)).min(axis=1)
    turned = 2.0 * np.arccos(np.minimum(alike, 1.0))
    return np.asarray(np.maximum(moved, FARTHER * turned / _SHARPEST))


def repair_pops(solution: Solution, targets: FloatArray, solve_from: Continue) -> None:
    """Continue the pose through popped and failed frames, in place, if that is smoother and no worse.

    Args:
        solution: F frames.
        targets: (F, E, 3), armature space.
        solve_from: solves one frame from a neighbor's (J, 4) rotations and (3,) root head.
    """
    count = len(targets)
    for frame in restart_frames(jumps(solution, targets) > FARTHER, _failed(solution.status)):
        pair = slice(frame - 1, frame + 1)
        current = float(jumps(solution.part(pair), targets[pair])[0])
        if current <= FARTHER and not _failed(solution.status[frame]):
            continue
        best, key = {}, (max(current, FARTHER), count)
        ahead = range(frame, min(frame + _LONGEST_SPAN, count))
        for span in (ahead, range(frame - 1, max(frame - _LONGEST_SPAN, -1), -1)):
            poses, left = {}, np.inf
            for index, poses[index] in _continued(solution, solve_from, span):
                beside, left = np.array([index, index + span.step]), 0.0
                if 0 <= beside[1] < count:
                    both = solution.part(beside)
                    both.put(0, poses[index])
                    left = float(jumps(both, targets[beside])[0])
                if left <= FARTHER:
                    break
            if (max(left, FARTHER), len(poses)) < key:
                best, key = poses, (max(left, FARTHER), len(poses))
        for index, pose in best.items():
            solution.put(index, pose)
    for frame in np.flatnonzero(jumps(solution, targets) > FARTHER) + 1:
        _spread(solution, targets, solve_from, int(frame))


def _spread(solution: Solution, targets: FloatArray, solve_from: Continue, frame: int) -> None:
    """Spread the change before a frame over the frames around it, in place, if that is smoother and no worse.

    Poses continued from either side are blended.
    """
    ahead = dict(_continued(solution, solve_from, range(frame, min(frame + _SPREAD, len(targets) - 1))))
    back = dict(_continued(solution, solve_from, range(frame - 1, max(frame - _SPREAD, 1) - 1, -1)))
    span = np.arange(frame - len(back), frame + len(ahead))
    wider = np.arange(span[0] - 1, span[-1] + 2) if len(span) else np.array([frame - 1, frame])
    shares = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, len(wider)))
    before, earlier, later = (solution.part(wider) for _ in range(3))
    for index, pose in ahead.items():
        earlier.put(index - wider[0], pose)
    for index, pose in back.items():
        later.put(index - wider[0], pose)
    roots = earlier.root_location + shares[:, None] * (later.root_location - earlier.root_location)
    for place, index in enumerate(span, start=1):
        both = earlier.rotations[place], later.rotations[place]
        mixed = slerp(*both, np.full(len(both[0]), shares[place]))
        solution.put(index, solve_from(index, mixed, roots[place]))
    after = solution.part(wider)
    sharper = jumps(after, targets[wider]).max() >= jumps(before, targets[wider]).max()
    if sharper or _is_worse(after, before.errors).any():
        solution.put(wider, before)


def _continued(solution: Solution, solve_from: Continue, span: range) -> Iterator[tuple[int, Solution]]:
    """Frames along a range, each solved from the one before it, until they become worse than the existing ones."""
    pose = solution.part(np.array([span.start - span.step])).single()
    for frame in span:
        pose = solve_from(frame, pose.rotations, pose.root_location)
        if _is_worse(pose, solution.errors[frame]):
            return
        yield frame, pose


def _failed(status: IntArray) -> BoolArray:
    return np.isin(status, (Status.LIMITED, Status.STALLED))


def _is_worse(solution: Solution, errors: FloatArray) -> BoolArray:
    """([F,]) whether unsolved frames miss their targets by more than `errors` ([F,] E)."""
    missed, current = np.nansum(solution.errors, axis=-1), np.nansum(errors, axis=-1)
    return np.asarray((solution.status != Status.SOLVED) & (missed > _NO_WORSE * current))


def restart_frames(pops: BoolArray, failed: BoolArray) -> list[int]:
    """The frames from which a pose is continued: after each pop, and the first of consecutive failed ones.

    pops: (F - 1,) whether a pop follows the frame. failed: (F,) whether the frame failed.
    """
    begins = failed[1:] & ~failed[:-1]
    return [int(frame) for frame in np.flatnonzero(pops | begins) + 1]


def _farthest(points: FloatArray) -> FloatArray:
    """(F - 1,) the largest movement of one of N points (F, N, 3) from each frame to the next, ignoring NaN."""
    steps = np.nan_to_num(np.linalg.norm(np.diff(points, axis=0), axis=2))
    return np.asarray(steps.max(axis=1, initial=0.0))
