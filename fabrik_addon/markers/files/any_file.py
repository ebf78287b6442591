"""Marker files of any kind, and recordings of more than one performer."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..clip import Clip, ClipError, MarkerFileError
from ..mapping.labels import body_labels
from .c3d import parse_c3d
from .reading import Parser, read_file
from .suffixes import SUFFIXES
from .trc import parse_trc

_PARSERS: Final[Mapping[str, Parser]] = MappingProxyType({".trc": parse_trc, ".c3d": parse_c3d})
_C3D_MAGIC: Final = 0x50
_TRC_START: Final = b"pathfiletype"
# What may precede a label's first "_" without being a performer.
_SIDES: Final = frozenset({"l", "r", "left", "right"})
# Prefixes without a colon are performers if this many labels are the same behind each of them.
_SHARED_LABELS: Final = 5
# A performer has at least this share of the labels of a body that any other has.
_LEAST_SHARE: Final = 0.25


def read_markers(path: str | os.PathLike[str], units: str | None = None, up_axis: str | None = None) -> Clip:
    """Read a TRC or C3D file into metres, told by what is in it, else by its suffix.

    units: overrides what the file says ("mm", "cm", "m", "in", "ft"). up_axis: "Y" or "Z"; None takes what the file
    says, or guesses. Raises MarkerFileError, one sentence that names the file, where it cannot be read or is neither.
    """
    suffix = Path(path).suffix.lower()
    return read_file(path, lambda *told: _parser(told[0][:64], suffix)(*told), units, up_axis)


def _parser(start: bytes, suffix: str) -> Parser:
    """What reads a file that begins so."""
    if _TRC_START in start.replace(b"\0", b"").lower():
        return parse_trc
    if len(start) > 1 and start[1] == _C3D_MAGIC and start[0] < ord(" "):
        return parse_c3d
    if suffix not in _PARSERS:
        kinds = "/".join(suffix.lstrip(".").upper() for suffix in SUFFIXES)
        raise MarkerFileError(f"this is no {kinds} file: choose one of these")
    return _PARSERS[suffix]


def performers(clip: Clip) -> tuple[str, ...]:
    """The prefixes of performers, in the clip's order: what precedes the colon in labels such as Anna:LASI.

    If no label has a colon: what precedes the first underscore, if several have the same labels behind it. Props are no
    performers: these have labels of a body, at least a quarter as many as any other; or any labels, if none are known.
    """
    labels: dict[str, list[str]] = {}
    prefixed = _prefixed(clip.names)
    for name in clip.names:
        prefix, label = prefixed.get(name, ("", name))
        labels.setdefault(prefix, []).append(label)
    counts = {prefix: body_labels(own) for prefix, own in labels.items()}
    if not any(counts.values()):
        counts = {prefix: len(own) for prefix, own in labels.items()}
    least = _LEAST_SHARE * max(counts.values(), default=0)
    return tuple(prefix for prefix, count in counts.items() if prefix and count >= least)


def select_performer(clip: Clip, name: str) -> Clip:
    """The markers of one performer, without the prefix; unlabelled ones belong to nobody.

    Raises ClipError if there is no such performer.
    """
    prefixed = _prefixed(clip.names)
    places = [place for place, label in enumerate(clip.names) if label in prefixed and prefixed[label][0] == name]
    if not places:
        known = ", ".join(performers(clip)) or "labels without one"
        raise ClipError(f"{clip.source or 'the recording'}: there is no performer {name!r}: choose from {known}")
    names = tuple(prefixed[clip.names[place]][1] for place in places)
    return replace(clip, names=names, positions=clip.positions[:, places])


def _prefixed(names: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """The labels that have a prefix, as prefix and rest."""
    by_colon = {
        name: (prefix, rest) for name in names for prefix, _, rest in (name.rpartition(":"),) if prefix and rest
    }
    if by_colon:
        return by_colon
    # Underscores separate other things as well: several prefixes have to have the same labels.
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
