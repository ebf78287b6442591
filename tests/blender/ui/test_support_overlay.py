"""The overlay of a body's balance: its support, its center of mass, and whether one is above the other."""

import bpy
import numpy as np
import pytest
from support import scenes

from fabrik_addon.blender.ui.overlays.drawing import COLORS
from fabrik_addon.blender.ui.overlays.goals import balance_lines, is_inside, support_lines

UP = np.array([0.0, 0.0, 1.0])
# A foot and the toes of the other one, on a floor at 0.5.
CORNERS = np.array([[-0.2, 0.1, 0.5], [0.2, 0.1, 0.5], [0.2, -0.1, 0.5], [0.1, -0.2, 0.5], [-0.2, -0.2, 0.5]])


def ends(lines):
    """The number of edges of each drawn shape."""
    return [len(each.rows) for each in lines]


def test_balanced_and_unbalanced_are_drawn_with_different_shapes_and_colors():
    over = support_lines(CORNERS, UP, np.array([0.05, 0.0, 1.4]), 0.1)
    off = support_lines(CORNERS, UP, np.array([0.3, 0.0, 1.4]), 0.1)
    assert {each.color for each in over} == {COLORS["pinned"]}
    assert {each.color for each in off} == {COLORS["missed"]}
    assert ends(over) != ends(off)


def test_the_outline_is_closed_and_the_plumb_line_ends_on_the_ground():
    center = np.array([0.3, 0.05, 1.4])
    outline, mark, plumb, foot = support_lines(CORNERS, UP, center, 0.1)
    assert np.array_equal(outline.points, CORNERS)
    assert sorted(outline.rows[:, 0]) == sorted(outline.rows[:, 1]) == list(range(5))
    assert np.allclose(plumb.points[0], center)
    assert np.allclose(plumb.points[-1], (0.3, 0.05, 0.5))
    assert np.allclose(mark.points.mean(axis=0), center)
    assert np.allclose(foot.points.mean(axis=0), plumb.points[-1])


@pytest.mark.parametrize("seed", range(5))
def test_weighted_means_of_corners_are_inside(seed):
    """In either winding and with any up direction."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    corners = CORNERS[:: rng.choice([1, -1])] @ turn.T
    inside = rng.dirichlet(np.ones(5), size=20) @ corners + rng.normal(size=(20, 1)) * (turn @ UP)
    outside = corners.mean(axis=0) + 1.01 * (corners - corners.mean(axis=0))
    assert all(is_inside(corners, turn @ UP, point) for point in inside)
    assert not any(is_inside(corners, turn @ UP, point) for point in outside)


class TestRig:
    """A table whose four posts are pinned, scaled by two."""

    @pytest.fixture
    def rig(self, clean_scene):
        posts = [
            (f"post{n}", "", (x, y, 1.0), (x, y, 0.0)) for n, (x, y) in enumerate([(0, 0), (2, 0), (2, 1), (0, 1)])
        ]
        made = scenes.place(scenes.make_rig(posts), scale=2.0)
        scenes.make_active(made)
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.fabrik.pin(bones=",".join(name for name, *_ in posts))
        made.fabrik.balance = "ON"
        bpy.context.view_layer.update()
        return made

    def test_the_support_and_the_center_of_mass_are_drawn_in_the_world(self, rig):
        outline, mark, _, foot = balance_lines(rig)
        tails = np.array([rig.matrix_world @ bone.tail for bone in rig.pose.bones])
        tails[:, 2] = tails[:, 2].min()
        # Sorted, since outlines and bones have no order; compared with a tolerance, since they are rounded differently.
        corners, expected = (points[np.argsort(points[:, 0])] for points in (np.unique(outline.points, axis=0), tails))
        assert np.allclose(corners, expected, atol=1e-4)
        middle = np.mean([rig.matrix_world @ bone.center for bone in rig.pose.bones], axis=0)
        assert np.allclose(mark.points.mean(axis=0), middle, atol=1e-5)
        assert np.allclose(foot.points.mean(axis=0)[:2], middle[:2], atol=1e-5)
        assert outline.color == COLORS["pinned"]

    def test_a_center_of_mass_outside_the_support_is_drawn_in_orange(self, rig):
        rig.pose.bones["post0"].location = (-20.0, 0.0, 0.0)
        bpy.ops.fabrik.set_limit(bones="post0", mass=0.9)
        rig.fabrik.active_effector = 0
        bpy.ops.fabrik.remove_effector()
        bpy.context.view_layer.update()
        assert {line.color for line in balance_lines(rig)} == {COLORS["missed"]}

    def test_pins_of_deleted_bones_are_ignored_and_rigs_without_size_have_no_support(self, rig):
        """Fixed: each redraw raised an error."""
        bpy.ops.object.mode_set(mode="EDIT")
        rig.data.edit_bones.remove(rig.data.edit_bones["post0"])
        bpy.ops.object.mode_set(mode="POSE")
        assert len(balance_lines(rig)[0].points) == 3
        rig.scale = (0.0, 0.0, 0.0)
        bpy.context.view_layer.update()
        assert balance_lines(rig) == []

    def test_nothing_is_drawn_without_balance_or_with_an_invalid_mass(self, rig):
        rig.pose.bones["post0"]["fabrik_mass"] = "much"
        assert balance_lines(rig) == []
        del rig.pose.bones["post0"]["fabrik_mass"]
        assert balance_lines(rig)
        rig.fabrik.balance = "OFF"
        assert balance_lines(rig) == []
