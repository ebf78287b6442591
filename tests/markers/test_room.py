"""The markers room works in plain Python: nothing of Blender is imported."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

BLOCKED = """
import importlib, pkgutil, sys
for name in ("bpy", "mathutils", "bmesh", "gpu", "bpy_extras"):
    sys.modules[name] = None
import fabrik_addon.markers as room
for module in pkgutil.iter_modules(room.__path__):
    importlib.import_module(f"{room.__name__}.{module.name}")
assert set(room.__all__) <= set(dir(room))
"""


def test_every_module_imports_with_blender_blocked() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
