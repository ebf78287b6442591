"""Solving so that locked channels stay: bones go where their locks let them, and the others make up for it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from ...core import Solution
from ...core.arrays import FloatArray
from ...core.rotations import angle_between
from ..rig.armature import Tree
from ..rig.locks import WithLocks
from ..rig.subtrees import freeze

# Radians that locked channels may be off by: less cannot be seen, and solving again for it would double the time.
_KEPT: Final = 1e-4
# One pose of a tree in which some bones are not to be turned, from (J, 4) local rotations and the (3,) root's head.
Solve: TypeAlias = Callable[[Tree, Collection[str], FloatArray, FloatArray], Solution]


def solve_around_locks(
    solve: Solve, tree: Tree, start: FloatArray, start_location: FloatArray, locks: Mapping[int, WithLocks]
) -> Solution:
    """The pose of a tree, once more around those bones that come out turned against their locks.

    locks: by place in the skeleton, what each lets a rotation be.
    """
    solution = solve(tree, (), start, start_location)
    allowed = {bone: lock(solution.rotations[bone]) for bone, lock in locks.items()}
    kept = [bone for bone, turn in allowed.items() if angle_between(turn, solution.rotations[bone]) > _KEPT]
    if not kept:
        return solution
    turned = np.array(solution.rotations)
    turned[kept] = [allowed[bone] for bone in kept]
    names = [tree.skeleton.names[bone] for bone in kept]
    frozen = freeze(Tree(tree.skeleton, turned, solution.root_location), names)
    others = solve(frozen, names, frozen.rotations, frozen.root_location)
    rotations = np.array(others.rotations)
    rotations[kept] = turned[kept]
    return replace(others, skeleton=tree.skeleton, rotations=rotations)
