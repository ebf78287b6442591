"""`python -m fabrik_addon retarget`, in a process of its own."""

import csv
import subprocess
import sys
from pathlib import Path

import bpy
import numpy as np
import pytest

from fabrik_addon.blender.command_line import run_command

pytestmark = pytest.mark.skipif(bool(bpy.app.binary_path), reason="this Blender is a program, and no module of Python")
RIG = Path(__file__).parents[3] / "sample_rigs" / "human.blend"


@pytest.fixture
def command(addon_folder):
    """Run the command, and return its result."""

    def run(*arguments):
        call = [sys.executable, "-m", "fabrik_addon", "retarget", *map(str, arguments)]
        return subprocess.run(call, cwd=addon_folder, capture_output=True, text=True)

    return run


def test_motions_become_files_and_failures_are_reported_in_one_line(command, recording, tmp_path):
    missing = tmp_path / "missing.bvh"
    done = command(RIG, recording("bvh/dab.bvh"), missing, "--output", tmp_path, "--report", tmp_path, "--range", 1, 20)
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if line.startswith(("dab", "missing", "1 of"))]
    assert lines[0].startswith("dab.bvh: 22 bones, 20 frames of 'dab'")
    assert lines[1].startswith("missing.bvh: FAILED: ")
    assert "no such file" in lines[1]
    assert lines[2] == "1 of 2 takes written"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dab.blend", "dab.csv"]


@pytest.mark.one_blender
def test_a_single_take_reports_its_figures_and_files(command, recording, tmp_path):
    files = tmp_path / "dab.blend", tmp_path / "dab.csv"
    done = command(RIG, recording("bvh/dab.bvh"), "--output", files[0], "--report", files[1], "--range", 1, 20)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == f"Wrote {files[0]} and {files[1]}"


# Blender's BVH importer leaves its file open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_several_motions_have_their_notes_and_only_warnings_are_failures(recording, tmp_path, capfd):
    """Missing locations are a note. A file that ends early and an assumed frame rate are doubts."""
    lines = recording("bvh/dab.bvh").read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("Frame Time")) + 1
    (tmp_path / "cut.bvh").write_text("\n".join(lines[: first + 20]) + "\n")
    poses = np.zeros((20, 66))
    poses[:, 3] = np.linspace(0.0, -1.0, 20)
    np.savez(tmp_path / "known.npz", poses=poses, mocap_framerate=30.0)
    np.savez(tmp_path / "unknown.npz", poses=poses)
    notes = [
        "it has no location of the body (trans); the body stays in place",
        "the hips stay at the origin, so up is the trunk's direction: choose the up axis if the person is lying down",
    ]
    rate = "The frame rate is unknown; assumed 30 Hz: choose another if that is wrong"
    cut = "The header gives 339 frames, but there are only 20: export it again"
    expected = {"known.npz": (notes, []), "unknown.npz": (notes, [rate]), "cut.bvh": ([], [cut])}
    out = ["--output", str(tmp_path / "out"), "--report", str(tmp_path / "out")]
    assert run_command([str(RIG), *(str(tmp_path / name) for name in expected), *out], "retarget") == 0
    printed = capfd.readouterr().out.splitlines()
    assert printed[-1] == "3 of 3 takes written, 2 of them with warnings"
    for name, remarks in expected.items():
        with (tmp_path / "out" / name).with_suffix(".csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        for kind, scope, sentences in zip(("Note", "Warning"), ("note", "warning"), remarks, strict=True):
            start = f"{name}: {kind}: "
            assert [line.removeprefix(start) for line in printed if line.startswith(start)] == sentences
            assert [row["name"] for row in rows if row["scope"] == scope] == sentences
    for name, status in (("known.npz", 0), ("unknown.npz", 1)):
        alone = [str(RIG), str(tmp_path / name), "--output", str(tmp_path / "o.blend"), "--strict"]
        assert run_command(alone, "retarget") == status


# Blender's BVH importer leaves its file open.
@pytest.mark.one_blender
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_warnings_are_reported_with_the_reference_and_strict_fails(recording, tmp_path, capfd):
    """The limits of the rig prevent trunk and arms from bending."""
    bpy.ops.wm.open_mainfile(filepath=str(RIG))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    for part in ("spine", "chest", "upper_chest", "upper_arm.L", "upper_arm.R"):
        rig.pose.bones[part]["fabrik_limit"] = "FIXED"
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "stiff.blend"))
    dab = str(recording("bvh/dab.bvh"))
    for rig_file, more, status in (
        (RIG, ["--strict"], 0),
        (tmp_path / "stiff.blend", [], 0),
        (tmp_path / "stiff.blend", ["--strict"], 1),
    ):
        files = ["--output", str(tmp_path / "out.blend"), "--report", str(tmp_path / "out.csv")]
        assert run_command([str(rig_file), dab, *files, "--range", "100", "160", *more], "retarget") == status
        printed, report = capfd.readouterr().out, (tmp_path / "out.csv").read_text()
        assert "Reference: the source's rest pose, standing upright, its arms in a T pose" in printed
        stiff = rig_file != RIG
        assert ("Warning: Far from their positions in the source: hand" in printed) == stiff
        assert ("Far from their positions in the source: hand" in report) == stiff


# Blender's BVH importer leaves its file open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_reference_outside_the_motion_is_refused(recording, tmp_path, capfd):
    told = [str(RIG), str(recording("bvh/dab.bvh")), "--output", str(tmp_path / "out.blend"), "--range", "10", "20"]
    assert run_command([*told, "--reference", "3"], "retarget") == 1
    assert "Rest Frame 3 is not in the range 10 to 20" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("motion", "output", "said"),
    [
        ("walk.xyz", "walk.blend", "choose a .bvh"),
        ("walk.trc", "walk.blend", "use the command bake"),
        ("walk.bvh", "walk.txt", "does not end in .blend"),
    ],
)
def test_motion_and_output_files_of_wrong_types_are_reported(motion, output, said, tmp_path, capfd):
    assert run_command([str(RIG), str(tmp_path / motion), "--output", str(tmp_path / output)], "retarget") == 1
    assert said in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


BROKEN = {
    "its numbers are missing": "HIERARCHY\nROOT Hips\n{\n  OFFSET\n  JOINT Leg\n",
    "it has no hierarchy": "HIERARCHY nonsense { foo\n",
    "it is no text": "\x00\xff" * 100,
    "it is empty": "",
}


@pytest.mark.one_blender
@pytest.mark.parametrize("content", BROKEN.values(), ids=[*BROKEN])
def test_a_broken_file_is_reported_in_one_line(command, tmp_path, content):
    """Blender's importer prints a traceback, on both streams."""
    broken = tmp_path / "broken.bvh"
    broken.write_text(content)
    done = command(RIG, broken, "--output", tmp_path / "broken.blend")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("fabrik_retarget: broken.bvh: ")
    assert "unexpected" not in line
    assert [path.name for path in tmp_path.iterdir()] == ["broken.bvh"]


@pytest.mark.one_blender
@pytest.mark.parametrize("name", ["broken.fbx", "broken.glb"])
def test_a_file_that_blender_s_importer_refuses_is_reported_in_one_line(name, tmp_path, capfd):
    broken = tmp_path / name
    broken.write_bytes(b"glTF rubbish")
    assert run_command([str(RIG), str(broken), "--output", str(tmp_path / "broken.blend")], "retarget") == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"fabrik_retarget: {name}: cannot be read (")
    assert line.endswith("): export it again")


@pytest.mark.parametrize(
    ("name", "said"), [("walk.trc", "use the command bake"), ("walk.c3d", "the command bake"), ("walk.amc", "to .bvh")]
)
def test_a_file_without_an_armature_is_refused(name, said, tmp_path, capfd):
    assert run_command([str(RIG), str(tmp_path / name), "--output", str(tmp_path / "walk.blend")], "retarget") == 1
    assert said in capfd.readouterr().err
