"""Where the goals of a rig are, on the present frame, in the space that its tree of bones is solved in."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Quaternion

from ..core import Solution, Solver
from ..core.arrays import FloatArray
from .effectors import Goals, Pin, Target
from .import_markers import MARKER_NAME
from .sampling import is_seen


class Places(NamedTuple):
    """Where E effectors are to go, on one frame or on F, in the space of their tree.

    points: ([F,] E, 3), NaN for a marker that is not seen. rotations: ([F,] E, 4) w x y z; None where none counts.
    bends: ([F,] E, 3) what limbs bend toward, NaN where nothing; None where nothing at all.
    """

    points: FloatArray
    rotations: FloatArray | None = None
    bends: FloatArray | None = None

    def solve(self, solver: Solver, start: npt.ArrayLike, start_location: npt.ArrayLike | None) -> Solution:
        """What the solver makes of them."""
        extras: dict[str, Any] = {"target_rotations": self.rotations, "bend_targets": self.bends}
        given = {name: value for name, value in extras.items() if value is not None}
        return solver.solve(self.points, start=start, start_location=start_location, **given)

    def part(self, frames: slice | int) -> "Places":
        """Those of some of the frames."""
        return Places(*(None if each is None else each[frames] for each in self))


def present_places(graph: bpy.types.Depsgraph, scene: bpy.types.Scene, rig: bpy.types.Object, goals: Goals) -> Places:
    """Where the goals are now; the scene stays on its frame, so that what was moved by hand counts."""
    space = tree_space(rig.evaluated_get(graph), goals)
    armature = np.array(rig.evaluated_get(graph).matrix_world)
    world = np.array([_world_matrix(graph, armature, goal) for goal in goals.targets])
    for goal, matrix in zip(goals.targets, world, strict=True):
        if not isinstance(goal, Pin) and not _is_seen(scene, goal):
            matrix[:3, 3] = np.nan
    bends = np.array([_bend_point(graph, bend) for bend in goals.bends])
    return places_in(space, goals, world, bends)


def places_in(space: FloatArray, goals: Goals, world: FloatArray, bends: FloatArray) -> Places:
    """World matrices ([F,] E, 4, 4) of goals and ([F,] E, 3) points to bend toward, in a tree's space ([F,] 4, 4)."""
    into = np.linalg.inv(space)[..., None, :, :]
    points = (into[..., :3, :3] @ world[..., :3, 3:])[..., 0] + into[..., :3, 3]
    toward = (into[..., :3, :3] @ bends[..., None])[..., 0] + into[..., :3, 3]
    turning = [effector.rotation_weight > 0.0 for effector in goals.effectors]
    rotations = quaternions(into @ world) if any(turning) else None
    return Places(points, rotations, toward if any(bend is not None for bend in goals.bends) else None)


def quaternions(matrices: FloatArray) -> FloatArray:
    """(..., 4) rotations, w x y z, of (..., 4, 4) matrices with any scale."""
    flat = [Matrix(matrix.tolist()).to_quaternion()[:] for matrix in matrices.reshape(-1, 4, 4)]
    return np.array(flat).reshape(*matrices.shape[:-2], 4)


def tree_space(rig: bpy.types.Object, goals: Goals) -> FloatArray:
    """(4, 4) from the space of a tree to the world, by an evaluated armature as it is now."""
    world = np.array(rig.matrix_world)
    if not goals.carrier:
        return world
    rest = goals.tree.skeleton.rest[0]
    return world @ np.array(rig.pose.bones[goals.carrier].matrix) @ np.linalg.inv(rest)


def _world_matrix(graph: bpy.types.Depsgraph, armature: FloatArray, goal: Target | Pin) -> FloatArray:
    """(4, 4) of a goal: an object, a bone, or a pin in the space of the armature whose matrix is (4, 4)."""
    if isinstance(goal, Pin):
        turn = Matrix.LocRotScale(goal.location, Quaternion(goal.rotation), None)
        return armature @ np.array(turn)
    holder, bone = goal
    evaluated = holder.evaluated_get(graph)
    world = evaluated.matrix_world
    return np.array(world @ evaluated.pose.bones[bone].matrix if bone else world)


def _bend_point(graph: bpy.types.Depsgraph, bend: Target | None) -> Sequence[float]:
    """(3,) world place of what a limb bends toward, NaN for nothing."""
    if bend is None:
        return (np.nan,) * 3
    return _world_matrix(graph, np.eye(4), bend)[:3, 3].tolist()


def _is_seen(scene: bpy.types.Scene, target: Target) -> bool:
    """Whether a target is there on the present frame: imported markers have gaps."""
    holder, bone = target
    return bool(bone) or holder.get(MARKER_NAME) is None or is_seen(holder, scene.frame_current_final)
