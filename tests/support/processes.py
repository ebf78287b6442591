"""Separate processes: Python with the `bpy` of these tests, and Blender's tool for extensions."""

import subprocess
import sys
from pathlib import Path

import bpy


def run_python(code, *arguments, path="", **options):
    """Run code that may import bpy, with `path` in front of `sys.path`; its last argument is `sys.argv[-1]`."""
    code = f"import sys\nsys.path.insert(0, {str(path)!r})\n{code}"
    program = bpy.app.binary_path  # empty where Blender is a module of this Python
    command = (
        [program, "-b", "--factory-startup", "--python-expr", code, "--"] if program else [sys.executable, "-c", code]
    )
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)


def extension_tool(*arguments):
    """Run `blender --command extension` with arguments; returns its output."""
    tool = Path(bpy.utils.system_resource("SCRIPTS")) / "addons_core" / "bl_pkg" / "cli" / "blender_ext.py"
    done = subprocess.run([sys.executable, str(tool), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
