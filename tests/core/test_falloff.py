"""How a change fades out over frames."""

import numpy as np
import pytest

from fabrik_addon.core.arrays import falloff


def test_the_share_is_one_at_the_frame_and_zero_beyond_the_ends():
    frames = np.arange(0.0, 101.0)
    shares = falloff(frames, 40.0, 40.0, 10.0, 30.0)
    assert shares[40] == 1.0
    assert not shares[:31].any()
    assert not shares[70:].any()
    assert (np.diff(shares[30:41]) >= 0.0).all()
    assert (np.diff(shares[40:71]) <= 0.0).all()


def test_acceleration_is_continuous():
    times = np.linspace(-1.2, 1.2, 24001)
    acceleration = np.gradient(np.gradient(falloff(times, 0.0, 0.0, 1.0, 1.0), times), times)
    assert np.abs(np.diff(acceleration)).max() < 5e-3 * np.abs(acceleration).max()
    assert np.abs(acceleration[np.abs(times) > 1.001]).max() < 1e-6


def test_the_acceleration_is_that_of_least_jerk():
    times = np.linspace(-1.0, 1.0, 20001)
    acceleration = np.gradient(np.gradient(falloff(times, 0.0, 0.0, 1.0, 1.0), times), times)
    assert np.abs(acceleration).max() == pytest.approx(10.0 / np.sqrt(3.0), rel=1e-3)


def test_a_span_of_one_frame_changes_only_that_frame():
    assert falloff(np.array([4.0, 5.0, 6.0]), 5.0, 5.0, 0.0, 0.0).tolist() == [0.0, 1.0, 0.0]


def test_the_share_is_one_from_the_first_frame_to_the_last():
    shares = falloff(np.arange(0.0, 101.0), 40.0, 60.0, 10.0, 30.0)
    assert (shares[40:61] == 1.0).all()
    assert shares[30] == shares[90] == 0.0
    assert shares[35] == shares[75] == 0.5
