"""What the documentation names is there: files, and functions, classes and methods in them."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
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


@pytest.mark.parametrize("page", [*PAGES, *GUIDE], ids=lambda page: page.name)
def test_links_and_pictures_are_there(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_the_guide_is_six_short_pages_that_its_first_one_names():
    first = (ROOT / "docs" / "guide" / "README.md").read_text(encoding="utf-8")
    assert len(GUIDE) <= 6
    for page in GUIDE:
        assert page.name == "README.md" or f"({page.name})" in first
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 60


def test_the_buttons_lead_to_the_guide_on_the_manifest_s_website():
    ui = ROOT / "fabrik_addon" / "blender" / "ui"
    manifest = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))
    assert f'"{manifest["website"]}"' in (ui / "guide.py").read_text(encoding="utf-8")
    assert manifest["website"] in manifest["maintainer"]
    pages = {page for path in (ui / "panels").rglob("*.py") for page in re.findall(r'"(\w+\.md)"', path.read_text())}
    assert pages
    assert pages <= {page.name for page in GUIDE}
