"""The shapes that the overlay draws, compared with the limits that they show."""

from math import pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabrik_addon.blender.ui.overlays.limits import ShapeKind, directions, shapes_of
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.limits import compose_arrays
from fabrik_addon.core.rotations import matrix_from_quaternion

REST = (1.0, 0.0, 0.0, 0.0)
LENGTH = 0.4
# An L, which is not convex, with rest outside.
WINDOW = ((0.2, 0.2), (1.2, 0.2), (1.2, 0.5), (0.6, 0.5), (0.6, 1.3), (0.2, 1.3))

angles = st.floats(0.05, 3.05)
balls = st.builds(
    lambda cone, low, width: Ball(cone, (low, low + width)), st.tuples(*[angles] * 4), st.floats(-3, 0), st.floats(0, 3)
)


def rotation(x=0.0, z=0.0, twist=0.0):
    """The quaternion (4,) with a swing and a twist."""
    return compose_arrays(*np.array([[x], [z], [twist]]))[0]


def of_kind(shapes, kind):
    return [shape for shape in shapes if shape.kind is kind]


def is_legal(limit, points, slack=1e-6):
    """Whether a bone may point toward each of some points (N, 3), up to rounding errors."""
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    turned = many.quaternion(compose_arrays(*leans_of(points).T, np.zeros(len(points))))
    kept = many.stack([limit.clamp(many, turned)], len(points))[:, 0]
    return np.linalg.norm(matrix_from_quaternion(kept)[:, :, 1] - unit, axis=1).max() < slack


@given(limit=balls, x=st.floats(-1, 1), z=st.floats(-1, 1), twist=st.floats(-3, 3))
def test_shapes_are_valid(limit, x, z, twist):
    for shape in shapes_of(limit, rotation(x, z, twist), LENGTH):
        assert np.isfinite(shape.vertices).all()
        for rows, width in ((shape.triangles, 3), (shape.lines, 2)):
            assert rows.shape[1:] == (width,)
            assert rows.size == 0 or (rows.min() >= 0 and rows.max() < len(shape.vertices))
        assert np.linalg.norm(shape.vertices, axis=1).max() < 1.1 * LENGTH


@settings(max_examples=30)
@given(limit=balls)
def test_a_balls_surface_is_where_the_tail_may_be(limit):
    lean = Ball(limit.cone)
    surface, *_ = of_kind(shapes_of(limit, REST, LENGTH), ShapeKind.RANGE)
    assert np.linalg.norm(surface.vertices, axis=1) == pytest.approx(LENGTH)
    assert is_legal(lean, surface.vertices)
    rim = surface.vertices[np.unique(surface.lines)]
    outside = directions(*(1.02 * leans_of(rim)).T)
    assert not any(is_legal(lean, point[None]) for point in outside)
    for angle, way in zip(limit.angles, ((1, 0), (0, 1), (-1, 0), (0, -1)), strict=True):
        end = LENGTH * directions(*(angle * np.array(way)))
        assert np.linalg.norm(rim - end, axis=1).min() < 1e-9, "the rim goes through the four angles"


def test_the_arcs_to_the_four_swing_angles_are_drawn():
    (guide,) = of_kind(shapes_of(Ball((0.3, 0.6, 0.9, 1.2)), REST, LENGTH), ShapeKind.GUIDE)
    ends = guide.vertices[guide.lines]
    assert np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).max() < 0.15 * LENGTH
    assert np.linalg.norm(ends - [0.0, LENGTH, 0.0], axis=2).min() < 1e-9
    for vertices in (ends[..., 0], ends[..., 2]):
        assert (np.abs(vertices) > 1e-9).any()
    assert (np.abs(ends[..., 0] * ends[..., 2]) < 1e-9).all()


@pytest.mark.parametrize("flip", [1, -1])
def test_the_surface_of_a_polygon_has_its_outline(flip):
    window = WINDOW[::flip]
    limit = Polygon(window)
    surface, *_ = of_kind(shapes_of(limit, REST, LENGTH), ShapeKind.RANGE)
    assert is_legal(limit, surface.vertices)
    leans = leans_of(surface.vertices)
    a, b, c = np.moveaxis(leans[surface.triangles], 1, 0)
    areas = np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
    assert areas.sum() == pytest.approx(1.0 * 0.3 + 0.4 * 0.8)
    start, end = np.moveaxis(leans[surface.lines], 1, 0)
    assert np.linalg.norm(end - start, axis=1).sum() == pytest.approx(2 * (1.0 + 1.1))
    for corner in window:
        assert np.linalg.norm(leans - corner, axis=1).min() < 1e-9


def leans_of(points):
    """(N, 2) the swings that rotate a bone toward points (N, 3)."""
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    size = np.hypot(unit[:, 0], unit[:, 2])
    return (np.arctan2(size, unit[:, 1]) / np.maximum(size, 1e-12))[:, None] * unit[:, [0, 2]]


@pytest.mark.parametrize("axis", ["X", "Z"])
@pytest.mark.parametrize(("low", "high"), [(-0.1, 2.5), (-2.0, -0.5), (0.3, 5.0), (0.0, 0.0)])
def test_the_fan_of_a_hinge_contains_the_allowed_tail_positions(axis, low, high):
    limit = Hinge(axis, low, high)
    fan, marker = shapes_of(limit, REST, LENGTH)
    center, rim = fan.vertices[0], fan.vertices[1:]
    assert np.linalg.norm(center) == 0.0
    ends = [matrix_from_quaternion(limit.sample(np.full(3, share)))[:, 1] * LENGTH for share in (0.0, 1.0)]
    assert rim[[0, -1]] == pytest.approx(np.array(ends))
    assert is_legal_hinge(limit, rim)
    assert set(map(tuple, fan.lines.tolist())) >= {(0, 1), (len(rim), 0)}
    assert marker.kind is ShapeKind.MARKER


def is_legal_hinge(limit, points):
    turns = np.linspace(limit.low, limit.high, 4001)
    places = np.stack([np.cos(turns), *(np.sin(turns) * np.array(limit.rotation_axis)[:, None])])
    half = np.stack([np.cos(turns / 2), *(np.sin(turns / 2) * np.array(limit.rotation_axis)[:, None])], axis=1)
    assert places.shape[0] == 4
    tails = matrix_from_quaternion(half)[:, :, 1] * LENGTH
    return max(np.linalg.norm(tails - point, axis=1).min() for point in points) < 2e-3 * LENGTH


def test_a_free_hinge_is_a_full_circle_and_a_free_ball_has_no_shape():
    fan, marker = shapes_of(Hinge("X"), REST, LENGTH)
    assert len(np.unique(fan.lines)) == len(fan.lines) == len(fan.vertices) - 1
    assert not marker.binds
    assert shapes_of(Ball(), REST, LENGTH) == []


def test_a_twist_is_a_fan_perpendicular_to_the_swung_bone():
    limit = Ball(pi, (-0.5, 1.0))
    lean = rotation(0.4, -0.7)
    fan, pointer = shapes_of(limit, rotation(0.4, -0.7, 0.3), LENGTH)
    along = matrix_from_quaternion(lean)[:, 1]
    assert (fan.vertices - fan.vertices[0]) @ along == pytest.approx(0.0, abs=1e-6)
    assert fan.vertices[0] == pytest.approx(0.5 * LENGTH * along, abs=1e-6)
    middle, tip = pointer.vertices
    front = matrix_from_quaternion(rotation(0.4, -0.7, 0.3))[:, 2]
    assert (tip - middle) / np.linalg.norm(tip - middle) == pytest.approx(front, abs=1e-6)
    for end, share in ((1, -0.5), (-1, 1.0)):
        way = matrix_from_quaternion(rotation(0.4, -0.7, share))[:, 2]
        spoke = fan.vertices[end] - fan.vertices[0]
        assert spoke / np.linalg.norm(spoke) == pytest.approx(way, abs=1e-6)


def test_a_hinge_about_y_is_a_fan_about_the_rest_direction():
    fan, pointer = shapes_of(Hinge("Y", -0.5, 1.0), rotation(twist=0.2), LENGTH)
    assert fan.vertices[:, 1] == pytest.approx(0.5 * LENGTH)
    assert not pointer.binds
    assert all(shape.binds for shape in shapes_of(Hinge("Y", -0.5, 1.0), rotation(twist=1.0), LENGTH))


@given(x=st.floats(-1.2, 1.2), z=st.floats(-1.2, 1.2), twist=st.floats(-2, 2))
def test_the_marker_is_at_the_tail_and_a_limit_binds_where_it_is_reached_or_passed(x, z, twist):
    limit = Ball((0.5, 0.7, 0.9, 0.6), (-1.0, 0.8))
    turned = rotation(x, z, twist)
    surface, guide, marker, fan, pointer = shapes_of(limit, turned, LENGTH)
    tail = matrix_from_quaternion(turned)[:, 1] * LENGTH
    assert marker.vertices[1] == pytest.approx(tail, abs=1e-6)
    level = (x / (0.5 if x > 0 else 0.9)) ** 2 + (z / (0.7 if z > 0 else 0.6)) ** 2
    if abs(level - 1) > 0.03:
        assert surface.binds == marker.binds == guide.binds == (level > 1)
        assert len(marker.triangles) == (0 if level > 1 else 2), "a cross where it binds, else a diamond"
    if min(abs(twist + 1.0), abs(twist - 0.8)) > 0.01:
        assert fan.binds == pointer.binds == (not -1.0 < twist < 0.8)


def test_a_limit_binds_at_and_beyond_its_ends_for_either_quaternion_sign():
    limit = Hinge("X", -0.2, 1.0)
    for turn in (1.0, -0.2, 1.4):
        half = np.array([np.cos(turn / 2), np.sin(turn / 2), 0.0, 0.0])
        assert all(shape.binds for sign in (1, -1) for shape in shapes_of(limit, sign * half, LENGTH))
    assert not any(shape.binds for sign in (1, -1) for shape in shapes_of(limit, sign * rotation(z=0.5), LENGTH))


def test_without_twist_the_limit_is_active_only_if_the_bone_is_twisted():
    limit = Ball(0.5, (0.0, 0.0))
    assert not any(shape.binds for shape in shapes_of(limit, rotation(0.1, 0.2), LENGTH))
    assert any(shape.binds for shape in shapes_of(limit, rotation(0.1, 0.2, 0.1), LENGTH))


def test_a_fixed_bone_has_a_lock_and_is_at_its_limit_only_if_rotated():
    (lock,) = shapes_of(Fixed(), REST, LENGTH)
    assert not lock.binds
    assert np.abs(lock.vertices).max() < 0.2 * LENGTH
    lock, marker = shapes_of(Fixed(), rotation(0.3), LENGTH)
    assert lock.binds
    assert marker.kind is ShapeKind.MARKER


def test_shapes_grow_with_the_bone():
    limit = Ball((0.5, 0.7, 0.9, 0.6), (-1.0, 0.8))
    for small, large in zip(shapes_of(limit, REST, 1.0), shapes_of(limit, REST, 3.0), strict=True):
        assert 3.0 * small.vertices == pytest.approx(large.vertices)
