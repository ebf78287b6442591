"""Motion in files that Blender itself has written, by the operator and on the command line."""

import csv
import re

import addon_utils
import bpy
import numpy as np
import pytest
from support.scenes import SNAKE, make_active, make_rig, pose, smooth_motion

from fabrik_addon.blender.command_line import run_command
from fabrik_addon.blender.retarget import add_recorded, imported, is_file
from fabrik_addon.blender.rig.keyframes import curves
from fabrik_addon.blender.settings.rig import rig_settings
from fabrik_addon.markers.files import ARMATURE_SUFFIXES, SUFFIXES
from fabrik_addon.retarget.files import read_recorded

FRAMES = 12
# The exporter's add-on, and its operator.
EXPORTERS = {
    "bvh": ("io_anim_bvh", lambda path: bpy.ops.export_anim.bvh(filepath=path, frame_start=1, frame_end=FRAMES)),
    "fbx": ("io_scene_fbx", lambda path: bpy.ops.export_scene.fbx(filepath=path, use_selection=True)),
    "glb": ("io_scene_gltf2", lambda path: bpy.ops.export_scene.gltf(filepath=path, use_selection=True)),
    "usdc": (
        None,
        lambda path: bpy.ops.wm.usd_export(filepath=path, selected_objects_only=True, export_animation=True),
    ),
}


def heads(thing, names, frame):
    bpy.context.scene.frame_set(frame)
    return np.array([thing.matrix_world @ thing.pose.bones[name].head for name in names])


@pytest.fixture
def exported(clean_scene, tmp_path):
    """Write a moving person to a file of some format; returns its path and (F, N, 3) positions of the bones."""
    source = make_rig(name="Source")
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, FRAMES
    for frame, (turns, move) in enumerate(zip(*smooth_motion(source, FRAMES, travel=0.5), strict=True), 1):
        # Files without a skin have the current pose as their rest pose.
        pose(source, turns if frame > 1 else np.tile([1.0, 0.0, 0.0, 0.0], (len(turns), 1)), move)
        for bone in source.pose.bones:
            bone.keyframe_insert("rotation_quaternion", frame=frame)
        source.pose.bones["hips"].keyframe_insert("location", frame=frame)
    names = source.data.bones.keys()
    places = np.array([heads(source, names, frame) for frame in range(1, FRAMES + 1)])

    def export(kind):
        make_active(source)
        bpy.context.scene.frame_set(1)
        addon, write = EXPORTERS[kind]
        if addon:
            addon_utils.enable(addon)
        path = tmp_path / f"walk.{kind}"
        write(str(path))
        return path, places

    return export


@pytest.mark.parametrize(
    "kind",
    [
        "bvh",
        "fbx",
        "glb",
        pytest.param("usdc", marks=pytest.mark.skipif(not bpy.app.build_options.usd, reason="built without USD")),
    ],
)
def test_a_file_is_retargeted_in_pose_mode_and_leaves_no_data_behind(exported, kind):
    path, places = exported(kind)
    rig = make_rig(name="Rig")
    bpy.data.objects.remove(bpy.data.objects["Source"])
    bpy.ops.object.mode_set(mode="POSE")
    before = {thing.name_full for thing in bpy.data.user_map() if thing.id_type not in {"ACTION", "TEXT"}}
    assert bpy.ops.fabrik.retarget(source=str(path)) == {"FINISHED"}
    assert f"{FRAMES} frames of 'walk'" in rig_settings(rig).capture.last_result
    assert {thing.name_full for thing in bpy.data.user_map() if thing.id_type not in {"ACTION", "TEXT"}} == before
    assert [thing.mode for thing in (bpy.context.object, rig)] == ["POSE", "POSE"]
    first = round(rig.animation_data.action.frame_range[0])
    for row in (0, 5, FRAMES - 1):
        found = heads(rig, rig.data.bones.keys(), first + row)
        assert np.abs((found - found[0]) - (places[row] - places[row][0])).max() < 2e-3
        assert np.abs(found[0, :2] - places[row][0, :2]).max() < 2e-3


def test_files_of_several_formats_are_retargeted_at_once(exported, tmp_path, capsys):
    motions = [exported(kind)[0] for kind in ("fbx", "glb")]
    motions[1] = motions[1].rename(tmp_path / "run.glb")
    bpy.data.objects.remove(bpy.data.objects["Source"])
    make_rig(name="Rig")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    (tmp_path / "out").mkdir()
    out = ["--output", str(tmp_path / "out"), "--report", str(tmp_path / "out")]
    assert run_command([str(tmp_path / "rig.blend"), *map(str, motions), *out], "retarget") == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "run.blend",
        "run.csv",
        "walk.blend",
        "walk.csv",
    ]
    assert capsys.readouterr().out.count("12 frames of ") == 2
    with (tmp_path / "out" / "run.csv").open(encoding="utf-8") as file:
        assert {row["name"] for row in csv.DictReader(file) if row["scope"] == "rotation"} == {
            *bpy.data.objects["Rig"].data.bones.keys()
        }


def test_a_bvh_file_of_another_encoding_or_with_commas_gives_the_same_keys(exported, tmp_path):
    path, _ = exported("bvh")
    bpy.data.objects.remove(bpy.data.objects["Source"])
    text, found = path.read_text(), []
    spoilt = text.replace(".", ",").replace("Frame Time: ", "Frame Time: -")
    contents = ((text.encode(), 0.0), (text.encode("utf-16"), 0.0), (spoilt.encode(), 24.0))
    for number, (content, rate) in enumerate(contents):
        file = tmp_path / f"walk{number}.bvh"
        file.write_bytes(content)
        source = add_recorded(bpy.context, read_recorded(file, rate=rate or None), file.stem)
        found.append([[tuple(point.co) for point in curve.keyframe_points] for curve in curves(source)])
    assert len(found[0]) > 3
    assert found[0] == found[1] == found[2]
    assert bpy.context.scene.render.fps / bpy.context.scene.render.fps_base == pytest.approx(24.0)


def test_a_bvh_file_in_radians_gives_the_same_keys_and_a_note(exported, tmp_path, capsys):
    path, _ = exported("bvh")
    bpy.data.objects.remove(bpy.data.objects["Source"])
    body = read_recorded(path)
    assert body.notes == ()
    wanted = body.motion("walk")
    head, time, motion = re.split("(Frame Time:.*\n)", path.read_text())
    is_angle = [name.endswith("rotation") for line in re.findall(r"CHANNELS \d (.*)", head) for name in line.split()]
    rows = np.array([line.split() for line in motion.splitlines()], dtype=float)
    # The first pose is the rest pose. The person moves by half a meter.
    rows[:, is_angle] = np.radians(rows[:, is_angle])
    path.write_text(head + time + "\n".join(" ".join(map(str, row)) for row in rows.tolist()) + "\n")
    found = read_recorded(path).motion("walk")
    np.testing.assert_allclose(found.rotations, wanted.rotations, atol=1e-6)
    np.testing.assert_allclose(found.heads, wanted.heads, atol=1e-6)
    make_rig(name="Rig")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    assert (
        run_command([str(tmp_path / "rig.blend"), str(path), "--output", str(tmp_path / "out.blend")], "retarget") == 0
    )
    assert "Note: its rotations are in radians; converted them to degrees\n" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["fbx", "glb"])
def test_a_second_person_in_a_file_gives_a_warning(exported, tmp_path, kind):
    """Fixed: the file of two people was retargeted from one of them, and nothing named the other."""
    exported(kind)
    source = bpy.data.objects["Source"]
    other = source.copy()
    other.name, other.data, other.location.x = "Zoe", source.data.copy(), 1.0
    other.animation_data.action = source.animation_data.action.copy()
    bpy.context.collection.objects.link(other)
    source.select_set(True)
    other.select_set(True)
    path = tmp_path / f"two.{kind}"
    EXPORTERS[kind][1](str(path))
    for thing in (source, other):
        bpy.data.objects.remove(thing)
    with imported(bpy.context, path) as (_, doubts):
        assert doubts == ("Used only 'Source', not Zoe: export each person to a file of its own",)


def test_a_bvh_joint_with_one_rotation_channel_is_imported(exported):
    path, _ = exported("bvh")
    bpy.data.objects.remove(bpy.data.objects["Source"])
    head, time, motion = re.split("(Frame Time:.*\n)", path.read_text())
    first, channels, rest = head.rpartition("CHANNELS 3 Xrotation Yrotation Zrotation")
    assert channels
    last = re.findall(r"CHANNELS \d", rest)
    rows = [line.split() for line in motion.splitlines()]
    assert not last, "the joint is the last one"
    text = "\n".join(" ".join([*row[:-3], "30.0"]) for row in rows)
    path.write_text(f"{first}CHANNELS 1 Zrotation{rest}{time}{text}\n")
    source = add_recorded(bpy.context, read_recorded(path), path.stem)
    bone = source.pose.bones[-1]
    bpy.context.scene.frame_set(2)
    assert np.degrees(bone.matrix_basis.to_quaternion().angle) == pytest.approx(30.0, abs=1e-3)


def test_a_bvh_file_of_one_pose_keeps_the_rate_of_the_scene(exported, tmp_path):
    path, _ = exported("bvh")
    bpy.context.scene.render.fps = 50
    head, _, motion = path.read_text().partition("Frame Time: ")
    file = tmp_path / "pose.bvh"
    file.write_text(f"{head}Frame Time: 0\n{motion.splitlines()[1]}\n")
    source = add_recorded(bpy.context, read_recorded(file), file.stem)
    assert {len(curve.keyframe_points) for curve in curves(source)} == {1}
    assert (bpy.context.scene.render.fps, bpy.context.scene.render.fps_base) == (50, 1.0)


def test_a_refused_file_changes_neither_scene_nor_rate(exported):
    """A person's motion, at another rate than the scene's, is retargeted to a snake."""
    path, _ = exported("bvh")
    bpy.context.scene.render.fps = 60
    bpy.data.objects.remove(bpy.data.objects["Source"])
    rig, scene = make_rig(SNAKE, "Rig"), bpy.context.scene
    before = {thing.name_full for thing in bpy.data.user_map()}, scene.render.fps, scene.render.fps_base
    with pytest.raises(RuntimeError, match="map the"):
        bpy.ops.fabrik.retarget(source=str(path))
    assert ({thing.name_full for thing in bpy.data.user_map()}, scene.render.fps, scene.render.fps_base) == before
    assert rig.animation_data is None


def test_a_bake_sends_results_that_can_be_read_locally():
    assert all(is_file(f"walk{suffix}") for suffix in ARMATURE_SUFFIXES)
    assert not any(is_file(f"walk{suffix}") for suffix in SUFFIXES if suffix != ".npz"), "an .npz may hold either"
