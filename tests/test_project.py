"""The project as a whole: versions, requirements, the license and the manifest's texts."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ADDON = ROOT / "fabrik_addon"
MANIFEST = tomllib.loads((ADDON / "blender_manifest.toml").read_text(encoding="utf-8"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MODULES = sorted(ADDON.rglob("*.py"))


def name_of(path):
    return str(path.relative_to(ROOT))


def test_changelog_begins_with_the_manifests_version():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest[1] == MANIFEST["version"]


@pytest.mark.parametrize("text", [MANIFEST["tagline"], *MANIFEST["permissions"].values()])
def test_manifest_texts_fit_and_have_no_full_stop(text):
    assert 0 < len(text) <= 64
    assert text[-1].isalnum()


def test_makefile_and_pyproject_know_the_same_blenders():
    listed = re.search(r"^BLENDERS := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    groups = {name for name in PYPROJECT["dependency-groups"] if name.startswith("blender-")}
    assert {f"blender-{version}" for version in listed[1].split()} == groups
    assert f"blender-{MANIFEST['blender_version_min'].removesuffix('.0')}" in groups


def test_every_requirement_is_pinned():
    listed = [entry for group in PYPROJECT["dependency-groups"].values() for entry in group if isinstance(entry, str)]
    assert listed
    assert all(re.fullmatch(r"[\w.-]+==[\d.]+", entry) for entry in listed), listed


def test_tests_of_one_pose_are_where_the_oldest_blender_looks_for_them():
    listed = re.search(r"^on_oldest = .*?(tests/.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    folders = [ROOT / name for name in listed[1].split()]
    marked = [path for path in (ROOT / "tests").rglob("test_*.py") if "mark.one_pose" in path.read_text("utf-8")]
    assert len(marked) > 10
    elsewhere = [name_of(path) for path in marked if not any(path.is_relative_to(folder) for folder in folders)]
    assert elsewhere == ["tests/test_project.py"]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_asks_for_blenders_version(path):
    """Code checks for features of the API, not for versions."""
    assert not re.search(r"\bapp\.version\b", path.read_text(encoding="utf-8"))


def test_licence_is_the_one_of_the_manifest():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert MANIFEST["license"] == ["SPDX:GPL-3.0-or-later"]
    assert "GNU GENERAL PUBLIC LICENSE" in text
    assert "Version 3, 29 June 2007" in text
