"""Reads the section "Trajectories" of CSV (ASCII) exports of Vicon Nexus.

The first line is the section's name, and the second one the rate. The third line has the marker names, each with a
subject and a colon in front, above the marker's first column. The next lines are "Frame,Sub Frame,X,Y,Z,X,Y,Z,…" and
the units of the columns. The rows of the frames follow, up to a blank line or the next section. Velocities (X', X'')
and other sections (devices, joints, model outputs) are skipped. Vicon Workstation writes "Field #" instead of the
frames, and neither sub frames nor units. Z is up unless the markers show otherwise. Source: Vicon Nexus User Guide,
"Export data to an ASCII file", and files of Nexus 2.
"""

import re
from typing import Final

import numpy as np

from ..clip import Clip, MarkerFileError
from .reading import Chosen, CsvRows, decoded, in_place, rate_in_cell, to_clip

_SECTION_LINE: Final = re.compile(
    r"(?:\A|[\r\n])[ \"]*(devices|events|joints|model outputs|segments|trajectories)\"?[,;\t ]*(?:\r\n?|\n)",
    re.IGNORECASE,
)
_BLANK: Final = ",;\t \r\n"
_FRAME: Final = frozenset({"FRAME", "FRAMES", "FIELD #"})


def has_sections(content: bytes) -> bool:
    """Whether a line of the file begins one of Nexus's sections."""
    return _SECTION_LINE.search(decoded(content)) is not None


def parse_nexus(content: bytes, chosen: Chosen) -> Clip:
    """The clip in a file's bytes, in meters and the file's own axes.

    Raises MarkerFileError, without the file's name, if there is no complete section of trajectories, no rate, no known
    unit, or if no marker is ever seen.
    """
    text = decoded(content)
    lines = _SECTION_LINE.finditer(text)
    own = next((line for line in lines if line[1].lower() == "trajectories"), None)
    if own is None:
        raise MarkerFileError("it has no section Trajectories: export it with trajectories")
    following = list(lines)
    if any(line[1].lower() == "trajectories" for line in following):
        raise MarkerFileError("it has several sections Trajectories: export each trial to a file of its own")
    # Spreadsheets fill the empty row before the next section with separators.
    text = f"{text[own.end() : following[0].start()].rstrip(_BLANK)}\n" if following else text[own.end() :]
    rows = CsvRows(text)
    rate_row, names, axes, unit_row = ((rows.next() or [""]) for _ in range(4))
    capitals = [axis.upper() for axis in axes]
    if capitals[0] not in _FRAME:
        raise MarkerFileError("the header of its trajectories is truncated: export it again")
    if unit_row[0]:
        rows.back(unit_row)
        unit_row = []
    # A marker's columns X, Y, Z are adjacent. Its name, if it has one, is above the first.
    firsts = [place for place in range(len(axes)) if capitals[place : place + 3] == ["X", "Y", "Z"]]
    if not firsts:
        raise MarkerFileError("it has no markers with columns X, Y and Z under Trajectories: export it again")
    units = {unit for place in firsts for unit in unit_row[place : place + 3] if unit}
    if len(units) > 1:
        raise MarkerFileError(f"its markers have several units ({', '.join(sorted(units))}): export them with one")
    labels = [*names, *[""] * len(axes)]
    numbers = rows.columns([0, 1, *(place + axis for place in firsts for axis in range(3))])
    # Sub frames are parts of a frame.
    if not capitals[1].startswith("SUB"):
        numbers[:, 1] = 0.0
    parts = np.nanmax(numbers[:, 1], initial=0.0) + 1.0
    frames = parts * numbers[:, 0] + np.nan_to_num(numbers[:, 1])
    # The file has no times.
    numbers[:, 1] = np.nan
    numbers, notes = in_place(frames, numbers[:, 1:])
    rate, unit = rate_in_cell(rate_row[0]), units.pop() if units else ""
    markers = [labels[place] or f"*{number}" for number, place in enumerate(firsts, start=1)]
    points = numbers[:, 1:].reshape(-1, len(firsts), 3)
    return to_clip(chosen, markers, points, unit, "Z", rate and parts * rate, needs_rate=True, notes=notes)
