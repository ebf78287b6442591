"""What Blender loads at start: declarations of the extension, and no code that does the work."""

from pathlib import Path

from support.processes import run_python

ROOT = Path(__file__).parents[2]
TABLES = {"markers.files", "markers.mapping", "markers.mapping.marker_sets"}
REGISTER = """
import os, sys
import bpy, numpy
import fabrik_addon
fabrik_addon.register()
own = {name.partition(".")[2]: module for name, module in sys.modules.items() if name.startswith("fabrik_addon.")}
print("LOADED", *own)
print("NUMPY", *(name for name, module in own.items() if numpy in vars(module).values()))
fabrik_addon.unregister()
sys.stdout.flush()
os._exit(0)  # Blender's module is not always able to leave in peace
"""


def test_neither_the_solver_nor_numpy_is_loaded():
    done = run_python(REGISTER, path=ROOT)
    assert done.returncode == 0, done.stderr
    said = {line.split()[0]: set(line.split()[1:]) for line in done.stdout.splitlines() if line.strip()}
    assert "blender.registration" in said["LOADED"]
    assert not {name for name in said["LOADED"] if name.partition(".")[0] == "core"}
    assert {name for name in said["LOADED"] if name.startswith("markers.")} == TABLES
    assert said["NUMPY"] == set()
