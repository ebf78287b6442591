"""Reads C3D files: 3D points in binary, described by groups of parameters. Analog data is skipped.

Errors of writers are corrected, with a note, if only one reading makes sense; otherwise the file is refused:

* A sample is missing if its residual is negative, if it is not a number, or at exactly (0, 0, 0).
* Points that are not markers are left out: outputs of a model (angles, forces, moments, powers, scalars, axes of its
  segments, the center of mass).
* A blank label becomes ``*n``. Equal labels are replaced by their descriptions if those differ, else numbered. The
  prefix of a subject ends with a colon, whatever the file uses.
* Up is Y_SCREEN unless the markers show a person who stands along another axis. If up is X or negative, positions are
  rotated.
"""

import re
from collections import Counter
from typing import Final

import numpy as np

from ...core.errors import first_few
from ..clip import Clip, FloatArray, MarkerFileError, UpAxis, up_axis_by_markers
from .c3d_parameters import Parameters
from .c3d_points import first_frame, frame_rate, read_points
from .reading import METERS, guessed_up, unique_names, unit_name

_OUTPUT_GROUPS: Final = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "REACTIONS")
_OUTPUT_NAME: Final = re.compile(r".+(angles?|forces?|moments?|powers?|grf)v?|cent(re|er)ofmass(floor)?", re.IGNORECASE)
# A segment's origin and the ends of its three axes: LFEO, LFEA, LFEL and LFEP.
_SEGMENT_ENDS: Final = "OALP"


def parse_c3d(content: bytes, units: str | None, up_axis: UpAxis | None) -> Clip:
    """The clip in a file's bytes, in meters and the file's own axes (rotated if X is up).

    units, up_axis: see `read_markers`. Raises MarkerFileError, without the file's name, if the file is empty or not a
    C3D file, for unknown units, for a missing rate or scale, without points or frames, and if no marker is ever seen.
    """
    parameters = Parameters(content)
    points = read_points(content, parameters)
    names, is_output = _labels(parameters, points.positions.shape[1])
    left_out = [name for name, output in zip(names, is_output, strict=True) if output]
    if len(left_out) == len(names):
        raise MarkerFileError(
            f"all {len(left_out)} points are outputs of a model, such as {left_out[0]!r}: export markers"
        )
    notes = [f"left out the outputs of a model: {first_few(left_out)}"] if left_out else []
    told = parameters.string("POINT:UNITS") or None if units is None else units
    unit = "mm" if told is None else unit_name(told)
    unit_note = ("the file has no units; assumed mm",) if told is None else ()
    rate, rate_notes = frame_rate(parameters)
    markers = [place for place, output in enumerate(is_output) if not output]
    positions = np.where(points.seen[..., None], points.positions, np.nan)[:, markers] * METERS[unit]
    if np.isnan(positions).all():
        raise MarkerFileError("no marker is visible on any frame: choose another recording")
    upright, up, up_note = _upright(positions, parameters, up_axis)
    return Clip(
        names=unique_names([names[place] for place in markers]),
        rate=rate,
        positions=upright,
        up_axis=up,
        units=unit,
        start_time=(first_frame(parameters) - 1) / rate,
        notes=(*points.notes, *rate_notes, *unit_note, *up_note, *notes),
    )


def _labels(parameters: Parameters, count: int) -> tuple[list[str], list[bool]]:
    """The names of the points, and which of them are outputs of a model."""
    plain = [*parameters.strings("POINT:LABELS"), *([""] * count)][:count]
    # Repeated labels are replaced by their descriptions, if all of those differ.
    counts = Counter(plain)
    doubles = [place for place, label in enumerate(plain) if label and counts[label] > 1]
    described = [*parameters.strings("POINT:DESCRIPTIONS"), *([""] * count)]
    better = [described[place] for place in doubles]
    if all(better) and len(set(better)) == len(better) and not counts.keys() & set(better):
        plain = [described[place] if place in doubles else label for place, label in enumerate(plain)]
    # A subject's prefix ends with a colon, whatever separator the file uses.
    prefixes = [prefix for prefix in parameters.strings("SUBJECTS:LABEL_PREFIXES") if prefix and prefix[-1] != ":"]
    names = []
    for place, label in enumerate(plain, start=1):
        prefix = next((prefix for prefix in prefixes if label.startswith(prefix) and label != prefix), None)
        name = label if prefix is None else f"{prefix.rstrip('_-. ')}:{label[len(prefix) :]}"
        names.append(name or f"*{place}")
    # Outputs of a model: what the file lists as angles, forces and the like, in groups that it may name itself; the
    # usual names of these, for files that do not list them; and the origin and axes of segments, if all four exist.
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
    positions: FloatArray, parameters: Parameters, told: UpAxis | None
) -> tuple[FloatArray, UpAxis, tuple[str, ...]]:
    """(F, M, 3) positions with Y or Z up, which of the two it is, and notes.

    The file's Y_SCREEN is used unless the markers of a standing person clearly show another axis.
    """
    if told is not None:
        return positions, told, ()
    across, up = (parameters.string(f"POINT:{axis}_SCREEN").upper() for axis in "XY")
    across, up = (screen if screen[:1] in ("+", "-") else f"+{screen}" for screen in (across, up))
    if up not in ("+X", "-X", "+Y", "-Y", "+Z", "-Z"):
        return positions, *guessed_up(positions, "Z")
    x, y, z = np.moveaxis(positions, -1, 0)
    turned = {"+X": (y, z, x), "-X": (z, y, -x), "-Y": (x, -y, -z), "-Z": (x, -y, -z)}
    upright = np.stack(turned.get(up, (x, y, z)), axis=-1)
    axis: UpAxis = "Y" if up[1] == "Y" else "Z"
    # Writers without a setting for these axes write "+X" and "+Y".
    shown = up_axis_by_markers(positions, clearly=(across, up) != ("+X", "+Y"))
    if shown is not None and up_axis_by_markers(upright) != axis:
        note = f"the file's up axis is {up.removeprefix('+')}, but the markers show {shown}; used {shown}"
        return positions, shown, (note,)
    return upright, axis, () if up in ("+Y", "+Z") else (f"rotated upright: {up} was up",)
