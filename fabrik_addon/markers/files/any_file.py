"""Marker files of any kind, and recordings of more than one performer."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..clip import Clip, ClipError, MarkerFileError
from .c3d import parse_c3d
from .reading import Parser, read_file
from .suffixes import SUFFIXES
from .trc import parse_trc

_PARSERS: Final[Mapping[str, Parser]] = MappingProxyType({".trc": parse_trc, ".c3d": parse_c3d})
_C3D_MAGIC: Final = 0x50
_TRC_START: Final = b"pathfiletype"
# What can stand before a label's first "_" without being somebody.
_SIDES: Final = frozenset({"l", "r", "left", "right"})
# Prefixes without a colon are performers where so many labels are the same behind each of them.
_SHARED_LABELS: Final = 5


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
    """Whose markers there are, in the clip's order: what stands before the colon in labels such as Anna:LASI.

    Where no label has a colon: what stands before the first underscore, if several have the same markers behind it.
    Empty where labels have no such prefixes.
    """
    return tuple(dict.fromkeys(prefix for prefix, _label in _parted(clip.names).values()))


def select_performer(clip: Clip, name: str) -> Clip:
    """The markers of one performer, without the prefix; unlabelled ones belong to nobody.

    Raises ClipError where there is no such performer.
    """
    parted = _parted(clip.names)
    places = [place for place, label in enumerate(clip.names) if label in parted and parted[label][0] == name]
    if not places:
        known = ", ".join(performers(clip)) or "labels without one"
        raise ClipError(f"{clip.source or 'the recording'}: there is no performer {name!r}: choose from {known}")
    names = tuple(parted[clip.names[place]][1] for place in places)
    return replace(clip, names=names, positions=clip.positions[:, places])


def _parted(names: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """The labels that have a performer's prefix, as prefix and rest."""
    parted = {
        name: (prefix, rest) for name in names for prefix, colon, rest in (name.rpartition(":"),) if prefix and rest
    }
    return parted or _parted_at_underscores(names)


def _parted_at_underscores(names: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """As ``_parted`` for labels such as Anna_LASI; none where it is not clear that the prefixes are performers."""
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
