"""Either all files are written, or none."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fabrik_addon.markers.whole_files import prepared, remove_parts

ROOT = Path(__file__).parents[2]


@pytest.fixture
def old(tmp_path: Path) -> tuple[Path, Path]:
    """The paths of an existing and of a missing file."""
    (tmp_path / "a.blend").write_text("old")
    return tmp_path / "a.blend", tmp_path / "b.csv"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_both_files_are_replaced(old: tuple[Path, Path], tmp_path: Path) -> None:
    with prepared(*old) as parts:
        for part, text in zip(parts, ("new a", "new b"), strict=True):
            part.write_text(text)
        assert old[0].read_text() == "old"
        assert names(tmp_path) == [f".a.blend.{os.getpid()}.part", f".b.csv.{os.getpid()}.part", "a.blend"]
    assert [path.read_text() for path in old] == ["new a", "new b"]
    assert names(tmp_path) == ["a.blend", "b.csv"]


def test_the_previous_blend_file_is_kept(old: tuple[Path, Path], tmp_path: Path) -> None:
    with prepared(*old, keep_previous=True) as parts:
        for part in parts:
            part.write_text("new")
    assert names(tmp_path) == ["a.blend", "a.blend1", "b.csv"]
    assert (tmp_path / "a.blend1").read_text() == "old"


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_all_as_it_was(old: tuple[Path, Path], tmp_path: Path, error: type[BaseException]) -> None:
    def written() -> None:
        with prepared(*old) as parts:
            parts[0].write_text("new")
            parts[0].with_name(f"{parts[0].name}@").write_text("as Blender does")
            raise error

    with pytest.raises(error):
        written()
    assert names(tmp_path) == ["a.blend"]
    assert old[0].read_text() == "old"


@pytest.mark.parametrize("order", [1, -1])
def test_if_one_cannot_be_replaced_all_are_restored(old: tuple[Path, Path], tmp_path: Path, order: int) -> None:
    """If one file can't be replaced, such as by a folder of that name, all others are restored."""

    def written() -> None:
        with prepared(*old[::order]) as parts:
            for part in parts:
                part.write_text("new")
            (tmp_path / "b.csv").mkdir()

    with pytest.raises(OSError, match="directory"):
        written()
    assert names(tmp_path) == ["a.blend", "b.csv"]
    assert old[0].read_text() == "old"


@pytest.mark.parametrize("order", [1, -1])
def test_if_the_second_is_missing_the_first_is_restored(old: tuple[Path, Path], tmp_path: Path, order: int) -> None:
    """The first file has already been replaced when the second turns out to be missing."""

    def written() -> None:
        with prepared(*old[::order]) as parts:
            parts[0].write_text("new")

    with pytest.raises(FileNotFoundError):
        written()
    assert names(tmp_path) == ["a.blend"]
    assert old[0].read_text() == "old"


def test_a_killed_process_leaves_the_old_files(old: tuple[Path, Path], tmp_path: Path) -> None:
    code = """
import os, pathlib, signal, sys
from fabrik_addon.markers.whole_files import prepared
with prepared(*map(pathlib.Path, sys.argv[1:])) as parts:
    for part in parts:
        part.write_text("new")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code, *old], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert old[0].read_text() == "old"
    assert [name for name in names(tmp_path) if not name.endswith(".part")] == ["a.blend"]


def test_a_link_stays_a_link(old: tuple[Path, Path], tmp_path: Path) -> None:
    link = tmp_path / "link.blend"
    link.symlink_to(old[0])
    with prepared(link) as (part,):
        part.write_text("new")
    assert link.is_symlink()
    assert old[0].read_text() == "new"


def test_files_that_a_killed_process_left_are_found_by_its_number(tmp_path: Path) -> None:
    for number in (7, 8):
        (tmp_path / f".a.blend.{number}.part").touch()
    remove_parts(tmp_path / "a.blend", 7)
    assert names(tmp_path) == [".a.blend.8.part"]
