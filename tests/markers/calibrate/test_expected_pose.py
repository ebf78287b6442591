"""Someone who stands to be calibrated, markers not where a mapping guesses them: the pose is not invented."""

import numpy as np
import pytest
from support import walker

from fabrik_addon.core import Solver, forward_kinematics
from fabrik_addon.core.rotations import angle_between
from fabrik_addon.markers.calibrate.calibrate import calibrate
from fabrik_addon.markers.calibrate.expected_pose import told_pose
from fabrik_addon.markers.clip import Clip
from fabrik_addon.markers.mapping.marker_map import MappedMarker

REST = np.array([1.0, 0.0, 0.0, 0.0])


def standing(seed, frames=6):
    """The walker at rest, markers up to 10 mm off their guesses, and the guesses."""
    rng = np.random.default_rng(seed)
    skeleton, effectors = walker.skeleton(), walker.effectors()
    poses = forward_kinematics(skeleton, np.tile(REST, (1, len(skeleton), 1)))[0]
    names = walker.marker_names()
    mapping = [
        MappedMarker(name, each.bone, "OFFSET", each.offset) for name, each in zip(names, effectors, strict=True)
    ]
    places = [
        (poses[skeleton.index(each.bone)] @ (*(np.array(each.offset) + rng.uniform(-0.01, 0.01, 3)), 1.0))[:3]
        for each in effectors
    ]
    return mapping, Clip(tuple(names), 60.0, np.tile(places, (frames, 1, 1)), "Z")


@pytest.mark.parametrize("seed", [1, 2])
def test_rest_is_told_and_kept(seed):
    mapping, clip = standing(seed)
    found = calibrate(walker.skeleton(), mapping, clip)
    angles = np.degrees(angle_between(found.rotations, np.tile(REST, (len(found.rotations), 1))))
    assert found.pose == "REST"
    assert np.median(angles) < 2.0
    assert np.percentile(angles, 95) < 6.0


def test_someone_in_full_stride_is_not_taken_to_stand():
    solver = Solver(walker.skeleton(), walker.effectors(), root="FREE")
    bent = solver.solve(walker.true_positions()[:1])
    thigh = walker.skeleton().index("thigh.L")
    bent.rotations[:, thigh] = [np.cos(0.5), np.sin(0.5), 0.0, 0.0]
    bent.forget_matrices()
    assert told_pose(walker.skeleton(), bent).kind == "MOVING"
