"""Reads C3D files (binary): header, groups of parameters and 3D points, and makes a clip of them."""

import math
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, NamedTuple

import numpy as np

from ...core.arrays import FloatArray
from ...core.errors import first_few
from ..clip import Clip, MarkerFileError, UpAxis, up_axis_by_markers
from .reading import Chosen, extent, frame_count_doubt, to_clip

BLOCK: Final = 512
# Processor types, as numbered in the file.
INTEL: Final = 84
DEC: Final = 85
MIPS: Final = 86
MAGIC: Final = 0x50
_RATE_AT: Final = 20
# Hz: all cameras are slower. Bytes read in the wrong number format rarely give a plausible rate.
FASTEST: Final = 1e5


class Header(NamedTuple):
    """The numbers in the first block, each of which may be wrong."""

    point_count: int
    analog_count: int
    first_frame: int
    last_frame: int
    scale: float
    data_block: int
    analog_per_frame: int
    rate: float


class _Value(NamedTuple):
    """A parameter: bytes per element (negative: text), dimensions (the first varies fastest), and data."""

    size: int
    dimensions: tuple[int, ...]
    raw: bytes


class Parameters:
    """The parameters of a C3D file. header: its first block. end: the byte after the parameters.

    Raises MarkerFileError if the content is not a C3D file or its header is invalid.
    """

    def __init__(self, content: bytes) -> None:
        if len(content) < 2 or content[1] != MAGIC:
            raise MarkerFileError("this is not a C3D file: choose another")
        if len(content) < BLOCK:
            raise MarkerFileError("the header is truncated; a C3D file has at least 512 bytes: export it again")
        # The parameters follow the header if it does not give their position.
        first = (max(content[0], 2) - 1) * BLOCK
        section = content[first:]
        self._processor = _processor(content, section)
        self.byte_order = ">" if self._processor == MIPS else "<"
        points, analogs, first_frame, last_frame = struct.unpack_from(f"{self.byte_order}4H", content, 2)
        data_block, analog_per_frame = struct.unpack_from(f"{self.byte_order}2H", content, 16)
        scale, rate = (float(self.floats(content[at : at + 4])[0]) for at in (12, _RATE_AT))
        self.header = Header(points, analogs, first_frame, last_frame, scale, data_block, analog_per_frame, rate)
        self.end = first + (section[2] if len(section) > 2 else 0) * BLOCK
        groups: dict[int, str] = {}
        self._values: dict[tuple[int, str], _Value] = {}
        for group, name, body in _records(section, self.byte_order):
            if group < 0:
                groups.setdefault(-group, name)
            elif (value := _value(body)) is not None:
                self._values.setdefault((group, name), value)
        self._groups = {name: number for number, name in reversed(groups.items())}

    def floats(self, raw: bytes) -> FloatArray:
        """4-byte numbers in the file's format; an incomplete last number is dropped."""
        raw = raw[: len(raw) // 4 * 4]
        # Bytes that are not numbers may give invalid values.
        with np.errstate(invalid="ignore"):
            if self._processor == DEC:
                return _from_dec(raw)
            return np.frombuffer(raw, dtype=f"{self.byte_order}f4").astype(np.float64)

    def numbers(self, key: str) -> list[float]:
        """The numbers of a parameter, such as POINT:USED; empty if it is missing."""
        value = self._get(key)
        if value is None:
            return []
        if abs(value.size) == 4:
            return [float(number) for number in self.floats(value.raw)]
        kind = np.dtype(f"{self.byte_order}u2" if abs(value.size) == 2 else "u1")
        count = len(value.raw) // kind.itemsize
        return [float(number) for number in np.frombuffer(value.raw, dtype=kind, count=count)]

    def number(self, key: str) -> float:
        """The first number of a parameter; NaN if there is none."""
        return next(iter(self.numbers(key)), math.nan)

    def long_number(self, key: str) -> float:
        """A count, stored as one number or as two 2-byte words with the low one first; NaN if there is none."""
        words = self.numbers(key)
        if len(words) == 2:
            return words[0] + 65536.0 * words[1]
        return words[0] if words else math.nan

    def strings(self, key: str) -> list[str]:
        """The texts of a parameter without padding; LABELS continues in LABELS2, LABELS3 and so on."""
        texts: list[str] = []
        count = 1
        while (value := self._get(key if count == 1 else f"{key}{count}")) is not None:
            width = value.dimensions[0] if value.dimensions else len(value.raw)
            texts += [_decoded(value.raw[at : at + width]) for at in range(0, len(value.raw), max(width, 1))]
            count += 1
        return texts

    def string(self, key: str) -> str:
        """The first text of a parameter; "" if there is none."""
        return next(iter(self.strings(key)), "")

    def _get(self, key: str) -> _Value | None:
        group, _, name = key.partition(":")
        return self._values.get((self._groups.get(group, 0), name))


def _records(section: bytes, byte_order: str) -> Iterator[tuple[int, str, bytes]]:
    """The groups and parameters in the section, up to its end or the end of the file; groups have negative numbers.

    Each record begins with the length of its name (negative: locked) and the number of its group. The offset of the
    next record follows the name, relative to the offset's own position; it is 0 in the last record.
    """
    at = 4
    while at + 2 <= len(section):
        length, group = struct.unpack_from("bb", section, at)
        place = at + 2 + abs(length)
        if not length or not group or place + 2 > len(section):
            return
        (step,) = struct.unpack_from(f"{byte_order}H", section, place)
        name = section[at + 2 : place].decode("latin-1").strip().upper()
        yield group, name, section[place + 2 : place + step] if step else section[place + 2 :]
        if not step:
            return
        at = place + step


def _value(body: bytes) -> _Value | None:
    """A parameter, from the bytes after its name; None if they end before the value."""
    if len(body) < 2 or len(body) < 2 + body[1]:
        return None
    (size,) = struct.unpack_from("b", body)
    start = 2 + body[1]
    dimensions = tuple(body[2:start])
    return _Value(size, dimensions, body[start : start + abs(size) * math.prod(dimensions)])


def _from_dec(raw: bytes) -> FloatArray:
    """DEC floating-point numbers: the two words of each are swapped, and the value is four times too large."""
    swapped = np.frombuffer(raw, dtype="<u2").reshape(-1, 2)[:, ::-1]
    return np.frombuffer(swapped.tobytes(), dtype="<f4").astype(np.float64) / 4.0


def _decoded(raw: bytes) -> str:
    raw = raw.partition(b"\0")[0]
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        return raw.decode("latin-1").strip(" ")


def _processor(content: bytes, section: bytes) -> int:
    """The processor type in the file; if it is unknown, the type with which the header's rate is plausible."""
    if len(section) >= 4 and section[3] in (INTEL, DEC, MIPS):
        return section[3]
    raw = content[_RATE_AT : _RATE_AT + 4]
    with np.errstate(invalid="ignore"):
        rates = {
            INTEL: struct.unpack("<f", raw)[0],
            DEC: float(_from_dec(raw)[0]),
            MIPS: struct.unpack(">f", raw)[0],
        }
    fitting = [kind for kind, rate in rates.items() if 1.0 <= rate <= FASTEST]
    if not fitting:
        raise MarkerFileError(
            "the header is damaged, and its number format and frame rate are unknown: export it again"
        )
    return fitting[0]


# The points: their location in the file, and their positions in the file's units.
#
# A C3D file contains most values twice, in its header and in its parameters. If they differ, the size of the file shows
# which are right: the last frame must end in the last block.

# In the header, this number means that the frame count does not fit there.
_MANY_FRAMES: Final = 65535
# Counts that may have wrapped around are tried up to this many times: up to an hour and a half at 200 Hz.
_MOST_WRAPS: Final = 17
# Height of a person's markers, millimeters. If a file has two scales, the one that gives the closer height is used.
_TALL: Final = 1600.0
# Real scales are smaller than this. Scales read in a wrong number format are usually larger.
_LARGEST: Final = 1e5


@dataclass(frozen=True)
class Layout:
    """The layout of a file. start: the first byte of the points. analogs: analog numbers in each frame."""

    start: int
    points: int
    analogs: int
    frames: int
    floats: bool

    @property
    def frame_bytes(self) -> int:
        """Bytes in a frame."""
        return (4 * self.points + self.analogs) * (4 if self.floats else 2)

    @property
    def end(self) -> int:
        """The byte after the last frame."""
        return self.start + self.frames * self.frame_bytes


def _points(content: bytes, parameters: Parameters) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...]]:
    """(F, P, 3) all points in the file's units, NaN where not seen; notes, and doubts.

    Raises MarkerFileError if there are none, or if integer coordinates have no scale.
    """
    layout, notes, doubts = _layout(content, parameters)
    raw = content[layout.start : layout.end]
    if layout.floats:
        values = parameters.floats(raw)
    else:
        values = np.frombuffer(raw, dtype=f"{parameters.byte_order}i2").astype(np.float64)
    # x, y, z and a fourth word, which is negative if a point is not seen.
    numbers = values.reshape(layout.frames, -1)[:, : 4 * layout.points].reshape(layout.frames, layout.points, 4)
    positions = numbers[..., :3]
    if not layout.floats:
        scale, note = _scale(parameters, numbers)
        positions = positions * scale
        notes += note
    there = np.isfinite(positions).all(axis=-1) & (positions != 0.0).any(axis=-1)
    seen = there & (numbers[..., 3] >= 0.0)
    if there.any() and not seen.any():
        doubts += ("The file marks every sample as missing; used their coordinates anyway: export it again",)
        seen = there
    return np.where(seen[..., None], positions, np.nan), notes, doubts


def _layout(content: bytes, parameters: Parameters) -> tuple[Layout, tuple[str, ...], tuple[str, ...]]:
    """The layout that fits the size of the file, or else the first one, cut at its end; also notes and doubts."""
    size = len(content)
    header, counts = parameters.header, _frame_counts(parameters)
    blocks = _counts([header.data_block, parameters.number("POINT:DATA_START")])
    starts = [(block - 1) * BLOCK for block in blocks if block > 1] or [parameters.end]
    point_counts = _counts([parameters.number("POINT:USED"), header.point_count])
    # Floats or integers; both are tried if the file does not decide.
    kinds = list(dict.fromkeys(scale < 0.0 for scale in _scales(parameters))) or [True, False]
    # Counts of 2 bytes wrap around to 0 after 65,535.
    wrapped = [count + 65536 * times for times in range(_MOST_WRAPS) for count in counts]
    combined = product(kinds, starts, point_counts, _analog_counts(parameters), wrapped or [0])
    layouts = [Layout(start, points, analogs, frames, floats) for floats, start, points, analogs, frames in combined]
    if not layouts or not layouts[0].points:
        raise MarkerFileError("there are no markers: choose a file with markers")
    exact = [layout for layout in layouts if layout.frames and 0 <= size - layout.end < BLOCK]
    # If no layout matches, read the stated number of frames, but no more than the file can contain.
    most = max(size - layouts[0].start, 0) // layouts[0].frame_bytes
    whole = layouts[0].frames or most
    chosen = exact[0] if exact else replace(layouts[0], frames=min(whole, most))
    if chosen.frames < 1:
        raise MarkerFileError("there are no frames; the file ends where they should begin: export it again")
    notes = [
        f"the file's frame count is {count}, but it has {chosen.frames} frames"
        for count in counts
        if count != chosen.frames
    ]
    if chosen.frames < whole and not exact:
        return chosen, (), frame_count_doubt(whole, chosen.frames)
    return chosen, tuple(notes[:1]), ()


def _counts(values: Iterable[float]) -> list[int]:
    return list(dict.fromkeys(int(value) for value in values if math.isfinite(value) and value >= 1.0))


def _analog_counts(parameters: Parameters) -> list[int]:
    """The possible counts of analog numbers per frame: from the header, where it may be 0, and from the parameters."""
    header, used = parameters.header, parameters.number("ANALOG:USED")
    rates = parameters.number("ANALOG:RATE"), parameters.number("POINT:RATE")
    ratio = rates[0] / rates[1] if rates[1] > 0.0 else math.nan
    stated = [used * round(ratio) if math.isfinite(ratio) else math.nan, used * header.analog_per_frame]
    return list(dict.fromkeys([header.analog_count, *_counts(stated), 0]))


def _frame_counts(parameters: Parameters) -> list[int]:
    """The frame counts in the file's fields, without the number that means "too large"."""
    header = parameters.header
    start, end = (parameters.long_number(f"TRIAL:ACTUAL_{which}_FIELD") for which in ("START", "END"))
    counted = header.first_frame >= 1 and header.last_frame != _MANY_FRAMES
    stated = [
        header.last_frame - header.first_frame + 1.0 if counted else math.nan,
        end - start + 1.0,
        parameters.number("POINT:LONG_FRAMES"),
        parameters.number("POINT:FRAMES"),
    ]
    return [count for count in _counts(stated) if count != _MANY_FRAMES]


def _scales(parameters: Parameters) -> list[float]:
    """The valid scales of the parameter and of the header, in this order. A negative scale means floats."""
    stated = [parameters.number("POINT:SCALE"), parameters.header.scale]
    return [scale for scale in stated if math.isfinite(scale) and 0.0 < abs(scale) < _LARGEST]


def _scale(parameters: Parameters, numbers: FloatArray) -> tuple[float, tuple[str, ...]]:
    """The scale of integer coordinates, and notes. If there are two, the one that gives a person's height is used."""
    scales = list(dict.fromkeys(scale for scale in _scales(parameters) if scale > 0.0))
    if not scales:
        raise MarkerFileError("POINT:SCALE is missing or 0, so the scale is unknown: export it again")
    if len(scales) == 1 or math.isclose(scales[0], scales[1], rel_tol=1e-4):
        return scales[0], ()
    tall = extent(np.where(numbers[..., 3:] >= 0.0, numbers[..., :3], np.nan))
    scale = min(scales, key=lambda scale: abs(math.log(scale * tall / _TALL))) if tall > 0.0 else scales[0]
    return scale, (f"POINT:SCALE is {scales[0]:g}, but the header has {scales[1]:g}; used {scale:g}",)


# The clip: labels, units and axes of the points. Analog data is skipped.
#
# Errors of writers are corrected, with a note, if only one reading makes sense. Otherwise the file is refused:
#
# * A sample is missing if its residual is negative, or if it is not a number or exactly (0, 0, 0).
# * Points that are not markers are left out: outputs of a model (angles, forces, moments, powers, scalars, axes of its
# segments, the center of mass).
# * A blank label becomes ``*n``. Equal labels are replaced by their descriptions if those differ, else numbered. The
#   prefix of a subject ends with a colon, even if the file uses another separator.
# * Y_SCREEN is the up axis unless a person in the markers is upright along another one. If it is X or negative,
#   positions are rotated.

_OUTPUT_GROUPS: Final = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "REACTIONS")
_OUTPUT_NAME: Final = re.compile(r".+(angles?|forces?|moments?|powers?|grf)v?|cent(re|er)ofmass(floor)?", re.IGNORECASE)
# Four outputs of a model describe a segment: its origin and the ends of its axes, as in LFEO, LFEA, LFEL and LFEP.
_SEGMENT_ENDS: Final = "OALP"


def parse_c3d(content: bytes, chosen: Chosen) -> Clip:
    """The clip in a file's bytes, in meters and the file's own axes, or rotated if X is up.

    Raises MarkerFileError, without the file's name, if the file is empty or not a C3D file, for unknown units, for a
    missing rate or scale, without points or frames, and if no marker is ever seen.
    """
    parameters = Parameters(content)
    points, point_notes, doubts = _points(content, parameters)
    names, is_output = _labels(parameters, points.shape[1])
    left_out = [name for name, output in zip(names, is_output, strict=True) if output]
    if len(left_out) == len(names):
        raise MarkerFileError(
            f"all {len(left_out)} points are outputs of a model, such as {left_out[0]!r}: export markers"
        )
    notes = [f"left out the outputs of a model: {first_few(left_out)}"] if left_out else []
    stated = parameters.string("POINT:UNITS")
    unit_note = ("the file has no units; assumed mm",) if not stated and chosen.units is None else ()
    rates = parameters.number("POINT:RATE"), parameters.header.rate, parameters.number("TRIAL:CAMERA_RATE")
    point_rate, header_rate, camera_rate = (rate if 0.0 < rate < FASTEST else None for rate in rates)
    rate = point_rate or header_rate or camera_rate
    markers = [place for place, output in enumerate(is_output) if not output]
    upright, up, up_note, up_doubts = _upright(points[:, markers], parameters, chosen.up_axis)
    clip = to_clip(
        chosen._replace(up_axis=up),
        [names[place] for place in markers],
        upright,
        stated or "mm",
        "Z",
        rate,
        timed=header_rate,
        needs_rate=True,
        notes=(*point_notes, *unit_note, *up_note, *notes),
    )
    return replace(clip, doubts=(*doubts, *up_doubts, *clip.doubts))


def _labels(parameters: Parameters, count: int) -> tuple[list[str], list[bool]]:
    plain = [*parameters.strings("POINT:LABELS"), *([""] * count)][:count]
    # Repeated labels are replaced by their descriptions, if all of those differ.
    counts = Counter(plain)
    doubles = [place for place, label in enumerate(plain) if label and counts[label] > 1]
    described = [*parameters.strings("POINT:DESCRIPTIONS"), *([""] * count)]
    better = [described[place] for place in doubles]
    if all(better) and len(set(better)) == len(better) and not counts.keys() & set(better):
        plain = [described[place] if place in doubles else label for place, label in enumerate(plain)]
    # The prefix of a subject gets a colon, even if the file uses another separator.
    prefixes = [prefix for prefix in parameters.strings("SUBJECTS:LABEL_PREFIXES") if prefix and prefix[-1] != ":"]
    names = []
    for place, label in enumerate(plain, start=1):
        prefix = next((prefix for prefix in prefixes if label.startswith(prefix) and label != prefix), None)
        name = label if prefix is None else f"{prefix.rstrip('_-. ')}:{label[len(prefix) :]}"
        names.append(name or f"*{place}")
    # The file lists the outputs of a model in groups, which it may rename. Without groups, outputs are recognized by
    # their usual names, or as the origin and the axes of a segment.
    groups = dict.fromkeys((*_OUTPUT_GROUPS, *parameters.strings("POINT:TYPE_GROUPS")[::2]))
    listed = {label for group in groups if group for label in parameters.strings(f"POINT:{group}") if label}
    there = set(names)
    stems = {name[:-1] for name in names if len(name.rpartition(":")[2]) == len("LFEO") and name[-1] in _SEGMENT_ENDS}
    ends = {
        stem + end for stem in stems for end in _SEGMENT_ENDS if all(stem + other in there for other in _SEGMENT_ENDS)
    }
    is_output = [
        label in listed or name in ends or _OUTPUT_NAME.fullmatch(name.rpartition(":")[2]) is not None
        for label, name in zip(plain, names, strict=True)
    ]
    return names, is_output


def _upright(
    positions: FloatArray, parameters: Parameters, stated: UpAxis | None
) -> tuple[FloatArray, UpAxis | None, tuple[str, ...], tuple[str, ...]]:
    """(F, M, 3) positions with Y or Z up, the name of this axis (None: not in the file), notes, and doubts.

    The file's Y_SCREEN is used unless the markers of a standing person clearly show another axis.
    """
    if stated is not None:
        return positions, stated, (), ()
    across, up = (parameters.string(f"POINT:{axis}_SCREEN").upper() for axis in "XY")
    across, up = (screen if screen[:1] in ("+", "-") else f"+{screen}" for screen in (across, up))
    if up not in ("+X", "-X", "+Y", "-Y", "+Z", "-Z"):
        return positions, None, (), ()
    x, y, z = np.moveaxis(positions, -1, 0)
    turned = {"+X": (y, z, x), "-X": (z, y, -x), "-Y": (x, -y, -z), "-Z": (x, -y, -z)}
    upright = np.stack(turned.get(up, (x, y, z)), axis=-1)
    axis: UpAxis = "Y" if up[1] == "Y" else "Z"
    # Writers without a setting for these axes write "+X" and "+Y".
    is_set = (across, up) != ("+X", "+Y")
    shown = up_axis_by_markers(positions, clearly=is_set)
    if shown is not None and up_axis_by_markers(upright, clearly=is_set) != axis:
        named = up.removeprefix("+")
        if is_set:
            doubt = (
                f"The file's up axis is {named}, but the markers show {shown}: choose the up axis if {shown} is wrong"
            )
            return positions, shown, (), (doubt,)
        return positions, shown, (f"the file's up axis is {named}, but the markers show {shown}; used {shown}",), ()
    return upright, axis, () if up in ("+Y", "+Z") else (f"rotated upright: {up} was up",), ()
