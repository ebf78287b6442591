"""Recognizes the bones of source and rig, and pairs them: by their names, by a bone map, or by the tree."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from ..core import Skeleton
from ..core.arrays import ROUNDING, SINGLE, FloatArray, lengths
from ..core.errors import shown
from ..human.naming_schemes import ARM, LEG, Role, match
from ..human.rest_body import RestBody, RestBone, bones_of
from ..markers.mapping.marker_map import MapError, read_json_map, unknown_names, write_json_map
from .motion import Motion, RetargetError

# Chains that have different numbers of bones in different rigs: the parts in each chain, and the parts after its end.
_CHAINS: Final = ((("spine", "chest"), ("neck", "head", "shoulder", "upper_arm")), (("neck",), ("head",)))
_IN_CHAINS: Final = frozenset(part for parts, _ in _CHAINS for part in parts)


@dataclass(frozen=True)
class Pair:
    """A bone of the rig and the source bone that it follows.

    before, share: if the chains have different numbers of bones, a bone follows a blend of two source bones:
    `before` at a fraction of 0, `source` at 1.
    """

    bone: str
    source: str
    before: str = ""
    share: float = 1.0


def pair_bodies(source: RestBody, target: RestBody) -> tuple[Pair, ...]:
    """The pairs of two bodies: limbs by role, spines and necks by the length along them."""
    sources, own = ({role: name for name, role in reversed(list(body.roles.items()))} for body in (source, target))
    pairs = [
        Pair(own[role], sources[role])
        for role in own.keys() & sources.keys()
        if role.part not in _IN_CHAINS and role.part != "rigid"
    ]
    for parts, after in _CHAINS:
        pairs += _pair_chains(source, target, parts, after)
    order = {name: index for index, name in enumerate(target.bones)}
    return tuple(sorted(pairs, key=lambda pair: order[pair.bone]))


def _pair_chains(source: RestBody, target: RestBody, parts: Iterable[str], after: Iterable[str]) -> list[Pair]:
    """The pairs of a chain; either side may have more bones than the other."""
    own, other = (
        sorted((name for part in parts for name in body.named(part)), key=lambda name: depth(body, name))
        for body in (target, source)
    )
    if not own or not other:
        return []
    if len(own) == len(other):
        return [Pair(bone, follows) for bone, follows in zip(own, other, strict=True)]
    base = next((bone for bone in above(source.bones, other[0]) if bone in source.roles), "")
    ends, others = _ends(target, own, after), np.concatenate([[0.0], _ends(source, other, after)])
    names = [base, *other]
    pairs = []
    for bone, end in zip(own, ends, strict=True):
        index = int(np.clip(np.searchsorted(others, end - SINGLE), 1, len(other)))
        share = float((end - others[index - 1]) / (others[index] - others[index - 1]))
        before = names[index - 1]
        pairs.append(Pair(bone, names[index], before, share) if before and share < 1.0 else Pair(bone, names[index]))
    return pairs


def depth(body: RestBody, name: str) -> int:
    """The number of bones above a bone."""
    return len(above(body.bones, name))


def above(bones: Mapping[str, RestBone], name: str) -> list[str]:
    """The bones above a bone, the nearest first."""
    names = []
    while name := bones[name].parent:
        names.append(name)
    return names


def _ends(body: RestBody, chain: list[str], after: Iterable[str]) -> FloatArray:
    """(n,) the ends of a chain's bones, as fractions of the length along the chain."""
    last = body.bones[chain[-1]]
    following = next((head for part in after if (head := body.head_of(part)) is not None), None)
    end = last.tail if following is None else following
    joints = np.array([*(body.bones[name].head for name in chain), end])
    along = np.cumsum(np.linalg.norm(np.diff(joints, axis=0), axis=1))
    return np.asarray(along / along[-1])


# The JSON file of a bone map: the source bone that each bone of a rig follows.
#
# ``{"fabrik_bone_map": 1, "bones": {"hips": "Hips", "chest": {"source": "Spine2", "before": "Spine1", "share": 0.4}}}``

_FORMAT: Final = "fabrik_bone_map"


def read_bone_map(path: str | os.PathLike[str]) -> tuple[Pair, ...]:
    """Read a map; raises MapError, one sentence that names the file, if it is missing or invalid."""
    return read_json_map(path, _FORMAT, "map of bones", _pairs)


def write_bone_map(path: str | os.PathLike[str], pairs: Iterable[Pair]) -> None:
    """Write a map that `read_bone_map` reads back; raises WriteError if the file cannot be written."""
    write_json_map(path, _FORMAT, {"bones": {pair.bone: _as_json(pair) for pair in pairs}})


def check_bone_map(pairs: Sequence[Pair], bones: Sequence[str], sources: Sequence[str]) -> None:
    """Raise MapError naming every bone of the map that does not exist."""
    if found := unknown_names(
        ("bone", "bones of the rig", (pair.bone for pair in pairs), bones),
        ("bone of the source", "bones of the source", (pair.source for pair in pairs), sources),
        ("bone of the source", "bones of the source", (pair.before for pair in pairs if pair.before), sources),
    ):
        raise MapError(f"the bone map contains {found}: choose another map, or fix it")


def _pairs(content: Mapping[str, object]) -> tuple[Pair, ...]:
    bones = content.get("bones")
    if not isinstance(bones, dict) or not bones:
        raise MapError("the map has no bones: add some")
    return tuple(_pair(bone, entry) for bone, entry in bones.items())


def _pair(bone: str, value: object) -> Pair:
    if isinstance(value, str):
        return Pair(bone, value)
    if not isinstance(value, dict) or not isinstance(value.get("source"), str):
        raise MapError(f"bone {bone!r}: it must be a bone's name or an object with 'source', not {shown(value)}")
    before, share = value.get("before", ""), value.get("share", 1.0)
    if not isinstance(before, str) or isinstance(share, bool) or not isinstance(share, int | float):
        raise MapError(f"bone {bone!r}: 'before' must be a bone's name and 'share' a number")
    if not 0.0 <= share <= 1.0:
        raise MapError(f"bone {bone!r}: the share is {share}, but must be from 0 to 1")
    return Pair(bone, value["source"], before, float(share))


def _as_json(pair: Pair) -> object:
    return {"source": pair.source, "before": pair.before, "share": pair.share} if pair.before else pair.source


# Bodies without known names are recognized from the tree and from positions.
#
# Legs are the pair of limbs with the lowest ends. Arms are the pair that is attached to the trunk above the legs. If
# arms end on the ground, the body has four legs.

# Limbs on the left and right mirror each other to within this fraction of the body's height.
_MIRRORED: Final = 0.05
# A limb ends on the ground if its end is at most this fraction of the body's height above the lowest end.
_ON_GROUND: Final = 0.15
# Legs go down by at least this fraction of their length.
_DOWN: Final = 0.5
_UPS: Final = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
# The parts of a limb's bones, from the trunk outward, by the number of bones.
_ARMS: Final = {2: ARM[:2], 3: ARM}


class TreeBody(NamedTuple):
    """Roles by bone, and whether the body has four legs."""

    roles: dict[str, Role]
    on_four: bool


class _Tree:
    def __init__(self, bones: Mapping[str, RestBone]) -> None:
        self.bones = bones
        self.children: dict[str, list[str]] = {name: [] for name in bones}
        for name, bone in bones.items():
            if bone.parent:
                self.children[bone.parent].append(name)
        heads = np.array([bone.head for bone in bones.values()])
        self.height = float(np.ptp(heads[:, 2])) or 1.0
        self.middle = float(np.median(heads[:, 0]))

    def chain(self, name: str) -> list[str]:
        """A chain from a bone to its end or a fork into many bones; it follows the child with the most descendants."""
        chain = [name]
        while self.children[chain[-1]]:
            below = self.children[chain[-1]]
            if len(below) > 2 and len(chain) > 1:
                break
            chain.append(max(below, key=self.count))
        return chain

    def count(self, name: str) -> int:
        """The number of bones below a bone."""
        return 1 + sum(self.count(child) for child in self.children[name])

    def tip(self, name: str) -> FloatArray:
        """(3,) the end of a chain."""
        return self.bones[self.chain(name)[-1]].tail

    def on_ground(self, limb: str, lowest: float) -> bool:
        """Whether a limb ends at about the lowest height."""
        return bool(self.tip(limb)[2] - lowest < _ON_GROUND * self.height)

    def pair(self, name: str) -> tuple[str, str] | None:
        """Two children whose chains mirror each other; None if there are none."""
        children = [child for child in self.children[name] if abs(self.tip(child)[0] - self.middle) > self._room]
        for index, one in enumerate(children):
            for other in children[index + 1 :]:
                own, mirrored = self.tip(one), self.tip(other) * (-1.0, 1.0, 1.0) + (2.0 * self.middle, 0.0, 0.0)
                if np.abs(own - mirrored).max() <= self._room and len(self.chain(one)) > 1:
                    return one, other
        return None

    @property
    def _room(self) -> float:
        return _MIRRORED * self.height


def tree_body(bones: Mapping[str, RestBone]) -> TreeBody | None:
    """The roles of a biped's or a quadruped's bones; None if there are no legs, or no trunk above them.

    Z is up if the body can stand along it; else the first other axis along which it can stand.
    """
    for up in _UPS:
        aside = np.roll(np.abs(up), 1)
        for left in (aside, np.cross(up, aside)):
            axes = np.stack([left, np.cross(up, left), up])
            stood = {name: replace(bone, head=axes @ bone.head, axes=axes @ bone.axes) for name, bone in bones.items()}
            if (found := _upright_body(stood)) is not None:
                return found
    return None


def _upright_body(bones: Mapping[str, RestBone]) -> TreeBody | None:
    """The roles of a body whose sides mirror each other along X, Z up."""
    tree = _Tree(bones)
    pairs = {name: pair for name in bones if (pair := tree.pair(name)) is not None}
    if not pairs:
        return None
    # If two pairs are on the ground, the hind legs are those whose bone is closer to the root.
    lowest = min(tree.tip(pair[0])[2] for pair in pairs.values())
    hips = next(name for name in bones if name in pairs and tree.on_ground(pairs[name][0], lowest))
    rest = [child for child in tree.children[hips] if child not in pairs[hips]]
    if not rest:
        return None
    trunk = [max(rest, key=tree.count)]
    while trunk[-1] not in pairs and tree.children[trunk[-1]]:
        trunk.append(max(tree.children[trunk[-1]], key=tree.count))
    if trunk[-1] not in pairs:
        return None
    ways = [tree.tip(leg) - bones[leg].head for leg in pairs[hips]]
    if any(-way[2] < _DOWN * float(np.linalg.norm(way)) for way in ways):
        return None
    left = _left(tree, pairs[hips])
    return TreeBody(_roles(tree, hips, pairs, trunk, left), tree.on_ground(pairs[trunk[-1]][0], lowest))


def _roles(
    tree: _Tree, hips: str, pairs: Mapping[str, tuple[str, str]], trunk: list[str], left: Callable[[str], str]
) -> dict[str, Role]:
    roles = {hips: Role("hips"), **{name: Role("spine") for name in trunk}}
    for limb in pairs[hips]:
        roles |= _limb(tree.chain(limb)[:4], LEG, left(limb))
    for limb in pairs[trunk[-1]]:
        chain = tree.chain(limb)[:4]
        roles |= _limb(chain, _ARMS.get(len(chain), ("shoulder", *ARM)), left(limb))
    above = [child for child in tree.children[trunk[-1]] if child not in pairs[trunk[-1]]]
    if above:
        *neck, head = tree.chain(max(above, key=tree.count))[:3]
        roles |= {name: Role("neck") for name in neck} | {head: Role("head")}
    return roles


def _limb(chain: list[str], parts: tuple[str, ...], side: str) -> dict[str, Role]:
    return {name: Role(part, side, number=int(part == "toe")) for name, part in zip(chain, parts, strict=False)}


def _left(tree: _Tree, legs: tuple[str, str]) -> Callable[[str], str]:
    """A function that returns the side of a limb. The front is the direction of the feet; -Y if that is unknown."""
    ahead = sum(float((tree.tip(leg) - tree.bones[tree.chain(leg)[-1]].head)[1]) for leg in legs)
    sign = -1.0 if ahead > 0.0 else 1.0
    return lambda limb: "L" if sign * (tree.tip(limb)[0] - tree.middle) > 0.0 else "R"


# Hips bones that are closer than this fraction of a body's size belong to one body, such as Rigify's DEF and ORG bones.
_SAME_PLACE: Final = 1e-3
# The parts of a person; if names show fewer, the bone tree decides. A spine's bones may be named spine or chest.
_PERSON: Final = frozenset({"spine", "head", "upper_arm", "forearm", "hand", "shin", "foot"})


def find_bodies(motion: Motion, skeleton: Skeleton, pairs: Sequence[Pair] | None = None) -> tuple[RestBody, RestBody]:
    """The bodies of source and rig at rest. A bone in a pair gets the role of the other bone of the pair."""
    source_bones, bones = _bones(motion, skeleton)
    source, target = _known(source_bones).roles, _known(bones).roles
    if pairs is not None:
        source, target = _roles_through_pairs(pairs, source, target)
    return RestBody(source_bones, source), RestBody(bones, target)


def _bones(motion: Motion, skeleton: Skeleton) -> tuple[dict[str, RestBone], dict[str, RestBone]]:
    return motion.bones_at(None), bones_of(skeleton.names, skeleton.parents, skeleton.rest, skeleton.lengths)


def _known(bones: Mapping[str, RestBone]) -> TreeBody:
    """Recognize bones by name, or by the bone tree if names show no hips and thighs.

    The topmost bone above the hips is the root: games move the whole body with it.
    """
    found = _known_without_root(bones)
    hips = next((name for name, role in found.roles.items() if role.part == "hips"), None)
    over = above(bones, hips) if hips is not None else []
    return found._replace(roles={**dict.fromkeys(over[-1:], Role("root")), **found.roles})


def _known_without_root(bones: Mapping[str, RestBone]) -> TreeBody:
    named = match(bones)
    parts: dict[str, list[str]] = {}
    for name, role in named.items():
        parts.setdefault(role.part, []).append(name)
    # Animal rigs may use human names for other parts: in Rigify's wolf, the bone named like hips is below the neck.
    necks = set(parts.get("neck", ()))
    if "thigh" in parts and any(necks.isdisjoint(above(bones, hips)) for hips in parts.get("hips", ())):
        # Bones named hips are ignored if they have no legs and another bone named hips does.
        carried = {bone for thigh in parts["thigh"] for bone in above(bones, thigh)}
        legless = set(parts["hips"]) - carried if carried & set(parts["hips"]) else ()
        roles = {name: role for name, role in named.items() if name not in legless}
        return TreeBody(roles if _parts(roles) >= _PERSON else _completed(roles, bones), on_four=False)
    return tree_body(bones) or TreeBody(named, on_four=False)


def _parts(roles: Mapping[str, Role]) -> set[str]:
    """The parts of the known bones; a chest counts as spine."""
    return {"spine" if role.part == "chest" else role.part for role in roles.values()}


def _completed(roles: Mapping[str, Role], bones: Mapping[str, RestBone]) -> dict[str, Role]:
    """Recognize the remaining bones, such as MVN's L5 to T8, by the bone tree, if names and tree give the same legs."""
    found, known_parts = tree_body(bones), _parts(roles)
    if found is None or any(found.roles.get(name) != role for name, role in roles.items() if role.part == "thigh"):
        return dict(roles)
    return {**{name: role for name, role in found.roles.items() if role.part not in known_parts}, **roles}


def _roles_through_pairs(
    pairs: Sequence[Pair], source: Mapping[str, Role], target: Mapping[str, Role]
) -> tuple[dict[str, Role], dict[str, Role]]:
    """Give both bones of each pair the same role: that of the body with more known bones, or the rig on a tie."""
    by_target = sum(pair.bone in target for pair in pairs) >= sum(pair.source in source for pair in pairs)
    named = ((pair.bone, target.get(pair.bone) if by_target else source.get(pair.source)) for pair in pairs)
    own = {bone: role for bone, role in named if role is not None}
    # If several bones are paired with one, it gets the role of the first.
    other = {pair.source: own[pair.bone] for pair in reversed(pairs) if pair.bone in own and not pair.before}
    return other, own


def find_pairs(motion: Motion, skeleton: Skeleton) -> tuple[Pair, ...]:
    """Pair the bones of rig and source; raises RetargetError if none correspond."""
    source_bones, bones = _bones(motion, skeleton)
    other, own = _known(source_bones), _known(bones)
    if other.on_four != own.on_four:
        raise RetargetError(f"One of {motion.name!r} and the rig walks on two legs, the other on four: map their bones")
    source, target = RestBody(source_bones, other.roles), RestBody(bones, own.roles)
    check_one_body(source, dict(zip(motion.names, np.moveaxis(motion.heads, 1, 0), strict=True)))
    check_one_body(target, {})
    pairs = pair_bodies(source, target)
    check_pairs(motion, target, pairs)
    return pairs


def check_one_body(body: RestBody, heads: Mapping[str, FloatArray]) -> None:
    """Raise RetargetError if there are two bodies.

    Each has its own hips bone with legs. The two bones are at different positions, at rest or on a frame, and neither
    is above the other in the hierarchy. heads: (F, 3) the bones' heads by name; empty for a rig.
    """
    hips = body.named("hips")
    size = _SAME_PLACE * max(float(np.ptp([bone.head for bone in body.bones.values()], axis=0).max()), ROUNDING)
    for one, other in combinations(hips, 2):
        steps = [body.bones[one].head - body.bones[other].head, *(heads[one] - heads[other] if heads else ())]
        apart = lengths(np.array(steps)).max() > size
        if apart and one not in above(body.bones, other) and other not in above(body.bones, one):
            raise two_bodies_error(one, other)


def two_bodies_error(one: str, other: str) -> RetargetError:
    """The error if bones `one` and `other` are the hips of two bodies."""
    return RetargetError(f"Bones {one!r} and {other!r} both are hips with legs: map the bones of one body")


def check_pairs(motion: Motion, target: RestBody, pairs: Sequence[Pair]) -> None:
    """Raise RetargetError if pairs are too few to transfer a motion."""
    if not pairs:
        raise RetargetError(f"No bone of {motion.name!r} corresponds to a bone of the rig: map the bones")
    hips = [pair.bone for pair in pairs if target.roles[pair.bone].part == "hips"]
    if not hips:
        raise RetargetError(f"No bone of {motion.name!r} is recognized as the hips: map the hips")
    if len(hips) > 1:
        raise RetargetError(f"Bones {hips[0]!r} and {hips[1]!r} are both the hips: remove one of them from the map")
