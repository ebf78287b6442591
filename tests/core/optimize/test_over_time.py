"""The least change of a motion over time: compared with a dense process, and solved in parts; the share of noise."""

import numpy as np
import pytest

from fabrik_addon.core.optimize import over_time
from fabrik_addon.core.optimize.over_time import ChangeOverTime, noise_share

FRAMES = np.arange(60.0)
MASS = np.array([[1.0, 0.2], [0.2, 0.05]])
RISING = np.clip((FRAMES - 5.0) / 10.0, 0.0, 1.0) * np.clip((55.0 - FRAMES) / 10.0, 0.0, 1.0)


def held(on):
    """Rows that require the sum of both numbers to be a slow wave."""
    rows = np.tile([[1.0, 0.3]], (len(on), 1))
    return on, rows, np.sin(0.1 * on)


def prior(rough=1e-3, window=None):
    return ChangeOverTime(FRAMES, np.ones(60) if window is None else window, 10.0, MASS, rough, np.ones(2))


def test_the_change_is_the_mean_of_a_gaussian_process():
    on, rows, wanted = held(np.arange(20, 40))
    found, _ = prior(window=RISING).least(on, rows, wanted)
    apart = np.abs(FRAMES[:, None] - FRAMES)
    smooth = (1.0 + np.sqrt(3.0) * apart / 5.0) * np.exp(-np.sqrt(3.0) * apart / 5.0)
    light, lightest = np.linalg.inv(MASS), np.diag(1.0 / np.diag(MASS) ** 2)
    lightest *= 1e-3 * np.trace(light) / np.trace(lightest)
    both = np.outer(RISING, RISING)
    covariance = np.kron(both * smooth, light) + np.kron(both * np.exp(-0.5 * apart**2), lightest)
    matrix = np.zeros((len(on), 120))
    for row, frame in enumerate(on):
        matrix[row, 2 * frame : 2 * frame + 2] = rows[row]
    values = matrix @ covariance @ matrix.T
    values += 1e-6 * np.trace(values) / len(on) * np.eye(len(on))
    expected = covariance @ matrix.T @ np.linalg.solve(values, wanted)
    np.testing.assert_allclose(found, expected.reshape(60, 2), atol=1e-9)


def test_the_rows_are_met_and_frames_outside_the_window_stay():
    on, rows, wanted = held(np.arange(20, 40))
    found, _ = prior(window=RISING).least(on, rows, wanted)
    assert np.abs((rows * found[on]).sum(axis=1) - wanted).max() < 1e-3
    assert not found[RISING == 0.0].any()


def test_parts_give_the_same_result_as_the_whole(monkeypatch):
    on, rows, wanted = held(np.arange(5, 55))
    whole, _ = prior().least(on, rows, wanted)
    monkeypatch.setattr(over_time, "_MAX_ROWS", 30)
    parts, _ = prior().least(on, rows, wanted)
    assert np.abs(parts - whole).max() < 0.01 * np.abs(whole).max()


@pytest.mark.parametrize("noise", [0.03, 0.1])
def test_the_share_of_noise_is_measured(noise):
    values = np.sin(0.05 * np.arange(4000.0))[:, None] + np.random.default_rng(1).normal(0.0, noise, (4000, 1))
    assert noise_share(values) == pytest.approx(noise**2 / (0.5 + noise**2), rel=0.1)


def test_smooth_values_have_the_least_noise():
    assert noise_share(np.sin(0.05 * np.arange(100.0))[:, None]) == 1e-5
    assert noise_share(np.full((10, 3), np.nan)) == 1e-5
