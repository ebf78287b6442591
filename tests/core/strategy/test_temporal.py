"""Pops are found, and repaired from neighboring frames on request."""

import numpy as np
import pytest
from support.rigs import from_joints

from fabrik_addon.core import Ball, Effector, Hinge, Options, Status, solve
from fabrik_addon.core.solve import FARTHER, jumps, restart_frames

ARM = from_joints(
    [
        ("upper", -1, (0, 0, 0), (0, 0.3, 0)),
        ("fore", 0, (0, 0.3, 0), (0, 0.55, 0)),
        ("hand", 1, (0, 0.55, 0), (0, 0.65, 0)),
    ]
)
LIMITS = {"upper": Ball(1.7), "fore": Hinge("X", 0.0, 2.6), "hand": Ball(1.0)}


def through(points, frames):
    """Targets that move through points along straight lines."""
    shares = np.linspace(0, len(points) - 1, frames)
    return np.stack([np.interp(shares, range(len(points)), axis) for axis in np.transpose(points)], axis=1)[:, None]


def test_poses_are_continued_from_pops_and_failures():
    pops = np.zeros(20, dtype=bool)
    pops[[3, 6]] = True
    failed = np.zeros(21, dtype=bool)
    failed[[12, 13]] = True
    assert restart_frames(pops, failed) == [4, 7, 12]


@pytest.mark.one_pose
def test_a_twisted_span_is_repaired_from_its_neighbors():
    targets = through([(0.25, 0.3, 0.1), (0.2, 0.35, -0.1)], 40)
    start = np.tile([1.0, 0, 0, 0], (40, 3, 1))
    swivelled = solve(ARM, [Effector("hand")], targets[20], limits=LIMITS, start=wrung()).rotations
    start[18:23] = swivelled
    popped = solve(ARM, [Effector("hand")], targets, limits=LIMITS, start=start)
    assert jumps(popped, targets).max() > FARTHER
    mended = solve(ARM, [Effector("hand")], targets, limits=LIMITS, start=start, options=Options(repair_pops=True))
    assert (mended.status == Status.SOLVED).all()
    assert jumps(mended, targets).max() < min(FARTHER, jumps(popped, targets).max())
    kept = np.r_[0:18, 23:40]
    assert np.abs(mended.rotations[kept] - popped.rotations[kept]).max() == 0


def wrung():
    """The arm with its upper bone twisted by 90°."""
    pose = np.tile([1.0, 0, 0, 0], (3, 1))
    pose[0] = [np.cos(0.75), 0, np.sin(0.75), 0]
    return pose


def test_without_the_option_frames_stay_as_they_were_solved():
    targets = through([(0.25, 0.3, 0.1), (-0.2, 0.35, -0.1)], 30)
    together = solve(ARM, [Effector("hand")], targets, limits=LIMITS)
    apart = [solve(ARM, [Effector("hand")], targets[frame : frame + 1], limits=LIMITS) for frame in range(30)]
    assert np.abs(together.rotations - np.concatenate([part.rotations for part in apart])).max() < 1e-12
