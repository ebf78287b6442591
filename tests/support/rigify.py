"""Rigs that Rigify generates, made once for all tests and kept as files."""

import os
import tempfile
from functools import cache
from pathlib import Path

import bpy
import pytest
from support.processes import run_python

# In a process of its own: after Rigify has run, Blender's module does not survive the end of Python.
GENERATE = """
import importlib, os
import bpy
import addon_utils
if addon_utils.enable("rigify", default_set=True) is None:
    os._exit(3)
kind, file = sys.argv[-2:]
data = bpy.data.armatures.new("Meta")
bpy.context.scene.collection.objects.link(bpy.data.objects.new("Meta", data))
bpy.context.view_layer.objects.active = bpy.data.objects["Meta"]
bpy.ops.object.mode_set(mode="EDIT")
importlib.import_module("rigify.metarigs." + kind).create(bpy.context.object)
bpy.ops.object.mode_set(mode="OBJECT")
bpy.ops.pose.rigify_generate()
bpy.context.object.name = "Generated"
bpy.data.objects.remove(bpy.data.objects["Meta"])
bpy.ops.wm.save_as_mainfile(filepath=file)
os._exit(0)
"""


@cache
def _made(kind):
    folder = Path(tempfile.mkdtemp(prefix="rigify"))
    file = folder / f"{kind}.blend"
    ended = run_python(GENERATE, kind, file, env={**os.environ, "BLENDER_USER_RESOURCES": str(folder)})
    return ended.returncode, file, ended.stderr


def rigify_file(kind):
    """The .blend with a generated rig, such as of "Basic.basic_human", "human" or "Animals.cat"."""
    code, file, error = _made(kind)
    if code == 3:
        pytest.skip("this Blender has no Rigify")
    assert code == 0, error
    return file


def open_rigify(kind):
    """The generated rig in the scene, the active object."""
    bpy.ops.wm.open_mainfile(filepath=str(rigify_file(kind)))
    rig = bpy.data.objects["Generated"]
    bpy.context.view_layer.objects.active = rig
    return rig
