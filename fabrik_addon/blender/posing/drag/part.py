"""One connected piece of a rig that follows a drag: the bones below one bone, as they stand, and their solver."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import bpy
import numpy as np
from mathutils import Quaternion

from ....core import Effector, Fixed, Options, Solver, forward_kinematics
from ....core.arrays import BoolArray, FloatArray
from ....core.limits.kinds import Limit
from ....core.model.skeleton import Skeleton
from ....core.rotations import matrix_from_quaternion
from ...goals.goals import limits_of
from ...goals.loops import turning_bones
from ...rig.armature import Tree, nearest_rotations
from ...rig.legal import angles_between
from ...rig.locks import with_locks
from ...rig.subtrees import freeze

# From the drag's first pose the nearest answer is wanted, not the best of all.
_OPTIONS: Final = Options(restarts=0)
# Radians that locked channels may be off by.
_KEPT: Final = 1e-4
_NO_TURN: Final = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Grip:
    """A point of a bone and where it is to be.

    Attributes:
        effector: the point, for the solver.
        place: (3,) its target at the drag's start, armature space.
        turn: (4,) how its bone is to be turned then, armature space, where the effector's rotation counts.
        moves: (3,) factors on the drag's shift, which it takes part in: zeros for what is held, (-1, 1, 1) for a
            mirrored point.
    """

    effector: Effector
    place: FloatArray
    turn: FloatArray
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
    """The bones from one bone down, made ready once, to be solved for every move of the mouse.

    Attributes:
        tree: the bones.
        grips: what is dragged and what is held.
        on_the_way: names of the bones whose turning moves a grip.
        turned: those that may turn, as places in the skeleton.
        moves_root: whether the top bone may move as well.
    """

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
        self.on_the_way = _on_the_way(tree.skeleton, grips)
        self.turned = sorted(tree.skeleton.index(name) for name in self.on_the_way if name not in frozen)
        names = [tree.skeleton.names[bone] for bone in self.turned]
        fixed = {name: Fixed() for name in tree.skeleton.names if name in frozen}
        self._limits = {**limits_of(armature, names), **fixed}
        self._root = "FREE" if self.moves_root and not is_rope else "FIXED"
        self._solver = self._made_ready(tree, self._limits)
        self._places = np.array([grip.place for grip in grips])
        self._moves = np.array([grip.moves for grip in grips])
        self._dragged = self._moves.any(axis=1)
        self._oriented = any(grip.effector.rotation_weight > 0.0 for grip in grips)
        self._ropes = _ropes(tree.skeleton, grips) if is_rope else []
        self._heads = forward_kinematics(tree.skeleton, tree.rotations, tree.root_location)[:, :3, 3]
        locks = (with_locks(armature.pose.bones[name], tree.rotations[tree.skeleton.index(name)]) for name in names)
        self._locks = {bone: lock for bone, lock in zip(self.turned, locks, strict=True) if lock is not None}

    def solve(self, shift: FloatArray, turn: Quaternion) -> PartPose:
        """The pose once the dragged points are shifted by (3,) and their bones turned, in armature space."""
        targets = self._places + self._moves * shift
        turns = np.array([_turned(grip, turn) for grip in self.grips]) if self._oriented else None
        start = self.tree.root_location
        if self._ropes:
            start = start + self._pulled(targets)
        solution = self._solver.solve(targets, start=self.tree.rotations, start_location=start, target_rotations=turns)
        rotations, head, errors = solution.rotations, solution.root_location, solution.errors
        kept = self._kept_by_locks(rotations)
        if kept:
            rotations, head, errors = self._around(kept, rotations, head, targets, turns)
        return PartPose(
            rotations, head, errors[self._dragged].max(initial=0.0), errors[~self._dragged].max(initial=0.0)
        )

    def _made_ready(self, tree: Tree, limits: Mapping[str, Limit]) -> Solver:
        effectors = [grip.effector for grip in self.grips]
        return Solver(tree.skeleton, effectors, limits=limits, root=self._root, options=_OPTIONS)

    def _pulled(self, targets: FloatArray) -> FloatArray:
        """(3,) how far the root is pulled: FABRIK's forward pass from each dragged point to the root."""
        pulls = [pull_rope(self._heads[joints], point, targets[grip]) for grip, joints, point in self._ropes]
        return np.asarray(np.mean(pulls, axis=0))

    def _kept_by_locks(self, rotations: FloatArray) -> dict[int, FloatArray]:
        """The bones turned against their locks, with (4,) what those make of it."""
        allowed = {bone: lock(rotations[bone]) for bone, lock in self._locks.items()}
        return {bone: turn for bone, turn in allowed.items() if angles_between(turn, rotations[bone]) > _KEPT}

    def _around(
        self,
        kept: Mapping[int, FloatArray],
        rotations: FloatArray,
        head: FloatArray,
        targets: FloatArray,
        turns: FloatArray | None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rotations, head and errors where bones go as their locks let them and the others make up for it."""
        turned = np.array(rotations)
        turned[list(kept)] = list(kept.values())
        names = [self.tree.skeleton.names[bone] for bone in kept]
        tree = freeze(Tree(self.tree.skeleton, turned, head), names)
        solver = self._made_ready(tree, {**self._limits, **{name: Fixed() for name in names}})
        solution = solver.solve(targets, start=tree.rotations, start_location=head, target_rotations=turns)
        result = np.array(solution.rotations)
        result[list(kept)] = list(kept.values())
        return result, solution.root_location, solution.errors


def tree_below(
    armature: bpy.types.Object, tree: Tree, top: str, owned: Collection[str], frozen: Collection[str]
) -> Tree:
    """The bones of a tree from one bone down, at rest in such a way that they stand as Blender shows them now.

    What carries the top bone stays as it is, so its rest frame is the frame that it is carried in; frozen bones have
    the frame in which they stand. Bones that constraints own, and those below them, are not there.
    """
    skeleton = tree.skeleton
    members = _members(skeleton, skeleton.index(top), owned)
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


def _turned(grip: Grip, turn: Quaternion) -> Sequence[float]:
    """(4,) how a grip's bone is to be turned once the dragged bone has been turned; mirrored where the shift is."""
    if not grip.moves.any():
        return grip.turn.tolist()
    side = grip.moves[0]
    own = Quaternion((turn.w, turn.x, side * turn.y, side * turn.z)) @ Quaternion(grip.turn.tolist())
    return own[:]


def _members(skeleton: Skeleton, top: int, owned: Collection[str]) -> list[int]:
    """A bone and all below it down to those that are owned, parents first."""
    inside = {top}
    for bone in range(top + 1, len(skeleton)):
        if int(skeleton.parents[bone]) in inside and skeleton.names[bone] not in owned:
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


def _on_the_way(skeleton: Skeleton, grips: Sequence[Grip]) -> set[str]:
    """The bones whose turning moves a grip."""
    turned = {bone for grip in grips for bone in turning_bones(skeleton, grip.effector)}
    return {skeleton.names[bone] for bone in turned}


def _ropes(skeleton: Skeleton, grips: Sequence[Grip]) -> list[tuple[int, list[int], FloatArray]]:
    """For each dragged point its place among the grips, the bones from the root to it, and where it is."""
    return [
        (row, [int(bone) for bone in skeleton.path(skeleton.index(grip.effector.bone))], grip.place)
        for row, grip in enumerate(grips)
        if grip.moves.any()
    ]
