"""Reading and writing armatures, compared with Blender's own results."""

import itertools

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Quaternion, Vector

from fabrik_addon.blender.control.posed_rig import posed_rig
from fabrik_addon.blender.rig.armature import RigError, Tree, check_unscaled, read_trees, root_location_channel
from fabrik_addon.core import forward_kinematics

pytestmark = pytest.mark.usefixtures("clean_scene")

MODES = ("QUATERNION", "AXIS_ANGLE", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
INHERIT_SCALE = ("FULL", "FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE", "NONE_LEGACY")


def new_armature(name="Rig"):
    """An armature object without bones, active and in Edit mode."""
    armature = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    return armature


def finish(armature):
    bpy.ops.object.mode_set(mode="OBJECT")
    return armature


def random_armature(rng, bones=12, roots=2):
    """Random rolls, lengths and flags; some bones connected, some not, some inherit no rotation."""
    armature = new_armature()
    edit = armature.data.edit_bones
    for index in range(bones):
        bone = edit.new(f"bone {index}")
        parent = edit[int(rng.integers(index))] if index >= roots else None
        bone.parent = parent
        joined = parent is not None and rng.random() < 0.5
        bone.head = parent.tail if joined else Vector(rng.normal(size=3))
        bone.tail = bone.head + Vector(rng.normal(size=3)).normalized() * rng.uniform(0.1, 1.0)
        bone.roll = rng.uniform(-4.0, 4.0)
        bone.use_connect = bool(joined)
        bone.use_inherit_rotation = bool(rng.random() < 0.7)
        bone.use_local_location = bool(rng.random() < 0.7)
        bone.inherit_scale = str(rng.choice(INHERIT_SCALE))
    return finish(armature)


def pose_randomly(armature, rng):
    for bone in armature.pose.bones:
        bone.rotation_mode = str(rng.choice(MODES))
        bone.location = rng.normal(size=3)
        bone.rotation_quaternion = rng.normal(size=4)  # a quaternion of any length, as sliders set it
        bone.rotation_axis_angle = (rng.uniform(-7.0, 7.0), *rng.normal(size=3))
        bone.rotation_euler = rng.uniform(-7.0, 7.0, size=3)
    bpy.context.view_layer.update()


def evaluated(armature, names):
    """(J, 4, 4) matrices, (J, 3) heads and (J, 3) tails as Blender evaluates them, armature space."""
    bpy.context.view_layer.update()
    bones = [armature.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones[name] for name in names]
    return tuple(np.array([np.array(getattr(bone, what)) for bone in bones]) for what in ("matrix", "head", "tail"))


def not_rigid(matrices):
    """Twice the distance of Blender's own matrices from rotations, which is the smallest error of a rigid model.

    Up to 1e-4 for bones that point back along their parents, see `test_bones_that_fold_back_are_read`; else 1e-7.
    """
    axes = matrices[:, :3, :3]
    return float(np.abs(axes.transpose(0, 2, 1) @ axes - np.eye(3)).max())


def assert_blender_agrees(armature, tree, rotations, root_location):
    """Blender's evaluated bones are those of forward kinematics, to 1e-5 of the rig's size."""
    matrices, heads, tails = evaluated(armature, tree.skeleton.names)
    expected = forward_kinematics(tree.skeleton, rotations, root_location)
    close = 1e-5 + not_rigid(matrices)
    size = max(np.ptp(np.concatenate((heads, tails)), axis=0).max(), 1.0)
    np.testing.assert_allclose(matrices[:, :3, :3], expected[:, :3, :3], atol=close)
    np.testing.assert_allclose(heads, expected[:, :3, 3], atol=close * size)
    ends = expected[:, :3, 3] + expected[:, :3, 1] * tree.skeleton.lengths[:, None]
    np.testing.assert_allclose(tails, ends, atol=close * size)


def random_turns(rng, count):
    turns = rng.normal(size=(count, 4))
    return turns / np.linalg.norm(turns, axis=1, keepdims=True)


def only_tree(armature) -> Tree:
    (tree,) = read_trees(armature)
    return tree


@pytest.fixture
def chain():
    """Three connected bones of half a meter along Z."""
    armature = new_armature()
    for index in range(3):
        bone = armature.data.edit_bones.new("abc"[index])
        bone.head, bone.tail = (0.0, 0.0, 0.5 * index), (0.0, 0.0, 0.5 * index + 0.5)
        if index:
            bone.parent = armature.data.edit_bones["abc"[index - 1]]
            bone.use_connect = True
    return finish(armature)


@pytest.mark.parametrize("seed", range(12))
def test_forward_kinematics_of_a_read_rig_agrees_with_blender(seed):
    rng = np.random.default_rng(seed)
    armature = random_armature(rng)
    pose_randomly(armature, rng)

    trees = read_trees(armature)

    assert sorted(name for tree in trees for name in tree.skeleton.names) == sorted(armature.data.bones.keys())
    assert [tree.skeleton.names[0] for tree in trees] == ["bone 0", "bone 1"]
    for tree in trees:
        assert_blender_agrees(armature, tree, tree.rotations, None)
        assert_blender_agrees(armature, tree, tree.rotations, tree.root_location)


@pytest.mark.parametrize("seed", range(12))
def test_blender_shows_the_pose_that_is_written(seed):
    rng = np.random.default_rng(100 + seed)
    armature = random_armature(rng)
    pose_randomly(armature, rng)
    modes = [bone.rotation_mode for bone in armature.pose.bones]
    tree, other = read_trees(armature)
    turns, place = random_turns(rng, len(tree.skeleton)), rng.normal(size=3)

    posed_rig(armature).write(bpy.context, tree.skeleton, turns, place)

    assert_blender_agrees(armature, tree, turns, place)
    assert_blender_agrees(armature, other, other.rotations, other.root_location)
    assert [bone.rotation_mode for bone in armature.pose.bones] == modes


@pytest.mark.parametrize("seed", range(4))
def test_a_pose_that_is_written_is_read_back(seed):
    rng = np.random.default_rng(200 + seed)
    armature = random_armature(rng, roots=1)
    pose_randomly(armature, rng)
    tree = only_tree(armature)
    turns, place = random_turns(rng, len(tree.skeleton)), rng.normal(size=3)

    posed_rig(armature).write(bpy.context, tree.skeleton, turns, place)
    again = only_tree(armature)

    np.testing.assert_allclose(np.abs((again.rotations * turns).sum(axis=1)), 1.0, atol=1e-6)
    np.testing.assert_allclose(again.root_location, place, atol=1e-6)
    np.testing.assert_array_equal(again.skeleton.rest[:, :3, :3], tree.skeleton.rest[:, :3, :3])


@pytest.mark.parametrize("seed", range(3))
def test_bones_that_fold_back_are_read(seed):
    """A bone within 15 degrees of its parent's opposite has a rest matrix that Blender itself gets wrong by 1e-5."""
    rng = np.random.default_rng(300 + seed)
    armature = new_armature()
    parent = None
    for index in range(10):
        bone = armature.data.edit_bones.new(str(index))
        bone.parent, bone.head = parent, parent.tail if parent else (0.0, 0.0, 0.0)
        back = -parent.vector.normalized() if parent else Vector((0.0, 0.0, 1.0))
        bone.tail = bone.head + 0.5 * (back + 0.1 * Vector(rng.normal(size=3))).normalized()
        bone.roll = rng.uniform(-3.0, 3.0)
        parent = bone
    finish(armature)
    pose_randomly(armature, rng)
    for bone in armature.pose.bones:
        bone.location = (0.0, 0.0, 0.0)

    tree = only_tree(armature)

    axes = tree.skeleton.rest[:, :3, :3]
    np.testing.assert_allclose(axes.transpose(0, 2, 1) @ axes, np.tile(np.eye(3), (10, 1, 1)), atol=1e-12)
    _, heads, tails = evaluated(armature, tree.skeleton.names)
    expected = forward_kinematics(tree.skeleton, tree.rotations)
    ends = expected[:, :3, 3] + expected[:, :3, 1] * tree.skeleton.lengths[:, None]
    np.testing.assert_allclose(heads, expected[:, :3, 3], atol=1e-4)
    np.testing.assert_allclose(tails, ends, atol=1e-4)
    np.testing.assert_allclose(tree.root_location, heads[0], atol=1e-6)


def test_locations_have_the_same_effect_as_in_blender_for_all_48_combinations():
    rng = np.random.default_rng(7)
    armature = new_armature()
    combinations = list(itertools.product((True, False), INHERIT_SCALE, (True, False), (True, False)))
    root = armature.data.edit_bones.new("root")
    root.head, root.tail, root.roll = (0.3, -0.2, 0.1), (0.5, 0.4, 0.9), 0.7
    for inherit_rotation, inherit_scale, local_location, connected in combinations:
        bone = armature.data.edit_bones.new(f"{inherit_rotation} {inherit_scale} {local_location} {connected}")
        bone.parent = root
        bone.head = root.tail if connected else Vector(rng.normal(size=3))
        bone.tail = bone.head + Vector(rng.normal(size=3))
        bone.roll = rng.uniform(-3.0, 3.0)
        bone.use_inherit_rotation, bone.inherit_scale = inherit_rotation, inherit_scale
        bone.use_local_location, bone.use_connect = local_location, connected
    finish(armature)
    pose_randomly(armature, rng)

    tree = only_tree(armature)

    assert len(tree.skeleton) == 1 + 48
    assert_blender_agrees(armature, tree, tree.rotations, None)
    posed_rig(armature).write(bpy.context, tree.skeleton, random_turns(rng, 49), rng.normal(size=3))
    again = only_tree(armature)
    assert_blender_agrees(armature, tree, again.rotations, again.root_location)


@pytest.mark.parametrize("local_location", [True, False])
def test_the_root_location_channel_moves_the_root_to_the_given_position(chain, local_location):
    rng = np.random.default_rng(3)
    chain.data.bones["a"].use_local_location = local_location
    places = rng.normal(size=(4, 3))

    channels = root_location_channel(chain.pose.bones["a"], places)

    for place, channel in zip(places, channels, strict=True):
        chain.pose.bones["a"].location = channel
        _, heads, _ = evaluated(chain, ["a"])
        np.testing.assert_allclose(heads[0], place, atol=1e-6)


def test_rest_pose_is_the_armature_as_edited(chain):
    tree = only_tree(chain)

    np.testing.assert_array_equal(tree.rotations, np.tile((1.0, 0.0, 0.0, 0.0), (3, 1)))
    np.testing.assert_allclose(tree.skeleton.lengths, 0.5)
    np.testing.assert_allclose(tree.skeleton.rest[:, :3, 3], [(0, 0, 0), (0, 0, 0.5), (0, 0, 1.0)], atol=1e-7)
    np.testing.assert_allclose(tree.skeleton.rest[:, :3, 1], [(0, 0, 1)] * 3, atol=1e-7)
    assert list(tree.skeleton.parents) == [-1, 0, 1]


def test_channels_without_effect_do_not_change(chain):
    bone = chain.pose.bones["b"]
    bone.rotation_mode = "XYZ"
    bone.rotation_quaternion, bone.location = (0.5, 0.5, 0.5, 0.5), (1.0, 2.0, 3.0)
    tree = only_tree(chain)

    posed_rig(chain).write(bpy.context, tree.skeleton, random_turns(np.random.default_rng(1), 3))

    assert tuple(bone.rotation_quaternion) == (0.5, 0.5, 0.5, 0.5)
    assert tuple(bone.location) == (1.0, 2.0, 3.0)
    assert tuple(chain.pose.bones["a"].location) == (0.0, 0.0, 0.0)


def test_angles_continue_from_the_values_of_the_channels(chain):
    for name, mode in (("a", "XYZ"), ("b", "AXIS_ANGLE")):
        chain.pose.bones[name].rotation_mode = mode
    chain.pose.bones["a"].rotation_euler = (6.2, -6.3, 12.6)
    chain.pose.bones["b"].rotation_axis_angle = (6.2, 0.0, -1.0, 0.0)
    chain.pose.bones["c"].rotation_quaternion = (-1.0, 0.0, 0.0, 0.0)
    tree = only_tree(chain)
    step = np.array(Quaternion((1.0, 0.0, 0.0), 0.1))

    posed_rig(chain).write(
        bpy.context, tree.skeleton, [np.array(Quaternion(turn) @ Quaternion(step)) for turn in tree.rotations]
    )

    assert np.abs(np.array(chain.pose.bones["a"].rotation_euler) - (6.2, -6.3, 12.6)).max() < 0.11
    assert abs(chain.pose.bones["b"].rotation_axis_angle[0] - 6.2) < 0.11
    assert chain.pose.bones["b"].rotation_axis_angle[2] < -0.5
    assert chain.pose.bones["c"].rotation_quaternion[0] < -0.9


def test_a_quaternion_of_zeros_is_read_as_blender_shows_it(chain):
    chain.pose.bones["b"].rotation_quaternion = (0.0, 0.0, 0.0, 0.0)
    chain.pose.bones["c"].rotation_mode = "AXIS_ANGLE"
    chain.pose.bones["c"].rotation_axis_angle = (1.0, 0.0, 0.0, 0.0)

    tree = only_tree(chain)

    assert_blender_agrees(chain, tree, tree.rotations, None)


def test_keyed_locations_are_those_of_the_current_frame(chain):
    root = chain.pose.bones["a"]
    for frame, place in ((1, 0.0), (11, 1.0)):
        root.location = (place, 0.0, 0.0)
        root.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(11)

    tree = only_tree(chain)

    np.testing.assert_allclose(tree.root_location, (1.0, 0.0, 0.0), atol=1e-6)
    assert_blender_agrees(chain, tree, tree.rotations, None)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0, -1.0])
def test_the_object_may_have_any_rotation_uniform_scale_and_parent(chain, scale):
    parent = bpy.data.objects.new("Parent", None)
    bpy.context.scene.collection.objects.link(parent)
    parent.matrix_world = Matrix.LocRotScale((1.0, 2.0, 3.0), Euler((0.4, 0.5, 0.6)), (3.0, 3.0, 3.0))
    chain.parent = parent
    chain.rotation_euler, chain.scale = (1.0, 2.0, 3.0), (scale,) * 3
    pose_randomly(chain, np.random.default_rng(4))

    tree = only_tree(chain)

    assert_blender_agrees(chain, tree, tree.rotations, None)


def test_a_non_uniform_object_is_refused_by_name(chain):
    chain.scale = (1.0, 1.001, 1.0)
    bpy.context.view_layer.update()

    with pytest.raises(RigError, match=r"'Rig' is scaled non-uniformly \(1, 1.001, 1\)"):
        read_trees(chain)


def test_an_object_with_zero_scale_is_refused(chain):
    chain.scale = (0.0, 0.0, 0.0)
    bpy.context.view_layer.update()

    with pytest.raises(RigError, match="'Rig' is scaled"):
        read_trees(chain)


def test_a_scaled_bone_is_refused_by_name(chain):
    chain.pose.bones["b"].scale = (1.0, 1.001, 1.0)

    with pytest.raises(RigError, match=r"Bone 'b' is scaled \(1, 1.001, 1\)"):
        check_unscaled(chain, ["a", "b"])
    check_unscaled(chain, ["a"])


def test_other_objects_are_refused_by_name():
    with pytest.raises(RigError, match="'Empty' is not an armature"):
        read_trees(bpy.data.objects.new("Empty", None))


def test_an_armature_without_bones_is_refused():
    with pytest.raises(RigError, match="'Rig' has no bones"):
        read_trees(finish(new_armature()))


def test_an_armature_in_edit_mode_is_refused(chain):
    bpy.ops.object.mode_set(mode="EDIT")

    with pytest.raises(RigError, match="'Rig' is in Edit mode"):
        read_trees(chain)


def test_an_armature_that_was_never_in_a_scene_is_refused(chain):
    twin = bpy.data.objects.new("Twin", chain.data)

    with pytest.raises(RigError, match="'Twin' has no pose yet"):
        read_trees(twin)


def test_a_bone_that_was_renamed_since_reading_is_named(chain):
    tree = only_tree(chain)
    chain.data.bones["b"].name = "beta"

    with pytest.raises(RigError, match="'Rig' has no bone 'b'"):
        posed_rig(chain).write(bpy.context, tree.skeleton, tree.rotations)


def link_saved(chain, path):
    """The armature as a link into an empty file."""
    bpy.data.libraries.write(str(path), {chain})
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.objects = ["Rig"]
    linked = wanted.objects[0]
    bpy.context.scene.collection.objects.link(linked)
    bpy.context.view_layer.update()
    return linked


def test_a_linked_armature_is_read_but_not_written(chain, tmp_path):
    linked = link_saved(chain, tmp_path / "rig.blend")

    tree = only_tree(linked)

    with pytest.raises(RigError, match="'Rig' is linked from another file"):
        posed_rig(linked).write(bpy.context, tree.skeleton, tree.rotations)


def test_a_library_override_is_posed(chain, tmp_path):
    override = link_saved(chain, tmp_path / "rig.blend").override_create(remap_local_usages=True)
    override.override_library.is_system_override = False
    tree = only_tree(override)
    turns = random_turns(np.random.default_rng(5), 3)

    posed_rig(override).write(bpy.context, tree.skeleton, turns)

    assert_blender_agrees(override, tree, turns, None)
    override.override_library.is_system_override = True
    with pytest.raises(RigError, match="override of 'Rig' is not editable"):
        posed_rig(override).write(bpy.context, tree.skeleton, turns)
