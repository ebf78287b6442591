"""Limits survive saving with the extension off, other files, overrides, copies, renaming and undo."""

from math import pi

import bpy
import numpy as np
import pytest
from support import limited, scenes
from support.limited import write_limit

import fabrik_addon
from fabrik_addon.blender.settings.limit_properties import (
    NAMES,
    LimitPropertyError,
    clear_limit,
    read_extra,
    read_limit,
    read_limits,
    why_not_writable,
)
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon

pytestmark = pytest.mark.usefixtures("clean_scene")

LIMITS = {
    "upper_arm.L": Ball((0.5, 1.0, 0.25, pi), (-0.5, 1.25)),
    "forearm.L": Hinge("X", 0.25, 2.5),
    "thigh.L": Polygon(((0.5, 0.0), (0.0, 0.5), (-0.25, -0.25)), (-0.5, 0.5)),
    "head": Fixed(),
}


@pytest.fixture
def rig():
    made = limited.make_mirrored_rig()
    for name, limit in LIMITS.items():
        write_limit(made.pose.bones[name], limit)
    return made


def assert_limited(rig):
    found = read_limits(rig)
    assert found.keys() == LIMITS.keys()
    for name, limit in LIMITS.items():
        assert type(found[name]) is type(limit)
    assert np.allclose(found["upper_arm.L"].angles, LIMITS["upper_arm.L"].angles)
    assert found["forearm.L"] == LIMITS["forearm.L"]
    assert np.allclose(found["thigh.L"].window, LIMITS["thigh.L"].window)
    assert found["thigh.L"].twist == LIMITS["thigh.L"].twist


class TestFiles:
    """Limits are saved and opened with the extension on and off."""

    def test_save_and_open(self, rig, tmp_path):
        before = limited.kept(rig)
        limited.save_and_open(tmp_path / "rig.blend")
        assert limited.kept(bpy.data.objects["Rig"]) == before
        assert_limited(bpy.data.objects["Rig"])
        assert (
            bpy.data.objects["Rig"].pose.bones["head"].id_properties_ui("fabrik_cone").as_dict()["subtype"] == "ANGLE"
        )

    def test_save_and_open_with_the_extension_off(self, rig, tmp_path):
        before = limited.kept(rig)
        fabrik_addon.unregister()
        try:
            for name in ("one.blend", "two.blend"):
                limited.save_and_open(tmp_path / name)
            assert limited.kept(bpy.data.objects["Rig"]) == before
        finally:
            fabrik_addon.register()
        assert_limited(bpy.data.objects["Rig"])

    @pytest.mark.parametrize("link", [False, True])
    def test_append_and_link(self, rig, tmp_path, link):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        brought = limited.bring(tmp_path / "source.blend", "Rig", link=link)
        assert (brought.library is not None) == link
        assert_limited(brought)

    def test_a_linked_rig_is_not_written(self, rig, tmp_path):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        linked = limited.bring(tmp_path / "source.blend", "Rig", link=True)
        before = limited.kept(linked)
        for change in (lambda bone: write_limit(bone, Ball(0.5)), clear_limit):
            with pytest.raises(LimitPropertyError, match="'Rig' is linked from another file"):
                change(linked.pose.bones["head"])
        assert limited.kept(linked) == before


class TestOverride:
    """On a library override of a rig that is limited in its library, saved and opened again and again."""

    @pytest.fixture
    def own(self, rig, tmp_path):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        return limited.override(tmp_path / "source.blend", "Rig")

    def reopened(self, tmp_path, times=2):
        """The override after saving and opening, for each test."""
        for _ in range(times):
            limited.save_and_open(tmp_path / "shot.blend")
            yield limited.the_override()

    def test_limits_of_the_library(self, own, tmp_path):
        assert_limited(own)
        for again in self.reopened(tmp_path):
            assert_limited(again)

    def test_another_limit_of_the_same_type(self, own, tmp_path):
        wanted = Ball((0.125, 0.25, 0.5, 1.0), (-0.25, 0.75))
        write_limit(own.pose.bones["upper_arm.L"], wanted)
        for again in self.reopened(tmp_path):
            assert read_limit(again.pose.bones["upper_arm.L"]) == wanted

    @pytest.mark.parametrize("bone", ["upper_arm.L", "forearm.L", "thigh.L", "head"])
    @pytest.mark.parametrize("wanted", [Ball(0.5, (-1.0, 0.5)), Hinge("Z", -0.25, 0.5), Fixed()])
    def test_another_type(self, own, tmp_path, bone, wanted):
        write_limit(own.pose.bones[bone], wanted)
        for again in self.reopened(tmp_path):
            found = read_limit(again.pose.bones[bone])
            assert found == wanted or (found.angles == wanted.angles and found.twist == wanted.twist)

    def test_a_window_with_as_many_corners(self, own, tmp_path):
        wanted = Polygon(((0.25, 0.0), (0.0, 0.5), (-0.25, -0.5)), (-0.25, 0.25))
        write_limit(own.pose.bones["thigh.L"], wanted)
        for again in self.reopened(tmp_path):
            assert read_limit(again.pose.bones["thigh.L"]) == wanted

    def test_a_window_with_more_corners_is_refused(self, own):
        before = limited.kept(own)
        with pytest.raises(LimitPropertyError, match=r"the length of 'fabrik_window' of bone 'thigh\.L'"):
            write_limit(own.pose.bones["thigh.L"], Polygon(((0, 0), (1, 0), (1, 1), (0, 1))))
        assert limited.kept(own) == before

    def test_a_window_where_the_library_has_none_is_refused(self, own):
        before = limited.kept(own)
        with pytest.raises(LimitPropertyError, match=r"'fabrik_window' of bone 'head': set it in 'source\.blend'"):
            write_limit(own.pose.bones["head"], Polygon(((0, 0), (1, 0), (1, 1))))
        assert limited.kept(own) == before

    def test_a_limit_where_the_library_has_none_is_refused(self, own):
        before = limited.kept(own)
        with pytest.raises(LimitPropertyError, match=r"'spine' has no limit in 'source\.blend'"):
            write_limit(own.pose.bones["spine"], Ball(0.5))
        assert limited.kept(own) == before

    def test_clearing_removes_the_limit(self, own, tmp_path):
        clear_limit(own.pose.bones["forearm.L"])
        clear_limit(own.pose.bones["spine"])
        for again in self.reopened(tmp_path):
            assert again.pose.bones["forearm.L"]["fabrik_limit"] == "FREE"
            assert "forearm.L" not in read_limits(again)
            assert not any(name in again.pose.bones["spine"] for name in NAMES.values())

    def test_clearing_removes_stretch_too(self, rig, tmp_path):
        """Stretch may be set in the library or on the override."""
        bones = ("forearm.L", "head")
        bpy.ops.fabrik.set_limit(bones="forearm.L", slide=(0.5, 2.0))
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        own = limited.override(tmp_path / "source.blend", "Rig")
        bpy.ops.fabrik.set_limit(bones="head", slide=(0.5, 2.0))
        assert read_extra(own, bones, "slide") == dict.fromkeys(bones, (0.5, 2.0))
        bpy.ops.fabrik.clear_limit(bones="forearm.L,head")
        assert read_extra(own, bones, "slide") == {}
        for again in self.reopened(tmp_path):
            assert read_extra(again, bones, "slide") == {}

    def test_cleared_and_set_again(self, own, tmp_path):
        clear_limit(own.pose.bones["forearm.L"])
        write_limit(own.pose.bones["forearm.L"], Hinge("Z", -0.5, 0.5))
        for again in self.reopened(tmp_path):
            assert read_limit(again.pose.bones["forearm.L"]) == Hinge("Z", -0.5, 0.5)

    def test_half_a_turn_survives_single_precision(self, own, tmp_path):
        write_limit(own.pose.bones["upper_arm.L"], Ball(pi, (-pi, pi)))
        for again in self.reopened(tmp_path):
            limit = read_limit(again.pose.bones["upper_arm.L"])
            assert limit.angles == (pi,) * 4
            assert limit.twist[1] - limit.twist[0] >= 2 * pi

    def test_an_override_that_is_not_editable_is_refused(self, own):
        own.override_library.is_system_override = True
        with pytest.raises(LimitPropertyError, match="not editable"):
            write_limit(own.pose.bones["head"], Ball(0.5))

    def test_properties_that_the_library_does_not_release_are_refused(self, rig, tmp_path):
        rig.pose.bones["spine"]["fabrik_limit"] = "FIXED"
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        own = limited.override(tmp_path / "source.blend", "Rig")
        assert read_limit(own.pose.bones["spine"]) == Fixed()
        assert "'spine' has no limit in 'source.blend'" in why_not_writable(own.pose.bones["spine"])

    def test_operators_refuse_in_one_line(self, own):
        before = limited.kept(own)
        assert "'spine' has no limit" in limited.refusal(bpy.ops.fabrik.set_limit, bones="head,spine", type="BALL")
        assert limited.kept(own) == before
        assert bpy.ops.fabrik.clear_limit(bones="head,spine") == {"FINISHED"}
        assert limited.kept(own)["head"]["fabrik_limit"] == "FREE"


class TestCopies:
    """Limits survive copies, new names and undo."""

    def test_duplicated_object(self, rig):
        scenes.make_active(rig)
        bpy.ops.object.duplicate()
        copy = bpy.context.object
        assert copy != rig
        assert_limited(copy)
        write_limit(copy.pose.bones["head"], Ball(0.5))
        assert_limited(rig)

    def test_duplicated_bones(self, rig):
        bpy.ops.object.mode_set(mode="EDIT")
        bpy.ops.armature.select_all(action="SELECT")
        bpy.ops.armature.duplicate()
        bpy.ops.object.mode_set(mode="OBJECT")
        for name, limit in LIMITS.items():
            assert type(read_limit(rig.pose.bones[f"{name}.001"])) is type(limit)

    def test_renamed_bone(self, rig):
        rig.data.bones["forearm.L"].name = "lower arm"
        assert read_limits(rig)["lower arm"] == LIMITS["forearm.L"]
        assert "forearm.L" not in read_limits(rig)

    def test_joined_rigs(self, rig):
        other = scenes.make_rig([("tail", "", (0, 1, 1), (0, 2, 1))], "Other")
        write_limit(other.pose.bones["tail"], Hinge("Z", -0.5, 0.5))
        scenes.make_active(rig)
        other.select_set(True)
        bpy.ops.object.join()
        assert read_limit(rig.pose.bones["tail"]) == Hinge("Z", -0.5, 0.5)
        assert read_limit(rig.pose.bones["forearm.L"]) == LIMITS["forearm.L"]

    def test_edit_mode_and_back(self, rig):
        bpy.ops.object.mode_set(mode="EDIT")
        rig.data.edit_bones["forearm.L"].tail.z += 0.1
        bpy.ops.object.mode_set(mode="POSE")
        assert_limited(rig)

    def test_symmetrize_keeps_them_and_mirroring_makes_them_right(self, rig):
        bpy.ops.object.mode_set(mode="EDIT")
        for bone in [bone for bone in rig.data.edit_bones if bone.name.endswith(".R")]:
            rig.data.edit_bones.remove(bone)
        bpy.ops.armature.select_all(action="SELECT")
        bpy.ops.armature.symmetrize()
        bpy.ops.object.mode_set(mode="OBJECT")
        copied = limited.kept(rig)
        assert copied["upper_arm.R"] == copied["upper_arm.L"]
        bpy.ops.fabrik.mirror_limits(bones="upper_arm.L,forearm.L,thigh.L")
        assert read_limit(rig.pose.bones["upper_arm.R"]) == Ball((0.25, 1.0, 0.5, pi), (-1.25, 0.5))
        assert read_limit(rig.pose.bones["forearm.R"]) == LIMITS["forearm.L"]
        window = {tuple(corner) for corner in read_limit(rig.pose.bones["thigh.R"]).window}
        assert window == {(-x, z) for x, z in LIMITS["thigh.L"].window}

    def test_undo_and_redo(self, rig):
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.ed.undo_push(message="before")
        before = limited.kept(rig)
        bpy.ops.fabrik.set_limit(bones="head,spine", type="HINGE", axis="Y", low=-0.5, high=0.5)
        bpy.ops.ed.undo_push(message="limits")
        after = limited.kept(bpy.data.objects["Rig"])
        assert after != before
        bpy.ops.ed.undo()
        assert limited.kept(bpy.data.objects["Rig"]) == before
        bpy.ops.ed.redo()
        assert limited.kept(bpy.data.objects["Rig"]) == after
