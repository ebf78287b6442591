"""Properties of each kind of limit: the ellipse, the hinge's range, the outline, and invalid values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import checker

from fabrik_addon.core import Ball, Fixed, Hinge, LimitError, Polygon
from fabrik_addon.core.backend.array import many
from fabrik_addon.core.limits import nearest_on_ellipse

PI = np.pi
DEGREES = st.integers(-179, 179)


def turn(axis, degrees):
    """(1, 4) a rotation about a local axis."""
    half = np.radians(degrees) / 2
    return np.concatenate([[np.cos(half)], np.sin(half) * np.eye(3)["XYZ".index(axis)]])[None]


def clamped(limit, quaternion):
    return many.stack([limit.clamp(many, many.quaternion(quaternion))], len(quaternion))[:, 0]


def leaning(x_deg, z_deg, twist_deg=0.0):
    """(1, 4) a rotation with a swing and a twist in degrees."""
    lean = np.radians([[x_deg, z_deg]])
    matrix = checker.composed(lean, np.radians([twist_deg]))
    return quaternions(matrix)


def quaternions(matrices):
    """(N, 4) quaternions from matrices (N, 3, 3), by the axis."""
    angle = checker.size_of_turn(matrices)
    skew = np.stack(
        [
            matrices[:, 2, 1] - matrices[:, 1, 2],
            matrices[:, 0, 2] - matrices[:, 2, 0],
            matrices[:, 1, 0] - matrices[:, 0, 1],
        ],
        1,
    )
    axis = skew / np.maximum(np.linalg.norm(skew, axis=1, keepdims=True), 1e-300)
    return np.concatenate([np.cos(angle / 2)[:, None], np.sin(angle / 2)[:, None] * axis], axis=1)


def lean_and_twist_deg(quaternion):
    lean, twist = checker.lean_and_twist(checker.matrices(quaternion))
    return np.degrees(lean[0]), np.degrees(twist[0])


class TestBall:
    @pytest.mark.parametrize(
        ("x", "z", "to_x", "to_z"),
        [
            (80, 0, 50, 0),  # each axis has its own angle
            (0, 80, 0, 80),
            (-80, 0, -40, 0),
            (0, -80, 0, -20),
            (50, 0, 50, 0),
            (0, 110, 0, 110),
            (0, 150, 0, 110),
        ],
    )
    def test_on_the_axes_the_swing_is_clamped_to_the_end_of_the_axis(self, x, z, to_x, to_z):
        limit = Ball(tuple(np.radians([50, 110, 40, 20])))
        lean, _ = lean_and_twist_deg(clamped(limit, leaning(x, z)))
        assert lean == pytest.approx([to_x, to_z], abs=1e-6)

    def test_a_point_outside_goes_to_the_nearest_not_to_the_scaled_one(self):
        limit = Ball(tuple(np.radians([60, 20, 60, 20])))
        lean, _ = lean_and_twist_deg(clamped(limit, leaning(50, 40)))
        scale = 1 / np.hypot(50 / 60, 40 / 20)
        assert np.hypot(lean[0] - 50, lean[1] - 40) < 0.8 * np.hypot(50 - 50 * scale, 40 - 40 * scale)

    @pytest.mark.parametrize("cone", [0.0, 1e-6, PI / 2, 3.0, PI])
    @pytest.mark.parametrize("lean", [0.0, 90.0, 179.0])
    @pytest.mark.parametrize("azimuth", [0, 45, 90, 180, 270])
    def test_a_round_cone_keeps_the_azimuth(self, cone, lean, azimuth):
        x, z = lean * np.cos(np.radians(azimuth)), lean * np.sin(np.radians(azimuth))
        found, _ = lean_and_twist_deg(clamped(Ball(cone), leaning(x, z)))
        share = min(1.0, np.degrees(cone) / lean) if lean else 0.0
        assert found == pytest.approx([x * share, z * share], abs=1e-6)

    def test_a_swing_of_180_degrees_is_clamped_to_the_cone(self):
        for quaternion in ([0, 1, 0, 0], [0, 0, 0, 1], [0, 0.6, 0, 0.8]):
            lean, _ = lean_and_twist_deg(clamped(Ball(0.5), np.array([quaternion], dtype=float)))
            assert np.hypot(*lean) == pytest.approx(np.degrees(0.5), abs=1e-6)

    def test_without_a_cone_only_twist_is_allowed(self):
        found = clamped(Ball(0.0, (-1.0, 1.0)), leaning(40, 30, 20))
        lean, twist = lean_and_twist_deg(found)
        assert lean == pytest.approx([0, 0], abs=1e-9)
        assert twist == pytest.approx(20, abs=1e-9)

    def test_a_flat_cone_allows_a_line_of_swings(self):
        limit = Ball((1.0, 0.0, 0.5, 0.0))
        for x, z, to_x in ((40, 30, 40), (80, -30, np.degrees(1)), (-80, 5, -np.degrees(0.5))):
            lean, _ = lean_and_twist_deg(clamped(limit, leaning(x, z)))
            assert lean == pytest.approx([to_x, 0], abs=1e-6)

    @pytest.mark.parametrize(
        ("twist", "start", "end"),
        [
            ((-30, 60), 90, 60),
            ((-30, 60), -90, -30),
            ((-30, 60), 170, 60),  # 110° to the upper end, 160° to the lower
            ((-30, 60), -150, -30),
            ((20, 60), 0, 20),  # rest is outside
            ((170, 200), 190, 190),  # across 180°
            ((170, 200), -170, 190),
            ((170, 200), -100, 200),
            ((-180, 180), 179, 179),
        ],
    )
    def test_twist_goes_to_the_nearer_end(self, twist, start, end):
        limit = Ball(1.0, tuple(np.radians(twist)))
        _, found = lean_and_twist_deg(clamped(limit, leaning(10, 20, start)))
        assert np.cos(np.radians(found - end)) == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("half_axes", [(0.3, 1.2), (1e-4, 2.0), (PI, PI), (0.0, 1.0), (0.0, 0.0), (1.0, 1e-9)])
    def test_newton_is_the_nearest_point_of_the_ellipse(self, half_axes):
        """Compared with a search over the outline, including the axes and the center."""
        right, front = half_axes
        x, z = (side.ravel() for side in np.meshgrid(np.linspace(-3, 3, 25), np.linspace(-3, 3, 25)))
        nx, nz = nearest_on_ellipse(many, x, z, np.full_like(x, right), np.full_like(z, front))
        limit = Ball((right, front, right, front))
        leans = np.stack([x, z], axis=1)
        best = np.where(checker.holds(limit, leans)[:, None], leans, checker.nearest_on_outline(limit, leans))
        assert (np.hypot(nx - x, nz - z) - np.linalg.norm(best - leans, axis=1)).max() < 1e-8
        found = np.stack([nx, nz], axis=1)
        assert (
            np.linalg.norm(checker.nearest_on_outline(limit, found) - found, axis=1)[~checker.holds(limit, found)].max(
                initial=0.0
            )
            < 1e-8
        )

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ({"cone": -0.1}, "A ball's cone is -0.1"),
            ({"cone": 3.5}, "cone is 3.5"),
            ({"cone": (1.0, 1.0)}, "one angle or four"),
            ({"cone": (1.0, 1.0, np.nan, 1.0)}, "each from 0 to 180°"),
            ({"cone": 1.0, "twist": (1.0, -1.0)}, "A ball's twist is from 1.0 to -1.0"),
            ({"cone": 1.0, "twist": (0.0, np.inf)}, "two finite angles"),
        ],
    )
    def test_invalid_values_are_refused(self, arguments, sentence):
        with pytest.raises(LimitError) as caught:
            Ball(**arguments)
        assert sentence in str(caught.value)


class TestHinge:
    @pytest.mark.parametrize(
        ("low", "high", "start", "end"),
        [
            (20, 150, 0, 20),  # rest is outside
            (20, 150, 90, 90),
            (20, 150, -170, 150),  # 40° above the upper end
            (20, 150, -30, 20),
            (-150, -5, 0, -5),
            (-150, -5, 170, -150),
            (0, 0, 50, 0),
            (30, 30, -50, 30),
            (0, 180, -10, 0),  # one-sided, although the other side goes to 180°
            (0, 180, -170, 180),
            (-180, 0, 10, 0),
            (0, 180, 179, 179),
            (-120, 200, -130, -120),
            (-120, 200, -150, 200),  # 10° above the upper end
            (-120, 200, -170, 190),  # 190° is inside
            (100, 260, -179, 181),
            (100, 260, 0, 100),
            (-170, 170, 179, 170),
            (-170, 170, -179, -170),
            (-180, 180, -179, -179),
            (0, 360, -10, 350),
        ],
    )
    @pytest.mark.parametrize("axis", ["X", "Y", "Z"])
    def test_ranges(self, axis, low, high, start, end):
        found = clamped(Hinge(axis, np.radians(low), np.radians(high)), turn(axis, start))
        assert abs(found[0] @ turn(axis, end)[0]) == pytest.approx(1, abs=1e-12)

    @given(low=DEGREES, width=st.integers(0, 400), start=DEGREES)
    def test_the_angle_is_on_the_side_of_the_middle(self, low, width, start):
        """If the range is near 180°, 181° does not become -179°."""
        hinge = Hinge("X", np.radians(low), np.radians(low + width))
        angle = float(np.degrees(np.ravel(hinge.angle(many, many.quaternion(turn("X", start))))[0]))
        assert abs(angle - (low + width / 2)) <= 180 + 1e-9
        assert np.cos(np.radians(angle - start)) == pytest.approx(1, abs=1e-12)

    def test_181_degrees_is_not_minus_179(self):
        hinge = Hinge("Z", np.radians(100), np.radians(200))
        assert np.degrees(hinge.angle(many, many.quaternion(turn("Z", -179)))) == pytest.approx(181)
        assert np.degrees(hinge.angle(many, many.quaternion(-turn("Z", -179)))) == pytest.approx(181)

    @pytest.mark.parametrize("axis", ["X", "Y", "Z"])
    def test_rotations_about_other_axes_are_removed(self, axis):
        rng = np.random.default_rng(2)
        turns = rng.normal(size=(50, 4))
        turns /= np.linalg.norm(turns, axis=1, keepdims=True)
        found = clamped(Hinge(axis), turns)
        others = [1 + "XYZ".index(other) for other in "XYZ" if other != axis]
        assert np.abs(found[:, others]).max() == 0

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (("x", 0, 1), "axis is 'x': it must be 'X', 'Y' or 'Z'"),
            (("X", 1.0, 0.5), "A hinge's range is from 1.0 to 0.5"),
            (("X", np.nan, 0.5), "two finite angles"),
        ],
    )
    def test_invalid_values_are_refused(self, arguments, sentence):
        with pytest.raises(LimitError) as caught:
            Hinge(*arguments)
        assert sentence in str(caught.value)


class TestPolygon:
    SQUARE = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
    ARROW = ((0.2, 0.2), (1.0, 0.5), (0.2, 0.8), (0.5, 0.5))  # concave at its last corner, without rest

    @pytest.mark.parametrize("window", [SQUARE, SQUARE[::-1]], ids=["one way", "the other way"])
    @pytest.mark.parametrize(
        ("x", "z", "to_x", "to_z"),
        [(1.0, 0.0, 0.5, 0.0), (1.0, 1.0, 0.5, 0.5), (0.2, 0.1, 0.2, 0.1), (-0.6, 0.3, -0.5, 0.3)],
    )
    def test_either_winding(self, window, x, z, to_x, to_z):
        lean, _ = lean_and_twist_deg(clamped(Polygon(window), leaning(*np.degrees([x, z]))))
        assert np.radians(lean) == pytest.approx([to_x, to_z], abs=1e-9)

    def test_rest_outside(self):
        lean, _ = lean_and_twist_deg(clamped(Polygon(self.ARROW), np.array([[1.0, 0, 0, 0]])))
        assert np.radians(lean) == pytest.approx([0.2, 0.2], abs=1e-9)

    def test_in_the_notch_of_a_concave_outline(self):
        """Between the spikes, a swing is moved to the nearer inner side, not across."""
        x, z = 0.25, 0.48
        lean, _ = lean_and_twist_deg(clamped(Polygon(self.ARROW), leaning(*np.degrees([x, z]))))
        start, end = np.array(self.ARROW[3]), np.array(self.ARROW[0])
        side = (end - start) / np.linalg.norm(end - start)
        foot = start + side * ((np.array([x, z]) - start) @ side)
        assert np.radians(lean) == pytest.approx(foot, abs=1e-9)

    def test_twist_is_clamped_too(self):
        _, twist = lean_and_twist_deg(clamped(Polygon(self.SQUARE, (-0.2, 0.1)), leaning(10, 10, 40)))
        assert np.radians(twist) == pytest.approx(0.1, abs=1e-9)

    @pytest.mark.parametrize(
        ("window", "sentence"),
        [
            ([(0, 0), (1, 0)], "2 points: give at least three"),
            ([(0, 0), (1, 0), (2, 0)], "no area"),
            ([(0, 0), (4, 0), (0, 1)], "not a swing"),
            ([(0, 0), (np.nan, 0), (0, 1)], "not a swing"),
            ([(0, 0), (1, 1), (1, 0), (0, 1)], "touch or cross"),
            ([(0, 0), (0, 0), (1, 0), (0, 1)], "touch or cross"),
        ],
    )
    def test_invalid_values_are_refused(self, window, sentence):
        with pytest.raises(LimitError) as caught:
            Polygon(window)
        assert sentence in str(caught.value)


def test_a_fixed_bone_does_not_rotate():
    found = clamped(Fixed(), np.array([[0.6, 0.8, 0.0, 0.0], [1.0, 0, 0, 0]]))
    assert (found == [1, 0, 0, 0]).all()
