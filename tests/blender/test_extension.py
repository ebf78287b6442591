"""The built extension: the contents of the zip, and that these tests test an installed one."""

import py_compile
import sys
import tomllib
import zipfile
from pathlib import Path

import addon_utils
import bpy
import pytest
from support.processes import extension_tool

import fabrik_addon
from fabrik_addon.blender.ui.panels.base import address_of, mail_address

ROOT = Path(__file__).parents[2]
ADDON = ROOT / "fabrik_addon"


@pytest.fixture(scope="module")
def extension_zip(pytestconfig, tmp_path_factory):
    """The zip that is being tested, or one built from the checkout by this Blender."""
    if pytestconfig.option.extension_zip:
        return pytestconfig.option.extension_zip
    path = tmp_path_factory.mktemp("build") / "fabrik.zip"
    py_compile.compile(str(ADDON / "__init__.py"))  # an import leaves them, too
    extension_tool("build", "--source-dir", ADDON, "--output-filepath", path)
    return path


@pytest.fixture
def installed(pytestconfig):
    """The package of the installed extension; the test is skipped if none is installed."""
    if not pytestconfig.option.extension_zip:
        pytest.skip("the checkout is tested, not an installed zip")
    return fabrik_addon.__name__


def test_zip_holds_the_addon_and_nothing_else(extension_zip):
    files = {path for path in ADDON.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    expected = {str(path.relative_to(ADDON)) for path in files}
    with zipfile.ZipFile(extension_zip) as archive:
        held = {name for name in archive.namelist() if not name.endswith("/")}
    assert held == expected


def test_zip_is_small(extension_zip, installed):
    """As `make zip` packs it."""
    assert extension_zip.stat().st_size <= 720_000


def test_zip_is_valid(extension_zip):
    assert "Success" in extension_tool("validate", extension_zip)


def test_every_module_under_test_is_the_installed_one(installed, pytestconfig):
    modules = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "fabrik_addon"}
    assert len(modules) > 10
    for name, module in modules.items():
        assert module.__name__ == name.replace("fabrik_addon", installed, 1)
        assert Path(module.__file__).is_relative_to(pytestconfig.blender_profile)


def test_package_is_the_name_that_blender_enabled(installed):
    assert installed in bpy.context.preferences.addons
    assert addon_utils.check(installed) == (True, True)


def test_guide_and_mail_address_are_those_of_the_manifest():
    """From the manifest in the package, installed or not."""
    manifest = tomllib.loads((ADDON / "blender_manifest.toml").read_text(encoding="utf-8"))
    assert address_of("drag") == f"{manifest['website']}/guide/drag.html"
    assert manifest["maintainer"].endswith(f" <{mail_address()}>")


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
