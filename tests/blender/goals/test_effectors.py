"""Effectors: adding, removing, checking, and the solver's input."""

import bpy
import numpy as np
import pytest
from mathutils import Vector
from support import scenes

from fabrik_addon.blender.goals.effectors import COLLECTION_NAME, check_followed
from fabrik_addon.blender.goals.problem import find_problems
from fabrik_addon.blender.rig.armature import RigError, object_scale, world_to_armature
from fabrik_addon.blender.settings.why_not import why_no_rig

pytestmark = pytest.mark.usefixtures("clean_scene")

NO_RIG = "Select an armature"


@pytest.fixture
def rig():
    made = scenes.place(scenes.make_rig(), scale=1.5)
    scenes.make_active(made)
    return made


def refusal(operator, **options):
    """The error message of an operator."""
    with pytest.raises(RuntimeError) as refused:
        operator(**options)
    lines = str(refused.value).strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def save_and_open(path):
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))


def link_rig(path, rig):
    """Save the rig to a file and link it from an empty scene."""
    name = rig.name
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.objects = [name]
    linked = bpy.data.objects[name]
    bpy.context.scene.collection.objects.link(linked)
    return linked


def test_target_is_created_at_the_tail_of_the_named_bone(rig):
    assert bpy.ops.fabrik.add_effector(bone="forearm.L") == {"FINISHED"}
    (effector,) = rig.fabrik.effectors
    assert (effector.bone, effector.point, effector.name) == ("forearm.L", "TAIL", "forearm.L target")
    bpy.context.view_layer.update()
    # The forearm's tail at rest, transformed by the object's matrix.
    wanted = np.array(rig.matrix_world) @ np.array([0.70, 0.0, 1.40, 1.0])
    assert np.allclose(effector.target.matrix_world.translation, wanted[:3], atol=1e-5)
    assert effector.target.name in bpy.data.collections[COLLECTION_NAME].objects


def test_target_is_created_at_the_posed_active_bone(rig):
    rig.pose.bones["thigh.L"].rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
    rig.data.bones.active = rig.data.bones["shin.L"]
    bpy.ops.fabrik.add_effector(point="HEAD")
    bpy.context.view_layer.update()
    wanted = rig.matrix_world @ rig.pose.bones["shin.L"].head
    assert np.allclose(rig.fabrik.effectors[0].target.matrix_world.translation, wanted, atol=1e-5)


def test_targets_share_one_collection(rig):
    for bone in scenes.ENDS:
        bpy.ops.fabrik.add_effector(bone=bone)
    assert len(bpy.data.collections) == 1
    assert len(bpy.data.collections[COLLECTION_NAME].objects) == len(scenes.ENDS)
    assert rig.fabrik.active_effector == len(scenes.ENDS) - 1


def test_an_existing_object_can_be_the_target(rig):
    target = scenes.empty_at((1, 2, 3), "Ball")
    bpy.ops.fabrik.add_effector(bone="head", target="Ball")
    assert rig.fabrik.effectors[0].target == target
    assert COLLECTION_NAME not in bpy.data.collections


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "No bone is active: click one in Pose mode first"),
        ({"bone": "tentacle"}, "'Rig' has no bone 'tentacle': choose one that it has"),
        ({"bone": "head", "target": "Nobody"}, "There is no object 'Nobody': choose another"),
        ({"bone": "head", "target": "Rig"}, "'Rig' can't be its own target: choose another object"),
        (
            {"bone": "head", "target": "Ball", "target_bone": "tip"},
            "'Ball' is not an armature and has no bone 'tip': choose an armature or no bone",
        ),
    ],
)
def test_errors_of_adding_name_the_problem_and_change_nothing(rig, options, sentence):
    scenes.empty_at((0, 0, 0), "Ball")
    before = scenes.digest()
    assert refusal(bpy.ops.fabrik.add_effector, **options) == f"Error: {sentence}"
    assert scenes.digest() == before


def test_removing_an_effector_keeps_its_target(rig):
    for bone in ("head", "shin.L", "shin.R"):
        bpy.ops.fabrik.add_effector(bone=bone)
    bpy.ops.fabrik.remove_effector()
    assert [effector.bone for effector in rig.fabrik.effectors] == ["head", "shin.L"]
    rig.fabrik.active_effector = 0
    bpy.ops.fabrik.remove_effector()
    assert [effector.bone for effector in rig.fabrik.effectors] == ["shin.L"]
    assert rig.fabrik.active_effector == 0
    assert "head target" in bpy.context.scene.objects


def test_removing_a_missing_effector_is_refused(rig):
    bpy.ops.fabrik.add_effector(bone="head")
    rig.fabrik.active_effector = 7
    assert "no target or pin with number 7" in refusal(bpy.ops.fabrik.remove_effector)
    assert len(rig.fabrik.effectors) == 1


class TestPolls:
    """Each reason for which an operator cannot run has its message."""

    OPERATORS = ("add_effector", "remove_effector", "solve", "bake")

    @pytest.mark.parametrize("name", OPERATORS)
    def test_without_an_active_rig_operators_are_refused(self, name):
        assert NO_RIG in refusal(getattr(bpy.ops.fabrik, name))

    @pytest.mark.parametrize("name", OPERATORS)
    def test_no_armature(self, name):
        scenes.make_active(scenes.empty_at((0, 0, 0)))
        assert NO_RIG in refusal(getattr(bpy.ops.fabrik, name))

    @pytest.mark.parametrize("name", OPERATORS)
    def test_edit_mode(self, rig, name):
        bpy.ops.fabrik.add_effector(bone="head")
        bpy.ops.object.mode_set(mode="EDIT")
        assert "Leave Edit mode first" in refusal(getattr(bpy.ops.fabrik, name))
        assert why_no_rig(rig) == "Leave Edit mode first"

    @pytest.mark.parametrize("name", OPERATORS)
    def test_linked(self, rig, name, tmp_path):
        bpy.ops.fabrik.add_effector(bone="head")
        scenes.make_active(link_rig(tmp_path / "source.blend", rig))
        reason = "'Rig' is linked from another file: make a library override of it first"
        assert reason in refusal(getattr(bpy.ops.fabrik, name))

    def test_nothing_to_remove(self, rig):
        assert "'Rig' has no target or pin: add one first" in refusal(bpy.ops.fabrik.remove_effector)

    @pytest.mark.parametrize("name", ["solve", "bake"])
    def test_no_effector(self, rig, name):
        assert "'Rig' has no target: select a bone in Pose mode and add one" in refusal(getattr(bpy.ops.fabrik, name))

    @pytest.mark.parametrize("name", ["solve", "bake"])
    def test_all_targets_disabled(self, rig, name):
        bpy.ops.fabrik.add_effector(bone="head")
        bpy.ops.fabrik.add_effector(bone="shin.L")
        rig.fabrik.effectors[0].enabled = False
        rig.fabrik.effectors[1].weight = 0.0
        assert "All targets and pins of 'Rig' are disabled: enable one" in refusal(getattr(bpy.ops.fabrik, name))


def complaint(rig):
    with pytest.raises(RigError) as wrong:
        check_followed(bpy.context.scene, rig)
    return str(wrong.value)


class TestChecks:
    """The message for a deleted bone or object names it and the effector."""

    @pytest.fixture
    def effector(self, rig):
        return scenes.aim(rig, "forearm.L", scenes.empty_at((1, 0, 1)))

    def test_valid_effectors_pass_the_check(self, rig, effector):
        check_followed(bpy.context.scene, rig)

    def test_renamed_bone(self, rig, effector):
        rig.data.bones["forearm.L"].name = "lower arm"
        assert "'forearm.L': 'Rig' has no bone 'forearm.L' (was it renamed?)" in complaint(rig)

    def test_no_bone(self, rig, effector):
        effector.bone = ""
        assert complaint(rig) == "Target 'forearm.L' has no bone: choose one"

    def test_deleted_target(self, rig, effector):
        bpy.data.objects.remove(effector.target)
        assert complaint(rig) == "Target 'forearm.L' has no object (was it deleted?): choose one"

    def test_target_deleted_in_the_viewport(self, rig, effector):
        scenes.make_active(effector.target)
        bpy.ops.object.delete()
        assert "Target 'forearm.L'" in complaint(rig)

    def test_the_rig_as_its_own_target(self, rig, effector):
        effector.target = rig
        assert complaint(rig) == "Target 'forearm.L': 'Rig' can't be its own target: choose another object"

    def test_target_bone_on_an_object_without_bones(self, rig, effector):
        effector.target_bone = "tip"
        assert (
            complaint(rig)
            == "Target 'forearm.L': 'Target' is not an armature and has no bone 'tip': choose an armature or no bone"
        )

    def test_a_missing_target_bone(self, rig, effector):
        effector.target, effector.target_bone = scenes.make_rig(name="Other"), "tip"
        assert complaint(rig) == "Target 'forearm.L': 'Other' has no bone 'tip': choose one that it has"

    def test_disabled_effectors_are_ignored(self, rig, effector):
        effector.enabled, effector.bone = False, "nothing"
        scenes.aim(rig, "head", effector.target)
        check_followed(bpy.context.scene, rig)

    def test_the_head_of_the_root_can_be_an_effector(self, rig):
        scenes.aim(rig, "hips", scenes.empty_at((0, 0, 0)), point="HEAD")
        with pytest.raises(RigError, match="root's head"):
            find_problems(rig)


class TestGoals:
    """The solver's input."""

    def test_only_bones_that_move_an_effector_are_solved(self, rig):
        target = scenes.empty_at((0, 0, 0))
        scenes.aim(rig, "forearm.L", target, point="HEAD")
        scenes.aim(rig, "head", target, point="OFFSET", offset=(0.1, 0.2, 0.3))
        (goals,) = find_problems(rig)
        names = goals.tree.skeleton.names
        assert {names[bone] for bone in goals.bones} == {"hips", "spine", "upper_arm.L", "head"}
        assert goals.effectors[0].offset == (0.0, 0.0, 0.0)
        assert np.allclose(goals.effectors[1].offset, (0.1, 0.2, 0.3))

    def test_each_root_has_its_own_goals(self):
        rows = [("a", "", (0, 0, 0), (0, 0, 1)), ("a1", "a", (0, 0, 1), (0, 0.1, 2)), ("b", "", (1, 0, 0), (1, 0, 1))]
        rows.append(("c", "", (2, 0, 0), (2, 0, 1)))
        rig = scenes.make_rig(rows)
        target = scenes.empty_at((0, 0, 0))
        for bone in ("b", "a1", "a"):
            scenes.aim(rig, bone, target)
        goals = find_problems(rig)
        assert sorted(goal.names for goal in goals) == [("a1", "a"), ("b",)]

    def test_weights_and_enabled(self, rig):
        target = scenes.empty_at((0, 0, 0))
        scenes.aim(rig, "head", target, weight=2.5)
        scenes.aim(rig, "shin.L", target, enabled=False)
        (goals,) = find_problems(rig)
        assert [(effector.bone, effector.weight) for effector in goals.effectors] == [("head", 2.5)]


def test_world_to_armature_undoes_the_object_matrix(rig):
    points = np.random.default_rng(1).normal(size=(7, 4, 3))
    matrices = np.broadcast_to(np.array(rig.matrix_world), (7, 4, 4))
    world = np.array([[rig.matrix_world @ Vector(point) for point in row] for row in points])
    assert np.allclose(world_to_armature(world, matrices), points, atol=1e-5)
    assert np.allclose(object_scale(matrices), 1.5, atol=1e-5)


def test_effectors_are_saved_with_the_file(rig, tmp_path):
    scenes.aim(rig, "head", scenes.empty_at((1, 2, 3)), point="OFFSET", offset=(0.1, 0.2, 0.3), weight=0.5)
    before = scenes.digest()
    save_and_open(tmp_path / "rig.blend")
    assert scenes.digest() == before


def test_effectors_on_a_library_override_survive_saving_and_opening_twice(rig, tmp_path):
    linked = link_rig(tmp_path / "source.blend", rig)
    own = linked.override_create(remap_local_usages=True)
    own.override_library.is_system_override = False
    scenes.make_active(own)
    assert bpy.ops.fabrik.add_effector(bone="head") == {"FINISHED"}
    own.fabrik.effectors[0].weight = 0.25
    own.fabrik.root, own.fabrik.bake.step = "FREE", 3
    for _ in range(2):
        save_and_open(tmp_path / "shot.blend")
        kept = next(thing for thing in bpy.data.objects if thing.override_library).fabrik
        (effector,) = kept.effectors
        assert (effector.bone, effector.target.name, effector.weight) == ("head", "head target", 0.25)
        assert (kept.root, kept.bake.step) == ("FREE", 3)
