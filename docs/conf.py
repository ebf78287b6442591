"""Builds the documentation as a site, with Sphinx: `make docs`. The theme loads nothing from other sites."""

import tomllib
from pathlib import Path

ADDON = Path(__file__).parents[1] / "fabrik_addon"
MANIFEST = tomllib.loads((ADDON / "blender_manifest.toml").read_text(encoding="utf-8"))

project = "FABRIK for Blender"
version = release = MANIFEST["version"]
extensions = ["myst_parser"]
exclude_patterns = ["bench/results.csv"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"{project} {version}"
html_theme_options = {"source_repository": ""}
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
