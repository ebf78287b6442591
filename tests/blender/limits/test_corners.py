"""Polygon limits as a list of points: added, moved and removed with the current pose, or made from an action."""

from itertools import pairwise
from math import pi

import bpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mathutils import Quaternion, Vector
from support import limited
from support.limited import write_limit

from fabrik_addon.blender.limits.editing import current_swing
from fabrik_addon.blender.settings.limit_properties import read_limit
from fabrik_addon.core import Fixed, Polygon
from fabrik_addon.core.limits import compose_arrays, fitted_limit, legal_rotations, window_around
from fabrik_addon.core.rotations import angle_between

SQUARE = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))


@pytest.fixture
def bone(clean_scene):
    """The active bone of a rig, with a square for a window."""
    rig = limited.make_mirrored_rig()
    limited.select(rig, ["head"], active="head")
    made = rig.pose.bones["head"]
    made.rotation_mode = "QUATERNION"
    write_limit(made, Polygon(SQUARE, (-0.3, 0.3)))
    return made


def lean_to(bone, x, z, twist=0.4):
    bone.rotation_quaternion = compose_arrays(np.array([x]), np.array([z]), np.array([twist]))[0]


def corners(bone):
    return np.array(bone["fabrik_window"]).reshape(-1, 2)


class TestPoints:
    @pytest.mark.parametrize("lean", [(0.7, 0.1), (-0.2, -1.5), (0.0, 0.0)])
    def test_the_swing_of_the_current_pose(self, bone, lean):
        lean_to(bone, *lean)
        assert current_swing(bone) == pytest.approx(lean, abs=1e-6)

    def test_a_swing_toward_x_has_a_positive_x(self, bone):
        bone.rotation_quaternion = Quaternion((0, 0, 1), -0.6)  # takes Y toward +X
        assert current_swing(bone) == pytest.approx((0.6, 0.0), abs=1e-6)

    @pytest.mark.parametrize(("lean", "place"), [((0.9, 0.1), 2), ((-0.1, 0.8), 3), ((-0.9, 0.0), 4), ((0.1, -0.7), 1)])
    def test_a_new_point_is_inserted_into_the_nearest_edge(self, bone, lean, place):
        lean_to(bone, *lean)
        bpy.ops.fabrik.add_limit_point(from_pose=True)
        wanted = [*SQUARE[:place], lean, *SQUARE[place:]]
        assert corners(bone) == pytest.approx(np.array(wanted), abs=1e-6)
        assert read_limit(bone).twist == (-0.3, 0.3)

    def test_a_duplicate_point_is_refused(self, bone):
        lean_to(bone, 0.5, 0.5)
        assert "There is already a point" in limited.refusal(bpy.ops.fabrik.add_limit_point, from_pose=True)
        assert corners(bone) == pytest.approx(np.array(SQUARE))

    def test_a_point_is_moved_to_the_current_swing(self, bone):
        lean_to(bone, 0.9, -0.8)
        bpy.ops.fabrik.move_limit_point(index=1)
        assert corners(bone) == pytest.approx(np.array([SQUARE[0], (0.9, -0.8), *SQUARE[2:]]), abs=1e-6)

    def test_a_move_that_makes_the_outline_invalid_is_refused(self, bone):
        lean_to(bone, 0.0, 0.9)
        assert "simple" in limited.refusal(bpy.ops.fabrik.move_limit_point, index=1)
        assert "no point number 4" in limited.refusal(bpy.ops.fabrik.move_limit_point, index=4)
        assert corners(bone) == pytest.approx(np.array(SQUARE))

    def test_only_polygons_have_points(self, bone):
        write_limit(bone, Fixed())
        assert "is not a polygon" in limited.refusal(bpy.ops.fabrik.move_limit_point, index=0)


POINTS = st.lists(st.tuples(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5)), min_size=1, max_size=40)


@pytest.mark.one_blender
class TestHull:
    @given(points=POINTS, margin=st.floats(0.0, 0.5))
    @settings(max_examples=60, deadline=None)
    def test_every_swing_is_inside_with_its_margin_and_corners_are_few(self, points, margin):
        leans = np.array(points)
        found = window_around(leans, margin)
        Polygon([tuple(point) for point in found])
        assert len(found) == 12
        for first, second in pairwise([*found, found[0]]):
            edge = second - first
            inward = np.array([-edge[1], edge[0]]) / np.linalg.norm(edge)
            assert ((leans - first) @ inward).min() > margin - 1e-9

    def test_the_outline_of_a_narrow_swing_is_narrow(self):
        along = np.linspace(-1.0, 1.0, 50)[:, None] * (0.8, 0.6)
        found = window_around(along, 0.05)
        x, z = found.T
        area = 0.5 * abs(x @ np.roll(z, -1) - z @ np.roll(x, -1))
        assert area < 1.15 * (2.0 * 2.0 * 0.05 + pi * 0.05**2)

    def test_the_outline_is_hardly_larger_than_needed(self):
        angles = np.linspace(0.0, 2.0 * pi, 500)
        circle = 0.8 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        found = window_around(circle, 0.0)
        assert np.linalg.norm(found, axis=1).max() < 0.8 / np.cos(pi / 12) * 1.05

    def test_no_corner_is_beyond_180_degrees(self):
        found = window_around(np.array([(3.0, 0.0), (0.0, 3.0), (-2.0, -2.0)]), 0.4)
        assert np.linalg.norm(found, axis=1).max() <= pi + 1e-12
        Polygon([tuple(point) for point in found])


class TestFromRotations:
    @given(seed=st.integers(0, 2**32 - 1), margin=st.floats(0.0, 0.2))
    @settings(max_examples=25, deadline=None)
    def test_the_outline_contains_the_poses(self, seed, margin):
        rng = np.random.default_rng(seed)
        turns = compose_arrays(*rng.uniform(-1.2, 1.2, (3, 30)))
        limit = fitted_limit(turns, margin, shape="POLYGON")
        assert angle_between(turns, legal_rotations(limit, turns)).max() < 1e-6

    def test_a_bone_that_does_not_rotate_is_fixed(self):
        assert fitted_limit(np.array([[1.0, 0.0, 0.0, 0.0]] * 3), shape="POLYGON") == Fixed()

    def test_a_single_pose_gives_an_outline(self):
        turn = compose_arrays(np.array([0.3]), np.array([0.2]), np.array([0.1]))
        limit = fitted_limit(turn, 0.1, shape="POLYGON")
        assert angle_between(turn, legal_rotations(limit, turn))[0] < 1e-6
        assert limit.twist == pytest.approx((0.0, 0.2))

    def test_an_l_shaped_set_of_swings_gives_a_concave_outline(self):
        leg = np.linspace(0.0, 1.0, 20)
        turns = compose_arrays(np.append(leg, 0 * leg), np.append(0 * leg, leg), np.zeros(40))
        limit = fitted_limit(turns, shape="POLYGON")
        far = compose_arrays(np.array([0.7]), np.array([0.7]), np.zeros(1))
        assert angle_between(far, legal_rotations(limit, far))[0] > 0.2


def test_an_outline_from_an_action(bone):
    leans = [(0.2, 0.9), (-0.6, 0.1), (0.4, -0.3), (0.0, 0.0)]
    for frame, lean in enumerate(leans, start=1):
        lean_to(bone, *lean, twist=0.1 * frame)
        bone.keyframe_insert("rotation_quaternion", frame=10 * frame)
    bpy.ops.fabrik.limits_from_action(bones="head", shape="POLYGON", margin=0.05)
    limit = read_limit(bone)
    assert isinstance(limit, Polygon)
    assert len(limit.window) <= 12
    for frame in range(10, 41):
        bpy.context.scene.frame_set(frame)
        turn = np.array(bone.matrix_basis.to_quaternion())[None]
        assert angle_between(turn, legal_rotations(limit, turn))[0] < 1e-5
    assert Vector(current_swing(bone)).length < 1e-5
    assert limit.twist == pytest.approx((0.05, 0.45), abs=0.02)
