"""The custom properties of limits: written values are read back, and errors name invalid ones."""

from math import inf, nan, pi

import bpy
import numpy as np
import pytest
from hypothesis import given
from support import limited, scenes
from support.limited import write_limit

from fabrik_addon.blender.settings.limit_properties import (
    NAMES,
    LimitPropertyError,
    clear_limit,
    read_limit,
    read_limits,
    read_settings,
    write_settings,
)
from fabrik_addon.blender.settings.limit_values import LimitSettings
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def rig():
    made = scenes.make_rig()
    scenes.make_active(made)
    return made


@pytest.fixture
def bone(rig):
    return rig.pose.bones["upper_arm.L"]


def same(found, wanted):
    """Whether two limits allow the same rotations, even if their values are written differently."""
    if type(found) is not type(wanted):
        return False
    if isinstance(wanted, Ball):
        return np.allclose([*found.angles, *found.twist], [*wanted.angles, *wanted.twist], atol=2e-5)
    if isinstance(wanted, Hinge):
        return found.axis == wanted.axis and np.allclose([found.low, found.high], [wanted.low, wanted.high], atol=2e-5)
    if isinstance(wanted, Polygon):
        return np.allclose(found.window, wanted.window) and np.allclose(found.twist, wanted.twist, atol=2e-5)
    return True


class TestRoundTrip:
    """A limit comes back as it was written, also over one of another kind."""

    @limited.in_one_scene(100)
    @given(limited.limits, limited.limits)
    def test_every_kind(self, bone, before, limit):
        write_limit(bone, before)
        write_limit(bone, limit)
        assert same(read_limit(bone), limit)

    def test_one_angle_is_used_for_all_four(self, bone):
        write_limit(bone, Ball(0.5))
        assert read_limit(bone) == Ball((0.5, 0.5, 0.5, 0.5))
        assert list(bone["fabrik_cone"]) == [0.5] * 4

    def test_whole_numbers_become_floats(self, bone):
        write_limit(bone, Ball((1, 1, 1, 1), (-1, 1)))
        bone["fabrik_cone"][0] = 0.25
        assert read_limit(bone).angles == (0.25, 1.0, 1.0, 1.0)

    def test_values_of_another_type_are_kept(self, bone):
        write_limit(bone, Ball((0.1, 0.2, 0.3, 0.4), (-0.5, 0.6)))
        write_limit(bone, Hinge("Z", 0.1, 2.0))
        assert read_settings(bone) == LimitSettings("HINGE", (0.1, 0.2, 0.3, 0.4), (-0.5, 0.6), "Z", (0.1, 2.0))

    def test_read_limits_has_the_limited_bones_only(self, rig):
        write_limit(rig.pose.bones["head"], Fixed())
        write_limit(rig.pose.bones["spine"], Hinge("X", 0.0, 1.0))
        write_settings(rig.pose.bones["hips"], LimitSettings())
        assert read_limits(rig) == {"head": Fixed(), "spine": Hinge("X", 0.0, 1.0)}
        assert read_limits(rig, ["spine", "hips", "shin.L"]) == {"spine": Hinge("X", 0.0, 1.0)}

    def test_none_clears(self, bone):
        write_limit(bone, Polygon([(0, 0), (1, 0), (0, 1)]))
        write_limit(bone, None)
        assert read_limit(bone) is None
        assert not any(name in bone for name in NAMES.values())

    def test_clearing_a_free_bone_does_nothing(self, bone):
        clear_limit(bone)
        assert list(bone.keys()) == []


class TestAbsent:
    """A missing property has the documented meaning."""

    def test_no_limit_is_free(self, bone):
        assert read_limit(bone) is None
        assert read_settings(bone).type == "FREE"

    @pytest.mark.parametrize(
        ("kind", "limit"), [("BALL", Ball()), ("HINGE", Hinge()), ("FIXED", Fixed()), ("FREE", None)]
    )
    def test_a_type_without_values(self, bone, kind, limit):
        bone["fabrik_limit"] = kind
        assert read_limit(bone) == limit or same(read_limit(bone), limit)

    def test_a_polygon_without_a_window_is_named(self, bone):
        bone["fabrik_limit"] = "POLYGON"
        with pytest.raises(LimitPropertyError, match=r"'upper_arm\.L'.*'fabrik_window'.*give at least three"):
            read_limit(bone)


class TestSliders:
    """The properties are real ones with bounds and units, and may be overridden."""

    @pytest.mark.parametrize("name", ["fabrik_cone", "fabrik_twist", "fabrik_hinge", "fabrik_window"])
    def test_angles(self, bone, name):
        write_limit(bone, Polygon([(0, 0), (1, 0), (0, 1)]))
        shown = bone.id_properties_ui(name).as_dict()
        assert shown["subtype"] == "ANGLE"
        assert (shown["soft_min"], shown["soft_max"]) == ((0.0, pi) if name == "fabrik_cone" else (-pi, pi))
        assert len(shown["default"]) == len(bone[name])
        assert shown["description"]

    @pytest.mark.parametrize("name", NAMES.values())
    def test_overridable(self, bone, name):
        write_limit(bone, Polygon([(0, 0), (1, 0), (0, 1)]))
        assert bone.is_property_overridable_library(f'["{name}"]')

    def test_overridable_after_the_window_has_grown(self, bone):
        write_limit(bone, Polygon([(0, 0), (1, 0), (0, 1)]))
        write_limit(bone, Polygon([(0, 0), (1, 0), (1, 1), (0, 1)]))
        assert len(bone["fabrik_window"]) == 8
        assert bone.is_property_overridable_library('["fabrik_window"]')
        assert bone.id_properties_ui("fabrik_window").as_dict()["subtype"] == "ANGLE"

    def test_a_property_of_the_wrong_type_is_replaced(self, bone):
        bone["fabrik_cone"], bone["fabrik_limit"], bone["fabrik_hinge"] = "wide", 7, [1, 2]
        write_limit(bone, Ball(0.5))
        assert read_limit(bone) == Ball((0.5,) * 4)
        assert bone.id_properties_ui("fabrik_cone").as_dict()["subtype"] == "ANGLE"
        write_limit(bone, Hinge("X", 0.25, 0.75))
        assert read_limit(bone) == Hinge("X", 0.25, 0.75)


class TestSinglePrecision:
    """Values from a slider, a curve or an override are rounded, and keep their meaning."""

    def test_half_a_turn(self, bone):
        write_limit(bone, Ball())
        bone["fabrik_cone"] = [float(np.float32(pi))] * 4
        bone["fabrik_twist"] = [float(np.float32(-2.0)), float(np.float32(2 * pi - 2.0))]
        limit = read_limit(bone)
        assert limit.angles == (pi,) * 4
        assert limit.twist[1] - limit.twist[0] >= 2 * pi

    def test_a_whole_turn_of_a_hinge(self, bone):
        write_limit(bone, Hinge())
        bone["fabrik_hinge"] = [float(np.float32(-pi)) + 2e-7, float(np.float32(pi)) - 2e-7]
        assert not read_limit(bone).bounded

    def test_corners_at_half_a_turn(self, bone):
        write_limit(bone, Polygon([(0, 0), (1, 0), (0, 1)]))
        bone["fabrik_window"] = [0.0, 0.0, float(np.float32(pi)), 0.0, 0.0, float(np.float32(pi))]
        assert np.allclose(read_limit(bone).window, [(0, 0), (pi, 0), (0, pi)])

    def test_angles_outside_a_range_are_not_rounded_into_it(self, bone):
        write_limit(bone, Ball())
        bone["fabrik_cone"] = [pi + 1e-3, 1.0, 1.0, 1.0]
        with pytest.raises(LimitPropertyError, match="0 to 180°"):
            read_limit(bone)


NONSENSE = [
    ("BALL", "fabrik_limit", "BAL", "'BAL'"),
    ("BALL", "fabrik_limit", 3, "3"),
    ("BALL", "fabrik_cone", [1.0, 1.0, 1.0], "must be 4 numbers"),
    ("BALL", "fabrik_cone", [1.0, -0.5, 1.0, 1.0], "0 to 180°"),
    ("BALL", "fabrik_cone", [1.0, nan, 1.0, 1.0], "finite"),
    ("BALL", "fabrik_cone", 1.0, "4 numbers"),
    ("BALL", "fabrik_cone", "wide", "'wide'"),
    ("BALL", "fabrik_twist", [1.0, -1.0], "lower one first"),
    ("BALL", "fabrik_twist", [0.0, inf], "finite"),
    ("HINGE", "fabrik_hinge_axis", "W", "X, Y, Z"),
    ("HINGE", "fabrik_hinge_axis", 1, "X, Y, Z"),
    ("HINGE", "fabrik_hinge", [2.0, 1.0], "lower one first"),
    ("HINGE", "fabrik_hinge", [0.0, 1.0, 2.0], "must be 2 numbers"),
    ("POLYGON", "fabrik_window", [0.0, 0.0, 1.0, 0.0], "give at least three"),
    ("POLYGON", "fabrik_window", [0.0, 0.0, 1.0, 0.0, 1.0], "5 numbers"),
    ("POLYGON", "fabrik_window", [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0], "simple"),
    ("POLYGON", "fabrik_window", [0.0, 0.0, 4.0, 0.0, 0.0, 1.0], "pi"),
    ("POLYGON", "fabrik_twist", [3.0, 1.0], "lower one first"),
]


class TestNonsense:
    """An invalid value gives an error that names the bone and the property."""

    @pytest.mark.parametrize(("kind", "name", "value", "reason"), NONSENSE)
    def test_reading_an_invalid_value_names_it(self, rig, bone, kind, name, value, reason):
        bone["fabrik_limit"] = kind
        if kind == "POLYGON":
            bone["fabrik_window"] = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]
        if name in bone:
            del bone[name]
        bone[name] = value
        for read in (lambda: read_limit(bone), lambda: read_limits(rig)):
            with pytest.raises(LimitPropertyError) as wrong:
                read()
            assert "'upper_arm.L'" in str(wrong.value)
            assert repr(name) in str(wrong.value)
            assert reason in str(wrong.value)
            assert len(str(wrong.value).splitlines()) == 1

    @pytest.mark.parametrize(("kind", "name", "value", "reason"), NONSENSE)
    def test_other_bones_are_not_read(self, rig, bone, kind, name, value, reason):
        bone["fabrik_limit"] = kind
        if name in bone:
            del bone[name]
        bone[name] = value
        assert read_limits(rig, ["head", "spine"]) == {}

    def test_fields_that_the_type_does_not_use_are_ignored(self, bone):
        bone["fabrik_limit"], bone["fabrik_cone"], bone["fabrik_window"] = "HINGE", "wide", [1.0]
        assert read_limit(bone) is not None
        assert read_settings(bone).cone == (pi,) * 4

    @pytest.mark.parametrize(
        "wrong",
        [
            LimitSettings("BALL", cone=(4.0, 1.0, 1.0, 1.0)),
            LimitSettings("FIXED", twist=(1.0, 0.0)),
            LimitSettings("BALL", hinge=(nan, 0.0)),
            LimitSettings("HINGE", axis="W"),
            LimitSettings("POLYGON"),
            LimitSettings("SPRING"),
            LimitSettings("POLYGON", window=(0.0, 0.0, 1.0)),
        ],
    )
    def test_writing_changes_nothing(self, rig, bone, wrong):
        write_limit(bone, Ball(0.5))
        before = limited.kept(rig)
        with pytest.raises(LimitPropertyError, match=r"'upper_arm\.L'"):
            write_settings(bone, wrong)
        assert limited.kept(rig) == before


class TestAnimated:
    """Numbers may be keyed and driven: the value of the current frame is read."""

    def test_keys(self, bone):
        write_limit(bone, Hinge("X", 0.0, 1.0))
        bone.keyframe_insert('["fabrik_hinge"]', frame=1)
        bone["fabrik_hinge"] = [0.0, 2.0]
        bone.keyframe_insert('["fabrik_hinge"]', frame=11)
        for frame, high in ((1, 1.0), (6, 1.5), (11, 2.0)):
            bpy.context.scene.frame_set(frame)
            assert read_limit(bone).high == pytest.approx(high, abs=1e-6)

    def test_driver(self, bone):
        write_limit(bone, Ball(0.5))
        bone.driver_add('["fabrik_cone"]', 1).driver.expression = "frame * 0.1"
        bpy.context.scene.frame_set(7)
        assert read_limit(bone).angles == pytest.approx((0.5, 0.7, 0.5, 0.5))
