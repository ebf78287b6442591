"""Setting, clearing and copying limits by the operators, as scripts and buttons call them."""

from math import cos, degrees, pi, radians, sin

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import limited, scenes

from fabrik_addon.blender.limits.editing import window_in
from fabrik_addon.blender.settings.limit_properties import NAMES, read_limit, read_limits
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon

pytestmark = pytest.mark.usefixtures("clean_scene")

UP = Vector((0.0, 0.0, 1.0))
ARMS = ("upper_arm.L", "upper_arm.R")
OPERATORS = (
    "set_limit",
    "clear_limit",
    "copy_limit",
    "mirror_limits",
    "add_limit_point",
    "move_limit_point",
    "remove_limit_point",
    "limits_from_ik",
    "limits_from_action",
    "limits_to_constraints",
    "clamp_pose",
    "check_action",
)


@pytest.fixture
def rig(clean_scene):
    return limited.make_mirrored_rig()


def limit_of(rig, bone):
    return read_limit(rig.pose.bones[bone])


class TestSet:
    """`fabrik.set_limit` changes only the given values."""

    def test_ball(self, rig):
        limited.select(rig, ARMS)
        bpy.ops.fabrik.set_limit(type="BALL", cone=(0.5, 1.0, 0.25, 0.75), twist=(-0.5, 0.25))
        assert read_limits(rig) == {bone: Ball((0.5, 1.0, 0.25, 0.75), (-0.5, 0.25)) for bone in ARMS}

    def test_hinge(self, rig):
        bpy.ops.fabrik.set_limit(bones="forearm.L", type="HINGE", axis="Z", low=0.25, high=2.5)
        assert read_limits(rig) == {"forearm.L": Hinge("Z", 0.25, 2.5)}

    def test_fixed(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", type="FIXED")
        assert read_limits(rig) == {"head": Fixed()}

    def test_polygon(self, rig):
        bpy.ops.fabrik.set_limit(bones="thigh.L", type="POLYGON", window="0.5, 0, 0 0.5; -0.25 -0.25".replace(";", ","))
        assert limit_of(rig, "thigh.L").window == ((0.5, 0.0), (0.0, 0.5), (-0.25, -0.25))

    def test_a_new_type_changes_nothing_else(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", type="BALL", cone=(0.5,) * 4)
        bpy.ops.fabrik.set_limit(bones="head", type="HINGE", low=-0.5)
        bpy.ops.fabrik.set_limit(bones="head", type="BALL")
        assert limit_of(rig, "head").angles == (0.5,) * 4
        bpy.ops.fabrik.set_limit(bones="head", type="HINGE")
        assert limit_of(rig, "head").low == -0.5

    @pytest.mark.parametrize("roll", [0.0, 90.0, 180.0, -90.0])
    @pytest.mark.parametrize("bend", [20.0, 60.0])
    def test_a_new_hinge_bends_from_straight_in_the_direction_of_rest(self, clean_scene, roll, bend):
        way = Vector((0.0, -sin(radians(bend)), cos(radians(bend))))
        rig = scenes.make_rig([("upper", "", (0, 0, 0), UP), ("lower", "upper", UP, UP + way)])
        scenes.make_active(rig)
        bpy.ops.object.mode_set(mode="EDIT")
        rig.data.edit_bones["lower"].roll = radians(roll)
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.fabrik.set_limit(bones="lower", type="HINGE")
        limit, bone = limit_of(rig, "lower"), rig.pose.bones["lower"]
        bone.rotation_mode = "XYZ"
        angles = {}
        for name, angle in (("low", limit.low), ("high", limit.high)):
            bone.rotation_euler["XYZ".index(limit.axis)] = angle
            bpy.context.view_layer.update()
            angles[name] = degrees(bone.vector.angle(rig.pose.bones["upper"].vector))
        assert min(angles.values()) == pytest.approx(0.0, abs=0.1), "one end is straight"
        assert max(angles.values()) == pytest.approx(150.0, abs=0.1), "the other is folded"

    def test_setting_one_value_keeps_the_other_values_of_each_bone(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", cone=(0.25,) * 4)
        bpy.ops.fabrik.set_limit(bones="spine", cone=(0.5,) * 4)
        bpy.ops.fabrik.set_limit(bones="head,spine", twist=(-1.0, 1.0))
        assert read_limits(rig) == {"head": Ball((0.25,) * 4, (-1.0, 1.0)), "spine": Ball((0.5,) * 4, (-1.0, 1.0))}

    @pytest.mark.parametrize(
        ("given", "kind"),
        [
            ({"cone": (0.5,) * 4}, "BALL"),
            ({"twist": (-0.5, 0.5)}, "BALL"),
            ({"axis": "Z"}, "HINGE"),
            ({"low": -0.5}, "HINGE"),
            ({"window": "0 0 1 0 0 1"}, "POLYGON"),
        ],
    )
    def test_without_a_type_it_is_inferred_from_the_values(self, rig, given, kind):
        bpy.ops.fabrik.set_limit(bones="head", **given)
        assert rig.pose.bones["head"]["fabrik_limit"] == kind

    def test_without_a_type_a_limited_bone_keeps_its_type(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", type="HINGE", low=-0.5, high=0.5)
        bpy.ops.fabrik.set_limit(bones="head", high=1.5)
        assert limit_of(rig, "head") == Hinge("X", -0.5, 1.5)

    def test_type_free_keeps_the_stored_values(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", cone=(0.5,) * 4)
        bpy.ops.fabrik.set_limit(bones="head", type="FREE")
        assert read_limits(rig) == {}
        assert list(rig.pose.bones["head"]["fabrik_cone"]) == [0.5] * 4

    def test_angles_of_180_degrees_are_accepted_in_single_precision(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", cone=(pi,) * 4, twist=(-pi, pi))
        assert limit_of(rig, "head") == Ball((pi,) * 4, tuple(rig.pose.bones["head"]["fabrik_twist"]))
        bpy.ops.fabrik.set_limit(bones="spine", axis="Y", low=-pi, high=pi)
        assert not limit_of(rig, "spine").bounded

    def test_calls_do_not_remember_each_other(self, rig):
        bpy.ops.fabrik.set_limit(bones="spine", type="HINGE")
        fresh = limit_of(rig, "spine")
        bpy.ops.fabrik.clear_limit(bones="spine")
        bpy.ops.fabrik.set_limit(bones="head", type="HINGE", axis="Z", low=-0.5, high=0.25)
        bpy.ops.fabrik.set_limit(bones="spine", type="HINGE")
        assert limit_of(rig, "spine") == fresh != limit_of(rig, "head")

    def test_invalid_values_on_a_bone_can_be_corrected(self, rig):
        bone = rig.pose.bones["head"]
        bone["fabrik_limit"], bone["fabrik_cone"] = "BALL", [1.0, 2.0]
        bpy.ops.fabrik.set_limit(bones="head", cone=(0.5,) * 4)
        assert limit_of(rig, "head") == Ball((0.5,) * 4)

    def test_names_with_commas_and_spaces(self, rig):
        rig.data.bones["head"].name = "head, neck"
        bpy.ops.fabrik.set_limit(bones="head, neck", type="FIXED")
        bpy.ops.fabrik.set_limit(bones="spine, hips", type="FIXED")
        assert read_limits(rig).keys() == {"head, neck", "spine", "hips"}

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({"cone": (4.0, 1.0, 1.0, 1.0)}, "0 to 180°"),
            ({"cone": (-0.5, 1.0, 1.0, 1.0)}, "0 to 180°"),
            ({"twist": (1.0, -1.0)}, "lower one first"),
            ({"type": "HINGE", "low": 1.0, "high": 0.5}, "lower one first"),
            ({"low": float("nan")}, "finite"),
            ({"window": "0 0 1 0"}, "give at least three"),
            ({"window": "0 0 1 0 1"}, "5 numbers"),
            ({"window": "0 0 1 1 1 0 0 1"}, "simple"),
            ({"window": "0 0 1 x 1 0 0 1"}, "outline '0 0 1 x 1 0 0 1' is invalid"),
        ],
    )
    def test_invalid_values_are_refused_and_change_nothing(self, rig, given, sentence):
        bpy.ops.fabrik.set_limit(bones="spine", type="FIXED")
        before = limited.kept(rig)
        assert sentence in limited.refusal(bpy.ops.fabrik.set_limit, bones="spine,head", **given)
        assert limited.kept(rig) == before


class TestSelection:
    """The bones that an operator changes."""

    def test_selected_bones(self, rig):
        limited.select(rig, ARMS, active="head")
        bpy.ops.fabrik.set_limit(type="FIXED")
        assert read_limits(rig).keys() == set(ARMS)

    def test_hidden_bones_do_not_change(self, rig):
        limited.select(rig, ARMS)
        bone = rig.pose.bones["upper_arm.L"]
        (bone if hasattr(bone, "hide") else bone.bone).hide = True
        bpy.ops.fabrik.set_limit(type="FIXED")
        assert read_limits(rig).keys() == {"upper_arm.R"}

    def test_the_active_bone_if_none_is_selected(self, rig):
        limited.select(rig, (), active="head")
        bpy.ops.fabrik.set_limit(type="FIXED")
        assert read_limits(rig).keys() == {"head"}

    def test_selected_bones_in_object_mode(self, rig):
        limited.select(rig, ARMS)
        bpy.ops.object.mode_set(mode="OBJECT")
        bpy.ops.fabrik.set_limit(type="FIXED")
        assert read_limits(rig).keys() == set(ARMS)

    def test_another_rig_in_pose_mode_does_not_change(self, rig):
        other = limited.make_mirrored_rig(name="Other")
        bpy.ops.object.mode_set(mode="OBJECT")
        scenes.make_active(rig)
        other.select_set(True)
        limited.select(rig, ARMS)
        bpy.ops.pose.select_all(action="SELECT")
        bpy.ops.fabrik.set_limit(type="FIXED")
        assert len(read_limits(rig)) == len(rig.pose.bones)
        assert read_limits(other) == {}

    def test_named_bones_are_used_instead_of_the_selection(self, rig):
        limited.select(rig, ARMS)
        bpy.ops.fabrik.set_limit(bones="head", type="FIXED")
        assert read_limits(rig).keys() == {"head"}


class TestClearAndCopy:
    """Removing limits and copying them to other bones."""

    def test_clear(self, rig):
        bpy.ops.fabrik.set_limit(bones="head,spine", type="POLYGON")
        bpy.ops.fabrik.clear_limit(bones="head,hips")
        assert not any(name in rig.pose.bones["head"] for name in NAMES.values())
        assert read_limits(rig).keys() == {"spine"}

    def test_copy_to_selected(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", cone=(0.25, 0.5, 0.75, 1.0), twist=(-1.0, 0.5))
        limited.select(rig, (*ARMS, "head"), active="head")
        bpy.ops.fabrik.copy_limit()
        kept = limited.kept(rig)
        assert kept["upper_arm.L"] == kept["upper_arm.R"] == kept["head"]

    def test_copying_from_a_free_bone_clears_the_limit(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", cone=(0.25, 0.5, 0.75, 1.0))
        bpy.ops.fabrik.copy_limit(source="spine", bones="head")
        assert read_limits(rig) == {}

    def test_copying_an_invalid_limit_is_refused(self, rig):
        rig.pose.bones["head"]["fabrik_limit"] = "BAL"
        before = limited.kept(rig)
        assert "'head'" in limited.refusal(bpy.ops.fabrik.copy_limit, source="head", bones="spine")
        assert limited.kept(rig) == before


class TestPolygons:
    """The corners of polygons."""

    def test_a_new_outline_is_as_wide_as_the_cone(self, rig):
        cone = tuple(radians(angle) for angle in (20, 30, 10, 40))
        bpy.ops.fabrik.set_limit(bones="head", type="BALL", cone=cone)
        bpy.ops.fabrik.set_limit(bones="head", type="POLYGON")
        window = np.array(limit_of(rig, "head").window)
        assert np.allclose([*window.max(axis=0), *-window.min(axis=0)], cone)

    def test_no_swing_is_shown_as_minus_zero(self):
        signs = np.signbit(np.float32(window_in((pi,) * 4)))
        assert (np.float32(window_in((pi,) * 4)) == 0.0).sum() == 4
        assert (np.float32(window_in((pi,) * 4))[signs] < 0.0).all()

    @pytest.mark.parametrize("cone", [(pi,) * 4, (0.0,) * 4, (0.0, pi, 0.3, 0.0)])
    def test_any_cone_gives_a_valid_outline(self, cone):
        numbers = window_in(cone)
        Polygon(tuple(zip(numbers[::2], numbers[1::2], strict=True)))

    def test_a_new_point_keeps_the_outline(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", window="0 0 1 0 0 0.5")
        limited.select(rig, ARMS, active="head")
        bpy.ops.fabrik.add_limit_point()
        assert limit_of(rig, "head").window == ((0.0, 0.0), (1.0, 0.0), (0.5, 0.25), (0.0, 0.5))

    def test_remove(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", window="0 0 1 0 0.5 0.25 0 0.5")
        bpy.ops.fabrik.remove_limit_point(bones="head", index=2)
        assert limit_of(rig, "head").window == ((0.0, 0.0), (1.0, 0.0), (0.0, 0.5))

    def test_the_last_three_corners_cannot_be_removed(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", window="0 0 1 0 0 0.5")
        assert "give at least three" in limited.refusal(bpy.ops.fabrik.remove_limit_point, bones="head")
        assert len(rig.pose.bones["head"]["fabrik_window"]) == 6

    def test_a_missing_point_is_refused(self, rig):
        bpy.ops.fabrik.set_limit(bones="head", type="POLYGON")
        assert "no point number 8" in limited.refusal(bpy.ops.fabrik.remove_limit_point, bones="head", index=8)

    @pytest.mark.parametrize("operator", ["add_limit_point", "remove_limit_point"])
    def test_no_polygon(self, rig, operator):
        bpy.ops.fabrik.set_limit(bones="head", type="BALL")
        assert "'head' is not a polygon" in limited.refusal(getattr(bpy.ops.fabrik, operator), bones="head")


class TestRefusals:
    """Wrong use gives one clear line, and changes nothing."""

    @pytest.fixture(autouse=True)
    def _unchanged(self, rig):
        before = (limited.kept(rig), scenes.digest()["objects"])
        yield
        if bpy.context.object == rig and rig.mode != "EDIT":
            assert (limited.kept(rig), scenes.digest()["objects"]) == before

    @pytest.mark.parametrize("name", OPERATORS)
    def test_no_armature(self, rig, name):
        scenes.make_active(scenes.empty_at((0, 0, 0)))
        assert "Select an armature" in limited.refusal(getattr(bpy.ops.fabrik, name))
        scenes.make_active(rig)
        bpy.data.objects.remove(bpy.data.objects["Target"])

    @pytest.mark.parametrize("name", OPERATORS)
    def test_edit_mode(self, rig, name):
        bpy.ops.object.mode_set(mode="EDIT")
        assert "Leave Edit mode first" in limited.refusal(getattr(bpy.ops.fabrik, name))

    @pytest.mark.parametrize("name", OPERATORS)
    def test_unknown_bone(self, rig, name):
        assert "'Rig' has no bone 'tail'" in limited.refusal(getattr(bpy.ops.fabrik, name), bones="head, tail")

    @pytest.mark.parametrize("name", [name for name in OPERATORS if name != "check_action"])
    def test_nothing_selected(self, rig, name):
        sentence = "No bone is active" if name.endswith("_point") else "No bone of 'Rig' is selected"
        assert sentence in limited.refusal(getattr(bpy.ops.fabrik, name))

    @pytest.mark.parametrize(
        ("name", "given", "sentence"),
        [
            ("copy_limit", {"bones": "head"}, "No bone is active"),
            ("copy_limit", {"bones": "head", "source": "head"}, "Only 'head' is selected"),
            ("copy_limit", {"bones": "head", "source": "tail"}, "'Rig' has no bone 'tail'"),
            ("mirror_limits", {"bones": "head"}, "No bone on the other side found for 'head'"),
            ("limits_from_ik", {"bones": "head"}, "None of these bones has IK limits"),
            ("limits_from_action", {"bones": "head"}, "'Rig' has no action"),
            ("clamp_pose", {"bones": "head"}, "None of these bones has a limit"),
            ("check_action", {}, "None of these bones has a limit"),
        ],
    )
    def test_nothing_to_do(self, rig, name, given, sentence):
        assert sentence in limited.refusal(getattr(bpy.ops.fabrik, name), **given)

    @pytest.mark.parametrize("name", OPERATORS)
    def test_linked(self, rig, name, tmp_path):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        scenes.make_active(limited.bring(tmp_path / "source.blend", "Rig", link=True))
        assert "'Rig' is linked from another file" in limited.refusal(getattr(bpy.ops.fabrik, name), bones="head")
