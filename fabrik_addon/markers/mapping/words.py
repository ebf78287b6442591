"""Interprets the words of a label: a part of the body, its side (such as outer or front), and a number.

For labels that no marker set contains: "kneelat", "epicondext" and "malint" name a landmark; "thigh3" and "foot1"
belong to a cluster anywhere on a bone. English, and the usual words and abbreviations of French, Italian, Spanish,
Portuguese, Dutch and German.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple, TypeAlias

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
# The landmark for a part and a side of it; "" is the part alone. "Outer" and "inner" on wrists and hands mean the
# little finger and the thumb; lateral and medial mean the reverse.
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
_LONG, _CUT = 6, 4
# Words of at most this many letters name a part only if a number follows: "sh" is usually a shoulder, but "sh1" is a
# shank.
_SHORT: Final = 2
_NUMBERS: Final = re.compile(r"\d+")
_ORDINALS: Final[Mapping[str, str]] = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth"}
# If words name several parts, the most specific one counts: in "wrist ulna" the ulna. Joints are less specific than
# bony landmarks, and _PARTS are the least specific.
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
        for length in range(_CUT, len(word)) if len(word) >= _LONG else ():
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
    number = _NUMBERS.match(stem)
    if number is not None:
        head = _Word("number", number.group().lstrip("0") or "0", number.group())
        yield from ([head, *rest] for rest in _readings(stem[number.end() :]))
    lexicon = _lexicon()
    for length in range(len(stem), 0, -1):
        word = lexicon.get(stem[:length])
        if word is not None:
            yield from ([word, *rest] for rest in _readings(stem[length:]))


def _combined_meaning(words: list[_Word], *, sided: bool) -> WordMeaning | None:
    """The meaning of several words together; None if they have none."""
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
