"""Real recordings on the sample person, read from the folder that FABRIK_TEST_DATA names; skipped without it."""

import os
import re
from pathlib import Path
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from support.recordings import gait_model, gait_targets

from benchmarks.recordings import keyed_gait
from fabrik_addon.batch import planned
from fabrik_addon.blender.command_line import COMMANDS, Parser, add_arguments, bake_file
from fabrik_addon.core import Hinge
from fabrik_addon.markers.clip import to_z_up
from fabrik_addon.markers.feet import StandingSettings, find_stances, lift_off_floor
from fabrik_addon.markers.files.any_file import read_markers

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("FABRIK_TEST_DATA", ROOT.parent / "shared" / "data"))
SAMPLES = ROOT / "sample_rigs"
HEIGHT = 1.75

pytestmark = [pytest.mark.one_blender, pytest.mark.usefixtures("clean_scene")]


@pytest.fixture
def balancing(tmp_path):
    """Joint keypoints of a markerless recording, baked onto the sample person."""
    recording = DATA / "Pose2Sim_markers.trc"
    if not recording.exists():
        pytest.skip("FABRIK_TEST_DATA has no Pose2Sim_markers.trc")
    output = tmp_path / "balancing.blend"
    return baked(recording, output, "--map", SAMPLES / "pose2sim_map.json", "--scale", "auto"), output


def baked(recording, output, *flags):
    """The result of the command bake on the sample person."""
    parser = Parser()
    add_arguments(parser, COMMANDS["bake"])
    chosen = parser.parse_args([str(each) for each in (SAMPLES / "human.blend", recording, "--output", output, *flags)])
    (take,) = planned(chosen, chosen.recordings)
    result, lines = bake_file(chosen, take)
    scale = float(re.search(r"scaled by ([\d.]+)", lines[0])[1])
    return SimpleNamespace(bake=result, lines=lines, scale=scale, clip=read_markers(recording))


def test_a_markerless_recording_fits_a_person_of_other_proportions(balancing):
    result, _ = balancing
    assert result.scale == pytest.approx(1.03, abs=0.02)
    assert result.bake.report.total.rms < 0.027
    assert all(marker.rms < 0.04 for marker in result.bake.report.per_marker())


def test_no_joint_jumps(balancing):
    """At 60 Hz no hand moves faster than 10 m/s in a balancing trial."""
    result, _ = balancing
    for tree in result.bake.trees:
        steps = np.linalg.norm(np.diff(tree.solution.tails, axis=0), axis=2)
        assert steps.max() < 10.0 / 60.0


def test_the_saved_file_has_the_solved_poses(balancing):
    result, output = balancing
    bpy.ops.wm.open_mainfile(filepath=str(output))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    for tree in result.bake.trees:
        for row in range(0, len(result.bake.frames), 9):
            bpy.context.scene.frame_set(int(result.bake.frames[row]))
            shown = np.array([rig.pose.bones[name].tail for name in tree.problem.tree.skeleton.names])
            assert np.abs(shown - tree.solution.tails[row]).max() < 1e-4 * HEIGHT


@pytest.mark.parametrize("endless", [False, True])
def test_a_whole_bake_is_no_farther_from_opensim_than_the_solver(endless):
    """As keyed in Blender, with the limits of OpenSim's joints, or with hinges that may rotate fully."""
    model = gait_model()
    targets = gait_targets(model)
    reference = model.solve(targets)
    placed, rig = model.place(reference), model.rig(reference)
    if endless:
        ends = {
            name: Hinge(limit.axis, -np.pi, np.pi) for name, limit in rig.limits.items() if isinstance(limit, Hinge)
        }
        rig.limits |= ends
    errors, heads = keyed_gait(rig, [marker.name for marker in model.markers], targets)
    theirs = np.stack([placed[name][1] for name in rig.skeleton.names], axis=1)
    assert np.percentile(np.linalg.norm(heads - theirs, axis=2), 95.0) < 0.0033
    weighted = np.sqrt((model.weights * errors**2).sum(axis=1) / model.weights.sum())
    assert weighted.mean() <= 11.53e-3


def biggest_turn(solution):
    """The largest rotation of a bone from one frame to the next, in degrees."""
    cosines = np.abs((solution.rotations[1:] * solution.rotations[:-1]).sum(axis=2))
    return np.degrees(2.0 * np.arccos(np.clip(cosines, 0.0, 1.0))).max()


def presets_only(folder, name, static=None, *flags):
    """A recording on the sample person with only its labels, and a static trial if there is one."""
    files = [DATA / each for each in (name, static) if each is not None]
    for file in files:
        if not file.exists():
            pytest.skip(f"FABRIK_TEST_DATA has no {file.name}")
    trial = ("--static", files[1]) if static else ()
    return baked(files[0], folder / "baked.blend", *trial, *flags)


@pytest.fixture(scope="module")
def walking(tmp_path_factory):
    """A walk on a treadmill, calibrated from its static trial."""
    folder = tmp_path_factory.mktemp("walk")
    return presets_only(folder, "gait2354_subject01_walk1.trc", "gait2354_subject01_static.trc")


class TestPresetsOnly:
    """Other people's recordings, matched and calibrated automatically."""

    def test_nine_markers_in_ten_find_their_bone(self, walking):
        count = re.match(r"(\d+) markers of '.*' matched to bones \(Helen Hayes", walking.lines[1])[1]
        assert int(count) >= 0.9 * len(walking.clip.names)

    def test_the_fit_is_about_as_good_as_with_a_model_of_the_person(self, walking):
        """OpenSim's scaled model of this person has 11.53 mm, weighted; this rig is another person's."""
        report = walking.bake.report
        used = report.errors if report.outliers is None else np.where(report.outliers, np.nan, report.errors)
        weights = [effector.weight for tree in walking.bake.trees for effector in tree.problem.effectors]
        weighted = np.broadcast_to(weights, used.shape)[~np.isnan(used)]
        assert np.sqrt(np.average(used[~np.isnan(used)] ** 2, weights=weighted)) <= 1.2 * 11.53e-3
        assert walking.scale == pytest.approx(0.97, abs=0.03)
        assert walking.bake.report.status_counts() == {"FITTED": len(walking.bake.frames)}

    def test_feet_are_on_the_floor(self, walking):
        (tree,) = walking.bake.trees
        solution = tree.solution
        assert np.abs(lift_off_floor(solution)).max() < 0.02

    def test_no_pops(self, walking):
        """At 60 Hz no bone of a walking person rotates by more than 15 degrees a frame, or 900 a second."""
        (tree,) = walking.bake.trees
        solution = tree.solution
        assert biggest_turn(solution) < 15.0
        bends = np.linalg.norm(np.diff(solution.tails, 2, axis=0), axis=2)
        assert bends.max() < 0.03

    def test_planted_feet_move_with_the_belt(self, walking):
        """Heels and toes do not move relative to the belt, whose speed is that of the recorded feet."""
        (tree,) = walking.bake.trees
        skeleton, solution = tree.problem.tree.skeleton, tree.solution
        rate = walking.clip.rate
        for side in "LR":
            column = walking.clip.names.index(f"{side}.Toe.Tip")
            recorded = to_z_up(read_markers(DATA / walking.clip.source))
            marker = recorded.positions[:, column] * walking.scale
            low = marker[:, 2] < np.percentile(marker[:, 2], 35)
            belt = np.median(np.gradient(marker, axis=0)[low] * rate, axis=0)
            effector = next(each for each in tree.problem.effectors if each.bone in (f"foot.{side}", f"toe.{side}"))
            shown = (solution.matrices[:, skeleton.index(effector.bone)] @ (*effector.offset, 1.0))[:, :3]
            carried = shown - np.arange(len(shown))[:, None] * belt / rate
            spans = find_stances(carried, rate, settings=StandingSettings(speed=0.25))
            assert spans
            drifts = [np.ptp(carried[first:end, :2], axis=0).max() for first, end in spans]
            assert max(drifts) < 0.05

    def test_planted_feet_neither_slide_nor_pop(self, tmp_path):
        files = ("gait2354_subject01_walk1.trc", "gait2354_subject01_static.trc")
        (tree,) = presets_only(tmp_path, *files, "--plant-feet").bake.trees
        assert max(stance.drift_before for stance in tree.stances) > 0.02
        assert max(stance.drift_after for stance in tree.stances) < 0.01
        assert biggest_turn(tree.solution) < 15.0

    def test_plug_in_gait_legs_from_a_c3d(self, tmp_path):
        result = presets_only(tmp_path, "PiG_Motion3_FF.c3d")
        assert result.lines[1].startswith("16 markers of 'PiG_Motion3_FF' matched to bones (Plug-in Gait)")
        assert result.bake.report.total.rms < 0.012
        (tree,) = result.bake.trees
        solution = tree.solution
        assert np.linalg.norm(np.diff(solution.tails, axis=0), axis=2).max() < 10.0 / result.clip.rate
        assert np.abs(lift_off_floor(solution)).max() < 0.02
