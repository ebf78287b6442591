"""Gaps are filled from the frames next to them, long gaps from the motion of the other bones."""

import numpy as np
import pytest

from fabrik_addon.core.rotations import angle_between
from fabrik_addon.markers.gaps import fill_from_motion, fill_points

RATE = 100.0


def swinging(frames=600):
    """(F, 3, 4) two leading bones, and one that follows them with a delay."""
    phase = np.arange(frames) / RATE * 2.0 * np.pi
    angles = np.stack([np.sin(phase), np.cos(1.3 * phase), 0.7 * np.sin(phase - 0.4) ** 2], axis=1)
    half = 0.5 * angles
    return np.stack([np.cos(half), np.sin(half), 0.0 * half, 0.0 * half], axis=2)


def test_a_hidden_bone_moves_as_before_with_the_same_motion_of_others():
    rotations, known = swinging(), np.ones((600, 3), dtype=bool)
    known[200:300, 2] = False
    filled = fill_from_motion(rotations, known, 2, RATE)
    assert angle_between(filled, rotations[:, 2]).max() < 0.1


@pytest.mark.parametrize("after", [0, 3, 7])
def test_other_bones_missing_next_to_the_gap(after):
    """The motion of these bones is read up to 0.08 s before and after the gap. Unknown frames there are not used."""
    rotations, known = swinging(), np.ones((600, 3), dtype=bool)
    known[200:300, 2] = False
    known[300 + after : 310 + after, 0] = False
    filled = fill_from_motion(rotations, known, 2, RATE)
    assert np.isfinite(filled).all()
    assert angle_between(filled[known[:, 2]], rotations[known[:, 2], 2]).max() < 1e-6


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_gap_is_crossed_with_the_speeds_at_its_edges(noise):
    """A swing at 0.5 Hz through a gap of 0.3 s. Uniform motion is filled exactly, however long the gap is."""
    times, known = np.arange(300) / RATE, np.ones(300, dtype=bool)
    known[100:130] = False
    swing = np.sin(np.pi * times)[:, None]
    noisy = swing + np.random.default_rng(1).normal(0.0, noise, swing.shape)
    filled = fill_points(np.where(known[:, None], noisy, np.nan), known, RATE)
    assert np.abs(filled - swing)[~known].max() < 0.005 + 5.0 * noise
    assert (filled[known] == noisy[known]).all()
    uniform = times[:, None] * [1.0, -2.0]
    known[60:250:2] = False
    filled = fill_points(np.where(known[:, None], uniform, np.nan), known, RATE)
    assert filled == pytest.approx(uniform)
