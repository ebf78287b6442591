"""Who imports whom: one way between folders, and no file in a circle. Imports inside functions and for types count."""

import ast
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ADDON = Path(__file__).parents[1] / "fabrik_addon"
MODULES = sorted(ADDON.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})
MOST_MODULES = 14

# From the bottom up: a room imports only from rooms before it.
ROOMS = ("core", "human", "markers", "blender")
BLENDER_ROOMS = ("settings", "rig", "limits", "goals", "posing", "capture", "bake", "ui", "registration")


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
    """What a folder's parts, its files and its folders, import of one another."""

    def part(path):
        return path.relative_to(folder).parts[0] if path.is_relative_to(folder) else None

    graph = {}
    for path, others in IMPORTS.items():
        if part(path):
            graph.setdefault(part(path), set()).update({part(other) for other in others} - {part(path), None})
    return graph


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_parts_of_a_folder_import_one_way(folder):
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


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_folder_is_taken_in_at_a_glance(folder):
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST_MODULES
