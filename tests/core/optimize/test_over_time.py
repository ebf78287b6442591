"""The least change of a motion over time, compared with a dense process; the share of noise."""

import numpy as np
import pytest

from fabrik_addon.core.edit import ChangeOverTime, noise_share

FRAMES = np.arange(60.0)
MASS = np.array([[1.0, 0.2], [0.2, 0.05]])
RISING = np.clip((FRAMES - 5.0) / 10.0, 0.0, 1.0) * np.clip((55.0 - FRAMES) / 10.0, 0.0, 1.0)


def held(on):
    """Rows that require the sum of both numbers to be a slow wave."""
    rows = np.tile([[1.0, 0.3]], (len(on), 1))
    return on, rows, np.sin(0.1 * on)


def prior(rough=1e-3, expected=(0.0, 0.0)):
    return ChangeOverTime(FRAMES, RISING, 10.0, MASS, rough, np.ones(2), RISING[:, None] * expected)


@pytest.mark.parametrize("expected", [(0.0, 0.0), (0.4, -0.7)])
def test_the_change_is_the_mean_of_a_gaussian_process(expected):
    on, rows, wanted = held(np.arange(20, 40))
    found, forces = prior(expected=expected).least(on, rows, wanted)
    apart = np.abs(FRAMES[:, None] - FRAMES)
    smooth = (1.0 + np.sqrt(3.0) * apart / 5.0) * np.exp(-np.sqrt(3.0) * apart / 5.0)
    light, lightest = np.linalg.inv(MASS), np.diag(1.0 / np.diag(MASS) ** 2)
    lightest *= 1e-3 * np.trace(light) / np.trace(lightest)
    both = np.outer(RISING, RISING)
    covariance = np.kron(both * smooth, light) + np.kron(both * np.eye(60), lightest)
    matrix = np.zeros((len(on), 120))
    for row, frame in enumerate(on):
        matrix[row, 2 * frame : 2 * frame + 2] = rows[row]
    values = matrix @ covariance @ matrix.T
    values += 1e-6 * np.diag(np.diag(values))
    mean = np.outer(RISING, expected).ravel()
    multipliers = np.linalg.solve(values, wanted - matrix @ mean)
    np.testing.assert_allclose(forces, multipliers, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, (mean + covariance @ matrix.T @ multipliers).reshape(60, 2), atol=1e-9)


def test_the_rows_are_met_and_frames_outside_the_window_stay():
    on, rows, wanted = held(np.arange(20, 40))
    found, _ = prior().least(on, rows, wanted)
    assert np.abs((rows * found[on]).sum(axis=1) - wanted).max() < 1e-3
    assert not found[RISING == 0.0].any()


@pytest.mark.parametrize("noise", [0.03, 0.1])
def test_the_share_of_noise_is_measured(noise):
    values = np.sin(0.05 * np.arange(4000.0))[:, None] + np.random.default_rng(1).normal(0.0, noise, (4000, 1))
    assert noise_share(values) == pytest.approx(noise**2 / (0.5 + noise**2), rel=0.1)


def test_smooth_values_have_the_least_noise():
    assert noise_share(np.sin(0.05 * np.arange(100.0))[:, None]) == 1e-5
    assert noise_share(np.full((10, 3), np.nan)) == 1e-5
