"""A real Blender with windows, driven by simulated mouse and keys: one process for each driver in this folder."""

import os
import subprocess
from pathlib import Path

import pytest
from support.formats import FORMATS, write_format

ROOT = Path(__file__).parents[2]
TOOLS = os.environ.get("FABRIK_GUI_TOOLS", "")
# Drivers that draw a lot get a small window.
SIZES = {"drive_poses": "720x760", "drive_posture": "1200x1000", "drive_formats": "1200x800"}
DRIVERS = sorted(Path(__file__).parent.glob("drive_*.py"))

pytestmark = pytest.mark.skipif(not TOOLS, reason="FABRIK_GUI_TOOLS is not set")


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda path: path.stem)
def test_driver_ends_well(driver, tmp_path):
    out = Path(os.environ.get("FABRIK_GUI_OUT") or tmp_path)
    (out / "formats").mkdir(parents=True, exist_ok=True)
    for name in FORMATS if driver.stem == "drive_formats" else ():
        write_format(out / "formats", name)
    options = {
        "--out": out,
        "--bind": ROOT / "tests",
        "--addon": ROOT / "build" / "fabrik.zip",
        "--blend": ROOT / "sample_rigs" / "human.blend",
        "--drive": driver,
        **({"--size": SIZES[driver.stem]} if driver.stem in SIZES else {}),
    }
    command = [Path(TOOLS) / "screenshot.sh", *(part for option in options.items() for part in option)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout, ended.stdout
