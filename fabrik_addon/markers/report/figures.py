"""How well each marker was met on each frame. Distances are metres; a marker that is not seen is never in a mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from ...core.errors import FabrikError
from ..clip import BoolArray, FloatArray, true_spans

IntArray = npt.NDArray[np.intp]


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
