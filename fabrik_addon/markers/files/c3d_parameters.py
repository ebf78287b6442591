"""The header and the parameters of a C3D file, by the package ``c3d`` made less strict.

The package refuses a file whose header contradicts its parameters, which has a parameter or a group twice, counts
more events than there is room for, or stops among its parameters. None of that touches the points.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..clip import FloatArray, MarkerFileError

BLOCK: Final = 512
INTEL: Final = 84
DEC: Final = 85
MIPS: Final = 86
_MAGIC: Final = 0x50
_RATE_AT: Final = 20
_FASTEST: Final = 1e5


@dataclass(frozen=True)
class _Record:
    """One group (negative number) or parameter of the parameter section."""

    group: int
    name: str
    body: bytes


class Parameters:
    """What a C3D file says of itself. header: the package's; end: the byte after the parameters.

    Raises MarkerFileError where the content is no C3D file, or its header no header.
    """

    def __init__(self, content: bytes) -> None:
        if len(content) < 2 or content[1] != _MAGIC:
            raise MarkerFileError("this is not a C3D file: it does not begin as one")
        if len(content) < BLOCK:
            raise MarkerFileError("the header is truncated: a C3D file has at least 512 bytes")
        self._reader = _tolerant_reader(content)
        self.header = self._reader.header
        first = _section_start(content)
        blocks = content[first + 2] if len(content) > first + 2 else 0
        self.end = first + blocks * BLOCK

    @property
    def is_dec(self) -> bool:
        """Whether numbers are those of a DEC."""
        return bool(self._reader.proc_type == "DEC")

    @property
    def byte_order(self) -> str:
        """As numpy writes it."""
        return ">" if self._reader.proc_type == "MIPS" else "<"

    def floats(self, raw: bytes) -> FloatArray:
        """4-byte numbers in the file's format, as many as are whole."""
        from c3d import c3d as package  # noqa: PLC0415

        raw = raw[: len(raw) // 4 * 4]
        # Bytes that are no number may be any.
        with np.errstate(invalid="ignore"):
            if self.is_dec:
                return np.asarray(package.DEC_to_IEEE_BYTES(raw), dtype=np.float64)
            return np.frombuffer(raw, dtype=f"{self.byte_order}f4").astype(np.float64)

    def numbers(self, key: str) -> list[float]:
        """The numbers of a parameter, such as POINT:USED; none where it is missing."""
        param = self._reader.get(key)
        if param is None:
            return []
        size = abs(int(param.bytes_per_element))
        if size == 4:
            return [float(value) for value in self.floats(param.bytes)]
        kind = f"{self.byte_order}u2" if size == 2 else "u1"
        whole = len(param.bytes) // np.dtype(kind).itemsize * np.dtype(kind).itemsize
        return [float(value) for value in np.frombuffer(param.bytes[:whole], dtype=kind)]

    def number(self, key: str) -> float:
        """The first number of a parameter, NaN where there is none."""
        return next(iter(self.numbers(key)), math.nan)

    def long_number(self, key: str) -> float:
        """A count written as two 2-byte words, the low one first, or as one number; NaN where there is none."""
        words = self.numbers(key)
        if len(words) == 2:
            return words[0] + 65536.0 * words[1]
        return words[0] if words else math.nan

    def strings(self, key: str) -> list[str]:
        """The texts of a parameter without padding; LABELS goes on in LABELS2, LABELS3 and so on."""
        texts: list[str] = []
        count = 1
        while (param := self._reader.get(key if count == 1 else f"{key}{count}")) is not None:
            texts += self._texts(param)
            count += 1
        return texts

    def string(self, key: str) -> str:
        """The first text of a parameter, "" where there is none."""
        return next(iter(self.strings(key)), "")

    def _texts(self, param: Any) -> list[str]:
        width, *counts = param.dimensions or [len(param.bytes)]
        end = min(width * math.prod(counts), len(param.bytes))
        return [self._decoded(param.bytes[at : at + width]) for at in range(0, end, max(width, 1))]

    def _decoded(self, raw: bytes) -> str:
        """A text up to its first NUL; UTF-8, else Latin-1."""
        raw = raw.partition(b"\0")[0]
        try:
            return raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            return raw.decode("latin-1").strip(" ")


def _tolerant_reader(content: bytes) -> Any:
    """The package's reader of a file, made from what can be made sense of."""
    from c3d import c3d as package  # noqa: PLC0415

    class Header(package.Header):
        """A header whose events are left alone: their count may be anything."""

        def _parse_events(self, *_args: Any) -> None:
            pass

    class Reader(package.Reader):
        """A reader that takes the first of what is there twice, and compares nothing."""

        def __init__(self, handle: io.BytesIO) -> None:
            super(package.Reader, self).__init__(Header(handle))
            self._handle = handle
            section = content[_section_start(content) :]
            self._dtypes = package.DataTypes(_processor(content, section))
            with np.errstate(all="ignore"):
                self._header._processor_convert(self._dtypes, handle)  # noqa: SLF001
            for record in _records(section, big_endian=self._dtypes.is_mips):
                self._take(record)

        def _take(self, record: _Record) -> None:
            group = self._groups.setdefault(abs(record.group), package.Group(self._dtypes))
            if record.group < 0:
                self._groups.setdefault(record.name, group)
            elif record.name not in group:
                try:
                    group.add_param(record.name, handle=io.BytesIO(record.body))
                except (struct.error, OverflowError):
                    return

    return Reader(io.BytesIO(content))


def _section_start(content: bytes) -> int:
    """The byte where the parameters begin; after the header where it does not say."""
    return (max(content[0], 2) - 1) * BLOCK


def _records(section: bytes, *, big_endian: bool) -> Iterator[_Record]:
    """The groups and parameters of the section, up to its end or to where it is cut.

    Each begins with the length of its name (negative: locked) and its group's number; after the name comes the way to
    the next one, counted from there; 0 for the last.
    """
    at = 4
    while at + 2 <= len(section):
        length, group = struct.unpack_from("bb", section, at)
        place = at + 2 + abs(length)
        if not length or not group or place + 2 > len(section):
            return
        (step,) = struct.unpack_from(">H" if big_endian else "<H", section, place)
        name = section[at + 2 : place].decode("latin-1").strip().upper()
        yield _Record(group, name, section[place + 2 : place + step] if step else section[place + 2 :])
        if not step:
            return
        at = place + step


def _processor(content: bytes, section: bytes) -> int:
    """The kind of numbers: as the file says, else that in which the header's rate makes sense."""
    if len(section) >= 4 and section[3] in (INTEL, DEC, MIPS):
        return section[3]
    raw = content[_RATE_AT : _RATE_AT + 4]
    rates = {
        INTEL: struct.unpack("<f", raw)[0],
        # The words of a DEC's number are swapped, and it is four times as large.
        DEC: struct.unpack("<f", raw[2:] + raw[:2])[0] / 4.0,
        MIPS: struct.unpack(">f", raw)[0],
    }
    fitting = [kind for kind, rate in rates.items() if 1.0 <= rate <= _FASTEST]
    if not fitting:
        raise MarkerFileError("the header is damaged: neither its kind of numbers nor its frame rate can be told")
    return fitting[0]
