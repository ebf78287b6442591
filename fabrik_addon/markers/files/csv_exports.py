"""Reads CSV exports of OptiTrack's Motive, format versions 1.2x, and of Vicon Nexus.

Motive: markers, and rigid bodies as clusters of markers. The first line has pairs of keys and values ("Format
Version,1.23,…,Export Frame Rate,120,…,Length Units,Meters"). After a blank line, each column has the kind of its owner
(Marker, Rigid Body, Rigid Body Marker, Bone, Bone Marker), its name, its ID (from 1.25 also its parent) and the
quantity (Rotation, Position or an error). The last header line is "Frame,Time (Seconds),X,Y,…". Y is assumed to be up,
since the file does not contain Motive's setting. Source: docs.optitrack.com, Data Export: CSV, and files of versions
1.22 to 1.25.

A rigid body's markers are named after the body ("Thigh_1"), so that they form a cluster on one bone. If a body has no
markers, its pivot and a point on each of its axes, 5 cm away, are used. Measured markers are preferred to those solved
by Motive. The bones of a skeleton are left out.

Nexus: the section "Trajectories". The first line is the section's name, and the second one the rate. The third line has
the marker names, each with a subject and a colon in front, above the marker's first column. The next lines are
"Frame,Sub Frame,X,Y,Z,X,Y,Z,…" and the units of the columns. The rows of the frames follow, up to a blank line or the
next section. Velocities (X', X'') and other sections (devices, joints, model outputs) are skipped. Vicon Workstation
writes "Field #" instead of the frames, and neither sub frames nor units. Z is up unless the markers show otherwise.
Source: Vicon Nexus User Guide, "Export data to an ASCII file", and files of Nexus 2.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from ...core.arrays import FloatArray
from ...core.channels import from_channels
from ...core.errors import first_few
from ...core.rotations import matrix_from_quaternion
from ..clip import Clip, MarkerFileError
from . import reading

_SECTION_LINE: Final = re.compile(
    r"(?:\A|[\r\n])[ \"]*(devices|events|joints|model outputs|segments|trajectories)\"?[,;\t ]*(?:\r\n?|\n)",
    re.IGNORECASE,
)
_BLANK: Final = ",;\t \r\n"
_FRAME: Final = frozenset({"FRAME", "FRAMES", "FIELD #"})


def has_sections(content: bytes) -> bool:
    """Whether a line of the file begins one of Nexus's sections."""
    return _SECTION_LINE.search(reading.decoded(content)) is not None


def parse_nexus(content: bytes, chosen: reading.Chosen) -> Clip:
    """The clip in a file's bytes, in meters and the file's own axes.

    Raises MarkerFileError, without the file's name, if there is no complete section of trajectories, no rate, no known
    unit, or if no marker is ever seen.
    """
    text = reading.decoded(content)
    lines = _SECTION_LINE.finditer(text)
    own = next((line for line in lines if line[1].lower() == "trajectories"), None)
    if own is None:
        raise MarkerFileError("it has no section Trajectories: export it with trajectories")
    following = list(lines)
    if any(line[1].lower() == "trajectories" for line in following):
        raise MarkerFileError("it has several sections Trajectories: export each trial to a file of its own")
    # Spreadsheets fill the empty row before the next section with separators.
    text = f"{text[own.end() : following[0].start()].rstrip(_BLANK)}\n" if following else text[own.end() :]
    rows = reading.CsvRows(text)
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
    if not capitals[1].startswith("SUB"):
        numbers[:, 1] = 0.0
    parts = np.nanmax(numbers[:, 1], initial=0.0) + 1.0
    frames = parts * numbers[:, 0] + np.nan_to_num(numbers[:, 1])
    numbers[:, 1] = np.nan
    numbers, notes = reading.in_place(frames, numbers[:, 1:])
    rate, unit = reading.rate_in_cell(rate_row[0]), units.pop() if units else ""
    markers = [labels[place] or f"*{number}" for number, place in enumerate(firsts, start=1)]
    points = numbers[:, 1:].reshape(-1, len(firsts), 3)
    return reading.to_clip(chosen, markers, points, unit, "Z", rate and parts * rate, needs_rate=True, notes=notes)


# The start of a file: its first key or, if it was exported without Header Information, the kind of the first column
# after one or two blank cells.
_START: Final = re.compile(
    r'^\W*format version|^["\s]*[,;]\W*(type\W+)?(rigid ?body|bone|marker)( marker)?"?[,;]', re.IGNORECASE
)
_LONGEST_START: Final = 64
_KEY: Final = re.compile(r"(?i)format version")
# Matches a header, from its first line ("Format Version") to the names of the columns ("Frame").
_HEADER: Final = re.compile(r'^\W*format version.*?^"?frame"?\W[^\n]*\n\s*', re.IGNORECASE | re.DOTALL | re.MULTILINE)
_TYPES: Final = frozenset({"marker", "rigidbody", "rigidbodymarker", "bone", "bonemarker"})
_KINDS: Final = frozenset({"position", "rotation"})
# If several markers have the same name, the kind that comes first here is used: measured before solved.
_MEASURED_FIRST: Final = ("marker", "rigidbodymarker", "bonemarker")
# Meters from a rigid body's pivot to the points on its axes.
_ARM: Final = 0.05


def is_motive(content: bytes) -> bool:
    """Whether a file is an export of Motive."""
    return _START.match(reading.decoded(content[:_LONGEST_START])) is not None


def parse_motive(content: bytes, chosen: reading.Chosen) -> Clip:
    """The clip in a file's bytes, in meters and the file's own axes.

    Raises MarkerFileError, without the file's name, if there is no header, no marker or rigid body, no frame, no rate
    or no known unit.
    """
    rows = reading.CsvRows(_with_one_header(reading.decoded(content)))
    first = rows.next() or [""]
    if not first[0]:
        rows.back(first)
    # All pairs of neighboring cells, since the name of a take may contain commas.
    fields = {_plain(key): value for key, value in pairwise(first)}
    columns, timed = _columns(rows)
    unit = fields.get("lengthunits", "") if chosen.units is None else chosen.units
    numbers = rows.columns([0, timed or 0, *(place for place, _, _ in columns)])
    numbers, notes = reading.in_place(numbers[:, 0], numbers[:, 1:])
    of_owner: dict[tuple[str, str], dict[tuple[str, str], FloatArray]] = {}
    for index, (_, owner, key) in enumerate(columns):
        own = owner
        # Two markers, bodies or bones have the same name, or neither has one.
        while key in of_owner.get(own, {}):
            own = own[0], f"{own[1] or '*'}_2"
        of_owner.setdefault(own, {})[key] = numbers[:, 1 + index]
    order = fields.get("rotationtype", "").lower()
    if sorted(order) == ["x", "y", "z"]:
        for channels in of_owner.values():
            channels.update(_quaternions(channels, order))
    markers = _markers(of_owner, _ARM / reading.METERS[reading.unit_name(unit)])
    bones = [name for kind, name in of_owner if kind == "bone"]
    points = np.stack(list(markers.values()), axis=1) if markers else np.empty((len(numbers), 0, 3))
    if bones and not np.isfinite(points).any():
        raise MarkerFileError("it has only the bones of a skeleton: export markers, or export BVH and retarget it")
    left_out = f"left out the bones of a skeleton: {first_few(bones)}; export BVH to retarget them"
    if fields.get("coordinatespace", "").lower() == "local" and {kind for kind, _ in of_owner} - {"marker", "bone"}:
        raise MarkerFileError("its markers are relative to their rigid bodies: export it with Coordinate Space Global")
    # A body with only one marker, its pivot, needs its rotation.
    unread = [
        name
        for (kind, name), axes in of_owner.items()
        if kind == "rigidbody" and ("rotation", "x") in axes and ("rotation", "w") not in axes
        if _of_body(name, "2") not in markers
    ]
    euler = f"left out the rotations of {first_few(unread)}: export them with Rotation Type Quaternion"
    exported, captured = (reading.rate_in_cell(fields.get(key, "")) for key in ("exportframerate", "captureframerate"))
    measured = reading.rate_of_times(numbers[:, 0], exported) if timed else None
    clip = reading.to_clip(
        chosen,
        list(markers),
        points,
        unit,
        "Y",
        # The export may have only every second frame, or fewer.
        exported or measured or captured,
        timed=measured,
        needs_rate=True,
        notes=(*notes, *(left_out,) * bool(bones), *(euler,) * bool(unread)),
    )
    stated = reading.number_in(fields.get("totalexportedframes", "")) or math.nan
    return replace(clip, doubts=(*reading.frame_count_doubt(stated, clip.frame_count), *clip.doubts))


def _with_one_header(text: str) -> str:
    header = _HEADER.match(text) if len(_KEY.findall(text)) > 1 else None
    return text if header is None else f"{header[0].rstrip()}\n{_HEADER.sub('', text)}"


def _plain(text: str) -> str:
    return text.lower().replace(" ", "")


def _columns(rows: reading.CsvRows) -> tuple[list[tuple[int, tuple[str, str], tuple[str, str]]], int | None]:
    """The columns of positions and rotations, and the index of the time column.

    Reads the header, so the next row is the first one with numbers. Each column has an index, its owner (kind and name
    of a marker, body or bone), and its quantity and axis.
    """
    above: list[list[str]] = []
    while (row := rows.next()) is not None:
        if row and row[0].lower() == "frame":
            break
        above.append(row)
    kinds = next((row for row in above if _TYPES & {_plain(cell) for cell in row}), None)
    quantities = next((row for row in reversed(above) if _KINDS & {cell.lower() for cell in row}), None)
    if row is None or kinds is None or quantities is None:
        raise MarkerFileError("the header is truncated: lines of types, names and axes are needed: export it again")
    names = above[next(index for index, other in enumerate(above) if other is kinds) + 1]
    columns = [
        (index, (_plain(kind), name.strip('"')), (quantity.lower(), axis.lower()))
        for index, (kind, name, quantity, axis) in enumerate(zip(kinds, names, quantities, row, strict=False))
        if _plain(kind) in _TYPES and quantity.lower() in _KINDS
    ]
    if not columns:
        raise MarkerFileError("it has neither markers nor rigid bodies: export them with positions")
    timed = next((index for index, cell in enumerate(row) if cell.lower().startswith("time")), None)
    return columns, timed


def _markers(
    owners: Mapping[tuple[str, str], Mapping[tuple[str, str], FloatArray]], arm: float
) -> dict[str, FloatArray]:
    """(F, 3) positions by marker. Markers of a rigid body are named after it, with a number. arm: see `_ARM`."""
    bodies = [name for kind, name in owners if kind == "rigidbody"]
    found: dict[str, FloatArray] = {}
    used: set[str] = set()
    for kind in _MEASURED_FIRST:
        for (own, name), channels in owners.items():
            position = _position(channels)
            if own != kind or name in used or position is None:
                continue
            used.add(name)
            body = next((body for body in bodies if name.startswith(f"{body}:")), None)
            found[name if body is None else _of_body(body, name)] = position
    for body in bodies:
        channels = owners["rigidbody", body]
        pivot = _position(channels)
        if pivot is None or any(name.startswith(f"{body}:") for name in used):
            continue
        found[_of_body(body, "1")] = pivot
        quaternion = [channels[key] for axis in "wxyz" if (key := ("rotation", axis)) in channels]
        if len(quaternion) == 4:
            # A quaternion of zeros has no axes.
            size = np.linalg.norm(quaternion, axis=0)
            axes = matrix_from_quaternion(np.stack(quaternion, axis=1) / np.where(size > 0.0, size, np.nan)[:, None])
            for index in range(3):
                found[_of_body(body, str(index + 2))] = pivot + arm * axes[:, :, index]
    return found


def _of_body(body: str, name: str) -> str:
    number = re.search(r"\d+$", name)
    return f"{body.replace(':', '_')}_{int(number[0]) if number else name.rpartition(':')[2]}"


def _position(channels: Mapping[tuple[str, str], FloatArray]) -> FloatArray | None:
    """(F, 3) positions; None if an axis is missing."""
    axes = [channels[key] for axis in "xyz" if (key := ("position", axis)) in channels]
    return np.stack(axes, axis=1) if len(axes) == 3 else None


def _quaternions(channels: Mapping[tuple[str, str], FloatArray], order: str) -> dict[tuple[str, str], FloatArray]:
    """Convert channels of Euler angles in degrees to channels of quaternions; empty if there are no angles.

    order: each rotation is about an axis that the ones before have rotated (OptiTrack's NatNet SDK: NAT_XYZr).
    """
    if any(("rotation", axis) not in channels for axis in order):
        return {}
    angles = np.radians(np.stack([channels["rotation", axis] for axis in "xyz"], axis=1))
    turned = from_channels(order[::-1].upper(), angles)
    return {("rotation", axis): turned[:, index] for index, axis in enumerate("wxyz")}
