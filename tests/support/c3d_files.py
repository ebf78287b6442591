"""C3D files written byte by byte, valid and unusual ones, for tests to read."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

INTEL, DEC, MIPS = 84, 85, 86
BLOCK = 512
LABELS = ("LASI", "RASI", "LKNE", "RKNE", "LANK", "RANK")


def standing(frames=7, count=6):
    """(F, P, 3) millimeters: points around a standing person, Z up, who drifts along X; whole numbers."""
    rng = np.random.default_rng(20)
    body = np.column_stack(
        [rng.integers(-200, 200, count), rng.integers(-120, 120, count), np.linspace(60, 1700, count)]
    )
    return np.rint(body[None] + np.arange(frames)[:, None, None] * np.array([10.0, 0.0, 0.0]))


@dataclass(frozen=True)
class Param:
    """A parameter. kind: -1 text, 1 byte, 2 word, 4 float; dimensions as in the file; values: bytes or numbers."""

    kind: int
    dimensions: Sequence[int]
    values: object


def text(*words, width=None):
    """A parameter of one text, or of several as wide as the longest one."""
    width = max(map(len, words)) if width is None else width
    packed = b"".join(word.encode("latin-1").ljust(width) for word in words)
    return Param(-1, [width] if len(words) == 1 else [width, len(words)], packed)


def word(*values):
    """A parameter of 2-byte numbers."""
    return Param(2, [] if len(values) == 1 else [len(values)], values)


def real(*values):
    """A parameter of 4-byte floats."""
    return Param(4, [] if len(values) == 1 else [len(values)], values)


@dataclass(frozen=True)
class C3d:
    """A C3D file to be written, so that a test changes only the part that it tests."""

    points: np.ndarray = field(default_factory=standing)
    residuals: np.ndarray | None = None
    labels: Sequence[str] = LABELS
    rate: float = 100.0
    scale: float = -0.1
    processor: int = INTEL
    analogs: int = 0
    first: int = 1
    header: Mapping[str, float] = field(default_factory=dict)
    params: Mapping[str, Param | None] = field(default_factory=dict)
    again: Sequence[tuple[str, Param]] = ()
    blocks: int | None = None
    tail: bytes = b""
    cut: int = 0

    def bytes(self):
        """The whole file."""
        section = self._section(0)
        section = self._section(2 + -(-len(section) // BLOCK))
        blocks = -(-len(section) // BLOCK)
        whole = self._header(2 + blocks) + section.ljust(blocks * BLOCK, b"\0") + self._data()
        whole += b"\0" * (-len(whole) % BLOCK) + self.tail
        return whole[: len(whole) - self.cut]

    @property
    def frames(self):
        return len(self.points)

    def _order(self):
        return ">" if self.processor == MIPS else "<"

    def _float(self, values):
        """4-byte floats; a DEC's are four times as large with their words swapped."""
        values = np.atleast_1d(np.asarray(values, dtype=np.float64))
        if self.processor == DEC:
            return np.asarray(values * 4.0, dtype="<f4").view("<u2").reshape(-1, 2)[:, ::-1].tobytes()
        return np.asarray(values, dtype=f"{self._order()}f4").tobytes()

    def _word(self, values):
        return np.atleast_1d(np.asarray(values)).astype(np.int64).astype(f"{self._order()}u2").tobytes()

    def _header(self, start):
        fields = {
            "points": self.points.shape[1], "analogs": self.analogs, "first": self.first,
            "last": min(self.first + self.frames - 1, 65535), "gap": 10, "scale": self.scale, "start": start,
            "per_frame": 1 if self.analogs else 0, "rate": self.rate, "events": 0,
        } | dict(self.header)  # fmt: skip
        head = bytes([int(fields.get("section", 2)), int(fields.get("magic", 0x50))])
        head += self._word([fields[key] for key in ("points", "analogs", "first", "last", "gap")])
        head += self._float(fields["scale"]) + self._word([fields["start"], fields["per_frame"]])
        head += self._float(fields["rate"])
        head = head.ljust(298, b"\0") + self._word([0x3039, fields["events"]])
        return head.ljust(BLOCK, b"\0")

    def _all_params(self, start):
        width = max(map(len, self.labels), default=1)
        params = {
            "POINT:USED": word(self.points.shape[1]), "POINT:FRAMES": word(min(self.frames, 65535)),
            "POINT:SCALE": real(self.scale), "POINT:RATE": real(self.rate), "POINT:DATA_START": word(start),
            "POINT:UNITS": text("mm"), "POINT:LABELS": text(*self.labels[:255], width=width),
            "POINT:X_SCREEN": text("+X"), "POINT:Y_SCREEN": text("+Z"),
            "ANALOG:USED": word(self.analogs), "ANALOG:RATE": real(self.rate if self.analogs else 0.0),
        } | dict(self.params)  # fmt: skip
        return [(key, param) for key, param in params.items() if param is not None] + list(self.again)

    def _section(self, start):
        params = self._all_params(start)
        groups = list(dict.fromkeys(key.partition(":")[0] for key, _param in params))
        records = b"".join(self._record(-place, name, b"\0") for place, name in enumerate(groups, start=1))
        for key, param in params:
            group, _, name = key.partition(":")
            records += self._record(groups.index(group) + 1, name, self._body(param))
        blocks = -(-(4 + len(records) + 2) // BLOCK) if self.blocks is None else self.blocks
        return bytes([1, 0x50, blocks % 256, self.processor]) + records + b"\0\0"

    def _record(self, group, name, body):
        return struct.pack("bb", len(name), group) + name.encode() + self._word(len(body) + 2) + body

    def _body(self, param):
        pack = {2: self._word, 4: self._float}.get(param.kind, bytes)
        values = param.values if isinstance(param.values, bytes) else pack(param.values)
        return struct.pack("bB", param.kind, len(param.dimensions)) + bytes(param.dimensions) + values + b"\0"

    def _data(self):
        frames, count, _ = self.points.shape
        residuals = np.zeros((frames, count)) if self.residuals is None else self.residuals
        numbers = np.concatenate((self.points, residuals[..., None]), axis=-1).reshape(frames, 4 * count)
        if self.scale > 0.0:
            # Whole numbers; the last word is negative if a point is not seen.
            numbers[:, np.arange(numbers.shape[1]) % 4 < 3] /= self.scale
            numbers = np.rint(numbers)
        numbers = np.hstack((numbers, np.full((frames, self.analogs), 77.0)))
        if self.scale < 0.0:
            return self._float(numbers.ravel())
        return self._word(numbers.ravel())
