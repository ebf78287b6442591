"""The built extension: the contents of the zip, and that these tests test an installed one."""

import py_compile
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path

import addon_utils
import bpy
import pytest
from support.processes import extension_tool

import fabrik_addon
from fabrik_addon.blender.ui import translations
from fabrik_addon.blender.ui.panels.base import address_of

ROOT = Path(__file__).parents[2]
ADDON = ROOT / "fabrik_addon"
# The files of the checkout that the zip has besides the package.
BESIDE = ("blender_manifest.toml", "LICENSE")


@pytest.fixture(scope="module")
def extension_zip(pytestconfig, tmp_path_factory):
    """The zip that is being tested, or one built from the checkout by this Blender."""
    if pytestconfig.option.extension_zip:
        return pytestconfig.option.extension_zip
    folder = tmp_path_factory.mktemp("build")
    path, source = folder / "fabrik.zip", folder / "extension"
    py_compile.compile(str(ADDON / "__init__.py"))  # an import leaves them, too
    shutil.copytree(ADDON, source)
    for name in BESIDE:
        shutil.copy(ROOT / name, source)
    extension_tool("build", "--source-dir", source, "--output-filepath", path)
    return path


@pytest.fixture
def installed(pytestconfig):
    """The package of the installed extension; the test is for such a run only."""
    if not pytestconfig.option.extension_zip:
        pytest.skip("the checkout is tested, not an installed zip")
    return fabrik_addon.__name__


def test_zip_holds_the_addon_and_nothing_else(extension_zip):
    files = {path for path in ADDON.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    with zipfile.ZipFile(extension_zip) as archive:
        held = {name.removesuffix(".bz2") for name in archive.namelist() if not name.endswith("/")}
    files = {str(path.relative_to(ADDON)): path for path in files}
    assert held <= {*files, *BESIDE}
    # `make zip` packs catalogs, and leaves out each `__init__.py` that has only a docstring.
    missing = {*files, *BESIDE} - held
    assert all(name.endswith("/__init__.py") and len(files[name].read_text().splitlines()) <= 4 for name in missing)


def test_zip_is_small(extension_zip, installed):
    """As `make zip` packs it."""
    assert extension_zip.stat().st_size <= 700_000


def test_catalogs_are_read_packed_or_not():
    text = (ADDON / "blender" / "ui" / "translations" / "de.po").read_text(encoding="utf-8")
    assert translations.languages() == {"de": translations.table(text)}


def test_zip_is_valid(extension_zip):
    assert "Success" in extension_tool("validate", extension_zip)


def test_every_module_under_test_is_the_installed_one(installed, pytestconfig):
    modules = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "fabrik_addon"}
    assert len(modules) > 10
    for name, module in modules.items():
        assert module.__name__ == name.replace("fabrik_addon", installed, 1)
        # A folder without `__init__.py` has no file.
        assert Path(module.__file__ or module.__path__[0]).is_relative_to(pytestconfig.blender_profile)


def test_package_is_the_name_that_blender_enabled(installed):
    assert installed in bpy.context.preferences.addons
    assert addon_utils.check(installed) == (True, True)


def test_the_guide_is_on_the_website_of_the_manifest():
    """From the manifest, which is in an installed package and beside the one of a checkout."""
    website = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))["website"]
    assert address_of("drag") == f"{website}/guide/drag.html"


def test_the_installed_extension_can_be_disabled_and_enabled(installed):
    for _cycle in range(3):
        addon_utils.disable(installed, default_set=True)
        assert not hasattr(bpy.types.Object, "fabrik")
        assert installed not in bpy.context.preferences.addons
        addon_utils.enable(installed, default_set=True)
        assert hasattr(bpy.types.Object, "fabrik")
        assert installed in bpy.context.preferences.addons


def test_the_package_of_a_checkout_is_fabrik_addon(pytestconfig):
    if pytestconfig.option.extension_zip:
        pytest.skip("an installed zip is tested, not the checkout")
    assert fabrik_addon.__name__ == "fabrik_addon"
    assert Path(fabrik_addon.__file__).parents[1] == ROOT
