"""Writes files completely or not at all: to temporary names first, which then replace the files."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core.errors import FabrikError


@contextmanager
def prepared(*paths: Path, keep_previous: bool = False) -> Iterator[tuple[Path, ...]]:
    """Temporary names, one for each file to write. At the end of the block, all replace their files, or none does.

    An error in the block, or in replacing, leaves every file as it was and removes the temporary ones. If the process
    is killed, a hidden `.part` file remains. Symbolic links stay; their targets are replaced.

    keep_previous: keep the previous .blend as .blend1, as Blender does when it saves. Raises OSError if a file cannot
    be replaced.
    """
    places = [Path(os.path.realpath(path)) for path in paths]
    parts = tuple(part_of(path) for path in places)
    previous: dict[Path, Path] = {}
    done: list[Path] = []
    try:
        yield parts
        for path in places:
            if path.exists():
                previous[path] = _second_name(path)
        for part, path in zip(parts, places, strict=True):
            part.replace(path)
            done.append(path)
    except BaseException:
        for path in done:
            if path in previous:
                previous[path].replace(path)
            else:
                path.unlink()
        raise
    else:
        for path, second in previous.items():
            if keep_previous and path.suffix == ".blend":
                second.replace(path.with_name(f"{path.name}1"))
    finally:
        for path in places:
            remove_parts(path)


class WriteError(FabrikError):
    """A file that cannot be written; the message names it."""


def write_text(path: Path, text: str) -> None:
    """Write a file as UTF-8, completely or not at all; raises WriteError."""
    try:
        with prepared(path) as (part,):
            part.write_text(text, encoding="utf-8", newline="")
    except OSError as trouble:
        raise WriteError(
            f"{path.name}: cannot be written ({trouble.strerror}, {path}): choose another folder"
        ) from None


def part_of(path: Path, process: int | None = None) -> Path:
    """The temporary name of a file; process: the number of the process that writes it, by default this one."""
    return path.with_name(f".{path.name}.{os.getpid() if process is None else process}.part")


def remove_parts(path: Path, process: int | None = None) -> None:
    """Remove the temporary files that a process left behind."""
    part = part_of(path, process)
    # Blender first writes to a name that ends with @.
    for left in (part, part.with_name(f"{part.name}@"), _second(part)):
        with suppress(OSError):
            left.unlink()


def _second_name(path: Path) -> Path:
    """Give a file a second name, to keep it when another replaces it; a copy if the disk has no hard links."""
    second = _second(part_of(path))
    try:
        second.hardlink_to(path)
    except OSError:
        shutil.copy2(path, second)
    return second


def _second(part: Path) -> Path:
    return part.with_name(f"{part.name}.previous")
