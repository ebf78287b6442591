"""Imports between modules: in one direction between folders, and without cycles.

Includes imports in functions and for types.
"""

import ast
import os
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ADDON = Path(__file__).parents[1] / "fabrik_addon"
MODULES = sorted(ADDON.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})

# From the bottom up: a package imports only from packages before it. All but the last need no Blender.
ROOMS = ("core", "human", "markers", "retarget", "blender")
PURE_MODULES = [path for path in MODULES if path.relative_to(ADDON).parts[0] in ROOMS[:-1]]
# May use mathutils if available.
SCALAR = "scalar.py"
BLENDER_ROOMS = (
    "settings",
    "rig",
    "control",
    "limits",
    "goals",
    "posing",
    "capture",
    "bake",
    "retarget",
    "edit",
    "ui",
    "registration",
)

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
    if path.parts[1] in sys.argv[1].split() and path.name != "scalar.py":
        importlib.import_module(".".join(path.with_suffix("").parts))
print(len([name for name in sys.modules if name.startswith("fabrik_addon.")]))
"""


def name_of(path):
    return path.relative_to(ADDON.parent).with_suffix("").as_posix()


def imported_by(path):
    """The add-on's own files that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                places = (folder / f"{alias.name}.py", folder / alias.name / "__init__.py", folder.with_suffix(".py"))
                yield next((place for place in places if place.exists()), folder / "__init__.py")


IMPORTS = {path: set(imported_by(path)) - {path} for path in MODULES}


def imports_between_parts(folder):
    """The imports between the files and folders of a folder."""

    def part(path):
        return path.relative_to(folder).parts[0] if path.is_relative_to(folder) else None

    graph = {}
    for path, others in IMPORTS.items():
        if part(path):
            graph.setdefault(part(path), set()).update({part(other) for other in others} - {part(path), None})
    return graph


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_parts_of_a_folder_have_no_import_cycles(folder):
    try:
        TopologicalSorter(imports_between_parts(folder)).prepare()
    except CycleError as error:
        circle = error.args[1]
        guilty = [
            f"{name_of(path)} imports {name_of(other)}"
            for path, others in IMPORTS.items()
            for other in others
            if any(
                path.is_relative_to(folder / above) and other.is_relative_to(folder / below)
                for below, above in pairwise(circle)
            )
        ]
        pytest.fail("\n".join(guilty))


@pytest.mark.parametrize(
    ("folder", "order"), [(ADDON, ROOMS), (ADDON / "blender", BLENDER_ROOMS)], ids=["rooms", "blender"]
)
def test_rooms_import_from_rooms_before_them(folder, order):
    for path, others in IMPORTS.items():
        own = [
            place
            for place, room in enumerate(order)
            if (folder / room) in {path.parent, *path.parents, path.with_suffix("")}
        ]
        for other in others:
            used = [
                place for place, room in enumerate(order) if (folder / room) in {*other.parents, other.with_suffix("")}
            ]
            assert not own or not used or used <= own, f"{name_of(path)} imports {name_of(other)}"


def names_imported(path):
    """(level, dotted name) of each name that a file imports, from anywhere."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.level, f"{node.module or ''}.{alias.name}") for alias in node.names)


def packages_imported(path):
    return {name.partition(".")[0] for level, name in names_imported(path) if not level}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_own_modules_are_imported_relatively_and_by_name(path):
    assert "fabrik_addon" not in packages_imported(path)
    assert not [name for _level, name in names_imported(path) if name.endswith("*")]


@pytest.mark.parametrize("path", PURE_MODULES, ids=name_of)
def test_pure_rooms_need_numpy_alone(path):
    allowed = {"numpy", *sys.stdlib_module_names}
    if path.name == SCALAR:
        allowed |= {"mathutils"}
    assert packages_imported(path) <= allowed


def test_pure_rooms_import_where_all_but_numpy_is_blocked():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, " ".join(ROOMS[:-1])],
        cwd=ADDON.parent,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len([path for path in PURE_MODULES if path.name != SCALAR])
