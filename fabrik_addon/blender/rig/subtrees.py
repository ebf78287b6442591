"""Trees with bones that are not to be turned: cut where something else moves a bone, frozen where it only rides."""

from collections.abc import Collection

import numpy as np

from ...core import Skeleton, forward_kinematics
from ...core.arrays import IntArray
from .armature import Tree

_NO_TURN = (1.0, 0.0, 0.0, 0.0)


def cut_tree(tree: Tree, owned: Collection[str], ends: Collection[str]) -> list[tuple[Tree, str]]:
    """The parts of a tree with ends in them, parents first, each with the owned bone that carries it, or "" for none.

    Each owned bone is the root of a part of its own, at rest: what moves it moves the whole part. Of a tree with any
    owned bone, only the bones on the way to the ends are there, as control rigs have hundreds.
    """
    names = tree.skeleton.names
    tips = [bone for bone, name in enumerate(names) if name in ends]
    if not tips or not any(name in owned for name in names):
        return [(tree, "")] if tips else []
    ways: dict[int, set[int]] = {}
    for tip in tips:
        path = tree.skeleton.path(tip)
        first = max((place for place, bone in enumerate(path) if names[bone] in owned), default=0)
        ways.setdefault(path[first], set()).update(path[first:])
    carriers = {root: names[root] if names[root] in owned else "" for root in ways}
    return [
        (_part(tree, np.array(sorted(ways[root])), at_rest=bool(carriers[root])), carriers[root])
        for root in sorted(ways)
    ]


def freeze(tree: Tree, held: Collection[str]) -> Tree:
    """The same pose of a tree whose held bones have their present rotation as their rest."""
    skeleton = tree.skeleton
    rows = [row for row, name in enumerate(skeleton.names) if name in held]
    if not rows:
        return tree
    turns = np.tile(_NO_TURN, (len(skeleton), 1))
    turns[rows] = tree.rotations[rows]
    rest = forward_kinematics(skeleton, turns, skeleton.rest[0, :3, 3])
    frozen = Skeleton(skeleton.names, skeleton.parents, rest, skeleton.lengths, skeleton.inherits_rotation)
    rotations = tree.rotations.copy()
    rotations[rows] = _NO_TURN
    return Tree(frozen, rotations, tree.root_location)


def _part(tree: Tree, members: IntArray, *, at_rest: bool) -> Tree:
    """The bones at the places `members`, parents first."""
    skeleton = tree.skeleton
    places = {int(bone): place for place, bone in enumerate(members)}
    part = Skeleton(
        [skeleton.names[bone] for bone in members],
        [places.get(int(skeleton.parents[bone]), -1) for bone in members],
        skeleton.rest[members],
        skeleton.lengths[members],
        skeleton.inherits_rotation[members],
    )
    rotations = tree.rotations[members]
    if at_rest:
        rotations[0] = _NO_TURN
    return Tree(part, rotations, skeleton.rest[members[0], :3, 3].copy())
