"""Files of poses as armatures: the positions of the bones in Blender, dropped files, keys, and the command line."""

import bpy
import numpy as np
import pytest
from support.keypoints import array, csv_text, y_up
from support.poses import UPRIGHT, bvh_text, mvnx_text
from support.scenes import make_active, make_rig

from fabrik_addon.blender.command_line import run_command
from fabrik_addon.blender.retarget import add_recorded
from fabrik_addon.blender.rig.keyframes import curves, keys
from fabrik_addon.blender.settings.rig import rig_settings
from fabrik_addon.blender.ui.entries import FABRIK_FH_markers
from fabrik_addon.retarget.files import read_recorded

FRAMES = 8


def smpl_poses(joints=52):
    """(F, J, 3) a person who bends arms and legs, upright as in AMASS, and (F, 3) the person's path."""
    phase = np.linspace(0.0, 1.0, FRAMES)[:, None]
    poses = np.zeros((FRAMES, joints, 3))
    poses[:, 0] = UPRIGHT
    poses[:, 16], poses[:, 17] = phase * [0.0, 0.3, -1.2], phase * [0.0, -0.3, 1.2]
    poses[:, 18] = phase * [0.0, -1.5, 0.0]
    poses[:, 1], poses[:, 4] = phase * [-0.6, 0.0, 0.0], phase * [0.8, 0.0, 0.0]
    return poses, phase * [0.1, -0.5, 0.0] + [0.2, 0.3, 0.92]


@pytest.fixture
def files(tmp_path):
    """Paths of files of poses, by their suffix."""
    poses, trans = smpl_poses()
    np.savez(tmp_path / "walk.npz", poses=poses.reshape(FRAMES, -1), trans=trans, mocap_frame_rate=60.0)
    rng = np.random.default_rng(4)
    orientations = rng.normal(scale=0.15, size=(FRAMES, 23, 4)) * np.linspace(0.0, 1.0, FRAMES)[:, None, None]
    orientations += [1.0, 0.0, 0.0, 0.0]
    orientations /= np.linalg.norm(orientations, axis=2, keepdims=True)
    pelvis = np.linspace(0.0, 0.4, FRAMES)[:, None] * [1.0, 0.2, 0.0] + [0.0, 0.0, 0.92]
    (tmp_path / "run.mvnx").write_text(mvnx_text(orientations, pelvis), encoding="utf-8")
    phase = np.linspace(0.0, 1.0, FRAMES)[:, None]
    turns = {"LeftUpperArm": phase * [-60, 0, 0], "RightUpperArm": phase * [60, 0, 0]}
    turns |= {"LeftUpperLeg": phase * [0, -40, 0], "LeftLowerLeg": phase * [0, 50, 0]}
    turns["LeftForeArm"] = phase * [0, 0, 50]
    (tmp_path / "step.bvh").write_text(bvh_text(turns, pelvis), encoding="utf-8")
    return {"npz": tmp_path / "walk.npz", "mvnx": tmp_path / "run.mvnx", "bvh": tmp_path / "step.bvh"}


def heads(thing, names, frame):
    bpy.context.scene.frame_set(int(np.floor(frame)), subframe=float(frame % 1.0))
    return np.array([thing.matrix_world @ thing.pose.bones[name].head for name in names])


def ways_of(thing, names, frame):
    """(N, 3) unit vectors from the head of each bone to its tail."""
    bpy.context.scene.frame_set(frame)
    ways = np.array([thing.pose.bones[name].vector for name in names])
    return ways / np.linalg.norm(ways, axis=1, keepdims=True)


def blocks():
    return {thing.name_full for thing in bpy.data.user_map() if thing.id_type not in {"TEXT", "WINDOWMANAGER"}}


@pytest.mark.parametrize(("kind", "rate"), [("npz", 60), ("mvnx", 240)])
def test_bones_are_where_the_file_has_them(clean_scene, files, kind, rate):
    body = read_recorded(files[kind])
    bpy.context.scene.frame_end = 3
    armature = add_recorded(bpy.context, body, "walk")
    assert bpy.context.scene.frame_end == FRAMES
    assert bpy.context.scene.render.fps == rate
    for frame, places in enumerate(body.positions(), 1):
        np.testing.assert_allclose(heads(armature, body.names, frame), places, atol=1e-5)
    for name, head, tail in zip(body.names, body.heads, body.tails, strict=True):
        np.testing.assert_allclose(armature.data.bones[name].head_local, head, atol=1e-6)
        np.testing.assert_allclose(armature.data.bones[name].tail_local, tail, atol=1e-6)


def test_timing_start_scale_and_frames_that_are_missing(clean_scene, files):
    body = read_recorded(files["npz"])
    bpy.context.scene.render.fps = 24
    armature = add_recorded(bpy.context, body.part(2, 4), "walk", timing="KEEP_TIME", start_frame=10, scale=2.0)
    assert bpy.context.scene.render.fps == 24
    for frame, place in ((10.0, 1), (10.0 + 24 / 60, 2), (10.0 + 48 / 60, 3)):
        np.testing.assert_allclose(heads(armature, body.names, frame), 2.0 * body.positions()[place], atol=1e-5)
    assert {len(keys(curve)) for curve in curves(armature)} == {3}


def test_mode_selection_and_active_object_stay(clean_scene, files):
    rig = make_rig(name="Rig")
    make_active(rig)
    bpy.ops.object.mode_set(mode="POSE")
    armature = add_recorded(bpy.context, read_recorded(files["npz"]), "walk")
    assert (bpy.context.object, rig.mode, armature.mode) == (rig, "POSE", "OBJECT")
    assert rig.select_get()
    assert not armature.select_get()


@pytest.mark.parametrize("kind", ["npz", "mvnx", "bvh"])
def test_from_a_drop_to_keys_in_three_actions(clean_scene, files, kind):
    """Drop the file, press OK in its dialogue, press Retarget."""
    assert f".{kind}" in FABRIK_FH_markers.bl_file_extensions.split(";")
    rig = make_rig(name="Rig")
    make_active(rig)
    path = files[kind]
    assert bpy.ops.fabrik.import_markers(
        directory=str(path.parent), files=[{"name": path.name}]
    ) == {"FINISHED"}  # fmt: skip
    source = rig_settings(rig).retarget.source
    assert source.name == path.stem
    assert bpy.context.object == rig
    assert bpy.ops.fabrik.retarget() == {"FINISHED"}
    assert f"{FRAMES} frames of '{path.stem}'" in rig_settings(rig).capture.last_result
    limbs = {
        "npz": ("left_shoulder", "left_elbow", "right_shoulder", "left_hip", "left_knee"),
    }.get(kind, ("LeftUpperArm", "LeftForeArm", "RightUpperArm", "LeftUpperLeg", "LeftLowerLeg"))
    own = ("upper_arm.L", "forearm.L", "upper_arm.R", "thigh.L", "shin.L")
    for frame in (1, 4, FRAMES):
        ways = [ways_of(thing, names, frame) for thing, names in ((rig, own), (source, limbs))]
        assert np.degrees(np.arccos((ways[0] * ways[1]).sum(axis=1).clip(-1.0, 1.0))).max() < 12.0
    moved = [heads(thing, [name], FRAMES)[0] - heads(thing, [name], 1)[0] for thing, name in (
        (rig, "hips"), (source, source.data.bones[0].name),
    )]  # fmt: skip
    assert moved[0] @ moved[1] > 0.9 * np.linalg.norm(moved[0]) * np.linalg.norm(moved[1])


@pytest.mark.parametrize("kind", ["npz", "mvnx"])
def test_a_file_as_the_source_leaves_nothing(clean_scene, files, kind):
    make_rig(name="Rig")
    before = blocks()
    assert bpy.ops.fabrik.retarget(source=str(files[kind])) == {"FINISHED"}
    new = blocks() - before
    assert all(bpy.data.actions.get(name) is not None for name in new)
    assert len(bpy.data.armatures) == 1


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04rubbish", b"<mvnx", b"\x80\x04pickle."])
@pytest.mark.parametrize("kind", ["npz", "mvnx"])
def test_errors_are_reported_and_change_nothing(clean_scene, tmp_path, kind, content):
    make_rig(name="Rig")
    path = tmp_path / f"bad.{kind}"
    path.write_bytes(content)
    before = blocks()
    for call in (
        lambda: bpy.ops.fabrik.import_markers(filepath=str(path)),
        lambda: bpy.ops.fabrik.retarget(source=str(path)),
    ):
        with pytest.raises(RuntimeError, match=rf"bad\.{kind}: ") as caught:
            call()
        assert len(str(caught.value).strip().splitlines()) == 1
    assert blocks() == before


def test_a_file_with_poses_and_markers_gives_the_requested_kind(clean_scene, tmp_path):
    poses, trans = smpl_poses()
    markers = {"marker_data": trans[:, None] + np.random.default_rng(1).normal(size=(1, 12, 3)) * [0.3, 0.3, 0.8]}
    np.savez(
        tmp_path / "both.npz", poses=poses.reshape(FRAMES, -1), trans=trans, fps=30, **markers,
        marker_labels=[f"M{n}" for n in range(12)],
    )  # fmt: skip
    path = str(tmp_path / "both.npz")
    assert bpy.ops.fabrik.import_markers(filepath=path, holds="MARKERS", up_axis="Z") == {"FINISHED"}
    assert len(bpy.data.collections["both"].objects) == 12
    assert not bpy.data.armatures
    assert bpy.ops.fabrik.import_markers(filepath=path) == {"FINISHED"}
    assert len(bpy.data.armatures["both"].bones) == 52


def test_the_dialogue_takes_layout_rate_units_and_axis(clean_scene, tmp_path):
    points = array([f"left_{name}" for name in ("hip", "knee", "ankle")] * 5 + ["nose", "neck"], 6)
    np.save(tmp_path / "odd.npy", y_up(points))
    path = str(tmp_path / "odd.npy")
    with pytest.raises(RuntimeError, match=r"odd\.npy: it has 17 points without names: choose their layout"):
        bpy.ops.fabrik.import_markers(filepath=path)
    chosen = {"keypoints": "H36M", "rate": 48.0, "units": "m", "up_axis": "Y"}
    assert bpy.ops.fabrik.import_markers(filepath=path, **chosen) == {"FINISHED"}
    assert bpy.context.scene.render.fps == 48
    empty = bpy.data.collections["odd"].objects["right_knee"]
    np.testing.assert_allclose(empty.location, points[0, 2], atol=1e-6)


@pytest.fixture
def rig_file(clean_scene, tmp_path):
    make_rig(name="Rig")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    return tmp_path / "rig.blend"


def test_the_retarget_command_reads_them(rig_file, files, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    arguments = [str(rig_file), *map(str, files.values()), "--output", str(tmp_path / "out"), "--rate", "50"]
    assert run_command(arguments, "retarget") == 0
    assert "3 of 3 takes written" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["run.blend", "step.blend", "walk.blend"]
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "out" / "walk.blend"))
    assert bpy.context.scene.render.fps == 50


@pytest.mark.parametrize("kind", ["npy", "csv"])
def test_the_bake_command_reads_keypoints(rig_file, tmp_path, capsys, kind):
    names = (
        "hip right_hip right_knee right_ankle left_hip left_knee left_ankle mid_spine neck nose head left_shoulder"
        " left_elbow left_wrist right_shoulder right_elbow right_wrist"
    )
    points, path = 1000.0 * array(names.split(), 60), tmp_path / f"walk.{kind}"
    if kind == "npy":
        np.save(path, points)
    else:
        path.write_text(csv_text(names.split(), points), encoding="utf-8")
    arguments = [str(rig_file), str(path), "--output", str(tmp_path / "out.blend"), "--rate", "100"]
    arguments += ["--layout", "h36m"] if kind == "npy" else []
    assert run_command(arguments) == 0
    said = capsys.readouterr().out
    assert f"walk.{kind}: 17 markers, 60 frames at 100 Hz, mm" in said
    assert (tmp_path / "out.blend").is_file()
