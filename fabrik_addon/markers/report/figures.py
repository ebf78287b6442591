"""The error of each marker on each frame, in meters. Means ignore missing and rejected samples."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from ...core.errors import FabrikError
from ..clip import BoolArray, FloatArray, true_spans
from ..solving.course import FilledSpan

# Frames whose rows are made together, so that memory does not grow with the take.
_TOGETHER: Final = 1000


class ReportError(FabrikError):
    """A report that does not exist, or invalid data for one, such as arrays of different lengths."""


class Row(NamedTuple):
    """The errors of one marker, of one frame, or of all samples.

    Errors are in meters; NaN if nothing is seen. coverage: percentage of samples that are seen. name, frame: the row's
    marker or frame. worst_marker, worst_frame: those with the largest error; None if nothing is seen. weighted_rms:
    None without weights.
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
    weighted_rms: float | None = None


@dataclass(frozen=True)
class UnseenSpan:
    """Frames, first to last, on which a marker is not seen; ``count`` of them are in the report."""

    marker: str
    first: int
    last: int
    count: int


@dataclass(frozen=True, eq=False)
class Report:
    """The errors of a solved recording.

    Attributes:
        errors: (F, M) meters; NaN if the marker is not seen.
        markers, frames: M names, F frame numbers.
        status: F names, or members of an enum.
        weights: (M,), only for the weighted total.
        filled: spans, in frame numbers, over which bones had no markers.
        limits: by bone, percentage of the frames on which its limits are active.
        outliers: (F, M) samples that were left out as wrong. They only count in the coverage. None if they were not
            searched for.
        notes: omissions, corrections and choices, one sentence each.
        doubts: reasons why the result may be wrong, one sentence each.
        rotations: by bone, (F,) radians between its rotation and the wanted one.

    Raises ReportError if shapes do not match, or if errors are negative or infinite.
    """

    errors: FloatArray
    markers: Sequence[str]
    frames: Sequence[int]
    status: Sequence[str | Enum]
    weights: Sequence[float] | FloatArray | None = None
    filled: Sequence[FilledSpan] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    outliers: BoolArray | None = None
    notes: Sequence[str] = ()
    doubts: Sequence[str] = ()
    rotations: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the shapes and make the arrays read-only."""
        errors = np.asarray(self.errors, dtype=np.float64)
        expected = (len(self.frames), len(self.markers))
        if errors.shape != expected or len(self.status) != expected[0]:
            raise ReportError(
                f"errors of {expected[0]} frames and {expected[1]} markers must have the shape {expected} and "
                f"one status per frame, not {errors.shape} with {len(self.status)}"
            )
        if (np.isinf(errors) | (errors < 0.0)).any():
            raise ReportError("errors must be finite and not negative, or NaN where not seen")
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=np.float64)
            if weights.shape != expected[1:] or not (np.isfinite(weights) & (weights >= 0.0)).all():
                raise ReportError(f"weights must be {expected[1]} numbers of 0 or more, not {weights.tolist()}")
        object.__setattr__(self, "errors", errors)

    def per_marker(self) -> list[Row]:
        """One row for each marker, in the given order."""
        rows = zip(self.markers, _rows(self.used.T, self.seen.T), strict=True)
        return [row._replace(name=name, worst_frame=self._frame(worst)) for name, (row, worst) in rows]

    def per_frame(self) -> Iterator[Row]:
        """One row for each frame, in the given order."""
        for first in range(0, len(self.frames), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            rows = _rows(self.used[part], self.seen[part])
            for frame, status, (row, worst) in zip(self.frames[part], self.status[part], rows, strict=True):
                yield row._replace(frame=int(frame), worst_marker=self._marker(worst), status=_name_of(status))

    def total(self) -> Row:
        """One row for all samples."""
        ((row, worst),) = _rows(self.used.reshape(1, -1), self.seen.reshape(1, -1))
        frame, marker = (None, None) if worst is None else divmod(worst, len(self.markers))
        weighted = None
        if self.weights is not None:
            counts = ~np.isnan(self.used)
            weights = np.broadcast_to(np.asarray(self.weights, dtype=np.float64), self.used.shape)[counts]
            squares = self.used[counts] ** 2
            weighted = math.sqrt(float(np.average(squares, weights=weights))) if weights.any() else math.nan
        return row._replace(worst_marker=self._marker(marker), worst_frame=self._frame(frame), weighted_rms=weighted)

    @cached_property
    def seen(self) -> BoolArray:
        """(F, M) whether the marker is seen."""
        return ~np.isnan(self.errors)

    @cached_property
    def used(self) -> FloatArray:
        """(F, M) the errors that are used; NaN for missing samples and for samples that were left out."""
        return self.errors if self.outliers is None else np.where(self.outliers, np.nan, self.errors)

    @property
    def left_out(self) -> dict[str, float]:
        """By marker, percentage of the frames on which it was left out as wrong."""
        if self.outliers is None or not len(self.outliers):
            return {}
        return dict(zip(self.markers, (100.0 * self.outliers.mean(axis=0)).tolist(), strict=True))

    def status_counts(self) -> dict[str, int]:
        """The number of frames for each status, highest first."""
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

    def _frame(self, row: int | None) -> int | None:
        """The frame number of a row of `errors`."""
        return None if row is None else int(self.frames[row])

    def _marker(self, column: int | None) -> str | None:
        """The marker of a column of `errors`."""
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


def _name_of(status: str | Enum) -> str:
    """A status as text."""
    return status.name if isinstance(status, Enum) else str(status)
