"""The parts of a human body, and the bones that represent them, recognized by name in the usual naming schemes.

Known: Rigify's meta-rig, Mixamo, MakeHuman and MPFB (default and game-engine rigs), VRM (VRoid's bones and the humanoid
names), Unreal's mannequin, DAZ, Poser, Character Creator and Biped; of motion files: BVH from CMU, Rokoko and MVN,
MVNX, SMPL, and exports of Auto-Rig Pro and Cascadeur.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

FINGERS: Final = ("thumb", "index", "middle", "ring", "pinky")
# The joints of each finger, from the hand outward, as keypoints name them.
FINGER_JOINTS: Final = {"thumb": ("cmc", "mcp", "ip", "tip")} | dict.fromkeys(FINGERS[1:], ("mcp", "pip", "dip", "tip"))
PARTS: Final = (
    "hips", "spine", "chest", "neck", "head",
    "shoulder", "upper_arm", "forearm", "hand", "palm", "finger",
    "thigh", "shin", "foot", "toe",
    "rigid",
)  # fmt: skip
# Groups of parts, each from the root of the body outward.
TRUNK: Final = ("hips", "spine", "chest")
MIDDLE: Final = (*TRUNK, "neck", "head")
ARM: Final = ("upper_arm", "forearm", "hand")
LEG: Final = ("thigh", "shin", "foot", "toe")


@dataclass(frozen=True)
class Role:
    """The role of a bone in a body.

    Attributes:
        part: one of PARTS; "rigid" is a bone without a joint of its own: half a pelvis, the far half of a limb's bone.
        side: "L" or "R"; "" in the middle, or if the name does not show the side.
        finger: one of FINGERS, for fingers and palms.
        number: the position of a bone in its finger or toe, 1 at the root; 0 for other parts.
    """

    part: str
    side: str = ""
    finger: str = ""
    number: int = 0


# The rest of a name without prefix, side, separators and numbers.
_WORDS: Final = {
    "hips": "hips", "pelvis": "hips", "hip": "hips",
    "lowerback": "spine", "lowerspine": "spine", "middlespine": "spine", "stomach": "spine", "spine": "spine",
    "waist": "spine",
    "abdomen": "spine", "ab": "spine", "abdomenlower": "spine", "abdomenupper": "spine",
    "chest": "chest", "upperchest": "chest", "chestlower": "chest", "chestupper": "chest",
    "neck": "neck", "necklower": "neck", "neckupper": "neck", "necktwist": "neck", "head": "head",
    "shoulder": "shoulder", "clavicle": "shoulder", "collar": "shoulder",
    "upperarm": "upper_arm", "arm": "upper_arm",
    "forearm": "forearm", "lowerarm": "forearm",
    "hand": "hand", "wrist": "hand",
    "thigh": "thigh", "upleg": "thigh", "upperleg": "thigh",
    "shin": "shin", "calf": "shin", "leg": "shin", "lowerleg": "shin",
    "armstretch": "upper_arm", "forearmstretch": "forearm", "thighstretch": "thigh", "legstretch": "shin",
    "shldr": "upper_arm", "shldrbend": "upper_arm", "forearmbend": "forearm", "thighbend": "thigh",
    "foot": "foot",
    "toe": "toe", "toes": "toe", "toebase": "toe", "ball": "toe",
}  # fmt: skip
# SMPL names bones after the joints at which they begin: its shoulder is an upper arm.
_JOINT_WORDS: Final = {
    "collar": "shoulder", "shoulder": "upper_arm", "elbow": "forearm", "wrist": "hand",
    "hip": "thigh", "knee": "shin", "ankle": "foot", "foot": "toe",
}  # fmt: skip
_JOINTS_TELL: Final = {"elbow", "knee", "ankle"}
# MakeHuman splits these into two bones; only the first one begins at a joint.
_SPLIT: Final = {"upperarm", "lowerarm", "upperleg", "lowerleg"}

_FINGER_WORDS: Final = {finger: finger for finger in FINGERS} | {"little": "pinky"}
_FINGER_PREFIXES: Final = ("", "f", "hand")
_SEGMENTS: Final = {"metacarpal": 0, "proximal": 1, "intermediate": 2, "middle": 2, "distal": 3}
# Rigify and MakeHuman number the bones in the palm, beginning at the index finger.
_PALM_WORDS: Final = {"palm", "metacarpal"}

# Rigify's meta-rig numbers its spine from the hips to the head.
_GENERATED: Final = re.compile("^(DEF|ORG)-")
# Rigify has two or more deform bones for each bone of a limb, numbered from the second: DEF-thigh.L, DEF-thigh.L.001.
# Exports for games keep only these.
_FAR_HALF: Final = re.compile(r"^DEF-(?:upper_arm|forearm|thigh|shin)\.(?P<side>[LR])\.\d{3}$")
_RIGIFY_SPINE: Final = {
    "spine": "hips", "spine.001": "spine", "spine.002": "spine", "spine.003": "chest",
    "spine.004": "neck", "spine.005": "neck", "spine.006": "head",
}  # fmt: skip
# The bone used as hips if no bone of a rig is named hips (MakeHuman's default rig, Auto-Rig Pro).
_STANDS_FOR_HIPS: Final = {"root", "root.x"}

# MVN names the spine's segments after vertebrae.
_VERTEBRAE: Final = {"L5": Role("spine"), "L3": Role("spine"), "T12": Role("spine"), "T8": Role("chest")}

_PREFIX: Final = re.compile(r"^(?:.*:|mixamorig\d*_?|J_Bip_(?:C_)?)|\.x$")
_COPY: Final = re.compile(r"[._-][LR]\.\d{3}$", re.IGNORECASE)
_TOKEN: Final = re.compile(r"(?<![A-Za-z])(?:left|right)(?=[a-z]{3})|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
# If this fraction of a rig's names have the same beginning or end, up to a separator, it is ignored: Bip01, CC_Base_,
# _JNT, m_avg_.
_SHARED: Final = 0.7
_SEPARATOR: Final = re.compile(r"[\W_]+")
_SIDES: Final = {"l": "L", "left": "L", "r": "R", "right": "R"}


class _Parts(NamedTuple):
    """The parts of a name: its letters in lower case, its side, its numbers."""

    word: str
    side: str
    numbers: tuple[int, ...]


@lru_cache(maxsize=4096)
def role_of(bone_name: str) -> Role | None:
    """The role of a bone from its own name; None if unknown.

    Rigify's spine can only be recognized among its neighbors: see `match`.
    """
    parts = _split_name(bone_name)
    if parts is None or bone_name in _VERTEBRAE:
        return _VERTEBRAE.get(bone_name)
    return _finger_role(parts) or _toe_role(parts) or _body_role(parts)


def match(bone_names: Iterable[str]) -> dict[str, Role]:
    """The roles of a rig's bones; bones with unknown names are left out.

    Rigify's generated rigs prefix the meta-rig's names with DEF- and ORG-.
    """
    own = {name: _GENERATED.sub("", name) for name in bone_names}
    roles = _match(list(dict.fromkeys(own.values())))
    if not _has_hips(roles):
        bare = _without_shared(own.values())
        known = _match(list(bare.values()))
        roles = {name: known[plain] for name, plain in bare.items() if plain in known} if _has_hips(known) else roles
    halves = {name: Role("rigid", half["side"]) for name in own if (half := _FAR_HALF.match(name))}
    return halves | {name: roles[plain] for name, plain in own.items() if plain in roles}


def _match(names: list[str]) -> dict[str, Role]:
    found = {name: role for name in names if (role := role_of(name)) is not None}
    found |= _named_joints(names)
    if not _has_hips(found):
        found |= _named_hips(names)
    return found | _number_thumbs(found)


def _has_hips(roles: Mapping[str, Role]) -> bool:
    return any(role.part == "hips" for role in roles.values())


def _without_shared(names: Collection[str]) -> dict[str, str]:
    """Each name without the beginning and the end that most names have in common."""
    gaps = [(name, gap) for name in names for gap in _SEPARATOR.finditer(name)]
    counts = Counter(name[: gap.end()] for name, gap in gaps), Counter(name[gap.start() :] for name, gap in gaps)
    begin, end = (
        max((text for text, count in counted.items() if count >= _SHARED * len(names)), key=len, default="")
        for counted in counts
    )
    return {name: name.removeprefix(begin).removesuffix(end) for name in names}


def _named_joints(names: list[str]) -> dict[str, Role]:
    """The limbs of a rig whose bones are named after joints; empty for other rigs."""
    known = [(name, parts) for name in names if (parts := _split_name(name)) is not None and parts.side]
    words = {parts.word for _, parts in known}
    if not words >= _JOINTS_TELL:
        # In rigs of iPi and others, the only bone between collar bone and forearm is named shoulder.
        is_arm = words & {"clavicle", "collar"} and not any(_WORDS.get(word) == "upper_arm" for word in words)
        return {name: Role("upper_arm", parts.side) for name, parts in known if is_arm and parts.word == "shoulder"}
    limbs = {name: Role(_JOINT_WORDS[parts.word], parts.side) for name, parts in known if parts.word in _JOINT_WORDS}
    toes = {name: Role("toe", role.side, number=1) for name, role in limbs.items() if role.part == "toe"}
    # Children of a wrist are the palm.
    hands = {name: Role("rigid", parts.side) for name, parts in known if parts.word == "hand"}
    return limbs | toes | hands


@lru_cache(maxsize=4096)
def _split_name(bone_name: str) -> _Parts | None:
    """The parts of a name; None for a numbered copy of a bone and for a name with two sides."""
    if _COPY.search(bone_name):
        return None
    tokens = [token.lower() for token in _TOKEN.findall(_PREFIX.sub("", bone_name))]
    sides = [_SIDES[token] for token in tokens if token in _SIDES]
    if len(sides) > 1:
        return None
    word = "".join(token for token in tokens if token.isalpha() and token not in _SIDES)
    return _Parts(word, "".join(sides), tuple(int(token) for token in tokens if token.isdigit()))


def _body_role(parts: _Parts) -> Role | None:
    word, side, numbers = parts
    if word == "pelvis" and side:
        return Role("rigid", side)
    part = _WORDS.get(word)
    if part is None or (part in MIDDLE and side):
        return None
    return Role("rigid" if word in _SPLIT and numbers == (2,) else part, side)


def _toe_role(parts: _Parts) -> Role | None:
    """Toes of several bones, such as toe2-1.L; a single bone represents all toes."""
    if _WORDS.get(parts.word) != "toe":
        return None
    return Role("toe", parts.side, number=parts.numbers[-1] if len(parts.numbers) == 2 else 1)


def _finger_role(parts: _Parts) -> Role | None:
    word, side, numbers = parts
    if word in _PALM_WORDS and len(numbers) == 1 and 1 <= numbers[0] <= 4:
        return Role("palm", side, FINGERS[numbers[0]])
    if word == "finger" and len(numbers) == 2 and 1 <= numbers[0] <= 5:
        return _finger(side, FINGERS[numbers[0] - 1], numbers[1])
    for prefix in _FINGER_PREFIXES:
        for name, finger in _FINGER_WORDS.items():
            if word == prefix + name and numbers:
                return _finger(side, finger, numbers[-1])
            segment = word.removeprefix(prefix + name)
            if word.startswith(prefix + name) and segment in _SEGMENTS:
                # A thumb's metacarpal is its first movable bone; `match` renumbers the bones that exist.
                return _finger(side, finger, _SEGMENTS[segment] + (finger == "thumb"), last_number=4)
    return None


def _finger(side: str, finger: str, number: int, last_number: int = 3) -> Role | None:
    """The role of a finger's bone; None for a bone beyond the last, which marks the tip."""
    if number == 0:
        return Role("palm", side, finger)
    return Role("finger", side, finger, number) if number <= last_number else None


def _named_hips(names: list[str]) -> dict[str, Role]:
    """The hips of a rig without a bone named hips, and the roles of other bones that follow."""
    if {"spine", "spine.003"} <= set(names):
        return {name: Role(part) for name, part in _RIGIFY_SPINE.items() if name in names}
    return {name: Role("hips") for name in names if name.lower() in _STANDS_FOR_HIPS}


def _number_thumbs(roles: dict[str, Role]) -> dict[str, Role]:
    """The thumbs' bones numbered from 1: VRM's begin with a metacarpal or, in older files, with a proximal bone."""
    counted = {}
    for side in ("L", "R", ""):
        thumb = [name for name, role in roles.items() if (role.finger, role.side) == ("thumb", side)]
        for index, name in enumerate(sorted(thumb, key=lambda name: roles[name].number)):
            counted[name] = replace(roles[name], number=index + 1)
    return counted
