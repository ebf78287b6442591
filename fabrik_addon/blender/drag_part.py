"""One connected piece of a rig that follows a drag: the bones below one bone, as they stand, and their solver."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import bpy
import numpy as np

from ..core import Effector, Fixed, Options, Solver, forward_kinematics
from ..core.arrays import BoolArray, FloatArray
from ..core.limits import Limit
from ..core.rotations import matrix_from_quaternion
from ..core.skeleton import Skeleton
from .limit_properties import read_limits
from .locks import with_locks
from .rig import Tree, nearest_rotations

# From the drag's first pose the nearest answer is wanted, not the best of all.
_OPTIONS: Final = Options(restarts=0)
_NO_TURN: Final = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Grip:
    """A point of a bone and where it is to be.

    Attributes:
        effector: the point, for the solver.
        place: (3,) its target at the drag's start, armature space.
        moves: (3,) factors on the drag's shift, which it takes part in: zeros for what is held, (-1, 1, 1) for a
            mirrored point.
    """

    effector: Effector
    place: FloatArray
    moves: FloatArray


@dataclass(frozen=True)
class PartPose:
    """The pose of a part.

    rotations: (J, 4) local. head: (3,) the top bone's. error, pin_error: armature units that what is dragged, and what
    is held, is from its place.
    """

    rotations: FloatArray
    head: FloatArray
    error: float
    pin_error: float


class DragPart:
    """The bones from one bone down, made ready once, to be solved for every move of the mouse."""

    def __init__(
        self, armature: bpy.types.Object, tree: Tree, grips: Sequence[Grip], frozen: Collection[str], root: str
    ) -> None:
        """Make it ready.

        Args:
            armature: the object that the tree is of.
            tree: the bones that may follow, as from `tree_below`.
            grips: what is dragged and what is held.
            frozen: bones that keep their local rotation.
            root: "FIXED", "FREE" or "FOLLOW". What follows like a rope would leave its pins, so with pins it is free.
        """
        self.tree, self.grips, self.moves_root = tree, tuple(grips), root != "FIXED"
        is_rope = root == "FOLLOW" and all(grip.moves.any() for grip in grips)
        self.on_the_way = _turned_names(tree.skeleton, grips)
        self.turned = sorted(tree.skeleton.index(name) for name in self.on_the_way if name not in frozen)
        limits = _limits(armature, tree.skeleton, self.turned, frozen)
        effectors = [grip.effector for grip in grips]
        freedom = "FREE" if self.moves_root and not is_rope else "FIXED"
        self._solver = Solver(tree.skeleton, effectors, limits=limits, root=freedom, options=_OPTIONS)
        self._places = np.array([grip.place for grip in grips])
        self._moves = np.array([grip.moves for grip in grips])
        self._dragged = self._moves.any(axis=1)
        self._rope = _rope(tree.skeleton, grips) if is_rope else []
        self._heads = forward_kinematics(tree.skeleton, tree.rotations, tree.root_location)[:, :3, 3]

    def solve(self, shift: FloatArray) -> PartPose:
        """The pose once the dragged points are shifted by (3,), in armature space."""
        targets = self._places + self._moves * shift
        start = self.tree.root_location
        if self._rope:
            start = start + self._pulled(targets)
        solution = self._solver.solve(targets, start=self.tree.rotations, start_location=start)
        dragged, held = solution.errors[self._dragged], solution.errors[~self._dragged]
        return PartPose(solution.rotations, solution.root_location, dragged.max(initial=0.0), held.max(initial=0.0))

    def _pulled(self, targets: FloatArray) -> FloatArray:
        """(3,) how far the root is pulled: FABRIK's forward pass from each dragged point to the root."""
        pulls = [pull_rope(self._heads[joints], point, targets[grip]) for grip, joints, point in self._rope]
        return np.asarray(np.mean(pulls, axis=0))


def tree_below(armature: bpy.types.Object, tree: Tree, top: str, frozen: Collection[str]) -> Tree:
    """The bones of a tree from one bone down, at rest in such a way that they stand as Blender shows them now.

    What carries the top bone stays as it is, so its rest frame is the frame that it is carried in; frozen bones, whose
    pose may come from constraints, have theirs for a rest frame.
    """
    skeleton = tree.skeleton
    members = _members(skeleton, skeleton.index(top))
    names = [skeleton.names[bone] for bone in members]
    rotations = tree.rotations[members].copy()
    rotations[[name in frozen for name in names]] = _NO_TURN
    posed = _posed(armature, names)
    carried = posed.copy()
    carried[:, :3, :3] = posed[:, :3, :3] @ np.swapaxes(matrix_from_quaternion(rotations), 1, 2)
    places = {bone: place for place, bone in enumerate(members)}
    parents = [places.get(int(skeleton.parents[bone]), -1) for bone in members]
    inherits = skeleton.inherits_rotation[members]
    rest = _rest(posed, carried, parents, inherits)
    below = Skeleton(names, parents, rest, skeleton.lengths[members], inherits)
    return Tree(below, rotations, rest[0, :3, 3].copy())


def pull_rope(joints: FloatArray, end: FloatArray, target: FloatArray) -> FloatArray:
    """(3,) how far the first of (N, 3) joints moves when the end (3,) of the chain is pulled to a target (3,)."""
    pulled, last = target, end
    for joint in joints[::-1]:
        length = np.linalg.norm(last - joint)
        away = joint - pulled
        distance = np.linalg.norm(away)
        pulled, last = pulled + away * (length / distance if distance > 0.0 else 0.0), joint
    return np.asarray(pulled - joints[0])


def _members(skeleton: Skeleton, top: int) -> list[int]:
    """A bone and all below it, parents first."""
    inside = {top}
    for bone in range(top + 1, len(skeleton)):
        if int(skeleton.parents[bone]) in inside:
            inside.add(bone)
    return sorted(inside)


def _posed(armature: bpy.types.Object, names: Sequence[str]) -> FloatArray:
    """(N, 4, 4) where bones are, in armature space, without scale."""
    posed = np.array([armature.pose.bones[name].matrix for name in names], dtype=np.float64)
    posed[:, :3, :3] = nearest_rotations(posed[:, :3, :3])
    return posed


def _rest(posed: FloatArray, carried: FloatArray, parents: Sequence[int], inherits: BoolArray) -> FloatArray:
    """(N, 4, 4) a rest pose from which the present rotations lead to the present pose."""
    rest = carried.copy()
    for bone, parent in enumerate(parents):
        if parent < 0:
            continue
        rest[bone] = rest[parent] @ np.linalg.inv(posed[parent]) @ carried[bone]
        if not inherits[bone]:
            rest[bone, :3, :3] = carried[bone, :3, :3]
    rest[:, :3, :3] = nearest_rotations(rest[:, :3, :3])
    return rest


def _turned_names(skeleton: Skeleton, grips: Sequence[Grip]) -> set[str]:
    """The bones whose turning moves a grip."""
    turned: set[int] = set()
    for grip in grips:
        bone = skeleton.index(grip.effector.bone)
        path = [int(each) for each in skeleton.path(bone)]
        at_head = grip.effector.offset is not None and not any(grip.effector.offset)
        turned.update(path[:-1] if at_head else path)
    return {skeleton.names[bone] for bone in turned}


def _limits(
    armature: bpy.types.Object, skeleton: Skeleton, turned: Sequence[int], frozen: Collection[str]
) -> dict[str, Limit]:
    """The limits to be kept: the bones' own, closed where channels are locked; frozen bones do not turn at all."""
    names = [skeleton.names[bone] for bone in turned]
    own = read_limits(armature, names)
    closed = {name: with_locks(armature.pose.bones[name], own.get(name)) for name in names}
    limits = {name: limit for name, limit in closed.items() if limit is not None}
    return limits | {name: Fixed() for name in skeleton.names if name in frozen}


def _rope(skeleton: Skeleton, grips: Sequence[Grip]) -> list[tuple[int, list[int], FloatArray]]:
    """For each dragged point its place among the grips, the bones from the root to it, and where it is."""
    return [
        (row, [int(bone) for bone in skeleton.path(skeleton.index(grip.effector.bone))], grip.place)
        for row, grip in enumerate(grips)
        if grip.moves.any()
    ]
