"""The edge of a limit: a swing just inside does not change, and one just outside is moved onto the edge."""

import numpy as np
import pytest

from fabrik_addon.core import Ball, Polygon
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.limits import compose_arrays, swing_of

STEP = 1e-4
LIMITS = [Ball(0.5), Ball((0.3, 1.5, 0.7, 2.5)), Polygon(((0.5, 0.1), (0.1, 0.8), (-0.6, 0.2), (-0.2, -0.9)))]


def clamped(limit, leans):
    rotations = compose_arrays(leans[:, 0], leans[:, 1], np.zeros(len(leans)))
    lean = swing_of(many, limit.clamp(many, many.quaternion(rotations)))
    return np.stack([lean.x, lean.z], axis=-1)


@pytest.mark.parametrize("limit", LIMITS)
def test_the_outline_is_the_border_of_the_allowed_swings(limit):
    edge = limit.outline(64)
    assert len(edge) >= 64
    inside, outside = (1.0 - STEP) * edge, (1.0 + STEP) * edge
    assert clamped(limit, inside) == pytest.approx(inside, abs=1e-9)
    moved = np.linalg.norm(clamped(limit, outside) - outside, axis=1)
    assert (moved > 0.0).all()
    assert (moved <= 2.0 * STEP * np.linalg.norm(edge, axis=1)).all()


@pytest.mark.parametrize("limit", LIMITS)
def test_the_outline_goes_around_once(limit):
    x, z = limit.outline(64).T
    turns = np.diff(np.unwrap(np.arctan2(z, x)), append=np.arctan2(z[0], x[0]) + 2.0 * np.pi)
    assert (turns > 0.0).all()
    assert turns.sum() == pytest.approx(2.0 * np.pi)
