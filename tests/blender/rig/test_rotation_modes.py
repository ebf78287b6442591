"""Rotation channels compared with mathutils, and converted back."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from mathutils import Euler, Matrix, Quaternion, Vector

from fabrik_addon.core.channels import channel_count, from_channels, to_channels

EULER_ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
MODES = ("QUATERNION", "AXIS_ANGLE", *EULER_ORDERS)
QUARTER = np.pi / 2

angles = st.floats(-10.0, 10.0)
modes = st.sampled_from(MODES)
# Angles at and near a right angle, at which two of the three Euler axes coincide.
middle_angles = st.sampled_from((QUARTER, -QUARTER)).flatmap(
    lambda right: st.floats(-9.0, -1.0).map(lambda power: right + 10.0**power) | st.just(right)
)
components = st.floats(-1.0, 1.0)
quaternions = (
    st.tuples(components, components, components, components)
    .filter(lambda values: np.linalg.norm(values) > 0.1)
    .map(lambda values: np.array(values) / np.linalg.norm(values))
)


def turn_between(one, other):
    """Largest angle between the rotations of two arrays of quaternions."""
    off = np.minimum(np.linalg.norm(one - other, axis=-1), np.linalg.norm(one + other, axis=-1))
    return float((4.0 * np.arcsin(np.minimum(off / 2.0, 1.0))).max())


def smooth_motion(frames, seed, speed=0.05):
    """(F, 4) unit quaternions that move randomly without jumps, over many turns."""
    rng = np.random.default_rng(seed)
    turn = Quaternion()
    drift = Vector(rng.normal(size=3))
    result = []
    for _ in range(frames):
        drift = (drift + 0.2 * Vector(rng.normal(size=3))).normalized()
        turn = (Quaternion(drift, speed) @ turn).normalized()
        result.append(tuple(turn))
    return np.array(result)


@given(mode=modes, quaternion=quaternions)
@example(mode="XYZ", quaternion=np.array((np.sqrt(0.5), 0.0, np.sqrt(0.5), 7.3e-11)))
def test_channels_represent_the_rotation(mode, quaternion):
    values = to_channels(mode, quaternion[None])

    assert values.shape == (1, channel_count(mode))
    # Within 1e-7 rad of gimbal lock, the last axis keeps its angle. That costs no more than the distance from it.
    at_lock = mode in EULER_ORDERS and abs(np.cos(values[0, "XYZ".index(mode[1])])) < 1.01e-7
    allowed = 1e-7 if at_lock else 1e-12
    assert turn_between(from_channels(mode, values), quaternion[None]) < allowed


@given(
    order=st.sampled_from(EULER_ORDERS),
    first=angles,
    middle=middle_angles,
    last=angles,
    previous=st.tuples(angles, angles, angles),
)
def test_euler_angles_are_exact_at_and_near_gimbal_lock(order, first, middle, last, previous):
    euler = np.zeros(3)
    euler[["XYZ".index(axis) for axis in order]] = first, middle, last
    wanted = from_channels(order, euler[None])

    values = to_channels(order, wanted, previous=np.array(previous))

    # Blender stores channels in single precision.
    assert turn_between(from_channels(order, values.astype(np.float32)), wanted) < 3e-6


@given(order=st.sampled_from(EULER_ORDERS), values=st.tuples(angles, angles, angles))
def test_euler_channels_agree_with_mathutils(order, values):
    expected = np.array(Euler(values, order).to_quaternion())

    assert turn_between(from_channels(order, np.array([values])), expected[None]) < 1e-5


@given(angle=angles, axis=st.tuples(components, components, components).filter(lambda a: np.linalg.norm(a) > 0.01))
def test_axis_angle_channels_agree_with_mathutils(angle, axis):
    expected = np.array(Matrix.Rotation(angle, 3, Vector(axis)).to_quaternion())

    assert turn_between(from_channels("AXIS_ANGLE", np.array([(angle, *axis)])), expected[None]) < 1e-5


@given(order=st.sampled_from(EULER_ORDERS), quaternion=quaternions, previous=st.tuples(angles, angles, angles))
def test_euler_angles_are_as_near_to_the_frame_before_as_mathutils_gets_them(order, quaternion, previous):
    theirs = Quaternion(quaternion).to_euler(order, Euler(previous, order))
    # Nearer to gimbal lock, mathutils' first and third angle are inaccurate, because they have single precision.
    assume(abs(np.cos(theirs["XYZ".index(order[1])])) > 1e-3)

    ours = to_channels(order, quaternion[None], previous=np.array(previous))

    def distance(values):
        return np.abs(np.array(values) - previous).sum()

    assert distance(ours[0]) <= distance(theirs) + 1e-3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_channels_of_a_smooth_motion_do_not_jump(mode, seed):
    motion = smooth_motion(2000, seed)
    flipped = motion * np.random.default_rng(seed).choice((-1.0, 1.0), size=(2000, 1))

    values = to_channels(mode, flipped)

    assert turn_between(from_channels(mode, values), motion) < 1e-6
    steps = np.diff(values, axis=0)
    if mode == "QUATERNION":
        assert np.abs(steps).max() < 0.06
    elif mode == "AXIS_ANGLE":
        assert np.abs(steps[:, 0]).max() < 0.06
        assert ((values[1:, 1:] * values[:-1, 1:]).sum(axis=1) >= 0.0).all()
    else:
        # No Euler curve can be slow near gimbal lock, but none needs more than half a turn there.
        assert np.abs(steps).max() <= np.pi + 1e-9
        assert np.median(np.abs(steps).max(axis=1)) < 0.1


@pytest.mark.parametrize("order", EULER_ORDERS)
def test_an_angle_continues_through_gimbal_lock(order):
    frames = np.linspace(0.0, 3.0 * np.pi, 301)  # includes the right angles of gimbal lock
    expected = np.zeros((len(frames), 3))
    expected[:, "XYZ".index(order[1])] = frames
    expected[:, "XYZ".index(order[0])] = 0.3
    expected[:, "XYZ".index(order[2])] = -0.2

    values = to_channels(order, from_channels(order, expected))

    np.testing.assert_allclose(values, expected, atol=1e-6)


def test_a_rotation_through_zero_keeps_its_axis():
    values = np.column_stack((np.linspace(-1.0, 1.0, 21), np.tile((0.0, 0.6, 0.8), (21, 1))))

    again = to_channels("AXIS_ANGLE", from_channels("AXIS_ANGLE", values), previous=values[0])

    np.testing.assert_allclose(again, values, atol=1e-12)


def test_a_zero_rotation_takes_the_axis_of_its_neighbors():
    still = np.tile((1.0, 0.0, 0.0, 0.0), (3, 1))
    turned = from_channels("AXIS_ANGLE", np.array([[0.5, 0.0, 0.0, 1.0]]))

    only_still = to_channels("AXIS_ANGLE", still)
    then_turned = to_channels("AXIS_ANGLE", np.concatenate((still, turned)))

    np.testing.assert_array_equal(only_still, np.tile((0.0, 0.0, 1.0, 0.0), (3, 1)))
    np.testing.assert_allclose(then_turned[:, 1:], np.tile((0.0, 0.0, 1.0), (4, 1)), atol=1e-12)
    np.testing.assert_allclose(then_turned[:, 0], (0.0, 0.0, 0.0, 0.5), atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_several_bones_at_once_give_the_same_as_each_alone(mode):
    motions = np.stack([smooth_motion(50, seed) for seed in range(4)], axis=1)
    previous = np.random.default_rng(0).normal(size=(4, channel_count(mode)))

    together = to_channels(mode, motions, previous=previous)

    for bone in range(4):
        alone = to_channels(mode, motions[:, bone], previous=previous[bone])
        # The last bit may differ: numpy rounds cosines differently in long and short arrays.
        np.testing.assert_allclose(together[:, bone], alone, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_a_channel_stays_near_its_previous_value(mode):
    """Full turns and signs that an animator has set in a channel are kept."""
    values = {
        "QUATERNION": np.array((-0.8, 0.0, -0.6, 0.0)),
        "AXIS_ANGLE": np.array((7.0, 0.0, -0.6, 0.8)),
    }.get(mode, np.array((8.0, -7.0, 13.0)))

    again = to_channels(mode, from_channels(mode, values)[None], previous=values)

    np.testing.assert_allclose(again[0], values, atol=1e-12)


def test_only_euler_angles_have_three_channels():
    """The order of a constraint may be AUTO, which is no order of angles."""
    assert {mode for mode in (*MODES, "AUTO") if channel_count(mode) == 3} == set(EULER_ORDERS)
