"""Limbs that nothing leads hang: their tilt stays, they turn about the vertical with the trunk, inside their limits."""

from itertools import pairwise

import numpy as np
import pytest

from fabrik_addon.core import Ball, forward_kinematics
from fabrik_addon.core.kernel.bodies import Bodies
from fabrik_addon.core.kernel.hanging import HangFrom, Hanging
from fabrik_addon.core.kernel.posture import Masses, PostureTerm
from fabrik_addon.core.rotations import angle_between, product, quaternion_from_rotation_vector

from ..test_drag import LIMITS, WEIGHTS, skeleton

UP = np.array([0.0, 0.0, 1.0])
TRUNK = ("hips", "spine")
FREE = {"upper_arm.L": 1.0, "upper_arm.R": 1.0}
LOCATION = np.array([0.1, -0.2, 0.9])


def start_pose():
    """(J, 4) some pose, the trunk upright."""
    rotations = quaternion_from_rotation_vector(0.3 * np.random.default_rng(3).normal(size=(10, 3)))
    rotations[:2] = (1.0, 0.0, 0.0, 0.0)
    return rotations


def hanging(shares=FREE, limits=LIMITS, start=None):
    """What hangs on a trunk of two bones, and the trunk."""
    bones = skeleton()
    bodies = Bodies(bones, [bones.index(name) for name in TRUNK], [np.eye(3)] * 2, True)
    own = np.array([shares.get(name, 0.0) for name in bones.names])
    start = HangFrom(start_pose() if start is None else start, LOCATION, UP)
    return Hanging(bodies, own, limits, start), bodies


def posed(found, bodies, turn, location=LOCATION):
    """(J, 4) the pose with the trunk's top turned by a rotation vector (3,), its limbs hanging."""
    rotations = start_pose()
    rotations[1] = product(quaternion_from_rotation_vector(np.array(turn)), rotations[1])
    rotations[found.bones] = found.turned(bodies.pose(rotations[:2], location))
    return rotations


def ways(rotations, names):
    """(n, 3, 3) how bones stand."""
    bones = skeleton()
    return forward_kinematics(bones, rotations, LOCATION)[[bones.index(name) for name in names], :3, :3]


@pytest.mark.parametrize("turn", [(0.9, 0.0, 0.0), (0.0, 0.0, 0.7), (-0.4, 0.2, 0.5)])
def test_where_the_trunk_tilts_free_arms_keep_to_the_world(turn):
    found, bodies = hanging(limits={})
    free = [*FREE, "forearm.L", "forearm.R"]
    before, after = ways(start_pose(), free), ways(posed(found, bodies, turn), free)
    trunk = [ways(pose, ["spine"])[0] for pose in (start_pose(), posed(found, bodies, turn))]
    assert np.arccos((trunk[1] @ trunk[0].T)[2, 2]) > 0.4
    np.testing.assert_allclose(after[..., 2, :], before[..., 2, :], atol=1e-9)


def test_free_arms_turn_about_the_vertical_with_the_trunk():
    found, bodies = hanging(limits={})
    bones = skeleton()
    turn = 0.6 * bones.rest[1, :3, :3].T @ UP
    rotations = start_pose()
    rotations[1] = product(quaternion_from_rotation_vector(turn), rotations[1])
    np.testing.assert_allclose(
        found.turned(bodies.pose(rotations[:2], LOCATION)), start_pose()[found.bones], atol=1e-12
    )


def test_half_a_share_is_half_the_tilt():
    whole, bodies = hanging(limits={})
    half, _ = hanging(dict.fromkeys(FREE, 0.5), limits={})
    turn = (0.8, 0.0, 0.0)
    ridden = product(quaternion_from_rotation_vector(np.array(turn)), start_pose()[1])
    poses = [posed(each, bodies, turn) for each in (whole, half)]
    np.testing.assert_allclose(poses[0][1], ridden)
    angles = [angle_between(pose[whole.bones], start_pose()[whole.bones]) for pose in poses]
    np.testing.assert_allclose(angles[0], 0.8, atol=1e-9)
    np.testing.assert_allclose(angles[1], 0.4, atol=1e-9)


def test_a_limit_holds_and_what_cannot_turn_rides():
    start = np.tile([1.0, 0.0, 0.0, 0.0], (10, 1))
    found, bodies = hanging(
        limits={"upper_arm.L": Ball(0.2, (-0.2, 0.2)), "upper_arm.R": Ball(0.0, (0.0, 0.0))}, start=start
    )
    rotations = start.copy()
    rotations[1] = quaternion_from_rotation_vector(np.array([1.2, 0.0, 0.0]))
    turned = dict(zip(found.bones.tolist(), found.turned(bodies.pose(rotations[:2], LOCATION)), strict=True))
    assert 0.1 < angle_between(turned[skeleton().index("upper_arm.L")], start[0]) < 0.3
    right = turned.get(skeleton().index("upper_arm.R"), start[0])
    assert angle_between(right, start[0]) < 1e-6


def test_upside_down_they_ride_and_nothing_whirls_on_the_way():
    found, bodies = hanging(limits={})
    steps = [posed(found, bodies, (angle, 0.0, 0.0))[found.bones] for angle in np.linspace(0.0, np.pi, 181)]
    assert np.degrees(max(angle_between(a, b).max() for a, b in pairwise(steps))) < 5.5
    assert np.degrees(angle_between(steps[-1], steps[0]).max()) < 5.0


def test_balance_sees_the_centre_of_mass_with_the_limbs_hanging():
    found, bodies = hanging(limits={})
    shares = np.array(WEIGHTS) / sum(WEIGHTS)
    masses = Masses(shares, np.full(10, 0.5), np.ones(10), hanging=np.array([0.0, 0, 1, 0, 1, 0, 0, 0, 0, 0]))
    term = PostureTerm(bodies, masses, start_pose(), LOCATION, found)
    for pose in (start_pose(), posed(found, bodies, (0.7, 0.0, 0.0))):
        matrices = forward_kinematics(skeleton(), pose, LOCATION)
        centres = matrices[:, :3, 3] + 0.5 * skeleton().lengths[:, None] * matrices[:, :3, 1]
        away = term.away(bodies.pose(pose[:2], LOCATION))
        np.testing.assert_allclose(term.centre_of_mass(away), shares @ centres, atol=1e-9)
    np.testing.assert_allclose(
        term.preferred_centre_of_mass, term.centre_of_mass(term.away(bodies.pose(start_pose()[:2], LOCATION)))
    )
