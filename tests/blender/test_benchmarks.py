"""The benchmarks use much of what is inside the add-on: each still finds all that it imports."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import cases, redraw
from benchmarks.run import PARTS, function_of
from fabrik_addon.blender.settings.limit_properties import read_limits

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").rglob("*.py"))
OURS = ("benchmarks", "fabrik_addon", "sample_rigs", "support")


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_there(part):
    assert callable(function_of(part))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_finds_what_it_imports(path):
    """At its top and inside functions, of what is ours: the rest may be installed by who measures."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith(OURS) or imported(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module.startswith(OURS):
            module = imported(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or imported(f"{node.module}.{alias.name}")


def test_a_tree_s_limits_are_on_its_rig():
    """A drag reads them there."""
    tree = cases.tree()
    assert read_limits(tree.armature).keys() == tree.limits.keys()
    assert len(tree.limits) == 60


def test_redraws_are_measured():
    """The stand-ins for Blender's layout take all that the panels ask of it."""
    spent = redraw.python_of(redraw.crowded_rig(10, 2))
    assert len(spent) == 4
    assert min(spent.values()) > 0.0


def imported(name):
    """A module; True for one that needs a package which is not installed here."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name.startswith(OURS):
            raise
        return True
