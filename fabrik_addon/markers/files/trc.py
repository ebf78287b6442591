"""Reads TRC files: tab-separated text, a header of five or six lines, three columns for each marker.

Errors of writers are corrected, with a note, if only one reading makes sense. Otherwise the file is refused:

* A sample is missing if a coordinate is blank, a word such as ``NaN``, infinite or absent at the end of a row, or if it
  is exactly (0, 0, 0).
* If the counts in the header differ from the rows and names, rows and names are used.
* A number may have a decimal comma, since commas are not separators in this format.
* Cells may also be separated by commas, semicolons or spaces, and names may follow each other without blank cells.
* If the file ends within a row, the row's last number may be incomplete and is ignored. (This cannot be detected if
  only the very last number of the announced frames is cut.)
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

import numpy as np

from ..clip import Clip, FloatArray, MarkerFileError
from .reading import Chosen, decoded, in_place, number_in, numbers_in, rate_in_cell, rate_of_times, to_clip

_AXIS_CELL: Final = re.compile(r"[XYZ]\d*", re.IGNORECASE)
_COLUMNS_BEFORE: Final = 2  # Frame# and Time


@dataclass(frozen=True)
class _Line:
    """A line that is not blank: its number in the file, from 1, and its text.

    It is split only when needed, since all cells of a long recording take 20 times the memory of the file.
    """

    number: int
    text: str
    separator: str

    @property
    def spaced(self) -> bool:
        """Whether cells are separated by spaces, because the line contains no separator."""
        return self.separator not in self.text

    @property
    def cells(self) -> list[str]:
        """The stripped cells."""
        if self.spaced:
            return re.split(" +", self.text.strip(" "))
        cells = self.text.split(self.separator)
        return [cell.strip(" ") for cell in cells] if " " in self.text else cells

    @property
    def used(self) -> int:
        """The number of cells up to the last one that is not blank."""
        if self.spaced:
            return len(self.cells)
        return self.text.rstrip(self.separator + " ").count(self.separator) + 1


@dataclass(frozen=True)
class _Table:
    """The parts of a file: header fields by lower-case key, names as written, rows of cells."""

    fields: Mapping[str, str]
    names: tuple[str, ...]
    axis_columns: int
    rows: list[_Line]


def parse_trc(content: bytes, chosen: Chosen) -> Clip:
    """The clip in a file's bytes, in meters and the file's own axes; Y is up if the markers do not show it.

    Raises MarkerFileError, without the file's name, if the file is empty, truncated in its header or not a TRC file,
    for unknown units, if neither header nor times give a rate, and if no marker is ever seen.
    """
    lines, cut = _lines(decoded(content))
    table = _table(lines)
    names = _marker_names(table)
    times, points, notes = _samples(table, len(names), cut=cut)
    del lines, table.rows[:]
    stated = table.fields.get("datarate", "")
    return to_clip(
        chosen,
        names,
        points,
        table.fields.get("units", ""),
        "Y",
        rate_in_cell(stated),
        timed=rate_of_times(times),
        no_rate=f"the frame rate is unknown; DataRate is {stated or 'missing'!r} and the Time column does not "
        "increase: fix one of them",
        notes=notes,
        start_time=float(times[0]) if math.isfinite(times[0]) else 0.0,
    )


def _lines(text: str) -> tuple[list[_Line], bool]:
    """The lines that are not blank, and whether the last one has no line end.

    ``str.splitlines`` and ``str.strip()`` are not used, since they treat some Latin-1 letters as line breaks or blanks.
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    separator = next((mark for mark in "\t;," if mark in plain), "\t")
    lines = (_Line(number, line, separator) for number, line in enumerate(plain.split("\n"), start=1))
    return [line for line in lines if line.text.strip(separator + " ")], not plain.endswith("\n")


def _table(lines: Sequence[_Line]) -> _Table:
    """Split the lines into header fields, names and rows; raises MarkerFileError if the header is incomplete."""
    if not lines or not lines[0].cells[0].lower().startswith("pathfiletype"):
        raise MarkerFileError("this is not a TRC file, which begins with PathFileType: choose another")
    at = next((i for i, line in enumerate(lines) if line.cells[0].lower().startswith("frame")), None)
    if at is None:
        raise MarkerFileError("the header is truncated; it has no Frame# line with marker names: export it again")
    fields = _fields(lines[1], lines[2] if at > 2 else _Line(0, "", "\t")) if at > 1 else {}
    if "datarate" not in fields:
        raise MarkerFileError("the header is truncated; it has no line with DataRate: export it again")
    rows = list(lines[at + 1 :])
    axis_columns = _axis_columns(rows[0]) if rows else 0
    rows = rows[1:] if axis_columns else rows
    if not rows:
        raise MarkerFileError("there are no frames after the header: export it again")
    return _Table(fields, tuple(lines[at].cells[_COLUMNS_BEFORE:]), axis_columns, rows)


def _fields(keys: _Line, values: _Line) -> dict[str, str]:
    """The header's fields. Keys and values are matched by order, since tabs vary, or by column if one is blank."""
    pairs = [" ".join(line.cells).split() for line in (keys, values)]
    if len(pairs[0]) != len(pairs[1]):
        pairs = [list(keys.cells), list(values.cells)]
    return {key.lower(): value for key, value in zip_longest(*pairs, fillvalue="") if key}


def _axis_columns(line: _Line) -> int:
    """The number of columns in a line of X1 Y1 Z1 … names; 0 for any other line."""
    filled = [cell for cell in line.cells if cell]
    return len(filled) if all(_AXIS_CELL.fullmatch(cell) for cell in filled) else 0


def _marker_names(table: _Table) -> list[str]:
    """One name for every three columns; columns with numbers but no name become ``*n``.

    Raises MarkerFileError if names and columns do not match one to one.
    """
    # Blank cells at the end of the line are ignored.
    cells = table.names[: max((place for place, cell in enumerate(table.names, start=1) if cell), default=0)]
    if not cells:
        raise MarkerFileError("the Frame# line has no marker names after tabs: export it again")
    used = max(row.used for row in table.rows) - _COLUMNS_BEFORE
    if all(cells) and used == 3 * len(cells):
        return list(cells)
    for place, cell in enumerate(cells):
        if cell and place % 3:
            raise MarkerFileError(f"the name {cell!r} is not above a marker's first column: export it again")
    names = list(cells[::3])
    if used > 3 * len(names) and used % 3:
        raise MarkerFileError(
            f"{used} columns of numbers for {len(names)} names, but each marker needs three: export it again"
        )
    columns = max(used, table.axis_columns)
    if table.axis_columns and columns <= 3 * (len(names) - 1):
        raise MarkerFileError(f"{len(names)} marker names but columns for only {-(-columns // 3)}: export it again")
    names += [""] * (-(-columns // 3) - len(names))
    return [name or f"*{place}" for place, name in enumerate(names, start=1)]


def _samples(table: _Table, marker_count: int, *, cut: bool) -> tuple[FloatArray, FloatArray, list[str]]:
    """Times (F,) and points (F, M, 3) in the file's units, and notes. cut: the file's last line has no line end."""
    width = _COLUMNS_BEFORE + 3 * marker_count
    rows = list(table.rows)
    if cut and (len(rows[-1].cells) < width or len(rows) < _count(table, "numframes")):
        # The last cell of a truncated row is dropped, or the whole row if no complete marker is left.
        last = rows.pop()
        if len(last.cells) > _COLUMNS_BEFORE + 3:
            mark = " " if last.spaced else last.separator
            rows.append(replace(last, text=last.text.strip(" ").rpartition(mark)[0]))
    if not rows:
        raise MarkerFileError("there are no complete frames after the header: export it again")
    short = next((line for line in rows if line.spaced and _COLUMNS_BEFORE < len(line.cells) < width), None)
    if short is not None:
        raise MarkerFileError(
            f"line {short.number} has {len(short.cells)} of {width} numbers, and spaces separate them, so it is not "
            "clear which ones are missing: export it with tabs"
        )
    numbers = np.full((len(rows), width), np.nan)
    for row, line in enumerate(rows):
        cells = line.cells
        values = numbers_in(cells, line.number, range(len(cells)))[:width]
        numbers[row, : len(values)] = values
    placed, lies = in_place(numbers[:, 0], numbers[:, 1:])
    notes = list(lies)
    for what, found in (("frames", len(rows)), ("markers", marker_count)):
        stated = _count(table, f"num{what}")
        if stated not in (found, -1.0):
            notes.append(f"the header gives {stated:g} {what}, but there are {found}")
    points = placed[:, 1:].reshape(-1, marker_count, 3)
    if infinite := int(np.isinf(points).any(axis=-1).sum()):
        notes.append(f"{infinite} samples are infinite; ignored them")
    return placed[:, 0], points, notes


def _count(table: _Table, key: str) -> float:
    """A count in the header; -1 if it is missing."""
    count = number_in(table.fields.get(key, ""))
    return count if count is not None and math.isfinite(count) else -1.0
