"""The command line: input and output files, and one clear line for each error."""

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import bpy
import numpy as np
import pytest
from support import scenes
from support.processes import run_python

from fabrik_addon import batch
from fabrik_addon.blender import command_line as cli
from fabrik_addon.blender.goals.places import UNKEYED
from fabrik_addon.blender.rig import keyframes
from fabrik_addon.blender.rig.pose_writer import pose_key
from fabrik_addon.blender.settings.motion import CALIBRATION_OPTIONS, IMPORT_OPTIONS, OPTIONS, RETARGET_OPTIONS
from fabrik_addon.blender.settings.rig import follow_take, imported_takes

pytestmark = pytest.mark.usefixtures("clean_scene")

ROOT = Path(__file__).parents[3]
FRAMES = 12
# A name alone means a tail; the others are points next to the bones, in meters.
POINTS = {
    "Head": ("head", (0.05, 0.12, 0.1)),
    "Nose": ("head", (0.0, 0.1, 0.15)),
    "Chest": ("spine", (0.03, 0.1, 0.12)),
    "Back": ("spine", (0.0, 0.15, -0.1)),
    "LHip": ("hips", (0.15, 0.05, 0.02)),
    "RHip": ("hips", (-0.15, 0.05, 0.02)),
    "LElbow": ("upper_arm.L", None),
    "LWrist": ("forearm.L", None),
    "RElbow": ("upper_arm.R", None),
    "RWrist": ("forearm.R", None),
    "LKnee": ("thigh.L", None),
    "LAnkle": ("shin.L", None),
    "RKnee": ("thigh.R", None),
    "RAnkle": ("shin.R", None),
}


class Files:
    """A rig, a recording and a map in a folder, and the paths of the output."""

    def __init__(self, folder):
        self.folder = folder
        self.rig, self.markers = folder / "rig.blend", folder / "walk.trc"
        self.map, self.output, self.report = folder / "map.json", folder / "out.blend", folder / "out.csv"

    def arguments(self, *more):
        named = ["--map", self.map, "--output", self.output, "--report", self.report]
        return [str(argument) for argument in (self.rig, self.markers, *named, *more)]

    def written(self):
        """The files in the folder besides the three inputs."""
        return sorted(path.name for path in self.folder.iterdir() if path not in {self.rig, self.markers, self.map})


def make_files(folder, scale=1.0, size=1.0, hidden=()):
    """Files of a person who walks; the recorded person is `size` times as large as the rig."""
    files = Files(folder)
    rig = scenes.place(scenes.make_rig(), scale=scale)
    points = [
        (bone, (0.0, rig.data.bones[bone].length, 0.0) if offset is None else np.divide(offset, scale))
        for bone, offset in POINTS.values()
    ]
    positions = size * scenes.record(rig, points, *scenes.smooth_motion(rig, FRAMES, 31, most=0.4, travel=1.0))
    for rows, column in hidden:
        positions[rows, column] = np.nan
    scenes.write_trc(files.markers, POINTS, positions)
    entries = {
        name: bone if offset is None else {"bone": bone, "offset": list(offset)}
        for name, (bone, offset) in POINTS.items()
    }
    files.map.write_text(json.dumps({"fabrik_marker_map": 1, "markers": entries}))
    bpy.ops.wm.save_as_mainfile(filepath=str(files.rig))
    return files


@pytest.fixture
def files(tmp_path):
    return make_files(tmp_path)


def rows_of(path, scope):
    with path.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["scope"] == scope]


class TestBake:
    """Bakes of a recording from the command line."""

    def test_the_blend_file_report_and_table_are_written(self, files, capfd):
        assert cli.run_command(files.arguments()) == 0
        printed = capfd.readouterr()
        assert printed.err == ""
        for name in POINTS:
            assert f"\n{name} " in printed.out
        assert "14 markers, 12 frames at 50 Hz, mm, Y up, scaled by 1" in printed.out
        assert f"Wrote {files.output} and {files.report}" in printed.out
        assert files.written() == ["out.blend", "out.csv"]
        markers = rows_of(files.report, "marker")
        assert [row["name"] for row in markers] == list(POINTS)
        assert max(float(row["max_m"]) for row in markers) < 2e-3
        assert [int(row["frame"]) for row in rows_of(files.report, "frame")] == list(range(1, FRAMES + 1))

    @pytest.mark.parametrize("scale", [1.0, 0.1])
    def test_the_saved_rig_meets_its_markers(self, tmp_path, scale):
        files = make_files(tmp_path, scale=scale)
        cli.run_command(files.arguments())
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        rig = bpy.data.objects["Rig"]
        for frame in (1, 6, FRAMES):
            bpy.context.scene.frame_set(frame)
            for effector in rig.fabrik.capture.markers:
                bone = rig.pose.bones[effector.bone]
                point = bone.matrix @ effector.offset if effector.point == "OFFSET" else bone.tail
                assert (rig.matrix_world @ point - effector.target.matrix_world.translation).length < 2e-3

    def test_a_saved_file_can_be_baked_again(self, files):
        cli.run_command(files.arguments("--action-name", "Walk"))
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        rig, scene = bpy.data.objects["Rig"], bpy.context.scene
        assert rig.animation_data.action.name == "Walk"
        assert (scene.frame_start, scene.frame_end, scene.frame_current) == (1, FRAMES, 1)
        assert scene.render.fps / scene.render.fps_base == pytest.approx(50.0)
        assert rig.fabrik.root == "FREE"
        before = keys_of(rig)
        scenes.make_active(rig)
        assert bpy.ops.fabrik.bake() == {"FINISHED"}
        after = keys_of(rig)
        assert before.keys() == after.keys()
        assert all(np.allclose(before[key], after[key], atol=1e-5) for key in before)

    def test_keys_are_not_copied_to_be_evaluated(self, files):
        """Blender's copies would take as much memory as the keys. The saved file still has all of them."""
        assert cli.run_command(files.arguments("--action-name", "Walk")) == 0
        evaluated = bpy.context.evaluated_depsgraph_get().ids
        assert not [each.name for each in evaluated if isinstance(each, bpy.types.Action)]
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        empties = bpy.data.collections["walk"].objects
        assert {empty.name: len(empty.animation_data.action.slots) for empty in empties} == dict.fromkeys(POINTS, 1)
        assert all(empty.animation_data.action_slot is not None for empty in empties)
        assert {key for empty in empties for key in empty.keys()} == {"fabrik_marker"}  # noqa: SIM118

    def test_the_saved_pose_is_that_of_the_first_frame(self, files):
        """Without an evaluation of the new action, which may have curves of properties that no longer exist."""
        bpy.ops.wm.open_mainfile(filepath=str(files.rig))
        rig = bpy.data.objects["Rig"]
        rig.animation_data_create().action = action = bpy.data.actions.new("Before")
        slots = [action.slots.new("OBJECT", name) for name in ("Other", "Former name")]
        rig.animation_data.action_slot = slots[1]
        keyframes.write_curves(action, rig, 'pose.bones["gone"].location', [1.0], [[1.0, 1.0, 1.0]], "gone")
        bpy.ops.wm.save_mainfile()
        assert cli.run_command(files.arguments()) == 0
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        rig = bpy.data.objects["Rig"]
        assert rig.animation_data.action_slot.name_display == "Former name"
        assert rig.fabrik.capture.action == rig.animation_data.action
        saved = pose_key(rig)
        bpy.context.scene.frame_set(1)
        assert pose_key(rig) == saved
        assert "fabrik_aside" not in rig

    def test_the_markers_can_be_left_out(self, files):
        assert cli.run_command(files.arguments("--no-keep-markers")) == 0
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        assert [action.name for action in bpy.data.actions] == ["walk"]
        assert not imported_takes(bpy.context.scene)
        assert bpy.data.objects.keys() == ["Rig"]
        assert len(bpy.data.objects["Rig"].fabrik.capture.markers) == len(POINTS)

    def test_samples_are_dropped_once_the_targets_are_known(self, files, capfd):
        assert cli.run_command(files.arguments("--no-keep-markers", "--range", "900", "901")) == 1
        assert "No marker is seen in frames 900-901" in capfd.readouterr().err
        assert not UNKEYED

    def test_only_markers_of_the_map_are_used(self, files):
        bpy.ops.wm.open_mainfile(filepath=str(files.rig))
        scenes.aim(bpy.data.objects["Rig"], "head", scenes.empty_at((9, 9, 9)))
        bpy.ops.wm.save_mainfile()
        cli.run_command(files.arguments())
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        kept = bpy.data.objects["Rig"].fabrik.capture.markers
        assert [(effector.name, effector.bone) for effector in kept] == [(name, POINTS[name][0]) for name in POINTS]
        assert np.allclose(kept["Nose"].offset, POINTS["Nose"][1])

    def test_a_bake_with_a_map_follows_its_own_recording(self, files):
        """Fixed: the rig stayed with its former take, whose name the action got and whose report was replaced."""
        bpy.ops.wm.open_mainfile(filepath=str(files.rig))
        assert bpy.ops.fabrik.import_markers(filepath=str(files.markers), scale=2.0) == {"FINISHED"}
        (former,) = imported_takes(bpy.context.scene)
        former.name = "Former"
        rig = bpy.data.objects["Rig"]
        follow_take(rig, former)
        rig.fabrik.capture.report = bpy.data.texts.new("Former report")
        bpy.ops.wm.save_mainfile()
        assert cli.run_command(files.arguments()) == 0
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        capture = bpy.data.objects["Rig"].fabrik.capture
        assert capture.take.name == bpy.data.objects["Rig"].animation_data.action.name == "walk"
        assert capture.report.name != "Former report"
        follow_take(bpy.data.objects["Rig"], bpy.data.collections["Former"])
        assert capture.report.name == "Former report"

    def test_range_step_and_start_frame_are_used(self, files):
        cli.run_command(files.arguments("--range", "12", "20", "--step", "4", "--start-frame", "10"))
        assert [int(row["frame"]) for row in rows_of(files.report, "frame")] == [12, 16, 20]

    def test_keep_time_uses_the_scene_s_frame_rate(self, files):
        cli.run_command(files.arguments("--timing", "keep-time"))
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        assert bpy.context.scene.render.fps == 24
        # 12 samples at 50 Hz last 0.22 s: a little more than five frames.
        assert [int(row["frame"]) for row in rows_of(files.report, "frame")] == [1, 2, 3, 4, 5, 6]

    @pytest.mark.parametrize("scale", [1.0, 0.1])
    def test_auto_scale_makes_the_person_as_large_as_the_rig(self, tmp_path, capfd, scale):
        files = make_files(tmp_path, scale=scale, size=1.25)
        assert cli.run_command(files.arguments("--scale", "auto")) == 0
        assert "scaled by 0.8\n" in capfd.readouterr().out
        assert float(rows_of(files.report, "total")[0]["max_m"]) < 2e-3

    def test_pinned_root(self, files):
        cli.run_command(files.arguments("--root", "fixed"))
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        rig = bpy.data.objects["Rig"]
        assert rig.fabrik.root == "FIXED"
        assert not any(curve.data_path.endswith("location") for curve in keyframes.curves(rig))

    def test_without_the_report_option_only_the_blend_file_is_written(self, files):
        arguments = files.arguments()
        place = arguments.index("--report")
        del arguments[place : place + 2]
        assert cli.run_command(arguments) == 0
        assert files.written() == ["out.blend"]


def keys_of(rig):
    return {(curve.data_path, curve.array_index): keyframes.keys(curve) for curve in keyframes.curves(rig)}


def no_rig(files):
    files.rig = files.folder / "nothing.blend"


def no_markers(files):
    files.markers = files.folder / "nothing.trc"


def no_map(files):
    files.map = files.folder / "nothing.json"


def rig_is_no_blend(files):
    files.rig.write_text("not a Blender file")


def empty_markers(files):
    files.markers.write_text("")


def truncated_markers(files):
    files.markers.write_text("\n".join(files.markers.read_text().splitlines()[:4]))


def unknown_names(files):
    entries = {"Head": "head", "LTail": "tail", "Nose": "noze"}
    files.map.write_text(json.dumps({"fabrik_marker_map": 1, "markers": entries}))


def map_is_no_json(files):
    files.map.write_text("{")


def edit_rig(files, change):
    bpy.ops.wm.open_mainfile(filepath=str(files.rig))
    change(bpy.data.objects["Rig"])
    bpy.ops.wm.save_mainfile()


def remove(rig):
    bpy.data.objects.remove(rig)


def no_armature(files):
    edit_rig(files, remove)


def two_armatures(files):
    edit_rig(files, lambda _rig: scenes.make_rig(name="Other"))


def scaled_bone(files):
    edit_rig(files, lambda rig: setattr(rig.pose.bones["spine"], "scale", (2, 2, 2)))


def linked_armature(files):
    source = files.folder / "source.blend"
    files.rig.rename(source)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(source), link=True) as (_, wanted):
        wanted.objects = ["Rig"]
    bpy.context.scene.collection.objects.link(bpy.data.objects["Rig"])
    bpy.ops.wm.save_as_mainfile(filepath=str(files.rig))


def unseen_everywhere(files):
    text = files.markers.read_text().splitlines()
    text[6:] = ["\t".join(line.split("\t")[:2]) + "\t" * 42 for line in text[6:]]
    files.markers.write_text("\n".join(text))


def output_in_no_folder(files):
    files.output = files.folder / "missing" / "out.blend"


def report_is_a_folder(files):
    files.report = files.folder / "sub"
    files.report.mkdir()


class TestWrongInput:
    """One line on stderr, exit status 1, and no file written."""

    TROUBLES = (
        (no_rig, ("nothing.blend", "no such file")),
        (no_markers, ("nothing.trc", "no such file")),
        (no_map, ("nothing.json", "no such file")),
        (rig_is_no_blend, ("rig.blend", "can't open it: choose a .blend")),
        (empty_markers, ("walk.trc", "empty")),
        (truncated_markers, ("walk.trc",)),
        (unknown_names, ("'LTail'", "'tail'", "'noze'")),
        (map_is_no_json, ("map.json", "not valid JSON")),
        (no_armature, ("There is no armature",)),
        (two_armatures, ("'Rig'", "'Other'", "--armature")),
        (scaled_bone, ("'spine'",)),
        (linked_armature, ("'Rig'", "linked", "override")),
        (unseen_everywhere, ("walk.trc", "no marker is visible")),
        (output_in_no_folder, ("out.blend", "make the folder")),
        (report_is_a_folder, ("a folder has this name",)),
    )

    @pytest.mark.parametrize(("spoil", "words"), TROUBLES, ids=[spoil.__name__ for spoil, _ in TROUBLES])
    def test_errors_are_named(self, files, capfd, spoil, words):
        spoil(files)
        before = {path: path.read_bytes() for path in files.folder.iterdir() if path.is_file()}
        capfd.readouterr()
        assert cli.run_command(files.arguments()) == 1
        lines = capfd.readouterr().err.splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("fabrik_bake: ")
        assert all(word in lines[0] for word in words), lines[0]
        assert {path: path.read_bytes() for path in files.folder.iterdir() if path.is_file()} == before

    def test_unknown_armature(self, files, capfd):
        assert cli.run_command(files.arguments("--armature", "Nobody")) == 1
        assert "There is no armature 'Nobody' in scene 'Scene': choose one of 'Rig'" in capfd.readouterr().err
        assert files.written() == []

    def test_range_without_markers(self, files, capfd):
        assert cli.run_command(files.arguments("--range", "500", "510")) == 1
        assert "No marker is seen in frames 500-510: choose others" in capfd.readouterr().err
        assert files.written() == []

    @pytest.mark.parametrize(
        ("recording", "words"),
        [("walk.bvh", "use the command retarget"), ("walk.fbx", "use the command retarget"), ("walk.tak", ".c3d")],
    )
    def test_a_file_that_is_no_recording_is_refused(self, files, capfd, recording, words):
        files.markers = files.folder / recording
        files.markers.touch()
        assert cli.run_command(files.arguments()) == 1
        assert words in capfd.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], "required"),
            (["rig.blend", "walk.trc", "--output", "o", "--jobs", "0"], "whole number above zero"),
            (["rig.blend", "walk.trc", "--map", "m", "--output", "o", "--scale", "-1"], "must be auto or a number"),
            (["rig.blend", "walk.trc", "--map", "m", "--output", "o", "--up-axis", "X"], "--up-axis"),
            (["rig.blend", "walk.trc", "--map", "m", "--output", "o", "--step", "two"], "--step"),
            (["rig.blend", "walk.trc", "--map", "m", "--output", "o", "--nonsense"], "--nonsense"),
        ],
    )
    def test_wrong_arguments_are_refused(self, capfd, arguments, words):
        assert cli.run_command(arguments) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert words in line


FULL_DISK = """
import os, resource, sys
import bpy
import fabrik_addon
from fabrik_addon.blender.command_line import run_command
fabrik_addon.register()
arguments = sys.argv[1:] if "--" not in sys.argv else sys.argv[sys.argv.index("--") + 1:]
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
for room in (100, 10_000, 50_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))
    assert run_command(arguments) == 1, room
sys.stderr.flush()
os._exit(0)
"""


class TestNothingIsLost:
    """No file of a call is written over another, and files that were there stay unless all that is new is written."""

    @pytest.mark.parametrize("name", ["rig", "markers", "map", "static", "output"])
    @pytest.mark.parametrize("way", ["same", "relative", "symlink", "hardlink"])
    def test_a_report_with_the_path_of_another_file_is_refused(self, files, capfd, monkeypatch, name, way):
        files.static = files.folder / "static.trc"
        files.static.write_bytes(files.markers.read_bytes())
        files.output.write_bytes(files.rig.read_bytes())
        path = getattr(files, name)
        files.report = files.folder / "link"
        if way == "symlink":
            files.report.symlink_to(path)
        elif way == "hardlink":
            files.report.hardlink_to(path)
        elif way == "relative":
            monkeypatch.chdir(files.folder)
            files.report = Path(path.name)
        else:
            files.report = path
        before = {path: path.read_bytes() for path in files.folder.iterdir()}
        assert cli.run_command(files.arguments("--static", str(files.static))) == 1
        assert f"{files.report}: would overwrite {path}: choose another name" in capfd.readouterr().err
        assert {path: path.read_bytes() for path in files.folder.iterdir()} == before

    def test_the_rig_is_overwritten_only_if_asked(self, files, capfd):
        before = files.rig.read_bytes()
        files.output = files.rig
        assert cli.run_command(files.arguments()) == 1
        assert "rig.blend: choose another name, or add --overwrite" in capfd.readouterr().err
        assert files.rig.read_bytes() == before
        assert cli.run_command(files.arguments("--overwrite")) == 0
        assert files.rig.read_bytes() != before
        assert files.rig.with_name("rig.blend1").read_bytes() == before

    def test_no_report_replaces_the_rig(self, files, capfd):
        before = files.rig.read_bytes()
        files.report = files.rig
        assert cli.run_command(files.arguments("--overwrite")) == 1
        files.output = files.rig
        assert cli.run_command(files.arguments("--overwrite")) == 1
        assert capfd.readouterr().err.count("would overwrite") == 2
        assert files.rig.read_bytes() == before

    def test_a_rig_with_the_path_of_the_output_s_backup_is_refused(self, files, capfd):
        """Blender's own backup would replace it."""
        files.rig = files.rig.rename(files.folder / "out.blend1")
        files.output.touch()
        assert cli.run_command(files.arguments()) == 1
        assert "would overwrite" in capfd.readouterr().err

    def test_an_output_folder_that_contains_the_rig_is_refused(self, files, capfd):
        """One of several takes would overwrite the rig, since it has the same name."""
        other = files.folder / "rig.trc"
        other.write_bytes(files.markers.read_bytes())
        before = files.rig.read_bytes()
        arguments = [files.rig, files.markers, other, "--output", files.folder, "--overwrite"]
        assert cli.run_command(list(map(str, arguments))) == 1
        assert "would overwrite" in capfd.readouterr().err
        assert files.rig.read_bytes() == before

    def test_a_file_that_the_rig_links_is_not_overwritten(self, files, capfd):
        library = files.folder / "library.blend"
        linked_armature(files)
        bpy.ops.wm.open_mainfile(filepath=str(files.rig))
        bpy.data.libraries[0].filepath = "//library.blend"
        (files.folder / "source.blend").rename(library)
        bpy.context.view_layer.objects.active = bpy.data.objects["Rig"]
        bpy.data.objects["Rig"].override_create(remap_local_usages=True)
        bpy.ops.wm.save_mainfile()
        files.output = library
        before = library.read_bytes()
        assert cli.run_command(files.arguments()) == 1
        assert "library.blend: is linked by the rig" in capfd.readouterr().err
        assert library.read_bytes() == before

    def test_a_name_that_is_too_long(self, files, capfd):
        files.output = files.folder / f"{'x' * 300}.blend"
        assert cli.run_command(files.arguments()) == 1
        assert "can't be used (File name too long)" in capfd.readouterr().err

    def test_a_device_is_not_replaced_by_a_report(self, files, capfd):
        files.report = Path(os.devnull)
        assert cli.run_command(files.arguments()) == 1
        assert "is not a file that can be replaced" in capfd.readouterr().err
        assert not files.report.is_file()

    def test_a_full_disk_leaves_the_old_file(self, files):
        """Limits on the size of files simulate a full disk: too small for the report, or for the .blend.

        Blender reports success even if it can't write all of a compressed file.
        """
        pytest.importorskip("resource")
        assert cli.run_command(files.arguments()) == 0
        assert files.output.stat().st_size > 50_000
        before = {path: path.read_bytes() for path in files.folder.iterdir()}
        done = run_python(FULL_DISK, *files.arguments("--range", "1", "10"), path=ROOT)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("out.csv: cannot be written") == 3
        assert {path: path.read_bytes() for path in files.folder.iterdir()} == before

    def test_an_output_with_a_trailing_slash_is_a_folder(self, files):
        arguments = files.arguments()
        for option in ("--output", "--report"):
            arguments[arguments.index(option) + 1] = str(files.folder / "baked" / "here") + "/"
        assert cli.run_command(arguments) == 0
        folder = files.folder / "baked" / "here"
        assert sorted(path.name for path in folder.iterdir()) == ["walk.blend", "walk.csv"]

    def test_python_in_the_rig_is_not_run(self, files, capfd):
        mark = files.folder / "was here"

        def add_script(rig):
            text = bpy.data.texts.new("script.py")
            text.write(f"open({str(mark)!r}, 'w')")
            text.use_module = True
            driver = rig.driver_add("pass_index").driver
            driver.expression = f"open({str(mark)!r}, 'w').fileno()"

        edit_rig(files, add_script)
        mark.unlink(missing_ok=True)
        before = bpy.context.preferences.filepaths.use_scripts_auto_execute
        bpy.context.preferences.filepaths.use_scripts_auto_execute = True
        try:
            assert cli.run_command(files.arguments()) == 0
        finally:
            bpy.context.preferences.filepaths.use_scripts_auto_execute = before
        assert not mark.exists()
        assert "Note: Python in rig.blend was not run" in capfd.readouterr().out


@pytest.fixture
def run_module(addon_folder):
    """Run `python -m fabrik_addon` in a process of its own."""

    def run(*arguments):
        command = [sys.executable, "-m", "fabrik_addon", *map(str, arguments)]
        # `-m` searches the working folder first.
        return subprocess.run(command, cwd=addon_folder, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.mark.skipif(bool(bpy.app.binary_path), reason="this Blender is a program, and no module of Python")
class TestModule:
    """`python -m fabrik_addon` in its own process."""

    def test_a_bake_ends_although_a_driver_is_evaluated_in_python(self, files, run_module):
        """Blender 4.5 waits for one of its own threads when Python ends."""
        edit_rig(files, lambda rig: setattr(rig.driver_add("pass_index").driver, "expression", "max([1,frame])"))
        done = run_module("bake", *files.arguments())
        assert (done.returncode, done.stderr) == (0, "")
        assert files.written() == ["out.blend", "out.csv", "rig.blend1"]

    @pytest.mark.one_blender
    @pytest.mark.parametrize("seconds", [0.05, 0.1, 0.2, 0.4])
    def test_ctrl_c_in_the_first_second(self, files, addon_folder, seconds):
        """Ctrl-C is pressed twice, as impatient users do."""
        code = f"""
import os, runpy, signal, sys, threading
for wait in ({seconds}, {seconds} + 0.05):
    threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT)).start()
sys.argv[1:] = {["bake", *files.arguments()]!r}
runpy.run_module("fabrik_addon", run_name="__main__")
"""
        done = subprocess.run([sys.executable, "-c", code], cwd=addon_folder, capture_output=True, text=True)
        assert done.returncode == 130
        assert re.fullmatch("fabrik_bake: stopped; .*\n", done.stderr)
        assert files.written() == []

    @pytest.mark.one_blender
    def test_a_closed_output_is_reported(self, files, addon_folder):
        command = [sys.executable, "-m", "fabrik_addon", "bake", *files.arguments()]
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(command, cwd=addon_folder, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120)
        os.close(write)
        assert files.written() == ["out.blend", "out.csv"]
        assert (done.returncode, done.stderr) == (
            1,
            "fabrik_bake: the output was closed: keep it open\n",
        )

    @pytest.mark.one_blender
    def test_names_that_the_console_cannot_show(self, files, addon_folder):
        """Names in another alphabet, and names that are not valid text."""
        recordings = [files.folder / name for name in ("歩く.trc", os.fsdecode(b"walk\xff.trc"), "walk.trc")]
        for recording in recordings[:2]:
            recording.write_bytes(files.markers.read_bytes())
        command = [sys.executable, "-m", "fabrik_addon", "bake", files.rig, *recordings, "--map", files.map]
        done = subprocess.run(
            [*command, "--output", files.folder / "out"],
            cwd=addon_folder,
            capture_output=True,
            timeout=120,
            env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        )
        lines = done.stdout.decode("cp1252").splitlines()
        assert done.stderr == b""
        assert lines[0].startswith("\\u6b69\\u304f.trc: 11 bones")
        assert lines[1].startswith("walk\\udcff.trc: ")
        assert lines[2].startswith("walk.trc: 11 bones")
        written = int("FAILED" not in lines[1]) + 2
        assert lines[3] == f"{written} of 3 takes written"
        assert len(list((files.folder / "out").iterdir())) == written

    @pytest.mark.one_blender
    def test_failure(self, files, run_module):
        files.markers.write_text("")
        done = run_module("bake", *files.arguments())
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert files.written() == []

    @pytest.mark.one_blender
    def test_ctrl_c_stops_it_with_one_line(self, files, addon_folder):
        bad = files.folder / "bad.trc"
        bad.write_text("rubbish")
        walk = ROOT / "sample_rigs" / "walk.trc"
        command = [sys.executable, "-m", "fabrik_addon", "bake", files.rig, bad, walk, "--output", files.folder]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            list(map(str, command)), cwd=addon_folder, stdout=pipe, stderr=pipe, text=True
        ) as running:
            assert any(line.startswith("bad.trc: FAILED") for line in running.stdout)
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=60)
        assert running.returncode == 130
        assert said == "fabrik_bake: stopped; complete files are kept\n"
        assert files.written() == ["bad.trc"]

    @pytest.mark.one_blender
    def test_wrong_arguments(self, run_module):
        wrong = run_module("simmer")
        assert wrong.returncode == 2
        assert wrong.stderr.count("\n") == 1


class TestSeveralTakes:
    """There is one line for each take, and an exit status."""

    def takes(self, files, count=2):
        """Copies of the recording, and folders to write to."""
        recordings = [files.folder / f"take{number}.trc" for number in range(1, count + 1)]
        for recording in recordings:
            recording.write_bytes(files.markers.read_bytes())
        for name in ("blends", "reports"):
            (files.folder / name).mkdir()
        return recordings

    def arguments(self, files, recordings, *more):
        out = ["--output", files.folder / "blends", "--report", files.folder / "reports", "--map", files.map]
        return [str(argument) for argument in (files.rig, *recordings, *out, *more)]

    def test_each_take_has_its_files_and_its_line(self, files, capfd):
        recordings = self.takes(files)
        assert cli.run_command(self.arguments(files, recordings)) == 0
        lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith(("take", "2 of"))]
        assert [line.split(":")[0] for line in lines[:2]] == ["take1.trc", "take2.trc"]
        assert all("RMS" in line and line.endswith(".blend") for line in lines[:2])
        assert lines[2] == "2 of 2 takes written"
        assert sorted(path.name for path in (files.folder / "blends").iterdir()) == ["take1.blend", "take2.blend"]
        assert sorted(path.name for path in (files.folder / "reports").iterdir()) == ["take1.csv", "take2.csv"]

    def test_a_bad_take_does_not_stop_the_others(self, files, capfd):
        recordings = self.takes(files, 3)
        recordings[1].write_text("rubbish")
        assert cli.run_command(self.arguments(files, recordings)) == 1
        out = capfd.readouterr().out
        assert "take2.trc: FAILED: this is not a TRC file" in out
        assert "2 of 3 takes written" in out
        assert sorted(path.name for path in (files.folder / "blends").iterdir()) == ["take1.blend", "take3.blend"]

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (
                lambda files, takes: ((files.folder / "blends").rmdir(), (files.folder / "blends").touch()),
                "blends: can't be used (File exists)",
            ),
            (lambda files, takes: takes.append(takes[0]), "two recordings are named 'take1'"),
            (lambda files, takes: files.rig.unlink(), "rig.blend: there is no such file"),
        ],
    )
    def test_files_that_cannot_be_written_are_reported_at_once(self, files, capfd, change, sentence):
        recordings = self.takes(files)
        change(files, recordings)
        assert cli.run_command(self.arguments(files, recordings)) == 1
        assert sentence in capfd.readouterr().err
        assert not list((files.folder / "reports").iterdir())

    def test_an_unexpected_error_becomes_the_outcome_of_its_take(self, files):
        """Here the arguments are missing."""
        call = batch.Call("bake", argparse.Namespace(), batch.BatchTake(files.markers, files.folder / "out.blend"))
        failure = cli._carry_out(call).failure  # noqa: SLF001  no file is known that causes one
        assert failure.startswith("stopped by an unexpected error (AttributeError: ")

    def test_missing_folders_are_created(self, files):
        recordings = self.takes(files)
        for name in ("blends", "reports"):
            (files.folder / name).rmdir()
        assert cli.run_command(self.arguments(files, recordings)) == 0
        assert len(list((files.folder / "blends").iterdir())) == len(list((files.folder / "reports").iterdir())) == 2

    def test_failures_are_listed_at_the_end(self, files, capfd):
        recordings = self.takes(files, 3)
        for recording in recordings[:2]:
            recording.write_text("rubbish")
        assert cli.run_command(self.arguments(files, recordings)) == 1
        lines = capfd.readouterr().out.splitlines()
        assert [line for line in lines[-3:] if "take" in line] == ["1 of 3 takes written", *lines[:2]]

    def test_with_strict_a_take_with_warnings_fails(self, files, capfd):
        """The take is still written, and counts as one with warnings."""
        recordings = self.takes(files)
        few = ["LKnee", "LAnkle", "RKnee", "RAnkle", "LHip", "RHip"]
        entries = json.loads(files.map.read_text())
        entries["markers"] = {name: entry for name, entry in entries["markers"].items() if name in few}
        files.map.write_text(json.dumps(entries))
        assert cli.run_command(self.arguments(files, recordings)) == 0
        assert cli.run_command(self.arguments(files, recordings, "--strict")) == 1
        assert "2 of 2 takes written, 2 of them with warnings" in capfd.readouterr().out


class TestChoices:
    """The command's other options."""

    def test_strip_reduced_keys_and_root_motion_on_the_object(self, files):
        more = ("--action", "nla", "--simplify", "1", "--root-motion", "object", "--action-name", "Take")
        assert cli.run_command(files.arguments(*more)) == 0
        bpy.ops.wm.open_mainfile(filepath=str(files.output))
        rig = bpy.data.objects["Rig"]
        (track,) = rig.animation_data.nla_tracks
        assert track.strips[0].action.name == "Take"
        places = []
        for frame in (1, FRAMES):
            bpy.context.scene.frame_set(frame)
            places.append(rig.matrix_world.translation.copy())
        assert (places[1] - places[0]).length > 0.3

    def test_the_groups_of_the_help_have_titles(self, capsys):
        assert cli.run_command(["--help"]) == 0
        titles = re.findall(r"^(\S.*):$", capsys.readouterr().out, re.MULTILINE)
        assert titles[-4:] == [
            "Markers and their bones",
            "Frames and frame rates",
            "Positions in the file",
            "Poses and keys",
        ]

    def test_samples_gaps_and_smoothing(self, tmp_path, capfd):
        files = make_files(tmp_path, hidden=[(slice(3, 10), 6), (slice(3, 10), 7)])
        more = ("--samples", "2", "11", "--gaps", "unkeyed", "--low-pass", "20")
        assert cli.run_command(files.arguments(*more)) == 0
        assert "Gaps: " in capfd.readouterr().out
        assert len(rows_of(files.report, "frame")) == 10

    def test_without_a_map_unknown_labels_are_refused(self, files, capfd):
        content = files.markers.read_text()
        for number, name in enumerate(POINTS):
            content = content.replace(f"\t{name}\t", f"\tq{number}\t")
        files.markers.write_text(content)
        arguments = [str(files.rig), str(files.markers), "--output", str(files.output)]
        assert cli.run_command(arguments) == 1
        assert "no label is known: map the markers to bones with --map" in capfd.readouterr().err
        assert not files.output.exists()

    @pytest.mark.parametrize("options", [OPTIONS, RETARGET_OPTIONS, CALIBRATION_OPTIONS, IMPORT_OPTIONS])
    def test_options_have_the_defaults_of_their_declarations(self, options):
        parser = cli.Parser()
        cli.add_options(parser, options)
        found = cli.chosen_options(parser.parse_args([]), options)
        for name, declared in options.items():
            words = declared.keywords
            first = words["items"][0][0] if "items" in words else (0, 0) if "size" in words else False
            assert found[name] == words.get("default", first), name

    @pytest.mark.parametrize(
        ("arguments", "name", "value"),
        [
            (["--plant-feet"], "plant_feet", "ON"),
            (["--no-plant-feet"], "plant_feet", "OFF"),
            (["--self-collision"], "self_collision", "ON"),
            (["--no-self-collision"], "self_collision", "OFF"),
            (["--root-motion", "in-place"], "root_motion", "IN_PLACE"),
            (["--units", "mm"], "units", "mm"),
            (["--up-axis", "Z"], "up_axis", "Z"),
            (["--layout", "body_25"], "keypoints", "BODY_25"),
            (["--no-feet-on-floor"], "on_floor", False),
            (["--reference", "3", "9"], "reference", [3, 9]),
        ],
    )
    def test_an_option_that_is_given_has_its_value(self, arguments, name, value):
        parser, options = cli.Parser(), {**OPTIONS, **CALIBRATION_OPTIONS, **IMPORT_OPTIONS}
        cli.add_options(parser, options)
        assert cli.chosen_options(parser.parse_args(arguments), options)[name] == value
