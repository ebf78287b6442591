"""Imports between modules: in one direction between folders, and without cycles.

Includes imports in functions and for types.
"""

import ast
import os
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import pytest
from support.messages import ADDON, parsed

MODULES = sorted(ADDON.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})

# From the bottom up: a package imports only from packages before it. All but the last need no Blender.
ROOMS = ("core", "human", "markers", "retarget", "blender")
PURE_MODULES = [path for path in MODULES if path.relative_to(ADDON).parts[0] in ROOMS[:-1]]
# Packages that may use mathutils if it is available.
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
    "command_line",
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


@cache
def names_imported(path):
    """(level, dotted name) of each name that a file imports, from anywhere."""
    names = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names += ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names += ((node.level, f"{node.module or ''}.{alias.name}") for alias in node.names)
    return names


def imported_by(path):
    """The add-on's own files that a file imports."""
    for level, name in names_imported(path):
        if level:
            *folders, last = filter(None, name.split("."))
            folder = path.parents[level - 1].joinpath(*folders)
            places = (folder / f"{last}.py", folder / last / "__init__.py", folder.with_suffix(".py"))
            yield next((place for place in places if place.exists()), folder / "__init__.py")


@cache
def imports():
    """The add-on's own files that each file imports."""
    return {path: set(imported_by(path)) - {path} for path in MODULES}


def imports_between_parts(folder):
    """The imports between the files and folders of a folder."""

    @cache
    def part(path):
        return path.relative_to(folder).parts[0] if path.is_relative_to(folder) else None

    graph = {}
    for path, others in imports().items():
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
            for path, others in imports().items()
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
    @cache
    def room(path):
        """The place in the order of the folder or module that a file is or is in, or None."""
        part = path.relative_to(folder).parts[0].removesuffix(".py") if path.is_relative_to(folder) else None
        return order.index(part) if part in order else None

    for path, others in imports().items():
        for other in others:
            own, used = room(path), room(other)
            assert own is None or used is None or used <= own, f"{name_of(path)} imports {name_of(other)}"


def packages_imported(path):
    return {name.partition(".")[0] for level, name in names_imported(path) if not level}


def test_own_modules_are_imported_relatively_and_by_name():
    assert not [path for path in MODULES if "fabrik_addon" in packages_imported(path)]
    assert not [path for path in MODULES if any(name.endswith("*") for _level, name in names_imported(path))]


def test_pure_rooms_need_numpy_alone():
    allowed = {"numpy", *sys.stdlib_module_names}
    found = {
        path: packages_imported(path) - allowed - ({"mathutils"} if path.name == SCALAR else set())
        for path in PURE_MODULES
    }
    assert not {path: names for path, names in found.items() if names}


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
