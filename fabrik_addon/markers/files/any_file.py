"""Reads marker files of all kinds, and separates performers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ...core.errors import first_few
from ..clip import Clip, ClipError, MarkerFileError
from ..mapping.labels import body_labels, landmarks_of
from ..mapping.landmarks import is_mirrored
from .arrays import NPY_START, NPZ_START, PICKLE_START, PICKLED
from .c3d import MAGIC, parse_c3d
from .keypoints import parse_csv, parse_npy
from .motive import START as MOTIVE_START
from .motive import parse_motive
from .nexus import has_trajectories, parse_nexus
from .npz import parse_npz
from .reading import Chosen, Parser, extent, read_file
from .suffixes import SUFFIXES
from .trc import parse_trc

_PARSERS: Final[Mapping[str, Parser]] = MappingProxyType(
    {".trc": parse_trc, ".c3d": parse_c3d, ".npy": parse_npy, ".npz": parse_npz}
)
_TRC_START: Final = b"pathfiletype"
# Parts before a label's first "_" that are sides instead of performers.
_SIDES: Final = frozenset({"l", "r", "left", "right"})
# Prefixes without a colon name performers if they share this many labels.
_SHARED_LABELS: Final = 5
# A performer has at least this share of the body labels that any other performer has.
_MIN_SHARE: Final = 0.25
# Meters: the extent of a person's markers, from a sitting child's to that of raised arms. Fewer landmarks than these
# may be those of a hand, or of other things.
_SMALLEST, _LARGEST = 0.35, 3.5
_FEWEST_LANDMARKS: Final = 8


def read_markers(
    path: str | os.PathLike[str],
    units: str | None = None,
    up_axis: str | None = None,
    layout: str | None = None,
    rate: float | None = None,
) -> Clip:
    """Read a file of markers or keypoints, in meters; the content decides the format, else the suffix does.

    units: overrides the file's ("mm", "cm", "m", "in", "ft"). up_axis: "Y" or "Z"; None: the file's, or a guess.
    layout: the order of keypoints without names, a key of `layouts.LAYOUTS`; None: detected. rate: frames a second,
    overrides the file's. Raises MarkerFileError, one sentence that names the file, if the file cannot be read or its
    format is unknown; LayoutError if a layout has to be chosen.
    """
    suffix = Path(path).suffix.lower()
    # `read_file` checks the axis.
    axis: Any = up_axis
    chosen = Chosen(units, axis, layout, rate)
    clip = read_file(path, lambda content, checked: _parser(content, suffix)(content, checked), chosen)
    return replace(clip, doubts=(*clip.doubts, *_person_doubts(clip)))


def _person_doubts(clip: Clip) -> Iterator[str]:
    """Sentences if a performer is as large or small as no person, mirrored, or has markers that stand still."""
    for name in performers(clip) or ("",):
        person = select_performer(clip, name) if name else clip
        known = landmarks_of(person.names)
        if len(known) < _FEWEST_LANDMARKS:
            continue
        positions = person.positions[:, [person.names.index(label) for label in known]]
        size = extent(positions)
        if size > 0.0 and not _SMALLEST < size < _LARGEST:
            length = f"{size:.2g}" if size < 1.0 else f"{size:.0f}"
            yield (
                f"The markers of {name or 'the person'} extend over {length} m: choose units other than {clip.units} "
                "if that is wrong"
            )
        if is_mirrored(dict(zip(known.values(), np.moveaxis(positions, 1, 0), strict=True))):
            yield (
                f"The front of {name or 'the person'} is at the back: check whether the labels swap left and right, "
                "or the axes are mirrored"
            )
        # A foot stays in place while the body moves by less than its height.
        moved = (np.fmax.reduce(positions) - np.fmin.reduce(positions)).max(axis=1)
        still = [label for label, distance in zip(known, moved, strict=True) if distance == 0.0]
        if still and np.nanmedian(moved) > size:
            yield f"These markers never move, but the others do: {first_few(still)}; unassign them if they are frozen"


def _parser(content: bytes, suffix: str) -> Parser:
    """The parser for a file with this content."""
    start = content[:64]
    letters = start.replace(b"\0", b"").lower()
    if _TRC_START in letters:
        return parse_trc
    if MOTIVE_START in letters:
        return parse_motive
    if start.startswith(NPY_START):
        return parse_npy
    if start.startswith(NPZ_START):
        return parse_npz
    if start.startswith(PICKLE_START) and b"." in content[-2:]:
        raise MarkerFileError(PICKLED)
    if len(start) > 1 and start[1] == MAGIC and start[0] < ord(" "):
        return parse_c3d
    if suffix == ".csv":
        return parse_nexus if has_trajectories(content) else parse_csv
    if suffix not in _PARSERS:
        kinds = "/".join(suffix.lstrip(".").upper() for suffix in SUFFIXES)
        raise MarkerFileError(f"this is not a {kinds} file: choose one of these formats")
    return _PARSERS[suffix]


def performers(clip: Clip) -> tuple[str, ...]:
    """The prefixes of performers, in the clip's order: the part before the colon in labels such as Anna:LASI.

    If no label has a colon: the part before the first underscore, if several prefixes share labels. Props do not count:
    a performer has body labels, at least a quarter as many as any other, or any labels if no label is known.
    """
    labels: dict[str, list[str]] = {}
    prefixed = _prefixed(clip.names)
    for name in clip.names:
        prefix, label = prefixed.get(name, ("", name))
        labels.setdefault(prefix, []).append(label)
    counts = {prefix: body_labels(own) for prefix, own in labels.items()}
    if not any(counts.values()):
        counts = {prefix: len(own) for prefix, own in labels.items()}
    least = _MIN_SHARE * max(counts.values(), default=0)
    return tuple(prefix for prefix, count in counts.items() if prefix and count >= least)


def select_performer(clip: Clip, name: str) -> Clip:
    """The markers of one performer, without the prefix. Unlabeled markers belong to no performer.

    Raises ClipError if there is no such performer.
    """
    prefixed = _prefixed(clip.names)
    places = [place for place, label in enumerate(clip.names) if label in prefixed and prefixed[label][0] == name]
    if not places:
        known = ", ".join(performers(clip)) or "labels without a prefix"
        raise ClipError(f"{clip.source or 'the recording'}: there is no performer {name!r}: choose from {known}")
    names = tuple(prefixed[clip.names[place]][1] for place in places)
    return replace(clip, names=names, positions=clip.positions[:, places])


def _prefixed(names: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """Each label that has a prefix, with its prefix and the rest."""
    by_colon = {
        name: (prefix, rest) for name in names for prefix, _, rest in (name.rpartition(":"),) if prefix and rest
    }
    if by_colon:
        return by_colon
    # Underscores also separate other things, so several prefixes must have the same labels.
    pieces = {name: (prefix, rest) for name in names for prefix, _, rest in (name.partition("_"),) if prefix and rest}
    labels: dict[str, set[str]] = {}
    for prefix, rest in pieces.values():
        if prefix.lower() not in _SIDES and not rest.isdigit():
            labels.setdefault(prefix, set()).add(rest)
    alike = {
        one
        for one, rests in labels.items()
        if any(one != other and len(rests & others) >= _SHARED_LABELS for other, others in labels.items())
    }
    return {name: piece for name, piece in pieces.items() if piece[0] in alike}
