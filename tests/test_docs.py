"""What the documentation names is there: files, pictures, pages and commands."""

import re
import subprocess
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fabrik_addon.blender.ui.guide_pages import as_html, write_pages

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_are_there(page):
    named = re.findall(r"`([\w/.]+\.py)\b", page.read_text(encoding="utf-8"))
    places = (ROOT, ROOT / "fabrik_addon")
    assert not [path for path in named if not any((place / path).is_file() for place in places)]


def test_make_knows_its_targets():
    """Each command that the pages tell is tried without doing anything, and the tests that it names are there."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    command = re.compile(r"(?:^|`)make ([a-z][\w.-]*)(?: T=([\w/.]+))?", re.MULTILINE)
    named = {found for text in texts for found in command.findall(text)}
    assert named
    assert not [path for _, path in named if not (ROOT / path).exists()]
    targets = sorted({target for target, _ in named})
    done = subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [*PAGES, *GUIDE], ids=lambda page: page.name)
def test_links_and_pictures_are_there(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_the_guide_is_seven_short_pages_that_its_first_one_names():
    first = (ROOT / "docs" / "guide" / "README.md").read_text(encoding="utf-8")
    assert len(GUIDE) <= 7
    for page in GUIDE:
        assert page.name == "README.md" or f"({page.name})" in first
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 60


def test_the_buttons_lead_to_pages_of_the_guide():
    panels = ROOT / "fabrik_addon" / "blender" / "ui" / "panels"
    named = {
        page for path in panels.rglob("*.py") for page in re.findall(r'draw_guide\(\S+, "(\w+)"', path.read_text())
    }
    assert named
    assert named <= {page.stem for page in GUIDE}


def test_the_project_s_address_is_in_the_manifest_alone():
    """Where it moves, one edit is enough."""
    manifest = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))
    assert manifest["website"] in manifest["maintainer"]
    address = manifest["website"].partition("://")[2]
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "fabrik_addon").rglob("*.p[yo]")]
    assert not [path for path in texts if address in path.read_text(encoding="utf-8")]


def test_all_pages_are_written(tmp_path):
    write_pages(tmp_path / "guide")
    assert {page.stem for page in (tmp_path / "guide").glob("*.html")} == {page.stem for page in GUIDE}


class Words(HTMLParser):
    """What a page says, what it leads to, and whether its tags are closed in their order."""

    def __init__(self, page):
        super().__init__()
        self.words, self.addresses, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += re.findall(r"\w+", data) if "body" in self.open else []


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_the_guide_s_pages_say_in_a_browser_what_their_sources_say(page):
    source = page.read_text(encoding="utf-8")
    shown = Words(as_html(source, page.parent.as_uri()))
    assert not shown.open
    texts = re.sub(r"!\[[^]]*\]\([^)]*\)|\]\([^)]*\)|^[0-9]+\.", "", source, flags=re.MULTILINE)
    assert shown.words == re.findall(r"\w+", texts)
    assert not set("*`|#") & set("".join(shown.words))
    for address in shown.addresses:
        local = address.removeprefix(page.parent.as_uri() + "/").replace(".html", ".md")
        assert (page.parent / local).is_file(), address
