"""Motion-capture data: files, names, gaps, size and errors. Plain Python with numpy, no Blender.

Each name below is imported when it is first asked for: at its start Blender needs a few tables of this room only.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

_MODULES: Final = MappingProxyType(
    {
        "files.c3d": ("read_c3d",),
        "calibrate.size": ("CalibrationError", "rigid_pairs", "uniform_scale"),
        "clip": ("Clip", "ClipError", "MarkerFileError", "guess_up_axis", "missing_spans", "to_z_up", "trim"),
        "files.any_file": ("performers", "read_markers", "select_performer"),
        "gaps.spans": ("Gap", "interpolated"),
        "mapping.marker_map": ("MapError", "MappedMarker", "check_map", "read_map", "write_map"),
        "report": ("FrameRow", "MarkerRow", "Report", "ReportError", "TotalRow"),
        "resample": ("retimed",),
        "files.suffixes": ("SUFFIXES",),
        "files.trc": ("read_trc",),
    }
)

__all__ = [name for names in _MODULES.values() for name in names]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
