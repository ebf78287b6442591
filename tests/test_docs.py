"""Everything that the documentation names exists: files, pictures, pages and commands."""

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest
from support.messages import all_messages, parsed

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_named_in_pages_exist(page):
    named = re.findall(r"`([\w/.]+\.py)\b", page.read_text(encoding="utf-8"))
    places = (ROOT, ROOT / "fabrik_addon")
    assert not [path for path in named if not any((place / path).is_file() for place in places)]


@cache
def defined(path):
    """The classes, functions and constants of a module, and the members of its classes as Class.member."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names |= {
                node.name,
                *(f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)),
            }
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_names_after_files_are_defined_there(page):
    named = re.findall(r"`([\w/]+\.py):([\w.]+)`", page.read_text(encoding="utf-8"))
    assert not [(path, name) for path, name in named if name not in defined(ROOT / "fabrik_addon" / path)]


def test_make_has_the_targets_that_pages_name():
    """Each command in the pages is tried without executing it, and the tests that it names exist."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    command = re.compile(r"(?:^|`)make ([a-z][\w.-]*)(?: T=([\w/.]+))?", re.MULTILINE)
    named = {found for text in texts for found in command.findall(text)}
    assert named
    assert not [path for _, path in named if not (ROOT / path).exists()]
    targets = sorted({target for target, _ in named})
    done = subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [*PAGES, *GUIDE], ids=lambda page: page.name)
def test_links_and_pictures_exist(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_the_messages_that_the_guide_explains_exist():
    """Fixed: two were renamed or joined, and the page of messages kept the old ones."""
    page = (ROOT / "docs" / "guide" / "refused.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| \*(.+?)\* \|", page, re.MULTILINE)
    panels = (ROOT / "fabrik_addon" / "blender" / "ui" / "panels" / "pose.py").read_text(encoding="utf-8")
    known = "\n".join([*all_messages(), panels])
    # Values may be messages too, such as reasons. So the parts between them are looked up.
    parts = [part.strip(" ?") for text in explained for part in re.split(r"[….:;,()]", text)]
    assert explained
    assert not [part for part in parts if part not in known]


def test_the_guide_s_first_page_names_all_others():
    first = (ROOT / "docs" / "guide" / "index.md").read_text(encoding="utf-8")
    assert not [page.name for page in GUIDE if page.name != "index.md" and f"({page.name})" not in first]


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_a_paragraph_of_the_guide_has_five_lines_at_most(page):
    blocks = re.split(r"\n\s*\n|^(?=(?:\d+\.|\*) )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert not [block for block in blocks if not block.startswith(("|", "```")) and len(block.splitlines()) > 5]


@pytest.mark.parametrize(("page", "lines"), [("README.md", 120), ("docs/bench/results.md", 300)])
def test_pages_stay_short(page, lines):
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= lines


def test_the_buttons_lead_to_pages_of_the_guide():
    panels = ROOT / "fabrik_addon" / "blender" / "ui" / "panels"
    named = {page for path in panels.rglob("*.py") for page in re.findall(r'guide = "(\w+)"', path.read_text())}
    assert named
    assert named <= {page.stem for page in GUIDE}


@pytest.mark.parametrize("page", ["README.md", "docs/guide/drag.md"])
def test_the_guide_explains_why_auto_keying_may_key_nothing(page):
    """Blender 5.2 has this preference on by default."""
    assert "*Animation ▸ Only Insert Available*" in (ROOT / page).read_text(encoding="utf-8")


def test_the_project_s_address_is_in_the_manifest_alone():
    """If the project moves, one edit is enough."""
    manifest = tomllib.loads((ROOT / "fabrik_addon" / "blender_manifest.toml").read_text(encoding="utf-8"))
    address = manifest["website"].partition("://")[2]
    assert re.fullmatch(rf"[\w ]+ <[\w.-]+@{re.escape(address)}>", manifest["maintainer"])
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "fabrik_addon").rglob("*.p[yo]")]
    assert not [path for path in texts if address in path.read_text(encoding="utf-8")]
