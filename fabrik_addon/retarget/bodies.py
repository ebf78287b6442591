"""Recognizes the bones of source and rig, by name or from given pairs."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from ..core import Skeleton
from ..core.arrays import ROUNDING, FloatArray, lengths
from ..human.body_parts import Role
from ..human.naming_schemes import match
from ..human.rest_body import RestBody, RestBone, bones_of
from .motion import Motion, RetargetError
from .pairs import Pair, TreeBody, above, pair_bodies, tree_body

# Hips bones closer than this share of a body's size are of one body, such as those of Rigify's DEF and ORG bones.
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
    """The bones of the source and the rig at rest."""
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
    """Recognize all bones but the root, by name or by the bone tree."""
    named = match(bones)
    parts: dict[str, list[str]] = {}
    for name, role in named.items():
        parts.setdefault(role.part, []).append(name)
    # Animals may use human names for other parts: on Rigify's wolf, the bone named like hips is below the neck.
    necks = set(parts.get("neck", ()))
    if "thigh" in parts and any(necks.isdisjoint(above(bones, hips)) for hips in parts.get("hips", ())):
        # Bones named hips are ignored if they have no legs and others do.
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
        raise RetargetError(f"No bone of {motion.name!r} is known as the hips: map the hips")
    if len(hips) > 1:
        raise RetargetError(f"Bones {hips[0]!r} and {hips[1]!r} are both the hips: remove one of them from the map")
