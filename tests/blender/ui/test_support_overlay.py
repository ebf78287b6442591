"""What the overlay shows of a body's balance: its support, its centre of mass, and whether one is over the other."""

import numpy as np
import pytest

from fabrik_addon.blender.ui.overlays.goal_shapes import Look
from fabrik_addon.blender.ui.overlays.support_shapes import is_inside, support_lines

UP = np.array([0.0, 0.0, 1.0])
# A foot and the toes of the other one, on a floor at 0.5.
CORNERS = np.array([[-0.2, 0.1, 0.5], [0.2, 0.1, 0.5], [0.2, -0.1, 0.5], [0.1, -0.2, 0.5], [-0.2, -0.2, 0.5]])


def ends(lines):
    """The forms: how many edges each has."""
    return [len(each.ends) for each in lines]


def test_over_the_support_and_off_it_differ_in_form_and_look():
    over = support_lines(CORNERS, UP, np.array([0.05, 0.0, 1.4]), 0.1)
    off = support_lines(CORNERS, UP, np.array([0.3, 0.0, 1.4]), 0.1)
    assert {each.look for each in over} == {Look.PINNED}
    assert {each.look for each in off} == {Look.MISSED}
    assert ends(over) != ends(off)


def test_the_outline_is_closed_and_the_plumb_line_ends_on_the_ground():
    centre = np.array([0.3, 0.05, 1.4])
    outline, mark, plumb, foot = support_lines(CORNERS, UP, centre, 0.1)
    assert np.array_equal(outline.points, CORNERS)
    assert sorted(outline.ends[:, 0]) == sorted(outline.ends[:, 1]) == list(range(5))
    assert np.allclose(plumb.points[0], centre)
    assert np.allclose(plumb.points[-1], (0.3, 0.05, 0.5))
    assert np.allclose(mark.points.mean(axis=0), centre)
    assert np.allclose(foot.points.mean(axis=0), plumb.points[-1])


@pytest.mark.parametrize("seed", range(5))
def test_inside_agrees_with_a_mix_of_the_corners(seed):
    """However the outline is wound and wherever up is."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    corners = CORNERS[:: rng.choice([1, -1])] @ turn.T
    inside = rng.dirichlet(np.ones(5), size=20) @ corners + rng.normal(size=(20, 1)) * (turn @ UP)
    outside = corners.mean(axis=0) + 1.01 * (corners - corners.mean(axis=0))
    assert all(is_inside(corners, turn @ UP, point) for point in inside)
    assert not any(is_inside(corners, turn @ UP, point) for point in outside)
