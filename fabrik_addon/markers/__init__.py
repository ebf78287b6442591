"""Motion-capture data: files, names, gaps, size and errors. Plain Python with numpy, no Blender."""

from __future__ import annotations

from .calibration import CalibrationError, rigid_pairs, uniform_scale
from .clip import (
    Clip,
    ClipError,
    MarkerFileError,
    guess_up_axis,
    missing_spans,
    resample,
    to_z_up,
    trim,
)
from .mapping import MapError, MappedMarker, check_map, read_map, write_map
from .report import FrameRow, MarkerRow, Report, ReportError, TotalRow
from .trc import read_trc

__all__ = [
    "CalibrationError",
    "Clip",
    "ClipError",
    "FrameRow",
    "MapError",
    "MappedMarker",
    "MarkerFileError",
    "MarkerRow",
    "Report",
    "ReportError",
    "TotalRow",
    "check_map",
    "guess_up_axis",
    "missing_spans",
    "read_map",
    "read_trc",
    "resample",
    "rigid_pairs",
    "to_z_up",
    "trim",
    "uniform_scale",
    "write_map",
]
