"""Posing the present frame so that the effectors meet their targets."""

from collections.abc import Collection
from dataclasses import dataclass

import bpy
import numpy as np

from ...core import Solution
from ...core.arrays import FloatArray
from ..goals.effectors import check_effectors
from ..goals.goals import Goals, gather_goals
from ..goals.places import Places, present_places, tree_space
from ..goals.root import moves_root
from ..rig.armature import Tree, check_editable, check_rig, read_trees, write_pose
from ..rig.locks import with_locks
from ..rig.spaces import object_scale
from ..rig.stretch import write_stretches
from .locked import solve_around_locks


@dataclass(frozen=True)
class FrameResult:
    """How the effectors of a rig met their targets.

    errors: (E,) world metres, NaN where not seen. met: how many of them are within the solver's tolerance.
    left_alone: sentences on bones on the way that were not turned.
    """

    errors: FloatArray
    met: int
    left_alone: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The result in one line, such as "5 of 5 effectors met, worst 0.2 mm"."""
        unseen = int(np.isnan(self.errors).sum())
        if unseen == len(self.errors):
            return "No target is seen on this frame: the pose is as before"
        hidden = f", {unseen} not seen" if unseen else ""
        seen = len(self.errors) - unseen
        return f"{self.met} of {seen} effectors met, worst {1000.0 * np.nanmax(self.errors):.1f} mm{hidden}"


def solve_frame(context: bpy.types.Context, armature: bpy.types.Object, start: str = "PRESENT") -> FrameResult:
    """Pose the armature for its targets as they are now, from its "PRESENT" pose or from "REST".

    Bones that no enabled effector needs, and those that nobody could key, stay as they are. Raises a FabrikError, with
    the pose as before.
    """
    check_effectors(context.scene, armature)
    check_rig(armature)
    check_editable(armature)
    context.view_layer.update()
    trees = gather_goals(armature, read_trees(armature))
    errors, met = [], 0
    for goals in trees:
        solution = _solve_present(context, armature, goals, start)
        scale = object_scale(tree_space(armature, goals))
        errors.append(solution.errors * float(scale))
        met += int(_met(armature, goals, solution).sum())
    alone = tuple(sentence for goals in trees for sentence in goals.left_alone)
    return FrameResult(np.concatenate(errors), met, alone)


def _solve_present(context: bpy.types.Context, armature: bpy.types.Object, goals: Goals, start: str) -> Solution:
    """Pose one tree."""
    if goals.carrier:
        # What carries it may have followed bones that were solved just now.
        context.view_layer.update()
    places = present_places(context.evaluated_depsgraph_get(), context.scene, armature, goals)
    rotations = goals.tree.rotations.copy()
    if start == "REST":
        rotations[goals.bones] = (1.0, 0.0, 0.0, 0.0)
    solution = solve_tree(armature, goals, places, rotations, goals.tree.root_location)
    if not np.isnan(places.points).any(axis=1).all():
        location = solution.root_location if moves_root(armature, goals) else None
        write_stretches(armature, stretch_factors(goals, solution))
        write_pose(armature, goals.tree.skeleton, solution.rotations, location, bones=goals.bones)
    return solution


def solve_tree(
    armature: bpy.types.Object, goals: Goals, places: Places, start: FloatArray, start_location: FloatArray
) -> Solution:
    """The pose of one tree from (J, 4) start rotations and the (3,) start of its root's head; locked channels stay."""
    free = moves_root(armature, goals)
    bones = [armature.pose.bones[name] for name in goals.bone_names]
    locks = {place: with_locks(bone, start[place]) for place, bone in zip(goals.bones, bones, strict=True)}

    def solve(tree: Tree, locked: Collection[str], rotations: FloatArray, location: FloatArray) -> Solution:
        solver = goals.around(tree, locked).solver(free_root=free)
        return places.solve(solver, rotations, location)

    own = {place: lock for place, lock in locks.items() if lock is not None}
    return solve_around_locks(solve, goals.tree, start, start_location, own)


def stretch_factors(goals: Goals, solution: Solution) -> dict[str, float]:
    """By bone that may stretch, what its length is multiplied by in a single pose."""
    skeleton = goals.tree.skeleton
    rows = {name: skeleton.index(name) for name in goals.slides}
    return {name: float(solution.lengths[row] / skeleton.lengths[row]) for name, row in rows.items()}


def _met(armature: bpy.types.Object, goals: Goals, solution: Solution) -> FloatArray:
    """(E,) whether effectors are within the solver's tolerance."""
    solver = goals.solver(free_root=moves_root(armature, goals))
    return np.asarray(solution.errors <= solver.options.tolerance * solver.reaches.tolerance_lengths)
