"""Warnings that a bake may not show the recorded person: on the command line, in the report and in the panel."""

import csv
from pathlib import Path

import bpy
import numpy as np
import pytest
from support import scenes

from fabrik_addon.blender import command_line as cli
from fabrik_addon.markers.clip import Clip, to_z_up
from fabrik_addon.markers.files.any_file import read_markers
from fabrik_addon.markers.mapping.marker_map import read_map

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]

SAMPLES = Path(__file__).parents[3] / "sample_rigs"
CART = tuple(f"Cart{number}" for number in range(12))


def cart_file(folder, names=("LASI", "RASI", "C7")):
    """A recording of a cart's corners, three of which happen to have labels of a person's markers."""
    wobble = np.random.default_rng(3).uniform(-0.3, 0.3, (1, len(names) + len(CART), 3))
    way = np.linspace(0.0, 1.0, 8)[:, None, None] * (1.0, 0.0, 0.0)
    path = folder / "cart.trc"
    scenes.write_trc(path, (*names, *CART), wobble + way + (0.0, 1.0, 0.0))
    return path


def arguments(folder, markers, *more):
    return [
        str(each)
        for each in (
            SAMPLES / "human.blend",
            markers,
            "--output",
            folder / "o.blend",
            "--report",
            folder / "o.csv",
            *more,
        )
    ]


@pytest.mark.parametrize(("more", "status"), [((), 0), (("--strict",), 1)])
def test_a_cart_gives_a_warning(tmp_path, capfd, more, status):
    assert cli.run_command(arguments(tmp_path, cart_file(tmp_path), *more)) == status
    printed = capfd.readouterr().out
    assert "Warning: Only 3 of 15 labeled markers are on bones" in printed
    assert "Warning: No marker is on the" in printed
    assert "Took: calibrate " in printed
    with (tmp_path / "o.csv").open(newline="") as file:
        doubts = [row["name"] for row in csv.DictReader(file) if row["scope"] == "warning"]
    assert doubts
    assert all(f"Warning: {doubt}" in printed for doubt in doubts)
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "o.blend"))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    rows = csv.DictReader(rig.fabrik.capture.report.as_string().splitlines())
    assert [row["name"] for row in rows if row["scope"] == "warning"] == doubts, "the saved report has them"


def test_a_person_gives_no_warning(tmp_path, capfd):
    more = ("--strict", "--map", SAMPLES / "walk_map.json", "--samples", 1, 20)
    assert cli.run_command(arguments(tmp_path, SAMPLES / "walk.trc", *more)) == 0
    assert "Warning" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "doubt"),
    [
        ("\tmm\t", "\tcm\t", "The markers of the person extend over"),
        ("\n100.00\t", "\n50.00\t", "The file has two frame rates, 50 and 100 Hz"),
    ],
)
def test_wrong_units_and_rates_give_warnings(tmp_path, capfd, old, new, doubt):
    text = (SAMPLES / "walk.trc").read_text()
    assert old in text
    (tmp_path / "walk.trc").write_text(text.replace(old, new, 1))
    more = ("--strict", "--map", SAMPLES / "walk_map.json", "--samples", 1, 20)
    assert cli.run_command(arguments(tmp_path, tmp_path / "walk.trc", *more)) == 1
    assert f"Warning: {doubt}" in capfd.readouterr().out


@pytest.mark.one_blender
@pytest.mark.parametrize(("factor", "doubt"), [(1.0 / 2.54, "Warning: The person is 0.7"), (0.6, ""), (1.25, "")])
def test_inches_read_as_centimeters_give_a_warning(tmp_path, capfd, factor, doubt):
    """In centimeters, the markers look like those of a sitting child. Real children and tall people give no warning."""
    recorded = to_z_up(read_markers(SAMPLES / "walk.trc"))
    scenes.write_trc(tmp_path / "walk.trc", recorded.names, factor * recorded.positions[:60])
    assert cli.run_command(arguments(tmp_path, tmp_path / "walk.trc")) == 0
    printed = capfd.readouterr().out
    assert ("The person is " in printed) == bool(doubt)
    assert doubt in printed


@pytest.mark.one_blender
@pytest.mark.parametrize("label", ["LSHO", "LKNE", "LTOE", "LFHD", "LPSI"])
def test_a_mirrored_marker_gives_a_warning(tmp_path, capfd, label):
    """The calibration measures its position on the bone, so its error is small."""
    recorded = to_z_up(read_markers(SAMPLES / "walk.trc"))
    positions, marker = np.array(recorded.positions[:60]), recorded.names.index(label)
    positions[:, marker, 0] = 2.0 * np.nanmean(positions[..., 0], axis=1) - positions[:, marker, 0]
    scenes.write_trc(tmp_path / "walk.trc", recorded.names, positions)
    assert cli.run_command(arguments(tmp_path, tmp_path / "walk.trc")) == 0
    assert f"Warning: Markers are far from the usual positions for their labels: {label}" in capfd.readouterr().out


@pytest.mark.one_blender
def test_a_foot_whose_markers_are_swapped_gives_a_warning(tmp_path, capfd):
    """Both are near the positions of their labels, but not as on the other foot."""
    recorded = to_z_up(read_markers(SAMPLES / "walk.trc"))
    names, swapped = list(recorded.names), {"LANK": "LTOE", "LTOE": "LANK"}
    scenes.write_trc(tmp_path / "walk.trc", [swapped.get(name, name) for name in names], recorded.positions[:60])
    assert cli.run_command(arguments(tmp_path, tmp_path / "walk.trc")) == 0
    assert "labels: LTOE and LANK; check their bones" in capfd.readouterr().out


def test_strict_fails_if_one_of_several_takes_has_a_warning(tmp_path, capfd):
    other = tmp_path / "other.trc"
    other.write_bytes(cart_file(tmp_path).read_bytes())
    out = tmp_path / "out"
    out.mkdir()
    wanted = [str(each) for each in (SAMPLES / "human.blend", tmp_path / "cart.trc", other, "--output", out)]
    assert cli.run_command([*wanted, "--strict"]) == 1
    assert "other.trc: Warning: Only 3 of 15" in capfd.readouterr().out


def stretched_time(_rig):
    bpy.context.scene.render.frame_map_new = 200


def copied_hand(rig):
    constraint = rig.pose.bones["hand.L"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget = rig, "hand.R"


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        (stretched_time, "Time Stretching in the scene's output settings changes the speed of the motion"),
        (copied_hand, "Not used, because they are never seen or no bone can move them: LFIN"),
    ],
)
def test_motion_that_the_rig_loses_gives_a_warning(tmp_path, capfd, change, doubt):
    """Fixed: both were baked without a warning."""
    bpy.ops.wm.open_mainfile(filepath=str(SAMPLES / "human.blend"))
    change(next(thing for thing in bpy.data.objects if thing.type == "ARMATURE"))
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "rig.blend"))
    more = ["--output", tmp_path / "o.blend", "--map", SAMPLES / "walk_map.json", "--samples", 1, 20, "--strict"]
    assert cli.run_command([str(each) for each in (tmp_path / "rig.blend", SAMPLES / "walk.trc", *more)]) == 1
    (said,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("Warning: ")]
    assert said.startswith(f"Warning: {doubt}")


def test_several_takes_have_their_notes_and_only_warnings_are_failures(tmp_path, capfd):
    """A take with a repeated row gives a note. A take whose last rows are missing gives a warning."""
    lines = (SAMPLES / "walk.trc").read_text().splitlines()[:26]
    (tmp_path / "cut.trc").write_text("\n".join(lines) + "\n")
    lines[2] = lines[2].replace("401", "20")
    (tmp_path / "whole.trc").write_text("\n".join(lines) + "\n")
    (tmp_path / "twice.trc").write_text("\n".join([*lines, lines[-1]]) + "\n")
    more = ("--map", SAMPLES / "walk_map.json", "--output", tmp_path / "out", "--report", tmp_path / "out", "--strict")

    def run(*names):
        wanted = [SAMPLES / "human.blend", *(tmp_path / f"{name}.trc" for name in names), *more]
        status = cli.run_command([*map(str, wanted)])
        return status, capfd.readouterr().out.splitlines()

    note = "Note: 1 frames occur more than once; used each of them once"
    doubt = "Warning: The header gives 401 frames, but there are only 20: export it again"
    status, printed = run("whole", "twice")
    assert (status, printed[-1]) == (0, "2 of 2 takes written")
    assert [line for line in printed if "Note" in line or "Warning" in line] == [f"twice.trc: {note}"]
    assert f"note,{note.removeprefix('Note: ')}" in (tmp_path / "out" / "twice.csv").read_text()
    status, printed = run("whole", "cut")
    assert (status, printed[-1]) == (1, "2 of 2 takes written, 1 of them with warnings")
    assert [line for line in printed if "Note" in line or "Warning" in line] == [f"cut.trc: {doubt}"]
    assert f'warning,"{doubt.removeprefix("Warning: ")}"' in (tmp_path / "out" / "cut.csv").read_text()


def test_several_performers(tmp_path, capfd):
    path = tmp_path / "two.trc"
    clip = Clip(("Anna:LASI", "Bob:LASI"), 50.0, np.ones((4, 2, 3)))
    scenes.write_trc(path, clip.names, clip.positions)
    assert read_markers(path).names == clip.names
    assert cli.run_command(arguments(tmp_path, path)) == 1
    assert "--performer" in capfd.readouterr().err


def test_legs_that_constraints_move_are_the_reason(tmp_path, capfd):
    """If an IK constraint moves a rig's legs, the message names the remedy, instead of warning about the person."""
    bpy.ops.wm.open_mainfile(filepath=str(SAMPLES / "human.blend"))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    for side in "LR":
        constraint = rig.pose.bones[f"shin.{side}"].constraints.new("IK")
        constraint.target = bpy.data.objects.new("Ankle", None)
        constraint.target.location = rig.data.bones[f"shin.{side}"].tail_local
        constraint.chain_count = 2
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "legs.blend"))
    told = arguments(tmp_path, SAMPLES / "walk.trc", "--samples", "1", "25")
    assert cli.run_command([str(tmp_path / "legs.blend"), *told[1:]]) == 0
    doubts = [line for line in capfd.readouterr().out.splitlines() if line.startswith("Warning: ")]
    assert "is high because constraints move thigh.L, shin.L, thigh.R and shin.R: press Set Up Control Rig" in doubts[0]
    assert doubts[1].startswith("Warning: Not used, because they are never seen or no bone can move them: ")
    assert len(doubts) == 2


def test_swapped_sides_give_a_warning(tmp_path, capfd):
    """A person whose markers have the other side's labels would come out walking backward, without a warning."""
    clip = read_markers(SAMPLES / "walk.trc")
    sides = str.maketrans("LR", "RL")
    names = [name[0].translate(sides) + name[1:] for name in clip.names]
    scenes.write_trc(tmp_path / "swapped.trc", names, to_z_up(clip).positions[:25], rate=clip.rate)
    assert cli.run_command(arguments(tmp_path, tmp_path / "swapped.trc", "--strict")) == 1
    assert "Warning: Markers are far from the usual positions for their labels: " in capfd.readouterr().out


# The axes of the upright person that become X, Y and Z: upside down, and on one side.
@pytest.mark.parametrize(
    ("axes", "doubt"), [((0, -1, -2), "is upside down on most"), ((2, 0, 1), "lies or crawls on most frames: if the")]
)
def test_a_wrong_up_axis_gives_a_warning(tmp_path, capfd, axes, doubt):
    """The solver follows the markers exactly, on the rig's head or on its side, so no error shows it."""
    clip = to_z_up(read_markers(SAMPLES / "walk.trc"))
    turned = np.stack([np.sign(axis + 0.5) * clip.positions[:25, :, abs(axis)] for axis in axes], axis=-1)
    scenes.write_trc(tmp_path / "turned.trc", clip.names, turned, rate=clip.rate)
    assert cli.run_command(arguments(tmp_path, tmp_path / "turned.trc", "--up", "y", "--strict")) == 1
    (line,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("Warning: ")]
    assert line.startswith(f"Warning: The person {doubt}")


def test_markers_that_are_never_seen_are_on_no_bone(tmp_path, capfd):
    """The file has the arms' labels but no positions: without a warning, the arms would stay at rest unnoticed."""
    clip = to_z_up(read_markers(SAMPLES / "walk.trc"))
    entries = {entry.marker: entry.bone for entry in read_map(SAMPLES / "walk_map.json")}
    hidden = [any(part in entries.get(name, "") for part in ("arm", "hand", "shoulder")) for name in clip.names]
    positions = np.where(np.array(hidden)[None, :, None], np.nan, clip.positions)[:30]
    scenes.write_trc(tmp_path / "armless.trc", clip.names, positions, rate=clip.rate)
    more = ("--strict", "--map", SAMPLES / "walk_map.json")
    assert cli.run_command(arguments(tmp_path, tmp_path / "armless.trc", *more)) == 1
    printed = capfd.readouterr().out
    (doubt,) = [line for line in printed.splitlines() if line.startswith("Warning: ")]
    assert doubt.startswith("Warning: The markers on ")
    assert doubt.endswith("are never visible on these frames: these bones only follow their parents")
    assert "upper_arm.L" in doubt
