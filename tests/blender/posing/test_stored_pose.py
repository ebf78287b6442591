"""The preferred pose: the pose at the start, the rest pose, or a stored one."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix
from support import limited, scenes

from fabrik_addon.blender.control.posed_rig import posed_rig
from fabrik_addon.blender.goals.problem import rig_problem
from fabrik_addon.blender.posing.solve import preferred_pose
from fabrik_addon.blender.rig.armature import read_trees
from fabrik_addon.core import Effector

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def rig(clean_scene):
    made = scenes.make_rig()
    scenes.make_active(made)
    return made


def pose(rig, seed):
    """Rotate all bones randomly and move the root; returns the tree in this pose."""
    rng = np.random.default_rng(seed)
    for number, bone in enumerate(rig.pose.bones):
        bone.rotation_mode = ("QUATERNION", "XYZ", "AXIS_ANGLE")[number % 3]
        bone.matrix_basis = Matrix.Rotation(1.0, 4, rng.normal(size=3).tolist())
    root = rig.pose.bones[0]
    root.location = rng.normal(size=3).tolist()
    bpy.context.view_layer.update()
    return read_trees(rig)[0]


def same(found, tree):
    rotations, location = found
    dots = abs((rotations * tree.rotations).sum(axis=1))
    return np.allclose(dots, 1.0, atol=1e-6) and np.allclose(location, tree.root_location, atol=1e-6)


def preferred(rig):
    """The preferred pose of a problem in which all bones rotate and the root moves."""
    tree = read_trees(rig)[0]
    every = range(len(tree.skeleton))
    problem = rig_problem(posed_rig(rig), tree, [Effector(tree.skeleton.names[0])], every, free_root=True)
    return preferred_pose(problem, (tree.rotations, tree.root_location))


def test_the_start_is_the_default_preferred_pose(rig):
    tree = pose(rig, 0)
    assert same(preferred(rig), tree)
    rig.fabrik.preferred_pose = "KEPT"
    assert same(preferred(rig), tree), "nothing is kept yet"


def test_the_rest_pose_can_be_preferred(rig):
    rest = read_trees(rig)[0]
    pose(rig, 0)
    rig.fabrik.preferred_pose = "REST"
    assert same(preferred(rig), rest)


def test_the_stored_pose_survives_posing_saving_and_a_new_bone(rig, tmp_path):
    kept = pose(rig, 0)
    assert bpy.ops.fabrik.keep_pose() == {"FINISHED"}
    pose(rig, 1)
    assert same(preferred(rig), kept)
    limited.save_and_open(tmp_path / "kept.blend")
    rig = bpy.data.objects["Rig"]
    assert same(preferred(rig), kept)
    bpy.ops.object.mode_set(mode="EDIT")
    new = rig.data.edit_bones.new("tail")
    new.head, new.tail = (0, 0, 1), (0, 1, 1)
    new.parent = rig.data.edit_bones[kept.skeleton.names[0]]
    bpy.ops.object.mode_set(mode="OBJECT")
    rotations, _ = preferred(rig)
    names = read_trees(rig)[0].skeleton.names
    assert np.allclose(rotations[names.index("tail")], (1, 0, 0, 0))
    assert np.allclose(abs(rotations[names.index("head")] @ kept.rotations[kept.skeleton.index("head")]), 1.0)


def test_the_stored_pose_is_replaced(rig):
    pose(rig, 0)
    bpy.ops.fabrik.keep_pose()
    kept = pose(rig, 1)
    bpy.ops.fabrik.keep_pose()
    assert len(rig.fabrik.kept_pose) == len(rig.pose.bones)
    assert same(preferred(rig), kept)


def test_on_a_library_override(rig, tmp_path):
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "source.blend"))
    own = limited.override(tmp_path / "source.blend", "Rig")
    kept = pose(own, 0)
    bpy.ops.fabrik.keep_pose()
    own.fabrik.balance, own.fabrik.use_floor, own.fabrik.floor_height = "ON", True, 0.25
    for _ in range(2):
        limited.save_and_open(tmp_path / "shot.blend")
        again = limited.the_override()
        assert (again.fabrik.balance, again.fabrik.use_floor, again.fabrik.floor_height) == ("ON", True, 0.25)
        assert again.fabrik.preferred_pose == "KEPT"
        assert same(preferred(again), kept)
