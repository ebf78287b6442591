"""Reading C3D files: 3D points in binary, with what they are in groups of parameters. Analog data is passed over.

What writers get wrong is put right where there is only one sensible reading (and noted), and refused in one sentence
where there is not:

* not seen are samples with a negative residual, of numbers that are none, and at exactly (0, 0, 0);
* points that are no markers are left out: what a model made of them (angles, forces, moments, powers, scalars, the
  axes of its segments, the centre of mass);
* labels: a blank one becomes ``*n``; of equal ones the descriptions are taken where those differ, else the later ones
  are numbered; a subject's prefix ends with a colon, whatever the file writes there;
* up is what Y_SCREEN says. "+X, +Y" is what writers put there who were not told, so then the markers' spread may
  contradict; where up is X, or points the other way, the positions are turned.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from ...core.errors import first_few
from ..clip import Clip, FloatArray, MarkerFileError, UpAxis, guess_up_axis
from .c3d_parameters import Parameters
from .c3d_points import first_frame, frame_rate, read_points
from .reading import METRES, guessed_up, unique_names, unit_name

_OUTPUT_GROUPS: Final = ("ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS", "REACTIONS")
_OUTPUT_NAME: Final = re.compile(r".+(angles?|forces?|moments?|powers?|grf)v?|cent(re|er)ofmass(floor)?", re.IGNORECASE)
# A segment's origin and the ends of its three axes: LFEO, LFEA, LFEL and LFEP.
_SEGMENT_ENDS: Final = "OALP"
_NAMED: Final = 3


def parse_c3d(content: bytes, units: str | None, up_axis: UpAxis | None) -> Clip:
    """The clip in a file's bytes, metres in the file's own axes (turned where X is up).

    units, up_axis: as `read_markers` says. Raises MarkerFileError, which does not name the file yet, for a file that is
    empty or not a C3D file; for unknown units; for no rate, no scale, no points or no frames; and where no marker is
    ever seen.
    """
    parameters = Parameters(content)
    points = read_points(content, parameters)
    names, outputs = _labels(parameters, points.positions.shape[1])
    markers, left_out = _markers(names, outputs)
    unit, unit_note = _unit(parameters, units)
    rate, rate_notes = frame_rate(parameters)
    positions = np.where(points.seen[..., None], points.positions, np.nan)[:, markers] * METRES[unit]
    if np.isnan(positions).all():
        raise MarkerFileError("no marker is seen on any frame: choose another recording")
    upright, up, up_note = _upright(positions, parameters, up_axis)
    return Clip(
        names=unique_names([names[place] for place in markers]),
        rate=rate,
        positions=upright,
        up_axis=up,
        units=unit,
        start_time=(first_frame(parameters) - 1) / rate,
        notes=(*points.notes, *rate_notes, *unit_note, *up_note, *left_out),
    )


def _unit(parameters: Parameters, told: str | None) -> tuple[str, tuple[str, ...]]:
    """The unit's short name; millimetres, with a note, where nobody says."""
    if told is not None:
        return unit_name(told), ()
    said = parameters.string("POINT:UNITS")
    if not said:
        return "mm", ("the file says no units; took them for mm",)
    return unit_name(said), ()


def _labels(parameters: Parameters, count: int) -> tuple[list[str], list[bool]]:
    """What each of the points is called, and which are outputs of a model."""
    plain = [*parameters.strings("POINT:LABELS"), *([""] * count)][:count]
    plain = _told_apart(plain, parameters.strings("POINT:DESCRIPTIONS"))
    names = [name or f"*{place}" for place, name in enumerate(_prefixed(plain, parameters), start=1)]
    listed = _listed_outputs(parameters)
    ends = _segment_ends(names)
    outputs = [label in listed or _is_output(name) or name in ends for label, name in zip(plain, names, strict=True)]
    return names, outputs


def _told_apart(labels: Sequence[str], descriptions: Sequence[str]) -> list[str]:
    """The labels; for those that are there more than once their descriptions, where all of those differ."""
    counts = Counter(labels)
    described = [*descriptions, *([""] * len(labels))]
    doubles = [place for place, label in enumerate(labels) if label and counts[label] > 1]
    better = [described[place] for place in doubles]
    if not all(better) or len(set(better)) < len(better) or counts.keys() & set(better):
        return list(labels)
    return [described[place] if place in doubles else label for place, label in enumerate(labels)]


def _prefixed(labels: Sequence[str], parameters: Parameters) -> list[str]:
    """The labels with a colon after the subject's name, where the file names another mark for that."""
    prefixes = [prefix for prefix in parameters.strings("SUBJECTS:LABEL_PREFIXES") if prefix and prefix[-1] != ":"]
    done = []
    for label in labels:
        prefix = next((prefix for prefix in prefixes if label.startswith(prefix) and label != prefix), None)
        done.append(label if prefix is None else f"{prefix.rstrip('_-. ')}:{label[len(prefix) :]}")
    return done


def _listed_outputs(parameters: Parameters) -> set[str]:
    """The labels that the file lists as angles, forces and the like, in groups that it may name itself."""
    groups = dict.fromkeys((*_OUTPUT_GROUPS, *parameters.strings("POINT:TYPE_GROUPS")[::2]))
    return {label for group in groups if group for label in parameters.strings(f"POINT:{group}") if label}


def _is_output(name: str) -> bool:
    """Whether a name is that of something a model calculates, for files that do not list it."""
    return _OUTPUT_NAME.fullmatch(name.rpartition(":")[2]) is not None


def _segment_ends(names: Sequence[str]) -> set[str]:
    """The names of segments' origins and axes: all four of a stem of three letters."""
    there = set(names)
    stems = {name[:-1] for name in names if len(name.rpartition(":")[2]) == len("LFEO") and name[-1] in _SEGMENT_ENDS}
    whole = [stem for stem in stems if all(stem + end in there for end in _SEGMENT_ENDS)]
    return {stem + end for stem in whole for end in _SEGMENT_ENDS}


def _markers(names: Sequence[str], outputs: Sequence[bool]) -> tuple[list[int], tuple[str, ...]]:
    """The places of the markers, and a note on what is left out; raise where there is nothing else."""
    left_out = [name for name, output in zip(names, outputs, strict=True) if output]
    if len(left_out) == len(names):
        raise MarkerFileError(
            f"all {len(left_out)} points are outputs of a model, such as {left_out[0]!r}: export markers"
        )
    markers = [place for place, output in enumerate(outputs) if not output]
    if not left_out:
        return markers, ()
    return markers, (f"left out the outputs of a model: {first_few(left_out, _NAMED)}",)


def _upright(
    positions: FloatArray, parameters: Parameters, told: UpAxis | None
) -> tuple[FloatArray, UpAxis, tuple[str, ...]]:
    """The (F, M, 3) positions with Y or Z up, which of the two, and what to say of it."""
    if told is not None:
        return positions, told, ()
    across, up = _screens(parameters)
    if up not in ("+X", "-X", "+Y", "-Y", "+Z", "-Z"):
        return positions, *guessed_up(positions, "Z")
    if (across, up) == ("+X", "+Y"):
        guessed = guess_up_axis(positions, "Y")
        note = () if guessed == "Y" else ("the file says that Y is up, the markers that Z is; took Z",)
        return positions, guessed, note
    note = () if up in ("+Y", "+Z") else (f"turned upright: {up} was up",)
    return (*_turned(positions, up), note)


def _screens(parameters: Parameters) -> tuple[str, str]:
    """Which axes point right and up where the file is shown, such as "+X" and "+Z"; a sign may be left out."""
    across, up = (parameters.string(f"POINT:{axis}_SCREEN").upper() for axis in "XY")
    return across if across[:1] in ("+", "-") else f"+{across}", up if up[:1] in ("+", "-") else f"+{up}"


def _turned(positions: FloatArray, up: str) -> tuple[FloatArray, UpAxis]:
    """The positions turned until ``up`` is +Y or +Z, and which."""
    x, y, z = np.moveaxis(positions, -1, 0)
    turned = {"+X": (y, z, x), "-X": (z, y, -x), "-Y": (x, -y, -z), "-Z": (x, -y, -z)}
    return np.stack(turned.get(up, (x, y, z)), axis=-1), "Y" if up[1] == "Y" else "Z"
