"""Interprets labels: finds their marker set, and the bone of each, if necessary by the words of a label.

Words are a part of the body, its side (such as outer or front), and a number. "kneelat", "epicondext" and "malint" name
a landmark; "thigh3" and "foot1" belong to a cluster anywhere on a bone. Words are English, or usual words and
abbreviations of French, Italian, Spanish, Portuguese, Dutch and German.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import dropwhile
from typing import Final, NamedTuple, TypeAlias

from ...core.errors import FabrikError
from ...human.naming_schemes import Role
from ...human.rest_body import RestBone
from .landmarks import LANDMARKS, RigBody, Spot, carrier, simple_end
from .marker_map import MappedMarker
from .marker_sets import PRESETS, MarkerSet

_PLACES: Final[Mapping[str, str]] = {
    # bony landmarks
    "asis": "asis asi ias eias sias spinailiacaanteriore",
    "psis": "psis psi ips eips sips",
    "sacrum": "sacrum sacral sacr sac sacro kreuzbein",
    "iliac crest": "iliaccrest iliac crest crete iliocristale ilcr ilc",
    "trochanter": "trochanter trocanter trocantere troch gtr gtroch greatertrochanter grandtrochanter"
    " trochanterion trocantermaggiore hanche anca cadera quadril hueft huefte huft hufte heup gtro gtroc",
    "knee": "knee kne kn genou gen rodilla rod joelho ginocchio gin knie",
    "ankle": "ankle ank cheville chev tobillo tornozelo caviglia cav knoechel knochel sprunggelenk enkel spg osg",
    "elbow": "elbow elb coude cou codo cotovelo gomito gom ellbogen elleboog ellb elbo",
    "wrist": "wrist wri poignet poig muneca pulso polso handgelenk hdgl punho pols hg",
    "shoulder": "shoulder sho acromion acromium acro acr ac epaule hombro ombro spalla schulter schouder acrm",
    "heel": "heel hee calcaneus calcaneum calcagno calcaneo calc cal talon tallone ferse hiel calcanhar calcaneous",
    "toe": "toe toes orteil ort hallux hallus alluce dedopie zeh zehe bigtoe teen grosorteil halux fussspitze",
    "patella": "patella rotule rotula pat kneecap",
    "tuberosity": "tta ttu tuberosity tuberosite tibialtuberosity tibialtub tuberositetibiale",
    "fibula": "fibulahead headfibula fibhead fibula tetefibula tetepero tperone perone peroneus hfib fib",
    "olecranon": "olecranon olecrane olec olecrano",
    "radius": "radius radial rad",
    "ulna": "ulna ulnar uln",
    "scapula": "scapula scap scapulae schulterblatt omoplate",
    # parts that may have clusters
    "pelvis": "pelvis pelv pel pv bassin bacino becken",
    "trunk": "trunk torso thorax thor tronc tronco tx tk rumpf",
    "head": "head hd tete cabeza testa cabeca kopf",
    "upper arm": "upperarm uparm uarm arm upa ua humerus hum bras braccio brazo oberarm biceps bicep deltoid"
    " delt humeral",
    "forearm": "forearm frm farm fa lowerarm avantbras avbras avambraccio antebrazo antebraco unterarm",
    "hand": "hand hnd main mano",
    "thigh": "thigh thi th femur fem cuisse cui coscia muslo coxa oberschenkel femoral",
    "shank": "shank shk sk sh tibia tib tb shin leg jambe jam gamba pierna perna unterschenkel sha",
    "foot": "foot ft pied pie piede pe fuss fus",
    # the middle
    "c7": "c7 cv7 cervicale", "t2": "t2 tv2 d2", "t8": "t8 tv8 d8 t7 tv7", "t10": "t10 tv10 d10 t12 tv12 d12",
    "lumbar": "l1 l2 l3 l4 lv1 lv3 lumbar lombaire", "l5": "l5 lv5 s1 l5s1 s2",
    "notch": "notch manubrium manub jugular jugularnotch suprasternal clav fourchette ij suprasternale",
    "sternum": "sternum stern strn ster sterno esternon",
    "xiphoid": "xiphoid xipho xyphoid xifoide processusxiphoideus substernale",
    "crown": "vertex crown",
}  # fmt: skip
# Ambiguous words, which name a landmark only if no other word does: an "epicondyle" of elbow or knee.
_WEAK: Final[Mapping[str, str]] = {
    "elbow": "epicondyle epicondilo epicondylus epic epi epicn",
    "inner elbow": "epitrochlea epitrochlee epitr epitroclea",
    "wrist": "styloid styloide stiloide styl",
    "knee": "condyle condilo condylus cond femoralcondyle femoralepicondyle con",
    "ankle": "malleolus malleole malleolo maleolo mall mal",
    "toe": "metatarsal metatarse metatarso metatarsus meta met mt mth mtp",
    "hand": "metacarpal metacarpe metacarpo mc mcp",
    "spine": "spinalprocess spinal process",
}
_WHERE: Final[Mapping[str, str]] = {
    "lat": "lateral lat external externe externo esterno extern ext lt aussen l",
    "med": "medial med internal interne interno intern int innen m",
    "out": "outer outside out",
    "in": "inner inside in",
    "front": "anterior ant avant front fr vorn",
    "rear": "posterior post arriere rear back bk hinten",
    "up": "upper up superior sup high haut proximal prox top ob",
    "low": "lower low inferior inf bas distal dist bottom bot",
    "centre": "jointcenter jointcentre center centre joint jc",
    "": "cluster clus clu marker mark mkr of the",
}
# The landmark for a part and a side of it; "" is the part alone. On wrists and hands, "outer" and "medial" mean the
# little finger's side.
_LANDMARKS: Final[Mapping[str, Mapping[str, str]]] = {
    "asis": {"": "asis"}, "psis": {"": "psis"}, "iliac crest": {"": "iliac crest"}, "trochanter": {"": "trochanter"},
    "knee": {"": "outer knee", "lat": "outer knee", "out": "outer knee", "med": "inner knee", "in": "inner knee",
             "front": "kneecap", "centre": "knee", "1": "outer knee"},
    "ankle": {"": "outer ankle", "lat": "outer ankle", "out": "outer ankle", "med": "inner ankle", "in": "inner ankle",
              "centre": "ankle", "1": "outer ankle"},
    "elbow": {"": "outer elbow", "lat": "outer elbow", "out": "outer elbow", "med": "inner elbow", "in": "inner elbow",
              "centre": "elbow", "1": "outer elbow"},
    "inner elbow": {"": "inner elbow"},
    "wrist": {"": "back of wrist", "lat": "thumb side of wrist", "in": "thumb side of wrist", "centre": "wrist",
              "med": "little finger side of wrist", "out": "little finger side of wrist", "1": "back of wrist"},
    "radius": {"": "thumb side of wrist"}, "ulna": {"": "little finger side of wrist"},
    "shoulder": {"": "acromion", "up": "acromion", "front": "front of shoulder", "rear": "back of shoulder",
                 "centre": "shoulder", "1": "acromion"},
    "heel": {"": "heel", "lat": "outer heel", "med": "inner heel", "out": "outer heel", "in": "inner heel",
             "rear": "heel", "up": "heel", "1": "heel"},
    "toe": {"": "second toe's ball", "1": "big toe's ball", "2": "second toe's ball", "3": "second toe's ball",
            "5": "little toe's ball", "lat": "little toe's ball", "med": "big toe's ball",
            "out": "little toe's ball", "in": "big toe's ball"},
    "hand": {"": "knuckles", "2": "index knuckle", "5": "little knuckle", "in": "index knuckle",
             "out": "little knuckle", "lat": "index knuckle", "med": "little knuckle", "3": "knuckles"},
    "patella": {"": "kneecap"}, "tuberosity": {"": "tibial tuberosity"}, "fibula": {"": "upper shank"},
    "olecranon": {"": "olecranon"}, "scapula": {"": "back", "low": "back"},
    "head": {"front": "front of head", "rear": "back of head", "": "temple", "up": "crown"},
    "foot": {"": "top of foot", "up": "top of foot", "lat": "outer side of foot", "out": "outer side of foot"},
    "thigh": {"": "thigh", "up": "upper thigh", "front": "front of thigh", "rear": "rear of thigh", "lat": "thigh"},
    "shank": {"": "shank", "up": "upper shank", "front": "front of shank", "rear": "rear of shank", "lat": "shank"},
    "upper arm": {"": "upper arm", "lat": "upper arm", "front": "biceps", "up": "upper arm"},
    "forearm": {"": "forearm", "lat": "forearm"},
}  # fmt: skip
_MIDDLE: Final[Mapping[str, Mapping[str, str]]] = {
    "c7": {"": "c7"}, "t2": {"": "t2"}, "t8": {"": "t8"}, "t10": {"": "t10"}, "lumbar": {"": "lumbar spine"},
    "l5": {"": "sacrum"}, "sacrum": {"": "sacrum"}, "notch": {"": "jugular notch"}, "xiphoid": {"": "xiphoid"},
    "sternum": {"": "sternum", "up": "jugular notch", "low": "xiphoid"}, "crown": {"": "crown"},
    "head": {"front": "forehead", "rear": "rear of head", "up": "crown"},
}  # fmt: skip
# Words for a cluster, or one of its markers, anywhere on a part.
_CLUSTERS: Final[Mapping[str, str]] = {
    "pelvis": "sacrum", "trunk": "t8", "head": "middle of head", "scapula": "back", "upper arm": "upper arm",
    "forearm": "forearm", "hand": "middle of hand", "thigh": "thigh", "shank": "shank", "foot": "top of foot",
}  # fmt: skip
_CLUSTERS_IN_THE_MIDDLE: Final = {"pelvis", "trunk", "head"}
# Words with at least the first number of letters may be abbreviated: at least the second number of their first letters
# must remain.
_LONG, _LEAST = 6, 4
# Words of at most this many letters name a part only if a number follows: "sh1" is a shank, but "sh" a shoulder.
_SHORT: Final = 2
_NUMBERS: Final = re.compile(r"\d+")
_ORDINALS: Final[Mapping[str, str]] = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth"}
# If words name several parts, the most specific one counts, such as the ulna in "wrist ulna". Joints are less specific
# than bony landmarks, and _PARTS are the least specific.
_JOINTS: Final = {"knee", "ankle", "elbow", "wrist", "shoulder"}
_PARTS: Final = {"pelvis", "trunk", "head", "upper arm", "forearm", "hand", "thigh", "shank", "foot"}
# The meaning of an ambiguous word next to a part.
_ON_PARTS: Final = {("thigh", "elbow"): "knee", ("shank", "elbow"): "knee", ("hand", "toe"): "hand"}


# The meaning of words: a landmark, and whether they name a cluster of markers somewhere on a part.
WordMeaning: TypeAlias = tuple[str, bool]


class _Word(NamedTuple):
    kind: str
    value: str
    text: str


@cache
def _lexicon() -> dict[str, _Word]:
    """Every word with its meaning. Long words may be abbreviated, unless two meanings share the abbreviation."""
    whole: dict[str, _Word] = {}
    for kind, table in (("number", _ORDINALS), ("where", _WHERE), ("weak", _WEAK), ("place", _PLACES)):
        for value, words in table.items():
            whole |= {word: _Word(kind, value, word) for word in words.split()}
    cut: dict[str, set[tuple[str, str]]] = {}
    for word, (kind, value, _text) in whole.items():
        for length in range(_LEAST, len(word)) if len(word) >= _LONG else ():
            cut.setdefault(word[:length], set()).add((kind, value))
    short = {text: _Word(*next(iter(meant)), text) for text, meant in cut.items() if len(meant) == 1}
    return short | whole


def meaning_of_words(stem: str, *, sided: bool) -> WordMeaning | None:
    """The meaning of a label in lower case, without side and separators; None if unknown."""
    readings = sorted(_readings(stem), key=len)
    meant = (_combined_meaning(words, sided=sided) for words in readings)
    return next((meaning for meaning in meant if meaning is not None), None)


def _readings(stem: str) -> Iterator[list[_Word]]:
    """The ways to split all letters of a label into known words and numbers."""
    if not stem:
        yield []
        return
    if (number := _NUMBERS.match(stem)) is not None:
        head = _Word("number", number.group().lstrip("0") or "0", number.group())
        yield from ([head, *rest] for rest in _readings(stem[number.end() :]))
    lexicon = _lexicon()
    for length in range(len(stem), 0, -1):
        if (word := lexicon.get(stem[:length])) is not None:
            yield from ([word, *rest] for rest in _readings(stem[length:]))


def _combined_meaning(words: list[_Word], *, sided: bool) -> WordMeaning | None:
    place = _most_specific([word for word in words if word.kind in ("place", "weak")])
    where = {word.value for word in words if word.kind == "where"} - {""}
    numbers = [word.value for word in words if word.kind == "number"]
    if place is None or len(numbers) > 2:
        return None
    if len(place.text) <= _SHORT and place.kind == "place" and not numbers and not place.text[-1].isdigit():
        return None
    table = (_LANDMARKS if sided else _MIDDLE).get(place.value, {})
    if place.value in _CLUSTERS and (numbers or len(where) > 1) and place.kind != "weak":
        return _cluster(place.value, sided=sided)
    if len(where) + len(numbers) <= 1 and (found := table.get("".join([*where, *numbers]))):
        return found, False
    return None if where or numbers else _cluster(place.value, sided=sided)


def _most_specific(places: list[_Word]) -> _Word | None:
    """The most specific word; None if there is none, or if several are equally specific."""
    parts = {word.value for word in places if word.value in _PARTS and word.kind == "place"}
    for part in parts:
        places = [word._replace(value=_ON_PARTS.get((part, word.value), word.value)) for word in places]
    # The rank of each word; 0 is the most specific.
    ranks = [2 if word.kind == "weak" else 3 if word.value in _PARTS else int(word.value in _JOINTS) for word in places]
    finest = [word for word, rank in zip(places, ranks, strict=True) if rank == min(ranks)]
    return finest[0] if len({word.value for word in finest}) == 1 else None


def _cluster(place: str, *, sided: bool) -> WordMeaning | None:
    """A marker somewhere on a part; None if the part has no clusters, or has two sides and none is named."""
    if place not in _CLUSTERS or (not sided and place not in _CLUSTERS_IN_THE_MIDDLE):
        return None
    return _CLUSTERS[place], True


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
# A word that begins or ends at least this many labels, and this fraction of all, is ignored, as a performer's name.
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
            if (found := meanings[0] if agreed else _meaning_by_words(signs)) is not None:
                return found
        return None

    @cached_property
    def recognized(self) -> str | None:
        """The key of the preset that contains most of the labels; None if none contains three.

        On a tie, it is the preset with the larger fraction of its own labels in the file.
        """
        known = {
            key: len({self.in_preset(label, preset) for label in self._tokens} - {None})
            for key, preset in PRESETS.items()
        }
        best = max(PRESETS, key=lambda key: (known[key], known[key] / len(set(PRESETS[key].sided.values()))))
        return best if known[best] >= _FEWEST else None


# Several steps of an import read the same labels.
_reader = lru_cache(maxsize=4)(_Reader)


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
    reader = _reader(tuple(labels))
    key = reader.recognized
    found = {label: reader.meaning(label, PRESETS[key] if key else None) for label in labels}
    return {label: meaning[:2] for label, meaning in found.items() if meaning is not None}


def other_sides(labels: Sequence[str]) -> dict[str, str]:
    """The label of the same landmark on the other side, by label; without clusters, which may differ between sides."""
    found, opposite = landmarks_of(labels), {"L": "R", "R": "L"}
    by_landmark = {meaning: label for label, meaning in found.items()}
    return {
        label: by_landmark[opposite[side], point]
        for label, (side, point) in found.items()
        if LANDMARKS[point].weight == 1.0 and (opposite.get(side), point) in by_landmark
    }


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
    reader = _reader(tuple(labels))
    key = preset or reader.recognized
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
        whole = [known for known in _table(preset, side) if known.startswith(stem)]
        if whole and len(side) + len(stem) == _CUT:
            known = min(whole, key=len)
            return _Meaning(side, _table(preset, side)[known], known)
    return None


def _meaning_by_words(signs: Iterable[_Sign]) -> _Meaning | None:
    """The meaning of the first reading whose words are understood. Readings with a side come first."""
    for side, stem, _pair in sorted(signs, key=lambda sign: not sign.side):
        if (meaning := meaning_of_words(stem, sided=bool(side))) is not None:
            return _Meaning(side, meaning[0], stem, meaning[1])
    return None


def _table(preset: MarkerSet, side: str) -> Mapping[str, str]:
    return preset.sided if side else preset.middle


def _own_label(label: str) -> str:
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
