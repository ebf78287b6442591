"""The error of each marker on each frame, and its report as a CSV file and as a table for a terminal.

Distances are in meters; in the table, in millimeters. Means ignore missing samples and samples that were left out as
wrong.

The CSV has one header and these rows, by ``scope``, with ``name``, ``frame`` and ``worst``:

* marker: the marker, blank, its worst frame
* frame: blank, the frame, its worst marker
* total: "all", the worst frame, the worst marker
* gap: the bone, frames such as 12-30, blank
* limit: the bone, blank, blank
* note, warning: a sentence, blank, blank
* rotation: the bone, blank, its worst frame

``mean_m``, ``rms_m``, ``max_m`` are meters, blank if nothing was seen. ``coverage`` is a percentage: for a marker, of
the frames on which it was seen; for a frame, of the markers seen on it; for the total, of all samples seen; for a
limit, of the frames on which it is active. ``status`` is the status of a frame, the number of frames for each status
(total), or the method by which a gap was filled. Retargets also have ``mean_deg`` and ``max_deg``, the degrees between
the rotations of bones and the wanted ones. A name that a spreadsheet would run as a formula, such as ``=Head``, is
preceded by ``'``.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from ..core import Status
from ..core.arrays import BoolArray, FloatArray
from ..core.errors import first_few
from .clip import true_spans
from .solving.course import FilledSpan

# Frames whose rows are made together, so that memory does not grow with the take.
_TOGETHER: Final = 1000


class Row(NamedTuple):
    """The errors of one marker, of one frame, or of all samples.

    Errors are in meters; NaN if nothing is seen. coverage: percentage of samples that are seen. name, frame: the row's
    marker or frame. worst_marker, worst_frame: those with the largest error; None if nothing is seen.
    """

    mean: float
    rms: float
    max: float
    coverage: float
    name: str = ""
    frame: int | None = None
    worst_marker: str | None = None
    worst_frame: int | None = None
    status: str = ""


@dataclass(frozen=True, eq=False)
class Report:
    """The errors of a solved recording.

    Attributes:
        errors: (F, M) meters; NaN if the marker is not seen.
        markers, frames: M names, F frame numbers.
        status: of F frames.
        filled: spans, in frame numbers, over which bones had no markers.
        limits: by bone, percentage of the frames on which its limits are active.
        outliers: (F, M) samples that were left out as wrong. They only count in the coverage. None if they were not
            searched for.
        notes: omissions, corrections and choices, one sentence each.
        doubts: reasons why the result may be wrong, one sentence each.
        rotations: by bone, (F,) radians between its rotation and the wanted one.
    """

    errors: FloatArray
    markers: Sequence[str]
    frames: Sequence[int]
    status: Sequence[Status]
    filled: Sequence[FilledSpan] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    outliers: BoolArray | None = None
    notes: Sequence[str] = ()
    doubts: Sequence[str] = ()
    rotations: Mapping[str, FloatArray] = field(default_factory=dict)

    def per_marker(self) -> list[Row]:
        """One row for each marker, in the given order."""
        # One at a time, so that memory does not grow with the take.
        parts = (self._part((slice(None), column)) for column in range(len(self.markers)))
        columns = (_rows(used[None], seen[None])[0] for used, seen in parts)
        rows = zip(self.markers, columns, strict=True)
        return [row._replace(name=name, worst_frame=self._frame(worst)) for name, (row, worst) in rows]

    def per_frame(self) -> Iterator[Row]:
        """One row for each frame, in the given order."""
        for first in range(0, len(self.frames), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            rows = _rows(*self._part(part))
            for frame, status, (row, worst) in zip(self.frames[part], self.status[part], rows, strict=True):
                yield Row(*row[:4], "", int(frame), self._marker(worst), None, status.name)

    @cached_property
    def total(self) -> Row:
        """One row for all samples."""
        blocks, counts, frames = list[tuple[Row, int | None]](), list[int](), list[int]()
        for first in range(0, len(self.frames), _TOGETHER):
            used, seen = self._part(slice(first, first + _TOGETHER))
            blocks += _rows(used.reshape(1, -1), seen.reshape(1, -1))
            counts.append(np.count_nonzero(~np.isnan(used)))
            frames.append(len(used))
        coverage = float(np.average([row.coverage for row, _ in blocks], weights=frames)) if frames else 0.0
        some = [place for place, count in enumerate(counts) if count]
        if not some:
            return Row(math.nan, math.nan, math.nan, coverage)
        shares = np.array(counts)[some] / sum(counts)
        mean = float(shares @ [blocks[place][0].mean for place in some])
        rms = math.sqrt(shares @ [blocks[place][0].rms ** 2 for place in some])
        block = max(some, key=lambda place: blocks[place][0].max)
        row, worst = blocks[block]
        assert worst is not None
        frame, marker = divmod(worst, len(self.markers))
        ends = self._marker(marker), self._frame(block * _TOGETHER + frame)
        return Row(mean, rms, row.max, coverage, "", None, *ends)

    def _part(self, part: Any) -> tuple[FloatArray, BoolArray]:
        """The errors of some samples, NaN if a sample is not used, and whether the samples are seen."""
        errors = self.errors[part]
        used = errors if self.outliers is None else np.where(self.outliers[part], np.nan, errors)
        return used, ~np.isnan(errors)

    @property
    def left_out(self) -> dict[str, float]:
        """By marker, percentage of the frames on which it was left out as wrong."""
        if self.outliers is None or not len(self.outliers):
            return {}
        return dict(zip(self.markers, (100.0 * self.outliers.mean(axis=0)).tolist(), strict=True))

    def status_counts(self) -> dict[str, int]:
        """The number of frames for each status, highest first."""
        return dict(Counter(status.name for status in self.status).most_common())

    def _frame(self, row: int | None) -> int | None:
        return None if row is None else int(self.frames[row])

    def _marker(self, column: int | None) -> str | None:
        return None if column is None else self.markers[column]


def _rows(errors: FloatArray, seen: BoolArray) -> list[tuple[Row, int | None]]:
    """Rows from errors (N, K), ignoring NaN, each with the index of its largest error; None if all are NaN.

    seen: (N, K) samples that count in the coverage.
    """
    counting = ~np.isnan(errors)
    some = counting.any(axis=1)
    # The total is one row with all samples. Computing in place saves memory.
    known, divisors = np.where(counting, errors, 0.0), np.maximum(counting.sum(axis=1), 1)
    largest, means = known.max(axis=1, initial=0.0), known.sum(axis=1) / divisors
    worst = (counting & (known == largest[:, None])).argmax(axis=1) if known.size else np.zeros(len(known), np.intp)
    np.square(known, out=known)
    figures = np.stack([means, np.sqrt(known.sum(axis=1) / divisors), largest])
    coverage = 100.0 * seen.sum(axis=1) / max(errors.shape[1], 1)
    rows = map(Row, *np.where(some, figures, np.nan).tolist(), coverage.tolist())
    return [
        (row, place if counts else None) for row, place, counts in zip(rows, worst.tolist(), some.tolist(), strict=True)
    ]


COLUMNS: Final = ("scope", "name", "frame", "mean_m", "rms_m", "max_m", "worst", "coverage", "status")
ROTATION_COLUMNS: Final = ("mean_deg", "max_deg")
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t")
_TABLE_HEAD: Final = ("mean mm", "rms mm", "max mm", "worst frame", "seen %")
# The table lists gaps of at least the first number of frames; it lists at most the second number of gaps.
_LONG_SPAN: Final = 10
_MAX_SPANS: Final = 5


def csv_text(report: Report) -> str:
    """The report as CSV text; the module's docstring describes the columns."""
    text = io.StringIO(newline="")
    columns = (*COLUMNS, *ROTATION_COLUMNS) if report.rotations else COLUMNS
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in _csv_rows(report):
        writer.writerow([*row, *[""] * (len(columns) - len(row))])
    return text.getvalue()


def _cell(value: str | None) -> str | None:
    """A text that no spreadsheet runs as a formula: one that begins like a formula gets a ' in front.

    Carriage returns are replaced, since `csv` does not quote them and they would begin another row.
    """
    text = value and value.replace("\r", " ")
    return f"'{text}" if text and text.startswith(_FORMULA_STARTS) else text


def table_text(report: Report) -> str:
    """A table of errors in millimeters, their total, and a line on statuses and long gaps. No final newline."""
    # Only retargets report rotations. Their errors are those of bones.
    head = ("bone" if report.rotations else "marker", *_TABLE_HEAD)
    rows = [head, *(_table_row(row.name, row) for row in report.per_marker()), _table_row("all", report.total)]
    return "\n".join([*_aligned(rows), _closing_line(report)])


def _csv_rows(report: Report) -> Iterator[list[Any]]:
    """The rows below the header; missing values and None are blank."""
    for row in report.per_marker():
        yield ["marker", _cell(row.name), "", *_csv_figures(row), row.worst_frame, f"{row.coverage:.2f}", ""]
    for at in report.per_frame():
        yield ["frame", "", at.frame, *_csv_figures(at), _cell(at.worst_marker), f"{at.coverage:.2f}", at.status]
    total = report.total
    ends = _cell(total.worst_marker), f"{total.coverage:.2f}", _counts(report)
    yield ["total", "all", total.worst_frame, *_csv_figures(total), *ends]
    for gap in report.filled:
        yield ["gap", _cell(gap.bone), f"{gap.first}-{gap.last}", "", "", "", "", "", gap.how]
    for bone, share in report.limits.items():
        yield ["limit", _cell(bone), "", "", "", "", "", f"{share:.2f}", ""]
    for scope, sentences in (("note", report.notes), ("warning", report.doubts)):
        for sentence in sentences:
            yield [scope, _cell(sentence), *[""] * 7]
    for bone, radians in report.rotations.items():
        off, worst = np.degrees(radians), report.frames[int(radians.argmax())]
        yield ["rotation", _cell(bone), "", "", "", "", worst, "", "", f"{off.mean():.4g}", f"{off.max():.4g}"]


def rotations_line(report: Report) -> Iterator[str]:
    """A line on the errors of rotations; empty if no rotations were wanted."""
    if report.rotations:
        off = np.degrees(np.stack([*report.rotations.values()]))
        bone, row = divmod(int(off.argmax()), off.shape[1])
        worst = f"worst {off.max():.1f}° ({list(report.rotations)[bone]}, frame {report.frames[row]})"
        yield f"Rotations: median error {np.median(off):.1f}°, {worst}"


def _closing_line(report: Report) -> str:
    counts = _counts(report)
    line = f"{len(report.frames)} frames" + (f": {counts}." if counts else ".")
    gaps = [
        (end - first, f"{name} {report.frames[first]} to {report.frames[end - 1]}")
        for name, errors in zip(report.markers, report.errors.T, strict=True)
        for first, end in true_spans(np.isnan(errors))
        if end - first >= _LONG_SPAN
    ]
    named = [gap for _, gap in sorted(gaps, key=lambda gap: -gap[0])]
    return f"{line} Long unseen: {first_few(named, _MAX_SPANS)}." if named else line


def _counts(report: Report) -> str:
    return ", ".join(f"{name} {count}" for name, count in report.status_counts().items())


def _csv_figures(row: Row) -> list[str]:
    """Mean, RMS and largest error: meters with six digits, blank for NaN."""
    return ["" if math.isnan(meters) else f"{meters:.6g}" for meters in row[:3]]


def _table_row(name: str, row: Row) -> tuple[str, ...]:
    """The cells of one line of the table: millimeters with one decimal, a dash for NaN."""
    figures = ["-" if math.isnan(meters) else f"{1000.0 * meters:.1f}" for meters in (row.mean, row.rms, row.max)]
    return name, *figures, "-" if row.worst_frame is None else str(row.worst_frame), f"{row.coverage:.1f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
