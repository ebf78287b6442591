"""Each benchmark still finds everything that it imports from the add-on."""

import ast
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import cases, redraw
from benchmarks.run import PARTS, all_rows, function_of, results_page
from benchmarks.tables import Aim, aims_table, table
from fabrik_addon.blender.settings.limit_properties import read_limits

pytestmark = pytest.mark.one_blender

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").rglob("*.py"))
OURS = ("benchmarks", "fabrik_addon", "sample_rigs", "support")


@pytest.mark.parametrize("part", PARTS)
def test_every_part_exists(part):
    assert callable(function_of(part))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_finds_what_it_imports(path):
    """At module level and in functions, for our own modules: others may be installed by the user."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith(OURS) or imported(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module.startswith(OURS):
            module = imported(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or imported(f"{node.module}.{alias.name}")


def test_a_tree_s_limits_are_on_its_rig():
    """The rig of a benchmark's tree has the limits as properties, which a drag reads."""
    tree = cases.tree()
    assert read_limits(tree.armature).keys() == tree.limits.keys()
    assert len(tree.limits) == 60


def test_redraws_are_measured():
    """The substitutes for Blender's layout have everything that the panels use."""
    spent = redraw.python_of(redraw.crowded_rig(10, 2))
    assert len(spent) == 4
    assert min(spent.values()) > 0.0


def test_a_question_s_table_has_the_worst_case_of_each_aim_and_what_is_not_met_first():
    aims = [
        Aim.at_most("time", 2.0, 1.5, "ms"),
        *(
            Aim.at_least("solved", 99.0, share, " %", case=f"rig {share}", other="10 % (plain)")
            for share in (99, 98, 100)
        ),
    ]
    rows = [line for line in aims_table("Fast?", aims).splitlines() if line.startswith("|")][2:]
    assert rows == [
        "| solved | **98 %** (rig 98; 2 of 3 met) | 10 % (plain) | ≥ 99 % |",
        "| time | 1.5 ms |  | ≤ 2 ms |",
    ]


def test_the_page_shows_aims_and_short_tables_and_the_csv_every_row():
    rows = [(number, number**2) for number in range(20)]
    long = {"text": table("Long", ("n", "square"), rows), "aims": [asdict(Aim.at_most("time", 2, 3, "ms"))]}
    short = {"text": table("Short", ("n", "square"), rows[:2]), "aims": []}
    shared = {"software": "Blender", "day": "2026-11-22", "load": 1.0}
    kept = {part: {**(short if part == "bake" else long), **shared} for part in PARTS}
    page = results_page(kept)
    assert "### Short" in page
    assert "Long" not in page
    assert page.count("**3 ms**") == len({line for line in page.splitlines() if line.startswith("## ")})
    found = list(all_rows(kept))
    assert found[0] == ("part", "table", "row", "column", "value")
    assert len(found) == 1 + 2 * (2 + 20 * (len(PARTS) - 1))
    assert ("redraw", "Long", 20, "square", "361") in found


def imported(name):
    """A module; True for one that needs a package which is not installed here."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name.startswith(OURS):
            raise
        return True
