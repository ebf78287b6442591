"""Python in a process of its own, with the `bpy` that these tests run with."""

import subprocess
import sys

import bpy


def run_python(code, *arguments, path="", **options):
    """Run code that may import bpy, with `path` in front of `sys.path`; its last argument is `sys.argv[-1]`."""
    code = f"import sys\nsys.path.insert(0, {str(path)!r})\n{code}"
    program = bpy.app.binary_path  # empty where Blender is a module of this Python
    command = (
        [program, "-b", "--factory-startup", "--python-expr", code, "--"] if program else [sys.executable, "-c", code]
    )
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)
