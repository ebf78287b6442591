"""How well each marker was met on each frame: rows, a CSV file and a table for a terminal.

Distances are metres, millimetres only in the table. A marker that is not seen is never part of
a mean; how often it was seen is its coverage.

The CSV has one header and five kinds of rows, told apart by ``scope``:

========  ===========  ==========================  =================
scope     name         frame                       worst
========  ===========  ==========================  =================
marker    the marker   (blank)                     its worst frame
frame     (blank)      the frame                   its worst marker
total     all          the worst frame             the worst marker
total     weighted     (blank; only ``rms_m``)     (blank)
gap       the bone     such as 12-30               (blank)
limit     the bone     (blank)                     (blank)
========  ===========  ==========================  =================

``mean_m``, ``rms_m``, ``max_m`` are metres, blank where nothing was seen. ``coverage`` is the
percentage of frames on which the marker was seen, of markers seen on the frame, or of all samples.
``status`` is the frame's, for the total the count of each, and for a gap what was done about it; a limit's coverage is
the percentage of frames on which it binds.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ..core.errors import FabrikError
from .clip import BoolArray, FloatArray, true_spans

IntArray = npt.NDArray[np.intp]

COLUMNS: Final = (
    "scope",
    "name",
    "frame",
    "mean_m",
    "rms_m",
    "max_m",
    "worst",
    "coverage",
    "status",
)
_TABLE_HEAD: Final = ("marker", "mean mm", "rms mm", "max mm", "worst frame", "seen %")
# Gaps of this many frames and more are named under the table, at most so many of them.
_LONG_SPAN: Final = 10
_MOST_SPANS: Final = 5


class ReportError(FabrikError):
    """Errors, names and frames that do not fit each other, or a report that cannot be written."""


@dataclass(frozen=True)
class MarkerRow:
    """One marker over all frames: metres, NaN where never seen; coverage in percent."""

    name: str
    mean: float
    rms: float
    max: float
    worst_frame: int | None
    coverage: float


@dataclass(frozen=True)
class FrameRow:
    """One frame over all markers: metres, NaN where none is seen; coverage in percent."""

    frame: int
    mean: float
    rms: float
    max: float
    worst_marker: str | None
    coverage: float
    status: str


@dataclass(frozen=True)
class TotalRow:
    """All seen samples: metres, NaN where there is none; weighted_rms None without weights."""

    mean: float
    rms: float
    max: float
    worst_marker: str | None
    worst_frame: int | None
    coverage: float
    weighted_rms: float | None


@dataclass(frozen=True)
class UnseenSpan:
    """Frames, first to last, on which a marker is not seen; ``count`` of them are in the report."""

    marker: str
    first: int
    last: int
    count: int


@dataclass(frozen=True)
class FilledRow:
    """Frames, first to last, over which a bone had no markers, how many of them, and what was done about it."""

    bone: str
    first: int
    last: int
    count: int
    how: str


@dataclass(frozen=True)
class LimitRow:
    """A bone whose limit binds, on what percentage of the frames."""

    bone: str
    share: float


@dataclass(frozen=True)
class _Summary:
    """(N,) figures of the rows of an error array; ``worst`` is -1 where nothing is seen."""

    mean: FloatArray
    rms: FloatArray
    max: FloatArray
    worst: IntArray
    coverage: FloatArray


@dataclass(frozen=True, eq=False)
class Report:
    """Errors of a solve.

    errors: (F, M) metres, NaN where the marker is not seen. markers: M names. frames: F frame
    numbers. status: F names, or members of an enum. weights: (M,), only for the weighted total. filled: spans over
    which bones had no markers. limits: bones whose limits bind.
    Raises ReportError where their numbers do not fit, or for errors that are negative or infinite.
    """

    errors: FloatArray
    markers: Sequence[str]
    frames: Sequence[int]
    status: Sequence[str | Enum]
    weights: Sequence[float] | FloatArray | None = None
    filled: Sequence[FilledRow] = ()
    limits: Sequence[LimitRow] = ()

    def __post_init__(self) -> None:
        """Check the parts against each other."""
        errors = np.asarray(self.errors, dtype=np.float64)
        expected = (len(self.frames), len(self.markers))
        if errors.shape != expected or len(self.status) != expected[0]:
            raise ReportError(
                f"errors of {expected[0]} frames and {expected[1]} markers must be {expected} with "
                f"a status a frame, not {errors.shape} with {len(self.status)}"
            )
        if (np.isinf(errors) | (errors < 0.0)).any():
            raise ReportError("errors must be finite and not negative, or NaN where not seen")
        if self.weights is not None:
            _check_weights(np.asarray(self.weights, dtype=np.float64), expected[1])
        object.__setattr__(self, "errors", errors)

    def per_marker(self) -> list[MarkerRow]:
        """One row a marker, in the order given."""
        figures = _summary(self.errors.T)
        return [
            MarkerRow(name, *_figures(figures, i), self._frame(figures.worst[i]), _coverage(figures, i))
            for i, name in enumerate(self.markers)
        ]

    def per_frame(self) -> list[FrameRow]:
        """One row a frame, in the order given."""
        figures = _summary(self.errors)
        rows = []
        for i, (frame, status) in enumerate(zip(self.frames, self.status, strict=True)):
            worst = self._marker(figures.worst[i])
            coverage = _coverage(figures, i)
            rows.append(FrameRow(int(frame), *_figures(figures, i), worst, coverage, _name_of(status)))
        return rows

    def total(self) -> TotalRow:
        """One row for every sample that is seen."""
        figures = _summary(self.errors.reshape(1, -1))
        worst = int(figures.worst[0])
        frame, marker = divmod(worst, len(self.markers)) if worst >= 0 else (-1, -1)
        return TotalRow(
            *_figures(figures, 0),
            self._marker(marker),
            self._frame(frame),
            _coverage(figures, 0),
            self._weighted_rms(),
        )

    @property
    def frame_rms(self) -> FloatArray:
        """(F,) RMS of each frame, NaN where nothing is seen."""
        return _summary(self.errors).rms

    @property
    def worst_frame(self) -> int | None:
        """The frame that was met least well as a whole; None where nothing is seen."""
        rms = self.frame_rms
        return int(self.frames[int(np.nanargmax(rms))]) if np.isfinite(rms).any() else None

    def status_counts(self) -> dict[str, int]:
        """How many frames ended in which status, the most frequent first."""
        return dict(Counter(map(_name_of, self.status)).most_common())

    def unseen_spans(self, shortest: int = 1) -> list[UnseenSpan]:
        """The gaps of at least ``shortest`` frames, the longest first."""
        spans = [
            UnseenSpan(name, int(self.frames[first]), int(self.frames[end - 1]), end - first)
            for name, unseen in zip(self.markers, np.isnan(self.errors).T, strict=True)
            for first, end in true_spans(unseen)
            if end - first >= shortest
        ]
        return sorted(spans, key=lambda span: -span.count)

    def csv(self) -> str:
        """The report as text; the columns are in the module's docstring."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(self._csv_rows())
        return text.getvalue()

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the report, whole or not at all.

        Raises ReportError, naming the file, where it cannot be written.
        """
        replace_file(Path(path), self.csv())

    def table(self) -> str:
        """Markers in millimetres, a total, a line on statuses and long gaps; no final newline."""
        total = self.total()
        rows = [_TABLE_HEAD]
        rows += [_table_row(row.name, row, row.worst_frame) for row in self.per_marker()]
        rows.append(_table_row("all", total, total.worst_frame))
        if total.weighted_rms is not None:
            rows.append(("weighted", "", _millimetres(total.weighted_rms), "", "", ""))
        return "\n".join([*_aligned(rows), self._closing_line()])

    def _csv_rows(self) -> Iterator[tuple[str, ...]]:
        """The rows under the header, as text."""
        for row in self.per_marker():
            worst = _text(row.worst_frame)
            yield ("marker", row.name, "", *_csv_figures(row), worst, _percent(row), "")
        for at in self.per_frame():
            worst = _text(at.worst_marker)
            yield ("frame", "", str(at.frame), *_csv_figures(at), worst, _percent(at), at.status)
        total = self.total()
        ends = (_text(total.worst_marker), _percent(total), self._counts_text())
        yield ("total", "all", _text(total.worst_frame), *_csv_figures(total), *ends)
        if total.weighted_rms is not None:
            yield ("total", "weighted", "", "", _csv_number(total.weighted_rms), "", "", "", "")
        for gap in self.filled:
            yield ("gap", gap.bone, f"{gap.first}-{gap.last}", "", "", "", "", "", gap.how)
        for limit in self.limits:
            yield ("limit", limit.bone, "", "", "", "", "", f"{limit.share:.2f}", "")

    def _closing_line(self) -> str:
        """How the frames ended and which markers were away for long."""
        line = f"{len(self.frames)} frames"
        counts = self._counts_text()
        line += f": {counts}." if counts else "."
        spans = self.unseen_spans(_LONG_SPAN)
        if not spans:
            return line
        named = [f"{span.marker} {span.first} to {span.last}" for span in spans[:_MOST_SPANS]]
        more = f" and {len(spans) - _MOST_SPANS} more" if len(spans) > _MOST_SPANS else ""
        return f"{line} Long unseen: {', '.join(named)}{more}."

    def _counts_text(self) -> str:
        """Such as "FITTED 149, UNSEEN 2"."""
        return ", ".join(f"{name} {count}" for name, count in self.status_counts().items())

    def _weighted_rms(self) -> float | None:
        """The root of the weighted mean square over what is seen; None without weights."""
        if self.weights is None:
            return None
        seen = ~np.isnan(self.errors)
        weights = np.broadcast_to(np.asarray(self.weights, dtype=np.float64), self.errors.shape)[seen]
        weight = float(weights.sum())
        if weight <= 0.0:
            return math.nan
        return math.sqrt(float((weights * self.errors[seen] ** 2).sum()) / weight)

    def _frame(self, index: int) -> int | None:
        """The frame number of a row, None for -1."""
        return int(self.frames[index]) if index >= 0 else None

    def _marker(self, index: int) -> str | None:
        """The name of a column, None for -1."""
        return self.markers[index] if index >= 0 else None


def _check_weights(weights: FloatArray, count: int) -> None:
    """Raise ReportError unless there is one finite weight of 0 or more for each marker."""
    if weights.shape != (count,) or not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise ReportError(f"weights must be {count} numbers of 0 or more, not {weights.tolist()}")


def _summary(errors: FloatArray) -> _Summary:
    """Figures along the last axis of (N, K) errors, without what is NaN."""
    seen: BoolArray = ~np.isnan(errors)
    count = seen.sum(axis=1)
    known = np.where(seen, errors, 0.0)
    some = count > 0
    divisor = np.maximum(count, 1)
    rows = np.arange(len(errors))
    ranked = np.where(seen, errors, -1.0)
    worst = ranked.argmax(axis=1) if errors.shape[1] else np.zeros(len(errors), dtype=np.intp)
    largest = ranked[rows, worst] if errors.shape[1] else np.zeros(len(errors))
    return _Summary(
        mean=np.where(some, known.sum(axis=1) / divisor, np.nan),
        rms=np.where(some, np.sqrt((known**2).sum(axis=1) / divisor), np.nan),
        max=np.where(some, largest, np.nan),
        worst=np.where(some, worst, -1),
        coverage=100.0 * count / max(errors.shape[1], 1),
    )


def _figures(figures: _Summary, row: int) -> tuple[float, float, float]:
    """Mean, RMS and maximum of one row."""
    return float(figures.mean[row]), float(figures.rms[row]), float(figures.max[row])


def _coverage(figures: _Summary, row: int) -> float:
    """The percentage that is seen in one row."""
    return float(figures.coverage[row])


def _name_of(status: str | Enum) -> str:
    """A status as text."""
    return status.name if isinstance(status, Enum) else str(status)


def _csv_figures(row: MarkerRow | FrameRow | TotalRow) -> tuple[str, str, str]:
    """Mean, RMS and maximum as CSV cells."""
    return _csv_number(row.mean), _csv_number(row.rms), _csv_number(row.max)


def _csv_number(metres: float) -> str:
    """Six digits, blank for NaN."""
    return "" if math.isnan(metres) else f"{metres:.6g}"


def _percent(row: MarkerRow | FrameRow | TotalRow) -> str:
    """The coverage as a CSV cell."""
    return f"{row.coverage:.2f}"


def _text(value: int | str | None) -> str:
    """A cell that may be blank."""
    return "" if value is None else str(value)


def _millimetres(metres: float) -> str:
    """Millimetres with one decimal, a dash for NaN."""
    return "-" if math.isnan(metres) else f"{1000.0 * metres:.1f}"


def _table_row(name: str, row: MarkerRow | TotalRow, worst_frame: int | None) -> tuple[str, str, str, str, str, str]:
    """The cells of one line of the table."""
    mean, rms, largest = (_millimetres(value) for value in (row.mean, row.rms, row.max))
    worst = "-" if worst_frame is None else str(worst_frame)
    return name, mean, rms, largest, worst, f"{row.coverage:.1f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines


def replace_file(path: Path, text: str) -> None:
    """Put the text in the file's place in one step, so that nobody ever reads half of it.

    Raises ReportError, naming the file, where it cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
        partial.replace(path)
    except OSError as trouble:
        raise ReportError(f"{path.name}: cannot be written: {trouble.strerror} ({path})") from None
    finally:
        # Once it has taken the other's place there is nothing left to remove.
        with suppress(OSError):
            partial.unlink()
