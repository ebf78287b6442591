"""The sample files: the contents of the committed rigs, and that the recording is that of the original walk."""

import json
import struct
from collections import Counter
from pathlib import Path

import bpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mathutils import Matrix, Quaternion, Vector

from fabrik_addon.markers.clip import to_z_up
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.markers.mapping.marker_map import check_map, read_map
from sample_rigs import build, contact_sheet
from sample_rigs.recipe import markers, skin, trunk, walk
from sample_rigs.recipe.bones import other_side
from sample_rigs.recipe.human import STATURE, human_bones
from sample_rigs.recipe.paper_models import PAPER_MODELS

pytestmark = pytest.mark.one_blender

FOLDER = Path(__file__).parents[2] / "sample_rigs"
RECIPES = {**PAPER_MODELS, "human": human_bones}
SIGMA = markers.NOISE
STEPS = 13  # times at which Blender is asked


@pytest.fixture(autouse=True)
def _empty_afterwards():
    yield
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)


def opened(name):
    """The rig of a sample file, opened."""
    bpy.ops.wm.open_mainfile(filepath=str(FOLDER / f"{name}.blend"), load_ui=False)
    return bpy.data.objects["Rig"]


def joints(rig):
    """The positions of all heads and tails, without duplicates."""
    ends = [tuple(round(value, 5) for value in end) for b in rig.data.bones for end in (b.head_local, b.tail_local)]
    return set(ends)


def along(bone):
    """The vector from head to tail at rest, armature space."""
    return bone.tail_local - bone.head_local


def effectors(rig):
    return [bone for bone in rig.data.bones if not bone.children]


# --- the rigs


@pytest.mark.parametrize("name", RECIPES)
def test_a_rig_is_small_and_holds_nothing_but_itself(name):
    rig = opened(name)
    assert (FOLDER / f"{name}.blend").stat().st_size < 300_000
    assert {item.type for item in bpy.data.objects} <= {"ARMATURE", "MESH"}
    assert len(bpy.data.armatures) == 1
    assert rig.matrix_world == Matrix()
    assert len([bone for bone in rig.data.bones if bone.parent is None]) == 1
    assert all(pose_bone.matrix_basis == Matrix() for pose_bone in rig.pose.bones)


@pytest.mark.parametrize("name", RECIPES)
def test_rigs_agree_with_their_recipes(name):
    rig = opened(name)
    assert [bone.name for bone in RECIPES[name]()] == [bone.name for bone in rig.data.bones] or name == "human"
    for bone in RECIPES[name]():
        there = rig.data.bones[bone.name]
        assert (there.parent.name if there.parent else "") == bone.parent
        np.testing.assert_allclose(there.head_local, bone.head, atol=1e-6)
        np.testing.assert_allclose(there.tail_local, bone.tail, atol=1e-6)
        np.testing.assert_allclose(there.matrix_local.to_3x3(), bone.rotation, atol=1e-5)


def test_the_first_pose_is_live_and_its_target_ready_to_be_pulled():
    rig = opened("first_pose")
    target = bpy.context.view_layer.objects.active
    pins = [each.bone for each in rig.fabrik.effectors if each.kind == "PIN"]
    assert (target.name, pins) == ("hand.L target", ["foot.L", "foot.R"])
    assert rig.fabrik.live
    assert [thing for thing in bpy.data.objects if thing.select_get()] == [target]
    assert (FOLDER / "first_pose.blend").stat().st_size < 300_000
    for way in ((0.0, 0.0, 0.0), (0.05, -0.1, -0.3)):
        target.location += Vector(way)
        bpy.context.view_layer.update()
        assert (rig.pose.bones["hand.L"].tail - target.location).length < 1e-3
        assert (rig.pose.bones["foot.R"].head - rig.data.bones["foot.R"].head_local).length < 1e-3


def test_the_first_pose_shows_its_steps_beside_the_person():
    bpy.ops.wm.open_mainfile(filepath=str(FOLDER / "first_pose.blend"), load_ui=True)
    (editor,) = (area.spaces.active for area in bpy.context.window.screen.areas if area.type == "TEXT_EDITOR")
    assert editor.text.as_string() == build.STEPS
    assert editor.show_word_wrap
    assert editor.text.name == "Steps.txt"


@pytest.mark.parametrize("name", ["human", "first_pose"])
def test_the_view_shows_the_whole_person(name):
    """In every layout, the person is about half as tall as the viewport's longer side."""
    bpy.ops.wm.open_mainfile(filepath=str(FOLDER / f"{name}.blend"), load_ui=True)
    views = [area.spaces.active for screen in bpy.data.screens for area in screen.areas if area.type == "VIEW_3D"]
    assert views
    for space in views:
        to_view = space.region_3d.view_rotation.inverted().to_matrix()
        place = [to_view @ (Vector((0.0, 0.0, z)) - space.region_3d.view_location) for z in (0.0, 1.75)]
        # Blender's sensor is 36 mm wide and twice that in a viewport; the higher of its sides counts.
        seen = [36.0 * 2 / space.lens / 2 * (space.region_3d.view_distance - each.z) for each in place]
        heights = [each.y / half for each, half in zip(place, seen, strict=True)]
        assert 0.4 < (heights[1] - heights[0]) / 2 < 0.55


@pytest.mark.parametrize(
    ("name", "joint_count", "effector_count"), [("chain", 10, 1), ("y", 10, 2), ("hand", 26, 5), ("humanoid", 13, 5)]
)
def test_the_papers_models_have_its_joints_and_effectors(name, joint_count, effector_count):
    rig = opened(name)
    assert len(joints(rig)) == joint_count
    assert len(effectors(rig)) == effector_count


def test_the_chain_is_900_mm_of_equal_straight_links():
    lengths = [bone.length for bone in opened("chain").data.bones]
    np.testing.assert_allclose(lengths, 0.1, atol=1e-6)
    bones = bpy.data.armatures[0].bones
    assert (bones[-1].tail_local - bones[0].head_local).length == pytest.approx(0.9, abs=1e-6)


def test_a_finger_has_five_joints_and_the_hand_is_as_long_as_a_hand():
    rig = opened("hand")
    assert {len(tip.parent_recursive) for tip in effectors(rig)} == {4}
    assert 0.17 < max(bone.tail_local.y for bone in rig.data.bones) < 0.21


# --- the person


def test_the_person_has_22_bones_and_is_175_cm_tall():
    rig = opened("human")
    assert len(rig.data.bones) == 22
    heights = [vertex.co.z for vertex in bpy.data.objects["Human"].data.vertices]
    assert min(heights) == pytest.approx(0.0, abs=0.002)
    assert max(heights) == pytest.approx(STATURE, abs=0.01)


def test_bones_and_rolls_mirror_as_symmetrize_would_make_them():
    rig = opened("human")
    rest = {bone.name: np.array(bone.matrix_local) for bone in rig.data.bones}
    reflect = np.diag([-1.0, 1.0, 1.0, 1.0])
    for name, matrix in rest.items():
        mirrored = reflect @ matrix @ np.diag([-1.0, 1.0, 1.0, 1.0])
        np.testing.assert_allclose(rest[other_side(name)], mirrored, atol=1e-5, err_msg=name)


def test_symmetrize_itself_changes_nothing():
    rig = opened("human")
    before = {bone.name: np.array(bone.matrix_local) for bone in rig.data.bones}
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in rig.data.edit_bones:
        bone.select = bone.select_head = bone.select_tail = bone.name.endswith(".L")
    bpy.ops.armature.symmetrize()
    bpy.ops.object.mode_set(mode="OBJECT")
    assert set(before) == {bone.name for bone in rig.data.bones}
    for bone in rig.data.bones:
        np.testing.assert_allclose(bone.matrix_local, before[bone.name], atol=1e-5, err_msg=bone.name)


def test_the_arms_hang_40_degrees_and_the_left_side_is_at_plus_x():
    rig = opened("human")
    arm = along(rig.data.bones["upper_arm.L"])
    assert np.degrees(np.arctan2(-arm.z, arm.x)) == pytest.approx(40.0, abs=1.0)


@pytest.mark.parametrize("side", ["L", "R"])
@pytest.mark.parametrize(("upper", "lower", "toward"), [("upper_arm", "forearm", -1.0), ("thigh", "shin", 1.0)])
def test_elbows_and_knees_bend_about_x_the_way_they_do_in_life(side, upper, lower, toward):
    rig = opened("human")
    first, second = rig.data.bones[f"{upper}.{side}"], rig.data.bones[f"{lower}.{side}"]
    hinges = [bone.matrix_local.to_3x3().col[0] for bone in (first, second)]
    assert hinges[0].dot(hinges[1]) == pytest.approx(1.0, abs=1e-6)
    assert np.degrees(along(first).angle(along(second))) == pytest.approx(5.0, abs=0.1)
    straight_on = first.head_local + along(first).normalized() * (first.length + second.length)
    assert (second.tail_local - straight_on).y * toward > 0.0
    rig.pose.bones[second.name].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), np.radians(80.0))
    bpy.context.view_layer.update()
    moved = rig.pose.bones[second.name].tail - second.tail_local
    assert moved.y * toward > 0.5 * second.length


def test_the_mesh_is_closed_and_mirrors_itself():
    opened("human")
    mesh = bpy.data.objects["Human"].data
    faces_of_edge = Counter(key for polygon in mesh.polygons for key in polygon.edge_keys)
    assert set(faces_of_edge.values()) == {2}
    points = np.array([vertex.co for vertex in mesh.vertices])
    order, mirror_order = (np.lexsort(np.round(p, 4).T) for p in (points, points * (-1.0, 1.0, 1.0)))
    np.testing.assert_allclose(points[order], (points * (-1.0, 1.0, 1.0))[mirror_order], atol=1e-5)


def test_the_mesh_faces_outward_and_the_person_minus_y():
    opened("human")
    mesh = bpy.data.objects["Human"].data
    corners = np.array([[mesh.vertices[i].co for i in polygon.vertices] for polygon in mesh.polygons])
    a, b, c, d = corners.swapaxes(0, 1)
    litres = 1000.0 / 6.0 * np.sum(a * (np.cross(b, c) + np.cross(c, d)))
    assert 55.0 < litres < 85.0
    head = np.array([vertex.co for vertex in mesh.vertices if vertex.co.z > 1.6])
    nose = head[np.argmin(head[:, 1])]
    assert abs(nose[0]) < 0.01
    assert 1.60 < nose[2] < 1.66


def test_weights_add_up_to_one_with_at_most_four_bones_a_vertex():
    rig = opened("human")
    person = bpy.data.objects["Human"]
    assert [group.name for group in person.vertex_groups] == [bone.name for bone in human_bones()]
    assert person.modifiers["Armature"].object == rig
    for vertex in person.data.vertices:
        weights = [element.weight for element in vertex.groups]
        assert sum(weights) == pytest.approx(1.0, abs=1e-6)
        assert 1 <= len(weights) <= 4
    assert {element.group for vertex in person.data.vertices for element in vertex.groups} == set(range(22))


def test_the_skin_follows_a_bone_rigidly_far_from_its_joints():
    rig = opened("human")
    person = bpy.data.objects["Human"]
    number = person.vertex_groups["hand.L"].index
    all_hand = [v.index for v in person.data.vertices if [(e.group, e.weight) for e in v.groups] == [(number, 1.0)]]
    assert len(all_hand) > 20
    rig.pose.bones["upper_arm.L"].rotation_quaternion = Quaternion((0.3, 0.5, -0.2, 0.7)).normalized()
    rig.pose.bones["forearm.L"].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), 1.2)
    bpy.context.view_layer.update()
    hand = rig.pose.bones["hand.L"]
    carry = hand.matrix @ hand.bone.matrix_local.inverted()
    moved = person.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.vertices
    for index in all_hand:
        np.testing.assert_allclose(moved[index].co, carry @ person.data.vertices[index].co, atol=1e-5)


def test_the_skins_recipe_makes_the_same_mesh_each_time():
    opened("human")
    there = np.array([vertex.co for vertex in bpy.data.objects["Human"].data.vertices])
    np.testing.assert_allclose(skin.build_skin().points, there, atol=1e-4)


# --- the walk


@pytest.fixture(scope="module")
def clip():
    return to_z_up(read_markers(FOLDER / "walk.trc"))


@pytest.fixture(scope="module")
def motion():
    return walk.walk_motion(markers.recording_times())


def pose_in_blender(rig, time):
    rotations, root = walk.walk_pose(time)
    for name, rotation in rotations.items():
        rig.pose.bones[name].rotation_quaternion = rotation
    rest = rig.data.bones["hips"].matrix_local
    rig.pose.bones["hips"].location = rest.to_3x3().transposed() @ (Vector(root) - rest.translation)
    bpy.context.view_layer.update()


def test_the_recording_and_its_map_are_reproduced_exactly():
    for _ in range(2):
        markers.markers.cache_clear()
        assert markers.trc_text(markers.recording(), "walk.trc") == (FOLDER / "walk.trc").read_text(encoding="ascii")
        assert markers.map_text() == (FOLDER / "walk_map.json").read_text(encoding="ascii")


def test_the_map_fits_recording_and_rig(clip):
    rig = opened("human")
    entries = read_map(FOLDER / "walk_map.json")
    check_map(entries, clip.names, [bone.name for bone in rig.data.bones])
    assert {entry.marker for entry in entries} == set(clip.names)
    assert len(entries) == 42


def test_the_recording_lasts_four_seconds_at_100_hz_and_goes_1_3_metres_a_second_along_minus_y(clip):
    assert clip.rate == 100.0
    assert clip.positions.shape == (401, 42, 3)
    sacrum = np.nanmean(clip.positions[:, [clip.names.index("LPSI"), clip.names.index("RPSI")]], axis=1)
    way = (sacrum[-1] - sacrum[0]) / 4.0
    np.testing.assert_allclose(way, [0.0, -1.3, 0.0], atol=0.02)


def test_markers_are_where_blender_carries_them_but_for_the_noise(clip):
    rig = opened("human")
    entries = read_map(FOLDER / "walk_map.json")
    errors = []
    for frame in np.linspace(0, 400, STEPS).round().astype(int):
        pose_in_blender(rig, frame / clip.rate)
        for entry in entries:
            place = rig.pose.bones[entry.bone].matrix @ Vector(entry.offset)
            errors.append(clip.positions[frame, clip.names.index(entry.marker)] - np.array(place))
    errors = np.array(errors)
    seen = errors[~np.isnan(errors[:, 0])]
    assert len(seen) > 0.9 * len(errors)
    assert np.abs(seen).max() < 6.0 * SIGMA
    assert seen.std() == pytest.approx(SIGMA, rel=0.1)
    np.testing.assert_allclose(seen.mean(axis=0), 0.0, atol=5.0 * SIGMA / np.sqrt(len(seen)))


def test_three_in_a_hundred_samples_are_missing_and_two_places_are_hidden_for_long(clip):
    missing = np.isnan(clip.positions[..., 0])
    assert missing.mean() == pytest.approx(0.03, abs=0.003)
    assert missing[120:170, clip.names.index("LTHI")].all()
    assert missing[210:240, [clip.names.index("RWRA"), clip.names.index("RWRB")]].all()
    assert not missing.all(axis=0).any()
    assert missing.sum(axis=1).max() < 8


def test_markers_lie_on_the_skin():
    opened("human")
    person = bpy.data.objects["Human"]
    for marker in markers.markers():
        bone = bpy.data.objects["Rig"].data.bones[marker.bone]
        at_rest = bone.matrix_local @ Vector(marker.offset)
        found, nearest, _normal, _face = person.closest_point_on_mesh(at_rest)
        assert found
        assert 0.004 < (at_rest - nearest).length < 0.010, marker.name


SOLE = {"heel": ("foot", (0.088, 0.050, 0.0)), "ball": ("toe", (0.098, -0.118, 0.0)), "tip": ("toe", (0.1, -0.19, 0.0))}


def sole_path(motion, part, side):
    """(F, 3) the path of a point of the sole."""
    bone_name, (x, y, z) = SOLE[part]
    bone = walk.bones()[f"{bone_name}.{side}"]
    at_rest = np.array([x if side == "L" else -x, y, z])
    return motion.point(bone.name, bone.rotation.T @ (at_rest - bone.head))


@pytest.mark.parametrize("side", ["L", "R"])
@pytest.mark.parametrize("part", SOLE)
def test_planted_feet_stay_on_the_ground(motion, part, side):
    path = sole_path(motion, part, side)
    assert path[:, 2].min() > -0.008
    down = path[:, 2] < 0.0005
    edges = np.flatnonzero(np.diff(np.concatenate([[0], down.astype(int), [0]])))
    spans = edges.reshape(-1, 2)
    assert len(spans) >= 3
    assert max(last - first for first, last in spans) > 15  # frames of 10 ms
    for first, last in spans:
        stand = path[first:last, :2]
        assert np.linalg.norm(stand - stand[0], axis=1).max() < 0.005


def test_one_foot_at_least_is_always_on_the_ground(motion):
    heights = [sole_path(motion, part, side)[:, 2] for part in SOLE for side in "LR"]
    assert np.min(heights, axis=0).max() < 0.003


@pytest.mark.parametrize("side", ["L", "R"])
def test_knees_bend_as_in_walking_and_never_backward(motion, side):
    thigh, shin = (
        motion.turns[f"{name}.{side}"] @ walk.bones()[f"{name}.{side}"].rotation[:, 1] for name in ("thigh", "shin")
    )
    hinge = motion.turns[f"thigh.{side}"] @ walk.bones()[f"thigh.{side}"].rotation[:, 0]
    bend = np.degrees(np.arctan2(np.sum(np.cross(thigh, shin) * hinge, axis=1), np.sum(thigh * shin, axis=1)))
    assert bend.min() > 4.0
    assert 45.0 < bend.max() < 70.0


@pytest.mark.parametrize("side", ["L", "R"])
def test_knees_and_elbows_rotate_about_their_hinge_alone(side):
    rotations, _root = walk.walk_poses(markers.recording_times())
    for bone in ("shin", "forearm"):
        np.testing.assert_allclose(rotations[f"{bone}.{side}"][:, 2:], 0.0, atol=1e-9)


def test_an_arm_is_in_front_when_the_leg_of_its_side_is_behind(motion):
    for side in "LR":
        hand, foot = (motion.heads[f"{name}.{side}"][:, 1] - motion.heads["hips"][:, 1] for name in ("hand", "foot"))
        assert np.corrcoef(hand, foot)[0, 1] < -0.8


@settings(max_examples=25)
@given(st.floats(0.0, 3.0))
def test_half_a_cycle_later_the_other_side_does_the_same(time):
    now, _root = walk.walk_pose(time)
    later, _root = walk.walk_pose(time + trunk.CYCLE / 2.0)
    for name, (w, x, y, z) in now.items():
        mirrored = np.array([w, x, -y, -z])
        assert abs(mirrored @ later[other_side(name)]) == pytest.approx(1.0, abs=1e-9), name


def test_nothing_jumps():
    times = np.arange(0.0, 4.0, 0.01)
    rotations, root = walk.walk_poses(times)
    for name, q in rotations.items():
        turned = 2.0 * np.arccos(np.clip(np.sum(q[1:] * q[:-1], axis=1), -1.0, 1.0))
        assert np.degrees(turned).max() < 7.0, name  # in a hundredth of a second
    assert np.linalg.norm(np.diff(root, axis=0), axis=1).max() < 0.02


def test_the_skin_touches_the_floor_all_along_the_walk():
    rig = opened("human")
    person = bpy.data.objects["Human"]
    for time in np.linspace(0.0, trunk.CYCLE, STEPS):
        pose_in_blender(rig, time)
        moved = person.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
        lowest = min(vertex.co.z for vertex in moved.vertices)
        assert -0.015 < lowest < 0.010


# --- the contact sheet


def test_the_contact_sheet_does_not_change_the_blend_file(tmp_path):
    rig = opened("human")
    for frame in (1, 50):
        pose_in_blender(rig, frame / 100.0)
        rig.pose.bones["thigh.L"].keyframe_insert("rotation_quaternion", frame=frame)
    blend, picture = tmp_path / "posed.blend", tmp_path / "new" / "sheet.png"
    bpy.ops.wm.save_as_mainfile(filepath=str(blend))
    before = blend.read_bytes()
    options = ["--columns", "2", "--rows", "1", "--size", "64x72", "--samples", "1", "--title", "Walk", "--targets"]
    assert contact_sheet.main([str(blend), str(picture), *options]) == 0
    assert blend.read_bytes() == before
    content = picture.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (128, 72 + 24)


def test_the_contact_sheet_draws_a_rig_without_a_mesh(tmp_path):
    picture = tmp_path / "y.png"
    options = ["--columns", "1", "--rows", "1", "--size", "96x96", "--samples", "2"]
    assert contact_sheet.main([str(FOLDER / "y.blend"), str(picture), *options]) == 0
    red, _green, blue, _alpha = np.array(bpy.data.images.load(str(picture)).pixels[:]).reshape(-1, 4).T
    assert 20 < np.count_nonzero(red > blue + 0.05) < 2000  # clay on a bluish floor


@pytest.mark.parametrize(
    ("blend", "arguments", "words"),
    [
        ("missing.blend", [], "there is no file"),
        ("walk_map.json", [], "no .blend file"),
    ],
)
def test_an_empty_contact_sheet_is_reported_in_one_line(tmp_path, capsys, blend, arguments, words):
    picture = tmp_path / "sheet.png"
    assert contact_sheet.main([str(FOLDER / blend), str(picture), *arguments]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert words in lines[0]
    assert not picture.exists()


def test_the_map_is_plain_json_with_offsets_of_a_tenth_of_a_millimeter():
    content = json.loads((FOLDER / "walk_map.json").read_text(encoding="ascii"))
    assert content["fabrik_marker_map"] == 1
    for entry in content["markers"].values():
        assert all(round(value, 4) == value for value in entry["offset"])
