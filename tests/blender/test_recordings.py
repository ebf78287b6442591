"""Real recordings on the sample person, read from the folder that FABRIK_TEST_DATA names; skipped without it."""

import os
from pathlib import Path

import bpy
import numpy as np
import pytest

from fabrik_addon.blender.bake_file import BakeFileRequest, bake_file

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("FABRIK_TEST_DATA", ROOT.parent / "shared" / "data"))
SAMPLES = ROOT / "sample_rigs"
HEIGHT = 1.75

pytestmark = pytest.mark.usefixtures("clean_scene")


@pytest.fixture
def balancing(tmp_path):
    """Joint keypoints of a markerless recording, baked onto the sample person."""
    recording = DATA / "Pose2Sim_markers.trc"
    if not recording.exists():
        pytest.skip("FABRIK_TEST_DATA has no Pose2Sim_markers.trc")
    request = BakeFileRequest(
        rig=SAMPLES / "human.blend",
        markers=recording,
        mapping=SAMPLES / "pose2sim_map.json",
        output=tmp_path / "balancing.blend",
        report=tmp_path / "balancing.csv",
        scale=None,
    )
    return bake_file(request), request


def test_a_markerless_recording_fits_a_person_of_other_proportions(balancing):
    result, _ = balancing
    assert result.scale == pytest.approx(1.03, abs=0.02)
    assert result.bake.report.total().rms < 0.027
    assert all(marker.rms < 0.04 for marker in result.bake.report.per_marker())


def test_no_joint_jumps(balancing):
    """At 60 Hz: nobody's hand moves faster than 10 m/s in a balancing trial."""
    result, _ = balancing
    for solution in result.bake.solutions:
        steps = np.linalg.norm(np.diff(solution.tails, axis=0), axis=2)
        assert steps.max() < 10.0 / 60.0


def test_the_saved_file_shows_what_was_solved(balancing):
    result, request = balancing
    bpy.ops.wm.open_mainfile(filepath=str(request.output))
    rig = next(thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    for tree in result.bake.trees:
        for row in range(0, len(result.bake.frames), 9):
            bpy.context.scene.frame_set(int(result.bake.frames[row]))
            shown = np.array([rig.pose.bones[name].tail for name in tree.goals.tree.skeleton.names])
            assert np.abs(shown - tree.solution.tails[row]).max() < 1e-4 * HEIGHT
