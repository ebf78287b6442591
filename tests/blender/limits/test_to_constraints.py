"""Limit Rotation constraints made from limits, checked by Blender's results for poses inside and outside."""

from math import radians

import bpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import checker, limited, scenes
from support.limited import write_limit

from fabrik_addon.blender.limits.editing import CONSTRAINT_NAME
from fabrik_addon.core import Ball, Fixed, Hinge, Polygon
from fabrik_addon.core.channels import euler_box

pytestmark = pytest.mark.usefixtures("clean_scene")

NAME = "upper_arm.L"
WINDOW = ((0.5, 0.2), (0.1, 0.8), (-0.4, 0.1), (-0.1, -0.6))


@pytest.fixture
def rig(clean_scene):
    return limited.make_mirrored_rig()


def shown(bone, rotation):
    """(4,) a local rotation after the bone's constraints."""
    limited.turn(bone, rotation)
    bpy.context.view_layer.update()
    graph = bpy.context.evaluated_depsgraph_get()
    evaluated = bone.id_data.evaluated_get(graph).pose.bones[bone.name]
    space = {"parent_matrix": evaluated.parent.matrix, "parent_matrix_local": bone.bone.parent.matrix_local}
    local = bone.bone.convert_local_to_pose(evaluated.matrix, bone.bone.matrix_local, invert=True, **space)
    return np.array(local.to_quaternion())


def turned_by(first, second):
    """Radians between two quaternions."""
    relative = checker.matrices(np.array([first]))[0].T @ checker.matrices(np.array([second]))[0]
    return float(checker.size_of_turn(relative))


# Swings beyond a right angle have Euler angles that jump, so that only a box of them is possible.
moderate = st.one_of(
    st.builds(Ball, st.tuples(*[limited.angles(0.0, 1.4)] * 4), limited.ranges(-3.0, 3.0)),
    limited.hinges,
    st.builds(Polygon, st.just(WINDOW), limited.ranges(-3.0, 3.0)),
    st.just(Fixed()),
)


@limited.in_one_scene(60)
@given(limit=moderate, seed=st.integers(0, 1000))
def test_a_pose_inside_is_never_moved(rig, limit, seed):
    bone = rig.pose.bones[NAME]
    write_limit(bone, limit)
    bpy.ops.fabrik.limits_to_constraints(bones=NAME)
    rng = np.random.default_rng(seed)
    for rotation in checker.random_rotations_inside(limit, rng, 10):
        assert turned_by(shown(bone, rotation), rotation) < radians(0.2)


@limited.in_one_scene(40)
@given(limit=limited.hinges, seed=st.integers(0, 1000))
def test_a_hinge_is_held_exactly(rig, limit, seed):
    bone = rig.pose.bones[NAME]
    write_limit(bone, limit)
    bpy.ops.fabrik.limits_to_constraints(bones=NAME)
    rng = np.random.default_rng(seed)
    found = np.array([shown(bone, rotation) for rotation in rng.normal(size=(10, 4))])
    assert checker.distances(limit, checker.matrices(found))[0].max() < radians(0.1)


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        (Fixed(), 0.1),
        (Ball((0.5, 0.5, 0.5, 0.5), (-0.5, 0.5)), 16.0),
        (Ball((0.2, 1.0, 0.1, 0.3), (-0.2, 1.5)), 13.0),
        (Ball((0.0, 1.0, 0.0, 0.5), (0.0, 0.0)), 0.5),
        (Polygon(((0.5, 0.5), (-0.5, 0.5), (-0.5, -0.2), (0.5, -0.2)), (-0.5, 0.5)), 16.5),
    ],
)
def test_a_box_allows_the_rotations_of_its_corners_and_no_more(rig, limit, most):
    bone = rig.pose.bones[NAME]
    write_limit(bone, limit)
    bpy.ops.fabrik.limits_to_constraints(bones=NAME)
    found = np.array([shown(bone, rotation) for rotation in np.random.default_rng(5).normal(size=(200, 4))])
    assert checker.distances(limit, checker.matrices(found))[0].max() < radians(most)


def test_free_twist_stays_free(rig):
    box = euler_box(Ball((0.3, 0.5, 0.2, 0.4)))
    assert box[1][1] is None
    assert box[1][0] == pytest.approx((-0.4, 0.5), abs=0.02)
    assert box[1][2] == pytest.approx((-0.3, 0.2), abs=0.02)


def test_unlimited_bones_get_no_constraint(rig):
    write_limit(rig.pose.bones["head"], Ball())
    write_limit(rig.pose.bones["spine"], Hinge("Y"))
    bpy.ops.fabrik.limits_to_constraints(bones="head,hips,spine")
    assert not rig.pose.bones["head"].constraints
    assert not rig.pose.bones["hips"].constraints
    assert not rig.pose.bones["spine"].constraints[0].use_limit_y


class TestAgain:
    """A second run replaces the constraint of the first run, and no other."""

    def others(self, bone):
        mine = bone.constraints.new("LIMIT_ROTATION")
        mine.name, mine.use_limit_x, mine.max_x = "by hand", True, 0.25
        other = bone.constraints.new("COPY_ROTATION")
        other.name = "copy"
        return {"by hand", "copy"}

    def values(self, constraint):
        return {name: getattr(constraint, name) for name in ("owner_space", "use_limit_x", "min_x", "max_x", "mute")}

    def test_an_existing_constraint_is_replaced(self, rig):
        bone = rig.pose.bones[NAME]
        names = self.others(bone)
        before = self.values(bone.constraints["by hand"])
        for high in (0.5, 1.5):
            write_limit(bone, Hinge("X", -0.25, high))
            bpy.ops.fabrik.limits_to_constraints(bones=NAME)
            assert {each.name for each in bone.constraints} == names | {CONSTRAINT_NAME}
            own = bone.constraints[CONSTRAINT_NAME]
            assert (own.min_x, own.max_x, own.owner_space) == (-0.25, high, "LOCAL")
        assert self.values(bone.constraints["by hand"]) == before

    def test_the_constraint_is_removed_with_the_limit(self, rig):
        bone = rig.pose.bones[NAME]
        names = self.others(bone)
        write_limit(bone, Hinge("X", -0.25, 0.5))
        bpy.ops.fabrik.limits_to_constraints(bones=NAME)
        bpy.ops.fabrik.clear_limit(bones=NAME)
        bpy.ops.fabrik.limits_to_constraints(bones=NAME)
        assert {each.name for each in bone.constraints} == names

    def test_a_constraint_of_another_type_with_the_same_name_is_kept(self, rig):
        bone = rig.pose.bones[NAME]
        bone.constraints.new("COPY_ROTATION").name = CONSTRAINT_NAME
        write_limit(bone, Hinge("X", -0.25, 0.5))
        for _ in range(2):
            bpy.ops.fabrik.limits_to_constraints(bones=NAME)
            assert sorted(each.type for each in bone.constraints) == ["COPY_ROTATION", "LIMIT_ROTATION"]

    def test_changed_from_one_type_to_another(self, rig):
        bone = rig.pose.bones[NAME]
        write_limit(bone, Fixed())
        bpy.ops.fabrik.limits_to_constraints(bones=NAME)
        write_limit(bone, Ball((3.14, 0.5, 3.14, 0.5), (-0.5, 0.5)))
        bpy.ops.fabrik.limits_to_constraints(bones=NAME)
        own = bone.constraints[CONSTRAINT_NAME]
        assert (own.use_limit_x, own.use_limit_z) == (True, False)


def test_invalid_values_are_named_and_change_nothing(rig):
    write_limit(rig.pose.bones["head"], Fixed())
    rig.pose.bones[NAME]["fabrik_limit"] = "BAL"
    assert "'upper_arm.L'" in limited.refusal(bpy.ops.fabrik.limits_to_constraints, bones=f"head,{NAME}")
    assert not rig.pose.bones["head"].constraints


def test_on_a_library_override(rig, tmp_path):
    write_limit(rig.pose.bones["head"], Hinge("X", -0.5, 0.5))
    write_limit(rig.pose.bones[NAME], Hinge("X", -0.5, 0.5))
    bpy.ops.fabrik.limits_to_constraints(bones="head")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
    own = limited.override(tmp_path / "source.blend", "Rig")
    write_limit(own.pose.bones["head"], Hinge("X", -0.25, 0.25))
    bpy.ops.fabrik.limits_to_constraints(bones=f"head,{NAME}")
    limited.save_and_open(tmp_path / "shot.blend")
    own = limited.the_override()
    assert own.pose.bones["head"].constraints[CONSTRAINT_NAME].max_x == 0.25
    assert own.pose.bones[NAME].constraints[CONSTRAINT_NAME].max_x == 0.5
    scenes.make_active(own)
    bpy.ops.fabrik.clear_limit(bones="head")
    bpy.ops.fabrik.limits_to_constraints(bones="head")
    limited.save_and_open(tmp_path / "shot.blend")
    assert limited.the_override().pose.bones["head"].constraints[CONSTRAINT_NAME].mute
