"""Another armature's motion onto the active rig, by the operator."""

import csv
import io
import re
from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Matrix
from support.layouts import drawn
from support.limited import select
from support.scenes import PERSON, RETARGETED, SNAKE, make_active, make_rig
from support.takes import walking_human

from fabrik_addon.blender.retarget import retarget_from
from fabrik_addon.blender.rig.keyframes import curves
from fabrik_addon.blender.settings.rig import rig_settings
from fabrik_addon.blender.ui import panels
from fabrik_addon.blender.ui.panels.base import next_in_motion
from fabrik_addon.markers.steps import finish

FRAMES = (1, 12, 24)
WALK = Path(__file__).parents[3] / "sample_rigs" / "walk.trc"


@pytest.fixture
def moving(clean_scene):
    """A person who waves, bows and walks off, and another one, active, to which the motion is retargeted."""
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


def test_a_copy_of_the_source_moves_like_it(moving):
    source, rig = moving
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    for frame in (1, 7, 18, 24):
        own, other = heads(rig, frame), heads(source, frame)
        assert max(np.linalg.norm(own[name] - other[name]) for name in own) < 1e-4
    assert "24 frames of 'Source'" in rig_settings(rig).capture.last_result


@pytest.mark.parametrize("locked", [(True, True, True), (True, False, False)])
def test_a_locked_root_gives_a_warning(moving, locked):
    """Fixed: the person stayed in place, or did so along the locked axes, without a warning."""
    _, rig = moving
    rig.pose.bones["hips"].lock_location = locked
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    doubt = "Bone 'hips' does not follow the motion, because its location is locked: unlock it"
    assert doubt in rig_settings(rig).capture.doubts
    rig.pose.bones["hips"].lock_location = (False, False, False)
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    assert doubt not in rig_settings(rig).capture.doubts


@pytest.mark.parametrize(
    ("turned", "faces_ahead", "doubted"), [(0, True, False), (-90, False, True), (180, True, False)]
)
def test_a_rotated_source_gives_a_warning(moving, turned, faces_ahead, doubted):
    """Fixed: the rig moved in another direction than the source, without a warning."""
    source, rig = moving
    source.rotation_euler.z = np.radians(turned)
    if faces_ahead:
        source.data.transform(Matrix.Rotation(-np.radians(turned), 4, "Z"))
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    doubt = f"The source's object is rotated by {turned}° about Z, which was ignored: rotate the rig's object as well"
    assert (doubt in rig_settings(rig).capture.doubts) == doubted


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda source: setattr(source.data, "pose_position", "REST"), "'Source' is in rest position"),
        (lambda source: setattr(source, "scale", (1.0, 1.0, 1.4)), "'Source' is scaled non-uniformly"),
    ],
    ids=["rest position", "scale"],
)
def test_a_source_that_does_not_show_its_motion_is_refused(moving, change, why):
    """Fixed: the rig stood still, or its limbs followed those of a distorted body, without a warning."""
    source, rig = moving
    change(source)
    bpy.context.view_layer.update()
    with pytest.raises(RuntimeError, match=why):
        bpy.ops.fabrik.retarget(source="Source")
    assert rig.animation_data is None


def test_a_mirrored_rig_is_refused(moving):
    """Fixed: the result was a different motion."""
    _, rig = moving
    rig.scale = (-1.0, 1.0, 1.0)
    bpy.context.view_layer.update()
    with pytest.raises(RuntimeError, match="'Rig' is mirrored by a negative scale: apply its scale first"):
        bpy.ops.fabrik.retarget(source="Source")
    assert rig.animation_data is None


def test_a_marker_with_the_name_of_a_bone_keeps_its_figures(moving):
    """Fixed: it got the errors of the retargeted bone."""
    _, rig = moving
    markers = rig.fabrik.capture.markers
    for bone in rig.pose.bones:
        marker = markers.add()
        marker.name, marker.bone, marker.error, marker.coverage = bone.name, bone.name, 0.25, 75.0
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    assert {(marker.error, marker.coverage) for marker in markers} == {(0.25, 75.0)}


def test_a_retarget_uses_the_range_that_is_set(moving):
    """Fixed: the range could not be set in the sidebar, and the range of an earlier bake was ignored."""
    _, rig = moving
    rig.fabrik.retarget.source = bpy.data.objects["Source"]
    scene = bpy.context.scene
    scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end = True, 5, 9
    bpy.ops.fabrik.retarget()
    assert tuple(rig.animation_data.action.frame_range) == (5.0, 9.0)
    bpy.ops.fabrik.retarget(frame_start=7, frame_end=8)
    assert tuple(rig.animation_data.action.frame_range) == (7.0, 8.0)
    panel = drawn(panels.motion.FABRIK_PT_from_armature)
    assert {"Start", "End", "Action", "Step", "Bones", "Root Motion", "Simplify"} <= set(panel.texts())


def test_the_hint_is_about_the_source_although_the_scene_has_a_recording(moving):
    """Fixed: it asked to match the markers of a recording that another rig follows."""
    source, rig = moving
    make_active(source)
    bpy.ops.fabrik.import_markers(filepath=str(WALK), last=12)
    make_active(rig)
    assert next_in_motion(bpy.context, rig)[0] == "Match the markers to bones"
    rig.fabrik.retarget.source = source
    assert next_in_motion(bpy.context, rig)[0].startswith("Press Retarget")


def test_the_hint_is_about_what_was_retargeted_or_imported_last(moving):
    """Fixed: after a retarget it asked to match the markers of a recording imported before."""
    source, rig = moving
    make_active(rig)
    bpy.ops.fabrik.import_markers(filepath=str(WALK), last=12)
    rig.fabrik.retarget.source = source
    bpy.ops.fabrik.retarget()
    assert next_in_motion(bpy.context, rig) == ("Retargeted: see the report below", "")
    bpy.ops.fabrik.import_markers(filepath=str(WALK), last=12)
    assert next_in_motion(bpy.context, rig)[0] == "Match the markers to bones"


def test_a_rig_with_a_constrained_bone_is_retargeted(moving):
    """Fixed: it failed with an error about a bone."""
    source, rig = moving
    rig.fabrik.retarget.source = source
    copy = rig.pose.bones["shin.L"].constraints.new("COPY_TRANSFORMS")
    copy.target, copy.subtarget = rig, "head"
    assert next_in_motion(bpy.context, rig)[0].startswith("Press Retarget")
    assert bpy.ops.fabrik.retarget() == {"FINISHED"}
    assert "thigh.R" in {curve.data_path.split('"')[1] for curve in curves(rig) if '"' in curve.data_path}


def test_invalid_sources_are_reported_and_nothing_changes(moving):
    _, rig = moving
    for source, said in (("", "no source"), ("Nobody", "No armature or file is named"), ("Rig", "the rig itself")):
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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("motion", ["", "MOTION\nFrames: 0\nFrame Time: 0.03\n"])
def test_a_truncated_file_is_reported_in_one_line(moving, recording, tmp_path, motion):
    """Blender's importer would fail with all of Python's traceback."""
    (tmp_path / "cut.bvh").write_text(recording("bvh/dab.bvh").read_text().partition("MOTION")[0] + motion)
    with pytest.raises(RuntimeError) as refused:
        bpy.ops.fabrik.retarget(source=str(tmp_path / "cut.bvh"))
    assert re.fullmatch(r"Error: cut\.bvh: [^\n]{,100}: export it again", str(refused.value).strip())


def test_a_source_without_a_finite_location_is_reported_with_its_frame(moving):
    source, rig = moving
    curves(source)[0].keyframe_points[1].co.y = np.nan
    with pytest.raises(RuntimeError, match="'Source' has an invalid position on frame 2: fix"):
        bpy.ops.fabrik.retarget(source="Source")
    assert rig.animation_data is None


def test_the_list_of_bones_is_found_saved_loaded_and_used(moving, tmp_path):
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


def test_a_body_without_bone_names_is_recognized_by_its_hierarchy(moving):
    source, rig = moving
    for bone in source.data.bones:
        bone.name = f"part {bone.name[0]}{len(bone.name)}"
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    assert rig.animation_data.action is not None


def test_a_source_without_matching_bones_is_refused(moving):
    _, rig = moving
    snake = make_rig(SNAKE, "Snake")
    for frame in FRAMES:
        snake.pose.bones["link 2"].rotation_quaternion = (1.0, 0.02 * frame, 0.0, 0.0)
        snake.pose.bones["link 2"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.view_layer.objects.active = rig
    with pytest.raises(RuntimeError, match="No bone of 'Snake'"):
        bpy.ops.fabrik.retarget(source="Snake")
    assert rig.animation_data is None


def test_a_source_that_never_moves_is_reported(moving):
    source, rig = moving
    source.animation_data_clear()
    with pytest.raises(RuntimeError, match="'Source' has no animation"):
        bpy.ops.fabrik.retarget(source="Source")
    assert rig.animation_data is None


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [(1, 2, 2.0), (2, 1, 2.0), (2, 1, 0.0)],
    ids=["rig", "source", "source whose people are at one place at rest"],
)
def test_two_bodies_in_one_armature_are_reported_and_nothing_changes(clean_scene, first, second, apart):
    """Both bodies have hips. Only a map can determine which one to use."""
    beside = [
        (f"B:{name}", f"B:{parent}" if parent else "", (head[0] + apart, *head[1:]), (tail[0] + apart, *tail[1:]))
        for name, parent, head, tail in PERSON
    ]
    bodies = {1: list(PERSON), 2: [*PERSON, *beside]}
    source, rig = make_rig(bodies[first], "Source"), make_rig(bodies[second], "Rig")
    for frame in FRAMES:
        source.pose.bones["hips"].location.z = 0.02 * frame
        source.pose.bones["hips"].keyframe_insert("location", frame=frame)
    if not apart:
        source.pose.bones["B:hips"].location.x = 2.0
        source.pose.bones["B:hips"].keyframe_insert("location", frame=FRAMES[-1])
    with pytest.raises(RuntimeError, match=r"Bones 'hips' and 'B:hips' both are hips with legs: map the bones"):
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


def keyed_bones(rig):
    return {curve.data_path.split('"')[1] for curve in curves(rig) if curve.data_path.startswith("pose.bones")}


@pytest.mark.parametrize(
    ("choices", "off"),
    [
        ({"action": "NLA"}, 1e-4),
        ({"action": "CURRENT"}, 1e-4),
        ({"key_angle": np.radians(0.5)}, 0.02),
        ({"root_motion": "OBJECT"}, 1e-4),
        ({"step": 3}, 0.02),
    ],
    ids=lambda choice: "-".join(choice) if isinstance(choice, dict) else "",
)
def test_every_way_of_writing_keys_gives_the_same_motion(moving, choices, off):
    source, rig = moving
    rig.pose.bones["head"].keyframe_insert("scale", frame=5)
    before = rig.animation_data.action
    for name, value in choices.items():
        setattr(rig.fabrik.bake, name, value)
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    for frame in (1, 7, 12, 18):
        own, other = heads(rig, frame), heads(source, frame)
        assert max(np.linalg.norm(own[name] - other[name]) for name in own) < off
    # With strips the rig's former action also becomes a strip, below.
    actions = {"NLA": None, "CURRENT": before}
    assert rig.animation_data.action == actions.get(choices.get("action"), rig.animation_data.action)
    assert len(rig.animation_data.nla_tracks) == (2 if choices.get("action") == "NLA" else 0)
    counts = {len(curve.keyframe_points) for curve in curves(rig) if curve.data_path.startswith("pose.bones")}
    if "key_angle" in choices or "step" in choices:
        assert min(counts) < 24
    if "root_motion" in choices:
        assert rig.location.length > 0.3


@pytest.mark.parametrize("choice", ["ON", "OFF"])
def test_one_setting_plants_the_feet_of_bakes_and_retargets(clean_scene, choice):
    source = walking_human(frames=41)
    bpy.ops.object.mode_set(mode="OBJECT")
    rig = source.copy()
    rig.animation_data_clear()
    rig.data = source.data.copy()
    bpy.context.collection.objects.link(rig)
    make_active(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in rig.data.edit_bones:
        bone.head.z *= 1.2
        bone.tail.z *= 1.2
    bpy.ops.object.mode_set(mode="OBJECT")
    baked = finish(retarget_from(bpy.context, rig, source, (1, 41), RETARGETED, {"plant_feet": choice}))
    assert bool(baked.trees[0].stances) == (choice == "ON")


def test_in_place_the_rig_stays_over_one_point(moving):
    _, rig = moving
    rig.fabrik.bake.root_motion = "IN_PLACE"
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    hips = np.array([heads(rig, frame)["hips"] for frame in FRAMES])
    assert np.ptp(hips[:, :2], axis=0).max() < 1e-5
    assert np.ptp(hips[:, 2]) > 0.1


def test_only_chosen_bones_get_keys(moving):
    _, rig = moving
    bpy.ops.object.mode_set(mode="POSE")
    select(rig, ("spine", "upper_arm.L"))
    rig.fabrik.bake.bones = "SELECTED"
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    assert keyed_bones(rig) == {"spine", "upper_arm.L"}


def test_a_loop_stays_a_loop(moving):
    source, rig = moving
    for curve in curves(source):
        curve.keyframe_points[-1].co[1] = curve.keyframe_points[0].co[1]
        curve.update()
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    first, last = heads(rig, 1), heads(rig, 24)
    assert max(np.linalg.norm(first[name] - last[name]) for name in first) < 1e-4


def test_rotation_errors_due_to_limits_are_reported_in_degrees(moving):
    """The spine bows by 17 degrees at the end, and may not."""
    source, rig = moving
    rig.pose.bones["spine"]["fabrik_limit"] = "FIXED"
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    bpy.context.scene.frame_set(24)
    wanted = np.degrees(source.pose.bones["spine"].matrix_basis.to_quaternion().angle)
    rows = csv.DictReader(io.StringIO(rig_settings(rig).capture.report.as_string()))
    spine = next(row for row in rows if (row["scope"], row["name"]) == ("rotation", "spine"))
    assert float(spine["max_deg"]) == pytest.approx(wanted, abs=0.1)
    assert spine["worst"] == "24"
    assert "Rotations: " in rig_settings(rig).capture.last_result


def test_a_root_bone_with_the_motion_is_mapped_and_rotates_like_the_sources(clean_scene):
    """As in Unreal and in some of Mixamo's files."""
    rooted = [
        ("root", "", (0, 0, 0), (0, -0.3, 0)),
        *((name, parent or "root", *ends) for name, parent, *ends in PERSON),
    ]
    source, rig = make_rig(rooted, "Source"), make_rig(rooted, "Rig")
    for frame in FRAMES:
        root = source.pose.bones["root"]
        root.location, root.rotation_quaternion = (0.0, 0.02 * frame, 0.01 * frame), (1.0, 0.0, 0.0, 0.02 * frame)
        for channel in ("location", "rotation_quaternion"):
            root.keyframe_insert(channel, frame=frame)
        source.pose.bones["spine"].rotation_quaternion = (1.0, 0.01 * frame, 0.0, 0.0)
        source.pose.bones["spine"].keyframe_insert("rotation_quaternion", frame=frame)
    assert bpy.ops.fabrik.retarget(source="Source") == {"FINISHED"}
    for frame in (1, 7, 24):
        own, other = heads(rig, frame), heads(source, frame)
        assert max(np.linalg.norm(own[name] - other[name]) for name in own) < 1e-4
        turns = [thing.pose.bones["root"].matrix.to_quaternion() for thing in (rig, source)]
        assert np.degrees(turns[0].rotation_difference(turns[1]).angle) < 0.05
