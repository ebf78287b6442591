"""What the bones of source and rig are: by their names, for the rest by the pairs that are given."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from ..core import Skeleton
from ..core.arrays import ROUNDING
from ..human.body_parts import Role
from ..human.naming_schemes import match
from ..human.rest_body import RestBody, RestBone, bones_of
from .by_tree import TreeBody, tree_body
from .motion import Motion, RetargetError
from .pairs import Pair, above, pair_bodies

# Share of a body's size: hips that are nearer are the same ones, such as those of Rigify's DEF and ORG bones.
_SAME_PLACE: Final = 1e-3
# What a person has; names that tell less leave the rest to the tree. Spines are made of parts of either name.
_PERSON: Final = frozenset({"spine", "head", "upper_arm", "forearm", "hand", "shin", "foot"})


def find_bodies(motion: Motion, skeleton: Skeleton, pairs: Sequence[Pair] | None = None) -> tuple[RestBody, RestBody]:
    """The source's body at rest and the rig's; where pairs are given, what a bone is on one side it is on the other."""
    source_bones, bones = _bones(motion, skeleton)
    source, target = _known(source_bones).roles, _known(bones).roles
    if pairs is not None:
        source, target = _through(pairs, source, target)
    return RestBody(source_bones, source), RestBody(bones, target)


def _bones(motion: Motion, skeleton: Skeleton) -> tuple[dict[str, RestBone], dict[str, RestBone]]:
    """Those of the source and the rig at rest."""
    return motion.bones_at(None), bones_of(skeleton.names, skeleton.parents, skeleton.rest, skeleton.lengths)


def _known(bones: Mapping[str, RestBone]) -> TreeBody:
    """What bones are by their names; where these tell no hips and thighs, by how they hang on one another.

    The topmost bone above the hips, which games move bodies by, is the root.
    """
    found = _told(bones)
    hips = next((name for name, role in found.roles.items() if role.part == "hips"), None)
    over = above(bones, hips) if hips is not None else []
    return found._replace(roles={**dict.fromkeys(over[-1:], Role("root")), **found.roles})


def _told(bones: Mapping[str, RestBone]) -> TreeBody:
    """The same without the root."""
    named = match(bones)
    parts: dict[str, list[str]] = {}
    for name, role in named.items():
        parts.setdefault(role.part, []).append(name)
    if {"hips", "thigh"} <= parts.keys():
        # What is called hips and has no legs is none where something else has them.
        carried = {bone for thigh in parts["thigh"] for bone in above(bones, thigh)}
        legless = set(parts["hips"]) - carried if carried & set(parts["hips"]) else ()
        roles = {name: role for name, role in named.items() if name not in legless}
        return TreeBody(roles if _parts(roles) >= _PERSON else _completed(roles, bones), on_four=False)
    return tree_body(bones) or TreeBody(named, on_four=False)


def _parts(roles: Mapping[str, Role]) -> set[str]:
    """The parts that are told; a chest is of the spine."""
    return {"spine" if role.part == "chest" else role.part for role in roles.values()}


def _completed(roles: Mapping[str, Role], bones: Mapping[str, RestBone]) -> dict[str, Role]:
    """What names leave untold, such as MVN's L5 to T8, by the tree, where both have the same legs."""
    found, told = tree_body(bones), _parts(roles)
    if found is None or any(found.roles.get(name) != role for name, role in roles.items() if role.part == "thigh"):
        return dict(roles)
    return {**{name: role for name, role in found.roles.items() if role.part not in told}, **roles}


def _through(
    pairs: Sequence[Pair], source: Mapping[str, Role], target: Mapping[str, Role]
) -> tuple[dict[str, Role], dict[str, Role]]:
    """The roles of the bones in pairs, told by the side on which more of them are known."""
    by_target = sum(pair.bone in target for pair in pairs) >= sum(pair.source in source for pair in pairs)
    told = ((pair.bone, target.get(pair.bone) if by_target else source.get(pair.source)) for pair in pairs)
    own = {bone: role for bone, role in told if role is not None}
    # Of several bones that go by one it is what the first is.
    other = {pair.source: own[pair.bone] for pair in reversed(pairs) if pair.bone in own and not pair.before}
    return other, own


def find_pairs(motion: Motion, skeleton: Skeleton) -> tuple[Pair, ...]:
    """Which bone goes by which; raises RetargetError where none does."""
    source_bones, bones = _bones(motion, skeleton)
    told, own = _known(source_bones), _known(bones)
    if told.on_four != own.on_four:
        raise RetargetError(
            f"{motion.name!r} and the rig do not both go on two legs, or on four: say by a map which is which"
        )
    source, target = RestBody(source_bones, told.roles), RestBody(bones, own.roles)
    for body in (source, target):
        check_one_body(body)
    pairs = pair_bodies(source, target)
    check_pairs(motion, target, pairs)
    return pairs


def check_one_body(body: RestBody) -> None:
    """Raise RetargetError where there are two hips with legs, at different places and neither above the other."""
    hips = body.named("hips")
    size = _SAME_PLACE * max(float(np.ptp([bone.head for bone in body.bones.values()], axis=0).max()), ROUNDING)
    for one, other in combinations(hips, 2):
        apart = float(np.linalg.norm(body.bones[one].head - body.bones[other].head)) > size
        if apart and one not in above(body.bones, other) and other not in above(body.bones, one):
            raise two_hips(one, other)


def two_hips(one: str, other: str) -> RetargetError:
    """What is said where there are two bodies."""
    return RetargetError(f"Bones {one!r} and {other!r} both are hips with legs: say by a map which body is meant")


def check_pairs(motion: Motion, target: RestBody, pairs: Sequence[Pair]) -> None:
    """Raise RetargetError where pairs are not enough to bring a motion over."""
    if not pairs:
        raise RetargetError(f"No bone of {motion.name!r} is known as one of the rig's: say by a map which is which")
    hips = [pair.bone for pair in pairs if target.roles[pair.bone].part == "hips"]
    if not hips:
        raise RetargetError(f"No bone of {motion.name!r} is known as the hips: say by a map which is")
    if len(hips) > 1:
        raise RetargetError(f"Bones {hips[0]!r} and {hips[1]!r} both are the hips: leave one of them out of the map")
