"""Stiffness and mass of bones: stored with the limit, and copied with it."""

from dataclasses import replace
from math import inf, nan

import bpy
import pytest
from support import limited, scenes
from support.limited import write_limit

from fabrik_addon.blender.settings.limit_properties import (
    LimitPropertyError,
    read_extra,
    read_limit,
    read_settings,
    write_settings,
)
from fabrik_addon.blender.settings.limit_values import OWN_MASS
from fabrik_addon.core import Ball, Hinge

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def rig(clean_scene):
    return limited.make_mirrored_rig()


@pytest.fixture
def bone(rig):
    return rig.pose.bones["upper_arm.L"]


def read_stiffness(bone):
    return read_extra(bone.id_data, [bone.name], "stiffness").get(bone.name, 0.0)


def read_mass(bone):
    return read_extra(bone.id_data, [bone.name], "mass").get(bone.name, OWN_MASS)


def write_stiffness(bone, stiffness):
    write_settings(bone, replace(read_settings(bone), stiffness=stiffness))


def stiffnesses(rig):
    """The bones that have a stiffness."""
    found = {bone.name: read_stiffness(bone) for bone in rig.pose.bones}
    return {name: stiffness for name, stiffness in found.items() if stiffness}


class TestValues:
    """Written values are read back, missing ones mean none, and errors name invalid ones."""

    def test_absent(self, bone):
        assert (read_stiffness(bone), read_mass(bone)) == (0.0, OWN_MASS)

    def test_round_trip(self, bone):
        write_stiffness(bone, 0.25)
        assert read_stiffness(bone) == bone["fabrik_stiffness"] == 0.25
        assert read_limit(bone) is None
        write_stiffness(bone, 0.0)
        assert read_stiffness(bone) == 0.0

    def test_the_limit_stays(self, bone):
        write_limit(bone, Hinge("Z", -0.5, 0.25))
        write_stiffness(bone, 1.0)
        assert read_limit(bone) == Hinge("Z", -0.5, 0.25)
        write_limit(bone, Ball(0.5))
        assert read_stiffness(bone) == 1.0

    def test_by_hand(self, bone):
        bone["fabrik_stiffness"], bone["fabrik_mass"] = 1, 0
        assert (read_stiffness(bone), read_mass(bone)) == (1.0, 0.0)
        bone["fabrik_mass"] = -1.0
        assert read_mass(bone) < 0.0

    @pytest.mark.parametrize("value", [-0.1, 1.5, nan, "stiff", [0.5], True])
    def test_an_invalid_stiffness_is_named(self, bone, value):
        bone["fabrik_stiffness"] = value
        with pytest.raises(LimitPropertyError, match=r"'upper_arm\.L'.*'fabrik_stiffness'"):
            read_stiffness(bone)

    @pytest.mark.parametrize("value", [nan, inf, "heavy", [0.5]])
    def test_an_invalid_mass_is_named(self, bone, value):
        bone["fabrik_mass"] = value
        with pytest.raises(LimitPropertyError, match=r"'upper_arm\.L'.*'fabrik_mass'"):
            read_mass(bone)

    @pytest.mark.parametrize("value", [-0.1, 1.5, nan])
    def test_invalid_values_are_not_written(self, bone, value):
        write_stiffness(bone, 0.5)
        with pytest.raises(LimitPropertyError, match=r"'upper_arm\.L': The stiffness is"):
            write_stiffness(bone, value)
        assert read_stiffness(bone) == 0.5

    def test_values_are_custom_properties(self, bone):
        write_settings(bone, replace(read_settings(bone), stiffness=0.5, mass=0.25))
        for name, ends in (("fabrik_stiffness", (0.0, 1.0)), ("fabrik_mass", (-1.0, 1.0))):
            shown = bone.id_properties_ui(name).as_dict()
            assert (shown["min"], shown["max"]) == ends
            assert shown["description"]
            assert bone.is_property_overridable_library(f'["{name}"]')


class TestCopying:
    """Copying, mirroring, Symmetrize, the preset and clearing treat stiffness and mass like the limit."""

    def test_mirror(self, rig, bone):
        write_limit(bone, Ball((0.125, 0.25, 0.5, 1.0), (-0.25, 0.75)))
        bpy.ops.fabrik.set_limit(bones=bone.name, stiffness=0.5, mass=0.25)
        bpy.ops.fabrik.mirror_limits(bones=bone.name)
        other = rig.pose.bones["upper_arm.R"]
        assert (read_stiffness(other), read_mass(other)) == (0.5, 0.25)
        assert read_limit(other) == Ball((0.5, 0.25, 0.125, 1.0), (-0.75, 0.25))

    def test_mirror_of_what_was_written_by_hand(self, rig, bone):
        bone["fabrik_stiffness"] = 0.5
        bpy.ops.fabrik.mirror_limits(bones=bone.name)
        assert stiffnesses(rig) == {"upper_arm.L": 0.5, "upper_arm.R": 0.5}

    def test_copy(self, rig, bone):
        write_stiffness(bone, 0.5)
        bpy.ops.fabrik.copy_limit(source=bone.name, bones="head,spine")
        assert stiffnesses(rig) == {"upper_arm.L": 0.5, "head": 0.5, "spine": 0.5}

    def test_symmetrize(self, rig, bone):
        write_stiffness(bone, 0.5)
        bpy.ops.object.mode_set(mode="EDIT")
        for each in [each for each in rig.data.edit_bones if each.name.endswith(".R")]:
            rig.data.edit_bones.remove(each)
        bpy.ops.armature.select_all(action="SELECT")
        bpy.ops.armature.symmetrize()
        bpy.ops.object.mode_set(mode="OBJECT")
        assert stiffnesses(rig) == {"upper_arm.L": 0.5, "upper_arm.R": 0.5}

    def test_the_preset_keeps_the_stiffness(self, rig, bone):
        write_stiffness(bone, 0.5)
        bpy.ops.fabrik.limit_preset()
        assert read_limit(bone) is not None
        assert stiffnesses(rig) == {"upper_arm.L": 0.5}

    def test_clear(self, rig, bone):
        write_stiffness(bone, 1.0)
        bpy.ops.fabrik.clear_limit(bones=bone.name)
        assert "fabrik_stiffness" not in bone
        assert stiffnesses(rig) == {}


class TestOperator:
    """`fabrik.set_limit` sets stiffness and mass together with the limit."""

    def test_several_bones_and_nothing_else(self, rig, bone):
        write_limit(bone, Hinge("X", 0.25, 0.5))
        limited.select(rig, (bone.name, "head"))
        bpy.ops.fabrik.set_limit(stiffness=0.75)
        assert stiffnesses(rig) == {"upper_arm.L": 0.75, "head": 0.75}
        assert read_limit(bone) == Hinge("X", 0.25, 0.5)
        assert read_limit(rig.pose.bones["head"]) is None

    def test_mass(self, bone):
        bpy.ops.fabrik.set_limit(bones=bone.name, mass=0.25)
        assert (read_mass(bone), read_stiffness(bone), read_limit(bone)) == (0.25, 0.0, None)


class TestSlider:
    """The sidebar's slider represents the property, whether or not it exists."""

    def test_the_slider_creates_the_property(self, rig, bone):
        limited.select(rig, (bone.name, "head"), active=bone.name)
        assert rig.fabrik_stiffness_of_selected == 0.0
        assert "fabrik_stiffness" not in bone
        rig.fabrik_stiffness_of_selected = 0.5
        assert stiffnesses(rig) == {"upper_arm.L": 0.5, "head": 0.5}
        limited.select(rig, ("spine",), active="head")
        assert rig.fabrik_stiffness_of_selected == 0.5

    def test_without_a_rig_or_with_invalid_values_the_result_is_0(self, rig, bone):
        limited.select(rig, (bone.name,), active=bone.name)
        bone["fabrik_stiffness"] = 7.0
        assert rig.fabrik_stiffness_of_selected == 1.0
        empty = scenes.empty_at((0, 0, 0))
        empty.fabrik_stiffness_of_selected = 0.5
        assert empty.fabrik_stiffness_of_selected == 0.0
        assert bone["fabrik_stiffness"] == 7.0


class TestOverride:
    """On a library override, saved and opened again and again."""

    @pytest.fixture
    def own(self, rig, bone, tmp_path):
        write_stiffness(bone, 0.5)
        write_limit(rig.pose.bones["forearm.L"], Hinge("X", 0.0, 1.0))
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
        return limited.override(tmp_path / "source.blend", "Rig")

    def reopened(self, tmp_path):
        for _ in range(2):
            limited.save_and_open(tmp_path / "shot.blend")
            yield limited.the_override()

    def test_values_of_the_library_and_of_the_override(self, own, tmp_path):
        write_stiffness(own.pose.bones["forearm.L"], 0.25)
        for again in self.reopened(tmp_path):
            assert stiffnesses(again) == {"upper_arm.L": 0.5, "forearm.L": 0.25}

    def test_clearing_the_limit_removes_the_stiffness(self, own, tmp_path):
        bpy.ops.fabrik.clear_limit(bones="upper_arm.L")
        for again in self.reopened(tmp_path):
            assert stiffnesses(again) == {}

    def test_a_bone_without_a_limit_in_the_library_is_refused(self, own):
        with pytest.raises(LimitPropertyError, match=r"'spine' has no limit in 'source\.blend'"):
            write_stiffness(own.pose.bones["spine"], 0.5)
        assert read_settings(own.pose.bones["spine"]).stiffness == 0.0

    def test_the_slider_skips_bones_that_cannot_store_the_value(self, own):
        limited.select(own, ("spine", "upper_arm.L"), active="upper_arm.L")
        own.fabrik_stiffness_of_selected = 0.75
        assert stiffnesses(own) == {"upper_arm.L": 0.75}
