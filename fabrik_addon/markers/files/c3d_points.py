"""Finds the points in a C3D file, and reads them in the file's units.

A C3D file gives most values twice, in its header and in its parameters, and they do not always agree. The size of the
file shows which are right: the announced frames must end in its last block.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np

from ..clip import BoolArray, FloatArray, MarkerFileError
from .c3d_parameters import BLOCK, FASTEST, Parameters

# This number stands for frame counts that do not fit into the header.
_MANY_FRAMES: Final = 65535
# The height of a person's markers in millimeters; of two scales, the one that comes closer is used.
_TALL: Final = 1600.0
# Real scales are smaller; other bytes that are read as a scale are usually larger.
_LARGEST: Final = 1e5


@dataclass(frozen=True)
class Layout:
    """The layout of a file. start: first byte of the points; analogs: analog numbers in each frame."""

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


@dataclass(frozen=True, eq=False)
class Points:
    """The points as read. positions: (F, P, 3) in the file's units; seen: (F, P); notes: corrections made."""

    positions: FloatArray
    seen: BoolArray
    notes: tuple[str, ...]


def read_points(content: bytes, parameters: Parameters) -> Points:
    """All points of a file.

    Raises MarkerFileError if there are none, or if integer coordinates have no scale.
    """
    layout, notes = _layout(content, parameters)
    numbers = _numbers(content, parameters, layout)
    if not layout.floats:
        scale, note = _scale(parameters, numbers)
        numbers = np.concatenate((numbers[..., :3] * scale, numbers[..., 3:]), axis=-1)
        notes += note
    positions = numbers[..., :3]
    there = np.isfinite(positions).all(axis=-1) & (positions != 0.0).any(axis=-1)
    seen = there & (numbers[..., 3] >= 0.0)
    if there.any() and not seen.any():
        return Points(positions, there, (*notes, "the file marks every sample as missing; used their coordinates"))
    return Points(positions, seen, notes)


def first_frame(parameters: Parameters) -> int:
    """The number of the first frame; 1 if the file does not give it."""
    number = parameters.long_number("TRIAL:ACTUAL_START_FIELD")
    return int(number) if number >= 1.0 else max(1, parameters.header.first_frame)


def frame_rate(parameters: Parameters) -> tuple[float, tuple[str, ...]]:
    """Frames a second, and a note if header and parameters differ.

    Raises MarkerFileError if neither makes sense.
    """
    told = [
        parameters.number("POINT:RATE"),
        parameters.header.rate,
        parameters.number("TRIAL:CAMERA_RATE"),
    ]
    rates = [rate for rate in told if 0.0 < rate < FASTEST]
    if not rates:
        raise MarkerFileError("the frame rate is not known: export it again with POINT:RATE")
    if told[0] == rates[0] and told[1] in rates and not math.isclose(told[0], told[1], rel_tol=1e-4):
        return rates[0], (f"POINT:RATE is {told[0]:g} Hz, but the header has {told[1]:g} Hz; used the former",)
    return rates[0], ()


def _layout(content: bytes, parameters: Parameters) -> tuple[Layout, tuple[str, ...]]:
    """The first layout that matches the file's size; else the first one, cut at the end of the file."""
    size = len(content)
    header, counts = parameters.header, _frame_counts(parameters)
    blocks = _counts([header.data_block, parameters.number("POINT:DATA_START")])
    starts = [(block - 1) * BLOCK for block in blocks if block > 1] or [parameters.end]
    point_counts = _counts([parameters.number("POINT:USED"), header.point_count])
    # Floats or integers; both are tried if the file does not decide.
    kinds = list(dict.fromkeys(scale < 0.0 for scale in _scales(parameters))) or [True, False]
    combined = product(kinds, starts, point_counts, _analog_counts(parameters), counts or [0])
    layouts = [Layout(start, points, analogs, frames, floats) for floats, start, points, analogs, frames in combined]
    if not layouts or not layouts[0].points:
        raise MarkerFileError("no markers: choose a file with points")
    exact = [layout for layout in layouts if layout.frames and 0 <= size - layout.end < BLOCK]
    # Otherwise as many frames as the file announces, but no more than fit into it.
    most = max(size - layouts[0].start, 0) // layouts[0].frame_bytes
    chosen = exact[0] if exact else replace(layouts[0], frames=min(layouts[0].frames or most, most))
    if chosen.frames < 1:
        raise MarkerFileError("there are no frames; the file ends where they should begin: export it again")
    notes = [
        f"the file announces {count} frames, but has {chosen.frames}" for count in counts if count != chosen.frames
    ]
    return chosen, tuple(notes[:1])


def _counts(values: Iterable[float]) -> list[int]:
    """The values that are valid counts, without repetitions."""
    return list(dict.fromkeys(int(value) for value in values if math.isfinite(value) and value >= 1.0))


def _analog_counts(parameters: Parameters) -> list[int]:
    """Analog numbers per frame, from the header and from the parameters; the former may be 0."""
    header, used = parameters.header, parameters.number("ANALOG:USED")
    rates = parameters.number("ANALOG:RATE"), parameters.number("POINT:RATE")
    ratio = rates[0] / rates[1] if rates[1] > 0.0 else math.nan
    told = [used * round(ratio) if math.isfinite(ratio) else math.nan, used * header.analog_per_frame]
    return list(dict.fromkeys([header.analog_count, *_counts(told), 0]))


def _frame_counts(parameters: Parameters) -> list[int]:
    """The frame counts in the file's various fields, without the one that means "more than fit"."""
    header = parameters.header
    start, end = (parameters.long_number(f"TRIAL:ACTUAL_{which}_FIELD") for which in ("START", "END"))
    counted = header.first_frame >= 1 and header.last_frame != _MANY_FRAMES
    told = [
        header.last_frame - header.first_frame + 1.0 if counted else math.nan,
        end - start + 1.0,
        parameters.number("POINT:LONG_FRAMES"),
        parameters.number("POINT:FRAMES"),
    ]
    return [count for count in _counts(told) if count != _MANY_FRAMES]


def _scales(parameters: Parameters) -> list[float]:
    """The scales in the file, the parameter's first; negative: the numbers are floats and need none."""
    told = [parameters.number("POINT:SCALE"), parameters.header.scale]
    return [scale for scale in told if math.isfinite(scale) and 0.0 < abs(scale) < _LARGEST]


def _numbers(content: bytes, parameters: Parameters, layout: Layout) -> FloatArray:
    """(F, P, 4) x, y, z and the fourth word, which is negative if a point is not seen."""
    raw = content[layout.start : layout.end]
    if layout.floats:
        values = parameters.floats(raw)
    else:
        values = np.frombuffer(raw, dtype=f"{parameters.byte_order}i2").astype(np.float64)
    frames = values.reshape(layout.frames, -1)[:, : 4 * layout.points]
    return frames.reshape(layout.frames, layout.points, 4)


def _scale(parameters: Parameters, numbers: FloatArray) -> tuple[float, tuple[str, ...]]:
    """The factor on integer coordinates; of two scales, the one that gives a person's height."""
    scales = list(dict.fromkeys(scale for scale in _scales(parameters) if scale > 0.0))
    if not scales:
        raise MarkerFileError("POINT:SCALE is missing or 0, so the scale is unknown: export it again")
    if len(scales) == 1 or math.isclose(scales[0], scales[1], rel_tol=1e-4):
        return scales[0], ()
    tall = _extent(numbers)
    scale = min(scales, key=lambda scale: abs(math.log(scale * tall / _TALL))) if tall > 0.0 else scales[0]
    return scale, (f"POINT:SCALE is {scales[0]:g}, but the header has {scales[1]:g}; used {scale:g}",)


def _extent(numbers: FloatArray) -> float:
    """The extent of a frame's visible points along their longest axis; the median over frames."""
    points = np.where((numbers[..., 3:] >= 0.0), numbers[..., :3], np.nan)
    points = points[np.isfinite(points).all(axis=-1).sum(axis=1) > 1]
    if not len(points):
        return 0.0
    return float(np.median((np.nanmax(points, axis=1) - np.nanmin(points, axis=1)).max(axis=1)))
