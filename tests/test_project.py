"""What holds for the project as a whole: versions, the manifest's words, and who may import whom."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ADDON = ROOT / "fabrik_addon"
MANIFEST = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MODULES = sorted(ADDON.rglob("*.py"))
PURE_MODULES = [path for path in MODULES if path.relative_to(ADDON).parts[0] in {"core", "human", "markers"}]

# What a room may import of the add-on besides itself. Blender's side makes the command line a command of Blender's.
BELOW = {"core": set(), "human": {"core"}, "markers": {"core", "human"}, "blender": {"core", "human", "markers"}}

IMPORT_ALL = """
import importlib, pathlib, sys
import numpy
allowed = {"fabrik_addon", *sys.stdlib_module_names, *(name.partition(".")[0] for name in sys.modules)}
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ImportError(f"{name} is not to be imported here")
sys.meta_path.insert(0, Blocker())
for path in sorted(pathlib.Path("fabrik_addon").rglob("*.py")):
    if path.parts[1] in {"core", "human", "markers"} and path.name != "scalar.py":
        importlib.import_module(".".join(path.with_suffix("").parts))
print(len([name for name in sys.modules if name.startswith("fabrik_addon.")]))
"""


def name_of(path):
    return str(path.relative_to(ROOT))


def dotted(path):
    """`fabrik_addon/core/solve.py` as ("fabrik_addon", "core", "solve"); a package ends with "__init__"."""
    return path.relative_to(ROOT).with_suffix("").parts


def imports(path):
    """(level, dotted name) of each import in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.level, ".".join(filter(None, (node.module, alias.name)))


def rooms_imported(path):
    """The first name below `fabrik_addon` of each import from the add-on itself."""
    for level, name in imports(path):
        if level:
            yield (*dotted(path)[:-level], *name.split("."))[1]


def packages_imported(path):
    return {name.partition(".")[0] for level, name in imports(path) if not level}


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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
class TestModule:
    def test_rooms_are_imported_one_way(self, path):
        room = dotted(path)[1]
        if room in BELOW:
            assert set(rooms_imported(path)) <= {room, *BELOW[room]}

    def test_own_modules_are_imported_relatively(self, path):
        assert "fabrik_addon" not in packages_imported(path)

    def test_no_star_import(self, path):
        assert not [name for _level, name in imports(path) if name.endswith("*")]

    def test_only_keyframes_asks_for_blenders_version(self, path):
        if path != ADDON / "blender" / "rig" / "keyframes.py":
            assert not re.search(r"\bapp\.version\b", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PURE_MODULES, ids=name_of)
def test_pure_rooms_need_numpy_alone(path):
    allowed = {"numpy", *sys.stdlib_module_names}
    if path == ADDON / "core" / "backend" / "scalar.py":
        allowed |= {"mathutils"}
    assert packages_imported(path) <= allowed


def test_pure_rooms_import_where_all_but_numpy_is_blocked():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len(PURE_MODULES) - 1


def test_licence_is_the_one_of_the_manifest():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert MANIFEST["license"] == ["SPDX:GPL-3.0-or-later"]
    assert "GNU GENERAL PUBLIC LICENSE" in text
    assert "Version 3, 29 June 2007" in text


def test_checkout_imported_as_a_plain_file_does_nothing():
    done = subprocess.run([sys.executable, "__init__.py"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
