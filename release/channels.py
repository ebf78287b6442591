"""Put the zip into the channels of a static website, from which Blender installs and updates it.

    python release/channels.py fabrik.zip SITE

SITE/latest gets every build, SITE/stable only a release: a version that CHANGELOG.md gives a date. Any other build has
`-dev.N` added to its version, with N the number of commits, because Blender offers an update when the version differs.
Each channel holds one zip. `make release` then has Blender's own tool write each channel's index.json.
"""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MANIFEST = "blender_manifest.toml"


def publish(built: Path, site: Path) -> list[Path]:
    """Write the zip into its channels; returns the paths of the new zips."""
    version, released = version_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if not released:
        commits = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, check=True)
        version += f"-dev.{commits.stdout.decode().strip()}"
    written = []
    for channel in ("stable", "latest") if released else ("latest",):
        folder = site / channel
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.zip"):
            old.unlink()
        written.append(folder / f"fabrik-{version}.zip")
        with_version(built, written[-1], version)
    return written


def version_of(changelog: str) -> tuple[str, bool]:
    """The newest version of a changelog, and whether it is released, which means that it has a date.

    Raises:
        ValueError: the first heading is neither `## 1.2.3 – 2026-11-22` nor `## 1.2.3 – Unreleased`.
    """
    found = re.search(r"^## (\d+\.\d+\.\d+) – (Unreleased|\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)
    if found is None:
        raise ValueError("CHANGELOG.md has no heading such as '## 1.2.3 – 2026-11-22'")
    return found[1], found[2] != "Unreleased"


def with_version(source: Path, target: Path, version: str) -> None:
    """Copy a zip, with another version in its manifest."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name == MANIFEST:
                content = re.sub(rb'(?m)^version = ".*"$', b'version = "%b"' % version.encode(), content, count=1)
            new.writestr(name, content)


if __name__ == "__main__":
    for path in publish(Path(sys.argv[1]), Path(sys.argv[2])):
        print(path)
