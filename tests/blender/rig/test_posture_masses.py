"""Mass and stiffness of a rig's bones: by name or size, unless their own properties give them."""

import bpy
import numpy as np
import pytest
from support import scenes

from fabrik_addon.blender.goals.body import center_of_mass, masses_of
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.blender.settings.limit_properties import LimitPropertyError

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def rig(clean_scene):
    made = scenes.make_rig()
    scenes.make_active(made)
    return made


def masses(rig):
    """The shares and factors by bone."""
    skeleton = read_trees(rig)[0].skeleton
    found = masses_of(rig, skeleton)
    return dict(zip(skeleton.names, zip(found.shares, found.factors, strict=True), strict=True))


def test_limits_change_nothing(rig):
    before = masses(rig)
    bpy.ops.fabrik.set_limit(bones="head,forearm.L", type="BALL")
    assert masses(rig) == before
    assert sum(share for share, _ in before.values()) == pytest.approx(1.0)


def test_a_custom_mass_does_not_change_those_of_other_bones(rig):
    before = masses(rig)
    own = 3.0 * before["head"][0]
    bpy.ops.fabrik.set_limit(bones="head", mass=own)
    after = masses(rig)
    assert after["head"][0] / after["spine"][0] == pytest.approx(3.0 * before["head"][0] / before["spine"][0])
    assert sum(share for share, _ in after.values()) == pytest.approx(1.0)
    bpy.ops.fabrik.set_limit(bones="head", mass=-1.0)
    assert masses(rig) == before


def test_stiffness_is_read_from_bones(rig):
    before = masses(rig)
    bpy.ops.fabrik.set_limit(bones="head", stiffness=0.5)
    bpy.ops.fabrik.set_limit(bones="spine", stiffness=1.0)
    after = masses(rig)
    assert after["head"][1] == pytest.approx(4.0 * before["head"][1])
    assert np.isinf(after["spine"][1])
    assert {name: after[name][1] for name in ("hips", "forearm.L")} == {
        name: before[name][1] for name in ("hips", "forearm.L")
    }


@pytest.mark.parametrize("name", ["fabrik_mass", "fabrik_stiffness"])
def test_invalid_values_are_named(rig, name):
    rig.pose.bones["head"][name] = "much"
    with pytest.raises(LimitPropertyError, match=f"'head'.*'{name}'"):
        masses(rig)


class TestCenterOfMass:
    """The center of mass of the posed rig."""

    def test_the_center_of_mass_is_that_of_the_bones(self, rig):
        rig.pose.bones["spine"].rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
        bpy.context.view_layer.update()
        skeleton = read_trees(rig)[0].skeleton
        found = masses_of(rig, skeleton)
        wanted = sum(
            share * np.array(bone.head.lerp(bone.tail, center))
            for bone, share, center in zip(
                [rig.pose.bones[name] for name in skeleton.names], found.shares, found.centers, strict=True
            )
        )
        assert np.allclose(center_of_mass(rig), wanted, atol=1e-6)

    def test_the_center_moves_with_the_pose_and_with_a_mass(self, rig):
        before = center_of_mass(rig)
        rig.pose.bones["spine"].rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
        bpy.context.view_layer.update()
        leaned = center_of_mass(rig)
        assert np.linalg.norm(leaned - before) > 0.01
        bpy.ops.fabrik.set_limit(bones="head", mass=0.9)
        head = np.array(rig.pose.bones["head"].center)
        assert np.linalg.norm(center_of_mass(rig) - head) < 0.6 * np.linalg.norm(leaned - head)

    def test_a_rig_with_new_bones_is_examined_again(self, rig):
        before = center_of_mass(rig)
        bpy.ops.object.mode_set(mode="EDIT")
        rig.data.edit_bones["head"].tail.z += 5.0
        bpy.ops.object.mode_set(mode="OBJECT")
        assert np.linalg.norm(center_of_mass(rig) - before) > 0.01
