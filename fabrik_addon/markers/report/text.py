"""A report as text: a CSV file, and a table for a terminal.

Distances are in meters in the CSV, and in millimeters in the table. Means ignore missing samples and samples that were
left out as wrong. Coverage shows how often a marker was seen.

The CSV has one header and these rows, by ``scope``, with ``name``, ``frame`` and ``worst``:

* marker: the marker, blank, its worst frame
* frame: blank, the frame, its worst marker
* total: "all", the worst frame, the worst marker; "weighted" has only ``rms_m``
* gap: the bone, frames such as 12-30, blank
* limit: the bone, blank, blank
* note, warning: a sentence, blank, blank
* rotation: the bone, blank, its worst frame

``mean_m``, ``rms_m``, ``max_m`` are meters, blank if nothing was seen. ``coverage`` is a percentage: for a marker, of
the frames on which it was seen; for a frame, of the markers seen on it; for the total, of all samples seen; for a
limit, of the frames on which it is active. ``status`` is the status of a frame, the number of frames for each status
(total), or how a gap was filled. Retargets also have ``mean_deg`` and ``max_deg``, the degrees between the rotations of
bones and the wanted ones. A name that a spreadsheet would run as a formula, such as ``=Head``, is preceded by ``'``.
"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ...core.errors import first_few
from .figures import Report, Row

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
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({column: _cell(value) for column, value in row.items()} for row in _csv_rows(report))
    return text.getvalue()


def _cell(value: object) -> object:
    """A value that no spreadsheet runs as a formula: text that begins like a formula gets a ' in front.

    Carriage returns are replaced, since `csv` does not quote them and they would begin another row.
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\r", " ")
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def table_text(report: Report) -> str:
    """A table of errors in millimeters, their total, and a line on statuses and long gaps. No final newline."""
    # Only retargets report rotations. Their errors are those of bones.
    head, total = ("bone" if report.rotations else "marker", *_TABLE_HEAD), report.total()
    rows = [head, *(_table_row(row.name, row) for row in report.per_marker()), _table_row("all", total)]
    if total.weighted_rms is not None:
        rows.append(("weighted", "", _millimeters(total.weighted_rms), "", "", ""))
    return "\n".join([*_aligned(rows), _closing_line(report)])


def _csv_rows(report: Report) -> Iterator[dict[str, object]]:
    """The rows below the header; missing values and None are blank."""
    for row in report.per_marker():
        yield {"scope": "marker", "name": row.name, "worst": row.worst_frame, **_csv_figures(row)}
    for at in report.per_frame():
        ends = {"worst": at.worst_marker, "status": at.status}
        yield {"scope": "frame", "frame": at.frame, **_csv_figures(at), **ends}
    total = report.total()
    ends = {"worst": total.worst_marker, "status": _counts(report)}
    yield {"scope": "total", "name": "all", "frame": total.worst_frame, **_csv_figures(total), **ends}
    if total.weighted_rms is not None:
        yield {"scope": "total", "name": "weighted", "rms_m": _csv_number(total.weighted_rms)}
    for gap in report.filled:
        yield {"scope": "gap", "name": gap.bone, "frame": f"{gap.first}-{gap.last}", "status": gap.how}
    for bone, share in report.limits.items():
        yield {"scope": "limit", "name": bone, "coverage": f"{share:.2f}"}
    for scope, sentences in (("note", report.notes), ("warning", report.doubts)):
        for sentence in sentences:
            yield {"scope": scope, "name": sentence}
    for bone, radians in report.rotations.items():
        off, worst = np.degrees(radians), report.frames[int(radians.argmax())]
        figures = {"mean_deg": f"{off.mean():.4g}", "max_deg": f"{off.max():.4g}"}
        yield {"scope": "rotation", "name": bone, "worst": worst, **figures}


def rotations_line(report: Report) -> Iterator[str]:
    """A line on the errors of rotations; empty if no rotations were wanted."""
    if report.rotations:
        off = np.degrees(np.stack([*report.rotations.values()]))
        bone, row = divmod(int(off.argmax()), off.shape[1])
        worst = f"worst {off.max():.1f}° ({list(report.rotations)[bone]}, frame {report.frames[row]})"
        yield f"Rotations: median error {np.median(off):.1f}°, {worst}"


def _closing_line(report: Report) -> str:
    """The number of frames for each status, and the longest gaps."""
    counts = _counts(report)
    line = f"{len(report.frames)} frames" + (f": {counts}." if counts else ".")
    named = [f"{span.marker} {span.first} to {span.last}" for span in report.unseen_spans(_LONG_SPAN)]
    return f"{line} Long unseen: {first_few(named, _MAX_SPANS)}." if named else line


def _counts(report: Report) -> str:
    """The number of frames of each status, for example "FITTED 149, UNSEEN 2"."""
    return ", ".join(f"{name} {count}" for name, count in report.status_counts().items())


def _csv_figures(row: Row) -> dict[str, str]:
    """The columns of numbers."""
    mean, rms, largest = (_csv_number(value) for value in (row.mean, row.rms, row.max))
    return {"mean_m": mean, "rms_m": rms, "max_m": largest, "coverage": f"{row.coverage:.2f}"}


def _csv_number(meters: float) -> str:
    """Six digits; blank for NaN."""
    return "" if math.isnan(meters) else f"{meters:.6g}"


def _millimeters(meters: float) -> str:
    """Millimeters with one decimal; a dash for NaN."""
    return "-" if math.isnan(meters) else f"{1000.0 * meters:.1f}"


def _table_row(name: str, row: Row) -> tuple[str, str, str, str, str, str]:
    """The cells of one line of the table."""
    mean, rms, largest = (_millimeters(value) for value in (row.mean, row.rms, row.max))
    worst = "-" if row.worst_frame is None else str(row.worst_frame)
    return name, mean, rms, largest, worst, f"{row.coverage:.1f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the first column left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
