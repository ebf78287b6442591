"""Helpers shared by the readers of CSV files: cells, rows of numbers, and truncated files."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ..clip import FloatArray, MarkerFileError
from .reading import decoded, number_in

# The separator is found from this many lines.
_FIRST_LINES: Final = 8


@dataclass
class CsvRows:
    """The rows of a CSV file, read one by one to save memory.

    cut: the file's last line has no line end, so its last number may be incomplete.
    """

    content: bytes = field(repr=False)
    cut: bool = field(init=False)
    _ahead: list[str] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Find the separator: tab, semicolon or comma."""
        text = decoded(self.content)
        self.cut = not text.endswith(("\n", "\r"))
        start = text.split("\n", _FIRST_LINES)[:_FIRST_LINES]
        separator = max("\t;,", key=lambda mark: max(line.count(mark) for line in start))
        self._reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)

    def next(self) -> list[str] | None:
        """The stripped cells of the next row; None at the end."""
        if self._ahead is not None:
            row, self._ahead = self._ahead, None
            return row
        try:
            return [cell.strip() for cell in next(self._reader)]
        except StopIteration:
            return None
        except csv.Error as trouble:
            raise MarkerFileError(
                f"line {self._reader.line_num} cannot be split into columns ({trouble}): export it again"
            ) from None

    def back(self, row: list[str]) -> None:
        """Push a row back, so that `next` returns it again."""
        self._ahead = row

    def columns(self, places: Sequence[int], each: Callable[[list[str]], None] | None = None) -> FloatArray:
        """(F, n) numbers in n columns, by index from 0, of all rows down to an empty line.

        NaN if a cell is blank, missing, or a word that means "not seen". each: called with every row that is used.
        Raises MarkerFileError for other text, and if there are no rows.
        """
        wanted, last = np.array(places), max(places)
        whole = wanted.tolist() == list(range(wanted[0], last + 1))
        rows: list[FloatArray] = []
        row: list[str] | None = []
        ended = False
        while (row := self.next()) is not None and (len(row) > 1 or any(row)):
            ended = len(row) <= last
            cells = row[wanted[0] : last + 1] if whole else [row[place] if place < len(row) else "" for place in places]
            rows.append(self._row(cells, places))
            if each is not None:
                each(row)
        if row is None and ended and self.cut:
            # The last number of a truncated row may be incomplete.
            seen = np.flatnonzero(np.isfinite(rows[-1]))
            rows[-1][seen[-1:]] = np.nan
            if len(seen) < 2:
                rows.pop()
        if not rows:
            raise MarkerFileError("there are no frames after the header: export it again")
        return np.array(rows)

    def _row(self, cells: Sequence[str], places: Sequence[int]) -> FloatArray:
        """(n,) the cells of a row as numbers."""
        values = np.full(len(places), np.nan)
        try:
            values[: len(cells)] = [float(cell) if cell else math.nan for cell in cells]
        except ValueError:
            for place, cell in enumerate(cells):
                number = number_in(cell)
                if number is None:
                    raise MarkerFileError(
                        f"line {self._reader.line_num}, column {places[place] + 1}: {cell!r} is not a number: "
                        "export it again"
                    ) from None
                values[place] = number
        return values
