"""A person who stands for calibration, with markers off their guesses: the pose does not follow these errors."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support import walker
from support.steps import calibrate

from fabrik_addon.core import Skeleton, Solver, forward_kinematics
from fabrik_addon.core.rotations import angle_between, quaternion_from_matrix
from fabrik_addon.markers.calibrate.fit import given_pose
from fabrik_addon.markers.clip import Clip
from fabrik_addon.markers.doubts import calibration_doubts
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
def test_rest_is_recognized_and_kept(seed):
    mapping, clip = standing(seed)
    found = calibrate(walker.skeleton(), mapping, clip)
    rotations = found.poses.rotations[len(found.poses.rotations) // 2]
    angles = np.degrees(angle_between(rotations, np.tile(REST, (len(rotations), 1))))
    assert found.pose == "REST"
    assert np.median(angles) < 2.0
    assert np.percentile(angles, 95) < 6.0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_clusters_anywhere_on_their_bones_do_not_rotate_feet(seed):
    """Fixed: the markers of a rigid body had one guess and were kept within 15 mm of it. Feet rotated by 31°."""
    rng, skeleton = np.random.default_rng(seed), walker.skeleton()
    poses = forward_kinematics(skeleton, np.tile(REST, (1, len(skeleton), 1)))[0]
    mapping, places = [], []
    for side in (".L", ".R", ""):
        for name in ("upper_arm", "forearm", "hand", "thigh", "shin", "foot") if side else ("hips", "chest", "head"):
            bone = skeleton.index(name + side)
            middle = np.array([0.0, 0.5 * skeleton.lengths[bone], 0.0])
            cluster = middle + rng.uniform(-0.03, 0.03, 3) + 0.05 * np.vstack([np.zeros(3), np.eye(3)])
            mapping += [MappedMarker(f"{name}{side}_{n}", name + side, "OFFSET", tuple(middle), 0.3) for n in range(4)]
            places += [(poses[bone] @ (*point, 1.0))[:3] for point in cluster]
    clip = Clip(tuple(entry.marker for entry in mapping), 60.0, np.tile(places, (6, 1, 1)), "Z")
    found = calibrate(skeleton, mapping, clip)
    rotations = found.poses.rotations[len(found.poses.rotations) // 2]
    angles = np.degrees(angle_between(rotations, np.tile(REST, (len(rotations), 1))))
    assert max(angles[skeleton.index(f"foot.{side}")] for side in "LR") < 8.0
    assert not replace(found, pose="REST").is_unsure
    moving = replace(found, pose="MOVING")
    assert moving.is_unsure
    assert not replace(moving, guesses=np.arange(3.0 * len(mapping)).reshape(-1, 3)).is_unsure
    assert len(list(calibration_doubts(found.stature, None, is_unsure=True))) == 1


def test_someone_in_full_stride_is_not_recognized_as_standing():
    solver = Solver(walker.skeleton(), walker.effectors(), root="FREE")
    bent = solver.solve(walker.true_positions()[:1])
    thigh = walker.skeleton().index("thigh.L")
    bent.rotations[:, thigh] = [np.cos(0.5), np.sin(0.5), 0.0, 0.0]
    bent.forget_matrices()
    assert given_pose(walker.skeleton(), bent).kind == "MOVING"


# The sample person's arms hang 50 degrees out at rest; the first rotation is the root's.
HANGING, LEVEL = 10.0, 90.0


def stands(raised, turn, upright=None):
    """A calibration pose with arms raised by some degrees, rotated as a whole by `turn`; the rig is rotated too."""
    skeleton = walker.skeleton()
    if upright is not None:
        rest = np.array(skeleton.rest)
        rest[:, :3] = upright @ rest[:, :3]
        skeleton = Skeleton(skeleton.names, skeleton.parents, rest, skeleton.lengths)
    rotations = np.tile(REST, (1, len(skeleton), 1))
    for side, sign in (("L", 1.0), ("R", -1.0)):
        bone = skeleton.index(f"upper_arm.{side}")
        own = walker.skeleton().rest[bone, :3, :3]
        rotations[:, bone] = quaternion_from_matrix(own.T @ about("Y", sign * (50.0 - raised)) @ own)
    own = walker.skeleton().rest[0, :3, :3]
    rotations[:, 0] = quaternion_from_matrix(own.T @ turn @ own)
    matrices = forward_kinematics(skeleton, rotations)
    return given_pose(skeleton, SimpleNamespace(rotations=rotations, matrices=matrices))


def about(axis, degrees):
    """(3, 3) a rotation about an axis of the armature."""
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    place = "XYZ".index(axis)
    turn = np.eye(3)
    first, second = (place + 1) % 3, (place + 2) % 3
    turn[[first, first, second, second], [first, second, first, second]] = cosine, -sine, sine, cosine
    return turn


@pytest.mark.parametrize(("raised", "kind"), [(HANGING, "STANDING"), (LEVEL, "T_POSE")])
class TestArms:
    def test_the_pose_of_someone_who_lies(self, raised, kind):
        assert stands(raised, about("X", -90.0)).kind == kind

    def test_an_armature_with_y_up(self, raised, kind):
        upright = about("X", -90.0)
        told = stands(raised, np.eye(3), upright)
        assert told.kind == kind
        expected = stands(raised, np.eye(3))
        np.testing.assert_allclose(told.rotations, expected.rotations, atol=1e-9)
