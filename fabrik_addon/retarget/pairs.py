"""Pairs of bones: limbs by role, spines and necks by the length along them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..core.arrays import FloatArray
from ..human.rest_body import RestBody, RestBone

# Chains whose number of bones differs between rigs: the parts that they are made of, and the parts that follow.
_CHAINS: Final = ((("spine", "chest"), ("neck", "head", "shoulder", "upper_arm")), (("neck",), ("head",)))
_IN_CHAINS: Final = frozenset(part for parts, _ in _CHAINS for part in parts)
_EXACT: Final = 1e-6


@dataclass(frozen=True)
class Pair:
    """A bone of the rig and the source bone that it follows.

    before, share: if chains differ in number of bones, a bone follows a blend of two: from the source bone `before` (0)
    to `source` (1).
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
    order = {name: place for place, name in enumerate(target.bones)}
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
        place = int(np.clip(np.searchsorted(others, end - _EXACT), 1, len(other)))
        share = float((end - others[place - 1]) / (others[place] - others[place - 1]))
        before = names[place - 1]
        pairs.append(Pair(bone, names[place], before, share) if before and share < 1.0 else Pair(bone, names[place]))
    return pairs


def depth(body: RestBody, name: str) -> int:
    """The number of bones above one."""
    return len(above(body.bones, name))


def above(bones: Mapping[str, RestBone], name: str) -> list[str]:
    """The bones above one, the nearest first."""
    names = []
    while name := bones[name].parent:
        names.append(name)
    return names


def _ends(body: RestBody, chain: list[str], after: Iterable[str]) -> FloatArray:
    """(n,) the ends of a chain's bones, as shares of the length along the chain."""
    last = body.bones[chain[-1]]
    following = next((head for part in after if (head := body.head_of(part)) is not None), None)
    end = last.head + last.length * last.axes[:, 1] if following is None else following
    joints = np.array([*(body.bones[name].head for name in chain), end])
    along = np.cumsum(np.linalg.norm(np.diff(joints, axis=0), axis=1))
    return np.asarray(along / along[-1])
