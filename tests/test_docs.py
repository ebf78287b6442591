"""What the documentation names is there: files, and functions, classes and methods in them."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMED = [
    (page, *found)
    for page in PAGES
    for found in re.findall(r"`([\w/.]+\.py)(?::([\w.]+))?`", page.read_text(encoding="utf-8"))
]


def defined(path):
    """The functions and classes of a file, and methods as `Class.method`."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, kinds):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, kinds))


@pytest.mark.parametrize(
    ("page", "path", "name"), NAMED, ids=[f"{page.name}-{path}-{name}" for page, path, name in NAMED]
)
def test_what_is_named_is_there(page, path, name):
    (file,) = [place / path for place in (ROOT, ROOT / "fabrik_addon") if (place / path).is_file()]
    assert not name or name in defined(file)
