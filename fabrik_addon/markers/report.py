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

Warnings, one sentence each, name reasons why a bake may not show the recorded person.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from ..core import Solution, Status
from ..core.arrays import ROUNDING, BoolArray, FloatArray, evenly_spread, times
from ..core.errors import FabrikError, first_few
from ..human.naming_schemes import ARM, LEG, Role, match
from ..human.rest_body import degrees_between, length, square, unit
from .clip import true_spans
from .feet import head_positions
from .mapping.labels import is_named
from .person import find_walk
from .solving.course import FilledSpan

# Frames whose rows are made together, so that memory does not grow with the take.
_TOGETHER: Final = 1000


class ReportError(FabrikError):
    """A report that does not exist."""


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

    def total(self) -> Row:
        """One row for all samples."""
        return self._total

    @cached_property
    def _total(self) -> Row:
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

    @property
    def used(self) -> FloatArray:
        """(F, M) the errors that are used; NaN for missing samples and for samples that were left out."""
        return self._part(slice(None))[0]

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
        writer.writerow([*map(_cell, row), *[""] * (len(columns) - len(row))])
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
    head = ("bone" if report.rotations else "marker", *_TABLE_HEAD)
    rows = [head, *(_table_row(row.name, row) for row in report.per_marker()), _table_row("all", report.total())]
    return "\n".join([*_aligned(rows), _closing_line(report)])


def _csv_rows(report: Report) -> Iterator[list[Any]]:
    """The rows below the header; missing values and None are blank."""
    for row in report.per_marker():
        yield ["marker", row.name, "", *_csv_figures(row), row.worst_frame, f"{row.coverage:.2f}", ""]
    for at in report.per_frame():
        yield ["frame", "", at.frame, *_csv_figures(at), at.worst_marker, f"{at.coverage:.2f}", at.status]
    total = report.total()
    ends = total.worst_marker, f"{total.coverage:.2f}", _counts(report)
    yield ["total", "all", total.worst_frame, *_csv_figures(total), *ends]
    for gap in report.filled:
        yield ["gap", gap.bone, f"{gap.first}-{gap.last}", "", "", "", "", "", gap.how]
    for bone, share in report.limits.items():
        yield ["limit", bone, "", "", "", "", "", f"{share:.2f}", ""]
    for scope, sentences in (("note", report.notes), ("warning", report.doubts)):
        for sentence in sentences:
            yield [scope, sentence, *[""] * 7]
    for bone, radians in report.rotations.items():
        off, worst = np.degrees(radians), report.frames[int(radians.argmax())]
        yield ["rotation", bone, "", "", "", "", worst, "", "", f"{off.mean():.4g}", f"{off.max():.4g}"]


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


# Each limb in words, its parts, and its side; whole limbs come before their ends. With the article, a bone named "head"
# is not translated.
_LIMBS: Final = (
    ("the head", ("head", "neck"), ""),
    ("the trunk", ("chest", "spine", "shoulder"), ""),
    ("the hips", ("hips",), ""),
    ("the left arm", ARM, "L"),
    ("the right arm", ARM, "R"),
    ("the left leg", LEG, "L"),
    ("the right leg", LEG, "R"),
    ("the left forearm", ARM[1:], "L"),
    ("the right forearm", ARM[1:], "R"),
    ("the left foot", LEG[2:], "L"),
    ("the right foot", LEG[2:], "R"),
)
# If less than this fraction of the labels is on bones, the recording may not be of a person.
_FEW: Final = 0.5
# If a bone is at its limits on more than this percentage of the frames, its limits or the calibration are wrong.
_MOSTLY: Final = 50.0
# A marker that was left out on more than this percentage of the frames is wrong throughout.
_OFTEN_WRONG: Final = 10.0
# A person crouches if the stature, divided by that at rest, is below this. For upright people, it is at least 0.88.
_CROUCHING: Final = 0.82
# The distance from the ankles to the base of the head, as a fraction of a person's height.
_FEET_TO_HEAD: Final = 0.82
# Meters: nearly all people who stand are between these heights. Inches read as centimeters make adults 0.7 m tall.
_SHORTEST, _TALLEST = 0.8, 2.3
# An RMS error above this fraction of a rig's size from end to end (30 mm on a person) is too large. It is up to 25 mm
# on rigs of other proportions.
_FAR: Final = 0.0127
# A marker is misplaced if it is farther from its label's position than this fraction of the rig's height at rest (15 cm
# on a person). In six recordings on six rigs, it is at most 0.072; for markers on another joint, 0.11 to 0.18.
_MISPLACED: Final = 0.1
# A difference between the positions of a left and a right marker counts as this many times its size, because rigs and
# marker sets differ from people on both sides alike.
_UNLIKE: Final = 2.0
# A wrong marker is farther from its label's position than that of the other side by at least this factor. If both are
# equally far, their bones are rotated, since few markers leave the rotation of a bone undetermined.
_FARTHER: Final = 1.25
# A left and a right marker swap sides or coincide if their distance from side to side is below this fraction of the
# usual one. It is at least 0.52 in these recordings.
_BESIDE: Final = 0.3
# A person is wider or narrower than the rig if hips and shoulders both differ by more than this factor, after limbs are
# scaled to the same length. In five recordings, it is 0.93 to 1.14.
_WIDER: Final = 1.15
_WIDE_PARTS: Final = (("hips",), ("chest", "shoulder"))
# The parts at both ends of the trunk, of the trunk without the neck, and of the legs.
_BODY: Final = (
    ("head", "neck"),
    ("thigh",),
    ("shoulder", "upper_arm"),
    ("foot",),
    ("shin",),
)
# Degrees: a person whose trunk is tilted by more is lying down. The trunks of people who sit or bend down are tilted by
# less on most frames.
_LYING: Final = 60.0
# Degrees, and a fraction of the frames: if the trunk is tilted by less on more of the frames, the person also stands.
_UPRIGHT: Final = 20.0
_SOMETIMES: Final = 0.1
# Degrees: the largest mean angles by which walking people lean back, forward and sideways. In six recordings, they lean
# up to 10 forward and 2 sideways.
_BACK, _AHEAD, _ASIDE = -4.0, 12.0, 6.0
_FEET, _HIPS, _SHOULDERS = ("foot",), ("thigh",), ("upper_arm", "shoulder")
# Degrees between trunk and legs at rest, above which a rig is an animal: people have at most 9, animals at least 60.
_ON_FOUR: Final = 45.0
# Maximum number of frames that are examined.
LOOKED_AT: Final = 500
_NAMED: Final = 4


def matching_doubts(
    labels: Sequence[str], on_bones: Mapping[str, str], roles: Mapping[str, Role], unseen: Collection[str] = ()
) -> Iterator[str]:
    """Warnings about the mapping of markers to bones.

    labels: all labels. on_bones: bone by label. roles: role by bone of the rig. unseen: labels that are never seen.
    """
    named = [label for label in labels if is_named(label)] or list(labels)
    known = [label for label in named if label in on_bones]
    if len(known) < _FEW * len(named):
        yield (
            f"Only {len(known)} of {len(named)} labeled markers are on bones: if the recording shows a person, "
            "assign the others in the list or with a map"
        )
    bare = list(limbs_without_markers(set(on_bones.values()), roles))
    if bare and on_bones:
        yield f"No marker is on {listed(bare)}: these bones only follow their parents"
    visible = {bone for label, bone in on_bones.items() if label not in unseen}
    if hidden := [bone for bone in dict.fromkeys(on_bones.values()) if bone not in visible]:
        yield (
            f"The markers on {listed(hidden)} are never visible on these frames: these bones only follow their parents"
        )


def placing_doubts(
    places: Mapping[str, FloatArray],
    usual: Mapping[str, FloatArray],
    height: float,
    others: Mapping[str, str] = MappingProxyType({}),
    parts: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Warnings about marker positions measured by a calibration.

    places, usual: by label, (3,) positions of markers, and those usual for their labels: forward, left, up. height: the
    largest extent of the rig's joints at rest along an axis, in the same units. others: the markers of the other side.
    parts: the part of each marker's bone.
    """
    widths = []
    for own in _WIDE_PARTS:
        pairs = [(label, other) for label, other in others.items() if label in places and parts.get(label) in own]
        apart, usually = (
            np.array([each[label][1] - each[other][1] for label, other in pairs if other in places])
            for each in (places, usual)
        )
        widths.append(float(apart @ usually) / max(float(usually @ usually), ROUNDING) if pairs else 1.0)
    if min(widths) > _WIDER or max(widths) < 1.0 / _WIDER:
        yield (
            f"The person is {np.mean(widths):.1f} times as wide as the rig: check that all axes have the same scale, "
            "and that the rig represents this person"
        )
    moved = {label: place - usual[label] for label, place in places.items()}
    off, unlike, swapped = {label: length(vector) for label, vector in moved.items()}, dict[str, float](), list[str]()
    for label, other in others.items():
        if label not in off or other not in off:
            continue
        if off[label] >= _FARTHER * off[other]:
            unlike[label] = _UNLIKE * length(moved[label] - moved[other] * (1.0, -1.0, 1.0))
        apart, usually = (each[label][1] - each[other][1] for each in (places, usual))
        if apart * usually < _BESIDE * usually**2:
            swapped.append(label)
    # A marker that is far off makes its neighbors unlike those of the other side.
    if far := _over(off, _MISPLACED * height) or _over(unlike, _MISPLACED * height) or swapped:
        yield (
            f"Markers are far from the usual positions for their labels: {listed(far)}; check their bones, and whether "
            "the labels swap left and right or the axes are mirrored"
        )


def calibration_doubts(
    stature: float, left_out: tuple[float, float] | None, height: float = math.nan, *, is_unsure: bool = False
) -> Iterator[str]:
    """Warnings about a calibration.

    stature, is_unsure: see `Calibration`. height: from feet to head of the person, meters; NaN if it is not known.
    left_out: the take's RMS errors in meters, with and without a static recording that was left out; else None.
    """
    if left_out is not None:
        yield (
            f"The static recording was left out, because markers are {1000.0 * left_out[0]:.0f} mm off with "
            f"it and {1000.0 * left_out[1]:.0f} mm without it: check that it shows this person with these markers"
        )
    if is_unsure:
        yield (
            "The positions of most markers on their bones are uncertain, and no calibration pose was detected: choose "
            "reference frames on which the person stands as the rig does at rest, or in an A or T pose"
        )
    if not math.isnan(tall := height / _FEET_TO_HEAD) and not _SHORTEST < tall < _TALLEST:
        yield f"The person is {tall:.2f} m tall: choose other units if that is wrong"
    if stature < _CROUCHING:
        yield (
            f"The person crouches on the frames of the calibration ({100.0 * stature:.0f} % of the standing height): "
            "choose reference frames on which the person stands, or a static recording"
        )


def result_doubts(report: Report, size: float, moved: Sequence[str] = ()) -> Iterator[str]:
    """Warnings from a bake's figures.

    size: of the rig from end to end, meters. moved: bones that constraints move and markers depend on.
    """
    rms = report.total().rms
    if rms > _FAR * size and moved:
        yield (
            f"RMS {1000.0 * rms:.0f} mm is high because constraints move {listed(moved)}: press Set Up Control Rig, "
            "or mute these constraints, and bake again"
        )
        return
    bones = named_figures(report.limits, _MOSTLY, " %")
    if bones:
        yield (
            f"At their limits on most frames: {bones}; calibrate on frames on which the person stands, or clear these "
            "limits, bake again and use Limits from Action"
        )
    markers = named_figures(report.left_out, _OFTEN_WRONG, " %")
    if markers:
        yield (f"Often left out as outliers: {markers}; check their bones, and that limits allow the person's poses")
    if rms > _FAR * size:
        yield (
            f"RMS {1000.0 * rms:.0f} mm is high: check that the rig represents this person, that units are "
            "right, and that markers are on the right bones"
        )


def posture_doubts(solution: Solution, matrices: FloatArray) -> Iterator[str]:
    """A warning if a person lies, leans or is upside down on most frames or at rest, or an animal is upright.

    matrices: (F, 4, 4) world matrices of the armature.
    """
    skeleton = solution.skeleton
    roles = match(skeleton.names)
    tops, hips, shoulders, *legs = ([name for name in roles if roles[name].part in parts] for parts in _BODY)
    if not tops or not hips:
        return
    places, feet = evenly_spread(len(matrices), LOOKED_AT), legs[0] or legs[1]
    posed = head_positions(solution.part(places), {*tops, *hips, *shoulders, *feet})
    rest = dict(zip(skeleton.names, skeleton.rest[:, :3, 3], strict=True))

    def line(heads: Mapping[str, FloatArray], low: Sequence[str], high: Sequence[str]) -> FloatArray:
        """(..., 3) vectors between the means of the heads (..., 3) of bones `low` and `high`."""
        return np.asarray(np.subtract(*(np.mean([heads[name] for name in end], axis=0) for end in (high, low))))

    up = matrices[places, 2, :3]
    lies = median_angle(line(rest, hips, tops), up[0]) > _LYING
    if shoulders and feet:
        leans = [median_angle(line(heads, hips, shoulders), line(heads, feet, hips)) for heads in (rest, posed)]
        if leans[0] > _ON_FOUR >= leans[1]:
            yield (
                "The rig is an animal with four legs, but is upright on most frames: if the recording shows a person, "
                "choose the rig of a person"
            )
            return
        if lies and leans[0] <= _ON_FOUR:
            yield "The rig does not stand upright at rest: rotate its object until the rig stands, then run this again"
        tilts = degrees_between(line(posed, feet, shoulders), up)
        lean = float(np.median(tilts))
        is_tipped = lean < _LYING and (tilts < _UPRIGHT).mean() <= _SOMETIMES and not lies
        if leans[1] < _UPRIGHT and (is_tipped or (lean := _lean_in_walk(solution, matrices)) > 0.0):
            yield (
                f"The person is straight but leans by {lean:.0f}° on most frames: if the recording shows someone "
                "upright, rotate the markers until their floor is level"
            )
    tilts = degrees_between(line(posed, hips, tops), up)
    # Someone who also stands upright shows which axis is up.
    if lies or (tilted := float(np.median(tilts))) <= _LYING or (tilts < _UPRIGHT).mean() > _SOMETIMES:
        return
    how = "is upside down" if tilted > 180.0 - _LYING else "lies or crawls"
    yield f"The person {how} on most frames: if the recording shows something else, choose the other up axis"


def _lean_in_walk(solution: Solution, matrices: FloatArray) -> float:
    """Degrees by which a person leans while walking; 0 if that is usual, or if the person does not walk.

    Examines consecutive frames in the middle of the take.
    """
    middle, roles = len(matrices) // 2, match(solution.skeleton.names)
    # The first bone of each part and side.
    bones = [
        [name for name, role in roles.items() if role.side == side and role.part in parts][:1]
        for parts in (_FEET, _HIPS, _SHOULDERS)
        for side in "LR"
    ]
    if not all(bones):
        return 0.0
    part = slice(max(middle - 2 * LOOKED_AT, 0), middle + 2 * LOOKED_AT)
    posed = head_positions(solution.part(part), {name for (name,) in bones})
    foot, other, *joints = (times(matrices[part, :3, :3], posed[name]) for (name,) in bones)
    hips, shoulders = joints[:2], joints[2:]
    up = np.array([0.0, 0.0, 1.0])
    walk = find_walk(foot - other, 0.5 * (hips[0] + hips[1]) @ up - np.minimum(foot @ up, other @ up), up)
    if walk is None:
        return 0.0
    lines, left = unit(np.sum(shoulders, axis=0) - foot - other)[walk[0]], unit(square(hips[0] - hips[1], up))[walk[0]]
    mean = np.array([(lines * np.cross(left, up)).sum(axis=1).mean(), (lines * left).sum(axis=1).mean()])
    ahead, aside = np.degrees(np.arcsin(mean))
    is_usual = _BACK < ahead < _AHEAD and abs(aside) < _ASIDE
    return 0.0 if is_usual else float(np.degrees(np.arcsin(np.linalg.norm(mean))))


def median_angle(one: FloatArray, other: FloatArray) -> float:
    """Median angle between directions (..., 3), degrees."""
    return float(np.median(degrees_between(one, other)))


def named_figures(figures: Mapping[str, float], more_than: float, unit: str) -> str:
    """A phrase that lists names and figures above `more_than`, the highest first; "" if there are none."""
    names = _over(figures, more_than)
    return listed([f"{name} ({figures[name]:.0f}{unit})" for name in names]) if names else ""


def _over(values: Mapping[str, float], more_than: float) -> list[str]:
    return sorted((name for name, value in values.items() if value > more_than), key=lambda name: -values[name])


def limbs_without_markers(bones: Collection[str], roles: Mapping[str, Role]) -> Iterator[str]:
    """The limbs of the rig that have no marker, without the ends of such limbs."""
    told = set[str]()
    for limb, parts, side in _LIMBS:
        own = {bone for bone, role in roles.items() if role.part in parts and side in ("", role.side)}
        if own - told and not own & set(bones):
            told |= own
            yield limb


def listed(things: Sequence[str]) -> str:
    """A phrase that lists names, or the first few of many."""
    if len(things) > _NAMED:
        return first_few(things, _NAMED)
    return f"{', '.join(things[:-1])} and {things[-1]}" if len(things) > 1 else things[0]
