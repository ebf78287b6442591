"""Rigs that Rigify generates, made once for all runs of a Blender and kept as files: a cat takes it 13 seconds."""

import hashlib
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


def _folder():
    """Where this Blender's are kept; another recipe has another place."""
    recipe = hashlib.sha256(GENERATE.encode()).hexdigest()[:8]
    return Path(__file__).parents[2] / "build" / "rigify" / f"{bpy.app.version_string}-{recipe}"


@cache
def rigify_file(kind):
    """The .blend with a generated rig, such as of "Basic.basic_human", "human" or "Animals.cat"."""
    file = _folder() / f"{kind}.blend"
    if file.exists():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        made = Path(folder) / file.name
        ended = run_python(GENERATE, kind, made, env={**os.environ, "BLENDER_USER_RESOURCES": folder})
        if ended.returncode == 3:
            pytest.skip("this Blender has no Rigify")
        assert ended.returncode == 0, ended.stderr
        # At once, as others may be making it too.
        made.replace(file)
    return file


def open_rigify(kind):
    """The generated rig in the scene, the active object."""
    return _opened(rigify_file(kind))


@cache
def _set_up_file(kind):
    open_rigify(kind)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.fabrik.use_control_rig()
    file = Path(bpy.app.tempdir) / f"{kind}.set_up.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(file), copy=True)
    return file


def open_set_up(kind):
    """The same in Pose mode, once its controls have been found: that is done once for all tests of a process."""
    return _opened(_set_up_file(kind))


def _opened(file):
    bpy.ops.wm.open_mainfile(filepath=str(file))
    rig = bpy.data.objects["Generated"]
    bpy.context.view_layer.objects.active = rig
    return rig
