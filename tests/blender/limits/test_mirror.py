"""Mirrored limits, checked by mirroring poses: a pose is allowed if its mirror image is allowed on the other side."""

import bpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import checker, limited, scenes
from support.limited import write_limit

from fabrik_addon.blender.rig.armature import opposite_bone
from fabrik_addon.blender.settings.limit_properties import read_limit, read_limits
from fabrik_addon.core import Ball, Fixed, Hinge

pytestmark = pytest.mark.usefixtures("clean_scene")

ACROSS = np.diag((-1.0, 1.0, 1.0))


@pytest.fixture
def rig(clean_scene):
    return limited.make_mirrored_rig()


def rest(rig, bone):
    return np.array(rig.data.bones[bone].matrix_local)[:3, :3]


def mirrored_turns(rig, bone, other, turns):
    """(N, 3, 3) local rotations with which the other bone moves as the mirror image of the first, parents at rest."""
    moved = rest(rig, bone) @ turns @ np.linalg.inv(rest(rig, bone))
    return np.linalg.inv(rest(rig, other)) @ (ACROSS @ moved @ ACROSS) @ rest(rig, other)


def assert_mirrored(rig, bone, other, seed=0):
    """Random poses of the first bone are as far outside its limit as their mirror images are of the other's."""
    limit, image = (read_limit(rig.pose.bones[name]) for name in (bone, other))
    rng = np.random.default_rng(seed)
    quaternions = rng.normal(size=(40, 4))
    inside = checker.random_rotations_inside(limit, rng, 20)
    turns = checker.matrices(np.concatenate([quaternions, inside]))
    far = np.linalg.norm(checker.lean_and_twist(turns)[0], axis=-1)
    turns = turns[(far < 3.0) & (abs(checker.lean_and_twist(turns)[1]) < 3.0)]
    outside, _ = checker.distances(limit, turns)
    images_outside, _ = checker.distances(image, mirrored_turns(rig, bone, other, turns))
    assert np.allclose(outside, images_outside, atol=1e-3)


@pytest.fixture(params=[0, 1, 2, 3])
def turned_rig(request, clean_scene):
    """A rig whose right arm is rolled by some quarter turns relative to the mirror image."""
    rig = limited.make_mirrored_rig(roll=0.3)
    limited.set_rolls(rig, {"upper_arm.R": -0.3 + request.param * np.pi / 2})
    return rig


@pytest.mark.one_blender
@limited.in_one_scene(30)
@given(limit=limited.limits, seed=st.integers(0, 1000))
def test_the_mirror_image_of_a_pose_is_as_legal(turned_rig, limit, seed):
    write_limit(turned_rig.pose.bones["upper_arm.L"], limit)
    bpy.ops.fabrik.mirror_limits(bones="upper_arm.L")
    assert_mirrored(turned_rig, "upper_arm.L", "upper_arm.R", seed)


@limited.in_one_scene(30)
@given(limit=limited.limits)
def test_mirroring_twice_gives_the_same_limit(rig, limit):
    write_limit(rig.pose.bones["thigh.L"], limit)
    before = limited.kept(rig)["thigh.L"]
    bpy.ops.fabrik.mirror_limits(bones="thigh.L")
    bpy.ops.fabrik.mirror_limits(bones="thigh.R")
    assert limited.near({"": limited.kept(rig)["thigh.L"]}, {"": before})


def test_limits_are_mirrored_on_bones_with_mirrored_rolls(rig):
    write_limit(rig.pose.bones["upper_arm.L"], Ball((0.125, 0.25, 0.5, 1.0), (-0.25, 0.75)))
    bpy.ops.fabrik.mirror_limits(bones="upper_arm.L")
    assert read_limit(rig.pose.bones["upper_arm.R"]) == Ball((0.5, 0.25, 0.125, 1.0), (-0.75, 0.25))


@pytest.mark.parametrize(("axis", "image"), [("X", (0.25, 2.0)), ("Y", (-2.0, -0.25)), ("Z", (-2.0, -0.25))])
def test_hinges_are_mirrored_on_bones_with_mirrored_rolls(rig, axis, image):
    write_limit(rig.pose.bones["forearm.L"], Hinge(axis, 0.25, 2.0))
    bpy.ops.fabrik.mirror_limits(bones="forearm.L")
    assert read_limit(rig.pose.bones["forearm.R"]) == Hinge(axis, *image)


def test_several_bones_and_those_without_another_side(rig, capfd):
    limited.select(rig, ("upper_arm.L", "forearm.L", "head"))
    write_limit(rig.pose.bones["upper_arm.L"], Fixed())
    write_limit(rig.pose.bones["forearm.R"], Fixed())
    bpy.ops.fabrik.mirror_limits()
    assert read_limits(rig).keys() == {"upper_arm.L", "upper_arm.R"}
    printed = capfd.readouterr()
    assert "Mirrored the limits of 2 bones" in printed.out + printed.err
    assert "'head' has no bone on the other side" in printed.out + printed.err


@pytest.mark.parametrize("side", ["L", "R"])
def test_with_both_sides_selected_the_active_bone_is_the_source(rig, side):
    other = {"L": "R", "R": "L"}[side]
    for bone in ("forearm", "thigh"):
        write_limit(rig.pose.bones[f"{bone}.{side}"], Hinge("X", 0.25, 2.0))
        write_limit(rig.pose.bones[f"{bone}.{other}"], Fixed())
    limited.select(rig, ("forearm.L", "forearm.R", "thigh.L", "thigh.R"), active=f"shin.{side}")
    bpy.ops.fabrik.mirror_limits()
    assert read_limit(rig.pose.bones[f"thigh.{other}"]) == Hinge("X", 0.25, 2.0)
    assert read_limit(rig.pose.bones[f"forearm.{other}"]) == Hinge("X", 0.25, 2.0)


@pytest.mark.parametrize("active", [None, "head"])
def test_with_both_sides_selected_and_neither_active_it_is_refused(rig, active):
    write_limit(rig.pose.bones["forearm.L"], Fixed())
    before = limited.kept(rig)
    limited.select(rig, ("forearm.L", "forearm.R"), active=active)
    sentence = limited.refusal(bpy.ops.fabrik.mirror_limits)
    assert "Both 'forearm.L' and 'forearm.R' are selected: make one of them active to copy its limit" in sentence
    assert limited.kept(rig) == before


def test_a_roll_that_is_not_mirrored_is_named(rig):
    limited.set_rolls(rig, {"forearm.R": 0.8})
    for bone in ("forearm.L", "thigh.L"):
        write_limit(rig.pose.bones[bone], Fixed())
    sentence = "The axes of 'forearm.R' don't mirror those of 'forearm.L'"
    assert sentence in limited.refusal(bpy.ops.fabrik.mirror_limits, bones="forearm.L")
    bpy.ops.fabrik.mirror_limits(bones="forearm.L,thigh.L")
    assert read_limits(rig).keys() == {"forearm.L", "thigh.L", "thigh.R"}


def test_invalid_values_are_named_and_change_nothing(rig):
    write_limit(rig.pose.bones["forearm.L"], Hinge("X", 0.0, 1.0))
    write_limit(rig.pose.bones["thigh.L"], Hinge("X", 0.0, 1.0))
    rig.pose.bones["thigh.L"]["fabrik_hinge"] = [1.0, 0.0]
    before = limited.kept(rig)
    assert "'thigh.L'" in limited.refusal(bpy.ops.fabrik.mirror_limits, bones="forearm.L,thigh.L")
    assert limited.kept(rig) == before


@pytest.mark.parametrize(
    ("left", "right"),
    [("arm.L", "arm.R"), ("Left_arm", "Right_arm"), ("arm_l.001", "arm_r.001"), ("rig:LeftArm", "rig:RightArm")],
)
def test_the_opposite_name_is_found(left, right):
    rig = scenes.make_rig([(left, "", (1, 0, 0), (1, 0, 1)), (right, "", (-1, 0, 0), (-1, 0, 1))])
    assert opposite_bone(rig, rig.pose.bones[left]).name == right
    assert opposite_bone(rig, rig.pose.bones[right]).name == left
