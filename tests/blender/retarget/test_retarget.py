"""Another armature's motion onto the active rig, by the operator."""

import bpy
import numpy as np
import pytest
from support.scenes import PERSON, make_rig

from fabrik_addon.blender.settings.rig import rig_settings

FRAMES = (1, 12, 24)


@pytest.fixture
def moving(clean_scene):
    """A person that waves, bows and walks off, and another one, active, that is to do the same."""
    source, rig = make_rig(name="Source"), make_rig(name="Rig")
    for frame in FRAMES:
        for bone, way in (("upper_arm.L", (0.5, 0.1, 0.7)), ("spine", (0.3, 0.0, 0.1)), ("shin.R", (0.8, 0.0, 0.0))):
            pose_bone = source.pose.bones[bone]
            pose_bone.rotation_mode = "XYZ"
            pose_bone.rotation_euler = np.array(way) * frame / 24
            pose_bone.keyframe_insert("rotation_euler", frame=frame)
        source.pose.bones["hips"].location = (0.02 * frame, 0.01 * frame, 0.03 * frame)
        source.pose.bones["hips"].keyframe_insert("location", frame=frame)
    bpy.context.view_layer.objects.active = rig
    return source, rig


def heads(thing, frame):
    bpy.context.scene.frame_set(frame)
    return {bone.name: np.array(thing.matrix_world @ bone.head) for bone in thing.pose.bones}


def test_a_rig_does_what_its_twin_does(moving):
    source, rig = moving
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    for frame in (1, 7, 18, 24):
        own, other = heads(rig, frame), heads(source, frame)
        assert max(np.linalg.norm(own[name] - other[name]) for name in own) < 1e-4
    assert "24 frames of 'Source'" in rig_settings(rig).last_result


def test_what_is_no_source_is_said_and_nothing_changes(moving):
    _, rig = moving
    for source, said in (("", "no source"), ("Nobody", "neither an armature nor a file"), ("Rig", "the rig itself")):
        with pytest.raises(RuntimeError, match=said):
            bpy.ops.fabrik.retarget(source=source)
    with pytest.raises(RuntimeError, match="no such file"):
        bpy.ops.fabrik.retarget(source="missing.bvh")
    assert rig.animation_data is None
    assert len(bpy.data.objects) == 2


# Blender's BVH importer leaves its file open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_file_is_read_and_leaves_nothing_behind(moving, recording):
    _, rig = moving
    assert bpy.ops.fabrik.retarget(source=str(recording("bvh/dab.bvh")), frame_end=20) == {"FINISHED"}
    assert sorted(thing.name for thing in bpy.data.objects) == ["Rig", "Source"]
    assert bpy.context.object == rig
    assert len(bpy.data.armatures) == 2


def test_the_list_of_bones_is_found_saved_loaded_and_heeded(moving, tmp_path):
    source, rig = moving
    kept = rig_settings(rig).retarget
    kept.source = source
    assert bpy.ops.fabrik.match_bones() == {"FINISHED"}
    assert {pair.name: pair.source for pair in kept.pairs} == {bone.name: bone.name for bone in rig.pose.bones}
    kept.pairs["upper_arm.L"].enabled = False
    path = str(tmp_path / "map.json")
    assert bpy.ops.fabrik.save_bone_map(filepath=path) == {"FINISHED"}
    kept.pairs.clear()
    assert bpy.ops.fabrik.load_bone_map(filepath=path) == {"FINISHED"}
    assert len(kept.pairs) == len(rig.pose.bones) - 1
    assert bpy.ops.fabrik.retarget() == {"FINISHED"}
    bpy.context.scene.frame_set(24)
    assert tuple(rig.pose.bones["upper_arm.L"].rotation_quaternion) == (1.0, 0.0, 0.0, 0.0)
    assert rig.pose.bones["spine"].rotation_quaternion.angle > 0.2


def test_a_body_without_names_is_known_by_its_tree(moving):
    source, rig = moving
    for bone in source.data.bones:
        bone.name = f"part {bone.name[0]}{len(bone.name)}"
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    assert rig.animation_data.action is not None


def test_what_has_nothing_in_common_is_said_and_nothing_changes(moving):
    _, rig = moving
    links = [(f"link {n}", f"link {n - 1}" if n else "", (0, n, 0), (0, n + 1, 0)) for n in range(5)]
    snake = make_rig(links, "Snake")
    for frame in FRAMES:
        snake.pose.bones["link 2"].rotation_quaternion = (1.0, 0.02 * frame, 0.0, 0.0)
        snake.pose.bones["link 2"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.view_layer.objects.active = rig
    with pytest.raises(RuntimeError, match="known"):
        bpy.ops.fabrik.retarget(source="Snake")
    assert rig.animation_data is None


def test_a_source_that_never_moves_is_said(moving):
    source, rig = moving
    source.animation_data_clear()
    with pytest.raises(RuntimeError, match="'Source' has no animation"):
        bpy.ops.fabrik.retarget(source="Source")
    assert rig.animation_data is None


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)], ids=["rig", "source"])
def test_two_bodies_in_one_armature_are_said_and_nothing_changes(clean_scene, first, second):
    """Which is meant can only be said by a map."""
    beside = [
        (f"B:{name}", f"B:{parent}" if parent else "", (head[0] + 2, *head[1:]), (tail[0] + 2, *tail[1:]))
        for name, parent, head, tail in PERSON
    ]
    bodies = {1: list(PERSON), 2: [*PERSON, *beside]}
    source, rig = make_rig(bodies[first], "Source"), make_rig(bodies[second], "Rig")
    for frame in FRAMES:
        source.pose.bones["hips"].location.z = 0.02 * frame
        source.pose.bones["hips"].keyframe_insert("location", frame=frame)
    with pytest.raises(RuntimeError, match=r"Bones 'hips' and 'B:hips' both are hips with legs: say by a map"):
        bpy.ops.fabrik.retarget(source="Source")
    assert rig.animation_data is None
    kept = rig_settings(rig).retarget
    kept.source = source
    with pytest.raises(RuntimeError, match="both are hips"):
        bpy.ops.fabrik.match_bones()
    for name, *_ in PERSON:
        pair = kept.pairs.add()
        pair.name = pair.source = name
    assert bpy.ops.fabrik.retarget() == {"FINISHED"}
