"""The benchmarks use much of what is inside the add-on: each still finds all that it imports."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"redraw_window", "plots"}  # in a window; with a library that `make bench-paper` installs
SCRIPTS = [path for path in sorted((ROOT / "benchmarks").rglob("*.py")) if path.stem not in ELSEWHERE]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports(path):
    importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
