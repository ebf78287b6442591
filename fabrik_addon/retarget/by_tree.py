"""Recognizes the bones of a body without names, from their tree and positions.

Legs are the pair of limbs that ends lowest, arms the pair attached to the trunk above them; a body whose arms end on
the ground has four legs.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from ..core.arrays import FloatArray
from ..human.body_parts import Role
from ..human.rest_body import RestBone

# Shares of the body's height: the largest deviation of limbs that mirror each other, and the largest height of grounded
# ends.
_MIRRORED: Final = 0.05
_ON_GROUND: Final = 0.15
# Legs go down by at least this share of their length.
_DOWN: Final = 0.5
_UPS: Final = ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
# The bones of limbs from the trunk on, by their number.
_ARMS: Final = {2: ("upper_arm", "forearm"), 3: ("upper_arm", "forearm", "hand")}
_LONG_ARM: Final = ("shoulder", "upper_arm", "forearm", "hand")
_LEG: Final = ("thigh", "shin", "foot", "toe")


class TreeBody(NamedTuple):
    """Roles by bone, and whether the body has four legs."""

    roles: dict[str, Role]
    on_four: bool


class _Tree:
    """Bones, their children, and how far each reaches."""

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
        """A bone and those below it, along the child with most below, down to the end or a branch into many."""
        chain = [name]
        while self.children[chain[-1]]:
            below = self.children[chain[-1]]
            if len(below) > 2 and len(chain) > 1:
                break
            chain.append(max(below, key=self.count))
        return chain

    def count(self, name: str) -> int:
        """The number of bones below one."""
        return 1 + sum(self.count(child) for child in self.children[name])

    def tip(self, name: str) -> FloatArray:
        """(3,) the end of a chain."""
        last = self.bones[self.chain(name)[-1]]
        return np.asarray(last.head + last.length * last.axes[:, 1])

    def on_ground(self, limb: str, lowest: float) -> bool:
        """Whether a limb ends at about the lowest height."""
        return bool(self.tip(limb)[2] - lowest < _ON_GROUND * self.height)

    def pair(self, name: str) -> tuple[str, str] | None:
        """Two children whose chains mirror each other; None if there are none."""
        children = [child for child in self.children[name] if abs(self.tip(child)[0] - self.middle) > self._room]
        for place, one in enumerate(children):
            for other in children[place + 1 :]:
                own, mirrored = self.tip(one), self.tip(other) * (-1.0, 1.0, 1.0) + (2.0 * self.middle, 0.0, 0.0)
                if np.abs(own - mirrored).max() <= self._room and len(self.chain(one)) > 1:
                    return one, other
        return None

    @property
    def _room(self) -> float:
        return _MIRRORED * self.height


def tree_body(bones: Mapping[str, RestBone]) -> TreeBody | None:
    """The roles of a biped's or a quadruped's bones; None if there are no legs, or no trunk above them.

    Z is up if the body can stand that way; else the first of the other axes along which it can.
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
    # If two pairs are on the ground, the hind legs are those whose bone is nearer to the root.
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
    """The roles of hips, trunk, limbs, neck and head."""
    roles = {hips: Role("hips"), **{name: Role("spine") for name in trunk}}
    for limb in pairs[hips]:
        roles |= _limb(tree.chain(limb)[:4], _LEG, left(limb))
    for limb in pairs[trunk[-1]]:
        chain = tree.chain(limb)[:4]
        roles |= _limb(chain, _ARMS.get(len(chain), _LONG_ARM), left(limb))
    above = [child for child in tree.children[trunk[-1]] if child not in pairs[trunk[-1]]]
    if above:
        *neck, head = tree.chain(max(above, key=tree.count))[:3]
        roles |= {name: Role("neck") for name in neck} | {head: Role("head")}
    return roles


def _limb(chain: list[str], parts: tuple[str, ...], side: str) -> dict[str, Role]:
    return {name: Role(part, side, number=int(part == "toe")) for name, part in zip(chain, parts, strict=False)}


def _left(tree: _Tree, legs: tuple[str, str]) -> Callable[[str], str]:
    """A function for the side of a limb: from the direction of the feet, else as for a body that faces -Y."""
    ahead = sum(float((tree.tip(leg) - tree.bones[tree.chain(leg)[-1]].head)[1]) for leg in legs)
    sign = -1.0 if ahead > 0.0 else 1.0
    return lambda limb: "L" if sign * (tree.tip(limb)[0] - tree.middle) > 0.0 else "R"
