"""Shared by all tests: a separate profile, Blender if it is available, and the choice of what is tested.

`pytest --extension-zip=build/fabrik.zip tests/blender` installs that zip, and then every `import fabrik_addon…` in the
tests gets a module of the installed extension instead of the checkout's.
"""

import importlib
import importlib.util
import os
import pkgutil
import shutil
import sys
import tempfile
from itertools import chain, groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import settings

HAS_BLENDER = importlib.util.find_spec("bpy") is not None
ROOT = Path(__file__).parents[1]
REPOSITORY = "user_default"
EXTENSION = f"bl_ext.{REPOSITORY}.fabrik"

collect_ignore = [] if HAS_BLENDER else ["blender"]

# CI repeats the same examples in each run, so that its result does not vary. On shared machines, which may be slow,
# fewer examples are enough.
CI = "CI" in os.environ
settings.register_profile("fabrik", deadline=None, derandomize=CI, max_examples=40 if CI else 100)
settings.load_profile("fabrik")


def pytest_addoption(parser):
    parser.addoption("--extension-zip", type=Path, help="install this zip and test it, not the checkout")
    parser.addoption("--share", type=Path, help="processes with the same folder share the files with tests among them")


def pytest_configure(config):
    running = getattr(sys.modules.get("bpy"), "app", None)
    if config.option.extension_zip and running is not None and running.binary_path:
        # If Blender is a program, it has loaded its profile before pytest began. The profile must be empty.
        config.blender_profile = os.environ["BLENDER_USER_RESOURCES"]
    else:
        config.blender_profile = tempfile.mkdtemp(prefix="fabrik-profile-")
        os.environ["BLENDER_USER_RESOURCES"] = config.blender_profile
    if HAS_BLENDER:
        importlib.import_module("bpy")  # `mathutils` is there from now on
    if config.option.extension_zip:
        _install(config.option.extension_zip.resolve())


def pytest_sessionfinish(session, exitstatus):
    session.config.exit_status = int(exitstatus)


def pytest_unconfigure(config):
    if config.option.extension_zip:
        _switch_off()
    shutil.rmtree(config.blender_profile, ignore_errors=True)
    if HAS_BLENDER and hasattr(config, "exit_status"):
        # Blender's module sometimes waits forever for its audio thread when Python ends (seen once with 4.5).
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.flush()
        sys.stdout.flush()
        os._exit(config.exit_status)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "blender"):
            item.add_marker("blender")


def pytest_runtestloop(session):
    """With `--share`, run the tests of a file only if no other process has begun with the file."""
    folder = session.config.option.share
    if folder is None or session.testsfailed:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    files = groupby(session.items, lambda item: item.path)
    mine = (item for path, items in files if _is_first(folder, path) for item in items)
    for item, following in pairwise(chain(mine, [None])):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return True


def _is_first(folder, path):
    try:
        (folder / "-".join(path.relative_to(ROOT).parts)).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _install(zip_path):
    """Install and enable the zip, and let its modules answer to the names that they have in a checkout."""
    import addon_utils
    import bpy

    addon_utils.enable("bl_pkg")
    bpy.ops.extensions.package_install_files(
        filepath=str(zip_path), repo=REPOSITORY, enable_on_install=True, overwrite=True
    )
    package = importlib.import_module(EXTENSION)
    for module in pkgutil.walk_packages(package.__path__, f"{EXTENSION}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
    for name, module in list(sys.modules.items()):
        if name.startswith(EXTENSION):
            sys.modules[name.replace(EXTENSION, "fabrik_addon", 1)] = module


def _switch_off():
    """Unregister everything; otherwise Blender's module crashes when Python ends."""
    import addon_utils

    addon_utils.disable(EXTENSION)
    addon_utils.disable("bl_pkg")


@pytest.fixture(scope="session")
def addon_folder(tmp_path_factory):
    """A folder that holds the `fabrik_addon` under test; `python -m fabrik_addon` runs there."""
    import fabrik_addon

    folder = tmp_path_factory.mktemp("addon")
    (folder / "fabrik_addon").symlink_to(Path(fabrik_addon.__file__).parent)
    return folder
