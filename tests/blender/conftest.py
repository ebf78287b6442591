"""Tests in a headless Blender: the add-on is registered once, and each test that asks for it gets an empty scene.

`../conftest.py` first sets the profile, and the add-on that is tested.
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("FABRIK_TEST_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session", autouse=True)
def _registered_addon(request):
    """Register the checkout for the whole run, and unregister it: otherwise Blender's module crashes at exit.

    An installed extension is enabled and disabled instead.
    """
    import fabrik_addon

    if request.config.option.extension_zip:
        yield
        return
    fabrik_addon.register()
    yield
    fabrik_addon.unregister()


@pytest.fixture
def clean_scene():
    """An empty file with the factory's settings, and the add-on still switched on; gives the scene."""
    import bpy

    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    assert hasattr(bpy.types.Object, "fabrik"), "opening a file has switched the add-on off"
    return bpy.context.scene


@pytest.fixture
def preferences():
    """Blender's editing preferences, with the defaults of 4.5; restored at the end, since a new file does not."""
    import bpy

    edit = bpy.context.preferences.edit
    names = ("use_keyframe_insert_available", "use_keyframe_insert_needed", "use_auto_keyframe_insert_needed")
    before = {name: getattr(edit, name) for name in names}
    edit.use_keyframe_insert_available = False
    yield edit
    for name, value in before.items():
        setattr(edit, name, value)


@pytest.fixture
def recording():
    """Gives the path of a real recording by its name, from the folder that FABRIK_TEST_DATA names; skips without it."""

    def path_of(name):
        if not (DATA / name).exists():
            pytest.skip(f"FABRIK_TEST_DATA has no {name}")
        return DATA / name

    return path_of
