"""Bones that would jump when markers appear or disappear are smoothed; quick motion shown by markers is kept."""

import numpy as np
import pytest
from support import walker
from support.steps import solve_take

from fabrik_addon.core import Effector, Options, Solver, forward_kinematics
from fabrik_addon.core.rotations import angle_between, product
from fabrik_addon.markers.calibrate.size import points_on
from fabrik_addon.markers.solving.outliers import near_jumps
from fabrik_addon.markers.take import TakeSettings

# Every bone has a keypoint at its end, as in keypoints from video.
FRAMES = 100


def keypoints(seed, *, off=0.012, share=0.1, away=25):
    """(F, J, 3) the ends of the walker's bones, each with errors and a gap; and their solver."""
    skeleton, rng = walker.skeleton(), np.random.default_rng(seed)
    tails = np.stack([0.0 * skeleton.lengths, skeleton.lengths, 0.0 * skeleton.lengths], axis=1)
    places = points_on(walker.true_matrices()[:FRAMES], list(range(len(skeleton))), tails)
    places += rng.normal(0.0, off, places.shape[1:])
    places[rng.random(places.shape[:2]) < share] = np.nan
    for point in range(places.shape[1] if away else 0):
        first = int(rng.integers(1, FRAMES - away))
        places[first : first + away, point] = np.nan
    solver = Solver(skeleton, [Effector(name) for name in skeleton.names], root="FREE", options=Options(restarts=0))
    return solver, places


def most_turned(rotations):
    """The largest rotation of a bone in a frame, in degrees."""
    return np.degrees(angle_between(rotations[1:], rotations[:-1]).max())


@pytest.mark.parametrize("seed", [0, 1, 9])
def test_keypoints_with_holes_on_a_rig_without_limits(seed):
    """Bones of the walker rotate by at most 8 degrees per frame. In a gap, nothing keeps them from folding."""
    solver, places = keypoints(seed)
    take = solve_take(solver, places, TakeSettings(walker.RATE))
    assert most_turned(take.solution.rotations) <= 25.0


@pytest.mark.parametrize("rate", [30.0, 60.0, 100.0])
@pytest.mark.parametrize("width", [0.03, 0.06])
def test_a_kick_that_markers_show_stays(rate, width):
    """A shin that is thrown forward by 110 degrees and back, at up to 2,200 degrees a second."""
    skeleton, bone = walker.skeleton(), walker.skeleton().index("shin.R")
    angles = np.radians(110.0) * np.exp(-0.5 * ((np.arange(40) - 20) / rate / width) ** 2)
    rotations = np.tile(walker.true_rotations()[0], (40, 1, 1))
    kick = np.stack([np.cos(angles / 2), np.sin(angles / 2), 0 * angles, 0 * angles], axis=1)
    rotations[:, bone] = product(rotations[:, bone], kick)
    matrices = forward_kinematics(skeleton, rotations, np.tile(walker.true_matrices()[0, 0, :3, 3], (40, 1)))
    offsets = np.array([effector.offset for effector in walker.effectors()])
    targets = points_on(matrices, [skeleton.index(effector.bone) for effector in walker.effectors()], offsets)
    solver = Solver(skeleton, walker.effectors(), root="FREE", options=Options(restarts=0))
    found = solve_take(solver, targets, TakeSettings(rate)).solution.rotations[:, bone]
    assert np.degrees(angle_between(found, rotations[:, bone])).max() <= 4.0


def test_frames_near_a_jump_are_found():
    """Compared with a plain loop over the frames near both frames of each jump."""
    jumping = np.random.default_rng(3).random((30, 4)) < 0.05
    for near in (0, 1, 5):
        found = near_jumps(jumping, near)
        for frame in range(31):
            pairs = [pair for pair in range(30) if min(abs(pair - frame), abs(pair + 1 - frame)) <= near]
            np.testing.assert_array_equal(found[frame], jumping[pairs].any(axis=0))
