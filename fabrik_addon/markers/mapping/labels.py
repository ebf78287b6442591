"""What labels mean: the marker set that they belong to, and the bone that each of them sits on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import Final, NamedTuple

from ...core.errors import FabrikError
from ...human.body_parts import Role
from .landmarks import LANDMARKS, RestBone, RigBody, Spot, carrier, simple_end
from .marker_map import MappedMarker
from .marker_sets import PRESETS, Preset

__all__ = ["PRESETS", "Matched", "NamingError", "is_unlabelled", "match", "parts_of", "recognise"]

_TOKEN: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SIDES: Final[Mapping[str, str]] = {"l": "L", "left": "L", "lt": "L", "r": "R", "right": "R", "rt": "R"}
_UNLABELLED: Final = re.compile(r"\*.*|unlabel+ed.*|unnamed.*|u_?\d+", re.IGNORECASE)
# Some programs keep so many letters of a label.
_CUT: Final = 4
# With fewer labels known, a marker set is not recognised.
_FEWEST: Final = 3


class NamingError(FabrikError):
    """A marker set that is not known."""


class Matched(NamedTuple):
    """The markers that have a bone, the labels that have none, and the marker set they were looked up in."""

    markers: tuple[MappedMarker, ...]
    unmatched: tuple[str, ...]
    preset: str | None


class _Meaning(NamedTuple):
    """What a label says: the landmark on a side ("" in the middle), told by the stem that a preset knows."""

    side: str
    landmark: str
    stem: str


class _Sign(NamedTuple):
    """One way to read a label: a side, or "", and the rest in small letters."""

    side: str
    stem: str


def is_unlabelled(label: str) -> bool:
    """Whether a label is one that recording software gives to a marker that it does not know, such as ``*12``."""
    return _UNLABELLED.fullmatch(label.rpartition(":")[2].strip()) is not None


def recognise(labels: Iterable[str]) -> str | None:
    """The key of the preset that knows most of the labels, None where none knows three.

    Of two that know as many the one that is known more completely.
    """
    names = list(labels)
    known = {key: len({_meaning(label, preset) for label in names} - {None}) for key, preset in PRESETS.items()}
    best = max(PRESETS, key=lambda key: (known[key], known[key] / len(set(PRESETS[key].sided.values()))))
    return best if known[best] >= _FEWEST else None


def parts_of(roles: Mapping[str, Role]) -> dict[Role, str]:
    """The one bone that stands for each role, from bones in an armature's order, parents first.

    Where several bones share a role it is the first, at the joint; but the last one of the chest, to which neck and
    shoulders belong; a spine without a chest has it at its upper end.
    """
    parts: dict[Role, str] = {}
    for bone, role in roles.items():
        if role.part == "chest" or role not in parts:
            parts[role] = bone
    spine = [bone for bone, role in roles.items() if role.part == "spine"]
    if spine and Role("chest") not in parts:
        parts[Role("chest")] = spine[-1]
    return parts


def match(
    labels: Sequence[str],
    parts: Mapping[Role, str],
    rest: Mapping[str, RestBone] | None = None,
    preset: str | None = None,
) -> Matched:
    """Find the bone, and the place on it, that each label stands for.

    labels: as in the file, with or without a performer's prefix. parts: the bone of each role, as from ``parts_of``.
    rest: the bones at rest in armature space; with them each marker gets the offset at which it would lie on an average
    body of the rig's size, in armature units; without, the nearest end of its bone. preset: a key of PRESETS, None:
    the one that is recognised. A label that the preset does not know, but all others agree on, is taken as well. Of
    labels that read the same the first one counts. Raises NamingError for a preset that is not known.
    """
    if preset is not None and preset not in PRESETS:
        raise NamingError(f"there is no marker set {preset!r}, only {', '.join(PRESETS)}")
    key = preset or recognise(labels)
    body = None if rest is None else RigBody(parts, rest)
    markers: list[MappedMarker] = []
    taken: set[_Meaning] = set()
    for label in labels:
        meaning = _meaning(label, PRESETS[key] if key else None) or _agreed_meaning(label)
        marker = None if meaning is None or meaning in taken else _mapped(label, meaning, parts, body)
        if marker is not None and meaning is not None:
            taken.add(meaning)
            markers.append(marker)
    mapped = {marker.marker for marker in markers}
    return Matched(tuple(markers), tuple(label for label in labels if label not in mapped), key)


def _mapped(label: str, meaning: _Meaning, parts: Mapping[Role, str], body: RigBody | None) -> MappedMarker | None:
    """A label on its bone; None where the rig has none for it."""
    landmark = LANDMARKS[meaning.landmark]
    bone = carrier(landmark, meaning.side, parts)
    if bone is None:
        return None
    spot = body.spot(landmark, meaning.side, bone) if body else None
    end, offset = spot or Spot(simple_end(landmark), None)
    return MappedMarker(label, bone, end or "OFFSET", offset, landmark.weight)


def _meaning(label: str, preset: Preset | None) -> _Meaning | None:
    """What a label says in a preset; None where it says nothing."""
    if preset is None or is_unlabelled(label):
        return None
    signs = list(_signs(_tokens(label)))
    return _whole_meaning(signs, preset) or _cut_meaning(signs, preset)


def _whole_meaning(signs: Iterable[_Sign], preset: Preset) -> _Meaning | None:
    """What the first reading says that a preset knows."""
    for side, stem in signs:
        if stem in _table(preset, side):
            return _Meaning(side, _table(preset, side)[stem], stem)
    return None


def _cut_meaning(signs: Sequence[_Sign], preset: Preset) -> _Meaning | None:
    """What a label says of which only four letters were kept: of several the one with the shortest name."""
    for side, stem in signs:
        if len(side) + len(stem) == _CUT:
            whole = [known for known in _table(preset, side) if known.startswith(stem)]
            if whole:
                known = min(whole, key=len)
                return _Meaning(side, _table(preset, side)[known], known)
    return None


def _agreed_meaning(label: str) -> _Meaning | None:
    """What a label, taken whole, says in all presets that know it; None where they do not agree."""
    signs = [] if is_unlabelled(label) else list(_own_signs(_tokens(label)))
    meanings = [meaning for preset in PRESETS.values() if (meaning := _whole_meaning(signs, preset))]
    return meanings[0] if len({meaning[:2] for meaning in meanings}) == 1 else None


def _table(preset: Preset, side: str) -> Mapping[str, str]:
    return preset.sided if side else preset.middle


def _tokens(label: str) -> list[str]:
    """The words and numbers of a label without its prefix, in small letters."""
    return [token.lower() for token in _TOKEN.findall(label.rpartition(":")[2])]


def _signs(tokens: Sequence[str]) -> Iterator[_Sign]:
    """The ways to read a label, the likelier ones first; at last without a first word, which may be a performer's."""
    yield from _own_signs(tokens)
    if tokens and tokens[0] not in _SIDES:
        yield from _own_signs(list(dropwhile(str.isdigit, tokens[1:])))


def _own_signs(tokens: Sequence[str]) -> Iterator[_Sign]:
    """Without a side; with the side that is a word of its own; with the side that is the first letter."""
    stem = "".join(tokens)
    if not stem:
        return
    yield _Sign("", stem)
    sides = [place for place, token in enumerate(tokens) if token in _SIDES]
    if len(sides) == 1:
        rest = [token for place, token in enumerate(tokens) if place != sides[0]]
        yield _Sign(_SIDES[tokens[sides[0]]], "".join(rest))
    elif stem[:1] in _SIDES and len(stem) > 1:
        yield _Sign(_SIDES[stem[0]], stem[1:])
