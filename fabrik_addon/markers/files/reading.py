"""Helpers shared by the readers of marker files: bytes, arrays, units, names, and missing samples.

NumPy's .npy and .npz files are read without unpickling, since pickles can run code. AMASS's .npz files have
`marker_data` (F, M, 3) and `marker_labels`, meters, Z up. Source: nghorbani/amass (notebook 01). The rate is
`mocap_framerate`, in later files `mocap_frame_rate`. SOMA uses `markers`, `labels` and `frame_rate`, in millimeters
(nghorbani/soma). Units that are not given follow from the person's size.
"""

import csv
import io
import itertools
import logging
import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ...core.arrays import BoolArray, FloatArray
from ..clip import FEWEST_MARKERS, Clip, MarkerFileError, UpAxis, up_axis_by_markers
from ..mapping.labels import is_unlabelled
from ..person import up_of_markers


class Chosen(NamedTuple):
    """The user's choices for a file, as in `read_markers`; None: from the file, or detected."""

    units: str | None = None
    up_axis: UpAxis | None = None
    layout: str | None = None
    rate: float | None = None


# A parser: from a file's bytes and the user's choices to a clip.
Parser: TypeAlias = Callable[[bytes, Chosen], Clip]

_log = logging.getLogger(__name__)

_NOT_SEEN: Final = re.compile(r"|--?|n/?a|null|none|[-+]?nan(\(\w*\))?|[-+]?1\.#(qnan|ind|inf)\d*", re.IGNORECASE)

METERS: Final[Mapping[str, float]] = {"mm": 0.001, "cm": 0.01, "dm": 0.1, "m": 1.0, "in": 0.0254, "ft": 0.3048}
# The extent of a person's points in each unit, from a sitting child to an adult with raised arms.
_SIZES: Final[Mapping[str, tuple[float, float]]] = {"m": (0.3, 4.0), "cm": (30.0, 300.0), "mm": (300.0, 4000.0)}
# Meters: hardly anyone is shorter. In centimeters, such a person has the same numbers as an adult in inches.
_SHORTEST: Final = 0.85
# Hz, the frame rate of most cameras.
_USUAL_RATE: Final = 30.0
# If the rates from header and times differ by more than this fraction, there is a warning.
_RATE_SLACK: Final = 0.02
# Seconds: the difference of two rounded times is off by at most this.
_ROUNDED: Final = 1e-3
# A note if the hips are always at the origin, because then the floor is unknown.
IN_PLACE: Final = (
    "the hips stay at the origin, so up is the trunk's direction: choose the up axis if the person is lying down"
)
# Numbers that mean "not seen": those with only digits 9, and those at least this large (10 km in millimeters).
_NO_POSITION: Final = 1e7
_NINES: Final = re.compile(r"99\.?9[9.]*")
# Rates (Hz) between these are plausible. The bounds are not: times in steps of exactly 1 s or 1 ms are frame numbers.
_SLOWEST, _FASTEST = 1.0, 1000.0
# Frame numbers may have gaps. If their range exceeds this many times the number of rows, they are ignored.
_MOST_LEFT_OUT: Final = 100
_LONG_UNITS: Final[Mapping[str, str]] = {
    "millimeter": "mm", "centimeter": "cm", "meter": "m", "inch": "in", "inche": "in", "foot": "ft", "feet": "ft",
}  # fmt: skip


def read_file(path: str | os.PathLike[str], parse: Parser, chosen: Chosen) -> Clip:
    """Read a file with ``parse``, and log the notes and doubts of the clip.

    Raises MarkerFileError, one sentence that names the file, if it cannot be read.
    """
    path = Path(path)
    axes: dict[str | None, UpAxis | None] = {None: None, "Y": "Y", "Z": "Z"}
    axis = chosen.up_axis.upper() if chosen.up_axis is not None else None
    try:
        if axis not in axes:
            raise MarkerFileError(f"the up axis must be Y or Z, not {chosen.up_axis!r}")  # noqa: TRY301
        # Blender refuses names with bytes that are not text.
        name = os.fsencode(path.name).decode("utf-8", "replace")
        clip = replace(parse(file_bytes(path), chosen._replace(up_axis=axes[axis])), source=name)
    except MarkerFileError as trouble:
        # The error keeps its class, which may have more data.
        trouble.args = (f"{path.name}: {trouble}",)
        raise
    for note in (*clip.notes, *clip.doubts):
        _log.warning("%s: %s", path.name, note)
    return clip


def file_bytes(path: Path) -> bytes:
    """The bytes of a file; raises MarkerFileError if it is missing or empty."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise MarkerFileError(f"there is no such file in {path.absolute().parent}: choose another") from None
    except OSError as trouble:
        raise MarkerFileError(f"cannot be read ({trouble.strerror}, {path}): choose another") from None
    if not content.strip():
        raise MarkerFileError("the file is empty: choose another")
    return content


def decoded(content: bytes) -> str:
    """The decoded text: by its byte order mark or zero bytes, else UTF-8, else Latin-1, which accepts any bytes.

    Zero bytes at its end are left out. A file has these if it was not saved completely.
    """
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    if b"\0" in content[:2]:
        return content.decode("utf-16-le" if content[0] else "utf-16-be", errors="replace")
    content = content.rstrip(b"\0\x1a")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1").removeprefix("\xef\xbb\xbf")


def number_in(cell: str) -> float | None:
    """A cell as a number: NaN for blanks and words that mean "not seen"; None if it is not a number.

    A comma counts as a decimal point if there is no other.
    """
    if _NOT_SEEN.fullmatch(cell):
        return math.nan
    if cell.count(",") == 1 and "." not in cell:
        cell = cell.replace(",", ".")
    try:
        return float(cell)
    except ValueError:
        return None


def numbers_in(cells: Sequence[str], line: int, columns: Sequence[int]) -> list[float]:
    """The cells as numbers, NaN if not seen; raises MarkerFileError with the line and column of other text.

    line: counted from 1. columns: those of the cells, counted from 0.
    """
    try:
        return [float(cell) if cell else math.nan for cell in cells]
    except ValueError:
        numbers = [number_in(cell) for cell in cells]
    if None in numbers:
        place = numbers.index(None)
        raise MarkerFileError(
            f"line {line}, column {columns[place] + 1}: {cells[place]!r} is not a number: export it again"
        )
    return [number for number in numbers if number is not None]


def unit_name(text: str) -> str:
    """The short name of a unit; raises MarkerFileError, which names the unit, if it is unknown."""
    word = text.strip().strip("\"'()[]").lower()
    word = _LONG_UNITS.get(word.removesuffix("s").replace("metre", "meter"), word)
    if word in METERS:
        return word
    known = ", ".join(METERS)
    if not word:
        raise MarkerFileError(f"the header has no units: choose them ({known})")
    raise MarkerFileError(f"the units {text.strip()!r} are not known: choose them ({known})")


def extent(points: FloatArray) -> float:
    """The median extent of (F, M, 3) points along their longest axis; 0 if no frame has several points."""
    frames = points[np.isfinite(points).all(axis=2).sum(axis=1) > 1]
    return float(np.median((np.nanmax(frames, axis=1) - np.nanmin(frames, axis=1)).max(axis=1))) if len(frames) else 0.0


def unit_of(points: FloatArray) -> str:
    """The unit in which (F, N, 3) points have a person's size; raises MarkerFileError if there is none."""
    if not np.isfinite(points).any():
        raise MarkerFileError("no marker is visible on any frame: choose another recording")
    size = extent(points)
    for unit, (least, most) in _SIZES.items():
        if least <= size < most:
            return unit
    raise MarkerFileError(
        f"its units are unknown, and {size:.3g} is not a person's size in m, cm or mm: choose the units "
        f"({', '.join(METERS)})"
    )


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with ``_2``, ``_3`` … appended to repeated ones."""
    done: dict[str, None] = {}
    for name in names:
        numbered = (f"{name}_{count}" for count in itertools.count(2))
        free = (other for other in numbered if other not in done and other not in names)
        done[next(free) if name in done else name] = None
    return tuple(done)


def without_unseen(points: FloatArray) -> FloatArray:
    """(F, M, 3) points, with all coordinates NaN for samples that are not positions.

    Writers fill missing samples with 0, or with a number that is not a position: -1, only digits 9 such as -9999 and
    999.999, or a number too large for any room.
    """
    with np.errstate(invalid="ignore"):
        alike = (points == points[..., :1]).all(axis=-1)
        unseen: BoolArray = ~(np.abs(points) < _NO_POSITION).all(axis=-1)
    values = np.unique(points[alike & ~unseen, 0])
    fillers = [value for value in values if value in (0.0, -1.0) or _NINES.fullmatch(f"{abs(value):.7g}")]
    unseen |= alike & np.isin(points[..., 0], fillers)
    return np.where(unseen[..., None], np.nan, points)


def to_clip(
    chosen: Chosen,
    names: Sequence[str],
    points: FloatArray,
    unit: str | None,
    usual_up: UpAxis,
    rate: float | None,
    *,
    timed: float | None = None,
    needs_rate: bool = False,
    notes: Sequence[str] = (),
) -> Clip:
    """A clip in meters with unique names, and NaN for missing samples.

    Args:
        chosen: the user's choices, which override the file's values.
        names: M labels.
        points: (F, M, 3) in the file's unit and axes.
        unit: the unit of the file; None: detected from a person's size.
        usual_up: the up axis if the markers do not show it; then a doubt is added.
        rate: Hz, from the header.
        timed: Hz, from the times in the file.
        needs_rate: raise an error if neither rate is known; else assume that of most cameras, with a doubt.
        notes: sentences about the file.

    Raises MarkerFileError for an unknown unit or rate, and if no point is ever seen.
    """
    # The copy is converted in place, to save memory.
    points = without_unseen(points)
    if np.isnan(points).all():
        raise MarkerFileError("no marker is visible on any frame: choose another recording")
    stated = chosen.units if chosen.units is not None else unit
    unit = unit_of(points) if stated is None else unit_name(stated)
    points *= METERS[unit]
    points.setflags(write=False)
    unit_doubts = tuple[str, ...]()
    if stated is None and (size := extent(points)) < _SHORTEST:
        doubt = (
            f"The units are unknown; assumed {unit}, so the person measures {size:.2f} m: choose other units, "
            "such as inches, if that is wrong"
        )
        unit_doubts = (doubt,)
    up, up_doubts = (chosen.up_axis, ()) if chosen.up_axis else guessed_up(points, names, usual_up)
    known = (rate or timed) if chosen.rate is None else chosen.rate
    if known is None and needs_rate:
        raise MarkerFileError("the frame rate is unknown: choose one")
    used, rate_doubts = rate_or_usual(known)
    if chosen.rate is None:
        rate_doubts += two_rates_doubt(used, timed)
    doubts = (*unit_doubts, *up_doubts, *rate_doubts)
    return Clip(unique_names(names), used, points, up, unit, notes=tuple(notes), doubts=doubts)


def two_rates_doubt(used: float, timed: float | None) -> tuple[str, ...]:
    """A doubt if the rate from the times in a file, or None, differs from the one that is used; both in Hz."""
    if timed is None or abs(timed - used) <= _RATE_SLACK * used:
        return ()
    doubt = (
        f"The file has two frame rates, {used:g} and {timed:.5g} Hz; used the first: choose the other if the "
        "motion is too slow or too fast"
    )
    return (doubt,)


def rate_in_cell(cell: str) -> float | None:
    """A cell as a rate in Hz; None if it is not a positive number."""
    rate = number_in(cell)
    return rate if rate is not None and 0.0 < rate < math.inf else None


def rate_of_times(times: FloatArray, stated: float | None = None) -> float | None:
    """Rows per second from times (F,), NaN if unknown. None if the rate is implausible in all units from s to ns.

    The rate is measured from the first time to the last, since times are often rounded to a millisecond. If rounding
    explains the difference, it is the stated rate.
    """
    seen = np.flatnonzero(np.isfinite(times))
    passed = float(times[seen[-1]] - times[seen[0]]) if len(seen) else 0.0
    if passed <= 0.0:
        return None
    steps = float(seen[-1] - seen[0])
    for second in (1.0, 1e3, 1e6, 1e9):
        if plausible_rate(rate := steps / passed * second):
            return stated if stated and abs(steps / stated * second - passed) <= _ROUNDED * second else rate
    return None


def plausible_rate(rate: float) -> bool:
    """Whether people are recorded at such a rate (Hz)."""
    return _SLOWEST < rate < _FASTEST


def in_place(frames: FloatArray, rows: FloatArray) -> tuple[FloatArray, tuple[str, ...]]:
    """Rows (F, n) in the order of their frame numbers (F,), NaN for missing frames; and notes on changes.

    The first column is the time, NaN if unknown. Repeated rows count once. Unordered rows are sorted, unless their
    times contradict. If the frame numbers do not increase by whole steps, all rows are used as they are.
    """
    again = np.flatnonzero(np.diff(frames) == 0.0) + 1
    twice = [place for place in again if np.array_equal(rows[place], rows[place - 1], equal_nan=True)]
    if twice:
        placed, notes = in_place(np.delete(frames, twice), np.delete(rows, twice, axis=0))
        return placed, (f"{len(twice)} frames occur more than once; used each of them once", *notes)
    order = np.argsort(frames, kind="stable")
    in_order = bool((np.diff(order) == 1).all())
    if not in_order and (np.diff(frames[order]) > 0.0).all() and not (np.diff(rows[order, 0]) < 0.0).any():
        placed, notes = in_place(frames[order], rows[order])
        return placed, ("the frames were not in order; sorted them by their numbers", *notes)
    steps = np.diff(frames)
    rising = bool(np.isfinite(frames).all() and (steps > 0.0).all())
    places = (frames - frames[0]) / np.median(steps) if rising and len(steps) else np.arange(len(frames))
    if not rising or (places != np.round(places)).any() or places[-1] > _MOST_LEFT_OUT * len(frames):
        return rows, ("the frame numbers are not evenly spaced; used every row as one frame",)
    if places[-1] == len(rows) - 1:
        return rows, ()
    filled = np.full((int(places[-1]) + 1, rows.shape[1]), np.nan)
    filled[places.astype(np.intp)] = rows
    missing = len(filled) - len(rows)
    return filled, (f"{missing} frames are missing; left gaps for them",)


def rate_or_usual(rate: float | None) -> tuple[float, tuple[str, ...]]:
    """The rate in Hz; if it is unknown, that of most cameras, with a doubt."""
    doubt = f"The frame rate is unknown; assumed {_USUAL_RATE:g} Hz: choose another if that is wrong"
    return (_USUAL_RATE, (doubt,)) if rate is None else (rate, ())


def guessed_up(positions: FloatArray, names: Sequence[str], default: UpAxis) -> tuple[UpAxis, tuple[str, ...]]:
    """The up axis for a file without one, guessed from (F, M, 3) positions in meters, and doubts.

    The default is used if the positions do not show the axis. Then a doubt is added, unless there are too few markers.
    """
    found = up_of_markers(positions, names)
    if found is not None and found[1]:
        up: UpAxis = "Y" if found[0] == 1 else "Z"
        return up, () if found[2] else (unknown_up(up),)
    # Unlabeled markers may be reflections or other objects.
    labeled = [place for place, name in enumerate(names) if not is_unlabelled(name)] or slice(None)
    stated = up_axis_by_markers(positions[:, labeled])
    return stated or default, () if stated or len(names) < FEWEST_MARKERS else (unknown_up(default),)


def unknown_up(assumed: UpAxis) -> str:
    """The doubt about an up axis that neither the file nor the poses show."""
    return f"The up axis is unknown; assumed {assumed}: choose the other one if the person is not upright"


def frame_count_doubt(stated: float, there: int) -> tuple[str, ...]:
    """A doubt if there are fewer frames than the header gives; `stated` is NaN if it gives no number."""
    return (f"The header gives {stated:g} frames, but there are only {there}: export it again",) * (stated > there)


# The separator is detected from this many lines.
_FIRST_LINES: Final = 8


class CsvRows:
    """The rows of a table in text, read one by one to save memory.

    cut: the file's last line has no line end, so its last number may be incomplete. is_spaced: cells of the last row
    were separated by spaces.
    """

    def __init__(self, text: str, *, plain: bool = False) -> None:
        """Find the separator: tab, semicolon or comma.

        plain: quotes are ordinary characters, and rows without separators are split at spaces.
        """
        self.is_spaced, self._plain = False, plain
        self._ahead: list[str] | None = None
        self.cut = not text.endswith(("\n", "\r"))
        start = text.split("\n", _FIRST_LINES)[:_FIRST_LINES]
        # Use the separator that occurs on the most lines. On a tie, use the first: a comma may be a decimal point.
        separator = max("\t;,", key=lambda mark: sum(mark in line for line in start))
        # Text in bytes takes a quarter of the memory of `StringIO`.
        lines = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogatepass")), "utf-8", newline="")
        self._reader = csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL)

    @property
    def line(self) -> int:
        """The number of the last row's line in the file, from 1."""
        return self._reader.line_num

    def next(self) -> list[str] | None:
        """The stripped cells of the next row; None at the end."""
        if self._ahead is not None:
            row, self._ahead = self._ahead, None
            return row
        try:
            row = next(self._reader)
        except StopIteration:
            return None
        except csv.Error as trouble:
            raise MarkerFileError(
                f"line {self.line} cannot be split into columns ({trouble}): export it again"
            ) from None
        self.is_spaced = self._plain and len(row) == 1
        if self.is_spaced:
            return row[0].split()
        return [cell.strip(" ") for cell in row] if " " in "".join(row) else row

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
            values = np.full(len(places), np.nan)
            values[: len(cells)] = numbers_in(cells, self.line, places)
            rows.append(values)
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


# The first bytes of a .npy file, a zip file (.npz) and a pickle.
NPY_START: Final = b"\x93NUMPY"
NPZ_START: Final = b"PK\x03\x04"
PICKLE_START: Final = b"\x80"
PICKLED: Final = (
    "it contains pickled Python objects, which may run code when they are read: if you trust it, load it in Python and "
    "save its arrays with numpy.savez"
)
_CUT_OFF: Final = "it is truncated or not a file of arrays: export it again"
# The errors that NumPy raises for damaged files.
_BROKEN: Final = (ValueError, EOFError, OSError, KeyError, SyntaxError, MemoryError, zipfile.BadZipFile, zlib.error)
# Names that files use for the frame rate: AMASS and its later releases; SOMA, video tools.
RATES: Final = ("mocap_framerate", "mocap_frame_rate", "frame_rate", "framerate", "frameRate", "fps")
_POSITIONS: Final = ("marker_data", "markers")
_LABELS: Final = ("marker_labels", "labels")


def array_in(content: bytes) -> npt.NDArray[Any]:
    """The array of numbers in the bytes of a .npy file; raises MarkerFileError if it is not one."""
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except _BROKEN as trouble:
        raise MarkerFileError(PICKLED if "pickle" in str(trouble) else _CUT_OFF) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise MarkerFileError("it is not an array of numbers: export it again")
    return array


def arrays_in(content: bytes, wanted: Iterable[str]) -> Mapping[str, npt.NDArray[Any]]:
    """The wanted arrays in the bytes of a .npz file; others are not read.

    Raises MarkerFileError if the file is truncated, or if a wanted array would have to be unpickled.
    """
    found = {}
    if not content.startswith((NPZ_START, PICKLE_START)):
        # NumPy would take it for a pickle.
        raise MarkerFileError(_CUT_OFF)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            for name in wanted:
                if name in file.files:
                    found[name] = np.asarray(file[name])
    except _BROKEN as trouble:
        raise MarkerFileError(PICKLED if "pickle" in str(trouble) else _CUT_OFF) from None
    return found


def rates_in(found: Mapping[str, npt.NDArray[Any]]) -> tuple[float | None, float | None]:
    """The first and the last rate in Hz among the arrays `found` in a file, of any shape; None if there is none."""
    # Some writers store the rate as text.
    stored = (value for value in map(found.get, RATES) if value is not None and value.size == 1)
    texts = (value.item() for value in stored if value.dtype.kind in "fiuSU")
    numbers = (number_in(text.decode("latin-1") if isinstance(text, bytes) else str(text)) for text in texts)
    rates = [rate for rate in numbers if rate is not None and plausible_rate(rate)]
    return (rates[0], rates[-1]) if rates else (None, None)


def parse_npz(content: bytes, chosen: Chosen) -> Clip:
    """The markers in a file's bytes, as a clip in meters.

    Raises MarkerFileError, without the file's name, if the file is truncated, has no markers or no rate, or if its
    markers would have to be unpickled.
    """
    found = arrays_in(content, (*_POSITIONS, *_LABELS, *RATES))
    positions = next((found[key] for key in _POSITIONS if key in found), None)
    if positions is None:
        raise MarkerFileError("it has no markers (marker_data): if it has poses, use them to retarget")
    if positions.ndim != 3 or positions.shape[2] != 3 or positions.dtype.kind not in "fiu" or not positions.size:
        raise MarkerFileError(f"its markers have the shape {positions.shape}: export them as (frames, markers, 3)")
    labels = next((found[key] for key in _LABELS if key in found), None)
    count = positions.shape[1]
    names = [f"*{place}" for place in range(1, count + 1)]
    notes: tuple[str, ...] = ()
    if labels is not None and labels.size == count:
        names = [label.decode("utf-8", "replace") if isinstance(label, bytes) else str(label) for label in labels.flat]
    else:
        notes = ("its markers have no labels: use a marker map",)
    rate, other = rates_in(found)
    points = np.asarray(positions, dtype=np.float64)
    return to_clip(chosen, names, points, None, "Z", rate, timed=other, notes=notes)
