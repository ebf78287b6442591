"""`python -m fabrik_addon retarget`, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import bpy
import pytest

pytestmark = pytest.mark.skipif(bool(bpy.app.binary_path), reason="this Blender is a program, and no module of Python")
RIG = Path(__file__).parents[3] / "sample_rigs" / "human.blend"


@pytest.fixture
def command(addon_folder):
    """Runs the command; gives what came of it."""

    def run(*arguments):
        call = [sys.executable, "-m", "fabrik_addon", "retarget", *map(str, arguments)]
        return subprocess.run(call, cwd=addon_folder, capture_output=True, text=True)

    return run


def test_motions_become_files_and_what_fails_is_said_in_a_line(command, recording, tmp_path):
    missing = tmp_path / "missing.bvh"
    done = command(RIG, recording("bvh/dab.bvh"), missing, "--output", tmp_path, "--report", tmp_path, "--range", 1, 20)
    assert done.returncode == 1
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("fabrik_retarget: ")]
    assert said.startswith("fabrik_retarget: missing.bvh: ")
    assert "no such file" in said
    assert "22 bones, 20 frames of 'dab'" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dab.blend", "dab.csv"]
