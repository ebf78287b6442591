"""Make extensions' zips smaller, without changing what they do.

    python release/pack.py ZIP...

* Files are compressed by Zopfli, which writes the same format 3 % smaller than Python.
* Catalogs are compressed by bzip2, which makes texts a seventh smaller. The extension reads .po and .po.bz2 files.
* An `__init__.py` that has only a docstring is left out, because Python imports folders without it too. There are 25.

Every entry has the same date, so equal sources give equal zips.
"""

import ast
import bz2
import sys
import zipfile
from pathlib import Path

import zopfli

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip can hold


def is_needed(name: str, content: bytes) -> bool:
    """Whether the extension needs a file: not if it is the `__init__.py` of a folder and does nothing."""
    return not name.endswith("/__init__.py") or len(ast.parse(content).body) > 1


def pack(path: Path) -> int:
    """Compress the zip in place; returns its size in bytes."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in sorted(archive.namelist())}
    entries = {name: content for name, content in entries.items() if is_needed(name, content)}
    entries |= {f"{name}.bz2": bz2.compress(entries.pop(name)) for name in [*entries] if name.endswith(".po")}
    with zopfli.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".bz2") else zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return path.stat().st_size


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(f"{argument}: {pack(Path(argument)):,} bytes")
