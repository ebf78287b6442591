"""Tests in a headless Blender: the add-on is registered once, and each test that asks for it gets an empty scene.

Nothing is imported before `../conftest.py` has settled the profile and which add-on is tested.
"""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _registered_addon(request):
    """Register the checkout for the whole run, and unregister it: Blender's module crashes at exit otherwise.

    An installed extension is switched on and off where it is installed.
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
