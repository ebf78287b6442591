"""The input from mouse and keys, in known views, so that the expected shifts are known."""

from math import pi, radians

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrik_addon.blender.posing.mouse import DragInput, Lock, Ray, Typing, snap_step, turned_on
from fabrik_addon.blender.ui.overlays.drawing import locked_lines

PLACE = np.array((0.3, 0.1, 1.2))
AHEAD = np.array((0.0, 1.0, 0.0))
AXES = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
numbers = st.floats(-2.0, 2.0)


def through(point):
    """The line of sight, straight ahead from the front, through a point."""
    return Ray(np.array((point[0], -10.0, point[2])), AHEAD)


def moved(x, y, z):
    """The line of sight through the point after a shift."""
    return through(PLACE + np.array((x, y, z)))


def from_afar(point, eye=(3.0, -8.0, 4.0)):
    """The line of sight from an eye through a point."""
    eye = np.array(eye)
    return Ray(eye, (point - eye) / np.linalg.norm(point - eye))


def entered(first=None, **options):
    first = first or through(PLACE)
    return DragInput(PLACE, AXES, first, first, pixel=0.003, **options)


@given(numbers, numbers)
def test_the_point_stays_under_the_mouse_in_the_plane_of_the_view(x, z):
    now = entered()
    now.ray = moved(x, 0.0, z)
    assert np.allclose(now.shift(), (x, 0.0, z))


@given(st.sampled_from("XYZ"), numbers)
def test_along_an_axis_the_point_goes_where_the_mouse_is_on_it(axis, amount):
    shift = amount * np.eye(3)["XYZ".index(axis)]
    now = entered(from_afar(PLACE))
    now.press_axis(axis, plane=False)
    now.ray = from_afar(PLACE + shift)
    assert np.allclose(now.shift(), shift, atol=1e-9)


@given(st.sampled_from("XYZ"), numbers, numbers)
def test_in_a_plane_the_point_stays_under_the_mouse(axis, one, other):
    shift = np.insert(np.array((one, other)), "XYZ".index(axis), 0.0)
    now = entered(from_afar(PLACE))
    now.press_axis(axis, plane=True)
    now.ray = from_afar(PLACE + shift)
    assert np.allclose(now.shift(), shift, atol=1e-9)


def test_an_axis_along_the_line_of_sight_does_not_move():
    now = entered()
    now.press_axis("Y", plane=False)
    now.ray = moved(0.5, 0.0, 0.5)
    assert np.allclose(now.shift(), 0.0)


def test_the_same_key_goes_from_the_worlds_axis_to_the_bones_to_none():
    now = entered()
    now.ray = moved(0.5, 0.0, 0.25)
    now.press_axis("Y", plane=False)
    assert str(now.lock) == "along global Y"
    now.press_axis("Y", plane=False)
    assert str(now.lock) == "along local Y"
    # The bone's Y is the world's -X.
    assert np.allclose(now.shift(), (0.5, 0.0, 0.0))
    now.press_axis("Y", plane=False)
    assert now.lock == Lock()
    now.press_axis("Y", plane=True)
    now.press_axis("Z", plane=False)
    assert now.lock == Lock("Z")


@given(numbers, st.booleans())
def test_snapping_gives_whole_steps(amount, fine):
    now = entered(snap=True, fine=fine)
    now.press_axis("X", plane=False)
    now.ray = moved(amount, 0.0, 0.0)
    step = snap_step(now.pixel, fine=fine)
    assert abs(now.shift()[0] - amount) <= 0.5 * step + 1e-9
    assert np.isclose(now.shift()[0] / step, round(now.shift()[0] / step))


@pytest.mark.parametrize(("pixel", "step"), [(0.003, 0.1), (0.03, 1.0), (0.0002, 0.01)])
def test_snapping_steps_are_powers_of_ten(pixel, step):
    assert np.isclose(snap_step(pixel, fine=False), step)
    assert np.isclose(snap_step(pixel, fine=True), 0.1 * step)


class TestTyping:
    def type(self, now, text):
        for character in text:
            now.typing.type(character)

    @pytest.mark.parametrize(
        ("text", "value"), [("1.25", 1.25), ("-.5", -0.5), ("3-", -3.0), ("1.2.5", 1.25), ("-", 0.0)]
    )
    def test_a_number(self, text, value):
        now = entered()
        now.press_axis("Z", plane=False)
        self.type(now, text)
        assert np.allclose(now.shift(), (0.0, 0.0, value))

    def test_tab_switches_to_the_next_axis(self):
        now = entered()
        self.type(now, "1")
        now.typing.next(now.field_count)
        now.typing.next(now.field_count)
        self.type(now, "2")
        assert np.allclose(now.shift(), (1.0, 0.0, 2.0))
        now.typing.next(now.field_count)
        assert now.typing.place == 0

    def test_in_a_plane_there_are_two_numbers(self):
        now = entered()
        now.press_axis("X", plane=True)
        self.type(now, "1")
        now.typing.next(now.field_count)
        self.type(now, "2")
        assert np.allclose(now.shift(), (0.0, 1.0, 2.0))

    def test_erased_digits_give_the_mouse_control_again(self):
        now = entered()
        now.ray = moved(0.5, 0.0, 0.0)
        self.type(now, "12")
        now.typing.erase()
        assert np.allclose(now.shift(), (1.0, 0.0, 0.0))
        now.typing.erase()
        assert now.typing == Typing()
        assert np.allclose(now.shift(), (0.5, 0.0, 0.0))


class TestTurning:
    def turned(self, angle, **options):
        now = entered(rotating=True, **options)
        for share in np.linspace(0.1, 1.0, 10):
            ends = [np.array((np.cos(a), np.sin(a))) for a in ((share - 0.1) * angle, share * angle)]
            now.add_turn(*ends)
        return now

    @pytest.mark.parametrize("angle", [0.5, -2.0, 3.0 * pi])
    def test_about_the_line_of_sight_as_the_mouse_goes_around(self, angle):
        assert np.allclose(self.turned(angle).turn(), -angle * AHEAD)

    def test_about_an_axis_as_seen_from_its_side(self):
        now = self.turned(0.5)
        now.lock = Lock("Y")
        # The world's Y points away from the viewer, so counter-clockwise is a negative rotation about it.
        assert np.allclose(now.turn(), (0.0, -0.5, 0.0))
        now.lock = Lock("X", is_local=True)
        assert np.allclose(now.turn(), (0.0, -0.5, 0.0))

    def test_degrees_can_be_typed(self):
        now = entered(rotating=True)
        now.press_axis("Z", plane=False)
        for character in "90":
            now.typing.type(character)
        assert np.allclose(now.turn(), (0.0, 0.0, radians(90)))

    def test_rotations_snap_to_steps(self):
        assert np.allclose(self.turned(radians(13), snap=True).turn(), -radians(15) * AHEAD)
        assert np.allclose(self.turned(radians(13.4), snap=True, fine=True).turn(), -radians(13) * AHEAD)

    def test_moving_and_rotating_continue_from_each_other(self):
        now = entered()
        now.ray = moved(0.5, 0.0, 0.25)
        assert now.turn() is None
        now.rotate(True)
        now.add_turn(np.array((1.0, 0.0)), np.array((0.0, 1.0)))
        assert np.allclose(now.shift(), (0.5, 0.0, 0.25))
        now.rotate(False)
        now.ray = moved(0.6, 0.0, 0.25)
        assert np.allclose(now.shift(), (0.6, 0.0, 0.25))
        assert np.allclose(now.turn(), -0.5 * pi * AHEAD)
        now.rotate(True)
        now.add_turn(np.array((1.0, 0.0)), np.array((0.0, 1.0)))
        assert np.allclose(now.turn(), -pi * AHEAD) or np.allclose(now.turn(), pi * AHEAD)

    def test_two_turns_make_one(self):
        both = turned_on(np.array((0.5 * pi, 0, 0)), np.array((0, 0, 0.5 * pi)))
        # A third of a turn about the diagonal of a cube.
        assert np.allclose(both, 2.0 / 3.0 * pi * np.array((1, 1, 1)) / np.sqrt(3), atol=1e-6)


def test_lines_are_drawn_along_locked_axes():
    now = entered()
    assert locked_lines(now) == []
    now.press_axis("X", plane=False)
    ((axis, ends),) = locked_lines(now)
    assert axis == 0
    assert np.allclose(ends.mean(axis=0), PLACE)
    assert np.allclose((ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0]), (1, 0, 0))
    now.press_axis("Z", plane=True)
    assert [axis for axis, _ in locked_lines(now)] == [0, 1]
    now.press_axis("Z", plane=True)
    assert np.allclose(np.diff(locked_lines(now)[0][1], axis=0)[0] @ np.array((1.0, 0.0, 1.0)), 0.0)


def test_the_header_shows_the_movement():
    now = entered()
    now.ray = moved(0.5, 0.0, -0.00001)
    assert str(now) == "Move X 0.5000  Y 0.0000  Z 0.0000  (0.5000 m)"
    now.press_axis("X", plane=False)
    now.typing.type("7")
    assert str(now) == "Move X 7.0000  (7.0000 m), along global X, [7]"
    now.rotate(True)
    assert str(now) == "Rotate 0.0°"
