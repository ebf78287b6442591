"""Motion-capture data: files, names, gaps, size and errors. Plain Python with numpy, no Blender."""

from __future__ import annotations

from .c3d import read_c3d
from .calibration import CalibrationError, rigid_pairs, uniform_scale
from .clip import (
    Clip,
    ClipError,
    MarkerFileError,
    guess_up_axis,
    missing_spans,
    to_z_up,
    trim,
)
from .files import SUFFIXES, performers, read_markers, select_performer
from .gaps import Gap, interpolated
from .mapping import MapError, MappedMarker, check_map, read_map, write_map
from .report import FrameRow, MarkerRow, Report, ReportError, TotalRow
from .resample import retimed
from .trc import read_trc

__all__ = [
    "SUFFIXES",
    "CalibrationError",
    "Clip",
    "ClipError",
    "FrameRow",
    "Gap",
    "MapError",
    "MappedMarker",
    "MarkerFileError",
    "MarkerRow",
    "Report",
    "ReportError",
    "TotalRow",
    "check_map",
    "guess_up_axis",
    "interpolated",
    "missing_spans",
    "performers",
    "read_c3d",
    "read_map",
    "read_markers",
    "read_trc",
    "retimed",
    "rigid_pairs",
    "select_performer",
    "to_z_up",
    "trim",
    "uniform_scale",
    "write_map",
]
