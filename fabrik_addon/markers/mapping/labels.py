"""Interprets labels: finds their marker set, and the bone of each."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import Final, NamedTuple

from ...core.errors import FabrikError
from ...human.body_parts import Role
from ...human.rest_body import RestBone
from .landmarks import LANDMARKS, RigBody, Spot, carrier, simple_end
from .marker_map import MappedMarker
from .marker_sets import PRESETS, MarkerSet
from .words import meaning_of_words

_TOKEN: Final = re.compile(r"3[dD]\b|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
# Japanese and Chinese labels. Long words come before the words that they contain.
_CHARACTERS: Final[Mapping[str, str]] = {
    "左": "Left", "右": "Right", "上前腸骨棘": "ASIS", "上後腸骨棘": "PSIS", "大転子": "Trochanter",
    "肩峰": "Acromion", "股関節": "HJC", "足関節": "Ankle", "足首": "Ankle", "手関節": "Wrist", "手首": "Wrist",
    "手腕": "Wrist", "中足骨": "Meta", "つま先": "Toe", "足尖": "Toe", "足跟": "Heel", "踵骨": "Heel",
    "仙骨": "Sacrum", "頭頂": "Vertex", "橈側": "Radius", "尺側": "Ulna", "外果": "AnkleLat", "内果": "AnkleMed",
    "外側": "Lat", "内側": "Med", "肩": "Shoulder", "肘": "Elbow", "腕": "Wrist", "髋": "HJC", "膝": "Knee",
    "踝": "Ankle", "踵": "Heel",
}  # fmt: skip
# Words for left and right in several languages.
SIDES: Final[Mapping[str, str]] = {
    side: letter
    for letter, sides in {
        "L": "l left lt links li sx sin sinistra gauche gau izq izquierda esq esquerda",
        "R": "r right rt rechts re dx des destra droite droit dro der derecha dir direita",
    }.items()
    for side in sides.split()
}
# Letters for left and right at either end of a label in English, French, Italian, Spanish and Portuguese. They count
# only if both occur.
_PAIRS: Final = ("lr", "gd", "sd", "id", "ed")
# A word that begins or ends at least this many labels, and this share of all, is ignored: it names a performer or
# trial.
_SHARED_LABELS, _SHARED_SHARE = 5, 0.6
# Virtual points such as V_Mid_ASIS, which software computes from markers.
_VIRTUAL: Final = re.compile(r"v_(?!sacr).+|virtual.*", re.IGNORECASE)
# A cluster's markers weigh less until a calibration has measured their offsets.
_CLUSTER_WEIGHT: Final = 0.3
_UNLABELLED: Final = re.compile(r"\*.*|unlabel+ed.*|unnamed.*|u_?\d+", re.IGNORECASE)
# Some programs cut labels to this many letters.
_CUT: Final = 4
# A marker set is recognized if it contains at least this many of the labels.
_FEWEST: Final = 3


class NamingError(FabrikError):
    """An unknown marker set."""


class Matched(NamedTuple):
    """The markers that have a bone, the labels without one, and the marker set that was used."""

    markers: tuple[MappedMarker, ...]
    unmatched: tuple[str, ...]
    preset: str | None


class _Meaning(NamedTuple):
    """The meaning of a label: a side ("" in the middle), a landmark, and the preset's name for it."""

    side: str
    landmark: str
    stem: str
    cluster: bool = False


class _Sign(NamedTuple):
    """One reading of a label: a side or "", and the rest in lower case. pair: the letters that mean left and right."""

    side: str
    stem: str
    pair: str = ""


class _Reader:
    """Interprets the labels of one file together: words that all share are ignored, and sides come in pairs."""

    def __init__(self, labels: Sequence[str]) -> None:
        tokens = {label: _tokens(label) for label in labels if is_named(label)}
        first, last = (_shared([words[end] for words in tokens.values() if len(words) > 1]) for end in (0, -1))
        self._tokens = {label: _without(words, first, last) for label, words in tokens.items()}
        self._signs = {label: list(_signs(words)) for label, words in self._tokens.items()}
        weak = {label: list(_weak_signs(words)) for label, words in self._tokens.items()}
        signs_seen = {sign for signs in weak.values() for sign in signs}
        self._weak = {
            label: [sign for sign in signs if sign._replace(side="R" if sign.side == "L" else "L") in signs_seen]
            for label, signs in weak.items()
        }

    def meaning(self, label: str, preset: MarkerSet | None) -> _Meaning | None:
        """The meaning of a label from the preset, from all other presets, or from its words; None if unknown."""
        return self.in_preset(label, preset) or self._in_others(label)

    def in_preset(self, label: str, preset: MarkerSet | None) -> _Meaning | None:
        """The meaning of a label in a preset; None if unknown."""
        if preset is None or label not in self._tokens:
            return None
        signs = self._signs[label]
        return _whole_meaning([*signs, *self._weak[label]], preset) or _cut_meaning(signs, preset)

    def _in_others(self, label: str) -> _Meaning | None:
        """The meaning on which all other presets that contain the label agree; else the meaning of its words."""
        own = list(_own_signs(self._tokens.get(label, [])))
        for signs in (own, self._weak.get(label, [])):
            meanings = [meaning for preset in PRESETS.values() if (meaning := _whole_meaning(signs, preset))]
            agreed = len({meaning[:2] for meaning in meanings}) == 1
            found = meanings[0] if agreed else _meaning_by_words(signs)
            if found is not None:
                return found
        return None

    def recognized(self) -> str | None:
        """The key of the preset that contains most of the labels; None if none contains three.

        On a tie, the preset of which a larger share of labels occurs.
        """
        known = {
            key: len({self.in_preset(label, preset) for label in self._tokens} - {None})
            for key, preset in PRESETS.items()
        }
        best = max(PRESETS, key=lambda key: (known[key], known[key] / len(set(PRESETS[key].sided.values()))))
        return best if known[best] >= _FEWEST else None


def is_unlabelled(label: str) -> bool:
    """Whether a label is one that recording software gives to unknown markers, such as ``*12``."""
    return _UNLABELLED.fullmatch(_own_label(label)) is not None


def is_virtual(label: str) -> bool:
    """Whether a label names a point that software computes from markers, such as ``V_Mid_ASIS``."""
    return _VIRTUAL.fullmatch(_own_label(label)) is not None


def is_named(label: str) -> bool:
    """Whether a label may describe its marker: it is neither unlabeled nor virtual."""
    return not is_unlabelled(label) and not is_virtual(label)


def landmarks_of(labels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Side ("L", "R" or "") and landmark, by label of one person. Unknown labels are left out."""
    reader = _Reader(labels)
    key = reader.recognized()
    found = {label: reader.meaning(label, PRESETS[key] if key else None) for label in labels}
    return {label: meaning[:2] for label, meaning in found.items() if meaning is not None}


def parts_of(roles: Mapping[str, Role]) -> dict[Role, str]:
    """The main bone of each role. roles: by bone, in the armature's order, parents first.

    If several bones have a role, the first one is used, since it begins at the joint. The exception is the
    chest: neck and shoulders are attached to its last bone. Without a chest, the last bone of the spine is used.
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
    """Find the bone of each label, and the marker's position on it.

    A label that is not in the preset is also used if all other presets agree on it, or if its words name a landmark. If
    several labels mean the same landmark, only the first one is used. Numbered labels of a part form a cluster.

    labels: as in the file, with or without a performer's prefix. parts: the bone of each role, from ``parts_of``. rest:
    the bones at rest in armature space. With these, each marker gets its offset on an average body of the rig's size,
    in armature units. Without them, it gets the nearest end of its bone. preset: a key of PRESETS; None: recognized.
    Raises NamingError for an unknown preset.
    """
    if preset is not None and preset not in PRESETS:
        raise NamingError(f"there is no marker set {preset!r}: choose from {', '.join(PRESETS)}")
    reader = _Reader(labels)
    key = preset or reader.recognized()
    body = None if rest is None else RigBody(parts, rest)
    markers: list[MappedMarker] = []
    taken: set[_Meaning] = set()
    for label in labels:
        meaning = reader.meaning(label, PRESETS[key] if key else None)
        marker = None if meaning is None or meaning in taken else _mapped(label, meaning, parts, body)
        if marker is not None and meaning is not None:
            taken.add(meaning)
            markers.append(marker)
    mapped = {marker.marker for marker in markers}
    return Matched(tuple(markers), tuple(label for label in labels if label not in mapped), key)


def _mapped(label: str, meaning: _Meaning, parts: Mapping[Role, str], body: RigBody | None) -> MappedMarker | None:
    """A label on its bone; None if the rig has no such bone."""
    landmark = LANDMARKS[meaning.landmark]
    bone = carrier(landmark, meaning.side, parts)
    if bone is None:
        return None
    spot = body.spot(landmark, meaning.side, bone) if body else None
    end, offset = spot or Spot(simple_end(landmark), None)
    weight = min(landmark.weight, _CLUSTER_WEIGHT) if meaning.cluster else landmark.weight
    return MappedMarker(label, bone, end or "OFFSET", offset, weight)


def _whole_meaning(signs: Iterable[_Sign], preset: MarkerSet) -> _Meaning | None:
    """The meaning of the first of the readings that the preset contains."""
    for side, stem, _pair in signs:
        if stem in _table(preset, side):
            return _Meaning(side, _table(preset, side)[stem], stem)
    return None


def _cut_meaning(signs: Sequence[_Sign], preset: MarkerSet) -> _Meaning | None:
    """The meaning of a label that was cut to four letters. If several labels match, the shortest is used."""
    for side, stem, _pair in signs:
        if len(side) + len(stem) == _CUT:
            whole = [known for known in _table(preset, side) if known.startswith(stem)]
            if whole:
                known = min(whole, key=len)
                return _Meaning(side, _table(preset, side)[known], known)
    return None


def _meaning_by_words(signs: Iterable[_Sign]) -> _Meaning | None:
    """The meaning of the first reading whose words are understood. Readings with a side come first."""
    for side, stem, _pair in sorted(signs, key=lambda sign: not sign.side):
        meaning = meaning_of_words(stem, sided=bool(side))
        if meaning is not None:
            return _Meaning(side, meaning[0], stem, meaning[1])
    return None


def _table(preset: MarkerSet, side: str) -> Mapping[str, str]:
    return preset.sided if side else preset.middle


def _own_label(label: str) -> str:
    """A label without its prefix."""
    return label.rpartition(":")[2].strip()


def _tokens(label: str) -> list[str]:
    """The words and numbers of a label without its prefix, in lower case without accents."""
    own = _own_label(label).replace("ß", "ss")
    for characters, word in _CHARACTERS.items():
        own = own.replace(characters, f" {word} ")
    plain = unicodedata.normalize("NFKD", own)
    return [token.lower() for token in _TOKEN.findall("".join(c for c in plain if not unicodedata.combining(c)))]


def _shared(words: Sequence[str]) -> str:
    """The most frequent of the words, one per label; "" if it is too rare, a side or a number."""
    word, count = max(Counter(words).items(), key=lambda item: item[1], default=("", 0))
    enough = count >= max(_SHARED_LABELS, _SHARED_SHARE * len(words))
    return word if enough and not word.isdigit() and word not in SIDES else ""


def _without(tokens: list[str], first: str, last: str) -> list[str]:
    """The words of a label, without the first or last word if most labels share it."""
    if len(tokens) > 1 and tokens[0] == first:
        tokens = tokens[1:]
    return tokens[:-1] if len(tokens) > 1 and tokens[-1] == last else tokens


def _signs(tokens: Sequence[str]) -> Iterator[_Sign]:
    """The readings of a label, the most likely first. The last ones ignore the first word, a performer's name."""
    yield from _own_signs(tokens)
    if tokens and tokens[0] not in SIDES:
        yield from _own_signs(list(dropwhile(str.isdigit, tokens[1:])))


def _own_signs(tokens: Sequence[str]) -> Iterator[_Sign]:
    """Readings without a side, and readings whose side is a word or the first letter."""
    stem = "".join(tokens)
    if not stem:
        return
    yield _Sign("", stem)
    sides = [index for index, token in enumerate(tokens) if token in SIDES]
    if len(sides) == 1:
        rest = [token for index, token in enumerate(tokens) if index != sides[0]]
        yield _Sign(SIDES[tokens[sides[0]]], "".join(rest))
    elif stem[:1] in SIDES and len(stem) > 1:
        yield _Sign(SIDES[stem[0]], stem[1:])


def _weak_signs(tokens: Sequence[str]) -> Iterator[_Sign]:
    """Readings whose side is the last letter, or a letter of another language at either end."""
    stem = "".join(tokens)
    for left, right in _PAIRS:
        for side, letter in (("L", left), ("R", right)):
            if len(stem) > 1 and stem.endswith(letter):
                yield _Sign(side, stem[:-1], f"-{left}{right}")
            if len(stem) > 1 and stem.startswith(letter):
                yield _Sign(side, stem[1:], f"{left}{right}-")
    for word, side in SIDES.items():
        if len(word) > 1 and stem.endswith(word) and stem != word:
            yield _Sign(side, stem.removesuffix(word), "words")
