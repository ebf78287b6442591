"""Reads TRC files: tab-separated text, a header of five or six lines, three columns for each marker.

Errors of writers are corrected, with a note, if only one reading makes sense. Otherwise the file is refused:

* A sample is missing if a coordinate is blank, a word such as ``NaN``, infinite or absent at the end of a row, or if it
  is exactly (0, 0, 0).
* If the counts in the header differ from the rows and names, rows and names are used.
* A number may have a decimal comma, unless commas separate the cells.
* Cells may also be separated by commas, semicolons or spaces, and names may follow each other without blank cells.
* If the file ends within a row, the row's last number may be incomplete and is ignored. (This cannot be detected if
  only the very last number of the announced frames is cut.)
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Final

import numpy as np

from ...core.arrays import FloatArray
from ..clip import Clip, MarkerFileError
from . import reading

_AXIS_CELL: Final = re.compile(r"[XYZ]\d*", re.IGNORECASE)
_COLUMNS_BEFORE: Final = 2  # Frame# and Time


@dataclass(frozen=True)
class _Header:
    """Fields by lower-case key, names as written, and the number of columns below them (0 if the header has no X1)."""

    fields: Mapping[str, str]
    names: list[str]
    axis_columns: int

    def count(self, key: str) -> float:
        """A count; -1 if it is missing."""
        count = reading.number_in(self.fields.get(key, ""))
        return count if count is not None and math.isfinite(count) else -1.0


def parse_trc(content: bytes, chosen: reading.Chosen) -> Clip:
    """The clip in a file's bytes, in meters and the file's own axes; Y is up if the markers do not show it.

    Raises MarkerFileError, without the file's name, if the file is empty, truncated in its header or not a TRC file,
    for unknown units, if neither header nor times give a rate, and if no marker is ever seen.
    """
    table = reading.CsvRows(reading.decoded(content), plain=True)
    header, rows = _header(row for row in iter(table.next, None) if any(row))
    names, times, points, notes = _samples(table, rows, header)
    rate = reading.rate_in_cell(header.fields.get("datarate", ""))
    clip = reading.to_clip(
        chosen,
        names,
        points,
        header.fields.get("units", ""),
        "Y",
        rate,
        timed=reading.rate_of_times(times, rate),
        needs_rate=True,
        notes=notes,
    )
    return replace(clip, doubts=(*reading.frame_count_doubt(header.count("numframes"), len(points)), *clip.doubts))


def _header(rows: Iterator[list[str]]) -> tuple[_Header, Iterator[list[str]]]:
    """The header, and the rows of numbers that follow it; raises MarkerFileError if the header is incomplete."""
    first = next(rows, [""])
    if not first[0].lower().startswith("pathfiletype"):
        raise MarkerFileError("this is not a TRC file, because it does not begin with PathFileType: choose another")
    above: list[list[str]] = []
    for names in rows:
        if names[0].lower().startswith("frame"):
            break
        above.append(names)
    else:
        raise MarkerFileError("the header is truncated; it has no Frame# line with marker names: export it again")
    fields = _fields(*[*above, []][:2]) if above else {}
    if "datarate" not in fields:
        raise MarkerFileError("the header is truncated; it has no line with DataRate: export it again")
    row = next(rows, [])
    filled = [cell for cell in row if cell]
    is_axes = all(map(_AXIS_CELL.fullmatch, filled))
    return _Header(fields, names[_COLUMNS_BEFORE:], len(filled) * is_axes), rows if is_axes else chain([row], rows)


def _fields(keys: list[str], values: list[str]) -> dict[str, str]:
    """The header's fields. Keys and values are matched by order, since tabs vary, or by column if one is blank."""
    pairs = [" ".join(cells).split() for cells in (keys, values)]
    if len(pairs[0]) != len(pairs[1]):
        pairs = [keys, values]
    return {key.lower(): value for key, value in zip_longest(*pairs, fillvalue="") if key}


def _marker_names(header: _Header, used: int) -> list[str]:
    """One name for every three columns, of which `used` have numbers; those without a name become ``*n``.

    Raises MarkerFileError if names and columns do not match one to one.
    """
    # Blank cells at the end of the line are ignored.
    cells = header.names[: max((place for place, cell in enumerate(header.names, start=1) if cell), default=0)]
    if not cells:
        raise MarkerFileError("the Frame# line has no marker names after tabs: export it again")
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
    columns = max(used, header.axis_columns)
    if header.axis_columns and columns <= 3 * (len(names) - 1):
        raise MarkerFileError(f"{len(names)} marker names but columns for only {-(-columns // 3)}: export it again")
    names += [""] * (-(-columns // 3) - len(names))
    return [name or f"*{place}" for place, name in enumerate(names, start=1)]


def _samples(
    table: reading.CsvRows, rows: Iterator[list[str]], header: _Header
) -> tuple[list[str], FloatArray, FloatArray, list[str]]:
    """Names, times (F,) and points (F, M, 3) in the file's units, and notes. rows: the remaining rows of the table."""
    found: list[FloatArray] = []
    # The lines of rows that are separated by spaces; 0 for other rows.
    spaced: list[int] = []
    used, row = 0, list[str]()
    for row in rows:
        found.append(np.array(reading.numbers_in(row, table.line, range(len(row)))))
        spaced.append(table.line if table.is_spaced else 0)
        used = max(used, len(row) - next(place for place, cell in enumerate(reversed(row)) if cell))
    if not found:
        raise MarkerFileError("there are no frames after the header: export it again")
    names = _marker_names(header, used - _COLUMNS_BEFORE)
    width = _COLUMNS_BEFORE + 3 * len(names)
    if table.cut and (len(row) < width or len(found) < header.count("numframes")):
        # The last cell of a truncated row is dropped, or the whole row if no complete marker is left.
        found[-1] = found[-1][:-1]
        if len(row) <= _COLUMNS_BEFORE + 3:
            found.pop()
    if not found:
        raise MarkerFileError("there are no complete frames after the header: export it again")
    numbers = np.full((len(found), width), np.nan)
    for values, cells, line in zip(numbers, found, spaced, strict=False):
        if line and _COLUMNS_BEFORE < len(cells) < width:
            raise MarkerFileError(
                f"line {line} has {len(cells)} of {width} numbers, and spaces separate them, so it is not clear which "
                "ones are missing: export it with tabs"
            )
        values[: len(cells)] = cells[:width]
    placed, lies = reading.in_place(numbers[:, 0], numbers[:, 1:])
    notes = list(lies)
    markers = header.count("nummarkers")
    if markers not in (len(names), -1.0):
        notes.append(f"the header gives {markers:g} markers, but there are {len(names)}")
    points = placed[:, 1:].reshape(-1, len(names), 3)
    if infinite := int(np.isinf(points).any(axis=-1).sum()):
        notes.append(f"{infinite} samples are infinite; ignored them")
    return names, placed[:, 0], points, notes
