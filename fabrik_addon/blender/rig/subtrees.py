"""Trees with bones that are not to be turned: cut where something else moves a bone, frozen where it only rides."""

from collections.abc import Collection, Sequence

import numpy as np

from ...core import forward_kinematics
from ...core.arrays import FloatArray
from ...core.model.skeleton import Skeleton
from ...core.rotations import NO_TURN, matrix_from_quaternion
from .armature import Tree, nearest_rotations


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
    return [(_part(tree, sorted(ways[root]), at_rest=bool(carriers[root])), carriers[root]) for root in sorted(ways)]


def freeze(tree: Tree, held: Collection[str]) -> Tree:
    """The same pose of a tree whose held bones have their present rotation as their rest."""
    skeleton = tree.skeleton
    rows = [row for row, name in enumerate(skeleton.names) if name in held]
    if not rows:
        return tree
    held_rotations = np.tile(NO_TURN, (len(skeleton), 1))
    held_rotations[rows] = tree.rotations[rows]
    rest = forward_kinematics(skeleton, held_rotations, skeleton.rest[0, :3, 3])
    rotations = tree.rotations.copy()
    rotations[rows] = NO_TURN
    return Tree(skeleton.part(range(len(skeleton)), rest), rotations, tree.root_location)


def tree_below(tree: Tree, stands: FloatArray, top: str, owned: Collection[str], frozen: Collection[str]) -> Tree:
    """The bones of a tree from one bone down, at rest in such a way that they stand at (J, 4, 4) now.

    What carries the top bone stays as it is, so its rest frame is the frame that it is carried in; frozen bones have
    the frame in which they stand. Bones that constraints own, and those below them, are not there.
    """
    skeleton = tree.skeleton
    first = skeleton.index(top)
    inside = {first}
    for bone in range(first + 1, len(skeleton)):
        if int(skeleton.parents[bone]) in inside and skeleton.names[bone] not in owned:
            inside.add(bone)
    members = sorted(inside)
    names = [skeleton.names[bone] for bone in members]
    rotations = tree.rotations[members].copy()
    rotations[[name in frozen for name in names]] = NO_TURN
    posed = stands[members]
    carried = posed.copy()
    carried[:, :3, :3] = posed[:, :3, :3] @ np.swapaxes(matrix_from_quaternion(rotations), 1, 2)
    below = skeleton.part(members)
    rest = _rest(posed, carried, below)
    return Tree(skeleton.part(members, rest), rotations, rest[0, :3, 3].copy())


def _part(tree: Tree, members: Sequence[int], *, at_rest: bool) -> Tree:
    """The bones at the places `members`, parents first."""
    rotations = tree.rotations[members]
    if at_rest:
        rotations[0] = NO_TURN
    return Tree(tree.skeleton.part(members), rotations, tree.skeleton.rest[members[0], :3, 3].copy())


def _rest(posed: FloatArray, carried: FloatArray, skeleton: Skeleton) -> FloatArray:
    """(N, 4, 4) a rest pose from which the present rotations lead to the present pose."""
    rest = carried.copy()
    for bone, parent in enumerate(skeleton.parents):
        if parent < 0:
            continue
        rest[bone] = rest[parent] @ np.linalg.inv(posed[parent]) @ carried[bone]
        if not skeleton.inherits_rotation[bone]:
            rest[bone, :3, :3] = carried[bone, :3, :3]
    rest[:, :3, :3] = nearest_rotations(rest[:, :3, :3])
    return rest
