"""Files that are written whole or not at all: prepared beside their places, and put there last."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def prepared(*paths: Path, keep_previous: bool = False) -> Iterator[tuple[Path, ...]]:
    """Names to write to, one for each file; when the block ends, all of these take the places of the files, or none.

    An error in the block, or in taking the places, leaves every file as it was and removes what was prepared. A process
    that is killed leaves a hidden `.part` file. Symbolic links are kept: their targets are replaced.

    keep_previous: leave the previous .blend beside the new one, as .blend1, as Blender does when it saves.
    Raises OSError if a file cannot be replaced.
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


def write_text(path: Path, text: str) -> None:
    """Write a file as UTF-8, whole or not at all; raises OSError."""
    with prepared(path) as (part,):
        part.write_text(text, encoding="utf-8", newline="")


def part_of(path: Path, process: int | None = None) -> Path:
    """What a file is called until it is complete; process: the number of the one that writes it, by default this."""
    return path.with_name(f".{path.name}.{os.getpid() if process is None else process}.part")


def remove_parts(path: Path, process: int | None = None) -> None:
    """Remove what a process has left of a file that it did not complete."""
    part = part_of(path, process)
    # Blender writes to a name with @ at its end first.
    for left in (part, part.with_name(f"{part.name}@"), _second(part)):
        with suppress(OSError):
            left.unlink()


def _second_name(path: Path) -> Path:
    """Give a file a second name, so that it stays if another takes its place; a copy if the disk has no hard links."""
    second = _second(part_of(path))
    try:
        second.hardlink_to(path)
    except OSError:
        shutil.copy2(path, second)
    return second


def _second(part: Path) -> Path:
    return part.with_name(f"{part.name}.previous")
