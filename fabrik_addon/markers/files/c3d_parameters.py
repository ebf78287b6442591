"""The header and parameters of a C3D file (format: www.c3d.org, C3D User Guide).

Some writers contradict themselves: a parameter or group exists twice (the first one counts), more is announced than the
file holds, or the parameters end early. None of that affects the points, so whatever makes sense is used.
"""

import math
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from ..clip import FloatArray, MarkerFileError

BLOCK: Final = 512
# Processor types, as numbered in the file.
INTEL: Final = 84
DEC: Final = 85
MIPS: Final = 86
MAGIC: Final = 0x50
_RATE_AT: Final = 20
# Hz. Cameras are slower, and bytes in another number format rarely give a plausible rate.
FASTEST: Final = 1e5


class Header(NamedTuple):
    """The numbers of the first block; each may be wrong."""

    point_count: int
    analog_count: int
    first_frame: int
    last_frame: int
    scale: float
    data_block: int
    analog_per_frame: int
    rate: float


class _Value(NamedTuple):
    """A parameter: bytes per element (negative: text), dimensions (first one fastest), and data."""

    size: int
    dimensions: tuple[int, ...]
    raw: bytes


class Parameters:
    """The parameters of a C3D file. header: its first block; end: the byte after the parameters.

    Raises MarkerFileError if the content is not a C3D file or its header is invalid.
    """

    def __init__(self, content: bytes) -> None:
        if len(content) < 2 or content[1] != MAGIC:
            raise MarkerFileError("this is not a C3D file: choose another")
        if len(content) < BLOCK:
            raise MarkerFileError("the header is truncated: a C3D file has at least 512 bytes: export it again")
        # The parameters follow the header if it does not give their position.
        first = (max(content[0], 2) - 1) * BLOCK
        section = content[first:]
        self._processor = _processor(content, section)
        self.byte_order = ">" if self._processor == MIPS else "<"
        self.header = self._read_header(content)
        self.end = first + (section[2] if len(section) > 2 else 0) * BLOCK
        groups: dict[int, str] = {}
        self._values: dict[tuple[int, str], _Value] = {}
        for group, name, body in _records(section, self.byte_order):
            if group < 0:
                groups.setdefault(-group, name)
            elif (value := _value(body)) is not None:
                self._values.setdefault((group, name), value)
        self._groups = {name: number for number, name in reversed(groups.items())}

    def _read_header(self, content: bytes) -> Header:
        points, analogs, first, last = struct.unpack_from(f"{self.byte_order}4H", content, 2)
        data_block, analog_per_frame = struct.unpack_from(f"{self.byte_order}2H", content, 16)
        scale, rate = (float(self.floats(content[at : at + 4])[0]) for at in (12, _RATE_AT))
        return Header(points, analogs, first, last, scale, data_block, analog_per_frame, rate)

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
        """A count written as two 2-byte words, the low one first, or as one number; NaN if there is none."""
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
    """The groups (negative numbers) and parameters of the section, up to its end or the end of the file.

    Each begins with the length of its name (negative: locked) and its group's number. After the name comes the offset
    of the next one, counted from there; 0 for the last.
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
    """A text up to its first NUL, in UTF-8, else Latin-1."""
    raw = raw.partition(b"\0")[0]
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        return raw.decode("latin-1").strip(" ")


def _processor(content: bytes, section: bytes) -> int:
    """The processor type: from the file, else the one that gives a plausible rate in the header."""
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
