"""Reads the section "Trajectories" of CSV (ASCII) exports of Vicon Nexus.

The section's name has its own line; the rate is on the next one. Then come the marker names, with a subject and colon
in front, each above the first column of its marker; "Frame,Sub Frame,X,Y,Z,X,Y,Z,…"; the units of each column; and a
row for each frame, down to a blank line. Velocities (X', X'') and other sections (devices, joints, model outputs) are
skipped. Source: Vicon Nexus User Guide, "Export data to an ASCII file", and files of Nexus 2. Z is up unless the
markers show otherwise.
"""

import re
from typing import Final

import numpy as np

from ..clip import Clip, MarkerFileError, UpAxis
from .reading import CsvRows, decoded, in_place, rate_in_cell, to_clip, unique_names, unit_name

_SECTION: Final = "trajectories"
_SECTION_LINE: Final = re.compile(rb"(?:\A|[\r\n])\"?trajectories\"?[,;\t ]*[\r\n]", re.IGNORECASE)


def has_trajectories(content: bytes) -> bool:
    """Whether a line of the file begins a section of trajectories."""
    return _SECTION_LINE.search(decoded(content).encode()) is not None


def parse_nexus(content: bytes, units: str | None, up_axis: UpAxis | None) -> Clip:
    """The clip in a file's bytes, in meters and the file's own axes; units, up_axis: see `read_markers`.

    Raises MarkerFileError, without the file's name, if there is no complete section of trajectories, no rate, no known
    unit, or if no marker is ever seen.
    """
    rows = CsvRows(content)
    while (row := rows.next()) is not None and (not row or row[0].lower() != _SECTION):
        pass
    told, names, axes, unit_row = ((rows.next() or []) for _ in range(4))
    rate = rate_in_cell(told[0]) if told else None
    if not axes or axes[0].lower() != "frame":
        raise MarkerFileError("the header of its trajectories is truncated: export it again")
    if rate is None:
        raise MarkerFileError(f"the frame rate under Trajectories is {told[0] if told else ''!r}: export it again")
    # A name is above the first column of its marker; columns up to the next name belong to that marker.
    places: dict[str, list[int]] = {}
    owner = ""
    for place, axis in enumerate(axes):
        name = names[place] if place < len(names) else ""
        if name:
            owner = unique_names([*places, name])[-1]
        if axis.upper() in ("X", "Y", "Z") and owner:
            places.setdefault(owner, []).append(place)
    whole = {name: three for name, three in places.items() if len(three) == 3}
    if not whole:
        raise MarkerFileError("it has no markers with columns X, Y and Z under Trajectories: export it again")
    wanted = [place for three in whole.values() for place in three]
    unit = unit_name((unit_row[wanted[0]] if wanted[0] < len(unit_row) else "") if units is None else units)
    numbers = rows.columns([0, 1, *wanted])
    # Sub frames divide frames.
    parts = np.nanmax(numbers[:, 1], initial=0.0) + 1.0
    numbers, notes = in_place(parts * numbers[:, 0] + np.nan_to_num(numbers[:, 1]), numbers[:, 2:])
    return to_clip(tuple(whole), parts * rate, numbers.reshape(-1, len(whole), 3), unit, up_axis, "Z", notes)
